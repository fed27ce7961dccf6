"""A search as it is used to play and to measure: nothing random but ties.

The key decides between equally visited moves. "mctx-puct" alone breaks ties within the
tree at random as well, so that there its visits depend on the key too.
"""

from collections.abc import Callable
from typing import Any

import jax
import mctx
from jax.typing import ArrayLike

from jaxsearch.search.policy_names import policy_named
from jaxsearch.search.qtransforms import qtransform_fixed_scale
from jaxsearch.search.two_player import EvaluateFn, two_player_model

SOLVING = ("puct", "gumbel")
"""The searches that can prove outcomes."""

SearchFn = Callable[[Any, jax.Array, Any, ArrayLike | None], mctx.PolicyOutput]
"""`(params, key, states [B], c_puct) -> mctx.PolicyOutput`; finished rows: NO_ACTION.

`c_puct` is a constant for the search "puct", a number or one for each row [B]. None
leaves the search its own formula.
"""


def noiseless_search(
    env: Any,
    evaluate: EvaluateFn,
    *,
    search: str,
    num_simulations: int,
    temperature: float = 0.0,
    solve: bool = False,
) -> SearchFn:
    """A named search of a game's positions, without exploration noise.

    With a constant c_puct values are on their own scale from -1 to 1, and an unvisited
    action counts as a draw (AlphaGo Zero's rule).

    Args:
      env: a game of two players.
      evaluate: the batched evaluation of states.
      search: one of `policy_names()`.
      num_simulations: of each search.
      temperature: of the move choice; 0 takes the most visited action, the key deciding
        between equals. The Gumbel searches play their own choice and take only 0.
      solve: whether it proves wins, losses and draws, which mctx's searches cannot. For
        games whose only rewards are a final 1, 0 or -1: other rewards prove nothing.

    Raises:
      ValueError: an unknown search, no simulations, a temperature that does not fit.
    """
    policy = policy_named(search)
    if num_simulations < 1:
        raise ValueError(
            f"a search needs at least 1 simulation, got {num_simulations}; for the net "
            "alone choose search=raw"
        )
    if not temperature >= 0:
        raise ValueError(f"temperature must be 0 or more, got {temperature}")
    if search in ("gumbel", "mctx-gumbel"):
        if temperature:
            raise ValueError(
                f"{search} chooses its move itself and takes no temperature, got "
                f"{temperature}; leave it out or take another search"
            )
        quiet: dict[str, Any] = {"gumbel_scale": 0.0}
    else:
        quiet = {"dirichlet_fraction": 0.0, "temperature": temperature}
    if solve:
        if search not in SOLVING:
            raise ValueError(
                f"{search} proves nothing: solve is for {' and '.join(SOLVING)}"
            )
        quiet["solve"] = True
    model = two_player_model(env, evaluate)

    def run(params, key, states, c_puct=None):
        root_key, search_key = jax.random.split(key)
        options = dict(quiet)
        if c_puct is not None:
            if search != "puct":
                raise ValueError(f"a constant c_puct needs search=puct, not {search}")
            options |= {"c_puct": c_puct, "qtransform": qtransform_fixed_scale}
        return policy(
            params,
            search_key,
            model.root_fn(params, root_key, states),
            model.recurrent_fn,
            num_simulations,
            ~states.legal_action_mask,
            **options,
        )

    return run
