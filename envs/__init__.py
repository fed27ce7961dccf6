"""Games as pure JAX functions: one contract, one file a game."""

from envs.check import check_env
from envs.chess import Chess, ChessState, GardnerChess
from envs.connect_four import ConnectFour, ConnectFourState
from envs.env import Env, State, Symmetries, win_rewards
from envs.nim import Nim, NimState
from envs.registry import make, names
from envs.tic_tac_toe import TicTacToe, TicTacToeState

__all__ = [
    "Chess",
    "ChessState",
    "ConnectFour",
    "ConnectFourState",
    "Env",
    "GardnerChess",
    "Nim",
    "NimState",
    "State",
    "Symmetries",
    "TicTacToe",
    "TicTacToeState",
    "check_env",
    "make",
    "names",
    "win_rewards",
]
