"""What people mean by an id, and what was said where it leads.

People type the last characters of an id, because those are random; `last`; or an agent's name. Exactly one thing must
answer. If several do, the error lists them with enough to choose by.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from itertools import islice
from typing import Final

from batonpass.errors import AmbiguousIdError, EditedError, InvalidValueError, NotFoundError
from batonpass.model.bodies import HandoffInitiated, Kind, ToolCached, ToolCompleted, ToolFailed, ToolRequested
from batonpass.model.content import ContentRef, Place
from batonpass.model.ids import (
    CONTENT,
    HANDOFF,
    RECEIPT,
    RUN,
    AgentId,
    CallId,
    ContentId,
    HandoffId,
    ReceiptId,
    RunId,
    StreamId,
    time_of,
)
from batonpass.model.key import Key, KeyStatus
from batonpass.model.receipt import Receipt, StoredReceipt
from batonpass.model.run import Handoff, Run, RunState
from batonpass.store.port import LedgerView, ReceiptQuery
from batonpass.wire.codec import decode_receipt

LAST: Final = "last"

_SHORT: Final = 4
_LONG: Final = 26
_SHOWN: Final = 5
_WORDS: Final = 60


class Found(StrEnum):
    """What became of a content that a receipt names."""

    KEPT = "kept"
    ERASED = "erased"
    MISSING = "missing"  # no receipt says that it was erased: `verify` will say so


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """A content under the name by which its receipt refers to it, as far as it is still there."""

    name: str
    ref: ContentRef
    found: Found
    body: bytes | None

    @property
    def words(self) -> str | None:
        """Return the body as text; None if it is gone, or is not text."""
        try:
            return None if self.body is None else self.body.decode()
        except UnicodeDecodeError:
            return None

    @property
    def first_line(self) -> str:
        """Return what fits into a list: the first line with something in it, quoted, or what became of it."""
        if self.found is not Found.KEPT:
            return str(self.found)
        if self.words is None:
            return f"{self.ref.size:,} bytes of {self.ref.media_type}"
        line = next((line.strip() for line in self.words.splitlines() if line.strip()), "")
        return f'"{line}"' if len(line) <= _WORDS else f'"{line[: _WORDS - 1].rstrip()}…"'


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A tool call of a run: what was asked for, and what became of it; `outcome` is None while nobody knows."""

    id: CallId
    tool: str
    requested_at: datetime
    ended_at: datetime | None = None
    outcome: Kind | None = None
    error: str | None = None


def ending(identifier: str, length: int = _SHORT) -> str:
    """Return the last characters of an id."""
    return identifier[-length:]


def telling_length(identifiers: Sequence[str], least: int = _SHORT) -> int:
    """Return how many last characters tell these ids from each other."""
    distinct = len(set(identifiers))
    lengths = range(least, _LONG)
    return next((size for size in lengths if len({ending(one, size) for one in identifiers}) == distinct), _LONG)


def get_run(view: LedgerView, given: str) -> Run:
    """Return the run that is meant. Raises `NotFoundError` or `AmbiguousIdError`."""
    found = _find_runs(view, _plain(given))
    if not found:
        raise NotFoundError("run", given)
    if len(found) > 1:
        raise AmbiguousIdError("run", given, _with_rest(_run_lines(view, found[:_SHOWN]), found))
    return found[0]


def get_open_root(view: LedgerView) -> Run:
    """Return the last root run that is still open. Raises `NotFoundError`."""
    for run in view.find_runs():
        if run.parent is None and run.state is RunState.OPEN:
            return run
    raise NotFoundError("open root run", LAST)


def get_handoff(view: LedgerView, given: str) -> Handoff:
    """Return the handoff that is meant; a name is that of the agent it went to.

    Raises `NotFoundError` or `AmbiguousIdError`.
    """
    found = _find_handoffs(view, _plain(given))
    if not found:
        raise NotFoundError("handoff", given)
    if len(found) > 1:
        raise AmbiguousIdError("handoff", given, _with_rest(_handoff_lines(view, found[:_SHOWN]), found))
    return found[0]


def get_receipt(view: LedgerView, given: str) -> StoredReceipt:
    """Return the receipt that is meant. Raises `NotFoundError` or `AmbiguousIdError`."""
    wanted = _plain(given)
    if wanted == LAST:
        found = [view.get_receipt(ReceiptId(newest)) for newest in islice(view.find_ids(RECEIPT, ""), 1)]
    else:
        found = _find_receipts(view, wanted) or _last_of_agent(view, wanted)
    if not found:
        raise NotFoundError("receipt", given)
    if len(found) > 1:
        raise AmbiguousIdError("receipt", given, _with_rest(_receipt_lines(view, found[:_SHOWN]), found))
    return found[0]


def find_erasable(view: LedgerView, given: str) -> tuple[str, tuple[ContentId, ...]]:
    """Return what is meant, a content, a receipt or a run, and the contents that belong to it.

    A run's task is not among them: it stands in the stream of the run that offered it. Raises `NotFoundError` or
    `AmbiguousIdError`.
    """
    wanted = _plain(given)
    runs = _find_runs(view, wanted)
    receipts = _find_receipts(view, wanted)
    contents = list(islice(_endings(view, CONTENT, wanted), _SHOWN + 1))
    found: list[str] = [*(run.id for run in runs), *(stored.id for stored in receipts), *contents]
    if not found:
        raise NotFoundError("content, receipt or run", given)
    if len(found) > 1:
        lines = [*_run_lines(view, runs), *_receipt_lines(view, receipts), *_content_lines(contents)]
        raise AmbiguousIdError("thing", given, _with_rest(lines[:_SHOWN], found))
    return found[0], tuple(_contents_of(view, found[0]))


def get_key(keys: Iterable[Key], given: str) -> Key:
    """Return the key whose id begins or ends like this, or whose relay's id ends like this.

    A relay that rotated has several keys; then its active one is meant. Raises `NotFoundError` or `AmbiguousIdError`.
    """
    wanted = _plain(given)
    known = list(keys)
    by_id = [key for key in known if wanted and (key.id.startswith(wanted) or key.id.endswith(wanted))]
    by_relay = [key for key in known if wanted and key.relay is not None and key.relay.endswith(wanted)]
    found = by_id + [key for key in by_relay if key not in by_id]
    if len({key.relay for key in by_relay}) == 1 and not by_id:
        found = [key for key in by_relay if key.status is KeyStatus.ACTIVE] or by_relay
    if not found:
        raise NotFoundError("key", given)
    if len(found) > 1:
        lines = tuple(f"{key.id[:16]} · {key.role} {ending(key.relay or '')} · {key.status}" for key in found)
        raise AmbiguousIdError("key", given, lines)
    return found[0]


def read_receipt(stored: StoredReceipt) -> Receipt:
    """Return what a stored receipt says. Raises `EditedError` if its bytes cannot be read."""
    try:
        return decode_receipt(stored.payload)
    except InvalidValueError as error:
        raise EditedError(
            f"the stored bytes cannot be read: {error.problem}",
            stream=stored.stream,
            seq=stored.seq,
            field=error.field,
        ) from None


def read_texts(view: LedgerView, receipt: Receipt) -> dict[str, Text]:
    """Return the contents of a receipt, by name; erased and missing ones too."""
    return read_contents(view, receipt.content)


def read_contents(view: LedgerView, refs: Mapping[str, ContentRef]) -> dict[str, Text]:
    """Return contents that receipts name, in one go; erased and missing ones too."""
    stored = {content.id: content for content in view.find_contents([ref.id for ref in refs.values()])}
    texts = {}
    for name, ref in refs.items():
        content = stored.get(ref.id)
        if content is not None and content.place is Place.ERASED:
            texts[name] = Text(name=name, ref=ref, found=Found.ERASED, body=None)
        elif content is None or content.body is None:
            texts[name] = Text(name=name, ref=ref, found=Found.MISSING, body=None)
        else:
            texts[name] = Text(name=name, ref=ref, found=Found.KEPT, body=content.body)
    return texts


def read_task(view: LedgerView, handoff: Handoff) -> Text | None:
    """Return the task that was handed off; None if the receipt that says so is not there."""
    try:
        offer = read_receipt(view.get_receipt_at(StreamId(handoff.parent), handoff.seq))
    except NotFoundError:
        return None
    return read_texts(view, offer).get("task")


class Tasks:
    """What runs were asked to do: the intent of a root, the task of any other. Reads each offering stream once."""

    def __init__(self, view: LedgerView) -> None:
        self._view = view
        self._offers: dict[RunId, dict[HandoffId, Receipt]] = {}

    def find(self, run: Run) -> Text | None:
        """Return what a run was asked to do; None if the receipt that says so is not there."""
        if run.parent is None or run.handoff is None:
            opening = next(self._view.find_receipts(ReceiptQuery(stream=StreamId(run.id), kind=Kind.RUN_STARTED)), None)
            return None if opening is None else read_texts(self._view, read_receipt(opening)).get("intent")
        offer = self._offers_of(run.parent).get(run.handoff)
        return None if offer is None else read_texts(self._view, offer).get("task")

    def first_line(self, run: Run) -> str:
        """Return what a run was asked to do as it fits into a list."""
        text = self.find(run)
        return "unknown" if text is None else text.first_line

    def _offers_of(self, parent: RunId) -> dict[HandoffId, Receipt]:
        if parent not in self._offers:
            query = ReceiptQuery(stream=StreamId(parent), kind=Kind.HANDOFF_INITIATED)
            offers = map(read_receipt, self._view.find_receipts(query))
            self._offers[parent] = {
                offer.body.handoff: offer for offer in offers if isinstance(offer.body, HandoffInitiated)
            }
        return self._offers[parent]


def find_ancestors(view: LedgerView, run: Run) -> Iterator[Run]:
    """Yield the parent of a run, its parent, and so on up to the root. Raises `EditedError` if they go in a circle."""
    seen = {run.id}
    while run.parent is not None:
        if run.parent in seen:
            raise EditedError("the run is its own ancestor", stream=run.id, field="parent")
        seen.add(run.parent)
        run = view.get_run(run.parent)
        yield run


def find_calls(receipts: Iterable[Receipt]) -> Iterator[Call]:
    """Yield the tool calls that these receipts of one run tell of, in the order of their requests."""
    calls: dict[CallId, Call] = {}
    for receipt in receipts:
        match receipt.body:
            case ToolRequested() as body:
                calls[body.call] = Call(id=body.call, tool=body.tool, requested_at=receipt.at)
            case ToolCompleted() | ToolFailed() as body if body.call in calls:
                asked = calls[body.call]
                calls[body.call] = Call(
                    id=asked.id,
                    tool=asked.tool,
                    requested_at=asked.requested_at,
                    ended_at=receipt.at,
                    outcome=body.kind,
                    error=body.error if isinstance(body, ToolFailed) else None,
                )
            case ToolCached() as body:
                at, kind = receipt.at, body.kind
                calls[body.call] = Call(id=body.call, tool=body.tool, requested_at=at, ended_at=at, outcome=kind)
            case _:
                continue
    return iter(calls.values())


def _plain(given: str) -> str:
    """Return what was typed without what our own output puts around it."""
    return given.strip().removeprefix("…")


def _endings(view: LedgerView, prefix: str, wanted: str) -> Iterator[str]:
    return view.find_ids(prefix, wanted.lower()) if wanted else iter(())


def _find_runs(view: LedgerView, wanted: str) -> list[Run]:
    if wanted == LAST:
        return list(islice(view.find_runs(), 1))
    named = list(islice(view.find_runs(agent=AgentId(wanted)), _SHOWN + 1))
    ended = [view.get_run(RunId(found)) for found in islice(_endings(view, RUN, wanted), _SHOWN + 1)]
    return [*named, *(run for run in ended if run not in named)]


def _find_handoffs(view: LedgerView, wanted: str) -> list[Handoff]:
    if wanted == LAST:
        return list(islice(view.find_handoffs(), 1))
    ended = [view.get_handoff(HandoffId(found)) for found in islice(_endings(view, HANDOFF, wanted), _SHOWN + 1)]
    if wanted.startswith(f"{HANDOFF}_"):
        return ended
    named = list(islice((known for known in view.find_handoffs() if known.to == wanted), _SHOWN + 1))
    return [*named, *(known for known in ended if known not in named)]


def _find_receipts(view: LedgerView, wanted: str) -> list[StoredReceipt]:
    return [view.get_receipt(ReceiptId(found)) for found in islice(_endings(view, RECEIPT, wanted), _SHOWN + 1)]


def _last_of_agent(view: LedgerView, agent: str) -> list[StoredReceipt]:
    return list(deque(view.find_receipts(ReceiptQuery(agent=AgentId(agent))), _SHOWN + 1))[::-1]


def _run_lines(view: LedgerView, runs: Sequence[Run]) -> list[str]:
    tasks = Tasks(view)
    length = telling_length([run.id for run in runs])
    return [
        f"{ending(run.id, length)} · {run.agent} · {_moment(run.started_at)} · {run.state} · {tasks.first_line(run)}"
        for run in runs
    ]


def _handoff_lines(view: LedgerView, handoffs: Sequence[Handoff]) -> list[str]:
    length = telling_length([handoff.id for handoff in handoffs])
    tasks = [read_task(view, handoff) for handoff in handoffs]
    return [
        f"{ending(handoff.id, length)} · {handoff.to} · {_moment(time_of(handoff.id))} · {handoff.state} · "
        f"{'unknown' if task is None else task.first_line}"
        for handoff, task in zip(handoffs, tasks, strict=True)
    ]


def _receipt_lines(view: LedgerView, receipts: Sequence[StoredReceipt]) -> list[str]:
    length = telling_length([stored.id for stored in receipts])
    return [
        f"{ending(stored.id, length)} · {stored.kind} · {_moment(time_of(stored.id))} · {_owner(view, stored.stream)}"
        for stored in receipts
    ]


def _content_lines(contents: Sequence[str]) -> list[str]:
    length = telling_length(contents)
    return [f"{ending(content, length)} · content · {_moment(time_of(content))}" for content in contents]


def _with_rest(lines: list[str], found: Sequence[object]) -> tuple[str, ...]:
    return (*lines, "… and older ones") if len(found) > _SHOWN else tuple(lines)


def _owner(view: LedgerView, stream: StreamId) -> str:
    try:
        run = view.get_run(RunId(stream))
    except NotFoundError:
        return f"{stream.partition('_')[0]} {ending(stream)}"
    return f"{run.agent} {ending(run.id)}"


def _moment(at: datetime) -> str:
    return at.astimezone().strftime("%Y-%m-%d %H:%M:%S")


def _contents_of(view: LedgerView, meant: str) -> Iterator[ContentId]:
    if meant.startswith(CONTENT):
        yield ContentId(meant)
        return
    if meant.startswith(RECEIPT):
        receipts: Iterable[StoredReceipt] = [view.get_receipt(ReceiptId(meant))]
    else:
        receipts = view.find_receipts(ReceiptQuery(stream=StreamId(meant)))
    for stored in receipts:
        for ref in read_receipt(stored).content.values():
            yield ref.id
