"""The configuration of a run: how it learns, what game and net, where, for how long."""

import dataclasses
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from tyro.conf import Positional, arg

from jaxsearch.learn import hosts
from jaxsearch.learn.settings import LearnerSettings, Settings, flag


@dataclass(frozen=True, kw_only=True)
class AgentConfig(LearnerSettings):
    """A folder, a length, a game and a net: of every run, whatever it learns from."""

    program: ClassVar[str]
    """What makes such runs, as a command line begins."""

    run: str | None = None
    """Folder of the run; by default the game's, as runs/connect_four."""
    resume: bool = False
    """Go on with the run in the folder, with its own configuration: of the other flags
    only the length, --save-every, --keep-last, --keep-every, --sample-every,
    --tensorboard, --evaluate, --device, --devices, --replay-memory and
    --learning-rate may be given anew; they are kept, too."""
    minutes: float | None = None
    """Length of the whole run, resumed or not, in minutes of training; 5 by default."""
    iterations: int | None = None
    """Length of the whole run in iterations; with both, what comes first."""
    save_every: int = 20
    """Iterations between checkpoints."""
    keep_last: int = 2
    """Checkpoints to keep, the newest."""
    keep_every: int = 0
    """Checkpoints to keep besides: those of every so many iterations; 0 for none."""
    device: Literal["auto", "cpu", "gpu", "tpu"] = "auto"
    """Where to run; auto takes an accelerator if there is one."""

    env: str = "connect_four"
    """The game."""
    env_options: tuple[str, ...] = ()
    """Options of the game, such as "heaps=(3,4,5)" misere=True for nim."""

    net: str = "resnet"
    """Kind of net: resnet, or mlp for games without a board such as nim."""
    width: int = 32
    """Channels of the resnet, or units in each hidden layer of the mlp."""
    depth: int = 3
    """Residual blocks of the resnet, or hidden layers of the mlp."""
    dtype: str = "float32"
    """What the net computes in: float32 or bfloat16."""
    value_head: str = "scalar"
    """scalar, the expected result; or wdl, the chances of a win, a draw and a loss."""

    @property
    def folder(self) -> str:
        return f"runs/{self.env}" if self.run is None else self.run

    def check(self) -> None:
        super().check()
        if self.keep_every % self.save_every:
            raise ValueError(
                f"--keep-every {self.keep_every} is no multiple of --save-every "
                f"{self.save_every}, at which checkpoints are saved"
            )

    @classmethod
    def may_be_zero(cls) -> set[str]:
        return super().may_be_zero() | {"keep_every"}

    def lasting(self) -> dict[str, Any]:
        """The settings that a run has from its first iteration to the last."""
        settings = dataclasses.asdict(self)
        return {k: v for k, v in settings.items() if k not in _RESUMABLE}

    def share_done(self, iterations: int, seconds: float) -> float:
        """The share of the run that is over, from 0 to 1."""
        by_iterations = by_time = 0.0
        if self.iterations is not None:
            by_iterations = iterations / self.iterations
        if self.minutes is not None or self.iterations is None:
            by_time = seconds / 60 / (self.minutes or 5.0)
        return min(1.0, max(by_iterations, by_time))

    @property
    def auxiliary_heads(self) -> bool:
        """Whether the net tells more of the end of the game than its result."""
        return False

    def net_options(self) -> dict[str, Any]:
        """What the net is made with, apart from its depth."""
        options = {
            name: getattr(self, name) for name in ("width", "dtype", "value_head")
        }
        return options | ({"auxiliary_heads": True} if self.auxiliary_heads else {})


@dataclass(frozen=True, kw_only=True)
class RunConfig(AgentConfig, Settings):
    """The configuration of a run of self-play."""

    program: ClassVar[str] = "train.py"
    preset: str | None = None
    """The recipe whose settings stood for the defaults."""
    openings: str | None = None
    """A file of positions, one a line, from which games start before their random
    moves; the run keeps a copy."""
    evaluate: bool = True
    """Measure the agent at the end of the run."""
    sample_every: int = 100
    """Iterations between sample games, which are saved as text in the folder's games/;
    with --evaluate some are played at the end, too; 0 for none at all."""
    tensorboard: bool = False
    """Write the figures for TensorBoard as well, into the folder's tensorboard/."""
    evaluate_every: int = 0
    """Iterations between evaluations of the averaged net: a match against the net
    promoted last, Elo, solved positions; 0 for none."""
    evaluate_games: int = 64
    """Games of each match of an evaluation, an even number."""
    evaluate_simulations: int = 32
    """Simulations of the searches of an evaluation."""
    gate: float = 0.0
    """Score against the net promoted last that promotes a new net, which self-play then
    plays with; 0 to play with the newest average always."""

    coordinator: str | None = None
    """Where several processes train together: HOST:PORT of process 0, or auto where JAX
    finds the processes by itself (a TPU pod, SLURM)."""
    processes: int = 1
    """With --coordinator HOST:PORT: how many processes there are."""
    process: int = 0
    """With --coordinator HOST:PORT: which of them this is, from 0."""

    def check(self) -> None:
        super().check()
        hosts.check_flags(self.coordinator, self.processes, self.process)
        if self.openings == "":
            raise ValueError("--openings is a file of positions, got ''")
        if self.gate > 1:
            raise ValueError(f"--gate is a share from 0 to 1, got {self.gate}")
        if self.gate and not self.evaluate_every:
            raise ValueError(
                f"--gate {self.gate} needs evaluations: add --evaluate-every 50, say"
            )
        if self.evaluate_games % 2:
            raise ValueError(
                f"--evaluate-games must be even, got {self.evaluate_games}: every "
                "opening is played twice, with the seats exchanged"
            )

    @property
    def auxiliary_heads(self) -> bool:
        return self.auxiliary_weight > 0

    @classmethod
    def may_be_zero(cls) -> set[str]:
        zeros = {"process", "sample_every", "evaluate_every", "gate"}
        return super().may_be_zero() | zeros


OF_COMMAND = ("run", "resume", "coordinator", "processes", "process")
"""What belongs to a command and not to the run."""


@dataclass(frozen=True, kw_only=True)
class DistillConfig(AgentConfig):
    """Fits a net to what players say about positions.

        python train.py distill 'runs/connect_four?search=puct&sims=128' \\
            --run runs/small --width 16 --depth 2
        python train.py distill 'runs/a?search=raw' 'runs/b?search=raw' --run runs/one

    A teacher is a player as evaluate.py takes it. It tells of every position how good
    it finds the moves and the value: a search the weights that it gives the moves and
    the value of its root, search=raw what its net says. Several teachers are an
    ensemble: the mean of their policies and values is learned. The positions are those
    of a file, or of games that the teachers play. The folder is that of a run, which
    evaluate.py plays.
    """

    program: ClassVar[str] = "train.py distill"

    teachers: Annotated[Positional[tuple[str, ...]], arg(metavar="TEACHER")] = ()
    """Players, such as 'runs/connect_four?search=puct&sims=128' or 'runs/a?search=raw',
    in quotes in a shell."""
    run: str | None = None
    """Folder of the run; runs/distilled by default."""
    env: str = ""
    """The game, where no teacher names a run."""
    positions: str | None = None
    """A file with a position in each line, as the game writes it; without it the
    teachers play games."""
    games: int = 1000
    """Games that the teachers play."""
    opening_plies: int = 8
    """A game starts after a random number of random moves, up to this one."""
    temperature: float = 1.0
    """Of the moves of those games, drawn in proportion to policy ** (1 / temperature);
    0 for the best ones."""
    teacher_batch: int = 128
    """Positions that the teachers see at once, and games that they play side by
    side."""
    held_out_share: float = 0.1
    """Share of the positions that is not learned from, but measures what was."""
    updates: int = 50
    """Learning steps in an iteration; the held-out positions are measured after it."""

    @property
    def folder(self) -> str:
        return "runs/distilled" if self.run is None else self.run

    def check(self) -> None:
        super().check()
        if not self.teachers:
            raise ValueError(
                "distill needs one or more teachers, such as "
                "'runs/connect_four?search=puct&sims=128'"
            )
        if self.held_out_share >= 1:
            raise ValueError(
                f"--held-out-share {self.held_out_share} leaves no position to learn "
                "from"
            )
        if self.env_options and not self.env:
            raise ValueError("--env-options is for a game that --env names")
        defaults = {field.name: field.default for field in dataclasses.fields(self)}
        for name in ("games", "opening_plies", "temperature"):
            if self.positions is not None and getattr(self, name) != defaults[name]:
                raise ValueError(
                    f"{flag(name)} is of games that the teachers play, which they do "
                    f"not with --positions {self.positions}: leave one of them out"
                )

    @classmethod
    def may_be_zero(cls) -> set[str]:
        return super().may_be_zero() | {"opening_plies", "temperature"}


# What may differ between a run and its resumption.
_RESUMABLE = (
    *OF_COMMAND,
    *("minutes", "iterations", "save_every", "keep_last", "keep_every"),
    *("sample_every", "tensorboard", "evaluate"),
    *("device", "devices", "replay_memory", "learning_rate"),
)
