"""Grids of simulations and c_puct: where does a net play best?

For each number of simulations all values of c_puct are searched in one batch.
"""

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxsearch.arena.match import check_match, match_result, play_pairs
from jaxsearch.arena.openings import random_openings
from jaxsearch.arena.players import Agent, Player, search_player
from jaxsearch.arena.positions import (
    check_positions,
    choose_actions,
    keeps_outcome,
    positions_result,
    solved_positions,
)
from jaxsearch.learn.files import check_file, check_folder, write_atomically
from jaxsearch.learn.run_folder import check_no_part_of_run


@dataclass(frozen=True, kw_only=True)
class SweepPoint:
    """What one setting reached, with a 95% interval."""

    simulations: int
    c_puct: float
    value: float
    low: float
    high: float


@dataclass(frozen=True, kw_only=True)
class SweepResult:
    """A whole grid, row by row of simulations."""

    player: str
    measure: str  # what `value` is
    simulations: tuple[int, ...]
    c_puct: tuple[float, ...]
    points: tuple[SweepPoint, ...]

    @property
    def values(self) -> np.ndarray:
        """[simulations, c_puct] float."""
        values = [point.value for point in self.points]
        return np.reshape(values, (len(self.simulations), len(self.c_puct)))


def check_sweep(simulations: Sequence[int], c_puct: Sequence[float]) -> None:
    """Raises ValueError for an empty grid and for values that no search can have."""
    for name, values in (("simulations", simulations), ("c_puct", c_puct)):
        if not values:
            raise ValueError(f"a sweep needs at least one value of {name}, got none")
        if len(set(values)) < len(values):
            raise ValueError(f"{name} has a value twice: {' '.join(map(str, values))}")
    if min(simulations) < 1:
        raise ValueError(f"simulations must be at least 1, got {min(simulations)}")
    for value in c_puct:
        if not 0 < value < np.inf:
            raise ValueError(f"c_puct must be a number above 0, got {value}")


def check_output(out: Path, file: Path | None) -> None:
    """Raises ValueError if a sweep's folder cannot be filled, or not beside --json."""
    check_folder(out)
    for path in _files(out):
        check_no_part_of_run(path)
        if out.exists():
            check_file(path)
        if file and Path(os.path.realpath(path)).is_relative_to(os.path.realpath(file)):
            raise ValueError(
                f"--json {file} stands in the way of {path}, which a sweep writes: "
                "choose another file"
            )


def sweep_positions(
    agent: Agent,
    *,
    simulations: Sequence[int],
    c_puct: Sequence[float],
    key: jax.Array,
    name: str = "agent",
) -> SweepResult:
    """The share of solved positions whose outcome is kept, for each setting.

    Raises:
      ValueError: a game without solved positions, or see `check_sweep`.
    """
    check_positions(agent.env)
    check_sweep(simulations, c_puct)
    positions = solved_positions(agent.env)
    num_values, num_positions = len(c_puct), len(positions.plies)
    states = _repeat(positions.states, num_values)
    points = []
    for count, count_key in _with_keys(simulations, key):
        player = search_player(
            agent, num_simulations=count, c_puct=np.repeat(c_puct, num_positions)
        )
        actions = choose_actions(player, count_key, states)
        actions = actions.reshape(num_values, num_positions)
        rows = keeps_outcome(positions, actions)
        for constant, kept in zip(c_puct, rows, strict=True):
            result = positions_result(name, kept, positions.plies)
            points.append(
                SweepPoint(
                    simulations=count,
                    c_puct=constant,
                    value=result.share,
                    low=result.low,
                    high=result.high,
                )
            )
    return SweepResult(
        player=name,
        measure="share of solved positions kept",
        simulations=tuple(simulations),
        c_puct=tuple(c_puct),
        points=tuple(points),
    )


def sweep_match(
    agent: Agent,
    opponent: Player,
    *,
    simulations: Sequence[int],
    c_puct: Sequence[float],
    games: int,
    opening_plies: int,
    key: jax.Array,
    name: str = "agent",
) -> SweepResult:
    """The score against an opponent, for each setting; all play the same openings.

    Args:
      games: for each setting.

    Raises:
      ValueError: see `check_match`, `random_openings` and `check_sweep`.
    """
    check_match(agent.env, games, opening_plies)
    check_sweep(simulations, c_puct)
    opening_key, key = jax.random.split(key)
    num_values, num_pairs = len(c_puct), games // 2
    openings = random_openings(
        agent.env, count=num_pairs, num_plies=opening_plies, key=opening_key
    )
    openings = openings._replace(
        states=_repeat(openings.states, num_values),
        returns=_repeat(openings.returns, num_values),
        position=np.tile(openings.position, num_values),
        first=np.tile(openings.first, num_values),
    )
    points = []
    for count, count_key in _with_keys(simulations, key):
        player = search_player(
            agent, num_simulations=count, c_puct=np.repeat(c_puct, num_pairs), name=name
        )
        pairs = play_pairs(agent.env, player, opponent, openings, count_key)
        for number, constant in enumerate(c_puct):
            rows = slice(number * num_pairs, (number + 1) * num_pairs)
            result = match_result(
                agent.env, player, opponent, pairs.rows(rows), opening_plies
            )
            estimate = result.estimate
            if estimate is None:
                value, low, high = np.nan, 0.0, 1.0
            else:
                value = estimate.score
                low, high = estimate.score_low, estimate.score_high
            points.append(
                SweepPoint(
                    simulations=count, c_puct=constant, value=value, low=low, high=high
                )
            )
    return SweepResult(
        player=name,
        measure=f"score against {opponent.name}",
        simulations=tuple(simulations),
        c_puct=tuple(c_puct),
        points=tuple(points),
    )


def save_sweep(result: SweepResult, folder: Path) -> list[Path]:
    """Writes sweep.jsonl, a line for each point, and sweep.png, a heat map."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = [
        json.dumps({"player": result.player, "measure": result.measure} | asdict(point))
        for point in result.points
    ]
    table, picture = _files(folder)
    write_atomically(table, lambda path: _write_lines(path, lines))
    write_atomically(picture, lambda path: draw_heat_map(result, path))
    return [table, picture]


def draw_heat_map(result: SweepResult, path: Path) -> None:
    """Draws the grid as a PNG."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    values = 100 * result.values
    rows, columns = values.shape
    figure = Figure(figsize=(2.4 + 0.9 * columns, 1.6 + 0.6 * rows), dpi=150)
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    image = axes.imshow(values, cmap="viridis", aspect="auto", origin="lower")
    middle = (np.nanmin(values) + np.nanmax(values)) / 2
    for row in range(rows):
        for column in range(columns):
            axes.text(
                column,
                row,
                f"{values[row, column]:.1f}",
                ha="center",
                va="center",
                color="white" if values[row, column] <= middle else "black",
            )
    axes.set_xticks(range(columns), [f"{value:g}" for value in result.c_puct])
    axes.set_yticks(range(rows), [str(count) for count in result.simulations])
    axes.set_xlabel("c_puct")
    axes.set_ylabel("simulations")
    what, *opponent = result.measure.split(" against ")
    title = "\nagainst ".join([result.player, *opponent])
    axes.set_title(title, fontsize=9, parse_math=False)
    figure.colorbar(image, ax=axes, label=f"{what}, %")
    figure.tight_layout()
    figure.savefig(path, format="png")


def _files(folder: Path) -> list[Path]:
    return [folder / "sweep.jsonl", folder / "sweep.png"]


def _repeat(tree: Any, times: int) -> Any:
    """Rows [B, ...] of every leaf, repeated as a block: [times * B, ...]."""
    return jax.tree.map(lambda leaf: jnp.concatenate([leaf] * times), tree)


def _with_keys(simulations: Sequence[int], key: jax.Array):
    return zip(simulations, jax.random.split(key, len(simulations)), strict=True)


def _write_lines(path: Path, lines: list[str]) -> None:
    path.write_text("".join(line + "\n" for line in lines))
