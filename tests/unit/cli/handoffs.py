"""Handoffs on a desk: a drafter that failed once, left a mail in doubt, and went on."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from batonpass import Brief
from batonpass.handoff.calls.begin import begin_call
from batonpass.handoff.live.faces import LiveHandoff, LiveRun
from batonpass.handoff.tools.declaration import declared_of, tool
from batonpass.handoff.tools.tool_call import ToolCall
from batonpass.model.baton.items import Constraint, Decision, OpenQuestion
from batonpass.relay import Relay
from tests.unit.cli.desk import Desk

TASK = "Make total() round half-even.\nThen tell the customers."


@tool(target="path", reversible=True)
def write_file(path: str, text: str) -> int:
    """Pretend to write."""
    return len(path + text)


@tool(reads=True)
def read_file(path: str) -> str:
    """Pretend to read."""
    return path


def send_mail(to: str) -> str:
    """Pretend to send."""
    return to


@dataclass(frozen=True, slots=True)
class Told:
    """Who is in the story."""

    lead: LiveRun
    drafter: LiveHandoff


def leave_in_doubt(run: LiveRun, to: str = "all@example.org") -> None:
    """Request a mail and never say what became of it, as a process that is killed."""
    begin_call(run._desk, run._holding, ToolCall(declared_of(send_mail), send_mail, (to,)))


def fail(handoff: LiveHandoff) -> None:
    """Let one attempt write a file, leave a mail in doubt, and fail."""
    run = handoff.accept()
    run.call(read_file, "src/invoice.py")
    run.call(write_file, "src/invoice.py", "fixed")
    leave_in_doubt(run)
    run.fail(RuntimeError("connection lost"))


def tell(relay: Relay) -> Told:
    """Let a lead hand off to a drafter, whose first attempt fails."""
    lead = relay.start("Fix invoice rounding", by="user:ana", items=[Constraint("never touch the API")])
    lead.record(Decision("round half-even", why="tax office"))
    drafter = lead.hand_off(
        "drafter",
        TASK,
        brief=Brief(rationale="it can write"),
        items=[OpenQuestion("What about VAT?", blocking=True)],
    )
    fail(drafter)
    return Told(lead, drafter)


def a_desk(directory: Path) -> Desk:
    """Return an empty desk."""
    desk = Desk(directory)
    desk.ledger.parent.mkdir(exist_ok=True)
    return desk


def look_at_screen(monkeypatch: pytest.MonkeyPatch, columns: int = 100) -> None:
    """Let sheets be made for a screen of so many columns, as if somebody looked at one."""
    for command in ("handoff.show", "handoff.person_acts", "handoff.carriage_proof"):
        monkeypatch.setattr(f"batonpass.cli.{command}.room", lambda: columns)
