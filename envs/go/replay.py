"""Games that are played again from their moves or their record, on the host."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from envs.go import begin, drawing, notation

if TYPE_CHECKING:
    from envs.go.game import Go, GoState

NAMES = ("Black", "White")


def in_turn(env: "Go", actions: Iterable[int]) -> list[tuple[int, int]]:
    """Each action with its player, from the start."""
    first = int(env.handicap > 0)
    return [((first + ply) % 2, a) for ply, a in enumerate(actions)]


def read_moves(env: "Go", text: str) -> list[tuple[int, int]]:
    """GTP moves from the start, as players and actions.

    Raises:
      ValueError: tells the first word that is no point.
    """
    actions = []
    for number, word in enumerate(text.split(), 1):
        try:
            actions.append(notation.read_vertex(word, env.size))
        except ValueError as error:
            raise ValueError(f"move {number}, {error}") from error
    return in_turn(env, actions)


def play(env: "Go", state: "GoState", moves: list[tuple[int, int]]) -> "GoState":
    """The state after moves, each with its player.

    Raises:
      ValueError: tells the first move that is illegal or out of turn.
    """
    for number, (player, action) in enumerate(moves, 1):
        name = env.action_to_text(state, action)
        where = f"move {number}, {NAMES[player]} {name},"
        if state.terminated | state.truncated:
            raise ValueError(f"{where} comes after the end of the game")
        if player != state.current_player:
            raise ValueError(f"{where} comes when {NAMES[1 - player]} is to move")
        if not state.legal_action_mask[action]:
            raise ValueError(f"{where} is illegal; before it:\n{env.draw(state)}")
        state = env.jitted_step(state, np.int32(action))
    return state


def play_record(env: "Go", record: notation.Record) -> "GoState":
    """The state at the end of a record.

    Raises:
      ValueError: the record is of another size or komi, its setup is impossible, or
        one of its moves illegal.
    """
    if record.size != env.size:
        raise ValueError(
            f"the game is on {record.size}x{record.size}: read it with "
            f"envs.make('go_{record.size}x{record.size}')"
        )
    if record.komi is not None and record.komi != env.komi:
        raise ValueError(
            f"the komi is {record.komi:g} and here {env.komi:g}: read it with "
            f"envs.make({env.id!r}, komi={record.komi:g})"
        )
    position = begin.start(record.cells, record.player)
    begin.check(position, env.length)
    return play(env, env.set_up(position), record.moves)


def options_of(record: notation.Record) -> dict[str, Any]:
    """The options of the game that a record is of."""
    options: dict[str, Any] = {"size": record.size}
    if record.komi is not None:
        options["komi"] = record.komi
    stones = np.flatnonzero(record.cells).tolist()
    number = len(stones)
    if record.cells.min() >= 0 and 2 <= number <= drawing.max_handicap(record.size):
        fixed = drawing.handicap_points(record.size, number)
        if sorted(fixed) == stones:
            options["handicap"] = number
    return options
