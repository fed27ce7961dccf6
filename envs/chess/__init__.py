"""Chess, and Gardner's minichess on 5x5."""

from envs.chess.game import Chess, ChessState, GardnerChess

__all__ = ["Chess", "ChessState", "GardnerChess"]
