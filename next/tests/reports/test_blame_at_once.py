"""Blame where a call left no outcome: what it may have written while another ran is said to be one of both."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from batonpass import Blame, Handoff, Relay, Run, tool
from batonpass.testing import FrozenClock, a_relay, a_run

_TEXT = "old\nnew = of_one_of_both()\n"


@tool(action="write", target="path")
def write_file(path: str, text: str) -> None:
    """Write a file, byte for byte."""
    Path(path).write_bytes(text.encode())


@pytest.fixture
def clock() -> FrozenClock:
    return FrozenClock()


@pytest.fixture
def relay(record_place: Path, clock: FrozenClock) -> Iterator[Relay]:
    Path("a.py").write_text("old\n", encoding="utf-8")
    with a_relay(work_tree=record_place, system=clock) as opened:
        yield opened


def _rival(lead: Run, target: str = "a.py") -> tuple[Handoff, str]:
    """Begin a call of another agent that leaves no outcome."""
    handoff = lead.hand_off("rival", "Fix it as well")
    return handoff, handoff.accept().begin_call("slow", b"1", action="write", target=target).id


def _origins(answer: Blame) -> list[str]:
    return [line.origin for line in answer.lines]


@pytest.mark.parametrize("how", ["its request is before the other's", "its request is between", "its run has failed"])
def test_a_call_that_died_while_another_ran_may_have_written_its_lines(
    relay: Relay, clock: FrozenClock, how: str
) -> None:
    """The other call saw the line come, and both are named: neither with certainty."""
    with a_run(relay) as lead:
        editor = lead.hand_off("editor", "Fix it", accept=True)
        if how == "its request is between":
            begun = editor.begin_call("edit", b"1", action="write", target="a.py")
            clock.advance(60)
            died = _rival(lead)[1]
        else:
            handoff, died = _rival(lead)
            clock.advance(60)
            begun = editor.begin_call("edit", b"1", action="write", target="a.py")
            clock.advance(60)
            if how == "its run has failed":
                handoff.retry(by="user:ana", skip=[died])
        Path("a.py").write_text(_TEXT, encoding="utf-8")
        clock.advance(60)
        begun.succeed(None)

    answer = relay.blame("a.py", 2)
    assert (["unknown"], {died, begun.id}) == (_origins(answer), set(answer.lines[0].calls))
    first, edit, slow = str(answer).splitlines()
    assert "one of 2 calls that may have run at once:" == first
    assert (True, True) == (edit.startswith("  edit "), " of editor " in edit)
    assert (True, True) == (slow.startswith("  slow "), slow.endswith(" left no outcome"))


def test_a_call_that_was_over_before_another_began_is_no_rival(relay: Relay, clock: FrozenClock) -> None:
    """What a retry, or the end of its run, has ended wrote nothing later, and the later call is named."""
    with a_run(relay) as lead:
        _rival(lead)[0].retry(by="user:ana")
        ended = lead.hand_off("second", "Fix it too", accept=True)
        ended.begin_call("slow", b"2", action="write", target="a.py")
        ended.close(error=OSError("gone"))
        clock.advance(1)
        lead.call(write_file, "a.py", _TEXT)

    assert ["older", "recorded"] == _origins(relay.blame("a.py"))


def test_a_call_that_began_later_or_elsewhere_is_no_rival(relay: Relay, clock: FrozenClock) -> None:
    """A call that was to write another file, or was asked for after the write, has written nothing of it."""
    with a_run(relay) as lead:
        _rival(lead, "b.py")
        lead.call(write_file, "a.py", _TEXT)
        clock.advance(1)
        lead.begin_call("slow", b"2", action="write", target="a.py")

    assert ["older", "recorded"] == _origins(relay.blame("a.py"))


def test_a_large_file_has_no_certain_writer_beside_a_call_without_outcome(relay: Relay, clock: FrozenClock) -> None:
    """Where lines are not kept, a file that a call seems to have made may be the other's."""
    with a_run(relay) as lead:
        _rival(lead, "b.py")
        lead.call(write_file, "b.py", "line\n" * 30_000)
        clock.advance(1)

    assert ["unknown"] == _origins(relay.blame("b.py", 1))


@pytest.mark.parametrize(
    ("agent", "principal", "shown"),
    [
        pytest.param("lead", "user:ana", "granted by lead", id="another name"),
        pytest.param("ana", "user:ana", "granted by agent ana", id="the name of the person"),
        pytest.param("user:ana", "user:ana", "granted by agent user:ana", id="the principal"),
        pytest.param("user:jonas", "user:ana", "granted by agent user:jonas", id="another principal"),
        pytest.param("ana", "ana", "granted by agent ana", id="a principal that is no user"),
    ],
)
def test_an_agent_is_not_taken_for_a_person(relay: Relay, agent: str, principal: str, shown: str) -> None:
    """Only of a principal `user:` is left out, and an agent with the name of a person is said to be an agent."""
    with (
        relay.start("Fix it", by=principal, agent=agent) as lead,
        lead.hand_off("editor", "Fix it", may=["write:**"], accept=True) as editor,
    ):
        editor.call(write_file, "a.py", _TEXT)

    head, allowed, _ = str(relay.blame("a.py", 2)).splitlines()
    assert f"({shown})" in allowed
    assert f'← {shown.removeprefix("granted by ")} ← ana: "Fix it"' in head
