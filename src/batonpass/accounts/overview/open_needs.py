"""Everything that needs a person now, in the whole ledger: held, asked, or in doubt. The oldest comes first."""

from collections.abc import Iterator
from datetime import datetime
from enum import StrEnum
from itertools import chain, islice
from typing import Final

from msgspec import Struct

from batonpass.accounts.held_calls import read_waiting_calls
from batonpass.model.base.content_names import QUESTION, TARGET
from batonpass.model.base.ids import AgentId, CallId, HandoffId, PrincipalId, RunId, StreamId, time_of
from batonpass.model.base.kinds import Kind
from batonpass.model.base.lifecycle import State
from batonpass.model.ledger.run import Handoff, Run, RunState
from batonpass.records.call import CallRecord, call_asked, find_calls
from batonpass.records.hold import find_backers, find_held_receipt, find_hold
from batonpass.records.lineage import read_task
from batonpass.records.text import read_receipt, read_texts
from batonpass.records.wait import find_wait
from batonpass.store.port import LedgerView, ReceiptQuery

MOST_NEEDS: Final = 200  # of each kind
_RUNS: Final = 64  # that are looked at for calls in doubt, the latest first
_OF_RUN: Final = 32
_RECEIPTS: Final = 512


class NeedKind(StrEnum):
    """Why somebody is needed."""

    HELD = "held"
    ASKED = "asked"
    DOUBT = "in doubt"


class OpenNeed(Struct, frozen=True, kw_only=True):
    """One thing that waits for a person."""

    kind: NeedKind
    id: HandoffId | CallId  # the handoff or call to decide, answer or settle
    handoff: HandoffId | None
    run: RunId
    root: RunId
    agent: AgentId
    since: datetime
    tool: str | None = None
    target: str | None = None  # of the call, its first line
    rule: str | None = None
    people: int = 1  # how many have to approve
    approved_by: tuple[PrincipalId, ...] = ()  # who has already
    proven: bool = False  # an approval needs an approver's key
    words: str | None = None  # the question, or the task


def find_needs(view: LedgerView, root: RunId | None = None) -> list[OpenNeed]:
    """Return everything that needs a person, in one tree or in all, the oldest first.

    Calls in doubt are looked for in the latest runs that did not complete: a ledger of years has more of them than
    anybody will settle.
    """
    found = chain(_held(view, root), _calls(view, root), _asked(view, root), _doubts(view, root))
    return sorted(found, key=lambda need: (need.since, need.id))


def _held(view: LedgerView, root: RunId | None) -> Iterator[OpenNeed]:
    held = view.find_held() if root is None else view.find_handoffs(root=root, states=(State.HELD,))
    for handoff in islice(held, MOST_NEEDS):
        # One that waits for another handoff waits for nobody.
        hold = None if find_wait(view, handoff) is not None else find_hold(view, handoff)
        if hold is None:
            continue
        receipt = find_held_receipt(view, hold)
        call = None if receipt is None else call_asked(receipt)
        acts = [*view.find_receipts(ReceiptQuery(stream=StreamId(handoff.id), kind=Kind.HANDOFF_HELD))]
        yield OpenNeed(
            kind=NeedKind.HELD,
            id=handoff.id,
            handoff=handoff.id,
            run=handoff.parent,
            root=handoff.root,
            agent=handoff.to,
            since=read_receipt(acts[-1]).at if acts else time_of(handoff.id),
            tool=None if call is None else call.tool,
            target=_target(view, call),
            rule=hold.rule,
            people=hold.approvals,
            approved_by=tuple(body.by for body in find_backers(view, hold)),
            proven=hold.proven,
            words=_task(view, handoff),
        )


def _calls(view: LedgerView, root: RunId | None) -> Iterator[OpenNeed]:
    for waiting in islice(read_waiting_calls(view, root), MOST_NEEDS):
        held = waiting.held
        yield OpenNeed(
            kind=NeedKind.HELD,
            id=held.id,
            handoff=waiting.run.handoff,
            run=waiting.run.id,
            root=waiting.run.root,
            agent=waiting.run.agent,
            since=waiting.at,
            tool=held.tool,
            target=_target(view, held),
            rule=held.rule,
            people=held.takes_people,
            proven=held.takes_proof,
        )


def _asked(view: LedgerView, root: RunId | None) -> Iterator[OpenNeed]:
    for handoff in islice(view.find_handoffs(root=root, states=(State.ASKED,)), MOST_NEEDS):
        question, at = read_question(view, handoff)
        yield OpenNeed(
            kind=NeedKind.ASKED,
            id=handoff.id,
            handoff=handoff.id,
            run=handoff.parent,
            root=handoff.root,
            agent=handoff.to,
            since=at,
            words=question,
        )


def read_question(view: LedgerView, handoff: Handoff) -> tuple[str | None, datetime]:
    """Return the last question that the receiver of a handoff asked, and when; None if its words are gone."""
    asked = [*view.find_receipts(ReceiptQuery(stream=StreamId(handoff.id), kind=Kind.HANDOFF_ASKED))]
    if not asked:
        return None, time_of(handoff.id)
    receipt = read_receipt(asked[-1])
    text = read_texts(view, receipt).get(QUESTION)
    return None if text is None else text.words, receipt.at


def _doubts(view: LedgerView, root: RunId | None) -> Iterator[OpenNeed]:
    runs: dict[RunId, Run] = {}
    if root is None:
        for stored in view.find_open_requests(runs=_RUNS, of_each=_OF_RUN, most=_RECEIPTS):
            runs.setdefault(RunId(stored.stream), view.get_run(RunId(stored.stream)))
    else:
        ended = tuple(state for state in RunState if state not in {RunState.OPEN, RunState.COMPLETED})
        runs = {run.id: run for run in islice(view.find_runs(root=root, states=ended), _RUNS)}
    for run in runs.values():
        for call in find_doubts(view, run):
            yield OpenNeed(
                kind=NeedKind.DOUBT,
                id=call.id,
                handoff=run.handoff,
                run=run.id,
                root=run.root,
                agent=run.agent,
                since=call.at,
                tool=call.tool,
                target=_target(view, call),
            )


def find_doubts(view: LedgerView, run: Run) -> list[CallRecord]:
    """Return the calls of a run that are in doubt: nobody knows their outcome, and no later attempt repeated them."""
    if run.state is RunState.OPEN:
        return []
    handoff = None if run.handoff is None else view.get_handoff(run.handoff)
    runs = [run] if handoff is None else [*view.find_attempts(handoff)]
    streams = [*(StreamId(one.id) for one in runs), *(() if handoff is None else (StreamId(handoff.id),))]
    receipts = (
        read_receipt(stored) for stream in streams for stored in view.find_receipts(ReceiptQuery(stream=stream))
    )
    return [call for call in find_calls(receipts, runs).values() if call.run == run.id and call.in_doubt]


def _target(view: LedgerView, call: CallRecord | None) -> str | None:
    ref = None if call is None else call.content.get(TARGET)
    if call is None or ref is None:
        return None
    text = read_texts(view, call.receipt).get(TARGET)
    return None if text is None else text.words or str(text.found)


def _task(view: LedgerView, handoff: Handoff) -> str | None:
    text = read_task(view, handoff)
    return None if text is None else text.words or str(text.found)
