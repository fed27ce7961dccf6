"""The page of a run: it stands alone, tells what is there, and escapes all of it."""

import html.parser
import json
import re
import shutil

import pytest

import train
from jaxsearch.arena import report_plots
from jaxsearch.learn.run_folder import RunFolder

SAMPLE = """\
<tic_tac_toe v0>, iteration 30: 2 games

game 1
start: .../.../...
random moves: 1
moves: 1 4 2 5 3
result: 1-0
final position:
game 2
start: .../.../...
random moves: 0
moves: 1 1
result: *
"""


class Reader(html.parser.HTMLParser):
    """All tags with their attributes; what is opened is closed."""

    def __init__(self, page):
        super().__init__()
        self.tags, self._open = [], []
        self.feed(page)
        assert not self._open

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta", "img"):
            self._open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self._open.pop() == tag

    def named(self, tag):
        return [attributes for name, attributes in self.tags if name == tag]


@pytest.fixture
def run(tmp_path):
    """The folder of a run of 30 iterations, without what training needs."""
    run = tmp_path / "a <b> & c"
    (run / "games").mkdir(parents=True)
    RunFolder(run).write_config(train.Config(env="tic_tac_toe", net="mlp"))
    for n in range(30):
        line = {"iteration": n + 1, "seconds": 9.0 * n, "games": 5 * n, "value": 0.3}
        line |= {"first_wins": 0.5 if n else None, "draws": 0.125}
        line |= {"elo": 100.0 + n} if n % 10 == 9 else {}
        RunFolder(run).append_metrics(line)
    (run / "games" / "0000030.txt").write_text(SAMPLE)
    return run


def test_page_stands_alone_and_tells_what_is_there(run, capsys):
    assert train.main(["report", str(run)]) == 0
    assert capsys.readouterr().out == f"{run}/report.html\n"
    page = (run / "report.html").read_text()
    reader = Reader(page)
    assert "a &lt;b&gt; &amp; c" in page and "<b> &" not in page
    links = [v for _, a in reader.tags for k, v in a.items() if k in ("src", "href")]
    assert all(link.startswith("data:") for link in links)
    assert not {"script", "link", "iframe"} & {tag for tag, _ in reader.tags}
    # The value, the results and the Elo are known; nothing else is.
    told = [attributes["aria-label"] for attributes in reader.named("svg")]
    assert [text.split(",")[0] for text in told] == [
        "Value: how far the net is from its target",
        "Results of self-play",
        "Strength",
    ]
    assert "first player wins 50 at first and 50 at last; draws 12.5" in told[1]
    assert "second player" not in page
    assert told[2].endswith("minutes of training: Elo 109 at first and 129 at last")
    boards = [attributes["alt"] for attributes in reader.named("img")]
    assert boards[-1] == "Game 1, the end: XXX/OO./..."
    assert len(boards) == 5
    assert "Game 1: the first player wins after 5 moves" in page
    assert '<span class="random">1</span> 4 2 5 3' in page
    assert "played again: tic_tac_toe: &#x27;1&#x27; is not a legal move" in page


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{"match": {}}', "measured.json cannot be read"),
        ("[", "measured.json cannot be read"),
        (None, None),
    ],
)
def test_measurements_that_are_damaged_or_missing_spoil_nothing(run, text, told):
    shutil.rmtree(run / "games")
    if text is not None:
        (run / "measured.json").write_text(text)
    assert train.main(["report", str(run)]) == 0
    page = (run / "report.html").read_text()
    assert ("Measured at the end" in page) == (told is not None)
    assert told is None or told in page
    assert "Sample games" not in page


def test_measurements_are_tables(run):
    positions = {"player": "r?search=raw", "positions": 600, "share": 0.728}
    positions |= {"low": 0.691, "high": 0.762}
    part = {"first_ply": 10, "last_ply": 13, "kept": 3, "positions": 4}
    results = {"positions": [positions | {"by_plies": [part]}]}
    (run / "measured.json").write_text(json.dumps(results))
    assert train.main(["report", str(run)]) == 0
    page = (run / "report.html").read_text()
    cells = re.findall(r"<td [^>]*>([^<]*)</td>", page)
    assert cells[:4] == ["search=raw", "72.8", "69.1 to 76.2", "75.0"]
    tally = {"wins": 3, "losses": 1, "draws": 0, "truncated": 0}
    match = dict.fromkeys(("moving_first", "moving_second", "total"), tally)
    estimate = {"elo": "inf", "elo_low": 12.3, "elo_high": "inf"}
    match |= {"games": 4, "first": "a", "second": "b", "estimate": estimate}
    (run / "measured.json").write_text(json.dumps({"match": match}))
    assert train.main(["report", str(run)]) == 0
    page = (run / "report.html").read_text()
    assert "Elo difference +inf, 95% interval +12 to +inf" in page


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda run: shutil.rmtree(run), "there is no run folder"),
        (lambda run: (run / "config.json").write_text("{"), "config.json cannot be"),
        (lambda run: (run / "metrics.jsonl").unlink(), "has no iteration to report"),
        (lambda run: (run / "metrics.jsonl").write_text("x\n"), "no iteration to"),
    ],
)
def test_run_without_anything_to_tell_is_one_clear_line(run, capsys, spoil, message):
    spoil(run)
    assert train.main(["report", str(run)]) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith("train.py report: ") and message in captured.err
    assert captured.err.count("\n") == 1 and not captured.out
    assert not (run / "report.html").exists()


def test_curves_leave_out_what_is_not_known_and_are_means():
    metrics = [{"seconds": n, "value": v} for n, v in enumerate([3, None, 0, 3, 9])]
    curve = report_plots.Curve([*metrics, {"seconds": 5}], "value")
    assert curve.seconds.tolist() == [0, 2, 3, 4]
    assert curve.smoothed(3).tolist() == [1.5, 2, 4, 6]
    assert report_plots.smoothing(5) == 9
    assert report_plots.smoothing(10_000) == 101
    assert [report_plots.time_unit(s)[0] for s in (119, 120, 7200)] == [
        *("seconds", "minutes", "hours"),
    ]
