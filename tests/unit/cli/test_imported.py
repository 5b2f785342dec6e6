"""What was imported is shown with the times of the sessions, and marked: nobody signed it there."""

from pathlib import Path

import pytest

from tests.unit.adapters.claude_code.histories import History
from tests.unit.cli.desk import Desk
from tests.unit.cli.transcripts import a_bare_desk, an_edit

MARK = "imported, unsigned"
DAY = "2026-03-01"


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    """Return a desk whose ledger holds one session that was imported."""
    desk = a_bare_desk(tmp_path, monkeypatch)
    an_edit(History(tmp_path, desk.directory))
    desk.words("import", "claude-code")
    return desk


@pytest.mark.parametrize(
    "command",
    [("run", "list"), ("run", "show", "claude-code"), ("trail", "last"), ("handoff", "show", "last"), ("why", "last")],
    ids=" ".join,
)
def test_people_are_told_when_it_happened_and_that_it_was_imported(desk: Desk, command: tuple[str, ...]) -> None:
    """The day of the session and not of the import; with a mark."""
    said = desk.words(*command)

    assert (True, True) == (DAY in said, MARK.partition(",")[0] in said)


def test_a_trail_is_marked_once_in_every_form(desk: Desk) -> None:
    """As text, as a page, as a chart, and for programs."""
    forms = ((), ("--html",), ("--mermaid",), ("--json",))
    said = [desk.words("trail", "last", *form).replace("#44;", ",") for form in forms]

    assert [1] * 4 == [words.count(MARK) for words in said]


def test_programs_are_told_the_same_times(desk: Desk) -> None:
    """Of runs, calls, handoffs and decisions."""
    run = desk.answer("run", "show", "claude-code")
    (call, *_) = run["calls"]
    (listed,) = desk.answer("handoff", "list")
    handoff, why = desk.answer("handoff", "show", "last"), desk.answer("why", "last")
    trail = desk.answer("trail", "last")

    assert [DAY] * 8 == [
        at[:10]
        for at in (
            run["started_at"],
            run["ended_at"],
            call["requested_at"],
            listed["offered_at"],
            handoff["offered_at"],
            handoff["attempts"][0]["ended_at"],
            why["at"],
            trail["runs"][0]["started_at"],
        )
    ]
    assert [MARK] * 4 == [answer["imported"] for answer in (run, handoff, why, trail)]
    assert {MARK} == {each["imported"] for each in desk.answer("run", "list")}


def test_the_age_of_a_handoff_is_not_that_of_the_import(desk: Desk) -> None:
    """It is days old, and was imported a moment ago."""
    assert "d" == desk.words("handoff", "list").splitlines()[1].split()[4][-4]


def test_what_was_recorded_when_it_happened_has_no_mark(tmp_path: Path) -> None:
    """Its times are those of its receipts."""
    recorded = Desk(tmp_path / "other")
    with recorded.relay() as relay:
        relay.start("Fix it", by="user:ana")

    assert [None] == [each["imported"] for each in recorded.answer("run", "list")]
    assert "imported" not in recorded.words("trail", "last")


def test_words_are_found_at_the_time_of_the_session(desk: Desk) -> None:
    """When they were said, and not when they were imported."""
    places = desk.answer("blame", "--text", "Shout")["places"]

    assert {DAY} == {place["at"][:10] for place in places}
