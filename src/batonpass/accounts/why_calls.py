"""Why a call was denied or made: what bound its run at that moment, worked out again from what is recorded."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from batonpass.accounts.binding import Binding
from batonpass.accounts.granted import has_grant
from batonpass.accounts.outside import taint_facts
from batonpass.accounts.trail_words import MESSAGE, REASON, TARGET, first_line
from batonpass.accounts.why_constraints import constraint_fact, quoted_sentence
from batonpass.accounts.why_hops import (
    GONE,
    brief_of,
    decision,
    name_of,
    offer_of,
    principal_of,
    proof_of,
    quoted,
    read_hops,
)
from batonpass.accounts.why_outcome import outcome_facts
from batonpass.accounts.why_outside import is_outside, outside_facts
from batonpass.accounts.why_values import Fact, Verdict, Why
from batonpass.audit.lookup import Text, ending, read_receipt, read_texts
from batonpass.errors import NotFoundError
from batonpass.guard.constraints import find_broken_by_call
from batonpass.handoff.calls.past_calls import ARGUMENTS
from batonpass.handoff.calls.room import PERMIT
from batonpass.handoff.transfer.holds import find_decision, get_held_call, hold_at
from batonpass.handoff.using import SCOPE
from batonpass.model.baton import Budget
from batonpass.model.bodies import (
    HandoffAccepted,
    HandoffApproved,
    HandoffBacked,
    HandoffHeld,
    HandoffSettled,
    Kind,
    RunSettled,
    RunStarted,
    ToolApproved,
    ToolBacked,
    ToolCompleted,
    ToolDenied,
    ToolFailed,
    ToolHeld,
    ToolRequested,
)
from batonpass.model.ids import CallId, ContentId, Digest, RunId, StreamId
from batonpass.model.items import Constraint
from batonpass.model.receipt import Mode, Receipt
from batonpass.model.run import Handoff, Run
from batonpass.model.visible import visible
from batonpass.store.port import LedgerView, ReceiptQuery

_MILLION: Final = 1_000_000
_APPROVALS: Final = (HandoffBacked, HandoffApproved, ToolBacked, ToolApproved)
_WOULD: Final = {"would_deny": "denied", "would_hold": "held", "would_ask": "asked about"}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Earlier:
    """A call that was requested before this one, by this run or an earlier attempt."""

    receipt: Receipt
    body: ToolRequested
    run: Run
    ended: bool
    settled: HandoffSettled | RunSettled | None

    @property
    def name(self) -> str:
        return f"{self.body.tool} {ending(self.body.call)} of {name_of(self.run)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Case:
    """A call, and all that the ledger held about its run when it was decided."""

    view: LedgerView
    run: Run
    receipt: Receipt
    body: ToolRequested | ToolDenied | ToolHeld
    texts: Mapping[str, Text]
    before: Sequence[Receipt]
    after: Sequence[Receipt]

    @property
    def who(self) -> str:
        return name_of(self.run)

    @property
    def what(self) -> str:
        """Return what was tried, on one line."""
        for name in (TARGET, ARGUMENTS):
            text = self.texts.get(name)
            if text is not None:
                shown = quoted(text) if text.body is None else first_line(name, text.ref.id, text.body).bare
                return f"{self.body.tool} {shown}".rstrip()
        return self.body.tool

    @property
    def exceeded(self) -> bool:
        """Return whether it is a command that changed what its run may not write."""
        return any(is_outside(each) and getattr(each.body, "call", None) == self.body.call for each in self.after)

    @property
    def arguments(self) -> dict[str, Any] | None:
        """Return what it was called with; None if that is gone or cannot be read."""
        text = self.texts.get(ARGUMENTS)
        try:
            read = None if text is None or text.body is None else json.loads(text.body)
        except (ValueError, RecursionError):
            return None
        given = read.get(ARGUMENTS, read) if isinstance(read, dict) else None
        return given if isinstance(given, dict) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Decided:
    """What decided: in words, with the facts, and the item that travelled, if one did."""

    words: str
    facts: tuple[Fact, ...] = ()
    item: ContentId | None = None
    whole: bool = False  # the words are the whole answer


def explain_call(view: LedgerView, receipt: Receipt) -> Why:
    """Return why a call was denied or made, by the receipt of its denial or its request."""
    body = receipt.body
    if not isinstance(body, ToolRequested | ToolDenied | ToolHeld):
        raise NotFoundError("call of receipt", receipt.id)
    run = view.get_run(body.run)
    stream = [read_receipt(stored) for stored in view.find_receipts(ReceiptQuery(stream=StreamId(run.id)))]
    case = _Case(
        view=view,
        run=run,
        receipt=receipt,
        body=body,
        texts=read_texts(view, receipt),
        before=[each for each in stream if each.seq < receipt.seq],
        after=[each for each in stream if each.seq > receipt.seq],
    )
    rules = (
        (body.rule,)
        if isinstance(body, ToolDenied | ToolHeld)
        else tuple(flag.partition(".")[2] for flag in body.flags if flag.partition(".")[0] in _WOULD)
    )
    decided = tuple(_decide(case, rule) for rule in rules)
    denied = isinstance(body, ToolDenied | ToolHeld)
    principal, intent = principal_of(view, run)
    return Why(
        verdict=_verdict(case),
        answer=_denied(case, decided[0]) if denied else _allowed(case),
        kind="call",
        id=body.call,
        receipt=receipt.id,
        at=receipt.at,
        mode=receipt.mode,
        rule=body.rule if isinstance(body, ToolDenied | ToolHeld) else None,
        facts=(
            Fact(label="tried" if denied else "called", text=case.what, receipt=receipt.id, at=receipt.at),
            *(fact for each in decided for fact in each.facts),
            *_permitted(case),
            *outside_facts(view, case.after, body.call),
            *_labelled(case),
            *_settled(case),
            *_decided(case),
            *(() if denied else outcome_facts(view, run, receipt, body.call, case.after)),
        ),
        hops=read_hops(view, run, next((each.item for each in decided if each.item is not None), None)),
        principal=principal,
        intent=intent,
    )


def _permitted(case: _Case) -> Iterator[Fact]:
    """Yield the permits by which a call was made, from its own run up to where the grant begins."""
    if (permits := case.texts.get(PERMIT)) is not None:
        for line in (permits.words or GONE).splitlines():
            yield Fact(label="permit", text=visible(line), receipt=case.receipt.id, at=case.receipt.at)


def _labelled(case: _Case) -> Iterator[Fact]:
    """Yield the label of a call, what had come from outside to its run, and whose words stand in its arguments."""
    if isinstance(case.body, ToolDenied) or case.body.label is None:
        return
    label = case.body.label
    readers = "" if label.readers is None else f" · may be read by {', '.join(label.readers) or 'nobody'}"
    yield Fact(label="label", text=f"{label.integrity}{readers}", receipt=case.receipt.id, at=case.receipt.at)
    if label.is_external:
        yield from taint_facts(case.view, case.run.id, case.run.root, case.receipt.id)
    if case.body.untrusted:
        whose = ", ".join(ending(source) for source in case.body.untrusted)
        yield Fact(label="arguments", text=f"contain words of {whose}", receipt=case.receipt.id, at=case.receipt.at)


def _verdict(case: _Case) -> Verdict:
    if isinstance(case.body, ToolHeld):
        return Verdict.HELD
    if isinstance(case.body, ToolDenied):
        return Verdict.DENIED
    return Verdict.EXCEEDED if case.exceeded and case.receipt.mode is Mode.ENFORCED else Verdict.ALLOWED


def _denied(case: _Case, decided: _Decided) -> str:
    # What the guard says names the agent itself, as the agent was told it.
    return decided.words if decided.whole else f"{case.who} {decided.words}"


def _allowed(case: _Case) -> str:
    called = f"{case.who} called {case.what}"
    if approved := [receipt.body for receipt in _approvals(case) if isinstance(receipt.body, _APPROVALS)]:
        return f"{called}; {' and '.join(f'{body.by} approved it ({proof_of(body)})' for body in approved)}"
    flags = case.body.flags if isinstance(case.body, ToolRequested) else ()
    told = [flag.partition(".") for flag in flags]
    would = [f"{_WOULD[what]} by rule {rule}" for what, _, rule in told if what in _WOULD]
    scope = case.texts.get(SCOPE) if has_grant(case.view, case.run.id) else None
    if scope is not None and case.exceeded:
        how = "" if case.receipt.mode is Mode.ENFORCED else "; its grant is only tried out, so nothing was enforced"
        return f"{called}; its grant covers {scope.words or GONE}, and not all that the command changed{how}"
    if scope is not None and not would:
        return f"{called}; its grant covers {scope.words or GONE}, and nothing else stood against it"
    if case.receipt.mode is Mode.ENFORCED:
        return f"{called}; enforced, and no constraint, budget or earlier change stood against it; no grant is recorded"
    if not would:
        return f"{called}; no grant: observed, so nothing was enforced, and nothing was flagged"
    how = "no grant: observed" if scope is None else "its grant is only tried out"
    return f"{called}; {how}, so nothing was enforced; it would have been {' and '.join(would)}"


_NOT_OF_THE_POLICY: Final = frozenset(
    {"budget", "call.in-doubt", "constraint", "credential", "env", "target", "target-changed"}
)


def _decide(case: _Case, rule: str) -> _Decided:
    """Return what a rule rests on. What is not recorded is worked out again, and said to be unknown if it cannot."""
    found: _Decided | None = None
    match rule:
        case "constraint":
            found = _by_constraint(case)
        case "call.in-doubt":
            found = _by_doubt(case)
        case "target-changed":
            found = _by_change(case)
        case "budget":
            found = _by_budget(case)
        case "taint" if REASON in case.texts:
            found = _Decided(words=f"tried {case.what} after content from outside had reached it; rule taint")
        case "grant" | "limit" | "protected" | "guard":
            found = _by_guard(case, rule)
        case _:
            pass
    if found is None and REASON in case.texts:
        # What cannot be worked out again was said at that moment.
        found = _by_guard(case, rule) if rule in _NOT_OF_THE_POLICY else _by_policy(case, rule)
    if found is not None:
        return found
    if (said := _said(case)) is not None:
        return _Decided(
            words=f"tried {case.what}; rule: {rule}: {said}",
            facts=(Fact(label="rule", text=f"{rule}: {said}", receipt=case.receipt.id, at=case.receipt.at),),
        )
    gone = case.texts.get(ARGUMENTS) is None or case.arguments is None
    missing = f"; {GONE}" if gone and rule in {"constraint", "call.in-doubt", "target-changed"} else ""
    return _Decided(
        words=f"tried {case.what}; rule: {rule}; the record does not say what it rests on{missing}",
        facts=(Fact(label="rule", text=rule, receipt=case.receipt.id, at=case.receipt.at),),
    )


def _said(case: _Case) -> str | None:
    """Return the sentence with which a call was refused, quoted; None if none is there."""
    message = case.texts.get(MESSAGE) if isinstance(case.body, ToolDenied) else None
    words = first_line(MESSAGE, message.ref.id, message.body) if message and message.body else None
    return str(words) if words is not None and words.line else None


def _by_policy(case: _Case, rule: str) -> _Decided:
    """Return what the policy said at that moment, and which file it was: the file may have changed since."""
    first = read_receipt(case.view.get_receipt_at(StreamId(case.run.id), 1)).body
    digest = first.policy if isinstance(first, RunStarted | HandoffAccepted) else None
    which = "the shipped policy" if digest is None else f"the policy with sha256 {digest[:12]}…"
    said = quoted(case.texts[REASON])
    return _Decided(
        words=f"tried {case.what}; rule {rule} of {which}",
        facts=(Fact(label="rule", text=f"{rule}: {said} · {which}", receipt=case.receipt.id, at=case.receipt.at),),
    )


def _by_guard(case: _Case, rule: str) -> _Decided | None:
    """Return what the guard said, which names what is held, what was tried, and who above holds it."""
    said = case.texts.get(REASON)
    if said is None or said.words is None:
        return None
    # Of a call that was made all the same, the answer is not what the guard said.
    words = f"{rule} · {said.words}" if isinstance(case.body, ToolRequested) else rule
    fact = Fact(label="rule", text=words, receipt=case.receipt.id, at=case.receipt.at)
    return _Decided(words=said.words, facts=(fact,), whole=True)


def _by_constraint(case: _Case) -> _Decided | None:
    if case.arguments is None:
        return None
    broken = [
        (item, found)
        for item in Binding(case.view, case.run, case.before).at(case.receipt)
        if isinstance(item.value, Constraint)
        for found in find_broken_by_call((item.value,), case.body.tool, case.arguments)
    ]
    if not broken:
        return None
    item, first = broken[0]
    return _Decided(
        words=f"must keep to {quoted_sentence(first)}, tried {case.body.tool}, where {first.found}; {item.by} set it",
        facts=tuple(constraint_fact(case.view, item, found) for item, found in broken),
        item=item.id,
    )


def _by_doubt(case: _Case) -> _Decided | None:
    given = case.texts.get(ARGUMENTS)
    if given is None or given.body is None:
        return None
    for earlier in _earlier(case):
        known = read_texts(case.view, earlier.receipt).get(ARGUMENTS)
        if not earlier.ended and earlier.body.tool == case.body.tool and known is not None and known.body == given.body:
            return _Decided(
                words=f"tried {case.what} again, and nobody knows whether {earlier.name} happened: repeat or skip?",
                facts=(_earlier_fact(earlier, "requested, and it has no outcome"),),
            )
    return None


def _by_change(case: _Case) -> _Decided | None:
    target = case.body.target if isinstance(case.body, ToolRequested) else None
    values = {value for value in (case.arguments or {}).values() if isinstance(value, str)}
    for earlier in _earlier(case):
        if earlier.body.reads or earlier.body.target is None:
            continue
        known = read_texts(case.view, earlier.receipt).get(TARGET)
        # A denial does not say what the call would have changed: what it names word for word is taken to be it.
        named = target is None and known is not None and known.words is not None and known.words in values
        if named or (target is not None and earlier.body.target == target):
            changed = "had changed that already" if earlier.ended else "may have changed that already"
            return _Decided(
                words=f"tried {case.what}, and {earlier.name} {changed}",
                facts=(_earlier_fact(earlier, f"changed {quoted(known)}"),),
            )
    return None


def _earlier_fact(earlier: _Earlier, text: str) -> Fact:
    return Fact(label="earlier", text=f"{earlier.name}: {text}", receipt=earlier.receipt.id, at=earlier.receipt.at)


def _earlier(case: _Case) -> Iterator[_Earlier]:
    """Yield what was requested in earlier attempts, and in this one before its process was lost."""
    handoff = None if case.run.handoff is None else case.view.get_handoff(case.run.handoff)
    runs = [case.run] if handoff is None else [*case.view.find_attempts(handoff)]
    decided = _settlements(case)
    for run in runs:
        query = ReceiptQuery(stream=StreamId(run.id))
        receipts = [read_receipt(stored) for stored in case.view.find_receipts(query)]
        ended = {each.body.call for each in receipts if isinstance(each.body, ToolCompleted | ToolFailed)}
        for receipt in receipts:
            own = run.id == case.run.id
            if own and (receipt.seq >= case.receipt.seq or receipt.epoch >= case.receipt.epoch):
                continue
            if isinstance(receipt.body, ToolRequested) and run.attempt <= case.run.attempt:
                body = receipt.body
                yield _Earlier(
                    receipt=receipt, body=body, run=run, ended=body.call in ended, settled=decided.get(body.call)
                )


def _settlements(case: _Case) -> dict[CallId, HandoffSettled | RunSettled]:
    stream = StreamId(case.run.handoff or case.run.id)
    found = (read_receipt(stored).body for stored in case.view.find_receipts(ReceiptQuery(stream=stream)))
    return {body.call: body for body in found if isinstance(body, HandoffSettled | RunSettled)}


def _settled(case: _Case) -> Iterator[Fact]:
    """Yield what somebody decided about the same call of an earlier attempt."""
    if isinstance(case.body, ToolRequested) and case.body.key is not None:
        for earlier in _earlier(case):
            if earlier.settled is not None and earlier.body.key == case.body.key:
                decided = f"{earlier.settled.settlement}, decided by {earlier.settled.by}"
                yield _earlier_fact(earlier, f"was in doubt: {decided}")


def _decided(case: _Case) -> Iterator[Fact]:
    """Yield what people decided about a call that was held, or about this one, which was held before it was made."""
    found: Iterable[Receipt] = ()
    if isinstance(case.body, ToolHeld):
        found = _about_call(case, case.body.call)
    elif isinstance(case.body, ToolRequested):
        found = _approvals(case)
    for receipt in found:
        fact = decision(receipt, read_texts(case.view, receipt))
        yield from () if fact is None else (fact,)


def _approvals(case: _Case) -> Sequence[Receipt]:
    """Return by whose approvals a call was made: those of the last hold of this very call before it."""
    key = case.body.key if isinstance(case.body, ToolRequested) else None
    if key is None:
        return ()
    own = [receipt.body for receipt in case.before if isinstance(receipt.body, ToolHeld) and receipt.body.key == key]
    if own:
        return tuple(_about_call(case, own[-1].call))
    return () if case.run.handoff is None else _about_attempts(case, case.view.get_handoff(case.run.handoff), key)


def _about_call(case: _Case, call: CallId) -> Iterator[Receipt]:
    """Yield what people decided about a held call of a run that went on."""
    with suppress(NotFoundError):
        hold, _ = get_held_call(case.view, call)
        for stored in case.view.find_receipts(ReceiptQuery(kind=Kind.TOOL_BACKED)) if hold.approvals > 1 else ():
            receipt = read_receipt(stored)
            if isinstance(receipt.body, ToolBacked) and receipt.body.call == call:
                yield receipt
    if (found := find_decision(case.view, call)) is not None:
        yield found[0]


def _about_attempts(case: _Case, handoff: Handoff, key: Digest) -> Sequence[Receipt]:
    """Return what people said for a call before which an earlier attempt had stopped."""
    found: list[Receipt] = []
    is_meant = False
    for stored in case.view.find_receipts(ReceiptQuery(stream=StreamId(handoff.id))):
        receipt = read_receipt(stored)
        if isinstance(receipt.body, HandoffHeld):
            if receipt.body.attempt >= case.run.attempt:
                break
            hold = hold_at(case.view, handoff, stored)
            is_meant = hold is not None and hold.key == key
            found = [] if is_meant else found
        elif is_meant and isinstance(receipt.body, HandoffBacked | HandoffApproved):
            found.append(receipt)
    return found


def _by_budget(case: _Case) -> _Decided | None:
    if case.run.handoff is None:
        return None
    offer, _ = offer_of(case.view, case.view.get_handoff(case.run.handoff))
    brief = brief_of(case.view, offer)
    budget = Budget() if brief is None or brief.budget is None else brief.budget
    calls = sum(isinstance(receipt.body, ToolRequested) for receipt in case.before)
    cost = sum(receipt.body.cost for receipt in case.before if isinstance(receipt.body, ToolCompleted))
    seconds = (case.receipt.at - case.run.started_at).total_seconds()
    spent = None
    if budget.calls is not None and calls >= budget.calls:
        spent = f"at most {budget.calls} calls, and {calls} were made"
    elif budget.seconds is not None and seconds >= budget.seconds:
        spent = f"at most {budget.seconds} seconds, and {seconds:.0f} had passed"
    elif budget.cost is not None and cost >= budget.cost:
        spent = f"a cost of at most {Decimal(budget.cost) / _MILLION:f}, and {Decimal(cost) / _MILLION:f} were spent"
    if spent is None:
        return None
    setter = name_of(case.view.get_run(RunId(offer.stream)))
    return _Decided(
        words=f"has used up its budget ({spent}), tried {case.what}; {setter} set it",
        facts=(Fact(label="budget", text=f"{spent} · set by {setter} in its offer", receipt=offer.id, at=offer.at),),
    )
