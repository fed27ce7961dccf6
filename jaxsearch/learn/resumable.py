"""A run in memory: what checkpoints keep of it, and how it is taken up again."""

import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from rich.console import Console

from jaxsearch import backend
from jaxsearch.learn import hosts
from jaxsearch.learn.checkpoint import Checkpoints
from jaxsearch.learn.config import AgentConfig
from jaxsearch.learn.run_folder import RunFolder


class Resumable(ABC):
    """What self-play and fits have in common.

    Attributes:
      average: the averaged parameters, which are kept and play.
      state: everything else that a run needs to go on; `iteration` [] int32 counts the
        iterations and `seconds` [] float32 the time spent in them.
    """

    average: Any
    state: Any

    def __init__(self, config: AgentConfig):
        self._config = config
        self._began = time.monotonic()

    @abstractmethod
    def compile(self) -> None:
        """Compiles the programs, once for the whole run."""

    @property
    def parts(self) -> dict[str, Any]:
        """What a checkpoint holds: pytrees of arrays, by name.

        What is added here comes back in `restore`. Small data of the host goes under
        the name "notes", as JSON takes it.
        """
        return {"agent": self.average, "state": self.state}

    def restore(self, parts: Mapping[str, Any]) -> None:
        self.average, self.state = parts["agent"], parts["state"]

    @property
    def iteration(self) -> int:
        return int(self.state.iteration)

    @property
    def told(self) -> int:
        """The last iteration of which the figures have been given."""
        return self.iteration

    @property
    def share_done(self) -> float:
        """The share of the run that is over, from 0 to 1."""
        return self._config.share_done(self.iteration, float(self.state.seconds))

    def set_up(
        self, folder: RunFolder, checkpoints: Checkpoints, console: Console
    ) -> None:
        """Takes up the newest checkpoint, or saves the first one, and compiles.

        Raises:
          UnusableRunError: no checkpoint can be read.
          OSError: something cannot be written.
        """
        if any(checkpoints.steps):  # what was saved at 0 is made anew
            step, parts, damaged = checkpoints.load_newest(**_arrays(self.parts))
            self.restore(parts)
            for line in damaged:
                console.print(f"warning: {line}", soft_wrap=True)
            console.print(f"going on from iteration {step}")
        else:
            checkpoints.save(0, **self.parts)
            checkpoints.wait()  # there is nothing else to go on from
        with hosts.together():
            folder.write_config(self._config)
            folder.write_versions(backend.describe())
            for line in folder.cut_metrics(self.told):
                console.print(f"warning: {line}", soft_wrap=True)
        self.compile()
        console.print(f"set up in {time.monotonic() - self._began:.0f} s")

    def tell_stopped(
        self, signal_name: str, folder: RunFolder, console: Console
    ) -> None:
        console.print(
            f"{signal_name}: stopped after iteration {self.iteration}, everything is "
            f"saved. Go on with:\n  {folder.resume_command}",
            soft_wrap=True,
        )


def open_checkpoints(folder: RunFolder, config: AgentConfig) -> Checkpoints:
    """Those of a run, to save more of them."""
    return Checkpoints(
        folder.checkpoints,
        config.lasting(),
        keep_last=config.keep_last,
        keep_every=config.keep_every,
        writable=True,
    )


def _arrays(parts: dict[str, Any]) -> dict[str, Any]:
    return {name: part for name, part in parts.items() if name != "notes"}
