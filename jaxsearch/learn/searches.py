"""The searches of self-play, as the settings of a run describe them."""

from typing import Any

import jax.numpy as jnp

from jaxsearch.learn.self_play import Resignation, Searches, SearchFn
from jaxsearch.learn.settings import Settings
from jaxsearch.search.policy_names import policy_named


def make_searches(settings: Settings) -> Searches:
    """The full search, and the fast one where some moves get it."""
    fast = None
    if settings.fast_simulations:
        fast = _search(settings, settings.fast_simulations, full=False)
    return Searches(full=_search(settings, settings.simulations, full=True), fast=fast)


def make_resignation(settings: Settings) -> Resignation | None:
    if not settings.resign_value:
        return None
    return Resignation(
        value=settings.resign_value,
        plies=settings.resign_plies,
        play_on_share=settings.play_on_share,
    )


def _search(settings: Settings, num_simulations: int, *, full: bool) -> SearchFn:
    """A search for `self_play.play`.

    One that is not full only chooses moves: without the noise and the forced playouts
    that serve learning.
    """
    policy = policy_named(settings.search)
    one_key = settings.search.startswith("mctx-")
    options: dict[str, Any] = {}
    if not one_key:
        options["solve"] = settings.solve
    if "puct" in settings.search and not full:
        options["dirichlet_fraction"] = 0.0
    if settings.search == "puct":
        options["root_prior_temperature"] = settings.root_temperature
        if settings.forced_playouts and full:
            options["forced_playouts"] = settings.forced_playouts
    if settings.search == "gumbel" or settings.search == "mctx-gumbel":
        options["max_num_considered_actions"] = settings.considered_actions
    if settings.reuse_tree:
        most = max(settings.simulations, settings.fast_simulations)
        options["capacity"] = 2 * most + 1

    def search(params, keys, root, recurrent_fn, invalid_actions, ply, **more):
        chosen = options | more
        noise = "temperature" if "puct" in settings.search else "gumbel_scale"
        chosen[noise] = temperature(settings, ply)
        return policy(
            params,
            keys[0] if one_key else keys,
            root,
            recurrent_fn,
            num_simulations,
            invalid_actions,
            **chosen,
        )

    return search


def temperature(settings: Settings, ply: Any) -> Any:
    """Of the moves [B]: it halves every so many plies, down to its end."""
    if not settings.temperature_half_life:
        return settings.temperature
    over = settings.temperature - settings.temperature_end
    halvings = ply.astype(jnp.float32) / settings.temperature_half_life
    return settings.temperature_end + over * 0.5**halvings
