"""The legal moves of a position, all at once and without trying any of them.

A position is seen by its mover, who plays up the board. Sets are looked at in eight
directions at once, arrays [8] having one for each.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from envs.chess.bits import Bits, Steps, choice, square_bit, squares

# The directions of the four lines: file, rank, rising and falling diagonal; first those
# that lead to lower squares, then those to higher ones.
FILES = np.array([0, -1, -1, -1, 0, 1, 1, 1])
RANKS = np.array([-1, 0, -1, 1, 1, 0, 1, -1])
UP, LEFT, RIGHT, UP_LEFT, UP_RIGHT = 4, 1, 5, 3, 6

# The jumps of a knight, in the order of their planes.
KNIGHT_FILES = np.array([-2, -2, -1, -1, 2, 2, 1, 1])
KNIGHT_RANKS = np.array([-1, 1, -2, 2, -1, 1, -2, 2])

_STRAIGHT, _DIAGONAL = choice(FILES * RANKS == 0), choice(FILES * RANKS != 0)
_PUSH, _LEFT, _RIGHT = (choice(np.arange(8) == way) for way in (UP, LEFT, RIGHT))
# Where a pawn captures, and from where it is captured by one.
_CAPTURE = choice((FILES != 0) & (RANKS > 0))
_FROM_ABOVE = choice((FILES != 0) & (RANKS < 0))

A1, B1, C1, D1, E1, F1, G1, H1 = range(0, 64, 8)
_RANK_1 = squares(range(0, 64, 8))


class Board(NamedTuple):
    """A position as sets of squares, seen by its mover."""

    pawns: Bits
    knights: Bits
    diagonals: Bits  # bishops and queens
    straights: Bits  # rooks and queens
    kings: Bits
    mine: Bits  # what the mover has
    castling: Bits  # rooks that may still castle
    en_passant: Bits  # the square that a pawn has just passed, if any

    @classmethod
    def of(cls, words: jax.Array) -> "Board":
        """From the words of a state, uint32 [8, 2]."""
        return cls(*(Bits(words[row, 0], words[row, 1]) for row in range(8)))

    @property
    def words(self) -> jax.Array:
        return jnp.stack([jnp.stack([each.low, each.high]) for each in self])

    @property
    def occupied(self) -> Bits:
        return self.pawns | self.knights | self.diagonals | self.straights | self.kings


class Legal(NamedTuple):
    starts: Bits  # [planes]: the squares from which the move of a plane is legal
    check: jax.Array  # bool: the mover's king is attacked
    en_passant: Bits  # the en passant square, if a capture there is legal


class _Sight(NamedTuple):
    """Along each direction [8]: what the king sees, and what sees towards it."""

    out: Bits  # what the mover's king sees
    back: Bits  # what their line pieces see in the opposite direction


class MoveRules:
    """The moves on a board of a size; castling and double steps need size 8."""

    def __init__(self, size: int):
        self.size = size
        self.full = size == 8
        self.steps = Steps(size, FILES, RANKS)
        self.back = Steps(size, -FILES, -RANKS)
        self.jumps = Steps(size, KNIGHT_FILES, KNIGHT_RANKS)
        self.up, self.down = Steps(size, 0, 1), Steps(size, 0, -1)
        self.board = squares(8 * f + r for f in range(size) for r in range(size))
        self.second_rank = squares(range(1, 64, 8))
        self.last_rank = squares(range(size - 1, 64, 8))
        self.last_but_one = squares(range(size - 2, 64, 8))

    def legal(self, board: Board) -> Legal:
        """All legal moves."""
        mine, theirs = board.mine, board.occupied & ~board.mine
        empty = self.board & ~board.occupied
        king = board.kings & mine
        lines = board.straights & _STRAIGHT | board.diagonals & _DIAGONAL

        sight = self._sight(king, lines & theirs, empty)
        attacked = (sight.back | self._near_attacks(board, theirs)).union()
        answers = self._answers(board, king, theirs, sight)
        pinned = sight.out & sight.back & mine
        anywhere = mine & ~pinned.union()
        free = anywhere | pinned | _opposite(pinned)

        pawns = board.pawns & free
        prey = theirs & ~board.kings  # a FEN may leave a king to be taken
        captured = (empty & _PUSH | prey & _CAPTURE) & answers
        pawn_moves = pawns & self.steps.before(captured)
        en_passant = squares(())
        second = None
        if self.full:
            passing = self._en_passant(board, pawns, answers, sight)
            pawn_moves = pawn_moves | passing
            en_passant = board.en_passant.when(passing.any().any())
            double = self.up.before(empty & self.up.before(empty & answers))
            double = pawns & self.second_rank & double & _PUSH
            second = double | self._castling(board, king, empty, attacked)
        refuge = (empty | prey) & ~attacked
        first = king & self.steps.before(refuge) | pawn_moves
        targets = (empty | prey) & answers
        queen_moves = self._line_moves(lines & free, empty, targets, first, second)
        knights = board.knights & anywhere & self.jumps.before(targets)
        promotions = pawn_moves & self.last_but_one

        def arrange(lines: jax.Array, knights: jax.Array, promotions: jax.Array):
            ways = [promotions[way] for way in (UP, UP_RIGHT, UP_LEFT)]
            return jnp.concatenate([jnp.stack(ways * 3), lines.reshape(-1), knights])

        starts = jax.tree.map(arrange, queen_moves, knights, promotions)
        return Legal(starts, (attacked & king).any(), en_passant)

    def play(
        self, board: Board, start: jax.Array, target: jax.Array, plane: jax.Array
    ) -> tuple[Board, jax.Array]:
        """The board after a move; and whether it was a capture or a pawn's.

        `mine` are then the pieces of the player who is next, but the board is not yet
        turned to that player's side.
        """
        source, goal = square_bit(start), square_bit(target)
        pawn, king = (source & board.pawns).any(), (source & board.kings).any()
        promotes = pawn & (goal & self.last_rank).any()
        rook, bishop, knight = (promotes & (plane // 3 == kind) for kind in range(3))
        queen = promotes & ~(rook | bishop | knight)
        arrives = (
            pawn & ~promotes,
            (source & board.knights).any() | knight,
            (source & board.diagonals).any() | bishop | queen,
            (source & board.straights).any() | rook | queen,
            king,
        )
        victim = goal & board.occupied
        left = source | victim
        passed = board.en_passant  # always empty on a smaller board
        if self.full:
            en_passant = pawn & (goal & board.en_passant).any()
            left = left | self.down.ahead(goal).when(en_passant)
            passed = self.down.ahead(goal).when(pawn & (target - start == 2))
        pawns, knights, diagonals, straights, kings = (
            kind & ~left | goal.when(arrived)
            for kind, arrived in zip(board[:5], arrives, strict=True)
        )
        mine = board.mine & ~left | goal
        if self.full:
            for way, corner, beside in ((E1 - C1, A1, D1), (E1 - G1, H1, F1)):
                castles = king & (start - target == way)
                came = squares([beside]).when(castles)
                went = squares([corner]).when(castles)
                straights = straights & ~went | came
                mine = mine & ~went | came
        castling = board.castling & ~(left | goal) & ~_RANK_1.when(king)
        moved = Board(
            pawns, knights, diagonals, straights, kings, mine, castling, passed
        )
        theirs = moved.occupied & ~mine
        return moved._replace(mine=theirs), pawn | victim.any()

    def _sight(self, king: Bits, sliders: Bits, empty: Bits) -> _Sight:
        # Line pieces see through the king, which cannot hide from them behind itself.
        through = empty | king

        def further(_: jax.Array, carry: tuple[_Sight, _Sight]) -> Any:
            fronts, seen = carry
            out, back = self.steps.ahead(fronts.out), self.back.ahead(fronts.back)
            seen = _Sight(seen.out | out, seen.back | back)
            return _Sight(out & empty, back & through), seen

        nothing = jax.tree.map(jnp.zeros_like, sliders)
        start = _Sight(king | nothing, sliders), _Sight(nothing, nothing)
        return jax.lax.fori_loop(0, self.size - 1, further, start)[1]

    def _line_moves(
        self,
        movers: Bits,
        empty: Bits,
        targets: Bits,
        first: Bits,
        second: Bits | None,
    ) -> Bits:
        """The starts of all moves along lines: [4, 2 * (size - 1)], in plane order.

        Args:
          movers: what may move along each direction, as far as it is free.
          first: starts of other moves by one step in each direction.
          second: starts of other moves by two steps.
        """
        nothing = jax.tree.map(jnp.zeros_like, movers)
        second = nothing if second is None else second

        def further(carry: Any, _: None) -> Any:
            movers, empty, targets, others, more = carry
            empty, targets = self.steps.before(empty), self.steps.before(targets)
            moves = movers & targets | others
            return (movers & empty, empty, targets, more, nothing), moves

        start = (movers, empty | nothing, targets | nothing, first, second)
        _, moves = jax.lax.scan(further, start, None, length=self.size - 1)

        def arrange(moves: jax.Array) -> jax.Array:
            return jnp.concatenate([moves[::-1, :4], moves[:, 4:]]).T

        return jax.tree.map(arrange, moves)

    def _answers(self, board: Board, king: Bits, theirs: Bits, sight: _Sight) -> Bits:
        """The squares where the move of another piece than the king answers all checks.

        They are those of the line to a line piece that gives check, or that of a knight
        or pawn that does; what answers two checks at once is in both.
        """
        pawns = self.steps.ahead(king) & board.pawns & theirs & _CAPTURE
        lines = sight.out.when((sight.back & king).any()) | pawns
        knights = self.jumps.ahead(king) & board.knights & theirs
        return (lines.where(lines.any()) & knights.where(knights.any())).intersection()

    def _near_attacks(self, board: Board, theirs: Bits) -> Bits:
        """What their pawns, knights and king attack."""
        near = board.pawns & _FROM_ABOVE | board.kings
        return self.steps.ahead(near & theirs) | self.jumps.ahead(
            board.knights & theirs
        )

    def _en_passant(
        self, board: Board, pawns: Bits, answers: Bits, sight: _Sight
    ) -> Bits:
        """The pawns [8] that may capture en passant."""
        target = board.en_passant
        victim = self.down.ahead(target)
        starts = pawns & self.steps.before(target & _CAPTURE)
        # The victim alone may hide the king from a bishop; on a file the capturing pawn
        # takes its place, and on a rank both leave.
        hides = (victim & sight.out & sight.back & _DIAGONAL).any().any()
        both = starts | victim
        opened = [
            (both & sight.out[way]).any() & (both & sight.back[way]).any()
            for way in (LEFT, RIGHT)
        ]
        answer = (answers & (target | victim)).any()
        return starts.when(answer & ~hides & ~opened[0] & ~opened[1])

    def _castling(self, board: Board, king: Bits, empty: Bits, attacked: Bits) -> Bits:
        """The king in the directions [8] in which it may castle."""
        moves = []
        for way, rook, crossed, walked in (
            (_LEFT, A1, (B1, C1, D1), (C1, D1, E1)),
            (_RIGHT, H1, (F1, G1), (E1, F1, G1)),
        ):
            allowed = (board.castling & squares([rook])).any()
            blocked = squares(crossed) & ~empty | squares(walked) & attacked
            moves.append(king.when(allowed & ~blocked.any()) & way)
        return moves[0] | moves[1]


def _opposite(sets: Bits) -> Bits:
    """Sets [8] of each direction, in the place of the opposite one."""
    return jax.tree.map(lambda words: words.reshape(2, 4)[::-1].reshape(8), sets)
