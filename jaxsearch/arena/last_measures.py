"""What a run came to: measured at its end, told on the console, kept as JSON."""

import shlex
from typing import Any

import jax
from rich.console import Console

from jaxsearch.arena import positions
from jaxsearch.arena.match import play_match
from jaxsearch.arena.player_names import PlayerName, make_player
from jaxsearch.arena.players import Agent, Player, uct_player
from jaxsearch.arena.report import match_report, positions_report
from jaxsearch.learn.files import plain


def measure_agent(agent: Agent, run: str, console: Console, seed: int) -> Any:
    """The results as JSON can hold them: "positions" where the game has solved ones.

    Elsewhere "match", 100 games against a search without a net.

    Args:
      run: the name of its folder.
    """

    def player(search: str, **options: int) -> Player:  # as evaluate.py names it
        name = PlayerName(text="", run=run, search=search, options=options)
        return make_player(name, agent.env, agent)

    if agent.env.id == positions.GAME:
        console.print("measuring 600 solved positions: raw net, 32, 128 simulations")
        players = player("raw"), player("puct", sims=32), player("puct", sims=128)
        results = [positions.evaluate_positions(agent.env, p) for p in players]
        console.print(positions_report(results))
        measured = {"positions": plain(results)}
    else:
        console.print("measuring 100 games, 32 simulations against uct:sims=100")
        match = play_match(
            agent.env,
            player("puct", sims=32),
            uct_player(agent.env, num_simulations=100),
            games=100,
            opening_plies=2,
            key=jax.random.key(seed),
        )
        console.print(match_report(match))
        measured = {"match": plain(match)}
    more = f"more: python evaluate.py match {shlex.quote(run)} uct:sims=400"
    console.print(more, soft_wrap=True)
    return measured
