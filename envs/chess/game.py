"""Chess and Gardner's minichess: from a position and an action to the next position."""

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from envs.chess import drawing, fen, notation
from envs.chess.actions import Actions
from envs.chess.bits import flip, squares
from envs.chess.moves import Board, MoveRules
from envs.env import Env, State, win_rewards

_LIGHT = squares(square for square in range(64) if (square // 8 + square) % 2)
_DRAWN = np.random.default_rng(20_260_101)  # numbers that make hashes differ
_SALTS = _DRAWN.integers(2**32, size=(2, 8, 2), dtype=np.uint32)
_FACTORS = _DRAWN.integers(2**32, size=(2, 8, 2), dtype=np.uint32) | np.uint32(1)


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class ChessState(State):
    """The position is eight sets of squares, as `envs.chess.moves.Board` names them.

    They are seen by the mover: with Black to move the board is upside down. An en
    passant square is kept only if a capture there is legal, so that equal positions
    have equal boards. `hashes` are those of the positions since the last capture or
    pawn move, with as many of them as `clock` says, and of this one.
    """

    board: jax.Array  # [8, 2] uint32: bits of files a to d, bits of files e to h
    clock: jax.Array  # int16: plies since the last capture or pawn move
    move_number: jax.Array  # int32: as in a FEN
    hashes: jax.Array  # [2, H] uint32: two words of each hash
    last_action: jax.Array  # int16: the action that led here, -1 where unknown


class ChessGame(Env[ChessState]):
    """What chess and Gardner's minichess share."""

    version = "v0"
    num_players = 2
    history_fields = ("hashes", "last_action")
    size: int
    start: str  # FEN

    def __init__(
        self,
        repetitions: int | None = 3,
        move_rule: int = 50,
        insufficient_material: bool = True,
        max_plies: int | None = None,
    ):
        if type(insufficient_material) is not bool:
            raise ValueError(
                f"{self.id}: insufficient_material is True or False, got "
                f"{insufficient_material!r}"
            )
        for option, value, least, most in (
            ("repetitions", repetitions, 2, 100),
            ("move_rule", move_rule, 1, 100),
            ("max_plies", max_plies, 1, 100_000),
        ):
            none = "" if option == "move_rule" else ", or None for no such rule"
            if none and value is None:
                continue
            if type(value) is not int or not least <= value <= most:
                raise ValueError(
                    f"{self.id}: {option} is a whole number from {least} to {most}"
                    f"{none}, got {value!r}"
                )
        self.repetitions = repetitions
        self.move_rule = move_rule
        self.insufficient_material = insufficient_material
        self.max_plies = max_plies
        self._actions = Actions(self.size)
        self._rules = MoveRules(self.size)
        self._slots = np.arange(
            0 if repetitions is None else 2 * move_rule, dtype=np.int16
        )
        self.num_actions = self._actions.num_actions
        self.observation_shape = (self.size, self.size, 16 if self._rules.full else 14)

    @property
    def options(self) -> dict[str, Any]:
        return {
            "repetitions": self.repetitions,
            "move_rule": self.move_rule,
            "insufficient_material": self.insufficient_material,
            "max_plies": self.max_plies,
        }

    def init(self, key: jax.Array | None = None) -> ChessState:
        del key
        return jax.tree.map(jnp.asarray, self._start)

    @functools.cached_property
    def _start(self) -> ChessState:
        with jax.ensure_compile_time_eval():  # rather than in every program
            state = self.from_text(self.start)
            return jax.tree.map(np.asarray, state)

    def _play(
        self, state: ChessState, action: jax.Array, key: jax.Array | None
    ) -> ChessState:
        del key
        move = self._actions.split(action)
        board, irreversible = self._rules.play(Board.of(state.board), *move)
        clock = jnp.where(irreversible, 0, state.clock + 1)
        return self._position(
            flip(board.words, self.size),
            1 - state.current_player,
            clock.astype(jnp.int16),
            state.move_number + state.current_player,
            state.hashes,
            action.astype(jnp.int16),
        )

    def _position(
        self,
        words: jax.Array,
        player: jax.Array,
        clock: jax.Array,
        move_number: jax.Array,
        hashes: jax.Array,
        last_action: jax.Array,
    ) -> ChessState:
        """The state of a board, with all that follows from it."""
        legal = self._rules.legal(Board.of(words))
        if self._rules.full:
            passed = jnp.stack([legal.en_passant.low, legal.en_passant.high])
            words = jnp.concatenate([words[:7], passed[None]])
        stuck = ~legal.starts.any().any()
        ended = stuck | (clock >= 2 * self.move_rule)
        if self.insufficient_material:
            ended |= _is_dead(Board.of(words))
        if self.repetitions is not None:
            now = _hash(words)
            earlier = self._earlier(hashes, now, clock)
            ended |= earlier >= self.repetitions - 1
            here = (self._slots == clock)[None, :]
            hashes = jnp.where(here, now[:, None], hashes)
        truncated = jnp.zeros_like(ended)
        if self.max_plies is not None:
            plies = 2 * (move_number - 1) + player
            truncated = ~ended & (plies >= self.max_plies)
        return ChessState(
            board=words,
            clock=clock,
            move_number=move_number,
            hashes=hashes,
            last_action=last_action,
            current_player=player,
            legal_action_mask=self._actions.mask(
                legal.starts.when(~ended & ~truncated)
            ),
            rewards=win_rewards(stuck & legal.check, 1 - player),
            terminated=ended,
            truncated=truncated,
        )

    def _earlier(
        self, hashes: jax.Array, now: jax.Array, clock: jax.Array
    ) -> jax.Array:
        """How often the position has occurred before, with the same player to move."""
        known = (self._slots < clock) & ((self._slots ^ clock) & 1 == 0)
        same = (hashes == now[:, None]).all(axis=0)
        return (same & known).sum(dtype=jnp.int32)

    def observe(self, state: ChessState) -> jax.Array:
        board = Board.of(state.board)
        queens = board.diagonals & board.straights
        kinds = (
            board.pawns,
            board.knights,
            board.diagonals & ~queens,
            board.straights & ~queens,
            queens,
            board.kings,
        )
        sets = [each & board.mine for each in kinds] + [
            each & ~board.mine for each in kinds
        ]
        if self._rules.full:
            sets += [board.castling, board.en_passant]
        words = jnp.stack([jnp.stack([each.low, each.high]) for each in sets])
        places = np.arange(32, dtype=np.uint32).reshape(1, 1, 4, 8)
        bits = (words[:, :, None, None] >> places & np.uint32(1)).reshape(-1, 8, 8)
        shown = bits[:, : self.size, : self.size]
        planes = shown.transpose(2, 1, 0)[::-1].astype(jnp.float32)
        numbers = [state.clock / (2 * self.move_rule), jnp.zeros_like(planes[0, 0, 0])]
        if self.repetitions is not None:
            earlier = self._earlier(state.hashes, _hash(state.board), state.clock)
            numbers[1] = earlier / (self.repetitions - 1)
        shape = (self.size, self.size, 2)
        counts = jnp.broadcast_to(jnp.stack(numbers).astype(jnp.float32), shape)
        return jnp.concatenate([planes, counts], axis=2)

    def to_text(self, state: ChessState) -> str:
        words, player = np.asarray(state.board), self._player(state)
        counts = int(state.clock), int(state.move_number)
        return fen.write(self._rows(state), words, player, *counts)

    def from_text(self, text: str) -> ChessState:
        return self._read(fen.read(text, self.size))

    def _read(self, position: fen.Position) -> ChessState:
        return self._complete(
            jnp.asarray(position.words),
            jnp.int32(position.player),
            jnp.int16(position.clock),
            jnp.int32(position.move_number),
            jnp.zeros((2, len(self._slots)), jnp.uint32),
            jnp.int16(-1),
        )

    @functools.cached_property
    def _complete(self) -> Any:
        return jax.jit(self._position)

    def ending(self, state: ChessState) -> str:
        """Why the game is over: "checkmate", "stalemate", ...; "" while it is not."""
        if not (state.terminated | state.truncated):
            return ""
        board, player = jnp.asarray(state.board), jnp.asarray(state.current_player)
        # The position alone, as if it had no history.
        past = jnp.int16(0), jnp.int32(1), jnp.zeros_like(state.hashes), jnp.int16(-1)
        alone = self._complete(board, player, *past)
        if np.any(alone.rewards):
            return "checkmate"
        if self.insufficient_material and _is_dead(Board.of(board)):
            return "insufficient material"
        if not np.any(alone.legal_action_mask) and not alone.truncated:
            return "stalemate"
        if state.clock >= 2 * self.move_rule:
            return f"the {self.move_rule}-move rule"
        if self.repetitions is not None:
            earlier = self._earlier(state.hashes, _hash(board), state.clock)
            if earlier >= self.repetitions - 1:
                return "repetition"
        return "the cap on plies" if state.truncated else "an illegal move"

    def _action_name(self, state: ChessState, action: int) -> str:
        rows, player = self._rows(state), self._player(state)
        return notation.uci(self._actions, rows, player, action)

    def text_to_action(self, state: ChessState, text: str) -> int:
        """The legal action of a name: UCI ("e7e8q", castling as e1g1 or e1h1) or SAN.

        Raises:
          ValueError: no legal action has that name, or SAN fits several.
        """
        legal = np.flatnonzero(np.asarray(state.legal_action_mask)).tolist()
        found = notation.find(
            self._actions, self._rows(state), self._player(state), legal, text.strip()
        )
        if len(found) > 1:
            names = " ".join(self._action_name(state, action) for action in found)
            raise ValueError(f"{self.id}: {text!r} may be any of {names}")
        if not found:
            names = [self._action_name(state, action) for action in legal]
            raise self._no_move_called(text, names)
        return found[0]

    def draw(self, state: ChessState) -> str:
        return drawing.text(self._rows(state), self._status(state))

    def to_svg(self, state: ChessState) -> str:
        last = int(state.last_action)
        move = ()
        if last >= 0:
            mover = 1 - self._player(state)
            move = self._actions.squares(last, mover)
        return drawing.picture(self._rows(state), move, self._status(state))

    def _status(self, state: ChessState) -> str:
        ending = self.ending(state)
        if ending == "checkmate":
            return f"{('Black', 'White')[self._player(state)]} wins by checkmate"
        if ending == "the cap on plies":
            return f"stopped by {ending}"
        if ending and ending != "an illegal move":
            return f"draw by {ending}"
        return self.status(state, ("White", "Black"))

    def _rows(self, state: ChessState) -> list[str]:
        return fen.rows(np.asarray(state.board), self._player(state), self.size)

    def _player(self, state: ChessState) -> int:
        return int(state.current_player)


class Chess(ChessGame):
    """Chess by the laws of FIDE, with the draws that need no player to claim them.

    Player 0 is White and moves first. All of the rules: castling, en passant,
    promotion to four kinds of piece, mate, stalemate, and draws by

    - `repetitions=3`: a position occurring so often; None for no such draw. Positions
      are the same with the same pieces, player to move, castling rights and en passant
      captures that are legal (article 9.2.3). The start counts.
    - `move_rule=50`: so many moves of each side without capture or pawn move (9.3; 75
      in 9.6.2). A mate on the last of them is a mate.
    - `insufficient_material=True`: the material of neither side can mate: king against
      king and at most a knight, or with bishops that all stand on one colour (part of
      5.2.2). False for no such draw.

    `max_plies=None` is a cap: at that many plies from the start of the game, as the
    move number tells them, an unfinished game is truncated, without a result.

    Action 73 * square + plane moves from a square, numbered a1 a2 ... h8, file by file.
    Planes 0 to 8 promote to rook, bishop and knight, each straight, to the right and to
    the left. The others are the way that a piece goes, a queen's promotion among them:
    9 to 22 along the file (-7 to -1, 1 to 7), 23 to 36 along the rank, 37 to 50 along
    the rising and 51 to 64 along the falling diagonal, 65 to 72 a knight's jumps. All
    is seen by the mover: with Black to move the board is turned top to bottom, files
    stay, so that Black's e7e5 is White's e2e4. pgx numbers them in the same way.
    Rewards are +1 and -1, or zeros for a draw; `env.ending(state)` says why a game is
    over.

    Observation [8, 8, 16] float32, seen by the mover, the farthest rank first: my
    pawns, knights, bishops, rooks, queens, king; the same of the other player; rooks
    that may castle; the en passant square; the plies since the last capture or pawn
    move, as a share of those that make a draw; how often the position has occurred
    before, as a share of the times before a draw.

    As text a position is a FEN, with an en passant square only if a capture there is
    legal; `from_text` takes other ones too and leaves them out. It does not hold
    earlier positions: a game that is read counts repetitions from there on. A position
    is read whether or not a game can lead to it, the mover's opponent in check too; no
    move takes a king. A move is in UCI: e2e4, e7e8q, castling e1g1. `text_to_action`
    also takes e1h1 for castling, and SAN: Nf3, exd5, O-O, e8=Q.

    A state takes 5558 bytes, 4672 of them the legal actions and 800 the hashes of
    positions; 4758 bytes with repetitions=None. Two positions are taken for equal by
    64 bits. The laws: https://handbook.fide.com/chapter/E012023
    """

    id = "chess"
    size = 8
    start = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1"
    action_format = "UCI such as e2e4, e7e8q or e1g1, or SAN such as Nf3"


class GardnerChess(ChessGame):
    """Gardner's minichess: chess on 5x5, each side with a row of pieces and of pawns.

        5  r n b q k
        4  p p p p p
        3  . . . . .
        2  P P P P P
        1  R N B Q K
           a b c d e

    The rules are those of chess without castling, double steps and en passant; pawns
    promote on the last rank, to queen, rook, bishop or knight. The options are those of
    `Chess`, with the same defaults: repetitions=3, move_rule=50,
    insufficient_material=True, max_plies=None.

    Actions are 25 squares times 49 planes, numbered as `envs.chess.actions.Actions`
    says, and as in pgx. Observation [5, 5, 14] float32: that of `Chess` without the
    planes for castling and en passant. Text is a FEN of five ranks, and moves are UCI
    and SAN as in `Chess`. A state takes 2111 bytes.
    """

    id = "gardner_chess"
    size = 5
    start = "rnbqk/ppppp/5/PPPPP/RNBQK w - - 0 1"
    action_format = "UCI such as b2b3 or b4b5q, or SAN such as Nc3"


def _is_dead(board: Board) -> jax.Array:
    """Whether neither side has what it takes to mate.

    That is king against king and at most one knight, or bishops of either side that all
    stand on squares of one colour.
    """
    bishops = board.diagonals
    one_colour = ~((bishops & _LIGHT).any() & (bishops & ~_LIGHT).any())
    lone_knight = ~bishops.any() & (board.knights.count() == 1)
    minor = jnp.where(board.knights.any(), lone_knight, one_colour)
    return minor & ~(board.pawns | board.straights).any()


def _hash(words: jax.Array) -> jax.Array:
    """Two words [2] uint32 that tell positions apart.

    Each word of the board is mixed on its own, by multiplications and shifts that can
    be undone, with other factors for each place and each hash; the results are added.
    """
    mixed = (words[None] ^ _SALTS) * _FACTORS
    for shift, factor in ((15, 0x2C1B3C6D), (12, 0x297A2D39)):
        mixed = (mixed ^ mixed >> np.uint32(shift)) * np.uint32(factor)
    mixed = mixed ^ mixed >> np.uint32(15)
    return mixed.reshape(2, -1).sum(axis=1, dtype=jnp.uint32)
