"""Players by short texts, as the command line takes them.

random                                    uniformly random moves
uct:sims=400&c=4                          search with random games, no net
runs/c4?search=raw                        the net of a run folder alone
runs/c4?search=puct&sims=64&solve=0       the net with a search
"""

import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from jaxsearch.arena.players import (
    STRONGEST,
    Agent,
    Player,
    random_player,
    raw_player,
    search_player,
    uct_player,
)
from jaxsearch.learn.run_folder import RunFolder
from jaxsearch.learn.settings import MOST, MOST_FLOAT
from jaxsearch.search.policy_names import policy_names

EXAMPLES = "random, uct:sims=400 or runs/connect_four?search=puct&sims=64"

AgentT = TypeVar("AgentT", bound=Agent)

MCTX = "mctx"
"""A c_puct that is no constant: mctx's formula, with its scale of values."""

DEFAULT_SIMULATIONS = {"run": 128, "uct": 100}


@dataclass(frozen=True, kw_only=True)
class PlayerName:
    """A player as a text describes it; nothing has been loaded yet."""

    text: str
    run: str | None  # the run folder, None for players without a net
    search: str  # "random", "uct", "raw" or one of `policy_names()`
    options: dict[str, Any]  # of that search, checked


def parse_player(text: str) -> PlayerName:
    """Reads a player's text.

    Raises:
      ValueError: an unknown option or search, or a value that it cannot have.
    """
    kind, run, settings = _split(text)
    if run is not None and not (run.strip() and run.isprintable()):
        raise ValueError(
            f"{text!r} names no player: a run folder is not blank and can be printed; "
            f"for example {EXAMPLES}"
        )
    pairs = {}
    for setting in filter(None, settings.split("&")):
        name, equals, value = setting.partition("=")
        if not equals or not value:
            raise ValueError(
                f"player {text!r}: {setting!r} is not of the form name=value; for "
                f"example {EXAMPLES}"
            )
        if name in pairs:
            raise ValueError(f"player {text!r} gives {name} twice: keep one of them")
        pairs[name] = value
    search = kind if run is None else pairs.pop("search", "puct")
    if search not in _OPTIONS or (run is not None and search in _WITHOUT_NET):
        searches = ", ".join(name for name in _OPTIONS if name not in _WITHOUT_NET)
        raise ValueError(
            f"player {text!r}: unknown search {search!r}; a run plays with one of "
            f"{searches}; for example {run}?search=puct&sims=64"
        )
    allowed = _OPTIONS[search]
    options = {}
    for name, value in pairs.items():
        if name not in allowed:
            raise ValueError(
                f"player {text!r}: {search} has no option {name!r}; it takes "
                f"{', '.join(allowed) or 'none'}; for example {EXAMPLES}"
            )
        read, meaning = allowed[name]
        try:
            options[name] = read(value)
        except ValueError:
            raise ValueError(
                f"player {text!r}: {name} must be {meaning}, got {value!r}; for "
                f"example {EXAMPLES}"
            ) from None
    return PlayerName(text=text, run=run, search=search, options=options)


def check_run_name(name: str) -> None:
    """Raises ValueError for a new run whose folder no player's text would name."""
    path = str(Path(name))
    bare = path.strip() and path.isprintable() and not path.startswith("-")
    if not (name and bare and _split(path)[1] == path):
        raise ValueError(
            f"--run {name!r} cannot name a run: evaluate.py would not find a blank "
            "name, a player's name, nor one with ?, a leading - or a control "
            "character; take one such as runs/mine"
        )


def make_player(name: PlayerName, env: Any, agent: Agent | None = None) -> Player:
    """The player of a name; its own name says how many simulations it has by default.

    A net plays with the options of `STRONGEST` where the text gives no others.

    Args:
      name: what `parse_player` read.
      env: the game to play.
      agent: the agent of the run folder `name.run`; not needed without one.

    Raises:
      ValueError: a run without an agent.
    """
    options = dict(name.options)
    if name.search == "random":
        return random_player()
    if name.search == "uct":
        simulations = options.pop("sims", DEFAULT_SIMULATIONS["uct"])
        return uct_player(env, num_simulations=simulations, **options)
    if agent is None:
        raise ValueError(f"player {name.text!r} needs the agent of its run folder")
    if name.search == "raw":
        return raw_player(agent, name=f"{name.run}?search=raw")
    simulations = options.pop("sims", DEFAULT_SIMULATIONS["run"])
    others = "".join(f"&{option}={_text(value)}" for option, value in options.items())
    allowed = _SEARCH_OPTIONS[name.search]
    defaults = {k: value for k, value in STRONGEST.items() if k in allowed}
    return search_player(
        agent,
        search=name.search,
        num_simulations=simulations,
        name=f"{name.run}?search={name.search}&sims={simulations}{others}",
        **(defaults | options),
    )


def load_agents(
    names: Iterable[PlayerName], load: Callable[[str], AgentT]
) -> dict[str | None, AgentT]:
    """The agents of all run folders that players name, each loaded once.

    Raises:
      ValueError: there is no such folder, or `load` cannot use it.
    """
    agents: dict[str | None, AgentT] = {}
    for run in dict.fromkeys(name.run for name in names if name.run is not None):
        if not os.path.isdir(run):  # Path.is_dir raises for some names
            raise ValueError(
                f"unknown player {run!r}: there is no such run folder; a player is "
                f"{EXAMPLES}; {RunFolder(run).remedy}"
            )
        agents[run] = load(run)
    return agents


def game_of_all(agents: Mapping[str | None, Agent], given: Any = None) -> Any:
    """The game that all agents play, which has to be that of `--env` if one is given.

    Raises:
      ValueError: they play different games, or one game with different options.
    """
    played = {} if given is None else {"--env": given}
    played |= {run: agent.env for run, agent in agents.items()}
    (first, env), *others = played.items()
    for other, its_env in others:
        if (its_env.id, its_env.options) != (env.id, env.options):
            raise ValueError(
                f"these play different games: {first} {env!r}, {other} {its_env!r}; "
                "choose players of one game"
            )
    return env


def _text(value: float | None) -> str:
    return MCTX if value is None else f"{value:g}"


def _split(text: str) -> tuple[str, str | None, str]:
    """The kind of player, its run folder and its options."""
    for kind in _WITHOUT_NET:
        if text == kind or text.startswith((f"{kind}:", f"{kind}?")):
            return kind, None, text[len(kind) + 1 :]
    run, _, settings = text.partition("?")
    return "run", run, settings


def _count(text: str) -> int:
    if not re.fullmatch("[0-9]+", text):  # int takes other digits as well
        raise ValueError
    number = int(text)
    if not 1 <= number <= MOST["sims"]:
        raise ValueError
    return number


def _number(text: str, *, least_allowed: bool) -> float:
    if not re.fullmatch("[0-9.e+-]+", text.lower()):
        raise ValueError
    number = float(text)
    if not 0 <= number <= MOST_FLOAT or (number == 0 and not least_allowed):
        raise ValueError
    return number


def _positive(text: str) -> float:
    return _number(text, least_allowed=False)


def _not_negative(text: str) -> float:
    return _number(text, least_allowed=True)


def _constant_or_formula(text: str) -> float | None:
    return None if text == MCTX else _positive(text)


def _switch(text: str) -> bool:
    if text not in ("0", "1"):
        raise ValueError
    return text == "1"


_Option = tuple[Callable[[str], Any], str]
_SIMS: _Option = (_count, f"a whole number from 1 to {MOST['sims']}")
_CONSTANT: _Option = (_positive, f"a number above 0, at most {MOST_FLOAT:g}")
_FORMULA: _Option = (
    _constant_or_formula,
    f"{_CONSTANT[1]}, or {MCTX} for its own formula",
)
_SOLVE: _Option = (_switch, "1 to prove outcomes or 0 not to")
_TEMPERATURE: _Option = (_not_negative, f"a number from 0 to {MOST_FLOAT:g}")

_WITHOUT_NET = ("random", "uct")

_SEARCH_OPTIONS: dict[str, dict[str, _Option]] = {
    "gumbel": {"sims": _SIMS, "solve": _SOLVE},
    "puct": {
        "sims": _SIMS,
        "c_puct": _FORMULA,
        "temperature": _TEMPERATURE,
        "solve": _SOLVE,
    },
    "mctx-puct": {"sims": _SIMS, "temperature": _TEMPERATURE},
    "mctx-gumbel": {"sims": _SIMS},
}

# The searches that a player can name, with the options that each one takes.
_OPTIONS: dict[str, dict[str, _Option]] = {
    "random": {},
    "uct": {"sims": _SIMS, "c": _CONSTANT},
    "raw": {},
    **{name: _SEARCH_OPTIONS[name] for name in policy_names()},
}
