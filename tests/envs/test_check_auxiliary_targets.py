"""Games that tell wrongly of their final boards, which `check_env` must catch."""

import dataclasses

import jax.numpy as jnp
import pytest

import envs


class TellsOfFinalBoards(envs.TicTacToe):
    def auxiliary_targets(self, state):
        ownership = state.board.reshape(3, 3)
        return envs.AuxiliaryTargets(ownership=ownership, score=jnp.float32(0))


class OwnershipIsFlat(TellsOfFinalBoards):
    def auxiliary_targets(self, state):
        return envs.AuxiliaryTargets(ownership=state.board, score=jnp.float32(0))


class OwnershipIsCounted(TellsOfFinalBoards):
    def auxiliary_targets(self, state):
        told = super().auxiliary_targets(state)
        return dataclasses.replace(told, ownership=2 * told.ownership)


class OwnershipIsNotTurned(TellsOfFinalBoards):
    def auxiliary_targets(self, state):
        told = super().auxiliary_targets(state)
        return dataclasses.replace(told, ownership=told.ownership.at[0, 0].set(1))


class ScoreIsNotFinite(TellsOfFinalBoards):
    def auxiliary_targets(self, state):
        told = super().auxiliary_targets(state)
        return dataclasses.replace(told, score=jnp.float32(jnp.nan))


class TellsATuple(TellsOfFinalBoards):
    def auxiliary_targets(self, state):
        return state.board.reshape(3, 3), jnp.float32(0)


CAUGHT = {
    OwnershipIsFlat: r"ownership int8 of shape \(3, 3\) .* got int8 of shape \(9,\)",
    OwnershipIsCounted: "must give ownership of -1, 0 or 1 and a finite score",
    OwnershipIsNotTurned: "through symmetry 1 must tell the image of the ownership",
    ScoreIsNotFinite: "must give ownership of -1, 0 or 1 and a finite score",
    TellsATuple: "auxiliary_targets must give envs.AuxiliaryTargets, got .*tuple",
}


@pytest.mark.parametrize("game", CAUGHT, ids=lambda game: game.__name__)
def test_game_that_tells_wrongly_is_caught(game):
    with pytest.raises(ValueError, match=CAUGHT[game]):
        envs.check_env(game(), games=4, max_plies=30)


def test_game_that_tells_rightly_passes():
    envs.check_env(TellsOfFinalBoards(), games=4, max_plies=30)
