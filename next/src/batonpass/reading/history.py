"""What runs did, folded from their receipts: calls that finished, calls in doubt, children, items.

The same fold serves a run that is reopened, the next attempt at a handoff, and everything that shows them: so nobody
can disagree about what is in doubt.
"""

from collections.abc import Iterable, Mapping

from msgspec import Struct, field, json

from batonpass.model.bodies import (
    HandoffInitiated,
    HandoffRetried,
    RunRecorded,
    ToolCompleted,
    ToolEnded,
    ToolFailed,
    ToolRequested,
    ToolSettled,
)
from batonpass.model.items import AnyItem, Report
from batonpass.model.receipt import Signed
from batonpass.model.rows import HandoffRow
from batonpass.model.values import Hunk, Settlement
from batonpass.store.port import Store
from batonpass.wire.contents import unpack

NULL: bytes = b"null"
_decode_items = json.Decoder(tuple[AnyItem, ...]).decode
_decode_report = json.Decoder(Report).decode
_decode_hunks = json.Decoder(tuple[Hunk, ...]).decode


class DoubtfulCall(Struct, frozen=True, kw_only=True):
    """A call that was requested, and nobody knows whether it was made, or with which result."""

    call: str
    key: str
    tool: str
    target: str
    run: str


class History(Struct, kw_only=True):
    """What a run, and the attempts before it, did."""

    finished: dict[str, bytes] = field(default_factory=dict)  # results, by the key of the call
    in_doubt: dict[str, DoubtfulCall] = field(default_factory=dict)  # by the key of the call
    children: dict[str, None] = field(default_factory=dict)  # handoffs, in their order
    items: tuple[AnyItem, ...] = ()
    earlier: frozenset[str] = frozenset()  # keys that attempts before this one finished


def read_part(signed: Signed, part: str) -> bytes | None:
    """Return a content; None if the receipt has none, or it was erased."""
    return unpack(signed.contents, signed.receipt.content).get(part)


def find_text(signed: Signed, part: str) -> str | None:
    """Return a content as text; None if the receipt has none, or it was erased."""
    data = read_part(signed, part)
    return None if data is None else data.decode("utf-8", "replace")


def read_text(signed: Signed, part: str, default: str = "") -> str:
    """Return a content as text; `default` if there is none."""
    text = find_text(signed, part)
    return default if text is None else text


def read_report(signed: Signed) -> Report | None:
    """Return the report that a run ended with."""
    data = read_part(signed, "report")
    return None if data is None else _decode_report(data)


def read_hunks(signed: Signed) -> tuple[Hunk, ...] | None:
    """Return what a call changed; None if it was no text, too large, or was erased."""
    data = read_part(signed, "hunks")
    return None if data is None else _decode_hunks(data)


def read_items(signed: Signed) -> tuple[AnyItem, ...]:
    """Return the items that a receipt recorded."""
    data = read_part(signed, "items")
    return () if data is None else _decode_items(data)


def attempts_at(row: HandoffRow, acts: Iterable[Signed]) -> list[str]:
    """Return the runs of a handoff, the first attempt first. `acts` is its own stream."""
    runs = [act.body.ended_run.run for act in acts if isinstance(act.body, HandoffRetried)]
    if row.run is not None and row.run not in runs:
        runs.append(row.run)
    return runs


def settlements(acts: Iterable[Signed]) -> dict[str, Settlement]:
    """Return what people decided about calls in doubt, by call."""
    return {act.body.call: act.body.settlement for act in acts if isinstance(act.body, ToolSettled)}


def read_attempts(store: Store, row: HandoffRow, *, before: str | None = None) -> History:
    """Return what all attempts at a handoff did; of those before one, if it is named."""
    acts = store.receipts(row.id)
    history, settled = History(), settlements(acts)
    for run in attempts_at(row, acts):
        if run == before:
            break
        fold(history, store.receipts(run), settled)
    return history


def read_run(store: Store, run: str, row: HandoffRow | None) -> History:
    """Return what a run did, and, if it is an attempt, what those before it had done."""
    own = store.receipts(run)
    if row is None:
        history = History()
        fold(history, own, settlements(own))
        return history
    history = read_attempts(store, row, before=run)
    history.earlier, history.items = frozenset(history.finished), ()
    fold(history, own, settlements(store.receipts(row.id)))
    return history


def fold(history: History, receipts: Iterable[Signed], settled: Mapping[str, Settlement]) -> None:
    """Add what a run did to a history."""
    keys: dict[str, str] = {}
    for signed in receipts:
        body = signed.body
        if isinstance(body, ToolRequested):
            keys[body.call] = body.key
            _fold_request(history, signed, body, settled.get(body.call))
        elif isinstance(body, ToolEnded):
            _fold_outcome(history, signed, body, keys[body.call])
        elif isinstance(body, HandoffInitiated):
            history.children[body.handoff] = None
        elif isinstance(body, RunRecorded) and body.subject == "items":
            history.items += read_items(signed)


def _fold_request(history: History, signed: Signed, body: ToolRequested, how: Settlement | None) -> None:
    if how == "skip":
        history.finished.setdefault(body.key, NULL)
        history.in_doubt.pop(body.key, None)
    elif how is None:
        target = read_text(signed, "target")
        doubtful = DoubtfulCall(call=body.call, key=body.key, tool=body.tool, target=target, run=signed.stream)
        history.in_doubt[body.key] = doubtful
    else:
        history.in_doubt.pop(body.key, None)


def _fold_outcome(history: History, signed: Signed, body: ToolEnded, key: str) -> None:
    if isinstance(body, ToolFailed):
        history.in_doubt.pop(key, None)
    elif isinstance(body, ToolCompleted):
        result = read_part(signed, "result")
        # Without one it was made, and its result is gone: a person decides. With one it was first, also where another
        # process decided at the same moment: after a decision no outcome is written.
        if result is not None:
            history.in_doubt.pop(key, None)
            history.finished[key] = result
