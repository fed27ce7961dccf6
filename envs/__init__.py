"""Games as pure JAX functions: one contract, one file a game."""

from envs.check import check_env
from envs.chess import Chess, ChessState, GardnerChess
from envs.connect_four import ConnectFour, ConnectFourState
from envs.env import AuxiliaryTargets, Env, State, Symmetries, win_rewards
from envs.game import Game, GameState
from envs.go import Go, GoState
from envs.gomoku import Gomoku, GomokuState
from envs.goofspiel import Goofspiel, GoofspielState
from envs.hex import Hex, HexState
from envs.nim import Nim, NimState
from envs.othello import Othello, OthelloState
from envs.oware import Oware, OwareState
from envs.perft import perft
from envs.pgx_adapter import PgxEnv, PgxState
from envs.records import write_record
from envs.registry import make, make_in_turn, names
from envs.sequential import Sequential, SequentialState
from envs.simultaneous import SimultaneousEnv, SimultaneousState
from envs.tic_tac_toe import TicTacToe, TicTacToeState
from envs.tron import Tron, TronState
from envs.ultimate_tic_tac_toe import UltimateTicTacToe, UltimateTicTacToeState

__all__ = [
    "AuxiliaryTargets",
    "Chess",
    "ChessState",
    "ConnectFour",
    "ConnectFourState",
    "Env",
    "Game",
    "GameState",
    "GardnerChess",
    "Go",
    "GoState",
    "Gomoku",
    "GomokuState",
    "Goofspiel",
    "GoofspielState",
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
    "Sequential",
    "SequentialState",
    "SimultaneousEnv",
    "SimultaneousState",
    "State",
    "Symmetries",
    "TicTacToe",
    "TicTacToeState",
    "Tron",
    "TronState",
    "UltimateTicTacToe",
    "UltimateTicTacToeState",
    "check_env",
    "make",
    "make_in_turn",
    "names",
    "perft",
    "win_rewards",
    "write_record",
]
