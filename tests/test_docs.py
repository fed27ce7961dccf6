"""The examples of the guides run and print what they say."""

import contextlib
import io
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize("page", ["README.md", "docs/use_your_own_model.md"])
def test_examples_print_what_they_say(page):
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)
    assert blocks
    for block in blocks:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(block, page, "exec"), {})
        # A comment after print(...) starts with the text that is printed.
        promised = re.findall(r"^print\(.*\)  # (.*?)(?::|$)", block, re.MULTILINE)
        assert promised
        for text in promised:
            assert text in printed.getvalue()
