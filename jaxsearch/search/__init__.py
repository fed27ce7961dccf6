"""Tree search on the device: arrays and callables only, no games and no nets."""

from jaxsearch.search.drawing import table_text, tree_dot, tree_text
from jaxsearch.search.gumbel import (
    gumbel_policy,
    qtransform_completed_by_mix_value,
)
from jaxsearch.search.loop import search
from jaxsearch.search.mctx_policies import mctx_gumbel_policy, mctx_puct_policy
from jaxsearch.search.moves import (
    NO_ACTION,
    action_log_probs,
    lcb_action,
    sample_action,
)
from jaxsearch.search.puct import (
    puct_policy,
    qtransform_by_parent_and_siblings,
    qtransform_fixed_scale,
)
from jaxsearch.search.select import NodeStatistics
from jaxsearch.search.statistics import (
    ActionStatistics,
    TreeSizes,
    action_statistics,
    principal_variation,
    return_stdevs,
    root_lcb_action,
    tree_sizes,
)
from jaxsearch.search.tree import SearchSummary, Tree
from jaxsearch.search.two_player import TwoPlayerModel, two_player_model

__all__ = [
    "NO_ACTION",
    "ActionStatistics",
    "NodeStatistics",
    "SearchSummary",
    "Tree",
    "TreeSizes",
    "TwoPlayerModel",
    "action_log_probs",
    "action_statistics",
    "gumbel_policy",
    "lcb_action",
    "mctx_gumbel_policy",
    "mctx_puct_policy",
    "principal_variation",
    "puct_policy",
    "qtransform_by_parent_and_siblings",
    "qtransform_completed_by_mix_value",
    "qtransform_fixed_scale",
    "return_stdevs",
    "root_lcb_action",
    "sample_action",
    "search",
    "table_text",
    "tree_dot",
    "tree_sizes",
    "tree_text",
    "two_player_model",
]
