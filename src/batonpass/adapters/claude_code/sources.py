"""Where imported receipts say what they come from, and how that is found again: importing twice adds nothing."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from itertools import islice
from typing import Any, Final
from uuid import UUID

import msgspec

from batonpass.adapters.claude_code.records import ToolResult, ToolUse
from batonpass.model.ids import SESSION, ContentId, RunId, SessionId, StreamId
from batonpass.model.receipt import Receipt
from batonpass.store.port import LedgerView, ReceiptQuery
from batonpass.wire.codec import decode_receipt

SOURCE: Final = "source"
PROGRAM: Final = "claude-code"

_ALPHABET: Final = "0123456789abcdefghjkmnpqrstvwxyz"
_AT_ONCE: Final = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What a ledger already holds of a session."""

    roots: tuple[RunId, ...]  # the latest first
    sizes: Mapping[str, int] | None  # of its files, when it was last imported to the end; None if it never was


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """Which lines of a session a ledger holds, and whether some were erased since."""

    keys: frozenset[str]
    erased: bool


def series_of(session: str) -> str:
    """Return the name under which the roots of one session follow each other."""
    return f"{PROGRAM}.{sha256(session.encode()).hexdigest()[:24]}"


def session_id_of(session: str) -> SessionId | None:
    """Return the id of a session as receipts carry it: its UUID in our spelling; None if it is none."""
    try:
        number = UUID(session).int
    except ValueError:
        return None
    return SessionId(f"{SESSION}_{''.join(_ALPHABET[number >> shift & 31] for shift in range(125, -1, -5))}")


def key_of(found: ToolUse | ToolResult) -> str:
    """Return what names a call or its result: one line may hold several."""
    return f"{found.uuid}/{found.tool_use_id}"


def describe_source(session: str, version: str | None, **facts: object) -> bytes:
    """Return what an imported receipt says about where it comes from. Nobody signed it there."""
    known = {name: _plain(value) for name, value in facts.items() if value is not None}
    document = {
        "source": PROGRAM,
        "version": version,
        "session": session,
        "imported": True,
        "unsigned": True,
        **known,
    }
    return msgspec.json.encode(document, order="sorted")


def find_known(view: LedgerView, session: str) -> Known | None:
    """Return what a ledger holds of a session; None if nothing."""
    roots = tuple(run.id for run in view.find_runs(series=series_of(session)))
    if not roots:
        return None
    for root in roots:
        stream = view.get_stream(StreamId(root))
        last = decode_receipt(view.get_receipt_at(stream.id, stream.seq).payload)
        for document in _documents(view, [last]):
            if document is not None and isinstance(document.get("sizes"), dict):
                return Known(roots=roots, sizes=document["sizes"])
    return Known(roots=roots, sizes=None)


def read_imported(view: LedgerView, roots: Sequence[RunId]) -> Held:
    """Return which lines the trees of these roots hold."""
    keys: set[str] = set()
    erased = False
    for root in roots:
        receipts = (decode_receipt(stored.payload) for stored in view.find_receipts(ReceiptQuery(root=root)))
        while batch := list(islice(receipts, _AT_ONCE)):
            for document in _documents(view, batch):
                if document is None:
                    erased = True
                elif isinstance(key := document.get("key"), str):
                    keys.add(key)
    return Held(keys=frozenset(keys), erased=erased)


def _documents(view: LedgerView, receipts: Sequence[Receipt]) -> Iterator[dict[str, Any] | None]:
    """Yield the sources of receipts; None for one that was erased."""
    wanted: list[ContentId] = [ref.id for receipt in receipts if (ref := receipt.content.get(SOURCE)) is not None]
    for stored in view.find_contents(wanted):
        if stored.body is None:
            yield None
            continue
        try:
            document = msgspec.json.decode(stored.body)
        except msgspec.DecodeError:
            continue
        if isinstance(document, dict):
            yield document


def _plain(value: object) -> object:
    return value.isoformat().replace("+00:00", "Z") if isinstance(value, datetime) else value
