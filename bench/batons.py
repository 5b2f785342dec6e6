"""The handoff that is measured: through the public names, with a baton of three kilobytes."""

from collections.abc import Mapping
from itertools import count
from pathlib import Path
from statistics import mean
from typing import Any, Final

from batonpass import Brief, Grant, Handling
from batonpass.dispatch.worker import Worker
from batonpass.handoff.live.faces import LiveRun
from batonpass.model.base.lifecycle import Carrier
from batonpass.model.baton.items import Constraint, Decision
from batonpass.relay import Relay
from batonpass.store.port import LedgerStore
from bench.ledgers import RESULT, run_bytes
from bench.measure import Act

AGENT: Final = "editor"

INTENT: Final = (
    "Finance wants the invoices of last year to add up to the cent. Today total() rounds every line half up and then "
    "the sum once more, so 14 of the 1,204 invoices differ from what the customers paid. Round half-even, once, on the "
    "sum; keep what was already paid as it is; show the difference for each invoice so that somebody can sign it off. "
    "Nobody outside of billing should notice anything but correct totals."
)
CONSTRAINTS: Final = (
    (
        "No invoice of last year may change by more than one cent; those that would are listed with their number, the "
        "old total, the new total and the line that causes the difference, and are left as they are until a person "
        "decides."
    ),
    (
        "Only files below src/billing and tests/billing may be changed. The export format that the accountants import "
        "is frozen until the end of the quarter: no column may appear, disappear, move or change its type."
    ),
)
DECISION: Final = Decision(
    "Totals are computed with decimal.Decimal and ROUND_HALF_EVEN, on the sum and never on the lines.",
    why="Floats were tried and differ in 3 of 1,204 invoices; rounding the lines as well doubles the error and is what "
    "the customers complained about. The accountants agreed to half-even in writing.",
)
TASK: Final = (
    "Make total() in src/billing/totals.py round half-even. Read the lines as they are stored, sum them exactly, and "
    "round once at the end. Keep the signature and the type of what it returns, because the export and the page for "
    "customers both call it. Where a line carries a discount, apply the discount before you add the line, as the price "
    "list says, and do not round in between. Then run the billing tests and add one test for each of the 14 invoices "
    "that differ today: the number of the invoice is in its name, the lines are copied from the fixture, and the "
    "expected total is what the customer paid. Where your total and the paid one differ by a cent, do not adjust the "
    "code until it fits: write the invoice down as an open question, with both totals and the line that makes the "
    "difference, and go on. If one differs by more than a cent, stop and say so before you change anything else. "
    "The currency is always the invoice's own; invoices in yen have no cents, and their totals must come out just as "
    "before. Credit notes are invoices with negative lines: half-even is symmetric, so they need no case of their own, "
    "but one of the new tests has to show it. Leave the cache in front of total() alone; it is keyed by the lines, so "
    "that nothing stale can come out of it. Do not touch the migration that copies old totals, even if it looks wrong: "
    "it ran once, years ago, and is kept as a record. "
    "Report which files you changed, how many tests ran and passed, and every invoice that you left open."
)
RATIONALE: Final = (
    "You know the billing code and changed it last, and this is small enough for one pass: reading the export code "
    "first would take longer than the change itself."
)
CRITERIA: Final = (
    "every invoice of last year differs by one cent at most",
    "all tests below tests/billing pass",
)

_NUMBERS: Final = count(1)
_OFFERED_AT_ONCE: Final = 100


def words() -> dict[str, Any]:
    """Return everything that the baton says, as a peer gets it."""
    return {
        "intent": INTENT,
        "constraints": list(CONSTRAINTS),
        "decision": DECISION.what,
        "why": DECISION.why,
        **said(),
    }


def said() -> dict[str, Any]:
    """Return what is new in each handoff; a lead has said the rest before, and it is carried by digest."""
    return {"task": TASK, "rationale": RATIONALE, "criteria": list(CRITERIA)}


def open_relay(directory: Path, url: str | None = None) -> Relay:
    """Open a relay with its keys in a folder of its own; without an address on a SQLite file there."""
    directory.mkdir(exist_ok=True)
    return Relay.open(url or f"sqlite:///{directory / 'ledger.db'}", home=directory)


def start_lead(relay: Relay) -> LiveRun:
    """Begin a run that has something to hand on."""
    lead = relay.start(INTENT, by="user:ana", items=[Constraint(text) for text in CONSTRAINTS])
    lead.record(DECISION)
    return lead


def offer(lead: LiveRun, carrier: Carrier = Carrier.CALLER, **more: Any) -> Any:  # noqa: ANN401 - as `hand_off` has it
    """Hand off a task that nobody has handed off yet."""
    return lead.hand_off(AGENT, _task(), carrier=carrier, brief=Brief(rationale=RATIONALE, criteria=CRITERIA), **more)


def hands_off(relay: Relay) -> Act:
    """Return the act that matters: hand off, accept, close. Three commits."""
    lead = start_lead(relay)

    def hand_off() -> None:
        with offer(lead):
            pass

    return hand_off


def hands_off_all_anew(relay: Relay) -> Act:
    """Return the same, but nothing was said before: constraints and the decision are written with each handoff."""
    lead = relay.start(INTENT, by="user:ana")

    def hand_off() -> None:
        anew = [*map(Constraint, CONSTRAINTS), DECISION]
        with offer(lead, items=anew, handling=Handling(carry=())):
            pass

    return hand_off


def calls(relay: Relay) -> Act:
    """Return a tool call through the guard: request, finish. Two commits."""
    lead = start_lead(relay)
    return lambda: lead.call(
        write_file, f"src/billing/totals{next(_NUMBERS)}.py", "return round_half_even(total)\n" * 6
    )


def calls_under_grant(relay: Relay) -> Act:
    """Return the same call by the third of three agents that hold a grant: each hop is asked."""
    grant = ["write:src/billing/**"]
    lead = relay.start(INTENT, by="user:ana", grant=Grant(may_delegate=grant))
    editor = lead.hand_off("editor", TASK, grant=Grant(may=grant, may_delegate=grant)).accept()
    helper = editor.hand_off("helper", TASK, may=grant).accept()
    return lambda: helper.call(
        write_file, f"src/billing/totals{next(_NUMBERS)}.py", "return round_half_even(total)\n" * 6
    )


def works(relay: Relay) -> Act:
    """Return what a worker does: claim, accept, close. What waits is offered a hundred at a time, by `refills`."""
    relay.register(AGENT, lambda _: None)
    worker = Worker(relay)

    def work() -> None:
        if not worker.work_one():
            raise AssertionError("nothing waits; more has to be offered")

    return work


def refills(relay: Relay, handoffs: int) -> None:
    """Offer so many tasks to workers, from leads with a hundred each."""
    for first in range(0, handoffs, _OFFERED_AT_ONCE):
        lead = start_lead(relay)
        for _ in range(min(_OFFERED_AT_ONCE, handoffs - first)):
            offer(lead, Carrier.WORKER)


def offers_and_works(relay: Relay) -> Act:
    """Return both sides of a worker's handoff: offer, claim, accept, close. Four commits."""
    lead = start_lead(relay)
    relay.register(AGENT, lambda _: None)
    worker = Worker(relay)

    def hand_off() -> None:
        offer(lead, Carrier.WORKER)
        # What waits may be locked by somebody who is just claiming: nothing to claim does not mean that nothing waits.
        # It comes to an end, because everybody has offered one more than they have worked on.
        while not worker.work_one():
            pass

    return hand_off


def write_file(path: str, text: str) -> str:
    """Pretend to write: what a tool does itself is not measured."""
    del path, text
    return RESULT


def handoff_bytes(relay: Relay) -> list[int]:
    """Return how many bytes each of the three receipts of a handoff makes durable."""
    lead = start_lead(relay)
    with offer(lead) as child:
        pass
    return [run_bytes(relay.store, lead.id)[-1], *run_bytes(relay.store, child.id)]


def mean_bytes(sizes: list[int]) -> int:
    """Return what one receipt weighs on average."""
    return round(mean(sizes))


def chain(relay: Relay, hops: int, note: Mapping[str, str] | None = None) -> list[int]:
    """Hand one task on and on; return the bytes of each hop: what its run made durable, with the offer to the next.

    With a note, every run records a decision, which travels on with everything that was decided before.
    """
    runs = [start_lead(relay)]
    for number in range(hops + 1):
        run = offer(runs[-1]).accept()
        if note is not None:
            run.record(Decision(f"{number}: {note['text']}", why=note["why"]))
        runs.append(run)
    for run in reversed(runs):
        run.close()
    # The first is the root, and the last has handed nothing on.
    return [_run_total(relay.store, run) for run in runs[1:-1]]


def _run_total(store: LedgerStore, run: LiveRun) -> int:
    return sum(run_bytes(store, run.id))


def _task() -> str:
    # The same task twice is the same handoff, so each has a number.
    return f"{TASK} This is batch {next(_NUMBERS)}."
