"""Writes the entries of many callers inside one SQLite transaction, by one statement for all rows of a table.

A statement lets go of the interpreter's lock for a few microseconds, and sixty threads want that lock. Asked for row by
row, it changes hands between two rows. So with many appends in flight, the statements of a batch took longer than
everything that SQLite does for them. See docs/adr/0075.

A refusal here does not tell which entry was refused. The caller undoes all of them, and writes each entry by itself, by
`write_entries`; that finds the entry and the reason.
"""

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Final

import apsw

from batonpass.model.base.lifecycle import Carrier, State
from batonpass.model.bodies.body import RelayEnrolled
from batonpass.model.ledger.entry import Entry
from batonpass.model.ledger.projection import NOTHING, Projection
from batonpass.store import rows
from batonpass.store.sqlite import leases
from batonpass.store.sqlite.append import (
    Row,
    content_row,
    handoff_row,
    head_row,
    move_row,
    receipt_row,
    require_mark,
    run_row,
)
from batonpass.store.sqlite.tail import LONGEST, QUERIES, Tail

# Each size is a statement of its own, which SQLite prepares once.
_SIZES: Final = (4, 8, 16, 32, 64)


class RefusedTogetherError(Exception):
    """One of many entries cannot be written."""


class _Repeated(dict[tuple[str, int], str]):
    """Statements by name and number of rows. The line of the row is the one that begins with `(?`."""

    def __missing__(self, key: tuple[str, int]) -> str:
        name, times = key
        lines = [
            ",\n".join([line] * times) if line.lstrip().startswith("(?") else line
            for line in QUERIES[name].splitlines()
        ]
        self[key] = statement = "\n".join(lines)
        return statement


_REPEATED: Final = _Repeated()
_LAST_POSITION: Final = QUERIES["last_position"]


class AppendTogether:
    """Writes the appends of many callers by few statements."""

    def __init__(self, tail: Tail) -> None:
        self._tail = tail

    def can_join(self, entries: Sequence[Entry]) -> bool:
        """Return whether the append of one caller can be written with others: one entry that changes few tables."""
        if len(entries) != 1:
            return False
        entry = entries[0]
        change = entry.change
        plain = change is NOTHING or not (
            change.bumps
            or change.fences
            or change.stated
            or change.erased
            or change.charges
            or change.remarks
            or change.cached
            or change.call_held
            or change.call_decided
            or change.proven_by
            or change.key_added
            or change.key_changed
        )
        # A token is compared with a lease, and a relay that enrols itself has no active key yet.
        special = entry.within or entry.touches or entry.token is not None
        return plain and not special and type(entry.signed.receipt.body) is not RelayEnrolled

    def write(self, entries: Sequence[Entry], connection: apsw.Connection) -> None:
        """Write entries that can join, or raise `RefusedTogetherError` if one of them is refused.

        All or none are to be kept: the caller rolls back.
        """
        tail, cursor = self._tail, connection.cursor()
        try:
            if not tail.known:
                tail.catch_up(cursor)
            _write(tail, entries, connection, cursor)
            if len(tail.ids) >= LONGEST:
                tail.settle(cursor)
        except BaseException as error:
            tail.forget()
            if isinstance(error, apsw.ConstraintError):
                raise RefusedTogetherError(str(error)) from None
            raise
        finally:
            cursor.close(force=True)


def _write(tail: Tail, entries: Sequence[Entry], connection: apsw.Connection, cursor: apsw.Cursor) -> None:
    _require_marks(cursor, tail, entries)
    _take_ids(cursor, tail, entries)
    # In the order in which a single entry is written. What is there already, or is not where it should be, is not
    # changed: then there are fewer changes than rows.
    firsts = [entry for entry in entries if entry.signed.receipt.seq == 1]
    others = [entry for entry in entries if entry.signed.receipt.seq != 1]
    opened = [(*head_row(entry.signed, entry.change), entry.signed.receipt.root) for entry in firsts]
    _change(connection, cursor, "open_streams", opened)
    _change(connection, cursor, "move_streams", [head_row(entry.signed, entry.change) for entry in others])
    _require_premises(cursor, entries)
    ((last,),) = cursor.execute(_LAST_POSITION)
    placed = [*enumerate(entries, last + 1)]
    receipts = [(*receipt_row(entry.signed), position) for position, entry in placed]
    _change(connection, cursor, "add_receipts", receipts)
    contents = [content_row(content, position) for position, entry in placed for content in entry.contents]
    _change(connection, cursor, "add_contents", contents)
    _apply(connection, cursor, [entry.change for entry in entries if entry.change is not NOTHING])


def _require_marks(cursor: apsw.Cursor, tail: Tail, entries: Sequence[Entry]) -> None:
    # Most of them have acknowledged the same few receipts.
    for mark in {entry.after.head: entry.after for entry in entries if entry.after is not None}.values():
        if not tail.has(mark):
            require_mark(cursor, mark)


def _take_ids(cursor: apsw.Cursor, tail: Tail, entries: Sequence[Entry]) -> None:
    for entry in entries:
        free = tail.add_receipt(cursor, entry.signed)
        for content in entry.contents:
            free = free and tail.add_content(cursor, content.ref.id)
        if not free:
            raise RefusedTogetherError(entry.signed.receipt.id)


def _require_premises(cursor: apsw.Cursor, entries: Sequence[Entry]) -> None:
    premises = [entry.premise for entry in entries if entry.premise is not None]
    given: list[Row] = [
        (premise.root, premise.statements, premise.refutations, handoff)
        for premise in premises
        for handoff in premise.untouched or (None,)
    ]
    for part in _in_parts("find_wrong_premises", given):
        if cursor.execute(*part).fetchone() is not None:
            raise RefusedTogetherError("find_wrong_premises")


def _apply(connection: apsw.Connection, cursor: apsw.Cursor, changes: Sequence[Projection]) -> None:
    _change(connection, cursor, "add_runs", [run_row(one.run_opened) for one in changes if one.run_opened is not None])
    ended: list[Row] = [
        (one.run_ended.state, rows.micros(one.run_ended.at), one.run_ended.run)
        for one in changes
        if one.run_ended is not None
    ]
    _change(connection, cursor, "end_runs", ended)
    offered = [one.handoff_opened for one in changes if one.handoff_opened is not None]
    _change(connection, cursor, "add_handoffs", [handoff_row(handoff) for handoff in offered])
    events = [move_row(one.handoff_moved) for one in changes if one.handoff_moved is not None]
    moved = [row for part in _in_parts("move_handoffs", events) for row in cursor.execute(*part)]
    if len(moved) != len(events):
        raise RefusedTogetherError("move_handoffs")
    for handoff in offered:
        if handoff.carrier is Carrier.WORKER and handoff.state is State.READY:
            leases.follow(cursor, handoff.id, handoff.state, handoff.to)
    for identifier, carrier, state, agent in moved:
        if carrier == Carrier.WORKER:
            leases.follow(cursor, identifier, state, agent)


def _in_parts(name: str, given: list[Row]) -> Iterator[tuple[str, Row]]:
    """Yield statements with the values of some rows each, of all rows together."""
    for first in range(0, len(given), _SIZES[-1]):
        some = given[first : first + _SIZES[-1]]
        size = next(size for size in _SIZES if size >= len(some))
        nothing = (None,) * (len(some[0]) * (size - len(some)))
        yield _REPEATED[name, size], (*chain.from_iterable(some), *nothing)


def _change(connection: apsw.Connection, cursor: apsw.Cursor, name: str, given: list[Row]) -> None:
    changed = 0
    for part in _in_parts(name, given):
        cursor.execute(*part)
        changed += connection.changes()
    if changed != len(given):
        raise RefusedTogetherError(name)
