"""Oware Abapa: sow seeds around twelve houses and capture them in twos and threes."""

import dataclasses
import functools
import math
import re
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from envs.env import Env, State, win_rewards
from envs.svg import Svg

PLAYERS = ("South", "North")
HOUSES = ("ABCDEF", "abcdef")
SEEDS = 48
TO_DRAW = SEEDS // 2
MOST_PLIES = 32767
MOST_COUNTED = 2**31 - 1  # without a cap; plies are int32
GRAND_SLAMS = ("nothing", "capture", "forbidden")

# The bit of each of your houses; captures run back through them, from low bits to high.
BITS = np.array([32, 16, 8, 4, 2, 1], np.int32)


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class OwareState(State):
    """The rows of both players from the left as each sees it, in the order of sowing.

    f  e  d  c  b  a
    0  0  0  3  0  1     North: [1, 0, 3, 0, 0, 0]
    2  0  0  0  0  5     South: [2, 0, 0, 0, 0, 5]
    A  B  C  D  E  F
    """

    seeds: jax.Array  # [2, 6] int8
    stores: jax.Array  # [2] int8: what each player has captured
    plies: jax.Array  # int32
    # For `repetition`, and None without it: how many plies the last capture or else the
    # first position had, and the seeds at each number of plies since.
    captured: jax.Array | None  # int32
    history: jax.Array | None  # [max_plies + 1, 12] int8


class Oware(Env[OwareState]):
    """Sow the seeds of a house one by one; 25 of the 48 captured win.

    Player 0 is South and moves first, with houses A to F; North has a to f. Each house
    starts with four seeds. A move takes all seeds of an own house and sows them, one a
    house, on along the own row, through the other's and around, past the house that
    they came from (12 seeds or more). If the last seed makes two or three in a house of
    the other, they are captured, and so are those of the houses before it, back to
    the first one of the other's row that has not two or three.

    A grand slam would capture all that the other has. By default it captures nothing,
    as in the Abapa tournament rules; with grand_slam="capture" it captures, and with
    "forbidden" it is no legal move. Who sees the other without seeds must play a move
    that sows into the other's row. A player without a legal move ends the game: each
    takes the seeds of their own row. 25 seeds win at once. When the game ends with as
    many each it is a draw: 24 and 24, of all 48.

    A game of `max_plies` moves that has not ended is truncated, with zero rewards. With
    `repetition` a position that was there since the last capture, with the same player
    to move, ends the game, and each takes the seeds of their own row, as in OpenSpiel.
    Without it only the cap ends a game that goes round in circles. Without a cap plies
    are counted up to 2147483647, and stay there.

    Action 0 to 5 is a house of the player to move, A to F or a to f. Observation
    [2, 6, 15] float32, with North's row, or that of the other, on top and from right to
    left: 12 planes of whether a house has 1, 2, .. 12 seeds or more, its seeds / 12, my
    captures / 24, and yours / 24. Rewards +1 and -1, or zeros for a draw. A state takes
    38 bytes, and with `repetition` 4 more, and 12 for each of max_plies + 1 positions.

    A move is its house. As text a position is North's row from f to a, South's from A
    to F, what South and North have captured, who is to move, and the plies played:
    "4,4,4,4,4,4/4,4,4,4,4,4 0-0 South 0". `from_text` takes 0 plies where none are
    given, boards of fewer than 48 seeds in all, reachable or not, and the moves from
    the start, "DfAb". Earlier positions do not show in text.

    Rules: http://www.joansala.com/auale/rules/en/ and
    https://www.codingame.com/multiplayer/bot-programming/oware-abapa

    Args:
      grand_slam: "nothing", "capture" or "forbidden".
      max_plies: the cap, 1 to 32767, or None for none; CodinGame's 200.
      repetition: whether a repeated position ends the game; needs a cap.

    Raises:
      ValueError: other values, or repetition without a cap.
    """

    id = "oware"
    version = "v0"
    num_players = 2
    case_matters = True  # a house of South, or of North
    num_actions = 6
    observation_shape = (2, 6, 15)
    action_format = "an own house with seeds, A to F for South and a to f for North"

    def __init__(
        self,
        grand_slam: str = "nothing",
        max_plies: int | None = 200,
        repetition: bool = False,
    ):
        if grand_slam not in GRAND_SLAMS:
            raise ValueError(
                f"oware: grand_slam is one of {', '.join(GRAND_SLAMS)}, got "
                f"{grand_slam!r}"
            )
        whole = isinstance(max_plies, int) and not isinstance(max_plies, bool)
        if max_plies is not None and not (whole and 1 <= max_plies <= MOST_PLIES):
            raise ValueError(
                f"oware: max_plies is a whole number from 1 to {MOST_PLIES}, or None, "
                f"got {max_plies!r}"
            )
        if not isinstance(repetition, bool):
            raise ValueError(f"oware: repetition is True or False, got {repetition!r}")
        if repetition and max_plies is None:
            raise ValueError(
                "oware: repetition needs a max_plies, since a state then holds as many "
                "positions; got None"
            )
        self.grand_slam = grand_slam
        self.max_plies = max_plies
        self.repetition = repetition
        self.history_fields = ("history", "captured") if repetition else ()

    @property
    def options(self) -> dict[str, Any]:
        return {
            "grand_slam": self.grand_slam,
            "max_plies": self.max_plies,
            "repetition": self.repetition,
        }

    def init(self, key: jax.Array | None = None) -> OwareState:
        del key
        seeds = np.full((2, 6), SEEDS // 12, np.int8)
        return self._begin(seeds, np.zeros(2, np.int8), player=0, plies=0)

    def _begin(
        self, seeds: np.ndarray, stores: np.ndarray, player: int, plies: int
    ) -> OwareState:
        """The state of a position without a past."""
        ply, captured, history = np.int32(plies), None, None
        if self.repetition and self.max_plies is not None:
            captured, history = ply, np.zeros((self.max_plies + 1, 12), np.int8)
        return _position(self, seeds, stores, np.int32(player), ply, captured, history)

    def _play(
        self, state: OwareState, action: jax.Array, key: jax.Array | None
    ) -> OwareState:
        del key
        player = state.current_player
        first = player == 0
        houses = jnp.where(first, state.seeds, state.seeds[::-1]).reshape(12)
        houses, run, slam = _sow(houses, action)
        if self.grand_slam == "nothing":
            run = jnp.where(slam, 0, run)
        taken = jnp.where(run & BITS != 0, houses[6:], 0)
        gain = taken.sum(dtype=jnp.int8)
        rows = jnp.stack([houses[:6], houses[6:] - taken])
        mover = np.arange(2, dtype=np.int32) == player
        plies = jnp.minimum(state.plies, MOST_COUNTED - 1) + 1
        captured = state.captured
        if captured is not None:
            captured = jnp.where(gain > 0, plies, captured)
        return _position(
            self,
            jnp.where(first, rows, rows[::-1]),
            state.stores + jnp.where(mover, gain, 0),
            1 - player,
            plies,
            captured,
            state.history,
        )

    def observe(self, state: OwareState) -> jax.Array:
        first = state.current_player == 0
        mine, yours = jnp.where(first, state.seeds, state.seeds[::-1])
        stores = jnp.where(first, state.stores, state.stores[::-1])
        seeds = jnp.stack([yours[::-1], mine])[:, :, None]
        steps = seeds > np.arange(12, dtype=np.int8)[None, None, :]
        captures = jnp.broadcast_to(stores[None, None, :] / TO_DRAW, (2, 6, 2))
        planes = [steps, seeds / 12, captures]
        return jnp.concatenate(planes, axis=2, dtype=jnp.float32)

    def to_text(self, state: OwareState) -> str:
        south, north = np.asarray(state.seeds).tolist()
        rows = "/".join(",".join(map(str, row)) for row in (north[::-1], south))
        stores = "-".join(str(store) for store in np.asarray(state.stores))
        player = PLAYERS[int(state.current_player)]
        return f"{rows} {stores} {player} {int(state.plies)}"

    def from_text(self, text: str) -> OwareState:
        words = text.split()
        if re.fullmatch("[A-Fa-f]*", "".join(words)):
            return self._play_moves("".join(words))
        match = re.fullmatch(
            r"(\d+(?:,\d+){5})/(\d+(?:,\d+){5}) (\d+)-(\d+) (\w+)(?: (\d+))?",
            " ".join(words),
            re.ASCII,
        )
        if not match or match[5].capitalize() not in PLAYERS:
            raise ValueError(
                f"oware: got {text!r}; a position is North's row from f to a, South's "
                "from A to F, their captures, who is to move and the plies played, "
                "such as '4,4,4,4,4,4/4,4,4,4,4,4 0-0 South 0', or the moves from the "
                "start, such as 'DfAb'"
            )
        for number, digits in enumerate(re.findall("[0-9]+", text), 1):
            if len(digits.lstrip("0")) > 10:
                raise ValueError(
                    f"oware: number {number} of the text, {digits[:10]}..., has "
                    f"{len(digits)} digits; there are {SEEDS} seeds, and at most "
                    f"{self._most_plies} plies"
                )
        north, south = ([_number(n) for n in match[k].split(",")] for k in (1, 2))
        stores, plies = [_number(match[3]), _number(match[4])], _number(match[6] or "")
        total = sum(north) + sum(south) + sum(stores)
        if total > SEEDS:
            raise ValueError(f"oware: {text!r} has {total} seeds; there are {SEEDS}")
        cap = self._most_plies
        if plies > cap:
            raise ValueError(f"oware: {text!r} has {plies} plies; the cap is {cap}")
        seeds = np.array([south, north[::-1]], np.int8)
        player = PLAYERS.index(match[5].capitalize())
        return self._begin(seeds, np.array(stores, np.int8), player, plies)

    @property
    def _most_plies(self) -> int:
        return MOST_COUNTED if self.max_plies is None else self.max_plies

    def _play_moves(self, moves: str) -> OwareState:
        state = self.init()
        for number, move in enumerate(moves, 1):
            where = f"oware: move {number} of {moves!r}, {move},"
            player = int(state.current_player)
            if state.terminated | state.truncated:
                raise ValueError(f"{where} comes after the end of the game")
            action = HOUSES[player].find(move)
            if action < 0:
                raise ValueError(f"{where} is no house of {PLAYERS[player]}, the mover")
            if not state.legal_action_mask[action]:
                legal = np.flatnonzero(state.legal_action_mask)
                names = " ".join(HOUSES[player][house] for house in legal)
                raise ValueError(f"{where} is not legal there; legal are {names}")
            state = _jitted_step(self, state, action)
        return state

    def _action_name(self, state: OwareState, action: int) -> str:
        return HOUSES[int(state.current_player)][action]

    def draw(self, state: OwareState) -> str:
        """The houses as South sees them, and the captures of both on their sides."""
        south, north = np.asarray(state.seeds).tolist()
        stores = np.asarray(state.stores).tolist()

        def line(cells):
            return " ".join(f"{cell:>2}" for cell in cells)

        return "\n".join(
            [
                f"     {line(HOUSES[1][::-1])}",
                f"{stores[1]:>2} │ {line(north[::-1])} │",
                f"   │ {line(south)} │ {stores[0]}",
                f"     {line(HOUSES[0])}",
                self.status(state, PLAYERS),
            ]
        )

    def to_svg(self, state: OwareState) -> str:
        unit, width, height = 80, 640, 270
        drawing = Svg(width, height)
        drawing.rect(5, 30, width - 10, height - 60, rx=60, fill="#a8713a")
        legal = np.asarray(state.legal_action_mask)
        white = {"fill": "#ffffff"}
        for player, row in enumerate(np.asarray(state.seeds).tolist()):
            name_y, y, count_y = ((255, 195, 147), (15, 75, 123))[player]
            mine = player == int(state.current_player)
            for house, seeds in enumerate(row):
                x = unit * (1.5 + house) if player == 0 else unit * (6.5 - house)
                edge = "#ffd75e" if mine and legal[house] else "#5f3c16"
                drawing.circle(x, y, 36, fill="#7b4f22", stroke=edge, stroke_width=3)
                _draw_seeds(drawing, x, y, seeds)
                drawing.text(x, count_y, str(seeds), font_size=16, **white)
                drawing.text(x, name_y, HOUSES[player][house], font_size=18)
            x, store = (width - 42, 42)[player], str(state.stores[player])
            drawing.text(x, height / 2 - 10, store, font_size=26, **white)
            drawing.text(x, height / 2 + 18, PLAYERS[player], font_size=14, **white)
        drawing.caption(self.status(state, PLAYERS))
        return str(drawing)


@functools.partial(jax.jit, static_argnames="env")
def _position(
    env: Oware,
    seeds: jax.Array,
    stores: jax.Array,
    player: jax.Array,
    plies: jax.Array,
    captured: jax.Array | None,
    history: jax.Array | None,
) -> OwareState:
    """The state of a position in which `player` is to move."""
    mine, yours = jnp.where(player == 0, seeds, seeds[::-1])
    feeds = mine > np.arange(5, -1, -1, dtype=np.int8)
    legal = (mine > 0) & (feeds | (yours > 0).any())
    if env.grand_slam == "forbidden":
        houses = jnp.concatenate([mine, yours])
        actions = np.arange(6, dtype=np.int32)
        legal &= ~jax.vmap(lambda action: _sow(houses, action)[2])(actions)
    won = (stores >= TO_DRAW + 1).any()
    collects = ~legal.any()
    if captured is not None and history is not None:
        position, row = seeds.reshape(12), np.arange(len(history), dtype=np.int32)
        past = (row >= captured) & (row < plies) & ((row ^ plies) & 1 == 0)
        collects |= (past & (history == position[None, :]).all(axis=1)).any()
        history = jnp.where((row == plies)[:, None], position[None, :], history)
    collects &= ~won
    stores += jnp.where(collects, seeds.sum(axis=1, dtype=jnp.int8), 0)
    lead = stores[0] - stores[1]
    terminated = won | collects
    truncated = jnp.zeros_like(terminated)
    if env.max_plies is not None:
        truncated = ~terminated & (plies >= env.max_plies)
    return OwareState(
        seeds=jnp.where(collects, 0, seeds),
        stores=stores,
        plies=plies,
        captured=captured,
        history=history,
        current_player=player,
        legal_action_mask=legal & ~(terminated | truncated),
        rewards=win_rewards(terminated & (lead != 0), (lead < 0).astype(jnp.int32)),
        terminated=terminated,
        truncated=truncated,
    )


def _sow(
    houses: jax.Array, action: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """The houses after sowing; what would be captured; and whether that is all.

    Args:
      houses: [12] int8, those of the mover and then the other's.
      action: a house of the mover, int32.

    Returns:
      The houses [12], the captures as a sum of `BITS`, and whether they are all that
      the other has.
    """
    place = np.arange(12, dtype=np.int8) - action.astype(jnp.int8)
    distance = jnp.where(place <= 0, place + 12, place)  # from the origin: 1 to 12
    origin = distance == 12
    num_seeds = jnp.where(origin, houses, 0).sum(dtype=jnp.int8)
    # A round reaches the eleven other houses: how often does it come to each?
    rounds = sum(
        (num_seeds >= distance + np.int8(11 * k)).astype(jnp.int8) for k in range(5)
    )
    houses = jnp.where(origin, 0, houses + rounds)
    last = action + (num_seeds.astype(jnp.int32) - 1) % 11 + 1
    last = jnp.where(last < 12, last, last - 12)
    yours = houses[6:]
    full = jnp.where((yours == 2) | (yours == 3), BITS, 0).sum(dtype=jnp.int32)
    # Adding the bit of the last house carries through the houses of two and three that
    # stand before it, and clears them. A bit beyond the row clears nothing.
    run = full & ~(full + (1 << (11 - last)))
    occupied = jnp.where(yours > 0, BITS, 0).sum(dtype=jnp.int32)
    return houses, run, (run == occupied) & (run != 0)


def _number(digits: str) -> int:
    """A number with few digits but for zeros in front; 0 for none."""
    return int(digits.lstrip("0") or "0")


@functools.partial(jax.jit, static_argnames="env")
def _jitted_step(env: Oware, state: OwareState, action: jax.Array) -> OwareState:
    return env.step(state, action)


def _draw_seeds(drawing: Svg, x: float, y: float, count: int) -> None:
    """Seeds in a spiral from the middle of a house."""
    for seed in range(count):
        turn, reach = seed * 2.4, min(7.5 * math.sqrt(seed), 30)
        drawing.circle(
            x + reach * math.cos(turn),
            y + reach * math.sin(turn),
            5.5,
            fill="#d8d2bd",
            stroke="#6b665a",
        )
