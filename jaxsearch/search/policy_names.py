"""The short names by which programs and players choose a search."""

from collections.abc import Callable
from typing import Any

from jaxsearch.search.gumbel import gumbel_policy
from jaxsearch.search.mctx_policies import mctx_gumbel_policy, mctx_puct_policy
from jaxsearch.search.puct import puct_policy

_POLICIES = {
    "gumbel": gumbel_policy,
    "puct": puct_policy,
    "mctx-puct": mctx_puct_policy,
    "mctx-gumbel": mctx_gumbel_policy,
}


def policy_names() -> tuple[str, ...]:
    return tuple(_POLICIES)


def policy_named(name: str) -> Callable[..., Any]:
    """The policy of that name; ValueError lists the names there are."""
    if name not in _POLICIES:
        names = ", ".join(policy_names())
        raise ValueError(f"unknown search {name!r}: choose one of {names}")
    return _POLICIES[name]
