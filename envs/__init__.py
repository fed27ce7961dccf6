"""Games as pure JAX functions: one contract, one file a game."""

from envs.check import check_env
from envs.connect_four import ConnectFour, ConnectFourState
from envs.env import Env, State, Symmetries, win_rewards
from envs.game import Game, GameState
from envs.goofspiel import Goofspiel, GoofspielState
from envs.nim import Nim, NimState
from envs.registry import make, make_in_turn, names
from envs.sequential import Sequential, SequentialState
from envs.simultaneous import SimultaneousEnv, SimultaneousState
from envs.tic_tac_toe import TicTacToe, TicTacToeState
from envs.tron import Tron, TronState

__all__ = [
    "ConnectFour",
    "ConnectFourState",
    "Env",
    "Game",
    "GameState",
    "Goofspiel",
    "GoofspielState",
    "Nim",
    "NimState",
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
    "check_env",
    "make",
    "make_in_turn",
    "names",
    "win_rewards",
]
