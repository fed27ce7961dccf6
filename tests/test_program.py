"""How programs end: exit codes and lines, no tracebacks."""

import signal
import sys

import jax
import pytest

from jaxsearch.learn.interruption import Interruption
from jaxsearch.program import finish
from jaxsearch.search.memory import TreeTooLargeError


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (KeyboardInterrupt(), 130, "interrupted"),
        (OSError(28, "No space left"), 1, "No space left"),
        (OSError(2, "No such file", "a\n\0b"), 1, r"a\n\x00b"),
        (
            jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory.\nmore"),
            1,
            "Out of memory. Take smaller",
        ),
        (TreeTooLargeError("the search tree takes 9 GB"), 2, "takes 9 GB"),
    ],
    ids=["interrupt", "full disk", "name", "memory", "tree"],
)
def test_interrupt_and_full_disk_end_in_one_line(
    capsys, monkeypatch, error, code, line
):
    monkeypatch.setattr(sys, "unraisablehook", sys.unraisablehook)

    def main():
        raise error

    with pytest.raises(SystemExit) as end:
        finish(main)
    assert end.value.code == code
    error_text = capsys.readouterr().err
    assert line in error_text
    assert error_text.count("\n") == 1


def test_signal_ends_a_block_that_is_to_be_left():
    reached = []
    with Interruption() as interruption:
        with interruption.leaving():
            signal.raise_signal(signal.SIGTERM)
            reached.append("inside")
        reached.append("after")
    assert (reached, interruption.signal_name) == (["after"], "SIGTERM")


def test_error_in_a_block_that_is_to_be_left_is_raised():
    with (
        pytest.raises(ZeroDivisionError),
        Interruption() as interruption,
        interruption.leaving(),
    ):
        1 / 0  # noqa: B018


def test_second_signal_ends_the_process_at_once():
    before = signal.getsignal(signal.SIGINT)
    with Interruption() as interruption:
        signal.raise_signal(signal.SIGINT)
        assert interruption.signal_name == "SIGINT"
        assert signal.getsignal(signal.SIGINT) is signal.SIG_DFL
    assert signal.getsignal(signal.SIGINT) is before
