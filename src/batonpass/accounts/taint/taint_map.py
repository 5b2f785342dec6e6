"""The map of content from outside: every run, handoff and call that it reached, in any tree."""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from batonpass.accounts.taint.receipt_texts import source_text
from batonpass.accounts.taint.taint_phrases import called_with, came_with, entry_of, hop_at, quoted_reason
from batonpass.accounts.taint.taint_values import Did, TaintHop, Tracing
from batonpass.accounts.taint.taint_way import Target
from batonpass.accounts.why.outside_content import Outside
from batonpass.audit.meant_ids import get_meant
from batonpass.audit.short_ids import LAST, ending
from batonpass.errors import AmbiguousIdError, NotFoundError
from batonpass.handoff.sessions.agent_memory import MEMORY
from batonpass.model.base.content_names import REPORT
from batonpass.model.base.ids import CALL, HANDOFF, RECEIPT, RUN, CallId, ContentId, HandoffId, ReceiptId, RunId
from batonpass.model.base.label import Source
from batonpass.model.baton.items import Artifact
from batonpass.model.bodies.body import (
    HandoffAccepted,
    HandoffApproved,
    HandoffCompleted,
    HandoffDenied,
    HandoffEndorsed,
    HandoffFailed,
    HandoffInitiated,
    Kind,
    RunEndorsed,
    RunRecorded,
    RunTainted,
    SessionResumed,
)
from batonpass.model.ledger.receipt import Receipt
from batonpass.model.ledger.receipt_taint import brought_by
from batonpass.records.call import CallOutcome, call_asked
from batonpass.records.item import find_value
from batonpass.records.text import read_receipt
from batonpass.scan.letters import squeeze
from batonpass.store.port import LedgerView, ReceiptQuery

BROUGHT: Final = (Kind.TOOL_COMPLETED, Kind.TOOL_FAILED, Kind.RUN_RECORDED)

_ASKED: Final = {None: Did.CALLED, CallOutcome.HELD: Did.HELD, CallOutcome.DENIED: Did.DENIED}


def map_taint(view: LedgerView, brought: dict[Source, Receipt]) -> tuple[Tracing, ...]:
    """Return everything that some sources reached; each is given with the receipt that brought it.

    Sources with the same text in one tree are grouped, such as a page and the file made from it.
    """
    groups: dict[tuple[RunId, str], list[Source]] = {}
    for source, receipt in brought.items():
        root = receipt.root or RunId(receipt.stream)
        groups.setdefault((root, source_text(view, source, receipt) or source), []).append(source)
    return tuple(_trace(view, tuple(together), root) for (root, _), together in groups.items())


def find_brought(view: LedgerView, root: RunId | None = None) -> Iterator[tuple[Source, Receipt]]:
    """Yield all content from outside, in one tree or all, in order, with the receipt that brought it."""
    for kind in BROUGHT:
        for stored in view.find_receipts(ReceiptQuery(kind=kind, root=root)):
            receipt = read_receipt(stored)
            yield from ((source, receipt) for source in brought_by(receipt))


def _trace(view: LedgerView, sources: tuple[Source, ...], root: RunId) -> Tracing:
    """Follow sources through their tree, and through the trees they were carried into."""
    source, *also = sources
    first = _Walk(view, root, frozenset(sources))
    steps = list(first.steps())
    walked, pending = {root}, [first]
    while pending:
        before = pending.pop()
        for other in _find_further(view, before, walked):
            walked.add(other.outside.root)
            steps += other.steps()
            pending.append(other)
    return Tracing(entry=entry_of(view, source, tuple(also), first.outside.brought[source]), steps=tuple(steps))


class _Walk:
    """One walk through a tree, for some sources."""

    def __init__(self, view: LedgerView, root: RunId, sources: frozenset[Source]) -> None:
        self.view = view
        self.outside = Outside(view, root)
        self.sources = sources
        self.kept: set[Source] = set()  # memories recorded by runs that it reached
        self._reached: set[RunId] = set()
        self._handoffs: set[HandoffId] = set()

    def steps(self) -> Iterator[TaintHop]:
        """Yield the steps that it took in this tree, in order."""
        for receipt in self.outside.walk():
            step = self._step(receipt)
            if step is not None:
                yield step
            self._note(receipt)

    def _stands(self, run: RunId) -> bool:
        taints = self.outside.taints
        standing = taints.standing.get(run, {})
        return any(source in standing or taints.stands_for(standing, source) for source in self.sources)

    def _note(self, receipt: Receipt) -> None:
        run = RunId(receipt.stream)
        if self._stands(run):
            self._reached.add(run)
        if isinstance(receipt.body, RunRecorded) and run in self._reached:
            self.kept.update(source for source in brought_by(receipt) if _is_memory(self.view, source))

    def _step(self, receipt: Receipt) -> TaintHop | None:
        body = receipt.body
        run = RunId(receipt.stream)
        match body:
            case RunEndorsed() | HandoffEndorsed() if body.source in self.sources:
                reason = quoted_reason(self.view, receipt)
                return self._made(receipt, Did.ENDORSED, f"by {body.by}{reason}")
            case HandoffApproved() | HandoffDenied() if body.handoff in self._handoffs:
                did = Did.APPROVED if isinstance(body, HandoffApproved) else Did.DENIED
                return self._made(receipt, did, f"by {body.by}{quoted_reason(self.view, receipt)}", about=body.handoff)
            case _ if run in self._reached:
                return self._in_run(receipt)
            case _ if run.startswith(f"{RUN}_") and self._stands(run):
                return self._arrived(receipt)
            case _:
                return None

    def _arrived(self, receipt: Receipt) -> TaintHop:
        match receipt.body:
            case HandoffAccepted() as body:
                self._handoffs.add(body.handoff)
                return self._made(receipt, Did.BEGAN_WITH, about=body.handoff)
            case RunTainted() as body:
                return self._made(receipt, Did.CAME_BACK, came_with(self.view, receipt, body), about=body.handoff)
            case SessionResumed():
                return self._made(receipt, Did.RESUMED)
            case _:
                return self._made(receipt, Did.READ)

    def _in_run(self, receipt: Receipt) -> TaintHop | None:
        if not self._stands(RunId(receipt.stream)):
            return None  # endorsed in the meantime
        match receipt.body:
            case _ if (call := call_asked(receipt)) is not None and call.outcome in _ASKED:
                step = self._made(
                    receipt, _ASKED[call.outcome], called_with(self.view, receipt, call.tool), about=call.id
                )
                return replace(step, flagged=not self.sources.isdisjoint(call.untrusted))
            case HandoffInitiated() as body:
                self._handoffs.add(body.handoff)
                carried = any(item.item in self.sources for item in body.carries)
                step = self._made(receipt, Did.HANDED_ON, f"to {body.to}", about=body.handoff)
                return replace(step, in_quarantine=carried)
            case HandoffCompleted() | HandoffFailed() as body if REPORT in receipt.content:
                return self._made(receipt, Did.REPORTED, about=body.handoff)
            case _:
                return None

    def _made(self, receipt: Receipt, did: Did, what: str = "", about: str | None = None) -> TaintHop:
        return hop_at(self.view, did, receipt, what, about)


def _find_further(view: LedgerView, walk: _Walk, walked: set[RunId]) -> Iterator[_Walk]:
    """Yield the trees that something was carried into: by a memory, a conversation, or a session."""
    reached = walk._reached  # noqa: SLF001 - it is ours
    carried = walk.sources | walk.kept | reached
    for stored in view.find_receipts(ReceiptQuery(kind=Kind.RUN_TAINTED)):
        receipt = read_receipt(stored)
        found = carried & set(brought_by(receipt))
        if found and receipt.root is not None and receipt.root not in walked:
            yield _Walk(view, receipt.root, frozenset(found))
    for stored in view.find_receipts(ReceiptQuery(kind=Kind.SESSION_RESUMED)):
        receipt = read_receipt(stored)
        body = receipt.body
        if not isinstance(body, SessionResumed) or receipt.root is None or receipt.root in walked:
            continue
        if reached and body.taint and any(root.run == walk.outside.root for root in body.roots):
            yield _Walk(view, receipt.root, frozenset(body.taint))


def _is_memory(view: LedgerView, source: Source) -> bool:
    value = find_value(view, ContentId(source))
    return isinstance(value, Artifact) and value.name == MEMORY


_KINDS: Final[Mapping[str, Callable[[str], Target]]] = {
    CALL: CallId,
    RUN: RunId,
    HANDOFF: HandoffId,
    RECEIPT: ReceiptId,
}
_SHOWN: Final = 5
_SHORTEST: Final = 8  # letters and digits needed to search for a text


class TaintQuestion(Struct, frozen=True, kw_only=True):
    """The thing that is meant: something that sources may have reached, or sources, or both."""

    target: Target | None = None
    brought: dict[Source, Receipt] = field(default_factory=dict)  # with the receipt that brought each
    root: RunId | None = None  # set if a whole tree is meant


def find_asked(view: LedgerView, given: str) -> TaintQuestion:
    """Return the source or run named by the end of an id, an agent's name, `last`, or words of a source.

    Raises `NotFoundError` and `AmbiguousIdError`.
    """
    wanted = given.strip()
    brought = dict(find_brought(view))
    if wanted == LAST:
        latest = max(brought, key=lambda source: brought[source].at, default=None)
        if latest is None:
            raise NotFoundError("content from outside", given)
        return TaintQuestion(brought={latest: brought[latest]})
    named = [source for source in brought if source.endswith(wanted.removeprefix("…").lower())] if wanted else []
    if len(named) > 1 and wanted not in named:
        lines = tuple(f"{ending(source, 8)} · {source.partition('_')[0]}" for source in named[:_SHOWN])
        raise AmbiguousIdError("content from outside", given, lines)
    if named:
        source = next((one for one in named if one == wanted), named[0])
        # A call that brought content from outside may itself follow from earlier content.
        target = CallId(source) if source.startswith(f"{CALL}_") else None
        return TaintQuestion(brought={source: brought[source]}, target=target)
    return _find_target(view, given, brought)


def _find_target(view: LedgerView, given: str, brought: dict[Source, Receipt]) -> TaintQuestion:
    try:
        meant = get_meant(view, given.strip(), tuple(_KINDS))
    except NotFoundError:
        letters = squeeze(given)
        found = {
            source: receipt
            for source, receipt in brought.items()
            if len(letters) >= _SHORTEST and letters in squeeze(source_text(view, source, receipt) or "")
        }
        if not found:
            raise NotFoundError("content from outside", given) from None
        return TaintQuestion(brought=found)
    target: Target = _KINDS[meant.kind](meant.id)
    if meant.kind == RUN and view.get_run(RunId(meant.id)).parent is None:
        return TaintQuestion(root=RunId(meant.id), target=target)
    return TaintQuestion(target=target)
