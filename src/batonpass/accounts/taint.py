"""Taint, told: where a text from outside entered, and every run, handoff and call that it reached."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Final

from batonpass.accounts.meant import get_meant
from batonpass.accounts.outside import MESSAGE, Outside
from batonpass.accounts.trail_words import PATH, REASON, TARGET, Words, first_line
from batonpass.accounts.why_hops import name_of
from batonpass.audit.lookup import LAST, ending, read_receipt, read_texts
from batonpass.errors import AmbiguousIdError, InvalidValueError, NotFoundError
from batonpass.handoff.calls.past_calls import ARGUMENTS, RESULT
from batonpass.handoff.remembering import MEMORY
from batonpass.handoff.transfer.result import DELIVERED
from batonpass.model.bodies import (
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
    ToolDenied,
    ToolHeld,
    ToolRequested,
)
from batonpass.model.ids import CALL, CONTENT, HANDOFF, RECEIPT, RUN, ContentId, HandoffId, ReceiptId, RunId
from batonpass.model.items import Artifact
from batonpass.model.label import Source
from batonpass.model.receipt import Receipt
from batonpass.model.taint import brought_by
from batonpass.scan.passages import squeeze
from batonpass.store.port import LedgerView, ReceiptQuery
from batonpass.wire.documents import decode_item

KINDS: Final = (CALL, RUN, HANDOFF, RECEIPT)
_SHOWN: Final = 5
_SHORTEST: Final = 8  # letters and digits of a text that is looked for


class Way(StrEnum):
    """What content from outside did, or what was done about it."""

    READ = "read"  # it came to a run first here
    CAME_BACK = "came back"  # with a child's words, from a memory, or from a file
    BEGAN_WITH = "began with"
    HANDED_ON = "handed on"
    CALLED = "called"
    HELD = "held"
    DENIED = "denied"
    APPROVED = "approved"
    ENDORSED = "endorsed"
    REPORTED = "reported"
    RESUMED = "resumed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One receipt on the way of content from outside."""

    way: Way
    receipt: ReceiptId
    at: datetime
    run: RunId | None  # where; None for what somebody did to a handoff
    name: str  # of the run, or of the handoff
    what: str = ""
    id: str | None = None  # of the call or the handoff
    quoted: bool = False  # its words stand in the arguments, or it travels in the baton itself


@dataclass(frozen=True, slots=True, kw_only=True)
class Tracing:
    """Where a text from outside entered, and all that it reached."""

    source: Source
    also: tuple[Source, ...]  # other ways by which the very same text came in
    name: str
    words: Words | None
    entered: Receipt
    run: RunId
    by: str
    steps: tuple[Step, ...]

    def count(self, *ways: Way) -> int:
        """Return how many steps are of these kinds."""
        return sum(step.way in ways for step in self.steps)

    @property
    def runs(self) -> int:
        """Return how many runs it reached."""
        return len({step.run for step in self.steps if step.run is not None})


def trace_taint(view: LedgerView, given: str) -> tuple[Tracing, ...]:
    """Return the way of whatever from outside is meant: by an id, `last`, or a text of its own.

    Raises `NotFoundError` and `AmbiguousIdError`.
    """
    sources = tuple(_find_sources(view, given))
    if not sources:
        raise NotFoundError("content from outside", given)
    return tuple(_trace(view, together, root) for together, root in _grouped(view, sources))


def _grouped(view: LedgerView, sources: tuple[tuple[Source, RunId], ...]) -> list[tuple[tuple[Source, ...], RunId]]:
    """Return sources by tree, those that say the very same together: a page, and the file that was made of it."""
    groups: dict[tuple[RunId, str], list[Source]] = {}
    for source, root in sources:
        groups.setdefault((root, _body_of(view, source, root) or source), []).append(source)
    return [(tuple(together), root) for (root, _), together in groups.items()]


def _find_sources(view: LedgerView, given: str) -> Iterator[tuple[Source, RunId]]:
    """Yield what is meant, each with the tree into which it came."""
    wanted = given.strip()
    if wanted == LAST:
        yield from list(_everything(view))[-1:]
        return
    known = dict(_everything(view))
    named = [source for source in known if source.endswith(wanted.removeprefix("…").lower())] if wanted else []
    if len(named) > 1 and not any(source == wanted for source in named):
        lines = tuple(f"{ending(source, 8)} · {source.partition('_')[0]}" for source in named[:_SHOWN])
        raise AmbiguousIdError("content from outside", given, lines)
    if named:
        yield named[0], known[named[0]]
        return
    try:
        meant = get_meant(view, wanted, KINDS)
    except NotFoundError:
        yield from ((source, root) for source, root in known.items() if _says(view, source, root, wanted))
        return
    yield from _sources_of(view, meant.id, meant.receipt, known)


def _sources_of(
    view: LedgerView, meant: str, receipt: ReceiptId | None, known: dict[Source, RunId]
) -> Iterator[tuple[Source, RunId]]:
    """Yield what had come from outside to a run, a handoff, or whoever wrote a receipt."""
    if meant.startswith(f"{HANDOFF}_"):
        handoff = view.get_handoff(HandoffId(meant))
        run, root, at = handoff.run or handoff.parent, handoff.root, None
    elif meant.startswith(f"{RUN}_"):
        run, root, at = RunId(meant), view.get_run(RunId(meant)).root, None
    else:
        stored = read_receipt(view.get_receipt(ReceiptId(receipt or meant)))
        run, root, at = RunId(stored.stream), stored.root or RunId(stored.stream), stored.id
    outside = Outside(view, root)
    reached: dict[Source, None] = {}
    for found in outside.walk():
        reached.update(dict.fromkeys(outside.taints.standing.get(run, ())))
        if found.id == at:
            break
    yield from ((source, known.get(source, root)) for source in reached)


def _everything(view: LedgerView) -> Iterator[tuple[Source, RunId]]:
    """Yield all that ever came from outside, in the order in which it did, with its tree."""
    for kind in (Kind.TOOL_COMPLETED, Kind.TOOL_FAILED, Kind.RUN_RECORDED):
        for stored in view.find_receipts(ReceiptQuery(kind=kind)):
            receipt = read_receipt(stored)
            yield from ((source, receipt.root or RunId(receipt.stream)) for source in brought_by(receipt))


def _says(view: LedgerView, source: Source, root: RunId, text: str) -> bool:
    """Return whether these words stand in what came from outside, however they are spelled."""
    letters = squeeze(text)
    if len(letters) < _SHORTEST:
        return False
    return letters in squeeze(_body_of(view, source, root))


def _body_of(view: LedgerView, source: Source, root: RunId) -> str:
    body: bytes | None = None
    if source.startswith(f"{CONTENT}_"):
        try:
            value = decode_item(view.get_content(ContentId(source)).body or b"")[0]
        except InvalidValueError:
            return ""
        body = view.get_content(value.body).body if isinstance(value, Artifact) else None
    else:
        for stored in view.find_receipts(ReceiptQuery(root=root, kind="tool")):
            receipt = read_receipt(stored)
            if source in brought_by(receipt):
                ref = receipt.content.get(RESULT) or receipt.content.get(MESSAGE)
                body = None if ref is None else view.get_content(ref.id).body
    return (body or b"").decode("utf-8", "replace")


def _trace(view: LedgerView, sources: tuple[Source, ...], root: RunId) -> Tracing:
    """Follow a text through its tree, and through the trees into which it was carried from there."""
    source, *also = sources
    first = _Walk(view, root, frozenset(sources))
    steps = list(first.steps())
    outside, walked, pending = first.outside, {root}, [first]
    while pending:
        before = pending.pop()
        for other in _find_further(view, before, walked):
            walked.add(other.outside.root)
            steps += other.steps()
            pending.append(other)
    entered = outside.brought[source]
    run = view.get_run(RunId(entered.stream))
    return Tracing(
        source=source,
        also=tuple(also),
        name=", also ".join(map(outside.name_of, sources)),
        words=outside.words_of(source),
        entered=entered,
        run=run.id,
        by=name_of(run),
        steps=tuple(steps),
    )


class _Walk:
    """One tree, gone through with some sources in mind."""

    def __init__(self, view: LedgerView, root: RunId, sources: frozenset[Source]) -> None:
        self.view = view
        self.outside = Outside(view, root)
        self.sources = sources
        self.kept: set[Source] = set()  # what runs that it reached kept for later ones
        self._reached: set[RunId] = set()
        self._handoffs: set[HandoffId] = set()

    def steps(self) -> Iterator[Step]:
        """Yield what it reached in this tree, in order."""
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

    def _step(self, receipt: Receipt) -> Step | None:
        body = receipt.body
        run = RunId(receipt.stream)
        match body:
            case RunEndorsed() | HandoffEndorsed() if body.source in self.sources:
                reason = _quoted(self.view, receipt)
                return self._made(receipt, Way.ENDORSED, f"by {body.by}{reason}")
            case HandoffApproved() | HandoffDenied() if body.handoff in self._handoffs:
                way = Way.APPROVED if isinstance(body, HandoffApproved) else Way.DENIED
                return self._made(receipt, way, f"by {body.by}{_quoted(self.view, receipt)}", id=body.handoff)
            case _ if run in self._reached:
                return self._in_run(receipt)
            case _ if run.startswith(f"{RUN}_") and self._stands(run):
                return self._arrived(receipt)
            case _:
                return None

    def _arrived(self, receipt: Receipt) -> Step:
        match receipt.body:
            case HandoffAccepted() as body:
                self._handoffs.add(body.handoff)
                return self._made(receipt, Way.BEGAN_WITH, id=body.handoff)
            case RunTainted() as body:
                came = "from a memory or a conversation"
                if body.handoff is not None:
                    known = self.view.get_handoff(body.handoff)
                    what = "the result" if known.state in DELIVERED else "words"
                    came = f"with {what} of {known.to} {ending(known.id)}"
                elif body.wrote is not None:
                    came = f"from {_file(self.view, receipt)}, which call {ending(body.wrote)} wrote"
                return self._made(receipt, Way.CAME_BACK, came, id=body.handoff)
            case SessionResumed():
                return self._made(receipt, Way.RESUMED)
            case _:
                return self._made(receipt, Way.READ)

    def _in_run(self, receipt: Receipt) -> Step | None:
        if not self._stands(RunId(receipt.stream)):
            return None  # endorsed meanwhile
        match receipt.body:
            case ToolRequested() | ToolHeld() as body:
                way = Way.CALLED if isinstance(body, ToolRequested) else Way.HELD
                quoted = not self.sources.isdisjoint(body.untrusted)
                step = self._made(receipt, way, _call(self.view, receipt, body.tool), id=body.call)
                return replace(step, quoted=quoted)
            case ToolDenied() as body:
                return self._made(receipt, Way.DENIED, _call(self.view, receipt, body.tool), id=body.call)
            case HandoffInitiated() as body:
                self._handoffs.add(body.handoff)
                carried = any(item.item in self.sources for item in body.carries)
                step = self._made(receipt, Way.HANDED_ON, f"to {body.to}", id=body.handoff)
                return replace(step, quoted=carried)
            case HandoffCompleted() | HandoffFailed() as body if "report" in receipt.content:
                return self._made(receipt, Way.REPORTED, id=body.handoff)
            case _:
                return None

    def _made(self, receipt: Receipt, way: Way, what: str = "", *, id: str | None = None) -> Step:  # noqa: A002 - it is one
        of_run = receipt.stream.startswith(f"{RUN}_")
        run = self.view.get_run(RunId(receipt.stream)) if of_run else None
        handoff = None if of_run else self.view.get_handoff(HandoffId(receipt.stream))
        name = name_of(run) if run is not None else f"{handoff.to} {ending(handoff.id)}" if handoff is not None else ""
        at = receipt.at
        return Step(
            way=way, receipt=receipt.id, at=at, run=None if run is None else run.id, name=name, what=what, id=id
        )


def _find_further(view: LedgerView, walk: _Walk, walked: set[RunId]) -> Iterator[_Walk]:
    """Yield the trees into which something was carried from one: a memory, a conversation, or a session."""
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
    try:
        value = decode_item(view.get_content(ContentId(source)).body or b"")[0]
    except (NotFoundError, InvalidValueError):
        return False
    return isinstance(value, Artifact) and value.name == MEMORY


def _call(view: LedgerView, receipt: Receipt, tool: str) -> str:
    texts = read_texts(view, receipt)
    for name in (TARGET, ARGUMENTS):
        text = texts.get(name)
        if text is not None and text.body is not None:
            return f"{tool} {first_line(name, text.ref.id, text.body).bare}".rstrip()
    return tool


def _file(view: LedgerView, receipt: Receipt) -> str:
    text = read_texts(view, receipt).get(PATH)
    return "a file" if text is None or text.body is None else first_line(PATH, text.ref.id, text.body).bare


def _quoted(view: LedgerView, receipt: Receipt) -> str:
    text = read_texts(view, receipt).get(REASON)
    return "" if text is None or text.body is None else f": {first_line(REASON, text.ref.id, text.body)}"
