"""What self-play and learning are told: the part of a configuration that they share.

A program adds its own flags, the game and the net by inheriting from it.
"""

import dataclasses
import math
from dataclasses import dataclass

from jaxsearch.search.policy_names import policy_named


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Settings of a training run that do not name a game, a net or a folder."""

    seed: int = 0
    """Of the first parameters, openings, searches and samples."""
    devices: int = 1
    """Devices to use: each plays its share of the games and learns from its share."""

    search: str = "mctx-gumbel"
    """Search of self-play: mctx-gumbel, puct or mctx-puct."""
    simulations: int = 32
    """Simulations for each move of self-play."""
    games: int = 128
    """Games played side by side."""
    plies: int = 8
    """Moves in each game between learning steps."""
    opening_plies: int = 8
    """A game starts after a random number of random moves, up to this one."""
    temperature: float = 1.0
    """Moves are drawn in proportion to visits ** (1 / temperature)."""

    positions: int = 60_000
    """Positions that the replay holds."""
    updates: int = 8
    """Learning steps in an iteration."""
    batch: int = 512
    """Positions in a learning step."""
    learning_rate: float = 3e-3
    """Peak of the learning rate; it falls to a twentieth over the run, as a cosine."""
    weight_decay: float = 1e-4
    """Of adamw: how strongly a learning step pulls the parameters towards 0."""
    value_weight: float = 1.0
    """Weight of the value loss against the policy loss."""
    search_value_share: float = 0.5
    """Share of the search's own value in the value target; the rest is the result."""
    average_decay: float = 0.99
    """Decay of the running average of the parameters, which plays and is kept."""

    def check(self) -> None:
        """Raises ValueError for a value that no run can have; names its flag."""
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if not isinstance(value, int | float) or isinstance(value, bool):
                continue
            may_be_zero = field.name in self.may_be_zero()
            if not value >= 0 or (value == 0 and not may_be_zero):
                least = "0 or more" if may_be_zero else "above 0"
                raise ValueError(f"{flag(field.name)} must be {least}, got {value}")
        for name in ("search_value_share", "average_decay"):
            if (share := getattr(self, name)) > 1:
                raise ValueError(f"{flag(name)} is a share from 0 to 1, got {share}")
        if self.batch > self.positions:
            raise ValueError(
                f"--batch {self.batch} is more than --positions {self.positions}: the "
                "replay would never hold enough to learn from"
            )
        for name in ("games", "batch"):
            value = getattr(self, name)
            if value % self.devices:
                below = value // self.devices * self.devices
                near = [n for n in (below, below + self.devices) if n]
                raise ValueError(
                    f"{flag(name)} {value} does not divide among {self.devices} "
                    f"devices: take {' or '.join(map(str, near))}"
                )
        policy_named(self.search)

    @classmethod
    def may_be_zero(cls) -> set[str]:
        """The numbers that may be 0; all others must be above."""
        return {
            *("seed", "opening_plies", "temperature", "weight_decay"),
            *("value_weight", "search_value_share", "average_decay"),
        }


def flag(name: str) -> str:
    """The command-line flag of a setting."""
    return "--" + name.replace("_", "-")


def learning_rate_scale(share_done: float, updates: int) -> float:
    """A warm-up of 100 updates, then half a cosine from 1 down to a twentieth."""
    warm_up = min(1.0, (updates + 1) / 100)
    return warm_up * max(0.05, 0.5 * (1 + math.cos(math.pi * min(share_done, 1.0))))
