"""Games as pure JAX functions: one contract, one file a game."""

from envs.check import check_env
from envs.connect_four import ConnectFour, ConnectFourState
from envs.env import Env, State, Symmetries, win_rewards
from envs.gomoku import Gomoku, GomokuState
from envs.hex import Hex, HexState
from envs.nim import Nim, NimState
from envs.othello import Othello, OthelloState
from envs.oware import Oware, OwareState
from envs.perft import perft
from envs.pgx_adapter import PgxEnv, PgxState
from envs.registry import make, names
from envs.tic_tac_toe import TicTacToe, TicTacToeState
from envs.ultimate_tic_tac_toe import UltimateTicTacToe, UltimateTicTacToeState

__all__ = [
    "ConnectFour",
    "ConnectFourState",
    "Env",
    "Gomoku",
    "GomokuState",
    "Hex",
    "HexState",
    "Nim",
    "NimState",
    "Othello",
    "OthelloState",
    "Oware",
    "OwareState",
    "PgxEnv",
    "PgxState",
    "State",
    "Symmetries",
    "TicTacToe",
    "TicTacToeState",
    "UltimateTicTacToe",
    "UltimateTicTacToeState",
    "check_env",
    "make",
    "names",
    "perft",
    "win_rewards",
]
