"""Which options a game of Go may have."""

from typing import Any

from envs.go.drawing import max_handicap
from envs.go.notation import MAX_KOMI, MAX_SIZE, is_komi

KO_RULES = ("simple", "positional", "situational")
MAX_PLIES = 2**15 - 1  # plies are int16


def check(
    size: Any, komi: Any, ko: Any, suicide: Any, handicap: Any, max_plies: Any
) -> None:
    """Refuses what is no option.

    Raises:
      ValueError: says which, and what it may be.
    """
    _check_whole("size", size, 2, MAX_SIZE)
    number = isinstance(komi, int | float) and not isinstance(komi, bool)
    if not number or not is_komi(komi):
        raise ValueError(
            f"go: komi is a multiple of 1/2 from -{MAX_KOMI} to {MAX_KOMI}, got "
            f"{komi!r}"
        )
    if ko not in KO_RULES:
        raise ValueError(f"go: ko is one of {', '.join(KO_RULES)}, got {ko!r}")
    if not isinstance(suicide, bool):
        raise ValueError(f"go: suicide is True or False, got {suicide!r}")
    _check_whole(f"handicap on {size}x{size}", handicap, 0, max_handicap(size))
    if handicap == 1:
        raise ValueError("go: a handicap has two stones or more, got 1")
    if max_plies is not None:
        _check_whole("max_plies", max_plies, 1, MAX_PLIES)


def _check_whole(name: str, value: Any, low: int, high: int) -> None:
    whole = isinstance(value, int) and not isinstance(value, bool)
    if not whole or not low <= value <= high:
        raise ValueError(f"go: {name} is {low} to {high}, got {value!r}")
