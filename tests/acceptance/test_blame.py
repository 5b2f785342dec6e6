"""Blame as the person with the wrong pull request meets it: the quick start, a repository, and every store."""

import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from batonpass.adapters.line_blame import blame
from batonpass.demo import pull_request
from batonpass.errors import VerificationError
from batonpass.relay import Relay
from tests.acceptance.test_documents import run
from tests.unit.adapters.claude_code.histories import History
from tests.unit.cli.transcripts import an_edit
from tests.unit.handoff.places import ANA, STORES, Places, places_at

# Word for word what people are promised; only what it takes to run stands around it.
QUICK_START: Final = """
from batonpass import Decision, blame, start
with start("Fix invoice rounding", by="user:ana") as lead:
    lead.record(Decision("round half-even", why="tax office"))
    with lead.hand_off("editor", "Make total() round half-even", may=["write:src/**"]) as editor:   # may= is optional
        editor.call(write_file, "src/invoice.py", fixed)
        editor.report("done", open_questions=["negative totals untested"])
print(blame("src/invoice.py", line=42))
"""
PROMISED: Final = """\
editor 7f3a · 23:14 · "Make total() round half-even" ← lead ← ana: "Fix invoice rounding"
unverified · may write:src/** (granted by lead) · approval: none needed
"""

SETTING: Final = """
from pathlib import Path

lines = [f"line {number}" for number in range(1, 51)]
Path("src").mkdir()
Path("src/invoice.py").write_text("\\n".join(lines) + "\\n")
lines[41] = "    return sum(lines).quantize(CENT, ROUND_HALF_EVEN)"
fixed = "\\n".join(lines) + "\\n"


def write_file(path, text):
    Path(path).write_text(text)
"""


HEARD: Final = [
    r'claude-code 5555 · 2026-03-01 \d\d:\d\d ← \S+: "Fix the shop"',
    r'editor beef · 2026-03-01 \d\d:\d\d · "Write the other file" ← claude-code ← \S+: "Fix the shop"',
    r"unexplained since 2026-03-01 \d\d:\d\d: no recorded change wrote it",
]


@pytest.fixture
def reader(tmp_path: Path) -> Path:
    """Return the empty folder of somebody who has just installed Batonpass."""
    folder = tmp_path / "reader"
    folder.mkdir()
    return folder


def usual(text: str) -> str:
    """Return an output with the id and the time of the promise."""
    return re.sub(r"^editor [0-9a-z]{4} · \d\d:\d\d", "editor 7f3a · 23:14", text)


def batonpass(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run(["batonpass", *arguments], folder=folder)


@pytest.mark.slow
def test_the_quick_start_is_true_word_for_word(reader: Path) -> None:
    """The program prints what is promised, and so does the command; one more line says by which call and proof."""
    done = run([sys.executable, "-W", "error", "-c", SETTING + QUICK_START], folder=reader)
    asked = batonpass(reader, "blame", "src/invoice.py:42")

    assert (0, 0) == (done.returncode, asked.returncode), done.stdout + asked.stdout
    assert done.stdout == asked.stdout
    assert usual(asked.stdout).startswith(PROMISED)
    assert re.fullmatch(
        r"write_file [0-9a-z]{4} · @@ -42 \+42 @@ · 5 receipts verified\n",
        usual(asked.stdout).removeprefix(PROMISED),
    )


@pytest.fixture(params=STORES)
def places(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Places]:
    """Return a ledger, which is verified after every scenario."""
    places = places_at(request, tmp_path)
    yield places
    places.close()


def test_every_store_gives_the_same_answer(places: Places, reader: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two editors in one file, one line each, and one that nobody recorded."""
    monkeypatch.chdir(reader)
    relay = places.relay()
    texts = ["the first line", "the second line", "the third line"]

    def write(name: str, number: int, words: str) -> None:
        texts[number] = words
        Path(name).write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")

    lead = relay.start("Fix the file", by=ANA)
    for number, agent in enumerate(("editor", "typist")):
        with lead.hand_off(agent, f"Change line {number + 1}") as child:
            child.call(write, "a.txt", number, f"changed by the {agent}")
    lead.close()
    answer = blame("a.txt", relay=relay)
    makers = {call: maker.run.agent for call, maker in answer.makers.items()}

    assert [["editor"], ["typist"], ["editor"]] == [[makers[call] for call in line.calls] for line in answer.lines]
    assert (True, {5}) == (answer.holds, {maker.proof.receipts for maker in answer.makers.values()})


@pytest.mark.slow
def test_a_pull_request_is_asked_where_nothing_was_set_up(reader: Path) -> None:
    """Transcripts answer: main conversation and sub-agent, and what neither wrote is unexplained."""
    an_edit(History(reader.parent, reader), "Write the other file", "Fix the shop")
    with (reader / "b.py").open("a", encoding="utf-8") as file:
        file.write("a line that somebody typed\n")
    done = [batonpass(reader, "blame", where) for where in ("a.py:2", "b.py:1", "b.py:2")]

    assert [0, 0, 1] == [each.returncode for each in done]
    assert [True] * 3 == [
        any(re.fullmatch(pattern, line) for line in each.stdout.splitlines())
        for pattern, each in zip(HEARD, done, strict=True)
    ], "\n".join(each.stdout for each in done)


@pytest.mark.slow
def test_the_pull_request_answers_the_four_questions(reader: Path) -> None:
    """Which sub-agent, whose credential, whose approval, where from: each compared with what happened."""
    done = batonpass(reader, "demo", "pull-request", "--keep", "kept")
    titles = [line for line in done.stdout.splitlines() if re.match(r"\d\. ", line)]

    assert (0, 4, 4) == (done.returncode, len(titles), done.stdout.count("✓ confirmed: ")), done.stdout
    assert done.stdout.count("whole: 17 receipts") == 1
    kept = batonpass(reader / "kept", "blame", f"{pull_request.NAME}:9")
    assert (0, True) == (kept.returncode, kept.stdout.startswith("fixer "))


def test_an_answer_that_is_not_true_is_not_shown_as_true(reader: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The demonstration compares with what it did itself: it stops if blame names somebody else."""
    subprocess.run(["git", "init", "--quiet", reader], check=True)
    honest = pull_request._work

    def lying(relay: Relay) -> pull_request.Truth:
        truth = honest(relay)
        return replace(truth, fixer=truth.tidier, tidier=truth.fixer)

    monkeypatch.setattr(pull_request, "_work", lying)

    with pytest.raises(VerificationError, match="the fixer wrote it"):
        list(pull_request.play(reader))
