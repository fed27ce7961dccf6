"""Go: surround more of the board than the other side."""

import dataclasses
import functools
from collections.abc import Iterable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from envs.env import AuxiliaryTargets, Env, State, Symmetries, win_rewards
from envs.go import (
    area,
    begin,
    bits,
    chains,
    drawing,
    notation,
    options,
    replay,
    superko,
)
from envs.go.chains import Chains


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class GoState(State):
    """Sets of points are a word a row, [N] uint32; see `envs.go.bits`."""

    chains: Chains
    ko: jax.Array  # [N] uint32: the point that a simple ko closes, or none
    last_move: jax.Array  # int16: an action; -1 at the start
    passes: jax.Array  # int8: in a row
    ply: jax.Array  # int16: moves and passes so far
    past: superko.Past | None  # None with the simple ko rule


class Go(Env[GoState]):
    """Go by area scoring, on boards of 2x2 to 19x19.

    Player 0 is Black. The players in turn place a stone on an empty point or pass. A
    chain, stones of one colour joined along the lines, is taken off the board when the
    other side fills its last liberty, the last empty point beside it. Two passes in a
    row end the game. A side's area is its stones on the board and the empty points from
    which a path over empty points leads to its stones only; no stone is taken off as
    dead. Black wins with more than White's area and `komi`, White with less, and
    equality is a draw: rewards +1 and -1, or zeros.

    Options:

    - `size`: 2 to 19.
    - `komi`: what White gets for moving second, a multiple of 1/2 from -361 to 361.
      A lead in area is whole: any other number would decide as the half beside it does,
      and only a whole komi makes draws possible.
    - `ko`: moves that would repeat a position are illegal. "simple": a stone that took
      a single stone, and stands alone with one liberty, may not be taken at once.
      "positional": no board position may come a second time. "situational": none with
      the same player to move. The start counts as a position, and a pass is always
      legal; with "situational" it makes a position too.
    - `suicide`: whether a stone may be placed that takes nothing and leaves its own
      chain without a liberty, which is then taken off. A single stone that does so
      leaves the board as it was: "positional" forbids it, "simple" does not.
    - `handicap`: black stones at the start, on the fixed points of GTP: 2 to 9 on odd
      boards from 9x9, 2 to 4 on 7x7 and even boards from 8x8, else 0. White then
      begins, and the komi stays what it is.
    - `max_plies`: a game of so many moves and passes is truncated; 2 N² if None. Its
      rewards are those of the area as it stands, as if both had passed there; programs
      that would rather not take that for a result look at `truncated`.

    The defaults are the rules of Tromp and Taylor (https://tromp.github.io/go.html) but
    for suicide, which most rules in use forbid. A komi of 7.5 is what area scoring on
    19x19 and 9x9 is played with, and it rules out draws. With the simple rule alone a
    game may never end.

    Action row * N + column places a stone, row 0 at the top, and N * N passes.
    Observation [N, N, 9] bool, of the player to move: my stones; your stones; my
    stones and your stones in chains with a single liberty; where I may place a stone;
    the last stone placed; the point of a simple ko; all ones if the last move was a
    pass; all ones if I am White.

    As text a position is its rows from the top, X for Black and O for White, who is to
    move, the point that a simple ko closes, how many passes were made in a row, the
    plies so far, and the last move, "-" standing for none:
    "..X/.XO/..O X - 0 4 C1". Words may be left out from the end on. Moves are GTP's,
    "D4" or "pass", with columns A to T without I and rows from below. `from_text` also
    takes the moves from the start, "E5 C3 pass", and a game in SGF, whose komi and size
    must be those of this game and whose setup stones may be any. With superko the
    earlier positions (`past`) are not part of the text of a position; a game read from
    moves or SGF has them.

    With the simple ko rule and with superko a state takes 497 and 2085 bytes on 9x9,
    1369 and 7757 on 19x19.
    """

    version = "v0"
    num_players = 2

    def __init__(
        self,
        size: int = 9,
        komi: float = 7.5,
        ko: str = "positional",
        suicide: bool = False,
        handicap: int = 0,
        max_plies: int | None = None,
    ):
        options.check(size, komi, ko, suicide, handicap, max_plies)
        area = size * size
        self.size = size
        self.komi = komi
        self.ko = ko
        self.suicide = suicide
        self.handicap = handicap
        self.max_plies = max_plies
        self.id = f"go_{size}x{size}"
        self.num_actions = area + 1
        self.observation_shape = (size, size, 9)
        self.action_format = f"a point such as {notation.vertex(0, size)}, or pass"
        self.history_fields = () if ko == "simple" else ("past",)
        self.length = 2 * area if max_plies is None else max_plies
        self._begun = jax.jit(self._begin)
        self.jitted_step = jax.jit(self.step)

    @property
    def options(self) -> dict[str, Any]:
        names = ("size", "komi", "ko", "suicide", "handicap", "max_plies")
        return {name: getattr(self, name) for name in names}

    def init(self, key: jax.Array | None = None) -> GoState:
        del key
        cells = np.zeros((self.size, self.size), np.int8)
        cells.flat[drawing.handicap_points(self.size, self.handicap)] = 1
        return self.set_up(begin.start(cells, int(self.handicap > 0)))

    def _play(
        self, state: GoState, action: jax.Array, key: jax.Array | None
    ) -> GoState:
        del key
        player = state.current_player
        placed = chains.place(state.chains, action, player, suicide=self.suicide)
        is_pass = action == self.num_actions - 1
        ply = state.ply + jnp.int16(1)
        past = None
        if state.past is not None:
            point = bits.point(action, self.size)
            past = superko.extend(
                state.past, point, placed, player, ply, turns=self.ko == "situational"
            )
        return self._position(
            placed.chains,
            1 - player,
            ko=placed.ko,
            last_move=action.astype(jnp.int16),
            passes=jnp.where(is_pass, state.passes + jnp.int8(1), jnp.int8(0)),
            ply=ply,
            past=past,
        )

    def _position(
        self,
        chains_now: Chains,
        player: jax.Array,
        *,
        ko: jax.Array,
        last_move: jax.Array,
        passes: jax.Array,
        ply: jax.Array,
        past: superko.Past | None,
    ) -> GoState:
        """The state in which `player` is to move."""
        terminated = passes == 2
        truncated = ~terminated & (ply >= self.length)
        finished = terminated | truncated
        points = self._legal_points(chains_now, player, ko)
        points = jnp.where(finished, bits.WORD(0), points)
        if past is not None:
            points &= ~superko.repeating(
                past,
                chains_now,
                points,
                player,
                turns=self.ko == "situational",
                suicide=self.suicide,
            )
        may_pass = jnp.expand_dims(~finished, 0)
        return GoState(
            current_player=player,
            legal_action_mask=jnp.concatenate(
                [bits.spread_out(points).reshape(-1), may_pass]
            ),
            rewards=self._rewards(chains_now.stones, finished),
            terminated=terminated,
            truncated=truncated,
            chains=chains_now,
            ko=ko,
            last_move=last_move,
            passes=passes,
            ply=ply,
            past=past,
        )

    def _legal_points(
        self, chains_now: Chains, player: jax.Array, ko: jax.Array
    ) -> jax.Array:
        """Where a stone keeps a liberty and no simple ko forbids it, [N].

        It has an empty point beside it, joins a chain with another liberty, or takes.
        """
        mine, yours = chains.sides(chains_now.stones, player)
        empty = bits.empty_points(mine, yours)
        if self.suicide:
            return empty & ~ko
        in_atari = chains_now.in_atari
        good = empty | mine & ~in_atari | yours & in_atari
        return bits.around(good) & empty & ~ko

    def _rewards(self, stones: jax.Array, finished: jax.Array) -> jax.Array:
        lead = area.lead_at_end(stones, finished)
        decided = finished & (lead != self.komi)
        return win_rewards(decided, (lead < self.komi).astype(jnp.int32))

    def score(self, state: GoState) -> jax.Array:
        """Black's area less White's and komi, as the board stands: float32."""
        return area.lead(state.chains.stones) - jnp.float32(self.komi)

    def ownership(self, state: GoState) -> jax.Array:
        """Whose area each point is, [N, N] int8: 1 Black's, -1 White's, 0 nobody's."""
        black, white = bits.spread_out(area.areas(state.chains.stones)).astype(jnp.int8)
        return black - white

    def auxiliary_targets(self, state: GoState) -> AuxiliaryTargets:
        ownership, score = self.ownership(state), self.score(state)
        return AuxiliaryTargets(ownership=ownership, score=score)

    def observe(self, state: GoState) -> jax.Array:
        mine, yours = chains.sides(state.chains.stones, state.current_player)
        sets = jnp.stack(
            [
                mine,
                yours,
                mine & state.chains.in_atari,
                yours & state.chains.in_atari,
                bits.point(state.last_move.astype(jnp.int32), self.size),
                state.ko,
            ]
        )
        stones, last_move = jnp.split(bits.spread_out(sets), (4,))
        board = (self.size, self.size)
        legal = state.legal_action_mask[:-1].reshape(1, *board)
        flags = jnp.stack([state.passes > 0, state.current_player == 1])
        flags = jnp.broadcast_to(flags[:, None, None], (2, *board))
        planes = jnp.concatenate([stones, legal, last_move, flags])
        return jnp.moveaxis(planes, 0, -1)

    def to_text(self, state: GoState) -> str:
        position = notation.Position(
            cells=_cells(state),
            player=int(state.current_player),
            ko=_only_point(state.ko),
            passes=int(state.passes),
            ply=int(state.ply),
            last_move=int(state.last_move),
        )
        return notation.write_position(position)

    def from_text(self, text: str) -> GoState:
        text = text.strip()
        try:
            if text.startswith("("):
                return replay.play_record(self, notation.read_record(text))
            if "/" in text:
                position = notation.read_position(text, self.size)
                begin.check(position, self.length)
                return self.set_up(position)
            return replay.play(self, self.init(), replay.read_moves(self, text))
        except ValueError as error:
            shown = text if len(text) < 200 else f"{text[:200]}..."
            raise ValueError(f"{self.id}: in {shown!r}: {error}") from error

    def to_sgf(self, actions: Iterable[int] | str, result: str | None = None) -> str:
        """A game from the start as SGF, with size, komi, handicap and result.

        Args:
          actions: actions, or GTP moves in one string.
          result: "B+R" for White's resignation, and so on; by default that of the
            score if the game is over, "B+1.5", "W+7.5" or "0", and else none.

        Raises:
          ValueError: an illegal move, or what is no action.
        """
        if isinstance(actions, str):
            moves = replay.read_moves(self, actions)
        else:
            moves = replay.in_turn(self, map(self._checked_index, actions))
        start = self.init()
        final = replay.play(self, start, moves)
        if result is None and (final.terminated | final.truncated):
            result = notation.result(float(self.score(final)))
        return notation.write_record(
            notation.Record(
                size=self.size,
                komi=self.komi,
                handicap=self.handicap or None,
                cells=_cells(start),
                player=int(start.current_player),
                moves=moves,
                result=result,
            )
        )

    def _action_name(self, state: GoState, action: int) -> str:
        return notation.vertex(action, self.size)

    def draw(self, state: GoState) -> str:
        return drawing.draw(_cells(state), int(state.last_move), self._status(state))

    def to_svg(self, state: GoState) -> str:
        last, ko, status = state.last_move, _only_point(state.ko), self._status(state)
        return drawing.to_svg(_cells(state), int(last), ko, status)

    @functools.cached_property
    def symmetries(self) -> Symmetries:
        """Those of the square that keep the start: all eight without a handicap."""
        area = self.size * self.size
        board = np.arange(area, dtype=np.int32).reshape(self.size, self.size)
        turned = [np.rot90(board, turns) for turns in range(4)]
        images = [*turned, *(np.fliplr(image) for image in turned)]
        start = np.isin(board, drawing.handicap_points(self.size, self.handicap))
        cells = [
            image.reshape(-1) for image in images if (start.flat[image] == start).all()
        ]
        actions = [np.append(image, np.int32(area)) for image in cells]
        return Symmetries(cells=np.stack(cells), actions=np.stack(actions))

    @classmethod
    def of_sgf(cls, text: str, **options: Any) -> "Go":
        """The game that an SGF text is a record of; `from_text` then reads it.

        Size, komi (if it is given) and a handicap on the fixed points are those of the
        record; other options are as given.

        Raises:
          ValueError: the text is not SGF, or not a game that this class has.
        """
        record = notation.read_record(text)
        return cls(**{**replay.options_of(record), **options})

    def set_up(self, position: notation.Position) -> GoState:
        """The state of a position that `begin.check` takes."""
        size = self.size
        stones = np.stack([position.cells == 1, position.cells == -1])
        numbers, in_atari = begin.chains_of(position.cells)
        ko = np.arange(size * size).reshape(size, size) == position.ko
        return self._begun(
            Chains(
                stones=jnp.asarray(bits.packed(stones)),
                numbers=jnp.asarray(numbers),
                in_atari=jnp.asarray(in_atari),
            ),
            jnp.int32(position.player),
            ko=jnp.asarray(bits.packed(ko)),
            last_move=jnp.int16(position.last_move),
            passes=jnp.int8(position.passes),
            ply=jnp.int16(position.ply),
        )

    def _begin(
        self, chains_now: Chains, player: jax.Array, *, ply: jax.Array, **fields: Any
    ) -> GoState:
        """The state of a position before which nothing is known."""
        past = None
        if self.ko != "simple":
            past = superko.begin(
                chains_now.stones,
                player,
                ply,
                length=self.length,
                turns=self.ko == "situational",
            )
        return self._position(chains_now, player, ply=ply, past=past, **fields)

    def _status(self, state: GoState) -> str:
        status = self.status(state, replay.NAMES)
        if state.terminated | state.truncated:
            return f"{status}: {notation.result(float(self.score(state)))}"
        return status


def _cells(state: GoState) -> np.ndarray:
    """The board as [N, N] int8: 1 Black, -1 White."""
    black, white = bits.spread_out(np.asarray(state.chains.stones)).astype(np.int8)
    return black - white


def _only_point(points: jax.Array) -> int:
    """The action of a set of one point, -1 for an empty one."""
    found = np.flatnonzero(bits.spread_out(np.asarray(points)))
    return int(found[0]) if len(found) else -1
