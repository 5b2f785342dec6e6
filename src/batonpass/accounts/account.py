"""All that a ledger tells of one handoff, gathered once: the screen and the programs are told the same."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from batonpass.accounts.acting_as import Acted, find_acted
from batonpass.accounts.effects import EffectTold, read_effects
from batonpass.accounts.granted import given_by, grants, terms_in
from batonpass.accounts.scope_used import ScopeUsed, read_scope_used
from batonpass.accounts.sources import run_between, timed
from batonpass.audit.lookup import Tasks, Text, find_ancestors, read_contents, read_receipt, read_task, read_texts
from batonpass.errors import InvalidValueError
from batonpass.handoff.calls.credential import CREDENTIAL
from batonpass.handoff.calls.past_calls import ARGUMENTS, Resumption, read_runs
from batonpass.handoff.calls.room import PERMIT
from batonpass.handoff.desk import REASON
from batonpass.handoff.transfer.read_offer import BRIEF, REPORT, Offer, read_offer
from batonpass.handoff.using import BEYOND, SCOPE, USE
from batonpass.model.bodies import (
    HandoffAccepted,
    HandoffCompleted,
    HandoffFailed,
    HandoffLate,
    HandoffSettled,
    Settlement,
    ToolCompleted,
    ToolDenied,
    ToolFailed,
    ToolHeld,
    ToolRequested,
    VerificationFailed,
    VerificationPassed,
    VerificationRepeated,
    VerificationWaived,
)
from batonpass.model.content import ContentRef
from batonpass.model.ids import CallId, Digest, KeyId, RelayId, RunId, StreamId
from batonpass.model.items import OpenQuestion, Report
from batonpass.model.label import Source
from batonpass.model.lifecycle import State
from batonpass.model.receipt import Receipt
from batonpass.model.run import Handoff, Run, RunState
from batonpass.store.port import LedgerView, ReceiptQuery
from batonpass.wire.documents import decode_brief, decode_report

# What somebody works on, or waits for.
OPEN: Final = frozenset(
    {State.HELD, State.OFFERED, State.READY, State.CLAIMED, State.ASKED, State.RUNNING},
)
TARGET: Final = "target"

_ARGUMENTS_READ: Final = 50

Verdict = VerificationPassed | VerificationFailed | VerificationRepeated | VerificationWaived


@dataclass(frozen=True, slots=True, kw_only=True)
class CallSeen:
    """A call of an attempt as its receipts tell of it."""

    id: CallId
    run: RunId
    tool: str
    at: datetime
    ended_at: datetime | None = None
    outcome: str | None = None  # completed, failed or denied; None while nobody knows
    why: str | None = None  # the error of a failed one, the rule of a denied one
    key: Digest | None = None
    reads: bool = False
    reversible: bool = False
    flags: tuple[str, ...] = ()
    cost: int = 0
    took_us: int | None = None
    exit_code: int | None = None
    changed: int = 0  # files
    effects: tuple[EffectTold, ...] = ()  # what else, as its tool says
    content: Mapping[str, ContentRef]
    target: Text | None = None
    arguments: Text | None = None
    scope: Text | None = None  # what it does to what, as a grant sees it
    permits: Text | None = None  # by which permit of each hop it was made, its own run's first

    @property
    def permit(self) -> str | None:
        """Return the permit of its own run by which it was made; None if it was made by none."""
        if self.permits is None:
            return None
        # Each line is `AGENT may PERMIT`, and no agent has a space in its name.
        return (self.permits.words or "").partition("\n")[0].partition(" may ")[2] or None

    @property
    def is_beyond(self) -> bool:
        """Return whether it did more than its run was granted: its grant stopped nobody, or a command wrote more."""
        return not BEYOND.isdisjoint(self.flags)


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One run at a handoff: who signed, what it called, and how it ended."""

    run: Run
    accepted: Receipt
    receipts: int
    keys: tuple[KeyId, ...]  # of the run itself; more than one if its process was lost
    recorders: tuple[tuple[RelayId, KeyId], ...]
    calls: tuple[CallSeen, ...]
    closed: HandoffCompleted | HandoffFailed | None
    texts: Mapping[str, Text]  # what it said at its end

    @property
    def acceptance(self) -> HandoffAccepted | None:
        """Return what it said when it began."""
        return self.accepted.body if isinstance(self.accepted.body, HandoffAccepted) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """Something that somebody else than its runs did to a handoff."""

    receipt: Receipt
    texts: Mapping[str, Text]


@dataclass(frozen=True, slots=True, kw_only=True)
class Child:
    """A task that an attempt handed off further."""

    handoff: Handoff
    task: Text | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """One handoff, from the human's words to what stays open."""

    handoff: Handoff
    offer: Offer
    offered: Receipt
    task: Text | None
    lineage: tuple[Run, ...]  # its parent, and so on up to the root
    intent: Text | None
    inherited: tuple[str, ...] | None  # what its parent may pass on, or was itself given; None if that is gone
    granted: tuple[str, ...] | None  # what it was granted, or its parent asked for it; None likewise
    attempts: tuple[Attempt, ...]
    earlier: Resumption  # what the attempts before the latest left
    acts: tuple[Act, ...]
    children: tuple[Child, ...]
    unverified: tuple[Handoff, ...]  # results that it or its sender built on and nobody had verified
    used: ScopeUsed | None = None  # what it was granted against what it used; None if nobody granted anything
    refusal: Text | None = None  # why the offer would have been refused, had a grant been enforced
    given_by: str = ""  # who gave it what it was granted
    acted: tuple[Acted, ...] = ()  # credentials with which its attempts acted, and who else of the tree did
    mark: str | None = None  # that it was imported

    @property
    def parent(self) -> Run:
        """Return who handed off."""
        return self.lineage[0]

    @property
    def latest(self) -> Attempt | None:
        """Return the latest attempt."""
        return self.attempts[-1] if self.attempts else None

    @property
    def brought(self) -> tuple[Source, ...]:
        """Return what came from outside with what the latest attempt gave, and not with the offer."""
        closed = None if self.latest is None else self.latest.closed
        return () if closed is None else tuple(one for one in closed.taint if one not in self.offer.taint)

    @property
    def calls(self) -> tuple[CallSeen, ...]:
        """Return the calls of all attempts."""
        return tuple(call for attempt in self.attempts for call in attempt.calls)

    @property
    def settled(self) -> dict[CallId, Settlement]:
        """Return what somebody decided about calls in doubt."""
        return {
            body.call: body.settlement
            for body in (act.receipt.body for act in self.acts)
            if isinstance(body, HandoffSettled)
        }

    @property
    def late(self) -> dict[CallId, HandoffLate]:
        """Return the calls whose outcome came after their attempt was over."""
        return {body.call: body for body in (act.receipt.body for act in self.acts) if isinstance(body, HandoffLate)}

    @property
    def doubts(self) -> tuple[CallSeen, ...]:
        """Return the calls of which nobody knows whether they happened, nor has decided what becomes of them."""
        over = {attempt.run.id for attempt in self.attempts if attempt.run.state is not RunState.OPEN}
        answered = {call.key for call in self.calls if call.outcome == "completed" and call.key is not None}
        settled = self.settled
        return tuple(
            call
            for call in self.calls
            if call.outcome is None
            and call.run in over
            and not call.reads
            and call.id not in settled
            and call.key not in answered
        )

    @property
    def waiting(self) -> tuple[CallSeen, ...]:
        """Return the calls without an outcome whose attempt is not over."""
        running = {attempt.run.id for attempt in self.attempts if attempt.run.state is RunState.OPEN}
        return tuple(call for call in self.calls if call.outcome is None and call.run in running)

    @property
    def verdicts(self) -> tuple[Act, ...]:
        """Return how the latest attempt's result was judged, and judged again."""
        return tuple(
            act
            for act in self.acts
            if isinstance(act.receipt.body, Verdict) and act.receipt.body.attempt == self.handoff.attempt
        )

    @property
    def is_unverified(self) -> bool:
        """Return whether there is a result that nobody verified, nor accepted for a reason."""
        waived = any(isinstance(act.receipt.body, VerificationWaived) for act in self.verdicts)
        return self.handoff.state is State.COMPLETED and not waived

    @property
    def report(self) -> Report | None:
        """Return what the latest attempt reported, as far as it is there and can be read."""
        text = None if self.latest is None else self.latest.texts.get(REPORT)
        if text is None or text.body is None:
            return None
        if text.ref.media_type != "application/json":
            return Report(result=text.words or "")
        try:
            return decode_report(text.body)
        except InvalidValueError:
            return Report(result=text.words or "")

    @property
    def questions(self) -> tuple[tuple[OpenQuestion, bool], ...]:
        """Return what is not known, blocking ones first, and whether it was known to be open when it was handed off."""
        reported = () if self.report is None else self.report.open_questions
        carried = [question for question in self.offer.baton.open_questions if question not in reported]
        found = [*((question, False) for question in reported), *((question, True) for question in carried)]
        return tuple(sorted(found, key=lambda each: not each[0].blocking))


def read_account(view: LedgerView, handoff: Handoff) -> Account:
    """Gather all that receipts tell of a handoff. Raises `NotFoundError` if it is not there."""
    offer = read_offer(view, handoff)
    offered = read_receipt(view.get_receipt_at(StreamId(handoff.parent), handoff.seq))
    told = timed(view, [offered])
    parent = view.get_run(handoff.parent)
    lineage = (parent, *find_ancestors(view, parent))
    runs = _runs(view, handoff)
    earlier = runs if handoff.state in OPEN - {State.RUNNING} else runs[:-1]
    attempts = tuple(_attempt(view, run) for run in runs)
    children = [child for run in runs for child in view.find_handoffs(parent=run.id)]
    last = attempts[-1].closed if attempts else None
    unverified = dict.fromkeys((*offer.initiated.unverified, *(() if last is None else last.unverified)))
    return Account(
        handoff=handoff,
        offer=offer,
        offered=told.receipts[0],
        mark=told.mark,
        acted=_acted(view, handoff, attempts),
        used=read_scope_used(view, [(attempt.run, attempt.texts.get(USE)) for attempt in attempts]),
        refusal=read_texts(view, offered).get(REASON),
        given_by=given_by(terms_in(view, offered), parent.agent, parent.principal),
        task=read_task(view, handoff),
        lineage=lineage,
        intent=Tasks(view).find(lineage[-1]),
        inherited=_inherited(view, parent),
        granted=_granted(view, handoff),
        attempts=attempts,
        earlier=read_runs(view, earlier, StreamId(handoff.id)),
        acts=tuple(_acts(view, handoff)),
        children=tuple(Child(handoff=child, task=read_task(view, child)) for child in sorted(children, key=_by_id)),
        unverified=tuple(view.get_handoff(known) for known in unverified),
    )


def _acted(view: LedgerView, handoff: Handoff, attempts: tuple[Attempt, ...]) -> tuple[Acted, ...]:
    # The whole tree is read only if a run of this handoff acted with a credential at all.
    if not any(CREDENTIAL in call.content for attempt in attempts for call in attempt.calls):
        return ()
    own = {attempt.run.id for attempt in attempts}
    return tuple(acted for acted in find_acted(view, handoff.root) if own & acted.calls.keys())


def _runs(view: LedgerView, handoff: Handoff) -> list[Run]:
    return [] if handoff.attempt == 0 else [*view.find_attempts(handoff)]


def _by_id(handoff: Handoff) -> str:
    return handoff.id


def _inherited(view: LedgerView, parent: Run) -> tuple[str, ...] | None:
    """Return what a parent may delegate; of one that is not held to a grant, what was asked for it."""
    known = None if parent.handoff is None else view.get_handoff(parent.handoff)
    first = StreamId(parent.id), 1
    begun = read_receipt(view.get_receipt_at(*(first if known is None else (StreamId(known.parent), known.seq))))
    if grants(begun):
        terms = terms_in(view, begun)
        return None if terms is None else terms.may_delegate.lines
    return () if known is None else _granted(view, known)


def _granted(view: LedgerView, handoff: Handoff) -> tuple[str, ...] | None:
    """Return what was granted in a handoff; if nothing was, what was asked for it."""
    offer = read_receipt(view.get_receipt_at(StreamId(handoff.parent), handoff.seq))
    if grants(offer):
        terms = terms_in(view, offer)
        return None if terms is None else terms.may.lines
    brief = read_contents(view, {BRIEF: offer.content[BRIEF]})[BRIEF] if BRIEF in offer.content else None
    if brief is None:
        return ()
    return None if brief.body is None else decode_brief(brief.body).may


def _acts(view: LedgerView, handoff: Handoff) -> Iterator[Act]:
    for stored in view.find_receipts(ReceiptQuery(stream=StreamId(handoff.id))):
        receipt = read_receipt(stored)
        yield Act(receipt=receipt, texts=read_texts(view, receipt))


def _attempt(view: LedgerView, run: Run) -> Attempt:
    stored = view.find_receipts(ReceiptQuery(stream=StreamId(run.id)))
    receipts = timed(view, [read_receipt(one) for one in stored]).receipts
    last = receipts[-1]
    # The last thing of a run whose process died may be an offer that was refused (attempt 0): that closed nothing.
    closed = last.body if isinstance(last.body, HandoffCompleted | HandoffFailed) and last.body.attempt else None
    return Attempt(
        run=run_between(run, receipts[0], last),
        accepted=receipts[0],
        receipts=len(receipts),
        keys=tuple(dict.fromkeys(receipt.cosigner for receipt in receipts if receipt.cosigner is not None)),
        recorders=tuple(dict.fromkeys((receipt.relay, receipt.relay_key) for receipt in receipts)),
        calls=_with_texts(view, _calls(view, receipts)),
        closed=closed,
        texts=read_texts(view, last) if closed is not None else {},
    )


def _ended(view: LedgerView, call: CallSeen, receipt: Receipt, body: ToolCompleted | ToolFailed) -> dict[str, Any]:
    return {
        "flags": (*call.flags, *body.flags),
        "took_us": body.took_us,
        "exit_code": body.exit_code,
        "changed": len(body.changes),
        "effects": read_effects(view, receipt),
    }


def _calls(view: LedgerView, receipts: Iterable[Receipt]) -> list[CallSeen]:
    calls: dict[CallId, CallSeen] = {}
    for receipt in receipts:
        match receipt.body:
            case ToolRequested() as body:
                calls[body.call] = CallSeen(
                    id=body.call,
                    run=body.run,
                    tool=body.tool,
                    at=receipt.at,
                    key=body.key,
                    reads=body.reads,
                    reversible=body.reversible,
                    flags=body.flags,
                    content=receipt.content,
                )
            case ToolCompleted() as body if body.call in calls:
                calls[body.call] = replace(
                    calls[body.call],
                    ended_at=receipt.at,
                    outcome="completed",
                    cost=body.cost,
                    **_ended(view, calls[body.call], receipt, body),
                )
            case ToolFailed() as body if body.call in calls:
                calls[body.call] = replace(
                    calls[body.call],
                    ended_at=receipt.at,
                    outcome="failed",
                    why=body.error,
                    **_ended(view, calls[body.call], receipt, body),
                )
            case ToolDenied() | ToolHeld() as body:
                calls[body.call] = CallSeen(
                    id=body.call,
                    run=body.run,
                    tool=body.tool,
                    at=receipt.at,
                    ended_at=receipt.at,
                    outcome="denied" if isinstance(body, ToolDenied) else "held",
                    why=body.rule,
                    content=receipt.content,
                )
            case _:
                continue
    return list(calls.values())


def _with_texts(view: LedgerView, calls: Sequence[CallSeen]) -> tuple[CallSeen, ...]:
    """Fill in what calls changed; and of some that do not say so, with what they were called."""
    wanted = {f"{call.id} {TARGET}": call.content[TARGET] for call in calls if TARGET in call.content}
    silent = [call for call in calls if ARGUMENTS in call.content and (TARGET not in call.content or not call.outcome)]
    silent.sort(key=lambda call: call.outcome is not None)
    wanted |= {f"{call.id} {ARGUMENTS}": call.content[ARGUMENTS] for call in silent[:_ARGUMENTS_READ]}
    for name in (SCOPE, PERMIT):
        wanted |= {f"{call.id} {name}": call.content[name] for call in calls if name in call.content}
    texts = read_contents(view, wanted)
    return tuple(
        replace(
            call,
            target=texts.get(f"{call.id} {TARGET}"),
            arguments=texts.get(f"{call.id} {ARGUMENTS}"),
            scope=texts.get(f"{call.id} {SCOPE}"),
            permits=texts.get(f"{call.id} {PERMIT}"),
        )
        for call in calls
    )
