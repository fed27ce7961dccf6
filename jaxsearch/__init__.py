"""AlphaZero-class search on an accelerator, in JAX."""

from jaxsearch.search import (
    NO_ACTION,
    NodeStatistics,
    SearchSummary,
    Tree,
    TwoPlayerModel,
    action_log_probs,
    gumbel_policy,
    mctx_gumbel_policy,
    mctx_puct_policy,
    puct_policy,
    qtransform_by_parent_and_siblings,
    qtransform_completed_by_mix_value,
    qtransform_fixed_scale,
    sample_action,
    two_player_model,
)

__all__ = [
    "NO_ACTION",
    "NodeStatistics",
    "SearchSummary",
    "Tree",
    "TwoPlayerModel",
    "action_log_probs",
    "gumbel_policy",
    "mctx_gumbel_policy",
    "mctx_puct_policy",
    "puct_policy",
    "qtransform_by_parent_and_siblings",
    "qtransform_completed_by_mix_value",
    "qtransform_fixed_scale",
    "sample_action",
    "two_player_model",
]
