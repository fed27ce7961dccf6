"""The part of `check_env` about positions and moves as text."""

import xml.etree.ElementTree as ElementTree
from typing import Any

import jax
import numpy as np

from envs import svg
from envs.faults import check_same_type, require
from envs.game import Game
from envs.simultaneous import SimultaneousEnv

TEXT_GAMES = 4  # the games whose positions all go through text
UNREADABLE = "no such text"


def check_texts(env: Game[Any], seen: list[Any]) -> None:
    """Sends positions and moves of random games through text and back.

    Args:
      seen: the states of batched games, ply by ply, as numpy arrays.
    """
    start = env.init(jax.random.key(0))
    _check_unreadable(env, start)
    for game in range(min(TEXT_GAMES, len(seen[0].terminated))):
        for states in seen:
            state = jax.tree.map(lambda leaf: leaf[game], states)  # noqa: B023
            _check_position(env, start, state)
            _check_drawings(env, state)
            if state.terminated | state.truncated:
                break
            _check_action_names(env, state)


def _check_unreadable(env: Any, start: Any) -> None:
    player = _choosers(env)[0]
    calls = {
        f"from_text({UNREADABLE!r})": lambda: env.from_text(UNREADABLE),
        f"text_to_action({UNREADABLE!r})": lambda: env.text_to_action(
            start, *player, UNREADABLE
        ),
        "action_to_text(-1)": lambda: env.action_to_text(start, *player, -1),
        "action_to_text(A)": lambda: env.action_to_text(
            start, *player, env.num_actions
        ),
    }
    for name, call in calls.items():
        try:
            call()
        except ValueError:
            continue
        require(False, env, f"{name} must raise ValueError")


def _check_position(env: Game[Any], start: Any, state: Any) -> None:
    text = env.to_text(state)
    require(
        isinstance(text, str) and len(text.splitlines()) == 1,
        env,
        f"to_text must give one line, got {text!r}",
    )
    read = env.from_text(text)
    check_same_type(env, start, read, "from_text")
    again = env.to_text(read)
    require(again == text, env, f"to_text gave {text!r}, which reads back as {again!r}")
    finished = state.terminated | state.truncated
    mask, wanted = np.asarray(read.legal_action_mask), state.legal_action_mask
    # What the history forbids may be legal where it is not known.
    same_mask = np.array_equal(mask | wanted if env.history_fields else wanted, mask)
    at_once = isinstance(env, SimultaneousEnv)
    same_player = at_once or int(read.current_player) == state.current_player
    require(
        same_player and (finished or same_mask),
        env,
        f"from_text({text!r}) must give the same player to move and the same legal "
        "actions as the state that the text is of",
    )


def _check_drawings(env: Game[Any], state: Any) -> None:
    drawing = env.draw(state)
    require(
        isinstance(drawing, str) and bool(drawing.strip()),
        env,
        f"draw must give text, got {drawing!r}",
    )
    drawing = env.to_svg(state)
    try:
        root = ElementTree.fromstring(drawing)
    except (TypeError, ElementTree.ParseError) as error:
        require(False, env, f"to_svg must give an SVG document, got {error}")
        return
    require(
        root.tag == f"{{{svg.NAMESPACE}}}svg" and "viewBox" in root.attrib,
        env,
        f"to_svg must give an <svg> with a viewBox, got <{root.tag}>",
    )


def _check_action_names(env: Any, state: Any) -> None:
    for player in _choosers(env):
        mask = state.legal_action_mask[player]
        for action in np.flatnonzero(mask).tolist():
            name = env.action_to_text(state, *player, action)
            require(
                isinstance(name, str), env, f"action_to_text gave {name!r}, not a str"
            )
            back = env.text_to_action(state, *player, name)
            require(
                back == action,
                env,
                f"action {action} is called {name!r}, which reads back as {back}",
            )


def _choosers(env: Game[Any]) -> list[tuple[int, ...]]:
    """Whom the names of actions are for: every player, or the one to move, ()."""
    if isinstance(env, SimultaneousEnv):
        return [(player,) for player in range(env.num_players)]
    return [()]
