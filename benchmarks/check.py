"""Are the searches right on this device? Their visits beside mctx's, in float32.

    python -m benchmarks.check

Searches random roots of the synthetic game with each of our policies and with mctx's,
same keys and default options, and compares the visit counts of the roots. Exits with
code 1 where they differ in more than a hundredth of the rows.

Scores there are not tied, yet two may be closer than float32 rounds, and than the noise
of 1e-7 by which mctx breaks ties. Then either may be followed. With the default size
that happens in a few rows of a thousand at most, a fault shows in nearly all.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import jax
import numpy as np
import tyro

from benchmarks import models
from benchmarks.report import Options as SharedOptions
from benchmarks.report import Report
from jaxsearch.search.policy_names import policy_named

PAIRS = (("puct", "mctx-puct"), ("gumbel", "mctx-gumbel"))
MOST_DIFFERENT = 0.01  # of the rows


@dataclass(frozen=True, kw_only=True)
class Options(SharedOptions):
    """How much to compare."""

    rows: int = 512
    simulations: int = 64
    actions: int = 82


def main(options: Options) -> int:
    """Returns the exit code."""
    report = Report("check", options)
    if options.tiny:
        options = replace(options, rows=16, simulations=8, actions=5)
    model = models.synthetic(options.rows, options.actions)
    code = 0
    for policy, rival in PAIRS:
        visits = [
            root_visits(model, each, options.simulations) for each in (policy, rival)
        ]
        different = int(np.sum(np.any(visits[0] != visits[1], axis=1)))
        right = different <= MOST_DIFFERENT * options.rows
        code = code if right else 1
        report.add(
            rows=options.rows,
            simulations=options.simulations,
            actions=options.actions,
            policy=policy,
            rival=rival,
            rows_that_differ=different,
            right=right,
        )
    return code


def root_visits(model: models.Model, policy_name: str, num_simulations: int):
    """The visit counts [B, A] of the roots' actions."""

    def search(params, key, states):
        root, mask = model.root_fn(params, states)
        policy: Callable[..., Any] = policy_named(policy_name)
        output = policy(params, key, root, model.recurrent_fn, num_simulations, mask)
        return output.search_tree.summary().visit_counts

    return np.asarray(jax.jit(search)(*model.arguments))


if __name__ == "__main__":
    raise SystemExit(main(tyro.cli(Options, description=__doc__)))
