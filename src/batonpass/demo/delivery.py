"""The story of a load that five carriers pass on: constraints arrive, and a missed window is traced to its handoff.

The story knows the truth, and compares the ledger's answers with it.
"""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final, Protocol, cast

from batonpass.accounts.why.why import explain
from batonpass.accounts.why.why_values import Why
from batonpass.audit.carriage import Carriage, prove_carriage
from batonpass.audit.meant_ids import get_handoff
from batonpass.audit.short_ids import ending
from batonpass.demo.examples import load_example
from batonpass.demo.story import Step, StoryLine, StoryTone, confirmed, require_answer, verified_step
from batonpass.model.base.ids import StreamId
from batonpass.model.baton.items import Constraint
from batonpass.model.bodies.body import HandoffCompleted, Kind
from batonpass.records.call import CallRecord, find_calls
from batonpass.records.text import read_receipt
from batonpass.relay import Relay
from batonpass.store.port import LedgerView, ReceiptQuery

NAME: Final = "freight.py"
FIRST: Final = "ghent-haulage"
LOSER: Final = "lyon-cold-chain"
LAST: Final = "ionian-ferries"

_CARRIERS: Final = 5
_TOLD: Final = ("kept last", "broken first", "question")


class Freight(Protocol):
    """The parts of the example that the story uses."""

    WORDS: str
    CHANGE: str
    CAVEAT: str
    CONSTRAINTS: tuple[Constraint, ...]
    main: Callable[[Path, Callable[[str], None]], Relay]


def play_delivery(directory: Path) -> Iterator[Step]:
    """Play the story, then ask where the window was lost. Raises `VerificationError` if an answer is not true."""
    freight = cast("Freight", load_example(NAME))
    told: list[str] = []
    with freight.main(directory, told.append) as relay:
        with relay.store.view() as view:
            yield Step("Ana asks for one delivery; her constraints are typed and bind everybody", _asked(freight))
            yield Step("Five carriers, each passes on to the next; on the way Ana changes the route", _travelled(told))
            yield _arrived(view, freight)
            yield _closed(view)
            yield _traced(view, freight)
        yield verified_step(relay)


def _asked(freight: Freight) -> tuple[StoryLine, ...]:
    bound = (
        StoryLine(f"{each.sentence} · checked at {each.binds_to}", StoryTone.QUIET) for each in freight.CONSTRAINTS
    )
    return (StoryLine(f"ana: {freight.WORDS}"), *bound)


def _travelled(told: list[str]) -> tuple[StoryLine, ...]:
    return tuple(StoryLine(line, StoryTone.BAD if "waited" in line else StoryTone.PLAIN) for line in told)


def _arrived(view: LedgerView, freight: Freight) -> Step:
    last, first = (prove_carriage(view, get_handoff(view, agent)) for agent in (LAST, FIRST))
    later = [item.body for item in first.later]
    require_answer(last.whole and len(last.hops) == _CARRIERS, "everything arrived at the fifth carrier")
    require_answer(later == [freight.CHANGE.encode()], "the first carrier was on the road when Ana changed the route")
    return Step(
        "What the fifth carrier received, compared with Ana's words",
        (
            StoryLine(f"$ batonpass handoff show {LAST} --proof", StoryTone.QUIET),
            *(StoryLine(text) for text in _hops(last)),
            StoryLine(f"whole: {len(last.arrived)} items over {len(last.hops)} hops, byte for byte", StoryTone.GOOD),
        ),
    )


def _hops(carriage: Carriage) -> Iterator[str]:
    for hop in carriage.hops:
        added = " · and Ana's change" if hop.number > 1 and hop.added else ""
        yield f"{hop.number}  {hop.sender} → {hop.to}: {hop.same} items, the same as before{added}"


def _closed(view: LedgerView) -> Step:
    handoff = get_handoff(view, LAST)
    readings = [call for call in _calls(view) if call.tool == "log_temperature"]
    broken = [body.tool for body in readings if body.flags]
    flags = _flags(view, handoff.run or "")
    require_answer(not broken, "no reading was out of range")
    require_answer(flags == ("would_deny.constraint",), "the last carrier closed with a broken constraint")
    return Step(
        "The load is four hours late, and the last carrier's close-out says so",
        (
            StoryLine(f"{len(readings)} readings of the temperature, each within its limits", StoryTone.GOOD),
            StoryLine(f"{LAST} {ending(handoff.id)}: {handoff.state}, with {', '.join(flags)}", StoryTone.BAD),
        ),
    )


def _calls(view: LedgerView) -> Iterable[CallRecord]:
    return find_calls(map(read_receipt, view.find_receipts(ReceiptQuery(kind=Kind.TOOL_REQUESTED)))).values()


def _flags(view: LedgerView, run: str) -> tuple[str, ...]:
    stream = view.get_stream(StreamId(run))
    body = read_receipt(view.get_receipt_at(stream.id, stream.seq)).body
    return body.flags if isinstance(body, HandoffCompleted) else ()


def _traced(view: LedgerView, freight: Freight) -> Step:
    why = explain(view, LAST)
    lost = get_handoff(view, LOSER)
    place = f"handoff {ending(lost.id)} "
    require_answer(place in _fact(why, "kept last"), "with the detour it was still in time")
    require_answer(place in _fact(why, "broken first"), "the window was lost where the load waited")
    require_answer(freight.CAVEAT in _fact(why, "question"), "whoever lost it had said so")
    facts = [fact for fact in why.facts if fact.label in _TOLD]
    width = max(map(len, _TOLD))
    return Step(
        "Where was the window lost? One question",
        (
            StoryLine(f"$ batonpass why {LAST}", StoryTone.QUIET),
            StoryLine(why.sentence),
            *(
                StoryLine(
                    f"  {fact.label:<{width}}  {fact.text}",
                    StoryTone.BAD if fact.label == "broken first" else StoryTone.QUIET,
                )
                for fact in facts
            ),
            confirmed(f"with the detour it was still in time; {LOSER} lost it, and left a question"),
        ),
    )


def _fact(why: Why, label: str) -> str:
    return next((fact.text for fact in why.facts if fact.label == label), "")
