"""Turns entries into the arguments of the append functions in the database, and their refusals into our errors.

The rules of an append are in the database function `batonpass_append`, so that one statement, and one round trip, makes
the compare-and-set and everything that depends on it.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec
import psycopg

from batonpass.errors import (
    BatonpassError,
    BudgetExhaustedError,
    ContentTooLargeError,
    DuplicateReceiptError,
    LeaseLostError,
    NotFoundError,
    OfferedAlreadyError,
    PremiseError,
    StaleHeadError,
    UnknownApproverError,
    UnknownRelayError,
)
from batonpass.model.base.lifecycle import Carrier, HandoffEvent, State, sources, target
from batonpass.model.grants.charge import is_revocation
from batonpass.model.ledger.entry import Entry
from batonpass.model.ledger.projection import HandoffMoved, Projection, enrols_itself
from batonpass.model.ledger.run import Handoff, Run, Stated
from batonpass.store import rows
from batonpass.store.admission import next_state, require_next
from batonpass.store.postgres.arrays import BytesArray, NumberArray, TextArray, TruthArray
from batonpass.store.postgres.connections import QUERIES, STATEMENTS, Connection
from batonpass.store.postgres.failures import is_lost
from batonpass.store.postgres.prepared_statements import NOTHING, Asked, ask, ask_all, in_order

LARGEST_CONTENT: Final = 16 * 1024 * 1024

_APPEND: Final = STATEMENTS["append"]
_APPEND_TOGETHER: Final = STATEMENTS["append_together"]
_REQUIRE_PREMISES: Final = QUERIES["require_premises"]
_APPEND_ON_PREMISES: Final = in_order(_REQUIRE_PREMISES, QUERIES["append"])
_APPEND_TOGETHER_ON_PREMISES: Final = in_order(_REQUIRE_PREMISES, QUERIES["append_together"])
_TRY_APPEND: Final = STATEMENTS["try_append"]
_IMPATIENTLY: Final = STATEMENTS["impatiently"]
_COUNT_WRITTEN: Final = STATEMENTS["count_written"]
# An entry is not suitable for this, a premise does not hold, an id is taken, or a lock is held: then each is tried
# alone.
_GIVEN_UP: Final = frozenset({"BP010", "BP011", "23505", "55P03"})
# The changes that `batonpass_append_together` can make; entries with others are appended one by one.
_PLAIN: Final = frozenset({"run_opened", "run_ended", "handoff_opened", "handoff_moved", "touches", "stated"})
_LARGE: Final = 1024 * 1024
_ENCODE: Final = msgspec.json.Encoder().encode
_TAKEN: Final = re.compile(r"=\((?P<id>[^)]*)\)")

# The table of transitions as the database needs it: the states an event may start from, as an array, and its target.
_STEPS: Final = {
    event: {
        carrier.value: {"sources": f"{{{','.join(sources(event, carrier))}}}", "target": target(event, carrier)}
        for carrier in Carrier
    }
    for event in HandoffEvent
}


_TO_READY: Final = frozenset(event for event in HandoffEvent if target(event, Carrier.WORKER) is State.READY)


def require_fitting(entries: Sequence[Entry]) -> None:
    """Refuse contents that are larger than we keep in a row. Raises `ContentTooLargeError`."""
    for entry in entries:
        for content in entry.contents:
            if len(content.body) > LARGEST_CONTENT:
                raise ContentTooLargeError(len(content.body), LARGEST_CONTENT)


def write(connection: Connection, entries: Sequence[Entry]) -> None:
    """Write entries in one round trip and one commit. Raises an error of the driver, which `refusal` translates."""
    # This lock is taken with the first entry, whichever entry needs it. Taken later, it could wait for a session that
    # already waits for us: a deadlock.
    premises = _premises(entries)
    first = _APPEND_ON_PREMISES if premises else _APPEND
    asked: list[Asked] = [(first, premises | _arguments(entries[0], ends_grants=_ends_grants(entries)))]
    asked += [(_APPEND, _arguments(entry)) for entry in entries[1:]]
    ask_all(connection, asked)


def write_together(connection: Connection, entries: Sequence[Entry]) -> bool:
    """Write entries of different streams with one statement, in one commit; return whether they were written.

    All or none are written. None is if one of them is not suitable for this, or would have to wait for a lock. Raises
    only errors of the driver that are not about the entries.
    """
    given = _together(entries)
    if given is None:
        return False
    try:
        premises = _premises(entries)
        ask(connection, _APPEND_TOGETHER_ON_PREMISES if premises else _APPEND_TOGETHER, premises | given)
    except psycopg.Error as error:
        if error.sqlstate in _GIVEN_UP:
            return False
        raise
    return True


def write_each(connection: Connection, entries: Sequence[Entry]) -> list[bool]:
    """Write independent entries in one commit; return which of them were written."""
    # A premise that does not hold would abort the whole transaction, so an entry with a premise is left to run alone.
    free = [entry for entry in entries if entry.premise is None]
    asked = [(_TRY_APPEND, _arguments(entry)) for entry in free]
    _, *answers = ask_all(connection, [(_IMPATIENTLY, NOTHING), *asked])
    written = {id(entry) for entry, answer in zip(free, answers, strict=True) if answer == [(True,)]}
    return [id(entry) in written for entry in entries]


class Append:
    """One append, repeated until its outcome is known.

    When the connection breaks during an append, the commit may have happened. We ask whether it did. If the entries are
    not there, the same bytes are appended again. This is safe: both are a compare-and-set from the same head, so at
    most one succeeds. The first may even still be running. Then the second waits for it and is refused, and we ask once
    more.
    """

    def __init__(self, entries: Sequence[Entry]) -> None:
        self._entries = entries
        self._refused: BatonpassError | None = None
        self.in_doubt = False

    @property
    def entry(self) -> Entry | None:
        """Return its only entry if it may join a group; None if it must run alone.

        An entry runs alone if it is large, or if other appends must wait for it: it ends a key or a grant.
        """
        if len(self._entries) > 1:
            return None
        entry = self._entries[0]
        large = bool(entry.contents) and sum(len(content.body) for content in entry.contents) > _LARGE
        return None if entry.change.key_changed is not None or large or _ends_grants(self._entries) else entry

    def run(self, connection: Connection) -> None:
        """Append, or learn that it was done. Raises the refusal, or the driver's error: then run it again."""
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
    """Return whether all entries are there with the same bytes, also if their streams have moved on."""
    given = {
        "streams": TextArray([entry.signed.receipt.stream for entry in entries]),
        "seqs": NumberArray([entry.signed.receipt.seq for entry in entries]),
        "payloads": BytesArray([entry.signed.payload for entry in entries]),
    }
    return ask(connection, _COUNT_WRITTEN, given) == [(len(entries),)]


def refusal(error: psycopg.Error, entries: Sequence[Entry]) -> BatonpassError | None:
    """Return the error for an append that the ledger refused; None if it failed for another reason."""
    detail = error.diag.message_detail or ""
    match error.sqlstate:
        case "23505":
            return DuplicateReceiptError(taken["id"] if (taken := _TAKEN.search(detail)) else "an id")
        case "BP001" | "BP002" | "BP003" | "BP004" | "BP005" | "BP006" | "BP007" | "BP008" | "BP009" | "BP011":
            try:
                _refuse(error.sqlstate, json.loads(detail), entries)
            except BatonpassError as refused:
                return refused
    return None


_REFUSALS: Final[Mapping[str, Callable[[Mapping[str, Any]], BatonpassError]]] = {
    "BP002": lambda detail: UnknownRelayError(detail["key"], enrolled=detail["enrolled"]),
    "BP003": lambda detail: StaleHeadError(detail["run"], detail["seq"] + 1),
    "BP005": lambda detail: NotFoundError(detail["what"], detail["id"]),
    "BP007": lambda detail: LeaseLostError(detail["handoff"]),
    "BP008": lambda detail: BudgetExhaustedError(detail["account"], detail["unit"], detail["used"], detail["most"]),
    "BP009": lambda detail: UnknownApproverError(detail["key"]),
    "BP011": lambda detail: PremiseError(detail["root"]),
}


def _refuse(state: str, detail: Mapping[str, Any], entries: Sequence[Entry]) -> None:
    match state:
        case "BP001":
            entry = _named(detail, entries)
            stream = None if detail["stream"] is None else rows.stream(detail["stream"])
            require_next(stream, entry.signed, bumps=entry.change.bumps)
        case "BP004":
            moved = _named(detail, entries).change.handoff_moved
            if moved is not None:
                next_state(rows.handoff(detail["handoff"]), moved)
        case "BP006":
            taken = detail["handoff"]
            raise DuplicateReceiptError(taken) if taken == detail["offered"] else OfferedAlreadyError(taken)
        case _:
            raise _REFUSALS[state](detail)


def _named(detail: Mapping[str, Any], entries: Sequence[Entry]) -> Entry:
    return next(entry for entry in entries if entry.signed.receipt.id == detail["receipt"])


def _ends_grants(entries: Sequence[Entry]) -> bool:
    for entry in entries:
        for charge in entry.change.charges:
            if is_revocation(charge.account):
                return True
    return False


def _arguments(entry: Entry, *, ends_grants: bool = False) -> dict[str, object]:
    signed = entry.signed
    receipt = signed.receipt
    change = entry.change
    contents = entry.contents
    fields = _fields(change, entry)
    if ends_grants:
        fields["ends_grants"] = True
    return {
        "stream": receipt.stream,
        "root": receipt.root,
        "seq": receipt.seq,
        "previous": receipt.previous,
        "head": signed.digest,
        "epoch": receipt.epoch,
        "held_epoch": receipt.epoch - change.bumps,
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
        "change": _ENCODE(fields) if fields else None,
        "enrols_itself": enrols_itself(receipt),
    }


def _premises(entries: Sequence[Entry]) -> dict[str, object]:
    """Return the premises of these entries as arguments; empty if there are none."""
    if len(entries) == 1 and entries[0].premise is None:
        return {}
    premises = [entry.premise for entry in entries if entry.premise is not None]
    if not premises:
        return {}
    return {
        "premised": TextArray([premise.root for premise in premises]),
        "statements": NumberArray([premise.statements for premise in premises]),
        "refutations": NumberArray([premise.refutations for premise in premises]),
        "untouched": TextArray([handoff for premise in premises for handoff in premise.untouched]),
    }


def _together(entries: Sequence[Entry]) -> dict[str, object] | None:
    """Return entries as the arguments of `batonpass_append_together`; None if it cannot write one of them."""
    changed: dict[str, list[object]] = {}
    touches: list[object] = []
    for entry in entries:
        fields = _fields(entry.change, entry)
        if not (fields.keys() <= _PLAIN and _moves_plainly(entry)) or enrols_itself(entry.signed.receipt):
            return None
        for name, value in fields.items():
            changed.setdefault(name, []).extend(value if isinstance(value, list) else (value,))
        touches += [
            {"receipt": entry.signed.receipt.id, "content": touch.content, "path": touch.path}
            for touch in entry.touches
        ]
    if touches:
        changed["touches"] = touches
    signed = [entry.signed for entry in entries]
    receipts = [each.receipt for each in signed]
    contents = [(each.id, content) for each, entry in zip(receipts, entries, strict=True) for content in entry.contents]
    return {
        "streams": TextArray([each.stream for each in receipts]),
        "roots": TextArray([each.root for each in receipts]),
        "seqs": NumberArray([each.seq for each in receipts]),
        "previous": TextArray([each.previous for each in receipts]),
        "heads": TextArray([each.digest for each in signed]),
        "epochs": NumberArray([each.epoch for each in receipts]),
        "held_epochs": NumberArray([entry.signed.receipt.epoch - entry.change.bumps for entry in entries]),
        "stay_open": TruthArray([not entry.change.closes for entry in entries]),
        "ids": TextArray([each.id for each in receipts]),
        "kinds": TextArray([each.kind for each in receipts]),
        "payloads": BytesArray([each.payload for each in signed]),
        "relay_signatures": BytesArray([each.relay_signature for each in signed]),
        "cosignatures": BytesArray([each.cosignature for each in signed]),
        "recorded_by": TextArray([each.relay_key for each in receipts]),
        "content_receipts": TextArray([receipt for receipt, _ in contents]),
        "content_ids": TextArray([content.ref.id for _, content in contents]),
        "content_salts": BytesArray([content.salt for _, content in contents]),
        "content_bodies": BytesArray([content.body for _, content in contents]),
        "change": _ENCODE(changed) if changed else None,
    }


def _moves_plainly(entry: Entry) -> bool:
    """Return whether a move leaves the handoff without a lease, or running under the lease whose token is shown."""
    moved = entry.change.handoff_moved
    if moved is None:
        return True
    return moved.event is HandoffEvent.ACCEPT if entry.token is not None else moved.event not in _TO_READY


def _fields(change: Projection, entry: Entry) -> dict[str, object]:
    """Return the changes of an entry to rows other than its receipt and its stream."""
    fields: dict[str, object] = {}
    if (fenced := change.fences) is not None:
        fields["fences"] = {"run": fenced.run, "seq": fenced.seq, "head": fenced.head}
    if change.run_opened is not None:
        fields["run_opened"] = _run_row(change.run_opened)
    if (ended := change.run_ended) is not None:
        fields["run_ended"] = {"run": ended.run, "state": ended.state, "at": rows.micros(ended.at)}
    if change.handoff_opened is not None:
        fields["handoff_opened"] = _handoff_row(change.handoff_opened)
    if change.handoff_moved is not None:
        fields["handoff_moved"] = _move(change.handoff_moved, entry.token)
    if change.charges:
        fields["charges"] = [_named_row(charge, "account", "unit", "amount") for charge in change.charges]
    if entry.within:
        fields["within"] = [_named_row(limit, "account", "unit", "most") for limit in entry.within]
    if entry.touches:
        fields["touches"] = [_named_row(touch, "content", "path") for touch in entry.touches]
    fields.update(_rarely(change))
    return fields


def _rarely(change: Projection) -> Iterator[tuple[str, object]]:
    """Yield the changes that few receipts make."""
    if change.stated:
        yield "stated", [_statement_row(stated) for stated in change.stated]
    if change.key_added is not None:
        yield "key_added", _named_row(change.key_added, "id", "role", "public_key", "relay", "status", "principal")
    if change.key_changed is not None:
        yield "key_changed", _named_row(change.key_changed, "key", "status")
    if change.erased:
        yield "erased", change.erased
    if (cached := change.cached) is not None:
        yield "cached", _named_row(cached, "call", "key", "receipt") | {"until": rows.micros(cached.until)}
    if change.call_held is not None:
        yield "call_held", _named_row(change.call_held, "call", "run", "receipt")
    if change.call_decided is not None:
        yield "call_decided", _named_row(change.call_decided, "call", "run", "receipt", "approved")
    if change.remarks:
        yield "remarks", [_named_row(remark, "said", "name", "receipt") for remark in change.remarks]
    if change.proven_by is not None:
        yield "proven_by", change.proven_by


def _named_row(value: object, *columns: str) -> dict[str, object]:
    return {column: getattr(value, column) for column in columns}


def _run_row(run: Run) -> dict[str, object]:
    return {
        "id": run.id,
        "root": run.root,
        "parent": run.parent,
        "handoff": run.handoff,
        "attempt": run.attempt,
        "agent": run.agent,
        "principal": run.principal,
        "state": run.state,
        "started_at": rows.micros(run.started_at),
        "ended_at": None if run.ended_at is None else rows.micros(run.ended_at),
        "series": run.series,
        "session": run.session,
    }


def _handoff_row(handoff: Handoff) -> dict[str, object]:
    return {
        "id": handoff.id,
        "root": handoff.root,
        "parent": handoff.parent,
        "agent": handoff.to,
        "carrier": handoff.carrier,
        "state": handoff.state,
        "attempt": handoff.attempt,
        "run": handoff.run,
        "initiated": handoff.initiated,
        "seq": handoff.seq,
        "scope": handoff.scope,
        "key": handoff.key,
        "deadline": None if handoff.deadline is None else rows.micros(handoff.deadline),
    }


def _statement_row(stated: Stated) -> dict[str, object]:
    return _named_row(stated, "item", "root", "digest") | {"author": stated.by, "at": rows.micros(stated.at)}


def _move(moved: HandoffMoved, token: int | None) -> dict[str, object]:
    held = None if moved.attempt is None else moved.attempt - (moved.event is HandoffEvent.ACCEPT)
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
