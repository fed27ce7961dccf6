"""Games of the pgx library behind our contract: `envs.make("pgx:go_9x9")`."""

import base64
import contextlib
import dataclasses
import difflib
import inspect
import re
import xml.etree.ElementTree as ElementTree
import zlib
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from envs.env import Env, State

PGX_PREFIX = "pgx:"

_FIELDS = tuple(field.name for field in dataclasses.fields(State))
_DROPPED = "observation"
_NOT_INSTALLED = (
    "games whose name starts with 'pgx:' need the pgx library: pip install pgx"
)


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class PgxState(State):
    """A state of pgx in two parts: what all our states have, and the rest of it."""

    position: dict[str, Any]  # pgx's own fields by name, without the observation


class PgxEnv(Env[PgxState]):
    """A game of pgx (https://github.com/sotetsuk/pgx), by pgx's rules and numbers.

    Actions, observation (whole numbers become float32), rewards and version are pgx's,
    and pgx draws which player begins: player 0 need not be the first to move. Kept
    otherwise than pgx does: the state holds no observation; a finished state has no
    legal action; actions out of range are illegal, and an illegal action leaves the
    position as it is and shares +1 among the other players.

    `init` without a key starts as with `jax.random.key(0)`. Games with chance moves
    (2048, backgammon, minatar) need a key at each step. In games with hidden cards
    (kuhn_poker, leduc_holdem, sparrow_mahjong) the state holds every card: `observe`
    shows what the player to move knows, but a search of the state sees all. pgx keeps
    a move cap inside its rules (chess, Go, shogi), so that it terminates and does not
    truncate.

    As text a position is the game, its version, and all bytes of the state, compressed,
    in base64; a move is its number. The SVG is pgx's own.

    Args:
      game: one of `pgx.available_envs()`, such as "go_9x9".
      **options: arguments of pgx's class; those of Go are komi, history_length and
        max_terminal_steps.

    Raises:
      ValueError: pgx is not installed, or has no such game or option.
    """

    def __init__(self, game: str, **options: Any):
        with _as_pgx_was_written():
            self._pgx = _make(game, options)
            try:  # what a state looks like, with shapes in place of arrays
                self._template = jax.eval_shape(self._pgx.init, jax.random.key(0))
            except (IndexError, TypeError) as error:
                raise ValueError(f"pgx:{game} with {options}: {error}") from error
        self._game = game
        self._options = options
        self.id = PGX_PREFIX + game
        self.version = self._pgx.version
        self.num_players = self._pgx.num_players
        self.num_actions = self._template.legal_action_mask.shape[0]
        self.observation_shape = self._template.observation.shape
        self.action_format = f"the number of an action, 0 to {self.num_actions - 1}"

    @property
    def options(self) -> dict[str, Any]:
        return {"game": self._game, **self._options}

    def init(self, key: jax.Array | None = None) -> PgxState:
        with _as_pgx_was_written():
            return self._ours(self._pgx.init(jax.random.key(0) if key is None else key))

    def _play(
        self, state: PgxState, action: jax.Array, key: jax.Array | None
    ) -> PgxState:
        try:
            with _as_pgx_was_written():
                return self._ours(self._pgx.step(self._theirs(state), action, key))
        except AssertionError as error:
            if key is None:
                raise ValueError(
                    f"{self.id} has chance moves: give step a key"
                ) from error
            raise

    def observe(self, state: PgxState) -> jax.Array:
        with _as_pgx_was_written():
            shown = self._pgx.observe(self._theirs(state))
        return shown if shown.dtype == jnp.bool_ else shown.astype(jnp.float32)

    def to_text(self, state: PgxState) -> str:
        leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(state)]
        data = zlib.compress(b"".join(leaf.tobytes() for leaf in leaves), 9)
        text = base64.urlsafe_b64encode(data).decode()
        return f"{self.id} {self.version} {text}"

    def from_text(self, text: str) -> PgxState:
        words = text.split()
        if len(words) != 3 or words[:2] != [self.id, self.version]:
            raise ValueError(
                f"{self.id}: got {_shortened(text)}; a position is "
                f"'{self.id} {self.version} ' and what to_text gave after it"
            )
        types, tree = jax.tree.flatten(jax.eval_shape(self.init))
        sizes = [leaf.dtype.itemsize * int(np.prod(leaf.shape)) for leaf in types]
        data = _decompressed(words[2], sum(sizes))
        if data is None:
            raise ValueError(
                f"{self.id}: {_shortened(words[2])} is cut short, changed, or of other "
                "options: only what to_text gave can be read"
            )
        pieces = np.split(np.frombuffer(data, np.uint8), np.cumsum(sizes)[:-1])
        leaves = []
        for leaf, piece in zip(types, pieces, strict=True):
            if leaf.dtype == np.bool_ and piece.max(initial=0) > 1:
                raise ValueError(f"{self.id}: no state: a bool is 0 or 1")
            leaves.append(jnp.asarray(piece.view(leaf.dtype).reshape(leaf.shape)))
        state: PgxState = jax.tree.unflatten(tree, leaves)
        player, finished = state.current_player, state.terminated | state.truncated
        if (
            not 0 <= player < self.num_players
            or state.legal_action_mask.any() == finished
        ):
            raise ValueError(
                f"{self.id}: no state of a game: player {player} is to move, with "
                f"{state.legal_action_mask.sum()} legal actions"
            )
        return state

    def _action_name(self, state: PgxState, action: int) -> str:
        return str(action)

    def draw(self, state: PgxState) -> str:
        """What can be said of any game: how far it is, and who is to move or won."""
        plies = int(state.position["_step_count"])
        rewards = ", ".join(f"{reward:g}" for reward in np.asarray(state.rewards))
        if state.terminated | state.truncated:
            status = f"finished, rewards {rewards}"
        else:
            legal = int(state.legal_action_mask.sum())
            status = f"player {state.current_player} to move, {legal} legal actions"
        return f"{self.id} after {plies} plies: {status}"

    def to_svg(self, state: PgxState) -> str:
        drawing = self._theirs(jax.tree.map(jnp.asarray, state)).to_svg()
        root = ElementTree.fromstring(drawing)
        if "viewBox" in root.attrib:
            return drawing
        width, height = (
            re.sub(r"[^0-9.]", "", root.attrib[side]) for side in ("width", "height")
        )
        view = f'viewBox="0 0 {width} {height}"'
        return re.sub(r"<svg\b", f"<svg {view}", drawing, count=1)

    def _ours(self, theirs: Any) -> PgxState:
        # A start of pgx may hold a Python number where later states hold an array.
        theirs = jax.tree.map(
            lambda leaf, like: jnp.asarray(leaf, like.dtype), theirs, self._template
        )
        finished = theirs.terminated | theirs.truncated
        fields = {name: getattr(theirs, name) for name in _FIELDS}
        fields["legal_action_mask"] = theirs.legal_action_mask & ~finished
        position = {
            field.name: getattr(theirs, field.name)
            for field in dataclasses.fields(theirs)
            if field.name not in (*_FIELDS, _DROPPED)
        }
        return PgxState(position=position, **fields)

    def _theirs(self, state: PgxState) -> Any:
        """The state as pgx has it, its observation empty: no rule looks at it."""
        shown = self._template.observation
        return self._template.replace(
            **{name: getattr(state, name) for name in _FIELDS},
            **state.position,
            observation=jnp.zeros(shown.shape, shown.dtype),
        )


@contextlib.contextmanager
def _as_pgx_was_written() -> Iterator[None]:
    """pgx draws tables from raw keys, and has NumPy's rules for shapes that differ."""
    with jax.legacy_prng_key("allow"), jax.numpy_rank_promotion("allow"):
        yield


def _make(name: str, options: dict[str, Any]) -> Any:
    """The game of pgx; its module starts JAX, so that it is imported here."""
    try:
        import pgx
    except ImportError as error:
        raise ValueError(_NOT_INSTALLED) from error
    names = pgx.available_envs()
    if name not in names:
        near = difflib.get_close_matches(str(name), names, n=1)
        hint = f"did you mean '{PGX_PREFIX}{near[0]}'? " if near else ""
        raise ValueError(
            f"pgx has no game {name!r}: {hint}its games are {', '.join(names)}"
        )
    game = pgx.make(name)
    if not options:
        return game
    taken = {
        option: parameter.default
        for option, parameter in inspect.signature(type(game)).parameters.items()
    }
    told = {}
    if size := re.fullmatch(r"go_(\d+)x\d+", name):
        told["size"] = int(size[1])
    unknown = sorted(set(options) - (taken.keys() - told.keys()))
    if unknown:
        takes = ", ".join(f"{k}={v!r}" for k, v in taken.items() if k not in told)
        raise ValueError(
            f"{PGX_PREFIX}{name} has no option {unknown[0]!r}; "
            + (f"its options: {takes}" if takes else "it takes none")
        )
    try:
        return type(game)(**told, **options)
    except (TypeError, ValueError, AssertionError) as error:
        raise ValueError(
            f"{PGX_PREFIX}{name}: pgx does not take {options}: {error}"
        ) from error


def _decompressed(text: str, size: int) -> bytes | None:
    """The bytes that were compressed, if there are `size` of them and all is whole."""
    unpacker = zlib.decompressobj()
    try:
        packed = base64.b64decode(text.encode(), altchars=b"-_", validate=True)
        data = unpacker.decompress(packed, size + 1)
    except (ValueError, zlib.error):
        return None
    whole = unpacker.eof and not unpacker.unused_data
    return data if whole and len(data) == size else None


def _shortened(text: str) -> str:
    return repr(text if len(text) <= 40 else f"{text[:30]}...")
