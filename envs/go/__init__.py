"""Go, one subject a file; the game itself is in `envs.go.game`."""

from envs.go.game import Go, GoState

__all__ = ["Go", "GoState"]
