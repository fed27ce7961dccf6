"""The plain reference: against mctx, and on cases worked out by hand."""

import math
from functools import partial

import jax
import mctx
import numpy as np
import pytest
from mctx._src.seq_halving import get_sequence_of_considered_visits

from tests.search.reference_search import (
    Gumbel,
    ParentValue,
    Puct,
    VarianceScaling,
    considered_visits,
)
from tests.search.reference_tree import Node, Tree
from tests.search.table_model import (
    make_tables,
    random_mask,
    random_tables,
    recurrent_fn,
    reference_search,
    result_of,
    root_of,
)

MIN_GAP = 3e-7  # mctx adds noise of up to 1e-7 to the scores of PUCT
GAMES = [
    {"illegal": 0.4, "terminals": 0.2},
    {"discounts": (-1.0, 1.0, 0.9), "terminals": 0.1, "rewards": 0.5},
]
TRANSFORM = {
    "value_scale": 0.5,
    "maxvisit_init": 10.0,
    "rescale_values": False,
    "use_mixed_value": False,
}
FIXED = partial(Puct, c_puct=1.0, transform="fixed_scale")


def random_game(seed, batch_size, **options):
    random = np.random.default_rng(seed)
    tables = random_tables(random, batch_size, 7, dtype=np.float64, **options)
    # At the root the mask alone says what is illegal.
    tables.prior_logits[:, 0] = random.normal(size=(batch_size, 7))
    return tables, random_mask(random, batch_size, 7)


@partial(jax.jit, static_argnames=("policy", "max_depth", "options"))
def search_with_mctx(tables, key, illegal, policy, max_depth, options=()):
    root = root_of(tables)
    output = policy(
        tables, key, root, recurrent_fn, 32, illegal, max_depth, **dict(options)
    )
    return result_of(output)


def check_against_mctx(results, theirs):
    untied = np.array([min(result.gaps) > MIN_GAP for result in results])
    assert untied.mean() > 0.9
    for name in ("visit_counts", "action_weights", "value", "qvalues"):
        ours = np.array([getattr(result, name) for result in results])
        np.testing.assert_allclose(
            ours[untied], theirs[name][untied], rtol=0, atol=1e-9, err_msg=name
        )
    for result, action in zip(results, theirs["action"], strict=True):
        assert min(result.gaps) <= MIN_GAP or action in result.candidates


@pytest.mark.parametrize("max_depth", [None, 3])
@pytest.mark.parametrize("game", range(len(GAMES)))
def test_puct_is_that_of_mctx(game, max_depth):
    tables, illegal = random_game(game, 100, **GAMES[game])
    with jax.enable_x64(True):
        theirs = jax.device_get(
            search_with_mctx(
                tables,
                jax.random.key(0),
                illegal,
                mctx.muzero_policy,
                max_depth,
                (("dirichlet_fraction", 0.0),),
            )
        )
    results = [
        reference_search(tables[row], 32, illegal[row], max_depth=max_depth)
        for row in range(100)
    ]
    check_against_mctx(results, theirs)


@pytest.mark.parametrize(("considered", "options"), [(16, {}), (4, TRANSFORM)])
def test_gumbel_is_that_of_mctx(considered, options):
    tables, illegal = random_game(considered, 100, **GAMES[1], illegal=0.3)
    transform = partial(mctx.qtransform_completed_by_mix_value, **options)
    arguments = ("max_num_considered_actions", considered), ("qtransform", transform)
    with jax.enable_x64(True):
        key = jax.random.key(0)
        noise = jax.random.gumbel(jax.random.split(key)[1], (100, 7), np.float64)
        theirs = jax.device_get(
            search_with_mctx(
                tables, key, illegal, mctx.gumbel_muzero_policy, None, arguments
            )
        )
    results = [
        reference_search(
            tables[row],
            32,
            illegal[row],
            method=Gumbel(noise[row].tolist(), considered, **options),
        )
        for row in range(100)
    ]
    check_against_mctx(results, theirs)


def test_considered_visits_by_hand_and_of_mctx():
    assert considered_visits(1, 4) == [0, 1, 2, 3]
    assert considered_visits(4, 8) == [0, 0, 0, 0, 1, 1, 2, 2]
    assert considered_visits(3, 6) == [0, 0, 0, 1, 1, 2]
    assert considered_visits(4, 16) == [0] * 4 + [1] * 4 + [2, 2, 3, 3, 4, 4, 5, 5]
    for considered in range(1, 20):
        for simulations in (0, 1, 7, 32, 200):
            theirs = get_sequence_of_considered_visits(considered, simulations)
            assert considered_visits(considered, simulations) == list(theirs)


def bandit(rewards, priors, value=0.0):
    """All actions end the game at once."""
    num_actions = len(rewards)
    return make_tables(
        [[1] * num_actions] * 2,
        rewards=[rewards] * 2,
        discounts=0,
        values=[value, math.nan],
        prior_logits=np.log(priors),
        dtype=np.float64,
    )


def run(tables, num_simulations, **options):
    legal = np.zeros(tables.prior_logits.shape[2], bool)
    return reference_search(tables[0], num_simulations, legal, **options)


@pytest.mark.parametrize(
    ("num_simulations", "visits"), [(4, [1, 3, 0]), (16, [2, 14, 0]), (64, [9, 54, 1])]
)
def test_bandit(num_simulations, visits):
    result = run(bandit([0, 1, -1], [0.5, 0.3, 0.2]), num_simulations)
    assert result.visit_counts == visits
    assert result.action_weights == [n / num_simulations for n in visits]
    assert result.candidates == [a for a in range(3) if visits[a]]
    assert result.tree.root.size() == 1 + len(result.candidates)
    c = 1.25 + math.log(19654 / 19652)
    assert result.gaps[0] == pytest.approx(c * 0.2)


def test_gap_of_a_tie_is_zero():
    assert run(bandit([0, 0], [0.5, 0.5]), 1).gaps == [0.0]


# A budget of 0 shows the priors of the root: the move comes from them.
@pytest.mark.parametrize(
    ("priors", "options", "expected"),
    [
        ([0.5, 0.3, 0.2], {}, [0.5, 0.3, 0.2]),
        ([0.5, 0.3, 0.2], {"max_children": 2}, [0.625, 0.375, 0]),
        ([0.5, 0.3, 0.2], {"max_children": 3}, [0.5, 0.3, 0.2]),
        ([0.25, 0.5, 0.25], {"max_children": 2}, [1 / 3, 2 / 3, 0]),
        ([0.64, 0.36], {"method": Puct(root_prior_temperature=2)}, [8 / 14, 6 / 14]),
        ([0.6, 0.4], {"root_priors": [0.1, 0.9]}, [0.1, 0.9]),
        ([0.5, 0.3, 0.2], {"method": Gumbel()}, [0.5, 0.3, 0.2]),
        (
            [0.5, 0.3, 0.2],
            {"method": Gumbel([0, 0, 9]), "max_children": 2},
            [0.5, 0.3, 0.2],
        ),
    ],
)
def test_root_priors(priors, options, expected):
    result = run(bandit([0, 1, -1][: len(priors)], priors), 0, **options)
    assert result.action_weights == pytest.approx(expected)
    assert result.num_simulations == sum(result.visit_counts) == 0
    gumbel = isinstance(options.get("method"), Gumbel)
    best = [2] if "max_children" in options else [0]
    legal = [action for action, weight in enumerate(expected) if weight]
    assert result.candidates == (best if gumbel else legal)


def test_priors_below_the_root_are_cut_but_not_tempered():
    tables = make_tables(
        [[0] * 3], prior_logits=np.log([0.5, 0.3, 0.2]), dtype=np.float64
    )
    method = Puct(root_prior_temperature=0.5)
    result = run(tables, 1, method=method, max_children=2)
    child = result.tree.root.children[0]
    assert child.priors == pytest.approx([0.625, 0.375, 0])
    assert child.actions == [0, 1]


def test_variance_scaling():
    scaling = VarianceScaling()
    # Returns of 1, 0, -1, and of 1, 0.5.
    three = Node(0, 0.0, visits=3, value_sum=0.0, square_sum=2.0)
    two = Node(0, 0.0, visits=2, value_sum=1.5, square_sum=1.25)
    assert scaling.factor(Node(0, 1.0, visits=1, value_sum=1, square_sum=1)) == 1
    assert scaling.factor(three) == pytest.approx(
        1 + 0.85 * (math.sqrt(0.58) / 0.4 - 1)
    )
    assert scaling.factor(two) == pytest.approx(
        1 + 0.85 * (math.sqrt(2.695 / 3 - 0.5625) / 0.4 - 1)
    )
    # The root's returns are 0 and 1. Of c = 6 the visited action wins, by 3.55 to
    # 3.39; of c = 8.51 the other one, by 4.82 to 4.61.
    game = bandit([1, 0], [0.6, 0.4])
    assert run(game, 2, method=FIXED(c_puct=6)).visit_counts == [2, 0]
    method = FIXED(c_puct=6, variance_scaling=scaling)
    assert run(game, 2, method=method).visit_counts == [1, 1]


# After a first visit, V(n) = 0.35; a0 scores 0.2 + 0.6 * sqrt(2) / 2 = 0.624, and a1
# of first-play urgency u scores u + 0.4 * sqrt(2) = u + 0.566.
@pytest.mark.parametrize(
    ("urgency", "opens"),
    [
        (None, False),
        (0.05, False),
        (0.06, True),
        (ParentValue(), True),
        (ParentValue(0.37), True),  # 0.063
        (ParentValue(0.38), False),  # 0.056
    ],
)
def test_first_play_urgency(urgency, opens):
    visits = [1, 1] if opens else [2, 0]
    game = [0.2, 0], [0.6, 0.4], 0.5
    method = FIXED(first_play_urgency=urgency)
    assert run(bandit(*game), 2, method=method).visit_counts == visits
    assert visits_below_the_root(*game, 2, method) == visits
    if urgency is not None:  # the root apart
        method = FIXED(first_play_urgency=9, root_first_play_urgency=urgency)
        assert run(bandit(*game), 2, method=method).visit_counts == visits
        assert visits_below_the_root(*game, 2, method) == [1, 1]


def visits_below_the_root(rewards, priors, value, num_simulations, method):
    """Of a bandit that the root's one action leads to."""
    tables = make_tables(
        [[1, 1], [2, 2], [2, 2]],
        rewards=[[0, 0], rewards, [0, 0]],
        discounts=[[1, 1], [0, 0], [0, 0]],
        values=[0.0, value, math.nan],
        prior_logits=np.log(priors),
        dtype=np.float64,
    )
    illegal = np.array([False, True])
    result = reference_search(tables[0], 1 + num_simulations, illegal, method=method)
    return result.tree.root.children[0].visit_counts


# Of Q alone: a1 has the highest prior, a0 the higher urgency; then all is equal.
def test_ties_go_to_the_lowest_action_at_the_root_or_to_the_first_visited():
    method = FIXED(c_puct=0, first_play_urgency=0.5)
    game = [0, 0], [0.4, 0.6], 0.0
    assert run(bandit(*game), 4, method=method).visit_counts == [3, 1]
    assert visits_below_the_root(*game, 4, method) == [1, 3]
    method = FIXED(c_puct=0)  # where the unvisited are as good
    assert run(bandit(*game), 4, method=method).visit_counts == [3, 1]
    assert visits_below_the_root(*game, 4, method) == [0, 4]


# The range is [0.2, 0.35]: u = 0.1 counts as 0.2, without that it would become -2/3.
def test_first_play_urgency_is_clipped_to_the_range():
    game = bandit([0.2, 0], [0.6, 0.4], value=0.5)
    for urgency in (-1.0, 0.1, 0.2):
        method = Puct(c_puct=1.0, first_play_urgency=urgency)
        assert run(game, 2, method=method).visit_counts == [1, 1]
    method = Puct(c_puct=1.0, first_play_urgency=0.0, transform="fixed_scale")
    assert run(game, 2, method=method).visit_counts == [2, 0]


#   0 --(+0.5)--> 1 --(+0.25)--> 2 --(+1, end)--> 3, one action each
@pytest.mark.parametrize(
    ("num_simulations", "lowest", "highest", "qvalue"),
    [(1, 0.5, 0.5, 0.5), (2, 0.25, 0.5, 0.375), (3, -0.25, 1.0, 2 / 3)],
)
def test_tree_range(num_simulations, lowest, highest, qvalue):
    tables = make_tables(
        [[1], [2], [3], [3]],
        rewards=[[0.5], [0.25], [1.0], [0.0]],
        discounts=[[-1], [-1], [0], [0]],
        dtype=np.float64,
    )
    method = Puct(c_puct=1.0, transform="tree_range")
    tree = run(tables, num_simulations, method=method).tree
    assert (tree.lowest, tree.highest) == pytest.approx((lowest, highest))
    scale = highest - lowest
    value = (qvalue - lowest) / scale if scale else qvalue
    exploration = math.sqrt(num_simulations + 1) / (num_simulations + 1)
    scores, unit = method.scores(tree, tree.root, [0], [0])
    assert scores[0] == pytest.approx(value + exploration)
    assert unit == pytest.approx(min(scale, 1) or 1)
    below = tree.advance(0)
    assert (below.lowest, below.highest) == (tree.lowest, tree.highest)


# Both actions are visited. With 1 + 1, 2 + 1 and so on visits, sqrt(2 * 0.5 * S) is
# 1.41 (both are forced), 1.73 (a1), 2 (none), 2.24 (a1), 2.45, 2.65, 2.83, 3 (none).
def test_forced_playouts_are_made():
    game = bandit([1, -1], [0.5, 0.5])
    method = FIXED(root_first_play_urgency=5)
    assert run(game, 10, method=method).visit_counts == [9, 1]
    method = FIXED(root_first_play_urgency=5, forced_playouts=2)
    result = run(game, 10, method=method)
    assert result.visit_counts == [7, 3]
    assert result.action_weights == [1, 0]
    method = FIXED(first_play_urgency=5, forced_playouts=2)
    assert visits_below_the_root([1, -1], [0.5, 0.5], 0.0, 10, method) == [9, 1]


# Of three visits, a0 scores 0.5 + 0.5 * sqrt(11) / 7 = 0.737. Of a1 two visits may go:
# of 1 it scores Q + 0.497, of 2 it scores Q + 0.332. Of a2 both may; of 0 it scores
# Q + 0.663. With four visits of a1 two of them may go still.
@pytest.mark.parametrize(
    ("visits", "qvalue", "last_qvalue", "target"),
    [
        (3, 0.4, 0.0, [6, 2, 0]),
        (3, 0.6, 0.0, [6, 3, 0]),
        (3, 0.2, 0.0, [6, 0, 0]),  # one visit left is none
        (3, 0.2, 0.6, [6, 0, 0]),
        (4, -9.0, 0.0, [6, 2, 0]),
    ],
)
def test_forced_playouts_are_pruned(visits, qvalue, last_qvalue, target):
    edges = [(0.5, 6), (qvalue, visits), (last_qvalue, 1)]
    children = {
        action: Node(1, 0.0, reward=reward, discount=0.0, visits=n)
        for action, (reward, n) in enumerate(edges)
    }
    root = Node(0, 0.0, visits=8 + visits, children=children)
    root.set_priors([0.5, 0.3, 0.2], [0, 1, 2], None)
    method = FIXED(forced_playouts=2)
    assert method.target(Tree(root)) == target
    weights, played = method.move(Tree(root), [0, 1, 2])
    assert weights == pytest.approx([n / sum(target) for n in target])
    assert played == [action for action in range(3) if target[action]]
