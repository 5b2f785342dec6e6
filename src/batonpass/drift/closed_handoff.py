"""One closed handoff, read from its receipts: its outcome, as counts that add up.

Only receipts up to a position count, and of its attempts only those that ended with a close-out. So the answer depends
on nothing that is still going on, and is the same whenever it is computed.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from batonpass.accounts.handoff.scope_used import scope_said
from batonpass.drift.counts import Counts
from batonpass.drift.shape_of_text import log_bin, shapes_in, slot, vector_of, words_in
from batonpass.errors import InvalidValueError, NotFoundError
from batonpass.model.base.content_names import (
    ARGUMENTS,
    BRIEF,
    CONFIG,
    EVIDENCE,
    MESSAGE,
    REASON,
    REPORT,
    SOURCE,
    TASK,
    USE,
)
from batonpass.model.base.ids import AgentId, ContentId, HandoffId, RunId, StreamId, is_user
from batonpass.model.base.kinds import Part, Relation
from batonpass.model.baton.baton import Brief
from batonpass.model.baton.items import Constraint, Report
from batonpass.model.bodies.body import (
    HandoffAccepted,
    HandoffAsked,
    HandoffCancelled,
    HandoffCompleted,
    HandoffDeclined,
    HandoffDenied,
    HandoffExpired,
    HandoffFailed,
    HandoffHeld,
    HandoffInitiated,
    HandoffLapsed,
    HandoffReplaced,
    HandoffRetried,
    RunSpent,
    ToolCompleted,
    ToolDenied,
    ToolFailed,
    ToolHeld,
    ToolRequested,
    VerificationFailed,
)
from batonpass.model.ledger.content import ContentRef
from batonpass.model.ledger.receipt import Receipt, StoredReceipt
from batonpass.model.ledger.run import Handoff
from batonpass.records.call import arguments_in
from batonpass.records.handoff import Judged, ResultVerdict, Standing, standing_of
from batonpass.records.source import timed
from batonpass.records.text import find_in_chunks, read_receipt
from batonpass.store.port import LedgerView, ReceiptQuery
from batonpass.wire.documents import decode_brief, decode_item, decode_report

# What closes a handoff besides the close-out of an attempt.
ENDS: Final = {
    HandoffDeclined: "declined",
    HandoffExpired: "expired",
    HandoffCancelled: "cancelled",
    HandoffDenied: "denied",
}
_CALLS: Final = 200  # of one handoff, whose arguments are looked at
_STEPS: Final = 16  # tools in an order that is remembered
_KEY: Final = 200  # characters of a constraint or a permit
_NAME: Final = 80
_SLOTS: Final = 8  # of task templates, each with its own vector of close-out words
DIMENSIONS: Final = 256
WORD_SLOTS: Final = 256
_UNIT: Final = 1000  # length of the vector of one text
_BINS: Final = 10
_SURE: Final = 1000
_MILLISECOND: Final = timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class HandoffOutcome:
    """The outcome of one handoff, for people and for later handoffs. It has ids and codes, and no words."""

    root: RunId
    sender: AgentId
    end: str  # completed, failed, declined, expired, cancelled or denied
    standing: str  # verified, refuted or unverified
    by: str | None  # who gave the verdict
    attempts: int
    took_ms: int
    cost: int  # in millionths
    tokens: int
    error: str | None
    task: ContentId | None
    report: ContentId | None
    reason: ContentId | None  # why it failed, or was refuted
    constraints: tuple[str, ...] = ()  # the contents of those in force


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosedHandoff:
    """A closed handoff: its agent, its kind of task, and its outcome."""

    handoff: HandoffId
    agent: AgentId
    task_kind: str
    config: str
    closed_at: datetime
    contents: tuple[ContentId, ...]  # that were read
    counts: Counts
    outcome: HandoffOutcome


@dataclass(slots=True)
class _Draft:
    """The receipts of a handoff, and the contents that are needed of it."""

    handoff: HandoffId
    offer: Receipt
    initiated: HandoffInitiated
    sender: AgentId
    acts: tuple[Receipt, ...]
    attempts: tuple[tuple[Receipt, ...], ...]  # those that ended with a close-out
    wanted: list[ContentRef] = field(default_factory=list)


def read_closed(view: LedgerView, handoffs: Iterable[HandoffId], upto: int) -> Iterator[ClosedHandoff]:
    """Yield the outcomes of these handoffs by the receipts up to a position; those that are not closed are left out."""
    drafts = _read(view, handoffs, upto)
    wanted = [ref.id for draft in drafts for ref in draft.wanted]
    items = [carried.item for draft in drafts for carried in draft.initiated.carries if carried.part is Part.CONSTRAINT]
    bodies = {content.id: content.body for content in find_in_chunks(view, [*dict.fromkeys((*wanted, *items))])}
    for draft in drafts:
        yield _Told(draft, bodies).closed()


def closes(stored: StoredReceipt) -> bool:
    """Return whether a receipt may change the outcome of a closed handoff."""
    return stored.kind in _CLOSING or stored.stream.startswith("handoff_")


_CLOSING: Final = frozenset({HandoffCompleted.kind, HandoffFailed.kind})


def handoff_of(stored: StoredReceipt) -> HandoffId | None:
    """Return the handoff that a receipt is about; None for a refused offer, which is no handoff."""
    if stored.stream.startswith("handoff_"):
        return HandoffId(stored.stream)
    body = read_receipt(stored).body
    is_refusal = isinstance(body, HandoffFailed) and body.is_refusal
    return body.handoff if isinstance(body, HandoffCompleted | HandoffFailed) and not is_refusal else None


def _read(view: LedgerView, handoffs: Iterable[HandoffId], upto: int) -> list[_Draft]:
    found = [one for handoff in handoffs if (one := _offered(view, handoff)) is not None]
    # One question for the streams of all of them: a store answers many at once about as fast as one.
    streams = _streams(view, [StreamId(stream) for one in found for stream in (one.row.id, *one.runs)], upto)
    drafts = []
    for one in found:
        acts = streams.get(one.row.id, ())
        attempts = tuple(streams[run] for run in one.runs if run in streams and _closes_run(streams[run][-1]))
        if attempts or any(isinstance(act.body, tuple(ENDS)) for act in acts):
            draft = _Draft(one.row.id, one.offer, one.initiated, one.sender, acts, attempts)
            draft.wanted = [*_wanted(draft)]
            drafts.append(draft)
    return drafts


@dataclass(frozen=True, slots=True)
class _Offered:
    row: Handoff
    sender: AgentId
    offer: Receipt
    initiated: HandoffInitiated
    runs: tuple[RunId, ...]


def _offered(view: LedgerView, handoff: HandoffId) -> _Offered | None:
    try:
        row = view.get_handoff(handoff)
        sender = view.get_run(row.parent).agent
        offer = read_receipt(view.get_receipt_at(StreamId(row.parent), row.seq))
    except NotFoundError:
        return None  # deleted; verification reports it
    if not isinstance(offer.body, HandoffInitiated):
        return None
    # Most handoffs have one attempt, and its run stands in the row.
    first = () if row.run is None else (row.run,)
    runs = first if row.attempt <= 1 else tuple(run.id for run in view.find_attempts(row))
    return _Offered(row, sender, offer, offer.body, runs)


def _streams(view: LedgerView, streams: Sequence[StreamId], upto: int) -> dict[str, tuple[Receipt, ...]]:
    """Return the receipts of these streams up to a position, each stream in its order."""
    found: dict[str, list[Receipt]] = {}
    for stored in view.find_receipts(ReceiptQuery(streams=tuple(streams))):
        if stored.position is not None and stored.position <= upto:
            found.setdefault(stored.stream, []).append(read_receipt(stored))
    return {
        stream: timed(view, receipts).receipts if any(SOURCE in one.content for one in receipts) else tuple(receipts)
        for stream, receipts in found.items()
    }


def _closes_run(receipt: Receipt) -> bool:
    body = receipt.body
    return isinstance(body, HandoffCompleted) or (isinstance(body, HandoffFailed) and not body.is_refusal)


def _wanted(draft: _Draft) -> Iterator[ContentRef]:
    for name in (TASK, BRIEF):
        if name in draft.offer.content:
            yield draft.offer.content[name]
    calls = 0
    for attempt in draft.attempts:
        for receipt in attempt:
            names: tuple[str, ...] = ()
            if isinstance(receipt.body, ToolRequested) and calls < _CALLS:
                calls += 1
                names = (ARGUMENTS,)
            elif isinstance(receipt.body, HandoffAccepted):
                names = (CONFIG,)
            elif _closes_run(receipt):
                names = (USE, REPORT)
            yield from (receipt.content[name] for name in names if name in receipt.content)


def task_kind_of(brief: Brief, relation: Relation) -> str:
    """Return the kind of task: the skills it needs, else the phase of the work, else who hands off to whom."""
    said = "+".join(sorted(brief.needs_skills)) or brief.phase or ""
    plain = " ".join("".join(c if c.isprintable() else " " for c in said).split())[:_NAME]
    return plain or str(relation)


class _Told:
    """Reads the receipts of one handoff into counts."""

    def __init__(self, draft: _Draft, bodies: Mapping[ContentId, bytes | None]) -> None:
        self._draft, self._bodies = draft, bodies
        self._counts: Counts = {}
        self._last = draft.attempts[-1] if draft.attempts else ()
        self._brief = self._read_brief()
        self._constraints = tuple(
            carried.item for carried in draft.initiated.carries if carried.part is Part.CONSTRAINT
        )

    def closed(self) -> ClosedHandoff:
        draft = self._draft
        config = self._config()
        self._count("closed", "n")
        outcome = self._outcome()
        self._count_offer()
        self._count_attempts()
        self._count_acts(outcome)
        self._count_work(outcome)
        return ClosedHandoff(
            handoff=draft.handoff,
            agent=self._agent(),
            task_kind=self._task_kind(),
            config=config,
            closed_at=self._closing().at,
            contents=tuple(sorted({*(ref.id for ref in draft.wanted), *self._constraints})),
            counts=self._counts,
            outcome=outcome,
        )

    def _count(self, aspect: str, key: str, count: int = 1) -> None:
        keys = self._counts.setdefault(aspect, {})
        keys[key] = keys.get(key, 0) + count

    def _mark(self, aspect: str, key: str) -> None:
        """Say that something was there at all, however often."""
        self._counts.setdefault(aspect, {})[key] = 1

    def _body(self, receipt: Receipt | None, name: str) -> bytes | None:
        ref = None if receipt is None else receipt.content.get(name)
        return None if ref is None else self._bodies.get(ref.id)

    def _agent(self) -> AgentId:
        first = self._last[0].body if self._last else None
        return first.agent if isinstance(first, HandoffAccepted) else self._draft.initiated.to

    def _task_kind(self) -> str:
        return task_kind_of(self._brief, self._draft.initiated.relation)

    def _config(self) -> str:
        """Return the digest of the agent's model, prompt and tools, as it said when it accepted."""
        said = _document(self._body(self._last[0] if self._last else None, CONFIG))
        for name, value in said.items():
            for one in value if isinstance(value, list) else [value]:
                self._mark("config", f"{name}: {one}"[:_KEY])
        return f"{slot(json.dumps(said, sort_keys=True), 2**32):08x}" if said else ""

    def _closing(self) -> Receipt:
        """Return the latest receipt that closed it."""
        ends = [act for act in self._draft.acts if isinstance(act.body, tuple(ENDS))]
        return max((*ends, *self._last[-1:]), key=lambda receipt: (receipt.at, receipt.id))

    def _read_brief(self) -> Brief:
        body = self._body(self._draft.offer, BRIEF)
        try:
            return Brief() if body is None else decode_brief(body)
        except InvalidValueError:
            return Brief()

    def _report(self) -> Report | None:
        body = self._body(self._last[-1] if self._last else None, REPORT)
        try:
            return None if body is None else decode_report(body)
        except InvalidValueError:
            return None

    def _outcome(self) -> HandoffOutcome:
        draft, closing = self._draft, self._closing()
        body = closing.body
        end = ENDS.get(type(body), "completed" if isinstance(body, HandoffCompleted) else "failed")
        attempt = getattr(self._last[-1].body, "attempt", 0) if self._last else 0
        verdicts = [
            ResultVerdict(receipt=act, body=act.body)
            for act in draft.acts
            if isinstance(act.body, Judged) and act.body.attempt == attempt
        ]
        standing = standing_of(verdicts)
        decided = next((verdict for verdict in verdicts if verdict.standing is standing), None)
        told = decided.receipt if standing is Standing.REFUTED and decided is not None else closing
        why = next((told.content[name].id for name in (REASON, EVIDENCE, MESSAGE) if name in told.content), None)
        begun = self._last[0] if self._last else draft.offer
        spent = [receipt.body for attempt_ in draft.attempts for receipt in attempt_]
        return HandoffOutcome(
            root=draft.offer.root or draft.initiated.run,
            sender=draft.sender,
            end=end,
            standing=standing,
            by=None if decided is None else decided.body.by,
            attempts=len(draft.attempts),
            took_ms=max(0, (closing.at - begun.at) // _MILLISECOND),
            cost=sum(one.cost for one in spent if isinstance(one, ToolCompleted | RunSpent)),
            tokens=sum(one.tokens for one in spent if isinstance(one, RunSpent)),
            error=body.error if isinstance(body, HandoffFailed) else None,
            task=draft.offer.content[TASK].id if TASK in draft.offer.content else None,
            report=closing.content[REPORT].id if REPORT in closing.content else None,
            reason=why,
            constraints=self._constraints,
        )

    def _count_offer(self) -> None:
        draft, initiated = self._draft, self._draft.initiated
        self._mark("from", draft.sender)
        for item in self._constraints:
            if (sentence := self._constraint(item)) is not None:
                self._mark("constraint", sentence[:_KEY])
        for permit in self._brief.may:
            self._mark("asked", permit[:_KEY])
        for flag in initiated.flags:
            self._mark("would", flag)
        task = self._body(draft.offer, TASK)
        for word in words_in(task):
            self._mark("word", str(slot(word, WORD_SLOTS)))

    def _constraint(self, item: ContentId) -> str | None:
        body = self._bodies.get(item)
        try:
            value = None if body is None else decode_item(body)[0]
        except InvalidValueError:
            return None
        if not isinstance(value, Constraint):
            return None
        # What it says, and where it binds: two bounds on two arguments are two constraints.
        typed = [value.key, value.operator, value.value, value.unit]
        words = value.text if value.key is None else " ".join(part for part in typed if part is not None)
        return words if value.binds_to is None else f"{words} ({value.binds_to})"

    def _count_attempts(self) -> None:
        order: list[str] = []
        for attempt in self._draft.attempts:
            before = "^"
            for receipt in attempt:
                self._count("path", f"{before}>{receipt.kind}")
                before = receipt.kind
                self._count_call(receipt, order)
            self._count("path", f"{before}>$")
        if order:
            self._count("order", " ".join(order[:_STEPS]))
        used = scope_said(
            self._body(attempt[-1], USE) for attempt in self._draft.attempts if USE in attempt[-1].content
        )
        if used is not None:
            for permit in used.granted:
                self._mark("granted", permit[:_KEY])
            for permit in (*used.least, *used.beyond):
                self._mark("used", permit[:_KEY])

    def _count_call(self, receipt: Receipt, order: list[str]) -> None:
        match receipt.body:
            case ToolRequested() as body:
                self._count_request(receipt, body, order)
            case ToolDenied() | ToolHeld() as body:
                self._mark("held" if isinstance(body, ToolHeld) else "refused", f"{body.tool} by {body.rule}")
            case ToolFailed() as body:
                self._count("error", body.error)
            case ToolCompleted():
                self._count("error", "")
            case HandoffInitiated() as body:
                self._mark("to", body.to)
            case HandoffAccepted() as body:
                if body.would_ask:
                    self._mark("question", "would have asked")
            case _:
                pass

    def _count_request(self, receipt: Receipt, body: ToolRequested, order: list[str]) -> None:
        self._count("tool", body.tool)
        self._mark("uses", body.tool)
        if order[-1:] != [body.tool]:
            order.append(body.tool)
        for shape in shapes_in(arguments_in(self._body(receipt, ARGUMENTS))):
            self._count("param", f"{body.tool}.{shape}")
        for flag in body.flags:
            if flag.startswith("would_"):
                self._mark("would", flag)

    def _count_acts(self, outcome: HandoffOutcome) -> None:
        overridden = False
        for act in self._draft.acts:
            body = act.body
            by = str(getattr(body, "by", ""))
            match body:
                case HandoffAsked():
                    self._mark("question", "asked")
                    self._count("load", "questions")
                case HandoffLapsed() | HandoffRetried() | HandoffReplaced():
                    self._count("load", "redeliveries")
                case HandoffHeld():
                    self._mark("held", f"handoff by {getattr(body, 'rule', None) or 'a rule'}")
                case _:
                    pass
            refuted = isinstance(body, VerificationFailed)
            stops = isinstance(body, HandoffDenied | HandoffCancelled | HandoffReplaced) or refuted
            overridden = overridden or (stops and is_user(by))
        if self._draft.initiated.gate is not None:
            self._mark("held", f"handoff by {self._draft.initiated.rule or 'a rule'}")
        if overridden:
            self._mark("human", "overridden")
        self._count("load", "attempts", max(1, outcome.attempts))
        self._mark("tries", str(max(1, outcome.attempts)))
        agreed = outcome.end == "completed" and outcome.standing != Standing.REFUTED
        if agreed and "question" not in self._counts:
            self._mark("agreed", "n")
        self._mark("end", outcome.end)
        self._mark("standing", outcome.standing)

    def _count_work(self, outcome: HandoffOutcome) -> None:
        if self._last:
            self._count("duration", str(log_bin(outcome.took_ms)))
            self._count("sum", "took_ms", outcome.took_ms)
        if outcome.cost:
            self._count("cost", str(log_bin(outcome.cost)))
            self._count("sum", "cost", outcome.cost)
        if outcome.tokens:
            self._count("tokens", str(log_bin(outcome.tokens)))
            self._count("sum", "tokens", outcome.tokens)
        if outcome.end == "failed":
            self._count("error", outcome.error or "failed")
        report = self._report()
        if report is None:
            return
        said = " ".join((report.result, *(claim.what for claim in report.claims)))
        self._count("length", "bytes", len(said.encode()))
        self._count("length", "n")
        self._count("size", str(log_bin(len(said.encode()))))
        self._count_words(said)
        if outcome.standing != Standing.UNVERIFIED:
            stated = [report.confidence, *(claim.confidence for claim in report.claims)]
            for confidence in stated:
                if confidence is not None:
                    place = min(_BINS - 1, confidence * _BINS // _SURE)
                    self._count("confidence", f"{place} {outcome.standing}")
                    self._count("confidence", f"{place} sum", confidence)

    def _count_words(self, said: str) -> None:
        """Count the words of a close-out as a vector of fixed length, apart for each template of tasks."""
        template = slot(" ".join(words_in(self._body(self._draft.offer, TASK))), _SLOTS)
        found = vector_of(words_in(said.encode()), DIMENSIONS)
        length = sum(count * count for count in found.values()) ** 0.5
        if not length:
            return
        self._count("said", f"{template} n")
        for place, count in found.items():
            self._count("said", f"{template} {place}", round(_UNIT * count / length))


def _document(body: bytes | None) -> dict[str, Any]:
    try:
        read = None if body is None else json.loads(body)
    except ValueError:
        return {}
    return read if isinstance(read, dict) else {}


def encode_outcome(closed: ClosedHandoff) -> bytes:
    """Return counts and outcome as the bytes of a roll-up."""
    said = {name: getattr(closed.outcome, name) for name in HandoffOutcome.__slots__}
    document = {"counts": closed.counts, "outcome": said}
    return json.dumps(document, sort_keys=True, separators=(",", ":")).encode()


def decode_outcome(body: bytes) -> tuple[Counts, HandoffOutcome]:
    """Return counts and outcome from the bytes of a roll-up."""
    read = json.loads(body)
    said = read["outcome"]
    said["constraints"] = tuple(said["constraints"])
    return read["counts"], HandoffOutcome(**said)
