"""A training run as one HTML page, which needs nothing but itself."""

import base64
import dataclasses
import importlib.resources
import sys
from collections.abc import Callable, Iterable, Sequence
from html import escape
from string import Template
from typing import Annotated, Any

import numpy as np
import tyro
from tyro.conf import Positional, arg

from jaxsearch.arena import report_plots
from jaxsearch.arena.report import elo_text
from jaxsearch.arena.sample_games import SampleGame, read_sample, replay
from jaxsearch.learn.config import AgentConfig
from jaxsearch.learn.files import read_object, write_atomically
from jaxsearch.learn.run_folder import RunFolder, UnusableRunError
from jaxsearch.program import one_line

_BOARDS = 6  # drawn of a game
_PLAIN_NAMES = {
    "1-0": "the first player wins",
    "0-1": "the second player wins",
    "1/2-1/2": "a draw",
    "*": "stopped by a cap on moves",
}


class ReportPage:
    """The page of a run, `report.html` in its folder.

    Args:
      folder: the run.
      config: its configuration.
      env: its game.

    Raises:
      UnusableRunError: the run has no iteration to tell of, or cannot be read.
    """

    def __init__(self, folder: RunFolder, config: AgentConfig, env: Any):
        self.path = folder.path / "report.html"
        self._folder, self._config, self._env = folder, config, env
        self._metrics = folder.read_metrics()
        if not self._metrics:
            raise UnusableRunError(
                f"{folder} has no iteration to report yet: metrics.jsonl is missing or "
                f"empty; go on with: {folder.resume_command}"
            )
        self._games = self._sample_games()  # drawn once, however often it is written

    def write(self) -> None:
        """Writes the page; raises OSError if it cannot."""
        config, env = self._config, self._env
        title = f"{env.id}: {self._folder}"
        told = [
            repr(env),
            f"net {config.net}, {config.width} wide, {config.depth} deep",
        ]
        search = getattr(config, "search", None)  # none where nothing is played
        if search is not None:
            told.append(f"{search} with {vars(config)['simulations']} simulations")
        sections = {
            "How it went": self._plots(),
            "Measured at the end": self._measured(),
            "Sample games": self._games,
            "What it was made with": self._made_with(),
        }
        template = importlib.resources.files("jaxsearch.arena") / "data/report.html"
        page = Template(template.read_text()).substitute(
            title=escape(title),
            subtitle=escape(", ".join(told)),
            tiles=self._tiles(),
            sections="\n".join(
                f"<section><h2>{heading}</h2>\n{content}\n</section>"
                for heading, content in sections.items()
                if content
            ),
        )
        write_atomically(self.path, lambda beside: beside.write_text(page))

    def _tiles(self) -> str:
        """What the run came to, in a few numbers."""
        last = self._metrics[-1]
        seconds = last.get("seconds") or 0
        unit, length = report_plots.time_unit(seconds)
        tiles = {
            "iterations": f"{last['iteration']:,}",
            f"{unit} of training": f"{seconds / length:.3g}",
            "games": _number(last.get("games"), "{:,.0f}"),
            "positions": _number(last.get("positions"), "{:,.0f}"),
            "learning steps": _number(last.get("updates"), "{:,.0f}"),
            "evaluations a second": self._mean("evaluations_per_second", "{:,.0f}"),
            "moves a game": self._mean("game_length", "{:.1f}"),
            "policy divergence, nats": self._mean("policy_divergence", "{:.3f}"),
            "squared error of the value": self._mean("value", "{:.3f}"),
            "Elo": self._newest("elo", "{:+.0f}"),
            "of solved outcomes kept": self._newest("accuracy_search", "{:.1%}"),
        }
        return "\n".join(
            f'<div class="card tile"><b>{value}</b><span>{name}</span></div>'
            for name, value in tiles.items()
            if value
        )

    def _mean(self, name: str, style: str) -> str:
        """A figure at the end, as its curve shows it."""
        curve = report_plots.Curve(self._metrics, name)
        width = report_plots.smoothing(len(self._metrics))
        return _number(curve.smoothed(width)[-1] if len(curve) else None, style)

    def _newest(self, name: str, style: str) -> str:
        curve = report_plots.Curve(self._metrics, name)
        return _number(curve.values[-1] if len(curve) else None, style)

    def _plots(self) -> str:
        cards = []
        for plot in report_plots.PLOTS:
            svg = report_plots.draw(plot, self._metrics)
            if svg is None:
                continue
            keys = [
                f'<span><i style="border-top-style:{style};border-color:{colour}"></i>'
                f"{escape(name)}</span>"
                for name, colour, style in report_plots.legend(plot, self._metrics)
            ]
            legend = f'<p class="legend">{"".join(keys)}</p>' if len(keys) > 1 else ""
            cards.append(
                f'<div class="card plot"><h3>{escape(plot.heading)}</h3>\n'
                f"{legend}{svg}</div>"
            )
        width = report_plots.smoothing(len(self._metrics))
        note = f"Thick lines are running means of {width} iterations."
        return (
            f'<p class="faint">{note}</p>'
            f'<div class="cards plots">{"".join(cards)}</div>'
        )

    def _measured(self) -> str:
        """The results of measured.json, where the run was measured."""
        try:
            measured = read_object(self._folder.measured.read_bytes())
            table = _results(measured)
        except FileNotFoundError:
            return ""
        except Exception as error:  # as whatever what is damaged shows
            told = f"{self._folder.measured.name} cannot be read: {error!r}"
            return f"<p>{escape(told)}</p>"
        return f'<div class="card scroll">{table}</div>'

    def _sample_games(self) -> str:
        samples = sorted(self._folder.games.glob("*.txt"))
        if not samples:
            return ""
        newest = samples[-1]
        try:
            text = newest.read_text()
            games = read_sample(text)
        except (OSError, ValueError) as error:
            return f"<p>{escape(str(newest))} cannot be read: {escape(str(error))}</p>"
        note = escape(text.splitlines()[0]) + f", from <code>games/{newest.name}</code>"
        if len(samples) > 1:
            note += f"; earlier ones: {len(samples) - 1}"
        cards = [self._game(number, game) for number, game in enumerate(games, 1)]
        note += ". Moves in italics were random."
        return f'<p class="faint">{note}</p>{"".join(cards)}'

    def _game(self, number: int, game: SampleGame) -> str:
        result = _PLAIN_NAMES.get(game.result, game.result)
        heading = f"Game {number}: {result} after {len(game.moves)} moves"
        random, chosen = (
            " ".join(part)
            for part in (
                game.moves[: game.random_moves],
                game.moves[game.random_moves :],
            )
        )
        moves = f'<span class="random">{escape(random)}</span> ' if random else ""
        return (
            f'<article class="card game"><h3>{escape(heading)}</h3>\n'
            f"{self._boards(number, game)}"
            f'<p class="moves">{moves}{escape(chosen)}</p></article>'
        )

    def _boards(self, number: int, game: SampleGame) -> str:
        """Some positions of a game as the game draws them, the last one included."""
        try:
            states = replay(self._env, game)
        except ValueError as error:
            return f"<p>It cannot be played again: {escape(str(error))}</p>"
        plies = np.linspace(0, len(states) - 1, min(_BOARDS + 1, len(states)))
        figures = []
        for ply in sorted({round(ply) for ply in plies})[1:] or [0]:
            when = f"move {ply}" if ply != len(states) - 1 else "the end"
            told = escape(
                f"Game {number}, {when}: {self._env.to_text(states[ply])}", quote=True
            )
            svg = self._env.to_svg(states[ply]).encode()
            source = f"data:image/svg+xml;base64,{base64.b64encode(svg).decode()}"
            figures.append(
                f'<figure><img src="{source}" alt="{told}" loading="lazy">'
                f"<figcaption>{when}</figcaption></figure>"
            )
        return f'<div class="boards">{"".join(figures)}</div>'

    def _made_with(self) -> str:
        versions = self._folder.read_versions()
        settings = dataclasses.asdict(self._config)
        rows = [[name, _shown(value)] for name, value in settings.items()]
        parts = []
        if versions:
            parts.append(_table(["program", "version"], list(versions.items())))
        parts.append(
            f"<details><summary>All {len(rows)} settings</summary>"
            f"{_table(['setting', 'value'], rows)}</details>"
        )
        return "".join(f'<div class="card scroll">{part}</div>' for part in parts)


def _results(measured: dict[str, Any]) -> str:
    """The table of what `measure_agent` gave."""

    def percent(share):
        return f"{100 * share:.1f}"

    if "positions" in measured:
        results = measured["positions"]
        ranges = [f"{p['first_ply']}-{p['last_ply']}" for p in results[0]["by_plies"]]
        rows = [
            [
                result["player"].partition("?")[2],
                percent(result["share"]),
                f"{percent(result['low'])} to {percent(result['high'])}",
                *(percent(p["kept"] / p["positions"]) for p in result["by_plies"]),
            ]
            for result in results
        ]
        title = (
            f"Outcome kept in {results[0]['positions']} solved positions, %; columns "
            "on the right by the number of stones on the board"
        )
        return _table(["player", "kept", "95% interval", *ranges], rows, title)
    match = measured["match"]
    parts = ("moving_first", "moving_second", "total")
    counts = ("wins", "losses", "draws", "truncated")
    rows = [
        [part.replace("_", " "), *(match[part][count] for count in counts)]
        for part in parts
    ]
    title = f"{match['games']} games of {match['first']} against {match['second']}"
    if (told := match["estimate"]) is not None:
        elo, low, high = (
            elo_text(float(told[name])) for name in ("elo", "elo_low", "elo_high")
        )
        title += f": Elo difference {elo}, 95% interval {low} to {high}"
    return _table(["games", *counts], rows, title)


def _table(
    columns: Sequence[str], rows: Iterable[Sequence[Any]], title: str = ""
) -> str:
    """A table; all columns but the first are numbers where there are more than two."""
    kinds = ["", *['class="number"' if len(columns) > 2 else ""] * (len(columns) - 1)]

    def row(tag, cells):
        texts = [
            f"<{tag} {kind}>{escape(str(cell))}</{tag}>"
            for kind, cell in zip(kinds, cells, strict=True)
        ]
        return f"<tr>{''.join(texts)}</tr>"

    caption = f"<caption>{escape(title)}</caption>" if title else ""
    body = "".join(row("td", cells) for cells in rows)
    head = f"<thead>{row('th', columns)}</thead>"
    return f"<table>{caption}{head}<tbody>{body}</tbody></table>"


def _number(value: float | None, style: str) -> str:
    return "" if value is None else style.format(value)


def _shown(value: Any) -> str:
    return " ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def main(
    arguments: Sequence[str], read: Callable[[str], tuple[RunFolder, AgentConfig, Any]]
) -> int:
    """`train.py report RUN`: the page of a run as it is now.

    Args:
      read: the folder of a run, its configuration and game; ValueError if it cannot.
    """

    def run_of(run: Annotated[str, arg(metavar="RUN"), Positional]) -> str:
        """Writes RUN/report.html: plots, measurements and sample games of a run."""
        return run

    run = tyro.cli(run_of, args=arguments, prog="train.py report")
    try:
        page = ReportPage(*read(run))
    except ValueError as error:
        print(f"train.py report: {one_line(error)}", file=sys.stderr)
        return 2
    page.write()
    print(page.path)
    return 0
