"""Goofspiel: bid for prizes with cards, all bids at once."""

import dataclasses
import functools
import re
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from envs import svg
from envs.simultaneous import SimultaneousEnv, SimultaneousState

PLAYERS = ("first", "second")
MAX_CARDS = 100  # bids and prizes are int8
PRIZES = ("random", "ascending", "descending")
TIES = ("discard", "carry")
RETURNS = ("win_loss", "point_difference")


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class GoofspielState(SimultaneousState):
    """The prizes in their order and the cards that were bid for each; 0 is no bid yet.

    prizes   3  1  5  2  4     two turns are played, the prize 5 is up
    bids     2  5  0  0  0     of the first player
             4  1  0  0  0     of the second
    """

    prizes: jax.Array  # [N] int8
    bids: jax.Array  # [2, N] int8


class Goofspiel(SimultaneousEnv[GoofspielState]):
    """Both players bid a card for each prize; the higher card takes it.

    There are N prizes, worth 1 to N points, and each player holds cards 1 to N. In
    each of N turns the next prize is turned up and both bid a card at once; both cards
    are then shown and gone. The last turn is played as the others are, though both
    have one card left. Who has more points in the end wins. Played cards are known to
    both; the order of the prizes to come is not, when it is random: `init` draws it,
    all orders being equally likely, and without a key it takes `jax.random.key(0)`.
    The state holds the whole order, so that a search that steps states knows it.

    Action a bids card a + 1. Observation [N, 6] bool, a row for each card or prize of
    that number: cards in my hand, cards in your hand, the prizes at stake in this turn,
    prizes not turned up yet, prizes that I took, prizes that you took. Rewards come in
    the end: +1 and -1, zeros if points are equal, or with "point_difference" the
    player's points less the opponent's, which are not within -1 and 1 as the values of
    a search should be. A state takes 10 + 5 * N bytes, 35 for five cards.

    As text a position is its turns, "3:2-4 1:5-1 5 2 4": for each prize in order the
    bid of the first and of the second player, and then the prize that is up and those
    to come, in the order in which they will. A move is the number of a card.

    Rules: S. M. Ross, "Goofspiel: the game of pure strategy", 1971, and for ties both
    customs: the prize is gone, or is taken with the next one.

    Args:
      num_cards: N, 1 to 100.
      prizes: their order, "random", "ascending" or "descending".
      ties: what equal bids do with the prizes at stake: "discard" them, or "carry" them
        to the next turn; those of a tie in the last turn are nobody's.
      returns: "win_loss" or "point_difference".

    Raises:
      ValueError: another number of cards or another option.
    """

    version = "v0"
    num_players = 2

    def __init__(
        self,
        num_cards: int = 5,
        prizes: str = "random",
        ties: str = "discard",
        returns: str = "win_loss",
    ):
        whole = isinstance(num_cards, int) and not isinstance(num_cards, bool)
        if not (whole and 1 <= num_cards <= MAX_CARDS):
            raise ValueError(
                f"goofspiel: num_cards is a whole number from 1 to {MAX_CARDS}, got "
                f"{num_cards!r}"
            )
        for option, value, choices in (
            ("prizes", prizes, PRIZES),
            ("ties", ties, TIES),
            ("returns", returns, RETURNS),
        ):
            if value not in choices:
                raise ValueError(
                    f"goofspiel: {option} is one of {', '.join(choices)}, got {value!r}"
                )
        self.id = f"goofspiel_{num_cards}"
        self.num_cards = num_cards
        self.prizes, self.ties, self.returns = prizes, ties, returns
        self.num_actions = num_cards
        self.observation_shape = (num_cards, 6)
        self.action_format = f"a card, 1 to {num_cards}"

    @property
    def options(self) -> dict[str, Any]:
        return {
            "num_cards": self.num_cards,
            "prizes": self.prizes,
            "ties": self.ties,
            "returns": self.returns,
        }

    def init(self, key: jax.Array | None = None) -> GoofspielState:
        prizes = jnp.arange(1, self.num_cards + 1, dtype=jnp.int8)
        if self.prizes == "random":
            key = jax.random.key(0) if key is None else key
            prizes = jax.random.permutation(key, prizes)
        elif self.prizes == "descending":
            prizes = prizes[::-1]
        bids = jnp.zeros((2, self.num_cards), jnp.int8)
        return self._position(prizes, bids)

    def _play(
        self, state: GoofspielState, actions: jax.Array, key: jax.Array | None
    ) -> GoofspielState:
        del key
        cards = (actions + 1).astype(jnp.int8)
        bids = jnp.where(_up(state.bids)[None, :], cards[:, None], state.bids)
        return self._position(state.prizes, bids)

    def _position(self, prizes: jax.Array, bids: jax.Array) -> GoofspielState:
        return _position(prizes, bids, ties=self.ties, returns=self.returns)

    def observe(self, state: GoofspielState, player: ArrayLike) -> jax.Array:
        hands = _hands(state.bids)
        takers = _takers(state.bids, ties=self.ties)
        hidden = (state.bids[0] == 0) & ~_up(state.bids)
        turns = jnp.stack(
            [_at_stake(state.bids, ties=self.ties), hidden, takers == 1, takers == -1]
        )  # [4, N]
        numbers = np.arange(1, self.num_cards + 1, dtype=np.int8)
        of_prize = state.prizes[:, None] == numbers[None, :]  # [turn, prize]
        stake, hidden, *taken = (turns[:, :, None] & of_prize[None]).any(axis=1)
        mine, yours = (jnp.where(player == 0, a, b) for a, b in (hands, hands[::-1]))
        i_took, you_took = (
            jnp.where(player == 0, a, b) for a, b in (taken, taken[::-1])
        )
        return jnp.stack([mine, yours, stake, hidden, i_took, you_took], axis=-1)

    def to_text(self, state: GoofspielState) -> str:
        prizes, bids = np.asarray(state.prizes), np.asarray(state.bids)
        return " ".join(
            f"{prize}:{first}-{second}" if first else f"{prize}"
            for prize, first, second in zip(prizes, *bids, strict=True)
        )

    def from_text(self, text: str) -> GoofspielState:
        words = text.split()
        start = " ".join(self._order() or [str(n + 1) for n in range(self.num_cards)])
        if len(words) != self.num_cards:
            raise ValueError(
                f"{self.id}: got {text!r}; a position is {self.num_cards} prizes in "
                f"order, such as {start!r}, with the bids for those that are gone, "
                "such as '3:2-4'"
            )
        turns = np.zeros((3, self.num_cards), np.int8)
        open_prize = ""
        for turn, word in enumerate(words):
            where = f"{self.id}: in {text!r} {word!r}"
            match = re.fullmatch(r"([0-9]{1,3})(?::([0-9]{1,3})-([0-9]{1,3}))?", word)
            if match is None:
                raise ValueError(f"{where} is not a prize such as '3' or '3:2-4'")
            for row, number in enumerate(int(group or 0) for group in match.groups()):
                if row and match[2] is None:
                    continue
                name = ("the prize", "the first bid", "the second bid")[row]
                if not 1 <= number <= self.num_cards:
                    raise ValueError(
                        f"{where} has {name} {number}; cards are 1 to {self.num_cards}"
                    )
                if number in turns[row]:
                    raise ValueError(f"{where} has {name} {number} a second time")
                turns[row, turn] = number
            if match[2] is None:
                open_prize = open_prize or word
            elif open_prize:
                raise ValueError(f"{where} has bids though {open_prize!r} has none yet")
        prizes = [str(prize) for prize in turns[0]]
        if self._order() and prizes != self._order():
            raise ValueError(
                f"{self.id}: {text!r} has the prizes {' '.join(prizes)}; they are "
                f"{self.prizes} here: {start}"
            )
        return self._position(jnp.asarray(turns[0]), jnp.asarray(turns[1:]))

    def _order(self) -> list[str]:
        """The order of the prizes where it is fixed."""
        numbers = [str(number + 1) for number in range(self.num_cards)]
        orders = {"ascending": numbers, "descending": numbers[::-1]}
        return orders.get(self.prizes, [])

    def _action_name(self, state: GoofspielState, player: int, action: int) -> str:
        return str(action + 1)

    def draw(self, state: GoofspielState) -> str:
        """The turns, the hands and the points; ? is a prize that nobody knows yet."""
        prizes, bids, hands, points = self._shown(state)
        width = max(map(len, prizes))
        lines = [f"{'prizes':>6} │ {' '.join(f'{p:>{width}}' for p in prizes)} │"]
        for name, cards, hand, sum_of in zip(PLAYERS, bids, hands, points, strict=True):
            row = " ".join(f"{card:>{width}}" for card in cards)
            held = f"holds {' '.join(hand)}" if hand else "holds nothing"
            lines.append(f"{name:>6} │ {row} │ {sum_of} points, {held}")
        return "\n".join([*lines, self.status(state, PLAYERS)])

    def _shown(
        self, state: GoofspielState
    ) -> tuple[list[str], list[list[str]], list[list[str]], list[int]]:
        """Prizes and bids as players see them, hands, and points."""
        bids = np.asarray(state.bids)
        turn = int((bids[0] > 0).sum())
        order = [str(prize) for prize in np.asarray(state.prizes)]
        if self.prizes == "random":
            order = [p if number <= turn else "?" for number, p in enumerate(order)]
        held = np.asarray(_hands(state.bids))
        hands = [[str(card + 1) for card in np.flatnonzero(row)] for row in held]
        takers = np.asarray(_takers(state.bids, ties=self.ties))
        points = [
            int(np.asarray(state.prizes)[takers == sign].sum()) for sign in (1, -1)
        ]
        shown = [[str(bid) if bid else "·" for bid in row] for row in bids.tolist()]
        return order, shown, hands, points

    def to_svg(self, state: GoofspielState) -> str:
        """The bids beside the prizes, those taken in the colour of their taker."""
        prizes, bids, hands, points = self._shown(state)
        takers = np.asarray(_takers(state.bids, ties=self.ties))
        at_stake = np.asarray(_at_stake(state.bids, ties=self.ties))
        wide, high, gap = 46, 62, 10
        left, top = 90, 24
        width = max(300, left + self.num_cards * (wide + gap) + 20)
        picture = svg.Svg(width, top + 3 * (high + gap) + 66, "#2f6b4a")
        inks = ("#1f4e9c", "#b3372f")
        for row, (cards, name) in enumerate(
            zip(
                (bids[0], prizes, bids[1]),
                (PLAYERS[0], "prizes", PLAYERS[1]),
                strict=True,
            )
        ):
            y = top + row * (high + gap)
            label = {"text_anchor": "end", "fill": "#ffffff", "font_size": 16}
            picture.text(left - 14, y + high / 2, name, **label)
            for turn, card in enumerate(cards):
                x, player = left + turn * (wide + gap), row // 2
                taker = int(takers[turn])
                paper, ink, edge = "#ffffff", "#222222", "#1c4630"
                if row == 1:
                    ink = {1: inks[0], -1: inks[1]}.get(taker, ink)
                    paper = "#f6e3a1" if at_stake[turn] else "#f4f0e6"
                    edge = "#f2b01e" if at_stake[turn] else ink if taker else edge
                elif card != "·":
                    ink = inks[player]
                    edge = ink if taker == 1 - 2 * player else edge
                if card == "·":
                    paper, card = "none", ""
                elif card == "?":
                    paper, ink = "#46825f", "#cfe3d6"
                picture.rect(
                    x, y, wide, high, rx=6, fill=paper, stroke=edge, stroke_width=3
                )
                if card:
                    middle = x + wide / 2, y + high / 2
                    picture.text(*middle, card, fill=ink, font_size=24)
        y = top + 3 * (high + gap)
        for player, name in enumerate(PLAYERS):
            hand = " ".join(hands[player]) or "nothing"
            picture.text(
                24,
                y + 14 + 24 * player,
                f"{name}: {points[player]} points, holds {hand}",
                text_anchor="start",
                fill="#ffffff",
                font_size=15,
            )
        picture.caption(self.status(state, PLAYERS))
        return str(picture)


@functools.partial(jax.jit, static_argnames=("ties", "returns"))
def _position(
    prizes: jax.Array, bids: jax.Array, *, ties: str, returns: str
) -> GoofspielState:
    """The state after these bids."""
    terminated = bids[0, -1] > 0
    points = prizes * _takers(bids, ties=ties)
    difference = points.sum(dtype=jnp.int32)
    if returns == "win_loss":
        difference = jnp.sign(difference)
    difference = jnp.where(terminated, difference, 0)
    return GoofspielState(
        prizes=prizes,
        bids=bids,
        legal_action_mask=_hands(bids) & ~terminated,
        rewards=jnp.stack([difference, -difference]).astype(jnp.float32),
        terminated=terminated,
        truncated=jnp.zeros_like(terminated),
    )


@functools.partial(jax.jit, static_argnames="ties")
def _takers(bids: jax.Array, *, ties: str) -> jax.Array:
    """Who took the prize of each turn, [N] int8: 1 first, -1 second, 0 nobody."""
    higher = jnp.sign(bids[0] - bids[1])
    if ties == "discard":
        return higher
    # A prize goes with the first turn from its own on whose bids differ.
    turns = np.arange(bids.shape[1], dtype=np.int32)
    later = turns[None, :] >= turns[:, None]
    decided = later & (higher != 0)[None, :]
    first = decided & (jnp.cumsum(decided, axis=1, dtype=jnp.int32) == 1)
    return jnp.where(first, higher[None, :], 0).sum(axis=1, dtype=jnp.int8)


@functools.partial(jax.jit, static_argnames="ties")
def _at_stake(bids: jax.Array, *, ties: str) -> jax.Array:
    """The turns whose prizes are bid for now, [N] bool."""
    up = _up(bids)
    if ties == "discard":
        return up
    seen = up | (bids[0] > 0)
    return seen & (_takers(bids, ties=ties) == 0) & up.any()


@jax.jit
def _hands(bids: jax.Array) -> jax.Array:
    """The cards that each player still holds, [2, N] bool."""
    numbers = np.arange(1, bids.shape[1] + 1, dtype=np.int8)
    return ~(bids[:, :, None] == numbers[None, None, :]).any(axis=1)


def _up(bids: jax.Array) -> jax.Array:
    """The turn that is played now, [N] bool; none when all are."""
    unplayed = bids[0] == 0
    played_before = jnp.concatenate([jnp.ones_like(unplayed[:1]), ~unplayed[:-1]])
    return unplayed & played_before
