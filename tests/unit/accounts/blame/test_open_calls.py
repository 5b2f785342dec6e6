"""Calls without an outcome: whoever may have written a line is named, and nobody else."""

import json
from datetime import timedelta
from pathlib import Path

import pytest

from batonpass.accounts.blame import line_candidates
from batonpass.accounts.blame.blame_values import HowKnown
from batonpass.model.base.ids import CallId
from batonpass.relay import recording_of
from batonpass.testing.plain_acts import plainly
from tests.unit.accounts.shop import ANA, BEFORE, Shop, write_file


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    """Return a shop with one file that nobody recorded."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.py").write_text(BEFORE, encoding="utf-8")
    return Shop(tmp_path)


def _requested(shop: Shop, tool: str, **arguments: object) -> CallId:
    """Record a request whose process was killed."""
    recording = plainly(recording_of(shop.relay))
    working = recording.start("Fix it", agent="editor", by=ANA)
    return recording.request(working, tool, json.dumps(arguments))


@pytest.mark.parametrize(
    ("tool", "arguments", "expected"),
    [
        ("write_file", {"path": "a.py", "text": "the killed line\n"}, [False, False, False, True]),
        ("write_file", {"path": "./a.py", "text": "some other words\n"}, [False] * 4),
        ("write_file", {"path": "b.py", "text": "the killed line\n"}, [False] * 4),
        ("format", {"path": "a.py", "style": "black"}, [True] * 4),
        ("Bash", {"command": "make"}, [False] * 4),
    ],
    ids=["its words", "other words", "another file", "no words", "a shell, and nobody knows how old the lines are"],
)
def test_whoever_names_the_file_may_have_written_it(
    shop: Shop, tool: str, arguments: dict[str, object], expected: list[bool]
) -> None:
    """A request without an outcome is a candidate if it names the file and can have written the line."""
    call = _requested(shop, tool, **arguments)
    shop.path().write_text(f"{BEFORE}the killed line\n", encoding="utf-8")
    blame = shop.blame()

    assert expected == [call in line.calls for line in blame.lines]
    assert expected == [(line.known, line.or_nobody) == (HowKnown.CANDIDATES, True) for line in blame.lines]


def test_a_shell_may_have_written_what_was_not_there_before(shop: Shop) -> None:
    """It names no file; it counts if the line was not there yet when it was asked for."""
    lead = shop.relay.start("Fix it", by=ANA)
    _requested(shop, "Bash", command="make")
    shop.clock.tick(timedelta(minutes=1))
    lead.call(write_file, "b.py", BEFORE)
    shop.clock.tick(timedelta(minutes=1))
    late = _requested(shop, "Bash", command="make")
    shop.path("b.py").write_text(f"{BEFORE}the killed line\n", encoding="utf-8")
    blame = shop.blame("b.py")

    assert [(HowKnown.CANDIDATES, (late,))] == [
        (line.known, line.calls) for line in blame.lines if line.known is not HowKnown.RECORDED
    ]
    assert "perhaps editor" in str(blame)
    assert "(Bash, no outcome), or somebody who is not recorded" in str(blame)


def test_a_line_that_was_committed_before_is_not_of_a_later_call(shop: Shop) -> None:
    """What git had already, nobody wrote who was asked afterwards; what is not committed, a shell may have."""
    shop.git("init", "-q")
    shop.git("add", ".")
    shop.git("commit", "-qm", "First", "--date=2020-01-01T00:00:00Z")
    shop.clock.tick(timedelta(days=365 * 30))
    call = _requested(shop, "Bash", command="make")
    shop.path().write_text(f"{BEFORE}the killed line\n", encoding="utf-8")

    assert [(), (), (), (call,)] == [line.calls for line in shop.blame().lines]


def test_calls_that_ended_or_only_read_are_no_candidates(shop: Shop) -> None:
    """One completed, one failed; both are known not to have left this line."""
    recording = plainly(recording_of(shop.relay))
    working = recording.start("Fix it", agent="editor", by=ANA)
    done, failed = (recording.request(working, "format", json.dumps({"path": "a.py"})) for _ in range(2))
    recording.finish(working, done, "{}")
    recording.fail_call(working, failed, "os-error", "no")

    assert [HowKnown.UNEXPLAINED] * 3 == [line.known for line in shop.blame().lines]


def test_only_so_much_is_looked_through(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """However much is recorded, an answer stays quick: the latest comes first."""
    monkeypatch.setattr(line_candidates, "_MOST_RECEIPTS", 1)
    _requested(shop, "format", path="a.py")
    shop.clock.tick()
    last = _requested(shop, "format", path="a.py")

    assert [(last,)] * 3 == [line.calls for line in shop.blame().lines]
