"""Whatever agents write into a handoff, the screen stays one screen, and the terminal obeys nobody."""

import unicodedata
from collections.abc import Iterator
from pathlib import Path

import pytest

from batonpass import Brief
from batonpass.cli.output.sheet import Sheet, quoted, shorten
from batonpass.cli.output.terminal import width
from batonpass.model.baton.items import Constraint, Exclusion, OpenQuestion
from batonpass.relay import Relay
from tests.unit.cli.desk import Desk
from tests.unit.cli.handoffs import a_desk, look_at_screen, send_mail

ESCAPES = "\x1b]0;pwned\x07\x1b[2J\u202e\u2066 evil\r\nsecond\x9b31m line"
HOSTILE = {
    "escape sequences": ESCAPES,
    "100,000 characters": ESCAPES + "A" * 100_000,
    "1,000 lines": "\n".join([ESCAPES] * 1_000),
    "marks that take no room": "e" + "\u0301" * 20_000,
    "wide characters": "漢字" * 10_000,
    "tabs": "x\t" * 20_000,
    "words": "word " * 20_000,
    "empty lines": "x" + "\n" * 20_000 + "y",
}


@pytest.fixture(autouse=True)
def screen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let somebody look at a screen of 100 columns."""
    look_at_screen(monkeypatch)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return a_desk(tmp_path)


@pytest.fixture
def relay(desk: Desk) -> Iterator[Relay]:
    with desk.relay() as opened:
        yield opened


def obeyed(text: str) -> list[str]:
    """Return the characters that a terminal would obey or hide."""
    return [character for character in text if unicodedata.category(character) in {"Cc", "Cf"} and character != "\n"]


@pytest.mark.slow
@pytest.mark.parametrize("words", HOSTILE.values(), ids=HOSTILE.keys())
def test_one_screen_whatever_was_written(desk: Desk, relay: Relay, words: str) -> None:
    """Task, reasons, report, questions and arguments cannot break the screen, nor grow beyond it."""
    lead = relay.start(words, by="user:ana", items=[Constraint(words), Exclusion(words)])
    handoff = lead.hand_off(
        "editor",
        words,
        brief=Brief(rationale=words, serves=words, verify_by=["true", words]),
        items=[OpenQuestion(words)] * 9,
    )
    handoff.ask(words[:5_000])
    handoff.answer(words, by="user:ana")
    run = handoff.accept()
    for number in range(12):
        run.call(send_mail, f"{words}{number}")
        run.hand_off(f"child-{number}", f"{words}{number}")
    run.fail(RuntimeError(words[-50_000:]))
    handoff.retry(by="user:ana", reason=words)
    with handoff as again:
        again.report(words, open_questions=[OpenQuestion(words, blocking=True)] * 9)
    handoff.refute(words, by="user:bob")
    outputs = [
        desk.words("handoff", "show", "editor"),
        desk.words("handoff", "show", "editor", "--proof"),
        desk.words("handoff", "list"),
    ]

    assert [] == obeyed("".join(outputs))
    assert [True, True] == [len(output.splitlines()) <= 45 for output in outputs[:2]]
    assert [True, True] == [max(map(width, output.splitlines())) <= 100 for output in outputs[:2]]
    assert True is all(len(line) <= 1_000 for output in outputs for line in output.splitlines())


def test_acts_repeat_no_hostile_words(desk: Desk, relay: Relay) -> None:
    """What is typed, and what a command writes, is as harmless as what agents write."""
    with relay.start("Fix", by="user:ana").hand_off("editor", "Edit") as editor:
        editor.report("done")
    outputs = [
        desk.run("handoff", "verify", "editor", "--", "printf", "\\033[2J\\007%0100000d"),
        desk.run("handoff", "refute", "editor", "--reason", ESCAPES),
        desk.run("handoff", "answer", "editor", ESCAPES),
        desk.run("handoff", "show", ESCAPES),
    ]

    assert [] == obeyed("".join(done.stdout + done.stderr for done in outputs))
    assert True is all(len(line) <= 1_000 for done in outputs for line in done.stderr.splitlines())


def test_a_task_is_shown_exactly_until_it_is_too_long(desk: Desk, relay: Relay) -> None:
    """A long line is wrapped and nothing of it is lost; what is left out is counted."""
    lead = relay.start("Fix", by="user:ana")
    task = " ".join(f"word{number}" for number in range(60))
    lead.hand_off("editor", task)
    lead.hand_off("writer", task * 10)
    bars = [line[4:] for line in desk.words("handoff", "show", "editor").splitlines() if line.startswith("  │ ")]
    left = [line for line in desk.words("handoff", "show", "writer").splitlines() if line.startswith("  │ …")]

    assert task == " ".join(bars)
    assert [f"of {len(task) * 10:,} characters; --json has all"] == [
        line.partition(" of ")[1].strip() + " " + line.partition(" of ")[2] for line in left
    ]
    assert task * 10 == desk.answer("handoff", "show", "writer")["task"]["text"]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        pytest.param("short", "short", id="all of it"),
        pytest.param("\n  \n first \nsecond", "first…", id="the first line with something in it"),
        pytest.param("x" * 50, "x" * 9 + "…", id="as much as fits"),
        pytest.param("", "", id="nothing"),
    ],
)
def test_words_are_shortened_visibly(words: str, expected: str) -> None:
    """What is left out is marked."""
    assert (expected, f'"{expected}"') == (shorten(words, 10), quoted(words, 10))


def test_a_section_says_what_it_leaves_out() -> None:
    """The first lines, or the last, and how many more there are."""
    first, last = Sheet(80, 2), Sheet(80, 2)
    rows = [(str(number),) for number in range(5)]
    first.rows("some", rows)
    last.rows("some", rows, newest=True)

    assert (["some        0", "1", "… 3 more; --json has all"], ["… 3 before; --json has all", "3", "4"]) == (
        [_plain(line) for line in first.lines],
        [_plain(line).removeprefix("some").strip() for line in last.lines],
    )


def _plain(line: str) -> str:
    return line.replace("\x1b[2m", "").replace("\x1b[0m", "").strip()
