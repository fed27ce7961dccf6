"""Texts, names, drawings, observations and options of chess."""

import dataclasses
import xml.etree.ElementTree as ElementTree

import jax
import numpy as np
import pytest

import envs
from envs.chess.game import _hash
from tests.envs.chess_games import ENV, moves, planes, stack, step

START = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1"


def read(text):
    return jax.tree.map(np.asarray, ENV.from_text(text))


def test_start_is_the_start_position():
    assert ENV.to_text(ENV.init()) == START
    jax.tree.map(np.testing.assert_array_equal, ENV.from_text(START), ENV.init())


@pytest.mark.parametrize(
    "text",
    [
        "rnbqkbnr/ppp1p1pp/8/3pPp2/8/8/PPPP1PPP/RNBQKBNR w KQkq f6 0 3",
        "r3k2r/8/8/8/3pP3/8/8/R3K2R b Kq e3 0 12",
        "8/8/8/4k3/8/8/8/4K2R w - - 61 90",
        "8/8/8/4k3/8/8/8/4K2R b - - 120 150",  # a draw since long
        "8/8/8/4k3/8/8/8/4K2R w - - 0 50000",
        "8/8/8/4k3/8/8/8/4K2R w - - 0 999999999",
    ],
)
def test_fen_reads_back_as_it_was(text):
    assert ENV.to_text(read(text)) == text


def test_fen_without_counts_is_read_and_an_idle_en_passant_square_is_left_out():
    assert ENV.to_text(read(START.removesuffix(" 0 1"))) == START
    idle = "rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq e3 0 1"
    assert ENV.to_text(read(idle)) == idle.replace("e3", "-")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "got 0 fields, expected 4 or 6"),
        (START + " 7", "got 7 fields, expected 4 or 6"),
        (START.replace("/8/8/8", "/8/8"), "got 7 ranks, expected 8"),
        (START.replace("/8/8", "/9/8", 1), "'9' in rank 6 is neither"),
        (START.replace("/8/8", "/7/8", 1), "rank 6, '7', has 7 squares, expected 8"),
        (START.replace("PPPP", "PPPPP", 1), "rank 2, 'PPPPPPPPP', has 9 squares"),
        (START.replace("KB", "xB"), "'x' in rank 1 is neither one of PNBRQK"),
        (START.replace("KB", "QB"), "White has 0 kings, expected 1"),
        (START.replace("qk", "kk"), "Black has 2 kings, expected 1"),
        (START.replace("KB", "PB"), "a pawn stands on rank 1"),
        (START.replace(" w ", " x "), "side to move is w or b, got 'x'"),
        (START.replace("KQkq", "KQkx"), "castling is - or some of KQkq, got 'KQkx'"),
        (START.replace("KQkq", "KK"), "castling is - or some of KQkq, got 'KK'"),
        (START.replace("KBNR", "KBN1"), "castling K needs R on h1"),
        (START.replace("rnbqkb", "rnbqbk"), "castling k needs k on e8"),
        (START.replace("- 0", "e9 0"), "en passant square is - or a square of rank 6"),
        (START.replace("- 0", "e3 0"), "or a square of rank 6, got 'e3'"),
        (START.replace("- 0", "e6 0"), "en passant e6 needs p on e5"),
        (
            "rnbqkbnr/pppppppp/8/4p3/8/8/PPPP1PPP/RNBQKBNR w KQkq e6 0 1",
            "en passant e6 needs e7 to be empty",
        ),
        (START.replace("- 0 1", "- -1 1"), "plies without capture .* is 0 to 9999"),
        (START.replace("- 0 1", "- 0 0"), "the move number is 1 to 999999999, got '0'"),
        (START.replace("- 0 1", "- 0 ¹"), "the move number is 1 to 999999999, got '¹'"),
        (START.replace("- 0 1", "- 0 1000000000"), "the move number is 1 to 999999999"),
    ],
)
def test_broken_fen_is_refused_with_the_reason(text, message):
    with pytest.raises(ValueError, match=message):
        ENV.from_text(text)


def test_counts_of_thousands_of_digits_are_refused_with_the_reason():
    many = 5000 * "9"
    for counts, message in (
        (f"- 0 {many}", "FEN .*: the move number is 1 to 999999999"),
        (f"- {many} 1", "FEN .*: the count of plies without .* is 0 to 9999"),
    ):
        with pytest.raises(ValueError, match=message):
            ENV.from_text(START.replace("- 0 1", counts))


def test_castling_and_promotions_are_written_as_uci_says():
    # r . . . k . . r
    line = ["e2e4", "e7e5", "g1f3", "g8f6", "f1c4", "f8c5"]
    state = moves(ENV, jax.tree.map(np.asarray, ENV.init()), *line)
    castle = ENV.text_to_action(state, "e1g1")
    assert ENV.action_to_text(state, castle) == "e1g1"
    for name in ("e1h1", "O-O", "0-0", "E1G1", " e1g1 "):
        assert ENV.text_to_action(state, name) == castle
    black = read("r3k2r/8/8/8/8/8/8/4K3 b kq - 0 1")
    for name, uci in (("e8h8", "e8g8"), ("e8a8", "e8c8"), ("O-O-O", "e8c8")):
        assert ENV.action_to_text(black, ENV.text_to_action(black, name)) == uci
    pawn = read("8/P6k/8/8/8/8/8/K7 w - - 0 1")
    for piece in "qrbn":
        action = ENV.text_to_action(pawn, f"a7a8{piece}")
        assert ENV.action_to_text(pawn, action) == f"a7a8{piece}"
        assert ENV.text_to_action(pawn, f"a8={piece.upper()}") == action


def test_san_needs_to_say_which_piece_it_is():
    # Knights on b1 and f3 reach d2, rooks on a1 and a5 reach a3.
    state = read("4k3/8/8/R7/8/5N2/8/RN2K3 w - - 0 1")
    for name, uci in (
        ("Nbd2", "b1d2"),
        ("Nfd2", "f3d2"),
        ("R1a3", "a1a3"),
        ("R5a3", "a5a3"),
        ("Ne5+", "f3e5"),
        ("Ra8+!", "a5a8"),
    ):
        assert ENV.action_to_text(state, ENV.text_to_action(state, name)) == uci
    with pytest.raises(ValueError, match="'Nd2' may be any of b1d2 f3d2"):
        ENV.text_to_action(state, "Nd2")


def test_san_that_looks_like_uci_in_capitals_is_san():
    both = read("8/7p/8/7k/3B4/8/1K1B4/8 w - - 0 1")  # the king on b2 reaches c3 too
    for name, uci in (("B2c3", "d2c3"), ("b2c3", "b2c3"), ("B2C3", "b2c3")):
        assert ENV.action_to_text(both, ENV.text_to_action(both, name)) == uci
    taken = read("7k/8/8/8/8/2p5/1P1B4/K7 w - - 0 1")
    for name, uci in (("B2c3", "d2c3"), ("Bxc3", "d2c3"), ("bxc3", "b2c3")):
        assert ENV.action_to_text(taken, ENV.text_to_action(taken, name)) == uci
    pinned = read("3r3k/8/8/8/8/2p5/1P1B4/3K4 w - - 0 1")  # the bishop stays on d2
    assert ENV.text_to_action(pinned, "B2C3") == ENV.text_to_action(pinned, "b2c3")
    for name in ("B2c3", "Bxc3"):
        with pytest.raises(ValueError, match=f"'{name}' is not a legal move here"):
            ENV.text_to_action(pinned, name)


def test_move_numbers_of_long_games_read_back():
    long_game = envs.Chess(max_plies=100_000)
    state = long_game.from_text("7k/8/8/8/8/8/8/K6R b - - 0 49999")
    state = long_game.step(state, long_game.text_to_action(state, "h8g7"))
    text = long_game.to_text(state)
    assert text.endswith(" 50000") and not state.truncated
    assert long_game.to_text(long_game.from_text(text)) == text
    far = long_game.from_text("7k/8/8/8/8/8/8/K6R w - - 0 999999999")
    assert far.truncated


@pytest.mark.parametrize("name", ["e2e5", "a7a8k", "e1h1", "O-O", "", "Qd4", "e9"])
def test_unknown_moves_are_refused(name):
    with pytest.raises(ValueError, match=r"is not a legal move here; a move is UCI"):
        ENV.text_to_action(ENV.init(), name)


def test_every_action_has_a_name_and_a_finished_game_has_no_moves():
    state = jax.tree.map(np.asarray, ENV.init())
    names = [ENV.action_to_text(state, action) for action in range(ENV.num_actions)]
    off = [name for name in names if name.endswith(" off the board")]
    inside = [
        0 <= file + df < 8 and 0 <= rank + dr < 8
        for file in range(8)
        for rank in range(8)
        for df, dr in planes(8)
    ]
    assert len(off) == inside.count(False)
    mated = moves(ENV, state, "f2f3", "e7e5", "g2g4", "d8h4")
    assert ENV.ending(mated) == "checkmate"
    with pytest.raises(ValueError, match="no move 'e2e4', the game is over"):
        ENV.text_to_action(mated, "e2e4")


def test_drawings_show_the_board_from_the_side_of_white():
    state = moves(ENV, jax.tree.map(np.asarray, ENV.init()), "e2e4")
    assert ENV.draw(state) == (
        "8 r n b q k b n r\n"
        "7 p p p p p p p p\n"
        "6 · · · · · · · ·\n"
        "5 · · · · · · · ·\n"
        "4 · · · · P · · ·\n"
        "3 · · · · · · · ·\n"
        "2 P P P P · P P P\n"
        "1 R N B Q K B N R\n"
        "  a b c d e f g h\n"
        "Black to move"
    )


def test_svg_shows_the_pieces_and_marks_the_last_move():
    state = moves(ENV, jax.tree.map(np.asarray, ENV.init()), "e2e4", "e7e5")
    root = ElementTree.fromstring(ENV.to_svg(state))
    shapes = [(shape.tag.rpartition("}")[2], shape.attrib) for shape in root]
    fills = [each["fill"] for tag, each in shapes if tag == "rect"][1:]
    marked = [number for number, fill in enumerate(fills) if fill == "#cdd26a"]
    assert len(fills) == 64 and marked == [8 * 1 + 4, 8 * 3 + 4]  # e7 and e5
    figures = [shape.text[0] for shape in root if (shape.text or " ")[0] in "♚♛♜♝♞♟"]
    assert len(figures) == 32 and figures.count("♟") == 16
    fresh = ElementTree.fromstring(ENV.to_svg(ENV.init()))
    assert all(shape.get("fill") != "#cdd26a" for shape in fresh)


def test_illegal_move_loses_and_says_so():
    state = jax.tree.map(np.asarray, ENV.init())
    lost = jax.tree.map(lambda leaf: leaf[0], step(ENV, stack([state]), [0]))
    assert lost.terminated and ENV.ending(lost) == "an illegal move"
    np.testing.assert_array_equal(lost.rewards, [-1, 1])
    assert ENV.draw(lost).endswith("Black wins")


def test_observation_is_seen_by_the_mover():
    # Black to move sees the own pieces below: row 7 is rank 8.
    state = read("r3k3/8/8/8/3pP3/8/8/4K2R b Kq e3 0 12")
    planes = np.asarray(ENV.observe(state))
    assert planes.shape == (8, 8, 16) and planes.dtype == np.float32
    found = {
        plane: np.argwhere(planes[..., plane]).tolist()
        for plane in range(16)
        if planes[..., plane].any()
    }
    assert found == {
        0: [[3, 3]],  # my pawn on d4
        3: [[7, 0]],  # my rook on a8
        5: [[7, 4]],  # my king on e8
        6: [[3, 4]],  # a pawn on e4
        9: [[0, 7]],  # a rook on h1
        11: [[0, 4]],  # a king on e1
        12: [[0, 7], [7, 0]],  # both rooks may castle
        13: [[2, 4]],  # e3
    }
    state = jax.tree.map(np.asarray, ENV.init())
    line = ["g1f3", "g8f6", "f3g1", "f6g8"]
    planes = np.asarray(ENV.observe(moves(ENV, state, *line)))
    np.testing.assert_allclose(planes[..., 14], 0.04)  # 4 of 100 plies
    np.testing.assert_allclose(planes[..., 15], 0.5)  # once, of the two before a draw


def test_state_takes_the_bytes_that_the_docstring_names():
    for kind, options, size in (
        (envs.Chess, {}, 5558),
        (envs.Chess, {"repetitions": None}, 4758),
        (envs.GardnerChess, {}, 2111),
    ):
        state = jax.eval_shape(kind(**options).init)
        leaves = jax.tree.leaves(state)
        assert sum(leaf.size * leaf.dtype.itemsize for leaf in leaves) == size
        assert str(size) in kind.__doc__


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"repetitions": 1}, "repetitions is a whole number from 2 to 100, or None"),
        ({"repetitions": True}, "repetitions is a whole number .* got True"),
        ({"move_rule": None}, "move_rule is a whole number from 1 to 100, got None"),
        ({"move_rule": 50.0}, "move_rule is a whole number from 1 to 100, got 50.0"),
        ({"max_plies": 0}, "max_plies is a whole number from 1 to 100000"),
        ({"insufficient_material": 1}, "insufficient_material is True or False, got 1"),
        ({"fifty": True}, "chess has no option 'fifty'"),
    ],
)
def test_bad_options_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        envs.make("chess", **options)


def test_hashes_of_different_positions_differ():
    # Half of the 64 bits: any two of 4096 boards one square apart would meet with a
    # chance of 1 in 512 were they drawn at random.
    board = np.asarray(ENV.init().board)
    boards = [board]
    for kind in range(8):
        for square in range(64):
            other = board.copy()
            other[kind, square // 32] ^= np.uint32(1) << np.uint32(square % 32)
            boards.append(other)
    rng = np.random.default_rng(0)
    while len(boards) < 4096:
        other = boards[rng.integers(len(boards))].copy()
        other[rng.integers(8), rng.integers(2)] ^= np.uint32(1) << np.uint32(
            rng.integers(32)
        )
        boards.append(other)
    different = {each.tobytes(): each for each in boards}
    hashes = np.asarray(jax.vmap(_hash)(np.stack(list(different.values()))))
    assert len(different) > 4000
    for word in range(2):
        assert len(set(hashes[:, word].tolist())) >= len(different) - 1


def test_games_pass_the_check():
    envs.check_env(ENV, games=1, seed=3)


def test_state_is_told_apart_only_by_its_history():
    assert ENV.history_fields == ("hashes", "last_action")
    state = moves(ENV, jax.tree.map(np.asarray, ENV.init()), "e2e4", "e7e5")
    read_back = read(ENV.to_text(state))
    told = {"hashes": state.hashes, "last_action": state.last_action}
    same = dataclasses.replace(read_back, **told)
    jax.tree.map(np.testing.assert_array_equal, same, state)
