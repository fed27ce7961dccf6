"""The part of `check_env` about positions and moves as text."""

import xml.etree.ElementTree as ElementTree
from typing import Any

import jax
import numpy as np

from envs import svg
from envs.env import Env
from envs.faults import check_same_type, require

TEXT_GAMES = 4  # the games whose positions all go through text
UNREADABLE = "no such text"


def check_texts(env: Env[Any], seen: list[Any]) -> None:
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


def _check_unreadable(env: Env[Any], start: Any) -> None:
    calls = {
        f"from_text({UNREADABLE!r})": lambda: env.from_text(UNREADABLE),
        f"text_to_action({UNREADABLE!r})": lambda: env.text_to_action(
            start, UNREADABLE
        ),
        "action_to_text(-1)": lambda: env.action_to_text(start, -1),
        "action_to_text(A)": lambda: env.action_to_text(start, env.num_actions),
    }
    for name, call in calls.items():
        try:
            call()
        except ValueError:
            continue
        require(False, env, f"{name} must raise ValueError")


def _check_position(env: Env[Any], start: Any, state: Any) -> None:
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
    require(
        int(read.current_player) == state.current_player and (finished or same_mask),
        env,
        f"from_text({text!r}) must give the same player to move and the same legal "
        "actions as the state that the text is of",
    )


def _check_drawings(env: Env[Any], state: Any) -> None:
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


def _check_action_names(env: Env[Any], state: Any) -> None:
    for action in np.flatnonzero(state.legal_action_mask).tolist():
        name = env.action_to_text(state, action)
        require(isinstance(name, str), env, f"action_to_text gave {name!r}, not a str")
        back = env.text_to_action(state, name)
        require(
            back == action,
            env,
            f"action {action} is called {name!r}, which reads back as {back}",
        )
