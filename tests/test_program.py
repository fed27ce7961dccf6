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


def test_signal_ends_work_that_is_to_be_left():
    reached = []

    def work():
        reached.append("inside")
        signal.raise_signal(signal.SIGTERM)
        reached.append("after")

    with Interruption() as interruption:
        assert interruption.until_signal(lambda: 3) == 3
        assert interruption.until_signal(work) is None
        assert interruption.until_signal(lambda: 3) is None
    assert (reached, interruption.signal_name) == (["inside"], "SIGTERM")


# Wherever it comes, line by line, it is noted and never raised.
def test_signal_at_any_line_of_work_is_noted():
    code = Interruption.until_signal.__code__
    lines = {number for _, _, number in code.co_lines() if number}

    def at(line):
        def trace(frame, event, _):
            if frame.f_code is not code:
                return trace if event == "call" else None
            if event == "line" and frame.f_lineno == line and not sent:
                sent.append(line)
                signal.raise_signal(signal.SIGTERM)
            return trace

        return trace

    reached = 0
    for line in sorted(lines):
        sent = []
        with Interruption() as interruption:
            before = sys.gettrace()
            sys.settrace(at(line))
            try:
                given = interruption.until_signal(lambda: 3)
            finally:
                sys.settrace(before)
            assert interruption.signal_name == ("SIGTERM" if sent else None)
            assert given in (3, None)
        reached += len(sent)
    assert reached >= 4


def test_error_in_work_that_is_to_be_left_is_raised():
    with pytest.raises(ZeroDivisionError), Interruption() as interruption:
        interruption.until_signal(lambda: 1 / 0)


def test_second_signal_ends_the_process_at_once():
    before = signal.getsignal(signal.SIGINT)
    with Interruption() as interruption:
        signal.raise_signal(signal.SIGINT)
        assert interruption.signal_name == "SIGINT"
        assert signal.getsignal(signal.SIGINT) is signal.SIG_DFL
    assert signal.getsignal(signal.SIGINT) is before
