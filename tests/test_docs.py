"""The examples of the guides run and print what they say."""

import contextlib
import inspect
import io
import re
from pathlib import Path

import mctx
import pytest

from jaxsearch import gumbel_policy, puct_policy

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize(
    "page", ["README.md", "docs/games.md", "docs/use_your_own_model.md"]
)
def test_examples_print_what_they_say(page):
    text = (ROOT / page).read_text()
    blocks = re.findall(
        r"```python\n(.*?)```(?:\n\n```text\n(.*?)```)?", text, re.DOTALL
    )
    assert blocks
    for block, transcript in blocks:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(block, page, "exec"), {})
        # A comment after print(...) starts with the text that is printed.
        promised = re.findall(r"^print\(.*\)  # (.*?)(?::|$)", block, re.MULTILINE)
        assert promised or transcript
        for text in promised:
            assert text in printed.getvalue()
        # A block of text after an example is all that it prints.
        if transcript:
            assert printed.getvalue() == transcript


def test_table_of_options_names_those_of_each_policy():
    page = (ROOT / "docs/use_your_own_model.md").read_text()
    table = page.split("| option |")[1].split("\n\n")[0]
    told = [set(), set(), set(), set()]
    for row in re.findall(r"^\| (`\w+`(?:, `\w+`)*) \| (.*) \|$", table, re.MULTILINE):
        for options, cell in zip(told, row[1].split(" | "), strict=True):
            if cell != "no":
                options |= set(re.findall(r"`(\w+)`", row[0]))
    policies = (
        puct_policy,
        mctx.muzero_policy,
        gumbel_policy,
        mctx.gumbel_muzero_policy,
    )
    for options, policy in zip(told, policies, strict=True):
        keywords = inspect.signature(policy).parameters.values()
        assert {p.name for p in keywords if p.kind == p.KEYWORD_ONLY} == options
