"""The remains of a tree, read from receipts alone: a process that died without saving loses nothing."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Final, TypeAlias

from msgspec import Struct, field
from msgspec.structs import replace

from batonpass.errors import InvalidValueError, NotFoundError
from batonpass.handoff.history.offers import GONE, author_of, is_intact, read_items
from batonpass.handoff.sessions.agent_memory import is_memory
from batonpass.model.base.content_names import BRIEF, REPORT, TASK, UNRECORDED, UNTOUCHED
from batonpass.model.base.ids import HANDOFF, ContentId, HandoffId, PrincipalId, RunId, StreamId, is_user
from batonpass.model.base.kinds import ItemFate
from batonpass.model.base.lifecycle import DELIVERED, State
from batonpass.model.baton.item_fate import KnownFate
from batonpass.model.baton.items import (
    SURE,
    Artifact,
    Constraint,
    Decision,
    Exclusion,
    Item,
    ItemValue,
    OpenQuestion,
    RejectedPath,
    Report,
    Statement,
    WorkItem,
)
from batonpass.model.baton.session import ASKING, CachedResult, Dropped, Fate, InFlight, OpenCheck, Said
from batonpass.model.bodies.body import (
    Carried,
    CheckpointSaved,
    HandoffCompleted,
    HandoffFailed,
    HandoffInitiated,
    Kind,
    Part,
    RunClosed,
    RunRecorded,
    RunRelaxed,
    SessionResumed,
    VerificationPassed,
)
from batonpass.model.ledger.content import ContentRef, StoredContent
from batonpass.model.ledger.receipt import Receipt
from batonpass.model.ledger.run import Handoff, Run
from batonpass.records.call import CallRecord, read_calls
from batonpass.records.handoff import is_unverified
from batonpass.records.lineage import get_offer
from batonpass.records.stale_results import LedgerFates
from batonpass.records.text import names_in
from batonpass.store.port import LedgerView, ReceiptQuery
from batonpass.wire.documents import JSON, decode_brief, decode_report
from batonpass.wire.receipt_codec import decode_receipt

IN_FLIGHT: Final = frozenset(
    {State.HELD, State.OFFERED, State.READY, State.CLAIMED, State.ASKED, State.RUNNING},
)

_ASKED: Final = re.compile(
    r'check: (?P<what>"(?:[^"\\]|\\.)*") \(by (?P<by>[^(),]+)(?:, (?P<handoff>handoff_[0-9a-z]{26}))?\): '
    r"nobody has verified it(?:.*?; output: (?P<outputs>.*)|.*)",
    re.DOTALL,
)
_LONGEST: Final = 500  # of a task in a check

# Most receipts of a tree are about calls. Of these, only results that are cached for a while matter here.
_READ: Final = frozenset(
    {
        Kind.RUN_RECORDED,
        Kind.RUN_RELAXED,
        Kind.RUN_CLOSED,
        Kind.CHECKPOINT_SAVED,
        Kind.HANDOFF_INITIATED,
        Kind.HANDOFF_COMPLETED,
        Kind.HANDOFF_FAILED,
        Kind.VERIFICATION_PASSED,
        Kind.TOOL_COMPLETED,
        Kind.SESSION_RESUMED,
    },
)
_SAID_IN_OFFERS: Final = frozenset(
    {Part.QUESTION, Part.DECISION, Part.ASSUMPTION, Part.CLAIM, Part.REJECTED, Part.ARTIFACT},
)
_OF_THE_ROOT: Final = frozenset({Part.CONSTRAINT, Part.EXCLUSION, Part.COMPLETED})
_DROPPED: Final[Mapping[Part, Fate]] = {
    Part.ASSUMPTION: Fate.HYPOTHESIS,
    Part.CLAIM: Fate.HYPOTHESIS,
    Part.UNTRUSTED: Fate.EXTERNAL,
}


# A decision, who made it and when: it keeps these from session to session.
Saying: TypeAlias = tuple[ItemValue, PrincipalId, datetime]


class Left(Struct):
    """The remains of a tree, before anybody checks whether they still hold."""

    said: list[Said] = field(default_factory=list)
    artifacts: list[tuple[Said, bool]] = field(default_factory=list)  # ours, and whether they were verified
    outside: list[str] = field(default_factory=list)  # names of artifacts from outside
    dropped: list[Dropped] = field(default_factory=list)
    in_flight: list[InFlight] = field(default_factory=list)
    caches: list[CachedResult] = field(default_factory=list)
    checks: list[OpenCheck] = field(default_factory=list)
    pruned: dict[str, datetime] = field(default_factory=dict)  # items that people took out, and when
    pending: tuple[HandoffId, ...] = ()  # in other trees, in flight when this one began
    fallen: dict[Saying, str] = field(default_factory=dict)  # decisions of results that no longer stand, and why

    def add(self, other: "Left") -> None:
        """Add the remains of another tree."""
        self.said += other.said
        self.artifacts += other.artifacts
        self.outside += other.outside
        self.dropped += other.dropped
        self.in_flight += other.in_flight
        self.caches += other.caches
        self.checks += other.checks
        self.pruned |= other.pruned
        self.fallen |= other.fallen


def read_left(
    view: LedgerView,
    root: RunId,
    at: datetime,
    *,
    below: frozenset[HandoffId] | None = None,
    after: int = 0,
) -> Left:
    """Return the remains of a tree. `below` limits them to some handoffs, `after` to later receipts of the root.

    Raises `NotFoundError` for a root that does not exist.
    """
    view.get_run(root)
    tree = _Tree(view, root, below, after)
    left = Left(pending=tree.pending)
    tree.take_notes(left)
    for handoff in tree.handoffs:
        tree.take_result(left, handoff)
    tree.take_root_report(left)
    tree.take_calls(left, at)
    return left


class _Tree:
    """The receipts of a tree that matter here, by stream, with their contents."""

    def __init__(self, view: LedgerView, root: RunId, below: frozenset[HandoffId] | None, after: int) -> None:
        self._view = view
        self._fates = LedgerFates(view)
        runs = list(view.find_runs(root=root))[::-1]
        handoffs = list(view.find_handoffs(root=root))[::-1]
        if below is not None:
            runs, handoffs = _hanging_from(below, runs, handoffs)
        elif after:
            later = frozenset(known.id for known in handoffs if known.parent == root and known.seq > after)
            lead = [run for run in runs if run.id == root]
            hanging, handoffs = _hanging_from(later, runs, handoffs)
            runs = [*lead, *hanging]
        self.runs, self.handoffs = runs, handoffs
        self.lead = next((run for run in self.runs if run.parent is None), None)
        wanted = {*(run.id for run in self.runs), *(handoff.id for handoff in self.handoffs)}
        self._receipts: dict[StreamId, list[Receipt]] = {}
        self._offers: dict[HandoffId, Receipt] = {}
        for stored in view.find_receipts(ReceiptQuery(root=root)):
            if stored.kind in _READ and (stored.stream in wanted or stored.kind == Kind.HANDOFF_INITIATED):
                receipt = decode_receipt(stored.payload)
                if stored.stream in wanted and not (stored.stream == StreamId(root) and stored.seq <= after):
                    self._receipts.setdefault(stored.stream, []).append(receipt)
                if isinstance(receipt.body, HandoffInitiated):
                    self._offers[receipt.body.handoff] = receipt
        self.verified = {handoff.id for handoff in self.handoffs if handoff.state is State.VERIFIED}
        self._contents = self._read_words()
        self._inherited = self._find_fallen() if self._fates else {}
        self._reasoning = {
            brief.reasoning
            for offer in self._offers.values()
            if (body := self._body(offer.content.get(BRIEF))) is not None
            and (brief := decode_brief(body)).reasoning is not None
        }

    @property
    def pending(self) -> tuple[HandoffId, ...]:
        """Return the handoffs that were in flight in other trees when this one began."""
        mine = () if self.lead is None else self._of(StreamId(self.lead.id))
        return tuple(
            handoff
            for receipt in mine
            if isinstance(receipt.body, SessionResumed)
            for handoff in receipt.body.in_flight
        )

    def _find_fallen(self) -> dict[Saying, str]:
        """Return the decisions that came along from earlier trees, and whose results were refuted since."""
        mine = () if self.lead is None else self._of(StreamId(self.lead.id))
        heads = [head for receipt in mine if isinstance(receipt.body, SessionResumed) for head in receipt.body.roots]
        fallen: dict[Saying, str] = {}
        seen: set[str] = set()
        while heads:
            stream = StreamId(heads.pop().run)
            if stream in seen:
                continue
            seen.add(stream)
            root = RunId(stream)
            if self._fates.has(root):
                fallen |= read_left(self._view, root, _LONG_AGO).fallen
            resumed = self._view.find_receipts(ReceiptQuery(stream=stream, kind=Kind.SESSION_RESUMED))
            for stored in resumed:
                body = decode_receipt(stored.payload).body
                heads += body.roots if isinstance(body, SessionResumed) else ()
        return fallen

    def take_notes(self, left: Left) -> None:
        """Take the items that the runs recorded, or stated in an offer."""
        given = self._given_by_verified()
        for run in self.runs:
            relaxed: set[ContentId] = set()
            refs: list[Carried] = []
            checkpoints = 0
            for receipt in self._of(StreamId(run.id)):
                match receipt.body:
                    case RunRecorded() as body:
                        refs += body.items
                    case RunRelaxed() as body:
                        relaxed.add(body.item)
                    case HandoffInitiated() as body:
                        own = {ref.id for ref in receipt.content.values()}
                        refs += [item for item in body.carries if item.item in own and item.part in _SAID_IN_OFFERS]
                    case CheckpointSaved():
                        checkpoints += 1
                    case _:
                        continue
            if checkpoints:
                left.dropped.append(Dropped(what=f"{checkpoints} checkpoints of {run.agent}", why=Fate.REASONING))
            for item in self._items(ref for ref in refs if ref.part is not Part.INTENT):
                self._take_note(left, run, item, relaxed=item.id in relaxed, verified=item.id in given)

    def _take_fallen(self, left: Left, said: Said, run: Run) -> bool:
        """Take an item whose result no longer stands. Questions stay open, also those of a refuted attempt."""
        known = None if run.parent is None else self._fates.find_of_run(run)
        why = self._inherited.get((said.value, said.by, said.at)) if known is None else _why(known)
        if why is None or isinstance(said.value, OpenQuestion | Constraint | Exclusion):
            return False
        redone = known is not None and known.fate is ItemFate.SUPERSEDED
        tried = isinstance(said.value, RejectedPath) and known is not None and known.fate is ItemFate.STALE
        if tried:
            return False  # a rejected path was tried, whatever came later
        if isinstance(said.value, Decision) and not redone:
            left.fallen[said.value, said.by, said.at] = why
            left.said.append(said)
        else:
            left.dropped.append(_dropped(said, Fate.REFUTED))
        return True

    def _take_note(self, left: Left, run: Run, item: Item, *, relaxed: bool, verified: bool) -> None:
        value = item.value
        if is_memory(item) or (item.part in _OF_THE_ROOT and run.parent is not None):
            # A child's own constraints and work are told by its report. A memory belongs to its agent, not to the tree.
            return
        if value is None:
            left.dropped.append(Dropped(what=f"{item.part} of {item.by}", why=Fate.ERASED, item=item.id))
            return
        said = Said(
            value=value, by=item.by, at=item.at, source=Carried(item=item.id, digest=item.digest, part=item.part)
        )
        fate = _DROPPED.get(item.part)
        if self._take_check(left, said) or (fate is None and not relaxed and self._take_fallen(left, said, run)):
            return
        if isinstance(value, Artifact) and item.id in self._reasoning:
            fate = Fate.REASONING
        elif relaxed:
            fate = Fate.RELAXED
        if isinstance(value, Artifact) and fate is Fate.EXTERNAL:
            left.outside.append(value.name)
        if fate is not None:
            left.dropped.append(_dropped(said, fate))
        elif isinstance(value, Artifact):
            left.artifacts.append((said, verified))
        elif not (isinstance(value, WorkItem) and value.evidence in self.verified) and not isinstance(value, Statement):
            left.said.append(said)  # verified work of this tree is added with its handoff, below

    def _take_check(self, left: Left, said: Said) -> bool:
        """Take work that a root recorded as done and nobody verified, and checks that earlier sessions left open."""
        value = said.value
        if isinstance(value, WorkItem) and value.verified and self._take_stale_work(left, value, said):
            return True
        if isinstance(value, WorkItem) and not value.verified:
            left.checks.append(
                OpenCheck(what=value.what, by=said.by, at=said.at, outputs=value.outputs, source=said.source)
            )
            return True
        asked = _ASKED.fullmatch(value.text) if isinstance(value, OpenQuestion) else None
        if asked is None or said.by != ASKING:
            return False
        if asked["handoff"] is None:
            made = () if asked["outputs"] is None else tuple(asked["outputs"].split(", "))
            what, by = json.loads(asked["what"]), PrincipalId(asked["by"])
            left.checks.append(OpenCheck(what=what, by=by, at=said.at, outputs=made, source=said.source))
            return True
        try:
            known = self._view.get_handoff(HandoffId(asked["handoff"]))
        except NotFoundError:
            return False  # a tree that was imported alone lacks the others: the question stays as it is
        if is_unverified(self._view, known) or self._is_stale(known):
            left.checks.append(replace(self._check_of(known), source=said.source))
        else:
            left.dropped.append(_dropped(said, Fate.ANSWERED))
        return True

    def _take_stale_work(self, left: Left, work: WorkItem, said: Said) -> bool:
        """Take verified work made from items that no longer stand: it is to be checked again."""
        if not self._fates or not (work.evidence or "").startswith(HANDOFF):
            return False
        with suppress(NotFoundError):  # a tree that was imported alone lacks the others
            known = self._view.get_handoff(HandoffId(work.evidence or ""))
            if self._is_stale(known):
                left.checks.append(replace(self._check_of(known), source=said.source))
                return True
        return False

    def _fate_of(self, handoff: Handoff) -> KnownFate | None:
        if not self._fates or handoff.run is None:
            return None
        return self._fates.find_of_run(self._view.get_run(handoff.run))

    def _is_stale(self, handoff: Handoff) -> bool:
        """Return whether a handoff delivered something made from items that no longer stand."""
        known = self._fate_of(handoff) if handoff.state in DELIVERED else None
        return known is not None and known.fate is ItemFate.STALE

    def _check_of(self, handoff: Handoff) -> OpenCheck:
        """Return the open check of a handoff that has delivered, in any tree."""
        stream = self._view.get_stream(StreamId(handoff.run or ""))
        closing = decode_receipt(self._view.get_receipt_at(stream.id, stream.seq).payload)
        offer, _ = get_offer(self._view, handoff)
        named = (closing.content.get(name) for name in (REPORT, UNTOUCHED, UNRECORDED))
        wanted = [ref.id for ref in (*named, offer.content.get(TASK)) if ref is not None]
        self._contents.update((stored.id, stored) for stored in self._view.find_contents(wanted))
        report = self._report(closing)
        made = [] if report is None else [output for work in report.completed for output in work.outputs]
        known = self._fate_of(handoff)
        return OpenCheck(
            fallen=() if known is None else (_why(known),),
            what=self._words(offer.content.get(TASK))[:_LONGEST],
            by=author_of(handoff.to),
            at=closing.at,
            handoff=handoff.id,
            untouched=self._names(closing, UNTOUCHED),
            unrecorded=self._names(closing, UNRECORDED),
            outputs=tuple(dict.fromkeys(made)),
            source=_source(closing),
        )

    def _names(self, closing: Receipt, name: str) -> tuple[str, ...]:
        body = self._body(closing.content.get(name))
        return () if body is None else names_in(body)

    def take_result(self, left: Left, handoff: Handoff) -> None:
        """Take the result of a handoff."""
        offer = self._offers.get(handoff.id)
        if offer is None:
            raise InvalidValueError("handoff", f"{handoff.id} was never offered; run `batonpass ledger verify`")
        task = self._words(offer.content.get(TASK))
        if handoff.state in IN_FLIGHT:
            left.in_flight.append(
                InFlight(
                    handoff=handoff.id,
                    to=handoff.to,
                    task=task,
                    state=handoff.state,
                    root=handoff.root,
                    offered_at=offer.at,
                ),
            )
        if handoff.state is State.RUNNING or handoff.run is None:
            return
        closing = self._closing(handoff.run)
        if closing is None:
            return
        report = self._report(closing)
        author = author_of(handoff.to)
        source = _source(closing)
        verified = None if handoff.state is not State.VERIFIED else self._verified(handoff, task, report, source)
        if is_unverified(self._view, handoff) or self._is_stale(handoff):
            left.checks.append(self._check_of(handoff))
        elif verified is not None:
            left.said.append(verified)
        elif handoff.state is State.COMPLETED:
            left.dropped.append(
                Dropped(what=task, why=Fate.UNVERIFIED, item=None if source is None else source.item),
            )
        if report is not None:
            self._take_report(left, report, author, closing, handoff)

    def _verified(self, handoff: Handoff, task: str, report: Report | None, source: Carried | None) -> Said:
        verdict, at = self._verdict(handoff)
        work = WorkItem(
            task,
            outputs=() if report is None or not report.result.strip() else (report.result,),
            verified_by=verdict.by,
            how=f"{verdict.method}, see {handoff.id}",
            evidence=handoff.id,
        )
        # The words are the worker's; who vouches for them stands in the item.
        return Said(value=work, by=author_of(handoff.to), at=at, source=source)

    def take_root_report(self, left: Left) -> None:
        """Take the final report of the root."""
        closing = None if self.lead is None else self._closing(self.lead.id)
        report = None if closing is None else self._report(closing)
        if self.lead is None or closing is None or report is None:
            return
        by = author_of(self.lead.agent)
        left.checks += [
            OpenCheck(what=work.what, by=by, at=closing.at, outputs=work.outputs, source=_source(closing))
            for work in report.completed
            if not work.verified
        ]
        if report.result.strip():
            left.dropped.append(Dropped(what=f"what {self.lead.agent} reported", why=Fate.UNVERIFIED))
        self._take_report(left, report, author_of(self.lead.agent), closing, None)

    def _take_report(
        self, left: Left, report: Report, by: PrincipalId, closing: Receipt, handoff: Handoff | None
    ) -> None:
        source = _source(closing)
        state = State.COMPLETED if handoff is None else handoff.state
        run = self._view.get_run(RunId(closing.stream))
        known = self._fates.find_of_run(run) if handoff is not None else None
        # Questions of a failed attempt stay open. Its decisions do not count; those of a refuted one are open again.
        decided = report.decisions if state in DELIVERED or known is not None else ()
        lasting: list[ItemValue] = [*report.open_questions, *decided, *report.rejected_paths]
        sure = [claim for claim in report.claims if state is State.VERIFIED and claim.confidence == SURE]
        for value in (*lasting, *sure):
            said = Said(value=value, by=by, at=closing.at, source=source)
            if not self._take_fallen(left, said, run):
                left.said.append(said)
        hypotheses = [
            *(assumption.what for assumption in report.assumptions),
            *(claim.what for claim in report.claims if claim not in sure),
        ]
        item = None if source is None else source.item
        left.dropped += [Dropped(what=what, why=Fate.HYPOTHESIS, item=item) for what in hypotheses]

    def take_calls(self, left: Left, at: datetime) -> None:
        """Take the cached results of calls that are still fresh."""
        for run in self.runs:
            for call in self._calls(run):
                made_at, until = call.ended_at, call.fresh_until
                if made_at is None or until is None:
                    continue
                if made_at <= at < until:
                    cached = CachedResult(tool=call.tool, call=call.id, run=run.id, made_at=made_at, until=until)
                    left.caches.append(cached)
                else:
                    left.dropped.append(Dropped(what=f"what {call.tool} returned", why=Fate.EXPIRED))

    def _of(self, stream: StreamId) -> Sequence[Receipt]:
        return self._receipts.get(stream, ())

    def _calls(self, run: Run) -> Iterable[CallRecord]:
        kept = any(receipt.kind == Kind.TOOL_COMPLETED for receipt in self._of(StreamId(run.id)))
        return read_calls(self._view, run).values() if kept else ()

    def _closing(self, run: RunId) -> Receipt | None:
        closing = [
            receipt
            for receipt in self._of(StreamId(run))
            if isinstance(receipt.body, RunClosed | HandoffCompleted | HandoffFailed)
        ]
        return closing[-1] if closing else None

    def _verdict(self, handoff: Handoff) -> tuple[VerificationPassed, datetime]:
        found = [
            (receipt.body, receipt.at)
            for receipt in self._of(StreamId(handoff.id))
            if isinstance(receipt.body, VerificationPassed)
        ]
        if not found:
            raise InvalidValueError("handoff", f"{handoff.id} has no verdict; run `batonpass ledger verify`")
        return found[-1]

    def _given_by_verified(self) -> set[ContentId]:
        closings = (self._closing(known.run) for known in self.handoffs if known.id in self.verified and known.run)
        return {
            item.item
            for closing in closings
            if closing is not None and isinstance(closing.body, HandoffCompleted)
            for item in closing.body.gives
        }

    def _items(self, refs: Iterable[Carried]) -> Iterator[Item]:
        wanted = list(refs)
        items, _ = read_items(self._view, wanted, self._contents)
        return iter(items)

    def _read_words(self) -> dict[ContentId, StoredContent]:
        wanted: set[ContentId] = set()
        for receipt in (*(known for stream in self._receipts.values() for known in stream), *self._offers.values()):
            if isinstance(receipt.body, RunRecorded):
                wanted.update(item.item for item in receipt.body.items)
            elif isinstance(receipt.body, HandoffInitiated):
                wanted.update(ref.id for ref in receipt.content.values())
            elif (ref := receipt.content.get(REPORT)) is not None:
                wanted.add(ref.id)
        return {content.id: content for content in self._view.find_contents(sorted(wanted))}

    def _body(self, ref: ContentRef | None) -> bytes | None:
        """Return a content if it matches its digest. A changed content counts as missing."""
        stored = None if ref is None else self._contents.get(ref.id)
        return stored.body if stored is not None and ref is not None and is_intact(stored, ref.digest) else None

    def _words(self, ref: ContentRef | None) -> str:
        body = self._body(ref)
        return GONE if body is None else body.decode("utf-8", "replace")

    def _report(self, closing: Receipt) -> Report | None:
        ref = closing.content.get(REPORT)
        body = self._body(ref)
        if ref is None or body is None:
            return None
        return decode_report(body) if ref.media_type == JSON else Report(result=body.decode("utf-8", "replace"))


_LONG_AGO: Final = datetime.min.replace(tzinfo=UTC)  # no cached result is fresh then, and none is wanted


def _why(known: KnownFate) -> str:
    """Return who refuted which result. The reason is quoted only if a person gave it: the question is ours."""
    reason = known.refutation.reason if is_user(known.refutation.by) else ""
    return f"{known.verdict}: {reason}" if reason else known.verdict


def _source(closing: Receipt) -> Carried | None:
    ref = closing.content.get(REPORT)
    return None if ref is None else Carried(item=ref.id, digest=ref.digest, part=Part.COMPLETED)


def _dropped(said: Said, why: Fate) -> Dropped:
    value = said.value
    what = next(
        (
            given
            for name in ("what", "name", "sentence", "text")
            if isinstance(given := getattr(value, name, None), str)
        ),
        type(value).__name__,
    )
    source = value.source if isinstance(value, Artifact) and why is Fate.EXTERNAL else None
    return Dropped(what=what, why=why, item=None if said.source is None else said.source.item, source=source)


def _hanging_from(
    below: frozenset[HandoffId],
    runs: Sequence[Run],
    handoffs: Sequence[Handoff],
) -> tuple[list[Run], list[Handoff]]:
    """Return the runs and handoffs of a tree that are below some of its handoffs."""
    wanted, found = set(below), set[RunId]()
    while True:
        found = {run.id for run in runs if run.handoff in wanted}
        grown = wanted | {handoff.id for handoff in handoffs if handoff.parent in found}
        if grown == wanted:
            break
        wanted = grown
    return [run for run in runs if run.id in found], [handoff for handoff in handoffs if handoff.id in wanted]
