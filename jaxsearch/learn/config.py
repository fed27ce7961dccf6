"""The configuration of a run: how it learns, what game and net, where, for how long."""

import dataclasses
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from jaxsearch.learn.settings import LearnerSettings, Settings


@dataclass(frozen=True, kw_only=True)
class AgentConfig(LearnerSettings):
    """A folder, a length, a game and a net: of every run, whatever it learns from."""

    program: ClassVar[str]
    """What makes such runs, as a command line begins."""

    run: str | None = None
    """Folder of the run; by default the game's, as runs/connect_four."""
    resume: bool = False
    """Go on with the run in the folder, with its own configuration: of the other flags
    only the length, --save-every, --evaluate, --device and --learning-rate may be given
    anew; they are kept, too."""
    preset: str | None = None
    """The recipe whose settings stood for the defaults."""
    minutes: float | None = None
    """Length of the whole run, resumed or not, in minutes of training; 5 by default."""
    iterations: int | None = None
    """Length of the whole run in iterations; with both, what comes first."""
    save_every: int = 20
    """Iterations between checkpoints."""
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


@dataclass(frozen=True, kw_only=True)
class RunConfig(AgentConfig, Settings):
    """The configuration of a run of self-play."""

    program: ClassVar[str] = "train.py"
    evaluate: bool = True
    """Measure the agent at the end of the run."""


# What may differ between a run and its resumption.
_RESUMABLE = (
    *("run", "resume", "minutes", "iterations", "save_every", "evaluate"),
    *("device", "learning_rate"),
)
