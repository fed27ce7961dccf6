"""Tree search on the device: arrays and callables only, no games and no nets."""

from jaxsearch.search.gumbel import (
    gumbel_policy,
    qtransform_completed_by_mix_value,
)
from jaxsearch.search.loop import memory_estimate, search
from jaxsearch.search.mctx_policies import mctx_gumbel_policy, mctx_puct_policy
from jaxsearch.search.memory import MemoryEstimate
from jaxsearch.search.moves import NO_ACTION, action_log_probs, sample_action
from jaxsearch.search.options import SearchOptions
from jaxsearch.search.puct import puct_policy
from jaxsearch.search.qtransforms import (
    ConstantUrgency,
    ParentUrgency,
    VarianceScaling,
    qtransform_by_parent_and_siblings,
    qtransform_by_tree_range,
    qtransform_fixed_scale,
)
from jaxsearch.search.select import NodeStatistics
from jaxsearch.search.stopping import EarlyStop
from jaxsearch.search.timed import TimedOutput, TimedSearch
from jaxsearch.search.tree import SearchSummary, Tree
from jaxsearch.search.two_player import TwoPlayerModel, two_player_model

__all__ = [
    "NO_ACTION",
    "ConstantUrgency",
    "EarlyStop",
    "MemoryEstimate",
    "NodeStatistics",
    "ParentUrgency",
    "SearchOptions",
    "SearchSummary",
    "TimedOutput",
    "TimedSearch",
    "Tree",
    "TwoPlayerModel",
    "VarianceScaling",
    "action_log_probs",
    "gumbel_policy",
    "mctx_gumbel_policy",
    "mctx_puct_policy",
    "memory_estimate",
    "puct_policy",
    "qtransform_by_parent_and_siblings",
    "qtransform_by_tree_range",
    "qtransform_completed_by_mix_value",
    "qtransform_fixed_scale",
    "sample_action",
    "search",
    "two_player_model",
]
