"""What self-play and learning are told: the part of a configuration that they share.

A program adds its own flags, the game and the net by inheriting from it.
"""

import ast
import dataclasses
import math
import reprlib
import typing
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, Self

from jaxsearch.search.policy_names import policy_named


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Settings of a training run that do not name a game, a net or a folder."""

    seed: int = 0
    """Of the first parameters, openings, searches and samples."""
    devices: int = 1
    """Devices to use: each plays its share of the games and learns from its share."""

    search: str = "gumbel"
    """Search of self-play: gumbel, puct, or mctx-gumbel and mctx-puct to compare."""
    simulations: int = 32
    """Simulations for each move of self-play."""
    games: int = 128
    """Games played side by side."""
    plies: int = 8
    """Moves in each game between learning steps."""
    opening_plies: int = 8
    """A game starts after a random number of random moves, up to this one."""
    temperature: float = 1.0
    """Of the PUCT searches, which draw moves in proportion to visits ** (1 /
    temperature); Gumbel chooses by itself."""

    positions: int = 60_000
    """Positions that the replay holds."""
    updates: int = 8
    """Learning steps in an iteration."""
    batch: int = 512
    """Positions in a learning step."""
    learning_rate: float = 3e-3
    """Peak of the learning rate; it falls to a twentieth over the run, as a cosine."""
    weight_decay: float = 1e-4
    """Of adamw: how strongly a learning step pulls the parameters towards 0."""
    value_weight: float = 1.0
    """Weight of the value loss against the policy loss."""
    search_value_share: float = 0.5
    """Share of the search's own value in the value target; the rest is the result."""
    average_decay: float = 0.99
    """Decay of the running average of the parameters, which plays and is kept."""

    def check(self) -> None:
        """Raises ValueError for a value that no run can have; names its flag."""
        check_numbers(self, self.may_be_zero())
        for name in ("search_value_share", "average_decay"):
            if (share := getattr(self, name)) > 1:
                raise ValueError(f"{flag(name)} is a share from 0 to 1, got {share}")
        if self.batch > self.positions:
            raise ValueError(
                f"--batch {self.batch} is more than --positions {self.positions}: the "
                "replay would never hold enough to learn from"
            )
        for name in ("games", "batch"):
            value = getattr(self, name)
            if value % self.devices:
                below = value // self.devices * self.devices
                near = [n for n in (below, below + self.devices) if n]
                raise ValueError(
                    f"{flag(name)} {value} does not divide among {self.devices} "
                    f"devices: take {' or '.join(map(str, near))}"
                )
        for name in ("simulations", "plies"):
            value = getattr(self, name)
            if self.games // self.devices * value > MOST_ROWS:
                raise ValueError(
                    f"--games {self.games} times {flag(name)} {value} is more than "
                    f"{MOST_ROWS} on a device: lower one of them"
                )
        policy_named(self.search)

    @classmethod
    def may_be_zero(cls) -> set[str]:
        """The numbers that may be 0; all others must be above."""
        return {
            *("seed", "opening_plies", "temperature", "weight_decay"),
            *("value_weight", "search_value_share", "average_decay"),
        }

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> Self:
        """The settings that `dataclasses.asdict` gave before they went through JSON.

        Raises:
          ValueError: a setting is unknown, missing or of another type, or has a value
            that no run can have.
        """
        kinds = typing.get_type_hints(cls)
        if unknown := sorted(set(stored) - set(kinds)):
            raise ValueError(
                f"unknown setting {reprlib.repr(unknown[0])}: it was written by "
                "another version"
            )
        for name, kind in kinds.items():
            if name not in stored:
                raise ValueError(f"the setting {name!r} is missing")
            if not _fits(stored[name], kind):
                raise ValueError(
                    f"{name} is {reprlib.repr(stored[name])}, expected something like "
                    f"{getattr(cls, name)!r}"
                )
        values: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in stored.items()
        }
        settings = cls(**values)
        settings.check()
        return settings


# The most that a number can be, so that arrays and loops come to an end and float32
# holds what is given. Seeds beyond theirs would repeat others.
MOST_FLOAT = 1e30
MOST_WHOLE = 2**31 - 1
MOST_ROWS = 2**30  # of an array, which int32 counts; a search takes some to spare
MOST = {
    "seed": 2**32 - 1,
    "depth": 1_000,
    **dict.fromkeys(("width", "plies", "opening_plies"), 2**16),
    **dict.fromkeys(("simulations", "sims", "games", "batch"), 2**20),
}


def check_numbers(flags: Any, may_be_zero: set[str]) -> None:
    """Raises ValueError for a number out of bounds in a dataclass; names its flag."""
    for field in dataclasses.fields(flags):
        values = getattr(flags, field.name)
        for value in values if isinstance(values, tuple) else (values,):
            if not isinstance(value, int | float) or isinstance(value, bool):
                continue
            zero = field.name in may_be_zero
            if not value >= 0 or (value == 0 and not zero):
                least = "0 or more" if zero else "above 0"
                raise ValueError(
                    f"{flag(field.name)} must be {least}, got {reprlib.repr(value)}"
                )
            most = MOST_FLOAT if isinstance(value, float) else MOST_WHOLE
            if value > (most := MOST.get(field.name, most)):
                raise ValueError(
                    f"{flag(field.name)} must be at most {most}, got "
                    f"{reprlib.repr(value)}"
                )


def read_options(texts: Iterable[str]) -> dict[str, Any]:
    """The values of --env-options; ValueError for texts that are not name=value."""
    options = {}
    for text in texts:
        name, _, value = text.partition("=")
        if name in options:
            raise ValueError(f"--env-options gives {name!r} twice: keep one of them")
        try:
            options[name] = ast.literal_eval(value)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            reason = getattr(error, "msg", "not a Python value")
            raise ValueError(
                f"--env-options takes name=value, such as misere=True, got {text!r}: "
                f"{reason}"
            ) from None
    return options


def flag(name: str) -> str:
    """The command-line flag of a setting."""
    return "--" + name.replace("_", "-")


def learning_rate_scale(share_done: float, updates: int) -> float:
    """A warm-up of 100 updates, then half a cosine from 1 down to a twentieth."""
    warm_up = min(1.0, (updates + 1) / 100)
    return warm_up * max(0.05, 0.5 * (1 + math.cos(math.pi * min(share_done, 1.0))))


def _fits(value: Any, kind: Any) -> bool:
    """Whether what JSON gave is of a type; bool is no number here."""
    parts = typing.get_args(kind)
    if typing.get_origin(kind) is Literal:
        return value in parts
    if typing.get_origin(kind) is tuple:
        return isinstance(value, list) and all(_fits(item, parts[0]) for item in value)
    if parts:  # a union
        return any(_fits(value, part) for part in parts)
    return type(value) in {float: (int, float)}.get(kind, (kind,))
