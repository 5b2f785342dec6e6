"""Trees with all that a review reads: grants, holds and approvals, calls, grandchildren, reports and verdicts."""

from collections.abc import Sequence
from typing import Final

from batonpass import Brief, Constraint, Decision, OpenQuestion, Relay, Run, tool
from batonpass.model.base.ids import RunId

_HANDOFFS: Final = 20
_BOUND: Final = Constraint(
    key="threshold", operator="<=", value="20", unit="percent", binds_to="call:compare.threshold"
)


@tool(target="path", reversible=True)
def write_file(path: str, text: str) -> int:
    """Pretend to write."""
    return len(path + text)


@tool(reads=True, target="path")
def read_file(path: str) -> str:
    """Pretend to read."""
    return path


@tool(reads=True, external=True)
def read_ticket(number: int) -> str:
    """Return words from outside."""
    return f"Ticket {number}: the sum is wrong on Mondays"


def grow(relay: Relay, trees: int) -> Sequence[RunId]:
    """Record trees of 376 receipts each; return their roots."""
    found = []
    for number in range(trees):
        with relay.start(f"Mend the shop, round {number}", by="user:ana") as lead:
            lead.record(_BOUND, Decision("round half-even", why="the tax office asks for it"))
            for part in range(_HANDOFFS):
                _hand_off(lead, part)
            found.append(lead.id)
    return found


def _hand_off(lead: Run, part: int) -> None:
    granted = ["write:src/**", "read:**", "call:read_ticket"] if part % 3 == 0 else []
    to = "editor" if part % 2 else "checker"
    waits = part % 6 == 5  # one of six waits for a person
    handoff = lead.hand_off(
        to, f"Mend part {part} in src/part{part}.py", brief=Brief(rationale="the sum is wrong"), may=granted, hold=waits
    )
    if waits:
        handoff.approve(by="user:ben", shown=handoff.material())
    with handoff as worker:
        _work(worker, part)
        worker.report("done", open_questions=[OpenQuestion("are negative totals tested?")])
    if part % 2:
        handoff.verify(by="user:ana", verdict="read it")


def _work(worker: Run, part: int) -> None:
    for file in range(3):
        worker.call(read_file, f"src/part{part}_{file}.py")
        worker.call(write_file, f"src/part{part}_{file}.py", f"x = {file}")
    if part % 4 == 0:
        worker.call(read_ticket, part)
    if part % 3 == 1:
        with worker.hand_off("tester", f"Test part {part}") as tester:
            tester.call(read_file, f"tests/part{part}.py")
            tester.report("all green")
