"""Faulty games that `check_env` must catch, each by the clause that it breaks."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import envs


class _Game(envs.TicTacToe):
    """Tic-tac-toe with one fault: `fault` changes the state after every legal move."""

    def fault(self, state, before):
        return state

    def _play(self, state, action, key):
        return self.fault(super()._play(state, action, key), state)


class FinishedStateKeepsItsMask(_Game):
    def step(self, state, action, key=None):
        after = super().step(state, action, key)
        mask = after.board == -1
        return dataclasses.replace(after, legal_action_mask=mask)


class NoLegalActionInAnUnfinishedState(_Game):
    def fault(self, state, before):
        few = (state.board != -1).sum() < 4
        mask = state.legal_action_mask & few
        return dataclasses.replace(state, legal_action_mask=mask)


class RewardsDoNotSumToZero(_Game):
    def fault(self, state, before):
        return dataclasses.replace(state, rewards=jnp.maximum(state.rewards, 0))


class RewardsAreNotFinite(_Game):
    def fault(self, state, before):
        rewards = state.rewards / (state.rewards != 0)
        return dataclasses.replace(state, rewards=rewards)


class PlayerIsCountedOn(_Game):
    def fault(self, state, before):
        return dataclasses.replace(state, current_player=before.current_player + 1)


class MoveIsLost(_Game):
    def fault(self, state, before):
        third = (state.board != -1).sum() == 3
        return jax.tree.map(lambda new, old: jnp.where(third, old, new), state, before)


class FinishedStateMovesOn(_Game):
    def step(self, state, action, key=None):
        after = super().step(state, action, key)
        player = jnp.where(
            state.terminated, 1 - state.current_player, after.current_player
        )
        return dataclasses.replace(after, current_player=player)


class FinishedStatePaysAgain(_Game):
    def step(self, state, action, key=None):
        after = super().step(state, action, key)
        rewards = jnp.where(state.terminated, state.rewards, after.rewards)
        return dataclasses.replace(after, rewards=rewards)


class IllegalActionIsForgiven(_Game):
    def step(self, state, action, key=None):
        legal = state.legal_action_mask[action] | state.terminated
        after = super().step(state, action, key)
        return jax.tree.map(lambda new, old: jnp.where(legal, new, old), after, state)


class NegativeActionCountsFromTheEnd(_Game):
    def step(self, state, action, key=None):
        return super().step(state, jnp.where(action < 0, action + 9, action), key)


class LastActionIsClipped(_Game):
    def step(self, state, action, key=None):
        return super().step(state, jnp.minimum(action, 8), key)


class IllegalActionRewardsItsMover(_Game):
    def _forfeit(self, loser):
        return -super()._forfeit(loser)


class IllegalActionDamagesTheBoard(_Game):
    def step(self, state, action, key=None):
        after = super().step(state, action, key)
        illegal = ~state.legal_action_mask[action % 9] & ~state.terminated
        board = jnp.where(illegal, jnp.int8(0), after.board)
        return dataclasses.replace(after, board=board)


class RewardsAreInteger(_Game):
    def init(self, key=None):
        state = super().init(key)
        return dataclasses.replace(state, rewards=state.rewards.astype(jnp.int32))

    def step(self, state, action, key=None):
        after = super().step(state, action, key)
        return dataclasses.replace(after, rewards=after.rewards.astype(jnp.int32))


class OptionsAreNotThoseOfTheGame(_Game):
    @property
    def options(self):
        return {"size": 3}


class OptionsMakeAnotherGame(_Game):
    def __init__(self, num_actions=9):
        self.num_actions = num_actions

    @property
    def options(self):
        return {"num_actions": 10}


class MaskIsTooLong(_Game):
    num_actions = 10


class StepWidensTheBoard(_Game):
    def step(self, state, action, key=None):
        after = super().step(state, action, key)
        return dataclasses.replace(after, board=after.board.astype(jnp.int32))


class StepGivesAWeakType(_Game):
    def step(self, state, action, key=None):
        after = super().step(state, action, key)
        player = jnp.where(after.current_player == 0, 0, 1)
        return dataclasses.replace(after, current_player=player)


class StepGivesAnotherState(_Game):
    def step(self, state, action, key=None):
        after = super().step(state, action, key)
        fields = (field.name for field in dataclasses.fields(envs.State))
        return envs.State(**{name: getattr(after, name) for name in fields})


class InitIsFinished(_Game):
    def init(self, key=None):
        return self.from_text("XXX/OO./...")


class RawKeysStartAnotherGame(_Game):
    def init(self, key=None):
        typed = jnp.issubdtype(key.dtype, jax.dtypes.prng_key)
        return super().init() if typed else super().step(super().init(), 0)


class RulesChangeWithEveryTrace(_Game):
    traces = 0

    def fault(self, state, before):
        self.traces += 1
        return dataclasses.replace(state, board=state.board * self.traces)


class ObservationIsFlat(_Game):
    def observe(self, state):
        return super().observe(state).reshape(9, 2)


class ObservationIsInteger(_Game):
    def observe(self, state):
        return super().observe(state).astype(jnp.int32)


class TextLosesThePosition(_Game):
    def from_text(self, text):
        super().from_text(text)
        return self.init()


class TextReadsAnotherPlayer(_Game):
    def from_text(self, text):
        state = super().from_text(text)
        return dataclasses.replace(state, current_player=1 - state.current_player)


class TextReadsAWiderBoard(_Game):
    def from_text(self, text):
        state = super().from_text(text)
        return dataclasses.replace(state, board=state.board.astype(jnp.int32))


class TextHasTwoLines(_Game):
    def to_text(self, state):
        return super().to_text(state).replace("/", "\n")


class AnyTextIsAPosition(_Game):
    def from_text(self, text):
        return self.init() if " " in text else super().from_text(text)


class AnyTextIsAMove(_Game):
    def text_to_action(self, state, text):
        return 0 if " " in text else super().text_to_action(state, text)


class ActionsShareAName(_Game):
    def _action_name(self, state, action):
        return str(action // 2)


class DrawingIsEmpty(_Game):
    def draw(self, state):
        return ""


class BoardIsTurnedButNotThePolicy(_Game):
    @property
    def symmetries(self):
        right = envs.TicTacToe().symmetries
        still = np.broadcast_to(right.actions[:1], right.actions.shape)
        return envs.Symmetries(cells=right.cells, actions=still)


class PolicyIsTurnedTheOtherWay(_Game):
    @property
    def symmetries(self):
        right = envs.TicTacToe().symmetries
        inverse = np.argsort(right.actions, axis=1).astype(np.int32)
        return envs.Symmetries(cells=right.cells, actions=inverse)


class SymmetryIsNoPermutation(_Game):
    @property
    def symmetries(self):
        right = envs.TicTacToe().symmetries
        cells = right.cells.copy()
        cells[3, 0] = cells[3, 1]
        return envs.Symmetries(cells=cells, actions=right.actions)


class FirstSymmetryIsNotTheIdentity(_Game):
    @property
    def symmetries(self):
        right = envs.TicTacToe().symmetries
        return envs.Symmetries(cells=right.cells[::-1], actions=right.actions[::-1])


class GameNeverEnds(_Game):
    def fault(self, state, before):
        return dataclasses.replace(
            state,
            board=before.board,
            rewards=jnp.zeros_like(state.rewards),
            terminated=jnp.zeros_like(state.terminated),
            legal_action_mask=jnp.ones_like(state.legal_action_mask),
        )


class VersionIsMissing(_Game):
    version = None


class StateIsAPlainTuple(_Game):
    def init(self, key=None):
        return tuple(dataclasses.asdict(super().init(key)).values())


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Unregistered(envs.TicTacToeState):
    pass


class StateIsNotRegistered(_Game):
    def init(self, key=None):
        return Unregistered(**vars(super().init(key)))


class PlayerIsAPythonNumber(_Game):
    def init(self, key=None):
        return dataclasses.replace(super().init(key), current_player=0)


class FieldIsNone(_Game):
    def init(self, key=None):
        return dataclasses.replace(super().init(key), truncated=None)


class BoardIsAString(_Game):
    def init(self, key=None):
        return dataclasses.replace(super().init(key), board="." * 9)


class MaskIsFloat(_Game):
    def init(self, key=None):
        state = super().init(key)
        mask = state.legal_action_mask.astype(jnp.float32)
        return dataclasses.replace(state, legal_action_mask=mask)


class StartHasNoRewards(_Game):
    def init(self, key=None):
        return dataclasses.replace(super().init(key), rewards=jnp.float32(0))


class ActionsAreNotCounted(_Game):
    num_actions = 0


CAUGHT = {
    StateIsAPlainTuple: "init must give a subclass of envs.State, got tuple",
    StateIsNotRegistered: "put @jax.tree_util.register_dataclass over Unregistered",
    PlayerIsAPythonNumber: r"current_player must be int32 of shape \(\), got 0",
    FieldIsNone: r"truncated must be bool of shape \(\), got None",
    BoardIsAString: r"a state must hold arrays only, got '.*' in \.board",
    MaskIsFloat: r"legal_action_mask must be bool of shape \(9,\), got float32",
    StartHasNoRewards: r"rewards must be float32 of shape \(2,\), got .* shape \(\)",
    FinishedStateKeepsItsMask: "a legal action exactly while it is unfinished",
    NoLegalActionInAnUnfinishedState: "a legal action exactly while it is unfinished",
    RewardsDoNotSumToZero: "rewards of two players must sum to zero",
    RewardsAreNotFinite: "rewards must be finite",
    PlayerIsCountedOn: "current_player must be 0 to 1",
    MoveIsLost: "a legal action must change the state",
    FinishedStateMovesOn: "a step from a finished state must leave it",
    FinishedStatePaysAgain: "a step from a finished state must leave it",
    IllegalActionIsForgiven: "an illegal action must end the game",
    NegativeActionCountsFromTheEnd: "illegal action must end the game .* action -1",
    LastActionIsClipped: "illegal action must end the game .* action 9",
    IllegalActionRewardsItsMover: "an illegal action must end the game with -1",
    IllegalActionDamagesTheBoard: "illegal action must leave the position as it is",
    RewardsAreInteger: "rewards must be float32",
    MaskIsTooLong: r"legal_action_mask must be bool of shape \(10,\), got .* \(9,\)",
    StepWidensTheBoard: r"step must give the field \.board .* got int32\[9\]",
    StepGivesAWeakType: r"step must give the field \.current_player .*weakly typed",
    StepGivesAnotherState: "step must give a state of the same fields as init",
    InitIsFinished: "init must give an unfinished state",
    RawKeysStartAnotherGame: "the same state for a typed key and for its raw data",
    RulesChangeWithEveryTrace: "step and observe must give the same vmapped and not",
    ObservationIsFlat: r"observe must give .* of shape \(3, 3, 2\), got .* \(9, 2\)",
    ObservationIsInteger: "observe must give finite bool or float32 .* got int32",
    TextLosesThePosition: "to_text gave '.*', which reads back as '.../.../...'",
    TextReadsAnotherPlayer: "must give the same player to move",
    TextReadsAWiderBoard: r"from_text must give the field \.board as init does",
    TextHasTwoLines: "to_text must give one line",
    AnyTextIsAPosition: r"from_text\(.*\) must raise ValueError",
    AnyTextIsAMove: r"text_to_action\(.*\) must raise ValueError",
    ActionsShareAName: "action 0 is called '0', which reads back as 1",
    DrawingIsEmpty: "draw must give text",
    BoardIsTurnedButNotThePolicy: "played through symmetry 1 must show the image",
    PolicyIsTurnedTheOtherWay: "played through symmetry 1 must show the image",
    SymmetryIsNoPermutation: "symmetries.cells must be .* permutations of 0 to 8",
    FirstSymmetryIsNotTheIdentity: "the first one the identity",
    GameNeverEnds: "unfinished after 30 plies",
    VersionIsMissing: "version must be a str, got None",
    ActionsAreNotCounted: "num_actions must be an int >= 1, got 0",
}


@pytest.mark.parametrize("game", CAUGHT, ids=lambda game: game.__name__)
def test_faulty_game_is_caught(game):
    with pytest.raises(
        ValueError, match=rf"check_env\(tic_tac_toe\): .*{CAUGHT[game]}"
    ):
        envs.check_env(game(), games=4, max_plies=30)


def test_game_without_a_fault_passes():
    envs.check_env(_Game(), games=4, max_plies=30)


def test_no_games_are_refused():
    with pytest.raises(ValueError, match="games must be at least 1, got 0"):
        envs.check_env(_Game(), games=0)
