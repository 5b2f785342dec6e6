"""An entry as the arguments of `batonpass_append`, and what its refusals mean."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final, LiteralString

import psycopg
from psycopg.types.numeric import Int8

from batonpass.errors import (
    BatonpassError,
    BudgetExhaustedError,
    ContentTooLargeError,
    DuplicateReceiptError,
    LeaseLostError,
    NotFoundError,
    OfferedAlreadyError,
    StaleHeadError,
    UnknownApproverError,
    UnknownRelayError,
)
from batonpass.model.charge import is_revocation
from batonpass.model.entry import Entry
from batonpass.model.lifecycle import Carrier, Event, sources, target
from batonpass.model.projection import HandoffMoved, Projection, enrols_itself
from batonpass.model.run import Cached, Handoff, Run, Stated
from batonpass.store import rows
from batonpass.store.admission import next_state, require_next
from batonpass.store.postgres.arrays import BytesArray, TextArray
from batonpass.store.postgres.connections import QUERIES, Connection
from batonpass.store.postgres.failures import is_lost

LARGEST_CONTENT: Final = 16 * 1024 * 1024

_APPEND: Final = QUERIES["append"]
_ADD_CACHED: Final = QUERIES["add_cached"]
_ADD_HELD_CALL: Final = QUERIES["add_held_call"]
_ADD_DECIDED_CALL: Final = QUERIES["add_decided_call"]
_ADD_REMARK: Final = QUERIES["add_remark"]
_REQUIRE_APPROVER: Final = QUERIES["require_approver"]
_LOCK_RECEIPTS: Final = QUERIES["lock_receipts"]
_COUNT_WRITTEN: Final = QUERIES["count_written"]
_TAKEN: Final = re.compile(r"=\((?P<id>[^)]*)\)")

# The table of transitions as the database needs it: from where an event may come, and where it leads.
_STEPS: Final = {
    event: {
        carrier.value: {"sources": sources(event, carrier), "target": target(event, carrier)} for carrier in Carrier
    }
    for event in Event
}


def require_fitting(entries: Sequence[Entry]) -> None:
    """Refuse content that is larger than we keep in a row. Raises `ContentTooLargeError`."""
    for entry in entries:
        for content in entry.contents:
            if len(content.body) > LARGEST_CONTENT:
                raise ContentTooLargeError(len(content.body), LARGEST_CONTENT)


def write(connection: Connection, entries: Sequence[Entry]) -> None:
    """Write entries in one commit. Raises an error of the driver; `refusal` says what it means."""
    ends_grants = any(is_revocation(charge.account) for entry in entries for charge in entry.change.charges)
    if len(entries) == 1 and not ends_grants and not any(_beside(entries[0].change)):
        connection.execute(_APPEND, _arguments(entries[0]), prepare=True)
        return
    # A pipeline sends all without waiting for answers, the commit too: after a refusal the server skips the rest.
    with connection.pipeline(), connection.transaction():
        if ends_grants:
            # As for a key that is revoked: calls that are under way commit first and get lower numbers, and those that
            # come later wait here and then see it. So no call stands behind a revocation that it did not see.
            connection.execute(_LOCK_RECEIPTS)
        for entry in entries:
            connection.execute(_APPEND, _arguments(entry), prepare=True)
            for query, row in _beside(entry.change):
                connection.execute(query, row, prepare=True)


def _beside(change: Projection) -> Iterator[tuple[LiteralString, dict[str, object]]]:
    """Yield what is written besides what the function writes, in the same transaction."""
    if change.cached is not None:
        yield _ADD_CACHED, _cached_row(change.cached)
    if change.call_held is not None:
        yield _ADD_HELD_CALL, asdict(change.call_held)
    if change.call_decided is not None:
        yield _ADD_DECIDED_CALL, asdict(change.call_decided)
    for remark in change.remarks:
        yield _ADD_REMARK, asdict(remark)
    if change.proven_by is not None:
        yield _REQUIRE_APPROVER, {"key": change.proven_by}


class Append:
    """One append, from the first try until it is known what became of it.

    When the connection breaks under an append, the commit may have happened. We ask; if nothing is there, the same
    bytes are appended again, which is safe: both are a compare-and-set from the same head, so at most one succeeds.
    The first may even still be under way. Then the second waits for it, is refused, and we ask once more.
    """

    def __init__(self, entries: Sequence[Entry]) -> None:
        self._entries = entries
        self._refused: BatonpassError | None = None
        self.in_doubt = False

    def run(self, connection: Connection) -> None:
        """Append, or learn that it was done. Raises why it was refused, or the driver's error: then run it again."""
        try:
            if self.in_doubt and is_written(connection, self._entries):
                return
            if self._refused is not None:
                raise self._refused
            write(connection, self._entries)
        except psycopg.Error as error:
            refused = refusal(error, self._entries)
            if refused is None:
                self.in_doubt = self.in_doubt or is_lost(error, connection)
                raise
            if not self.in_doubt:
                raise refused from None
            self._refused = refused
            self.run(connection)


def is_written(connection: Connection, entries: Sequence[Entry]) -> bool:
    """Return whether all entries are there with the same bytes, wherever their streams have gone since."""
    given = {
        "streams": TextArray([entry.signed.receipt.stream for entry in entries]),
        "seqs": [Int8(entry.signed.receipt.seq) for entry in entries],
        "payloads": BytesArray([entry.signed.payload for entry in entries]),
    }
    row = connection.execute(_COUNT_WRITTEN, given).fetchone()
    return row is not None and row[0] == len(entries)


def refusal(error: psycopg.Error, entries: Sequence[Entry]) -> BatonpassError | None:
    """Return why an append was refused; None if it was not the ledger that refused it."""
    detail = error.diag.message_detail or ""
    match error.sqlstate:
        case "23505":
            return DuplicateReceiptError(taken["id"] if (taken := _TAKEN.search(detail)) else "an id")
        case "BP001" | "BP002" | "BP003" | "BP004" | "BP005" | "BP006" | "BP007" | "BP008" | "BP009":
            try:
                _refuse(error.sqlstate, json.loads(detail), entries)
            except BatonpassError as refused:
                return refused
    return None


def _refuse(state: str, detail: Mapping[str, Any], entries: Sequence[Entry]) -> None:
    match state:
        case "BP001":
            entry = _named(detail, entries)
            stream = None if detail["stream"] is None else rows.stream(detail["stream"])
            require_next(stream, entry.signed, bumps=entry.change.bumps)
        case "BP002":
            raise UnknownRelayError(detail["key"], enrolled=detail["enrolled"])
        case "BP003":
            raise StaleHeadError(detail["run"], detail["seq"] + 1)
        case "BP004":
            moved = _named(detail, entries).change.handoff_moved
            if moved is not None:
                next_state(rows.handoff(detail["handoff"]), moved)
        case "BP006":
            taken = detail["handoff"]
            raise DuplicateReceiptError(taken) if taken == detail["offered"] else OfferedAlreadyError(taken)
        case "BP007":
            raise LeaseLostError(detail["handoff"])
        case "BP008":
            raise BudgetExhaustedError(detail["account"], detail["unit"], detail["used"], detail["most"])
        case "BP009":
            raise UnknownApproverError(detail["key"])
        case _:
            raise NotFoundError(detail["what"], detail["id"])


def _named(detail: Mapping[str, Any], entries: Sequence[Entry]) -> Entry:
    return next(entry for entry in entries if entry.signed.receipt.id == detail["receipt"])


def _arguments(entry: Entry) -> dict[str, object]:
    signed = entry.signed
    receipt = signed.receipt
    change = entry.change
    contents = entry.contents
    return {
        "stream": receipt.stream,
        "root": receipt.root,
        "seq": Int8(receipt.seq),
        "previous": receipt.previous,
        "head": signed.digest,
        "epoch": Int8(receipt.epoch),
        "held_epoch": Int8(receipt.epoch - change.bumps),
        "stays_open": not change.closes,
        "id": receipt.id,
        "kind": receipt.kind,
        "payload": signed.payload,
        "relay_signature": signed.relay_signature,
        "cosignature": signed.cosignature,
        "recorded_by": receipt.relay_key,
        "content_ids": TextArray([content.ref.id for content in contents]) if contents else None,
        "content_salts": BytesArray([content.salt for content in contents]) if contents else None,
        "content_bodies": BytesArray([content.body for content in contents]) if contents else None,
        "change": json.dumps(fields) if (fields := dict(_fields(change, entry.token)) | _besides(entry)) else None,
        "enrols_itself": enrols_itself(receipt),
    }


def _besides(entry: Entry) -> dict[str, object]:
    """Return the lists of rows that come with an entry."""
    given: dict[str, tuple[Any, ...]] = {
        "touches": entry.touches,
        "charges": entry.change.charges,
        "within": entry.within,
    }
    return {name: [asdict(one) for one in rows_] for name, rows_ in given.items() if rows_}


def _fields(change: Projection, token: int | None) -> Iterator[tuple[str, object]]:
    """Yield the parts of a projection that change another row than the receipt's own stream."""
    if (fenced := change.fences) is not None:
        yield "fences", {"run": fenced.run, "seq": fenced.seq, "head": fenced.head}
    if change.run_opened is not None:
        yield "run_opened", _run_row(change.run_opened)
    if (ended := change.run_ended) is not None:
        yield "run_ended", {"run": ended.run, "state": ended.state, "at": rows.micros(ended.at)}
    if change.handoff_opened is not None:
        yield "handoff_opened", _handoff_row(change.handoff_opened)
    if change.handoff_moved is not None:
        yield "handoff_moved", _move(change.handoff_moved, token)
    if change.stated:
        yield "stated", [_statement_row(stated) for stated in change.stated]
    if change.key_added is not None:
        yield "key_added", asdict(change.key_added)
    if change.key_changed is not None:
        yield "key_changed", asdict(change.key_changed)
    if change.erased:
        yield "erased", change.erased


def _run_row(run: Run) -> dict[str, object]:
    return asdict(run) | {
        "started_at": rows.micros(run.started_at),
        "ended_at": None if run.ended_at is None else rows.micros(run.ended_at),
    }


def _handoff_row(handoff: Handoff) -> dict[str, object]:
    row = asdict(handoff)
    deadline = None if handoff.deadline is None else rows.micros(handoff.deadline)
    return row | {"agent": row.pop("to"), "deadline": deadline}


def _statement_row(stated: Stated) -> dict[str, object]:
    row = asdict(stated)
    return row | {"author": row.pop("by"), "at": rows.micros(stated.at)}


def _cached_row(cached: Cached) -> dict[str, object]:
    return asdict(cached) | {"until": Int8(rows.micros(cached.until))}


def _move(moved: HandoffMoved, token: int | None) -> dict[str, object]:
    held = None if moved.attempt is None else moved.attempt - (moved.event is Event.ACCEPT)
    begun: dict[str, object] = {"attempt": moved.attempt, "run": moved.run} if moved.run is not None else {}
    shown = {} if token is None else {"token": token}
    if moved.anchor is not None:
        begun["anchor"] = moved.anchor
    return {
        "handoff": moved.handoff,
        "held_attempt": held,
        "ends": moved.ends,
        "to": moved.to,
        **begun,
        **shown,
        **_STEPS[moved.event],
    }
