"""Random games of Go played side by side with pgx, OpenSpiel and sgfmill.

Where their rules are others, this is known and not compared:

- pgx masks the simple ko only, also on boards where it ends the game on a repeated
  position, as a loss of the mover. Such a game is followed up to there.
- pgx has no draws: with a whole komi equality is White's win. A komi of 7.5 has none.
- OpenSpiel ends a game on a repeated position too, as a draw. Its row 0 is the lowest.
- Both end a game at 2 N² plies; here that truncates.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.envs.go_games import batched, cells, go

PASSES_SELDOM = 0.02


def choose(rng, mask):
    """A legal action of each row; passes seldom."""
    chances = rng.random(mask.shape, np.float32) * mask
    chances[:, -1] *= PASSES_SELDOM * mask.sum(axis=1)
    return chances.argmax(axis=1).astype(np.int32)


@pytest.mark.parametrize(
    ("size", "games"),
    [
        pytest.param(5, 64),
        pytest.param(5, 4_000, marks=pytest.mark.slow),
        pytest.param(9, 5_500, marks=pytest.mark.slow),
        pytest.param(13, 400, marks=pytest.mark.slow),
        pytest.param(19, 100, marks=pytest.mark.slow),
    ],
)
def test_every_step_equals_pgx(size, games):
    ours = go(size, ko="simple")
    with jax.legacy_prng_key("allow"), jax.numpy_rank_promotion("allow"):
        pgx_go = pytest.importorskip("pgx.go")
        theirs = pgx_go.Go(size=size)
        keys = jax.random.split(jax.random.key(0), games)
        references = jax.jit(jax.vmap(theirs.init))(keys)
        follow = jax.jit(jax.vmap(lambda state, action: theirs.step(state, action)))
        init, step = batched(ours)
        states = init(games)
        first = np.asarray(references.current_player)
        rng = np.random.default_rng(size)
        live, repeated, ended = np.ones(games, bool), 0, 0
        for ply in range(2 * size * size + 1):
            board = np.sign(np.asarray(references._x.board))
            reached = live & ~np.asarray(references._x.is_psk)
            repeated += int((live & ~reached).sum())
            live = reached
            mask = np.asarray(states.legal_action_mask)
            done = np.asarray(states.terminated | states.truncated)
            assert (cells(states) == board)[live].all()
            known = np.asarray(references.legal_action_mask)
            assert (mask == known)[live & ~done].all()
            assert (done == np.asarray(references.terminated))[live].all()
            assert (np.asarray(states.ply) == ply)[live].all()
            rewards = np.asarray(references.rewards)
            rewards = np.where(first[:, None] == 0, rewards, rewards[:, ::-1])
            assert (np.asarray(states.rewards) == rewards)[live].all()
            ended += int((live & done).sum())
            live = live & ~done
            if not live.any():
                break
            actions = choose(rng, mask)
            states, references = step(states, actions), follow(references, actions)
    assert not live.any() and ended + repeated == games and ended > games // 2


@pytest.mark.parametrize(
    ("size", "games"),
    [
        pytest.param(5, 10),
        pytest.param(5, 1_000, marks=pytest.mark.slow),
        pytest.param(7, 500, marks=pytest.mark.slow),
        pytest.param(9, 480, marks=pytest.mark.slow),
        pytest.param(19, 20, marks=pytest.mark.slow),
    ],
)
def test_every_step_equals_open_spiel(size, games):
    pyspiel = pytest.importorskip("pyspiel")
    game = pyspiel.load_game(f"go(board_size={size},komi=7.5)")
    ours = go(size, ko="simple")
    init, step = batched(ours)
    states = jax.tree.map(np.asarray, init(games))
    references = [game.new_initial_state() for _ in range(games)]
    rng = np.random.default_rng(size)
    turned = np.arange(size * size).reshape(size, size)[::-1].reshape(-1)
    turned = np.append(turned, size * size)
    live, compared = set(range(games)), 0
    while live:
        done = states.terminated | states.truncated
        boards = cells(states)
        seen = [boards[number].tobytes() for number in range(games)]
        for number in sorted(live):
            reference = references[number]
            if reference.is_terminal():
                live.remove(number)
                if not done[number]:  # a repeated board, a draw there
                    assert reference.returns() == [0, 0] and seen[number]
                    continue
                assert reference.returns() == states.rewards[number].tolist()
                compared += 1
                continue
            assert not done[number]
            legal = np.flatnonzero(states.legal_action_mask[number])
            assert sorted(turned[legal]) == sorted(reference.legal_actions())
            assert reference.current_player() == states.current_player[number]
        actions = choose(rng, states.legal_action_mask)
        for number in live:
            references[number].apply_action(int(turned[actions[number]]))
        states = jax.tree.map(np.asarray, step(states, actions))
    assert compared > games // 2


@pytest.mark.parametrize(
    ("size", "boards"),
    [(5, 200), pytest.param(9, 2_000, marks=pytest.mark.slow)],
)
def test_area_equals_sgfmill(size, boards):
    sgfmill_boards = pytest.importorskip("sgfmill.boards")
    env = go(size, ko="simple")
    init, step = batched(env)
    score = jax.jit(jax.vmap(env.score))
    rng = np.random.default_rng(size)
    number = 50
    compared = 0
    while compared < boards:
        states = init(number)
        for _ in range(rng.integers(1, 2 * size * size)):
            states = step(states, choose(rng, np.asarray(states.legal_action_mask)))
        scores = np.asarray(score(states))
        for row, board in enumerate(cells(states).reshape(number, size, size)):
            other = sgfmill_boards.Board(size)
            points = [
                [(size - 1 - int(r), int(c)) for r, c in np.argwhere(board == colour)]
                for colour in (1, -1)
            ]
            assert other.apply_setup(*points, [])
            assert scores[row] == other.area_score() - env.komi
        compared += number


def test_atari_and_chains_are_those_of_the_board():
    from envs.go import begin, bits

    env = go(7, ko="simple", suicide=True)
    init, step = batched(env)
    states = init(6)
    rng = np.random.default_rng(0)
    for _ in range(98):
        states = step(states, choose(rng, np.asarray(states.legal_action_mask)))
        numbers = bits.spread_out(np.asarray(states.chains.numbers)).astype(int)
        weights = 1 << np.arange(numbers.shape[1])
        numbers = (numbers * weights[None, :, None, None]).sum(axis=1).reshape(6, -1)
        in_atari = np.asarray(states.chains.in_atari)
        for row, board in enumerate(cells(states).reshape(6, 7, 7)):
            _, known = begin.chains_of(board)
            stones = bits.packed(board != 0)
            assert ((in_atari[row] ^ known) & stones == 0).all()
            chains = {}
            for point in np.flatnonzero(board).tolist():
                chain, liberties = begin.chain_and_liberties(board, point)
                assert liberties and {numbers[row, p] for p in chain} == {
                    numbers[row, point]
                }
                chains[int(numbers[row, point])] = chains.get(
                    int(numbers[row, point]), chain
                )
                assert chains[int(numbers[row, point])] == chain
    assert jnp.all(states.terminated | states.truncated)
