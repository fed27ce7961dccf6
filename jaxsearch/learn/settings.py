"""What self-play and learning are told: the part of a configuration that they share.

A program adds its own flags, the game and the net by inheriting from it.
"""

import ast
import dataclasses
import reprlib
import typing
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, Self

from jaxsearch.search.policy_names import policy_named


@dataclass(frozen=True, kw_only=True)
class LearnerSettings:
    """How a net learns, whatever from."""

    seed: int = 0
    """Of the first parameters, openings, searches and samples."""
    batch: int = 512
    """Positions in a learning step."""
    optimizer: Literal["adamw", "sgd"] = "adamw"
    """adamw, or sgd with a momentum of 0.9."""
    learning_rate: float = 3e-3
    """Peak of the learning rate, after a warm-up."""
    warm_up: int = 100
    """Learning steps in which the learning rate rises to its peak."""
    schedule: Literal["cosine", "constant"] = "cosine"
    """After the peak: down to a twentieth over the run as a cosine, or constant."""
    clip: float = 1.0
    """The largest norm of a gradient; a larger one is scaled down."""
    weight_decay: float = 1e-4
    """How strongly a learning step pulls the parameters towards 0."""
    value_weight: float = 1.0
    """Weight of the value loss against the policy loss."""
    average_decay: float = 0.99
    """Decay of the running average of the parameters, which plays and is kept."""

    def check(self) -> None:
        """Raises ValueError for a value that no run can have; names its flag."""
        check_numbers(self, self.may_be_zero())
        for field in dataclasses.fields(self):
            share = getattr(self, field.name)
            if field.name in _SHARES and share > 1:
                raise ValueError(
                    f"{flag(field.name)} is a share from 0 to 1, got {share}"
                )

    @classmethod
    def may_be_zero(cls) -> set[str]:
        """The numbers that may be 0; all others must be above."""
        return {"seed", "warm_up", "weight_decay", "value_weight", "average_decay"}

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> Self:
        """The settings that `dataclasses.asdict` gave before they went through JSON.

        Raises:
          ValueError: a setting is unknown, missing or of another type, or has a value
            that no run can have.
        """
        hints = typing.get_type_hints(cls)
        kinds = {field.name: hints[field.name] for field in dataclasses.fields(cls)}
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


@dataclass(frozen=True, kw_only=True)
class Settings(LearnerSettings):
    """Settings of a training run that do not name a game, a net or a folder."""

    devices: int = 0
    """Devices to use, of all processes together: each plays its share of the games and
    learns from its share; 0 for all that there are."""

    search: str = "gumbel"
    """Search of self-play: gumbel, puct, or mctx-gumbel and mctx-puct to compare."""
    simulations: int = 16
    """Simulations of a full search, from which the net learns."""
    fast_simulations: int = 0
    """Simulations of the other searches, which only choose a move; 0 for full searches
    alone."""
    full_share: float = 0.25
    """Share of full searches where there are fast ones (playout cap randomization)."""
    considered_actions: int = 16
    """Of the Gumbel searches: the most actions that they visit at the root."""
    solve: bool = True
    """Prove wins, losses and draws within the search; mctx's searches do not."""
    reuse_tree: bool = False
    """Go on with the tree of the last move; not in mctx's searches."""
    games: int = 128
    """Games played side by side."""
    plies: int = 8
    """Moves in each game between learning steps."""
    opening_plies: int = 20
    """A game starts after a random number of random moves, up to this one: 20 for a net
    that knows positions of all kinds, fewer where random moves spoil a game."""
    temperature: float = 1.0
    """How much chance chooses the moves, 0 for none. PUCT draws them in proportion to
    visits ** (1 / temperature), and Gumbel's noise is scaled by it."""
    temperature_half_life: float = 0.0
    """Plies in which the temperature halves on its way to its end; 0 to keep it."""
    temperature_end: float = 0.0
    """What the temperature comes down to late in a game."""
    root_temperature: float = 1.0
    """Of search puct: above 1 the root's priors are flattened before the noise."""
    forced_playouts: float = 0.0
    """Of search puct: k of the visits that a root move gets at least, sqrt(k P N), and
    that its target is pruned of (KataGo: 2); 0 for none."""

    resign_value: float = 0.0
    """Give up a game at a value below minus this, in so many own moves; 0 for never."""
    resign_plies: int = 3
    """Own moves in a row with such a value after which a player gives up."""
    play_on_share: float = 0.1
    """Share of games in which nobody gives up, to see how often it would be wrong."""

    positions: int = 60_000
    """Positions that the replay holds."""
    replay_memory: Literal["auto", "device", "host"] = "auto"
    """Where the replay is kept; auto takes the host's memory if the device has no room
    for it."""
    first_positions: int = 0
    """Window of positions at the start, which grows with all that were played to
    --positions, as KataGo's; 0 for the whole replay from the start."""
    most_of_game: int = 0
    """Positions of one game in a learning step; 0 for any number."""
    surprise_share: float = 0.0
    """Share of positions drawn in proportion to how much the search changed the net's
    policy; the rest evenly."""
    updates: int = 8
    """Learning steps in an iteration, if --samples-per-position is 0."""
    samples_per_position: float = 0.0
    """How often a position is learned from on average: sets the learning steps; 0 for
    as many as --updates in every iteration."""
    reanalyse_share: float = 0.0
    """Share of a learning step's positions that the newest net searches again, for
    fresh targets."""
    search_value_share: float = 0.5
    """Share of the search's own value in the value target; the rest is the result."""
    bootstrap_plies: int = 0
    """Plies after which the search's value stands for the rest of the game in the
    result; 0 to play on to the end."""

    auxiliary_weight: float = 0.0
    """Weight of the loss of what a final board tells beside the result, for games that
    say it (Go: whose each point is, and the score); 0 for none."""

    def check(self) -> None:
        super().check()
        self._check_search()
        if self.first_positions > self.positions:
            raise ValueError(
                f"--first-positions {self.first_positions} is more than --positions "
                f"{self.positions}, up to which it grows"
            )
        if self.batch > self.positions:
            raise ValueError(
                f"--batch {self.batch} is more than --positions {self.positions}: the "
                "replay would never hold enough to learn from"
            )
        devices = self.devices or 1
        for name in ("games", "batch"):
            value = getattr(self, name)
            if value % devices:
                below = value // devices * devices
                near = [n for n in (below, below + devices) if n]
                fewer = max(n for n in range(1, devices) if value % n == 0)
                raise ValueError(
                    f"{flag(name)} {value} does not divide among {devices} devices: "
                    f"take {' or '.join(map(str, near))}, or --devices {fewer}"
                )
        for name in ("simulations", "plies"):
            value = getattr(self, name)
            if self.games // devices * value > MOST_ROWS:
                raise ValueError(
                    f"--games {self.games} times {flag(name)} {value} is more than "
                    f"{MOST_ROWS} on a device: lower one of them"
                )

    def _check_search(self) -> None:
        policy_named(self.search)
        defaults, ours = Settings(), ("puct", "gumbel")
        for name, searches in _OF_SEARCHES.items():
            value = getattr(self, name)
            if value != getattr(defaults, name) and self.search not in searches:
                raise ValueError(
                    f"{flag(name)} {value} is for --search {' or '.join(searches)}, "
                    f"got --search {self.search}"
                )
        if self.reuse_tree and self.search not in ours:
            raise ValueError(f"--reuse-tree is for --search {' or '.join(ours)}")
        if self.fast_simulations >= self.simulations:
            raise ValueError(
                f"--fast-simulations {self.fast_simulations} must be fewer than "
                f"--simulations {self.simulations}"
            )
        if self.fast_simulations and not self.full_share:
            raise ValueError("--full-share 0 leaves no search to learn from")

    def on_devices(self, present: int) -> Self:
        """The settings where so many devices are present, of which 0 takes all.

        Raises:
          ValueError: there are too few, or the games or a batch do not divide.
        """
        if self.devices > present:
            raise ValueError(
                f"--devices {self.devices}: JAX sees {present} here; take no more, or "
                f"on the CPU set JAX_NUM_CPU_DEVICES={self.devices} in the environment"
            )
        settings = dataclasses.replace(self, devices=self.devices or present)
        settings.check()
        return settings

    @property
    def reanalysed(self) -> int:
        """Positions of a learning step that are searched again; even over devices."""
        devices = self.devices or 1
        return devices * round(self.reanalyse_share * self.batch / devices)

    @classmethod
    def may_be_zero(cls) -> set[str]:
        """The numbers that may be 0; all others must be above."""
        return {
            *("seed", "devices", "opening_plies", "temperature", "weight_decay"),
            *("value_weight", "search_value_share", "average_decay"),
            *("fast_simulations", "full_share", "temperature_half_life"),
            *("temperature_end", "forced_playouts", "resign_value", "play_on_share"),
            *("samples_per_position", "reanalyse_share"),
            *("first_positions", "most_of_game", "surprise_share", "warm_up"),
            *("bootstrap_plies", "auxiliary_weight"),
        }


_SHARES = (
    *("search_value_share", "average_decay", "full_share", "play_on_share"),
    *("surprise_share", "resign_value", "reanalyse_share"),
)

# Settings that only some searches take.
_OF_SEARCHES = {
    "considered_actions": ("gumbel", "mctx-gumbel"),
    "temperature_half_life": ("puct", "gumbel", "mctx-puct"),
    "temperature_end": ("puct", "gumbel", "mctx-puct"),
    "root_temperature": ("puct",),
    "forced_playouts": ("puct",),
}

# The most that a number can be, so that arrays and loops come to an end and float32
# holds what is given. Seeds beyond theirs would repeat others.
MOST_FLOAT = 1e30
MOST_WHOLE = 2**31 - 1
MOST_ROWS = 2**30  # of an array, which int32 counts; a search takes some to spare
MOST = {
    "seed": 2**32 - 1,
    "depth": 1_000,
    **dict.fromkeys(("width", "plies", "opening_plies"), 2**16),
    **dict.fromkeys(("simulations", "sims", "games", "batch", "teacher_batch"), 2**20),
    **dict.fromkeys(("evaluate_simulations", "evaluate_games"), 2**20),
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
