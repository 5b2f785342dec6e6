"""Why a call was denied or made: the bounds of its run at that moment, worked out again from records."""

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

from msgspec import Struct

from batonpass.accounts.handoff.effects import read_effects
from batonpass.accounts.trail.first_lines import first_line
from batonpass.accounts.why.constraint_checks import BoundConstraints
from batonpass.accounts.why.outside_content import taint_facts
from batonpass.accounts.why.why_constraint import constraint_fact, quoted_sentence
from batonpass.accounts.why.why_grant import is_outside, outside_facts, revoked_facts
from batonpass.accounts.why.why_hops import GONE, answer_of, decision, name_of, proof_of, quoted
from batonpass.accounts.why.why_values import Explanation, Fact, Why, WhyVerdict
from batonpass.audit.short_ids import ending
from batonpass.errors import NotFoundError
from batonpass.guard.constraints.constraints import find_broken_by_call
from batonpass.handoff.tools.refusal_sentences import MADE
from batonpass.model.base.content_names import ARGUMENTS, MESSAGE, PERMIT, REASON, SCOPE, TARGET
from batonpass.model.base.ids import ContentId, RunId, StreamId
from batonpass.model.base.kinds import Mode
from batonpass.model.base.visible import visible
from batonpass.model.baton.baton import Budget
from batonpass.model.baton.items import Constraint
from batonpass.model.bodies.body import HandoffAccepted, RunStarted
from batonpass.model.ledger.receipt import Receipt
from batonpass.model.ledger.run import Run
from batonpass.records.call import CallOutcome, CallRecord, arguments_in, find_calls, read_call, read_calls
from batonpass.records.grant import brief_of, has_grant, read_credential
from batonpass.records.hold import CallLeave, Leave, find_leave
from batonpass.records.lineage import get_offer
from batonpass.records.text import Text, read_receipt, read_stream, read_texts
from batonpass.store.port import LedgerView


def outcome_facts(view: LedgerView, call: CallRecord) -> Iterator[Fact]:
    """Yield the outcome of a call and its effects, or that the outcome is unknown."""
    ending = call.ending
    if ending is None or call.ended is None:
        told = "none: nobody knows whether it happened" if call.is_over else "no outcome yet"
        yield Fact(label="outcome", text=told)
        return
    words = ["completed" if call.outcome is CallOutcome.COMPLETED else _failed(view, call)]
    words += [] if call.exit_code is None else [f"exit code {call.exit_code}"]
    yield Fact(label="outcome", text=" · ".join((*words, *call.ended.flags)), receipt=ending.id, at=ending.at)
    for effect in read_effects(view, call):
        yield Fact.of("effect", str(effect), ending)


def _failed(view: LedgerView, call: CallRecord) -> str:
    message = None if call.ending is None else read_texts(view, call.ending).get(MESSAGE)
    said = f": {first_line(MESSAGE, message.ref.id, message.body)}" if message and message.body else ""
    return f"failed: {call.error}{said}"


_MILLION: Final = 1_000_000
_WOULD: Final = {"would_deny": "denied", "would_hold": "held", "would_ask": "asked about"}


class _Case(Struct, frozen=True, kw_only=True):
    """A call, and everything the ledger had about its run when it was decided."""

    view: LedgerView
    run: Run
    call: CallRecord
    leave: CallLeave
    texts: Mapping[str, Text]
    before: Sequence[Receipt]

    @property
    def receipt(self) -> Receipt:
        return self.call.receipt

    @property
    def who(self) -> str:
        return name_of(self.run)

    @property
    def what(self) -> str:
        """Return the attempted call on one line."""
        for name in (TARGET, ARGUMENTS):
            text = self.texts.get(name)
            if text is not None:
                shown = quoted(text) if text.body is None else first_line(name, text.ref.id, text.body).bare
                return f"{self.call.tool} {shown}".rstrip()
        return self.call.tool

    @property
    def is_stopped(self) -> bool:
        """Return whether it was denied or held, and so not made."""
        return self.call.outcome in {CallOutcome.DENIED, CallOutcome.HELD}

    @property
    def arguments(self) -> dict[str, Any] | None:
        """Return its arguments; None if they are gone or unreadable."""
        text = self.texts.get(ARGUMENTS)
        return None if text is None else arguments_in(text.body)


class _Decided(Struct, frozen=True, kw_only=True):
    """The reason for a decision: in words, with facts, and the item behind it, if there is one."""

    words: str
    facts: tuple[Fact, ...] = ()
    item: ContentId | None = None
    whole: bool = False  # the words are the complete answer


def explain_call(view: LedgerView, receipt: Receipt) -> Why:
    """Return why a call was denied or made, given a receipt about it. Raises `NotFoundError` if it is about none."""
    call = read_call(view, receipt)
    if call is None:
        raise NotFoundError("call of receipt", receipt.id)
    run = view.get_run(call.run)
    case = _Case(
        view=view,
        run=run,
        call=call,
        leave=find_leave(view, call),
        texts=read_texts(view, call.receipt),
        before=[each for each in read_stream(view, StreamId(run.id)) if each.seq < call.receipt.seq],
    )
    rules = (call.rule,) if call.rule is not None else tuple(rule for what, rule in call.would if what in _WOULD)
    decided = tuple(_decide(case, rule) for rule in rules)
    label = "tried" if case.is_stopped else "called"
    explained = Explanation(
        verdict=_verdict(case),
        answer=_stopped(case, decided[0]) if case.is_stopped else _made_already(case) or _allowed(case),
        rule=call.rule,
        facts=(
            Fact.of(label, case.what, call.receipt),
            *(fact for each in decided for fact in each.facts),
            *(revoked_facts(view, run, call.at) if "grant" in rules else ()),
            *_permitted(case),
            *outside_facts(view, call),
            *_acted_as(case),
            *_labelled(case),
            *_settled(case),
            *leave_facts(case.leave),
            *(() if case.is_stopped else outcome_facts(view, call)),
        ),
        item=next((each.item for each in decided if each.item is not None), None),
    )
    return answer_of(view, run, call.receipt, explained, about=call.id)


def leave_facts(leave: CallLeave) -> Iterator[Fact]:
    """Yield the rulings on exactly this call, and the rules that asked for an approval nobody was asked for."""
    if leave.hold is not None:
        held = leave.hold.receipt
        yield Fact.of("held", f"rule {leave.hold.hold.rule}", held)
    for approval in leave.approvals:
        reason = None if approval.reason is None else {REASON: approval.reason}
        fact = decision(approval.receipt, reason or {})
        yield from () if fact is None else (fact,)
    for rule in leave.rules:
        yield Fact(label="approval", text=f"none, though rule {rule} asks for one")


def _acted_as(case: _Case) -> Iterator[Fact]:
    """Yield the credential that a call used."""
    if (acted := read_credential(case.view, case.call)) is not None:
        whose = GONE if acted.name is None else f"{acted.name} of {acted.identity}"
        yield Fact.of("credential", visible(whose), case.receipt)


def _permitted(case: _Case) -> Iterator[Fact]:
    """Yield the permits that covered a call, from its own run up to the start of the grant."""
    if (permits := case.texts.get(PERMIT)) is not None:
        for line in (permits.words or GONE).splitlines():
            yield Fact.of("permit", visible(line), case.receipt)


def _labelled(case: _Case) -> Iterator[Fact]:
    """Yield the label of a call, the outside sources of its run, and whose words its arguments contain."""
    label = case.call.label
    if label is None:
        return
    readers = "" if label.readers is None else f" · may be read by {', '.join(label.readers) or 'nobody'}"
    yield Fact.of("label", f"{label.integrity}{readers}", case.receipt)
    if label.is_external:
        yield from taint_facts(case.view, case.run.id, case.run.root, case.receipt.id)
    if case.call.untrusted:
        whose = ", ".join(ending(source) for source in case.call.untrusted)
        yield Fact.of("arguments", f"contain words of {whose}", case.receipt)


def _verdict(case: _Case) -> WhyVerdict:
    if case.call.outcome is CallOutcome.HELD:
        return WhyVerdict.DENIED if case.leave.leave is Leave.REFUSED else WhyVerdict.HELD
    if case.call.outcome is CallOutcome.DENIED:
        return WhyVerdict.DENIED
    exceeded = is_outside(case.call) and case.receipt.mode is Mode.ENFORCED
    return WhyVerdict.EXCEEDED if exceeded else WhyVerdict.ALLOWED


def _stopped(case: _Case, decided: _Decided) -> str:
    # The guard's sentence names the agent itself.
    words = decided.words if decided.whole else f"{case.who} {decided.words}"
    if case.call.outcome is not CallOutcome.HELD or case.leave.leave is Leave.WAITING:
        return words
    # It no longer waits; say who decided.
    said = " and ".join(
        f"{one.by} {'approved' if one.is_for else 'denied'} it{'' if one.reason is None else f': {quoted(one.reason)}'}"
        for one in case.leave.approvals
    )
    return f"{words}; {said}"


def _made_already(case: _Case) -> str | None:
    """Return the answer for a call that was made before it was judged; None for others."""
    would = _would(case)
    against = f"; it would have been {' and '.join(would)}" if would else ""
    how = next((words for flag, words in MADE.items() if flag in case.call.asked_flags), None)
    return None if how is None else f"{case.who} called {case.what}; {how}{against}"


def _would(case: _Case) -> list[str]:
    return [f"{_WOULD[what]} by rule {rule}" for what, rule in case.call.would if what in _WOULD]


def _allowed(case: _Case) -> str:
    called = f"{case.who} called {case.what}"
    approved = [approval for approval in case.leave.approvals if approval.is_for]
    if approved:
        said = " and ".join(f"{one.by} approved it ({proof_of(one.body)})" for one in approved)
        return f"{called}; {said}"
    would = _would(case)
    scope = case.texts.get(SCOPE) if has_grant(case.view, case.run.id) else None
    if scope is not None and is_outside(case.call):
        how = "" if case.receipt.mode is Mode.ENFORCED else "; its grant is only tried out, so nothing was enforced"
        return f"{called}; its grant covers {scope.words or GONE}, and not all that the command changed{how}"
    if scope is not None and not would:
        return f"{called}; its grant covers {scope.words or GONE}, and nothing else was against it"
    if case.receipt.mode is Mode.ENFORCED:
        return f"{called}; enforced, and no constraint, budget or earlier change was against it; no grant is recorded"
    if not would:
        return f"{called}; no grant: observed, so no grant, limit or constraint was enforced, and nothing was flagged"
    how = "no grant: observed" if scope is None else "its grant is only tried out"
    return f"{called}; {how}, so nothing was enforced; it would have been {' and '.join(would)}"


_NOT_OF_THE_POLICY: Final = frozenset(
    {"budget", "call.in-doubt", "constraint", "credential", "env", "target", "target-changed"}
)


def _decide(case: _Case, rule: str) -> _Decided:
    """Return the reason behind a rule. If it is not recorded, work it out again; if that fails, call it unknown."""
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
        # A reason that cannot be worked out again was recorded.
        found = _by_guard(case, rule) if rule in _NOT_OF_THE_POLICY else _by_policy(case, rule)
    if found is not None:
        return found
    if (said := _said(case)) is not None:
        return _Decided(
            words=f"tried {case.what}; rule: {rule}: {said}", facts=(Fact.of("rule", f"{rule}: {said}", case.receipt),)
        )
    gone = case.texts.get(ARGUMENTS) is None or case.arguments is None
    missing = f"; {GONE}" if gone and rule in {"constraint", "call.in-doubt", "target-changed"} else ""
    return _Decided(
        words=f"tried {case.what}; rule: {rule}; the reason is not recorded{missing}",
        facts=(Fact.of("rule", rule, case.receipt),),
    )


def _said(case: _Case) -> str | None:
    """Return the recorded refusal, quoted; None if there is none."""
    message = case.texts.get(MESSAGE) if case.call.outcome is CallOutcome.DENIED else None
    words = first_line(MESSAGE, message.ref.id, message.body) if message and message.body else None
    return str(words) if words is not None and words.line else None


def _by_policy(case: _Case, rule: str) -> _Decided:
    """Return the policy's reason at that time, and which policy it was, since the file may have changed."""
    first = read_receipt(case.view.get_receipt_at(StreamId(case.run.id), 1)).body
    digest = first.policy if isinstance(first, RunStarted | HandoffAccepted) else None
    which = "the shipped policy" if digest is None else f"the policy with sha256 {digest[:12]}…"
    said = quoted(case.texts[REASON])
    return _Decided(
        words=f"tried {case.what}; rule {rule} of {which}",
        facts=(Fact.of("rule", f"{rule}: {said} · {which}", case.receipt),),
    )


def _by_guard(case: _Case, rule: str) -> _Decided | None:
    """Return the guard's sentence: the permits of the run, the attempted call, and who above may make it."""
    said = case.texts.get(REASON)
    if said is None or said.words is None:
        return None
    # If the call was made nevertheless, the guard's sentence is not the answer.
    words = f"{rule} · {said.words}" if case.call.is_made else rule
    fact = Fact.of("rule", words, case.receipt)
    return _Decided(words=said.words, facts=(fact,), whole=True)


def _by_constraint(case: _Case) -> _Decided | None:
    if case.arguments is None:
        return None
    broken = [
        (item, found)
        for item in BoundConstraints(case.view, case.run, case.before).at(case.receipt)
        if isinstance(item.value, Constraint)
        for found in find_broken_by_call((item.value,), case.call.tool, case.arguments)
    ]
    if not broken:
        return None
    item, first = broken[0]
    return _Decided(
        words=f"must keep to {quoted_sentence(first)}, tried {case.call.tool}, where {first.found}; {item.by} set it",
        facts=tuple(constraint_fact(case.view, item, found) for item, found in broken),
        item=item.id,
    )


def _by_doubt(case: _Case) -> _Decided | None:
    given = case.texts.get(ARGUMENTS)
    if given is None or given.body is None:
        return None
    for run, earlier in _earlier(case):
        known = read_texts(case.view, earlier.receipt).get(ARGUMENTS)
        if earlier.ended is None and earlier.tool == case.call.tool and known is not None and known.body == given.body:
            name = _name_of(run, earlier)
            return _Decided(
                words=f"tried {case.what} again, and nobody knows whether {name} happened: repeat or skip?",
                facts=(_earlier_fact(run, earlier, "requested, and it has no outcome"),),
            )
    return None


def _by_change(case: _Case) -> _Decided | None:
    target = case.call.target if case.call.is_made else None
    values = {value for value in (case.arguments or {}).values() if isinstance(value, str)}
    for run, earlier in _earlier(case):
        if earlier.reads or earlier.target is None:
            continue
        known = read_texts(case.view, earlier.receipt).get(TARGET)
        # A denial has no target. A text argument equal to an earlier target is taken to be it.
        named = target is None and known is not None and known.words is not None and known.words in values
        if named or (target is not None and earlier.target == target):
            changed = "may have changed that already" if earlier.ended is None else "had changed that already"
            return _Decided(
                words=f"tried {case.what}, and {_name_of(run, earlier)} {changed}",
                facts=(_earlier_fact(run, earlier, f"changed {quoted(known)}"),),
            )
    return None


def _name_of(run: Run, call: CallRecord) -> str:
    return f"{call.tool} {ending(call.id)} of {name_of(run)}"


def _earlier_fact(run: Run, call: CallRecord, text: str) -> Fact:
    return Fact.of("earlier", f"{_name_of(run, call)}: {text}", call.receipt)


def _earlier(case: _Case) -> Iterator[tuple[Run, CallRecord]]:
    """Yield the calls of earlier attempts, and those of this one before its process was lost."""
    handoff = None if case.run.handoff is None else case.view.get_handoff(case.run.handoff)
    runs = [case.run] if handoff is None else [*case.view.find_attempts(handoff)]
    for run in runs:
        for call in read_calls(case.view, run).values() if run.attempt <= case.run.attempt else ():
            own = run.id == case.run.id
            is_later = call.receipt.seq >= case.receipt.seq or call.receipt.epoch >= case.receipt.epoch
            if call.is_made and not (own and is_later):
                yield run, call


def _settled(case: _Case) -> Iterator[Fact]:
    """Yield the decisions about the same call in an earlier attempt."""
    if case.call.is_made and case.call.key is not None:
        for run, earlier in _earlier(case):
            if earlier.settled is not None and earlier.key == case.call.key:
                decided = f"{earlier.settled.settlement}, decided by {earlier.settled.by}"
                yield _earlier_fact(run, earlier, f"was in doubt: {decided}")


def _by_budget(case: _Case) -> _Decided | None:
    if case.run.handoff is None:
        return None
    offer, _ = get_offer(case.view, case.view.get_handoff(case.run.handoff))
    brief = brief_of(case.view, offer)
    budget = Budget() if brief is None or brief.budget is None else brief.budget
    made = [call for call in find_calls(case.before).values() if call.is_made]
    calls, cost = len(made), sum(call.cost for call in made)
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
        facts=(Fact.of("budget", f"{spent} · set by {setter} in its offer", offer),),
    )
