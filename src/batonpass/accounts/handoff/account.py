"""The account of one handoff, gathered once for people and for programs."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import asdict

from batonpass.accounts.handoff.effects import EffectTold, read_effects
from batonpass.accounts.handoff.grant_chain import Revocation, find_revocation
from batonpass.accounts.handoff.reasoning import Reasoning, read_reasoning
from batonpass.accounts.handoff.scope_used import ScopeUsed, read_scope_used
from batonpass.audit.carriage import Carriage, prove_carriage
from batonpass.errors import EditedError, InvalidValueError, NotFoundError
from batonpass.handoff.history.offers import Offer, read_offer
from batonpass.handoff.history.past_calls import Resumption, read_runs
from batonpass.ledger.position import mode_of_child
from batonpass.model.base.content_names import ARGUMENTS, PERMIT, REASON, REPORT, SCOPE, TARGET, USE
from batonpass.model.base.ids import Digest, KeyId, RelayId, RunId, StreamId
from batonpass.model.base.kinds import Mode
from batonpass.model.base.label import Source
from batonpass.model.base.lifecycle import State
from batonpass.model.baton.items import OpenQuestion, Report
from batonpass.model.bodies.body import HandoffAccepted, HandoffCompleted, HandoffFailed, Kind, VerificationWaived
from batonpass.model.ledger.receipt import Receipt
from batonpass.model.ledger.run import Handoff, Run
from batonpass.records.call import CallRecord, find_calls
from batonpass.records.grant import (
    PermittedHop,
    UsedCredential,
    brief_of,
    given_by,
    grants,
    may_under,
    permits_in,
    read_credential,
    terms_in,
)
from batonpass.records.handoff import OPEN, Judged
from batonpass.records.lineage import Tasks, find_ancestors, read_task
from batonpass.records.revision import Awareness, RevisionRecord, find_aware, find_revisions
from batonpass.records.source import run_between, timed
from batonpass.records.text import Text, names_in, read_contents, read_receipt, read_stream, read_texts
from batonpass.store.port import LedgerView, ReceiptQuery
from batonpass.wire.documents import decode_report

_ARGUMENTS_READ: Final = 50


class CallInWords(Struct, frozen=True, kw_only=True):
    """A call of an attempt, with the texts that are shown for it."""

    record: CallRecord
    effects: tuple[EffectTold, ...] = ()  # its other effects, as its tool reported them
    target: Text | None = None
    arguments: Text | None = None
    scope: Text | None = None  # action and resource, as a grant sees them
    permits: tuple[PermittedHop, ...] = ()  # the permit of each hop that covered it, its own run first

    @property
    def permit(self) -> str | None:
        """Return its own run's permit; None if there is none."""
        return self.permits[0].permit if self.permits else None


class Attempt(Struct, frozen=True, kw_only=True):
    """One run at a handoff: who signed, its calls, and how it ended."""

    run: Run
    accepted: Receipt
    receipts: int
    keys: tuple[KeyId, ...]  # of the run itself; several if its process was lost
    recorders: tuple[tuple[RelayId, KeyId], ...]
    calls: tuple[CallInWords, ...]
    closed: HandoffCompleted | HandoffFailed | None
    texts: Mapping[str, Text]  # of its last receipt

    @property
    def acceptance(self) -> HandoffAccepted | None:
        """Return its acceptance."""
        return self.accepted.body if isinstance(self.accepted.body, HandoffAccepted) else None


class HandoffAct(Struct, frozen=True, kw_only=True):
    """An act on a handoff by somebody else than its own runs."""

    receipt: Receipt
    texts: Mapping[str, Text]


class Child(Struct, frozen=True, kw_only=True):
    """A handoff that an attempt made."""

    handoff: Handoff
    task: Text | None


class Acted(UsedCredential, frozen=True, kw_only=True):
    """A credential, and the runs of one tree that used it, in the order of first use."""

    calls: dict[RunId, int]  # number of calls by run

    @property
    def is_shared(self) -> bool:
        """Return whether several runs used it, so that others cannot tell them apart. This is a finding."""
        return len(self.calls) > 1


class Account(Struct, frozen=True, kw_only=True):
    """One handoff, from the human's words to the open questions."""

    handoff: Handoff
    offer: Offer
    offered: Receipt
    task: Text | None
    lineage: tuple[Run, ...]  # its parent, and so on up to the root
    intent: Text | None
    inherited: tuple[str, ...] | None  # what its parent may delegate or was to get; None if erased
    granted: tuple[str, ...] | None  # its grant, or what its parent asked for; None likewise
    attempts: tuple[Attempt, ...]
    earlier: Resumption  # what the attempts before the latest left
    acts: tuple[HandoffAct, ...]
    children: tuple[Child, ...]
    unverified: tuple[Handoff, ...]  # unverified results that it or its sender built on
    used: ScopeUsed | None = None  # its grant compared with its use; None without a grant
    reasoning: Reasoning | None = None  # where the sender's reasoning can be read
    refusal: Text | None = None  # why an enforced grant would have refused the offer
    given_by: str = ""  # who granted it
    revoked: Revocation | None = None  # who revoked its grant
    acted: tuple[Acted, ...] = ()  # credentials its attempts used, and who else in the tree used them
    mark: str | None = None  # set if it was imported
    carriage: Carriage | None = None  # what arrived of all that existed upstream; None if the receipts lead nowhere
    revisions: tuple[tuple[RevisionRecord, Awareness, Run | None], ...] = ()  # who knows each revision of its baton

    @property
    def parent(self) -> Run:
        """Return the run that handed it off."""
        return self.lineage[0]

    @property
    def mode(self) -> Mode:
        """Return the mode of its receiver: a grant makes it enforced, also where its sender is only observed."""
        return mode_of_child(self.offered)

    @property
    def latest(self) -> Attempt | None:
        """Return the latest attempt."""
        return self.attempts[-1] if self.attempts else None

    @property
    def brought(self) -> tuple[Source, ...]:
        """Return the untrusted sources that came with the latest result, and not with the offer."""
        closed = None if self.latest is None else self.latest.closed
        return () if closed is None else tuple(one for one in closed.taint if one not in self.offer.taint)

    @property
    def calls(self) -> tuple[CallInWords, ...]:
        """Return the calls of all attempts."""
        return tuple(call for attempt in self.attempts for call in attempt.calls)

    @property
    def doubts(self) -> tuple[CallInWords, ...]:
        """Return the calls in doubt."""
        return tuple(call for call in self.calls if call.record.in_doubt)

    @property
    def waiting(self) -> tuple[CallInWords, ...]:
        """Return the calls without an outcome whose attempt is still open."""
        return tuple(call for call in self.calls if call.record.outcome is None and not call.record.is_over)

    @property
    def verdicts(self) -> tuple[HandoffAct, ...]:
        """Return the verdicts on the latest attempt."""
        return tuple(
            act
            for act in self.acts
            if isinstance(act.receipt.body, Judged) and act.receipt.body.attempt == self.handoff.attempt
        )

    @property
    def is_unverified(self) -> bool:
        """Return whether it has a result that nobody verified or waived."""
        waived = any(isinstance(act.receipt.body, VerificationWaived) for act in self.verdicts)
        return self.handoff.state is State.COMPLETED and not waived

    @property
    def report(self) -> Report | None:
        """Return the report of the latest attempt, as far as it can be read."""
        text = None if self.latest is None else self.latest.texts.get(REPORT)
        if text is None or text.body is None:
            return None
        if text.ref.media_type != "application/json":
            return Report(result=text.words or "")
        try:
            return decode_report(text.body)
        except InvalidValueError:
            return Report(result=text.words or "")

    def listed(self, name: str) -> tuple[str, ...]:
        """Return a list of names in the latest close-out; none if there is no such list, or if it was erased."""
        text = None if self.latest is None else self.latest.texts.get(name)
        return () if text is None or text.body is None else names_in(text.body)

    @property
    def questions(self) -> tuple[tuple[OpenQuestion, bool], ...]:
        """Return the open questions, blocking ones first, each with whether it was open already at the offer."""
        reported = () if self.report is None else self.report.open_questions
        carried = [question for question in self.offer.baton.open_questions if question not in reported]
        found = [*((question, False) for question in reported), *((question, True) for question in carried)]
        return tuple(sorted(found, key=lambda each: not each[0].blocking))


def read_account(view: LedgerView, handoff: Handoff) -> Account:
    """Gather everything about a handoff. Raises `NotFoundError` if it does not exist."""
    offer = read_offer(view, handoff)
    offered = read_receipt(view.get_receipt_at(StreamId(handoff.parent), handoff.seq))
    told = timed(view, [offered])
    parent = view.get_run(handoff.parent)
    lineage = (parent, *find_ancestors(view, parent))
    runs = [*view.find_attempts(handoff)] if handoff.attempt else []
    earlier = runs if handoff.state in OPEN - {State.RUNNING} else runs[:-1]
    acts = tuple(_acts(view, handoff))
    streams = [timed(view, read_stream(view, StreamId(run.id))).receipts for run in runs]
    # The outcome of a call may be in its run, in the handoff, or in a later attempt that repeated it.
    told_of = (receipt for stream in (*streams, [act.receipt for act in acts]) for receipt in stream)
    calls = find_calls(told_of, runs).values()
    attempts = tuple(_attempt(view, run, stream, calls) for run, stream in zip(runs, streams, strict=True))
    children = sorted(
        (child for run in runs for child in view.find_handoffs(parent=run.id)), key=lambda child: child.id
    )
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
        reasoning=read_reasoning(view, offered),
        revoked=find_revocation(view, StreamId(handoff.id)),
        given_by=given_by(terms_in(view, offered), parent.agent, parent.principal),
        task=read_task(view, handoff),
        lineage=lineage,
        intent=Tasks(view).find(lineage[-1]),
        inherited=_inherited(view, parent),
        granted=_granted(view, handoff),
        attempts=attempts,
        earlier=read_runs(view, earlier, StreamId(handoff.id)),
        acts=acts,
        children=tuple(Child(handoff=child, task=read_task(view, child)) for child in children),
        unverified=tuple(view.get_handoff(known) for known in unverified),
        carriage=_carriage(view, handoff),
        revisions=tuple(find_aware(view, find_revisions(view, handoff), runs)),
    )


def _carriage(view: LedgerView, handoff: Handoff) -> Carriage | None:
    try:
        return prove_carriage(view, handoff)
    except (EditedError, NotFoundError):
        return None  # `ledger verify` says what is wrong; a handoff can be shown all the same


def _acted(view: LedgerView, handoff: Handoff, attempts: tuple[Attempt, ...]) -> tuple[Acted, ...]:
    # Read the whole tree only if this handoff used a credential at all.
    if not any(call.record.credential for attempt in attempts for call in attempt.calls):
        return ()
    own = {attempt.run.id for attempt in attempts}
    return tuple(acted for acted in find_acted(view, handoff.root) if own & acted.calls.keys())


def _inherited(view: LedgerView, parent: Run) -> tuple[str, ...] | None:
    """Return the permits that a parent may delegate; without a grant, the permits that were asked for it."""
    known = None if parent.handoff is None else view.get_handoff(parent.handoff)
    first = StreamId(parent.id), 1
    begun = read_receipt(view.get_receipt_at(*(first if known is None else (StreamId(known.parent), known.seq))))
    if grants(begun):
        terms = terms_in(view, begun)
        return None if terms is None else terms.may_delegate.lines
    return () if known is None else _granted(view, known)


def _granted(view: LedgerView, handoff: Handoff) -> tuple[str, ...] | None:
    """Return the permits that a handoff grants; without a grant, the permits that were asked for it."""
    offer = read_receipt(view.get_receipt_at(StreamId(handoff.parent), handoff.seq))
    brief = brief_of(view, offer)
    return may_under(view, offer, None if brief is None else brief.may)


def _acts(view: LedgerView, handoff: Handoff) -> Iterator[HandoffAct]:
    for receipt in read_stream(view, StreamId(handoff.id)):
        yield HandoffAct(receipt=receipt, texts=read_texts(view, receipt))


def _attempt(view: LedgerView, run: Run, receipts: Sequence[Receipt], calls: Iterable[CallRecord]) -> Attempt:
    last = receipts[-1]
    # A run whose process died may end with a refused offer (attempt 0), which did not close it.
    closed = last.body if isinstance(last.body, HandoffCompleted | HandoffFailed) and last.body.attempt else None
    return Attempt(
        run=run_between(run, receipts[0], last),
        accepted=receipts[0],
        receipts=len(receipts),
        keys=tuple(dict.fromkeys(receipt.cosigner for receipt in receipts if receipt.cosigner is not None)),
        recorders=tuple(dict.fromkeys((receipt.relay, receipt.relay_key) for receipt in receipts)),
        calls=_in_words(view, [call for call in calls if call.run == run.id]),
        closed=closed,
        texts=read_texts(view, last) if closed is not None else {},
    )


def _in_words(view: LedgerView, calls: Sequence[CallRecord]) -> tuple[CallInWords, ...]:
    """Return calls with their targets; for some without a target, with their arguments."""
    wanted = {f"{call.id} {TARGET}": call.content[TARGET] for call in calls if TARGET in call.content}
    silent = [call for call in calls if ARGUMENTS in call.content and (TARGET not in call.content or not call.outcome)]
    silent.sort(key=lambda call: call.outcome is not None)
    wanted |= {f"{call.id} {ARGUMENTS}": call.content[ARGUMENTS] for call in silent[:_ARGUMENTS_READ]}
    for name in (SCOPE, PERMIT):
        wanted |= {f"{call.id} {name}": call.content[name] for call in calls if name in call.content}
    texts = read_contents(view, wanted)
    return tuple(
        CallInWords(
            record=call,
            effects=read_effects(view, call),
            target=texts.get(f"{call.id} {TARGET}"),
            arguments=texts.get(f"{call.id} {ARGUMENTS}"),
            scope=texts.get(f"{call.id} {SCOPE}"),
            permits=permits_in(texts.get(f"{call.id} {PERMIT}")) or (),
        )
        for call in calls
    )


def find_acted(view: LedgerView, root: RunId) -> tuple[Acted, ...]:
    """Return the credentials that the runs of a tree used."""
    found: dict[Digest, dict[RunId, int]] = {}
    first: dict[Digest, CallRecord] = {}
    query = ReceiptQuery(root=root, kind=Kind.TOOL_REQUESTED)
    for call in find_calls(map(read_receipt, view.find_receipts(query))).values():
        if call.credential is not None:
            calls = found.setdefault(call.credential, {})
            calls[call.run] = calls.get(call.run, 0) + 1
            first.setdefault(call.credential, call)
    told = {key: read_credential(view, call) for key, call in first.items()}
    return tuple(Acted(**asdict(used), calls=found[key]) for key, used in told.items() if used is not None)
