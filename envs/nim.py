"""Nim: take any number of objects from one heap."""

import dataclasses
import functools
import itertools
import math
import re
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from envs.env import Env, State, Symmetries, win_rewards
from envs.svg import Svg

PLAYERS = ("first", "second")
MAX_OBJECTS = 127  # heaps are int8
MAX_SYMMETRIES = 24


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class NimState(State):
    """How many objects are left in each heap: [3, 4, 5] as the default starts."""

    heaps: jax.Array  # [H] int8


class Nim(Env[NimState]):
    """Players in turn take objects from one heap; who takes the last object wins.

    In misère play who takes the last object loses. With H heaps of M objects at most,
    action heap * M + (take - 1) takes that many from a heap, so that A = H * M.
    Observation [H, M + 1] bool: each heap's size, one-hot. Rewards +1 and -1. A state
    takes 14 + H + A bytes, 32 of them for the default heaps.

    As text a position is its heaps and the player to move, "3 4 5 first"; `from_text`
    takes the first player where none is named, and any heaps of up to M objects,
    reachable from the start or not. The move "2:3" takes three from the second heap.

    Heaps that start equal may be exchanged, so that `symmetries` has every permutation
    of them, except that beyond 24 in all a set of k equal heaps has its k rotations
    only, or is left as it is. Who wins from a position is Bouton's theorem: C. L.
    Bouton, "Nim, a game with a complete mathematical theory", 1901.

    Args:
      heaps: the sizes at the start, each 1 to 127.
      misere: whether taking the last object loses.

    Raises:
      ValueError: other heaps, or a misere that is not a bool.
    """

    id = "nim"
    version = "v0"
    num_players = 2

    def __init__(self, heaps: Sequence[int] = (3, 4, 5), misere: bool = False):
        self.heaps = _checked_heaps(heaps)
        if not isinstance(misere, bool):
            raise ValueError(f"nim: misere is True or False, got {misere!r}")
        self.misere = misere
        self.max_heap = max(self.heaps)
        self.num_actions = len(self.heaps) * self.max_heap
        self.observation_shape = (len(self.heaps), self.max_heap + 1)
        self.action_format = "HEAP:TAKE, such as 1:2 for two of the first heap"

    @property
    def options(self) -> dict[str, Any]:
        return {"heaps": self.heaps, "misere": self.misere}

    def init(self, key: jax.Array | None = None) -> NimState:
        del key
        return self._position(jnp.array(self.heaps, jnp.int8), jnp.int32(0))

    def _play(
        self, state: NimState, action: jax.Array, key: jax.Array | None
    ) -> NimState:
        del key
        heap, take = action // self.max_heap, action % self.max_heap + 1
        chosen = np.arange(len(self.heaps), dtype=np.int32) == heap
        heaps = jnp.where(chosen, state.heaps - take, state.heaps).astype(jnp.int8)
        return self._position(heaps, 1 - state.current_player)

    def _position(self, heaps: jax.Array, player: jax.Array) -> NimState:
        """The state of heaps where `player` is to move and the other just moved."""
        takes = jnp.arange(1, self.max_heap + 1, dtype=jnp.int8)
        taken_last = (heaps == 0).all()
        return NimState(
            heaps=heaps,
            current_player=player,
            legal_action_mask=(takes[None, :] <= heaps[:, None]).reshape(-1),
            rewards=win_rewards(taken_last, player if self.misere else 1 - player),
            terminated=taken_last,
            truncated=jnp.zeros_like(taken_last),
        )

    def observe(self, state: NimState) -> jax.Array:
        sizes = np.arange(self.max_heap + 1, dtype=np.int8)
        return state.heaps[:, None] == sizes[None, :]

    def to_text(self, state: NimState) -> str:
        heaps = " ".join(str(heap) for heap in np.asarray(state.heaps))
        return f"{heaps} {PLAYERS[int(state.current_player)]}"

    def from_text(self, text: str) -> NimState:
        words = text.split()
        player = 0
        if words and words[-1].lower() in PLAYERS:
            player = PLAYERS.index(words.pop().lower())
        if len(words) != len(self.heaps):
            raise ValueError(
                f"nim: got {text!r}; a position is {len(self.heaps)} heaps and who is "
                "to move, such as "
                f"'{' '.join(str(heap) for heap in self.heaps)} first'"
            )
        for number, word in enumerate(words, 1):
            if not re.fullmatch(r"[0-9]{1,3}", word) or int(word) > self.max_heap:
                raise ValueError(
                    f"nim: heap {number} of {text!r} is {word!r}; a heap of this game "
                    f"has 0 to {self.max_heap} objects"
                )
        heaps = jnp.array([int(word) for word in words], jnp.int8)
        return self._position(heaps, jnp.int32(player))

    def _action_name(self, state: NimState, action: int) -> str:
        heap, take = divmod(action, self.max_heap)
        return f"{heap + 1}:{take + 1}"

    def draw(self, state: NimState) -> str:
        width = len(str(len(self.heaps)))
        rows = []
        for number, heap in enumerate(np.asarray(state.heaps).tolist(), 1):
            objects = " ".join(["●"] * heap + ["·"] * (self.max_heap - heap))
            rows.append(f"{number:>{width}} │ {objects} │ {heap}")
        return "\n".join([*rows, self._status_and_rule(state)])

    def to_svg(self, state: NimState) -> str:
        """A row of objects for each heap, those taken as empty circles."""
        width = max(24 * self.max_heap + 88, 320)
        drawing = Svg(width, 32 * len(self.heaps) + 24)
        for number, heap in enumerate(np.asarray(state.heaps).tolist()):
            y = 32 + 32 * number
            drawing.text(24, y, str(number + 1), fill="#909090", font_size=14)
            for place in range(self.heaps[number]):
                left = {"fill": "#2f6db5", "stroke": "#1f4a84"}
                taken = {"fill": "none", "stroke": "#d0d0d0"}
                x, style = 56 + 24 * place, left if place < heap else taken
                drawing.circle(x, y, 9, **style)
            x = 64 + 24 * self.max_heap
            drawing.text(x, y, str(heap), fill="#303030", font_size=16)
        drawing.caption(self._status_and_rule(state))
        return str(drawing)

    def _status_and_rule(self, state: NimState) -> str:
        rule = "the last object loses" if self.misere else "the last object wins"
        return f"{self.status(state, PLAYERS)} ({rule})"

    @functools.cached_property
    def symmetries(self) -> Symmetries:
        orders = np.array(_heap_orders(self.heaps), np.int32)  # [S, H]
        takes = np.arange(self.max_heap, dtype=np.int32)[None, None, :]
        actions = orders[:, :, None] * self.max_heap + takes
        return Symmetries(cells=orders, actions=actions.reshape(len(orders), -1))


def _checked_heaps(heaps: Any) -> tuple[int, ...]:
    wrong = f"nim: heaps is one or more whole numbers from 1 to {MAX_OBJECTS}"
    if isinstance(heaps, str) or not isinstance(heaps, Sequence) or not heaps:
        raise ValueError(f"{wrong}, got {heaps!r}")
    for heap in heaps:
        if isinstance(heap, bool) or not isinstance(heap, int):
            raise ValueError(f"{wrong}, got {heap!r} in {heaps!r}")
        if not 1 <= heap <= MAX_OBJECTS:
            raise ValueError(f"{wrong}, got {heap} in {heaps!r}")
    return tuple(heaps)


def _heap_orders(heaps: tuple[int, ...]) -> list[tuple[int, ...]]:
    """The orders of the heap slots that exchange equal heaps only, identity first.

    For each size a group of orders of its slots is chosen, and all are combined: a
    direct product, so that the orders are a group again.
    """
    orders = [tuple(range(len(heaps)))]
    for size in sorted(set(heaps)):
        slots = [slot for slot, heap in enumerate(heaps) if heap == size]
        room = MAX_SYMMETRIES // len(orders)
        if math.factorial(len(slots)) <= room:
            images = list(itertools.permutations(slots))
        elif len(slots) <= room:
            images = [tuple(slots[k:] + slots[:k]) for k in range(len(slots))]
        else:
            images = [tuple(slots)]
        orders = [
            _exchanged(order, slots, image) for order in orders for image in images
        ]
    return orders


def _exchanged(
    order: tuple[int, ...], slots: list[int], image: tuple[int, ...]
) -> tuple[int, ...]:
    exchange = dict(zip(slots, image, strict=True))
    return tuple(exchange.get(slot, slot) for slot in order)
