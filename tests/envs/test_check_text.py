"""Faults of text and drawings that `check_env` must catch."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import envs


class SvgIsNoXml(envs.TicTacToe):
    def to_svg(self, state):
        return "<svg><rect></svg>"


class SvgIsNoText(envs.TicTacToe):
    def to_svg(self, state):
        return None


class SvgIsAnotherDocument(envs.TicTacToe):
    def to_svg(self, state):
        return "<html xmlns='http://www.w3.org/1999/xhtml' viewBox='0 0 1 1'/>"


class SvgHasNoNamespace(envs.TicTacToe):
    def to_svg(self, state):
        return "<svg viewBox='0 0 1 1'/>"


class SvgHasNoViewBox(envs.TicTacToe):
    def to_svg(self, state):
        return "<svg xmlns='http://www.w3.org/2000/svg' width='9' height='9'/>"


@pytest.mark.parametrize(
    ("game", "message"),
    [
        (SvgIsNoXml, "to_svg must give an SVG document, got mismatched tag"),
        (SvgIsNoText, "to_svg must give an SVG document, got .*NoneType"),
        (SvgIsAnotherDocument, "to_svg must give an <svg> with a viewBox, got <.*html"),
        (SvgHasNoNamespace, "to_svg must give an <svg> with a viewBox, got <svg>"),
        (SvgHasNoViewBox, "to_svg must give an <svg> with a viewBox, got <.*svg>"),
    ],
)
def test_drawing_that_is_no_svg_is_caught(game, message):
    with pytest.raises(ValueError, match=rf"check_env\(tic_tac_toe\): {message}"):
        envs.check_env(game(), games=1)


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class LastState(envs.TicTacToeState):
    last: jax.Array  # int8: the cell marked last, NOWHERE if that is not known


NOWHERE = -2


class NotNextToTheLast(envs.TicTacToe):
    """The cell after the last one may not be marked; text leaves the last one out."""

    history_fields = ("last",)

    def init(self, key=None):
        return self._with_last(super().init(key), jnp.int8(NOWHERE))

    def _play(self, state, action, key):
        return self._with_last(super()._play(state, action, key), action)

    def from_text(self, text):
        return self._with_last(super().from_text(text), jnp.int8(NOWHERE))

    def _with_last(self, state, last):
        mask = state.legal_action_mask
        forbidden = np.arange(9) == last + 1
        rest = mask & ~forbidden
        fields = {field: getattr(state, field) for field in vars(state)}
        fields["legal_action_mask"] = jnp.where(rest.any(), rest, mask)
        return LastState(**{**fields, "last": last.astype(jnp.int8)})

    @functools.cached_property
    def symmetries(self):
        same = np.arange(9, dtype=np.int32)[None, :]
        return envs.Symmetries(cells=same, actions=same)


def test_move_that_the_history_forbids_may_be_legal_in_a_state_that_was_read():
    env = NotNextToTheLast()
    envs.check_env(env, games=4)
    state = env.step(env.init(), 3)
    read = env.from_text(env.to_text(state))
    assert not state.legal_action_mask[4] and read.legal_action_mask[4]


def test_without_history_fields_the_masks_must_be_equal():
    class HistoryIsNotNamed(NotNextToTheLast):
        history_fields = ()

    with pytest.raises(ValueError, match="the same player to move and the same legal"):
        envs.check_env(HistoryIsNotNamed(), games=1)


def test_history_takes_no_legal_move_away():
    class ReadForbidsMore(NotNextToTheLast):
        def from_text(self, text):
            state = super().from_text(text)
            first = jnp.argmax(state.legal_action_mask)
            mask = state.legal_action_mask.at[first].set(False)
            return dataclasses.replace(state, legal_action_mask=mask)

    with pytest.raises(ValueError, match="the same player to move and the same legal"):
        envs.check_env(ReadForbidsMore(), games=1)
