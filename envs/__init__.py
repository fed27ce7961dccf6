"""Games as pure JAX functions: one contract, one file a game."""

from envs.check import check_env
from envs.connect_four import ConnectFour, ConnectFourState
from envs.env import Env, State, Symmetries, win_rewards
from envs.hex import Hex, HexState
from envs.nim import Nim, NimState
from envs.othello import Othello, OthelloState
from envs.perft import perft
from envs.pgx_adapter import PgxEnv, PgxState
from envs.registry import make, names
from envs.tic_tac_toe import TicTacToe, TicTacToeState

__all__ = [
    "ConnectFour",
    "ConnectFourState",
    "Env",
    "Hex",
    "HexState",
    "Nim",
    "NimState",
    "Othello",
    "OthelloState",
    "PgxEnv",
    "PgxState",
    "State",
    "Symmetries",
    "TicTacToe",
    "TicTacToeState",
    "check_env",
    "make",
    "names",
    "perft",
    "win_rewards",
]
