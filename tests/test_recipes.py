"""Recipes that take no longer than a test may: what they come to."""

import pytest

import train
from jaxsearch.arena.players import STRONGEST, raw_player, search_player
from jaxsearch.arena.positions import evaluate_positions


# Both colours, every opening of up to four plies, every reply.
@pytest.mark.slow
def test_tic_tac_toe_is_never_lost_to_anyone(tmp_path):
    flags = ["--preset", "tic_tac_toe", "--run", str(tmp_path), "--no-evaluate"]
    assert train.main(flags) == 0
    agent = train.load_agent(tmp_path)
    raw = raw_player(agent)
    searching = search_player(agent, num_simulations=32, **STRONGEST)
    for player in (raw, searching):
        replies = evaluate_positions(agent.env, player).all_replies
        assert replies is not None
        assert replies.opening_plies == 4
        assert replies.positions > 3500
        assert (replies.spoiled, replies.lost) == (0, 0), player.name
