"""The reference store: plain dictionaries behind one lock.

It is the simplest code that fulfils the contract in `batonpass.store.port`. Where another store behaves differently,
the other store is wrong.
"""

import secrets
import threading
import time
from collections import ChainMap
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta

from msgspec.structs import replace

from batonpass.errors import LeaseLostError, StaleHeadError, UnknownRelayError
from batonpass.model.base.ids import AgentId, HandoffId, KeyId, StreamId
from batonpass.model.base.lifecycle import State
from batonpass.model.grants.charge import name_of
from batonpass.model.ledger.content import Place, StoredContent
from batonpass.model.ledger.entry import Entry
from batonpass.model.ledger.key import Key, KeyRole, KeyStatus
from batonpass.model.ledger.lease import Lease
from batonpass.model.ledger.projection import enrols_itself, root_key
from batonpass.model.ledger.receipt import StoredReceipt
from batonpass.model.ledger.remark import RemarkKind
from batonpass.model.ledger.rollup import RolledDay, RolledHandoff, RollupMark
from batonpass.model.ledger.seal import Seal
from batonpass.model.ledger.stream import Mark
from batonpass.store.admission import is_there, require_kept, require_next, require_premise, require_within
from batonpass.store.derived_rows import Derived, add_new
from batonpass.store.memory_view import MAPS, MemoryView, Tables, copied, now
from batonpass.store.migrate import AppliedMigration
from batonpass.store.port import LedgerInfo, LedgerView, Touched, Wake
from batonpass.store.process import OwnProcess
from batonpass.wire.canonical import digest


class _Transaction:
    """Collects changes in dictionaries before the real ones, so that a refused batch leaves nothing behind."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._new = Tables(None, [], *(ChainMap({}, getattr(tables, name)) for name in MAPS))
        self._derived = Derived(
            self._new.streams,
            self._new.runs,
            self._new.handoffs,
            self._new.keys,
            self._new.stated,
            self._new.offers,
            self._new.cached,
            self._new.charged,
            self._new.held_calls,
            self._new.decided_calls,
            self._new.remarks,
        )

    def commit(self) -> None:
        self._tables.receipts.extend(self._new.receipts)
        for name in MAPS:
            getattr(self._tables, name).update(getattr(self._new, name).maps[0])

    def add_key(self, key: Key) -> None:
        self._new.keys[key.id] = key

    def apply(self, entry: Entry) -> None:
        if entry.after is not None:
            self._require_kept(entry.after)
        signed = entry.signed
        receipt = signed.receipt
        change = entry.change
        stream = self._new.streams.get(receipt.stream)
        if is_there(stream, signed):
            return
        if not enrols_itself(receipt):
            self._require_active(receipt.relay_key)
        require_next(stream, signed, bumps=change.bumps)
        if (premise := entry.premise) is not None:
            said = sum(stated.root == premise.root for stated in self._new.stated.values())
            refuted = sum(
                remark.said is RemarkKind.REFUTED and remark.name == premise.root
                for remark in self._new.remarks.values()
            )
            touched = any(StreamId(handoff) in self._new.streams for handoff in premise.untouched)
            require_premise(premise, said, refuted, touched=touched)
        self._write(entry)
        self._derived.fold(receipt, signed.digest, change)
        for limit in entry.within:
            charged = self._new.charged.get(name_of(limit.account, limit.unit))
            require_within(0 if charged is None else charged.used, limit)
        if change.handoff_moved is not None:
            self._lease(change.handoff_moved.handoff, entry.token)
        for content in self._new.contents.keys() & set(change.erased):
            self._new.contents[content] = replace(
                self._new.contents[content],
                place=Place.ERASED,
                salt=None,
                body=None,
            )
        for content in self._new.touches.keys() & set(change.erased):
            self._new.touches[content] = None

    def _require_kept(self, mark: Mark) -> None:
        stream = self._new.streams.get(mark.stream)
        if stream is not None and stream.seq == mark.seq:
            require_kept(mark, stream, stream.head)
            return
        # Search from the end: the acknowledged receipt is among the last, if it is there at all.
        there = (each for each in reversed(self._tables.receipts) if each.stream == mark.stream)
        found = next((each for each in there if each.seq == mark.seq), None)
        require_kept(mark, stream, None if found is None else digest(found.payload))

    def _lease(self, handoff: HandoffId, token: int | None) -> None:
        """Require the lease whose token was shown, and end it unless the handoff runs. Raises `LeaseLostError`."""
        lease = self._new.leases.get(handoff)
        if token is not None and (lease is None or lease.token != token):
            raise LeaseLostError(handoff)
        if lease is not None and self._new.handoffs[handoff].state is not State.RUNNING:
            self._new.leases[handoff] = None

    def _require_active(self, relay_key: KeyId) -> None:
        key = self._new.keys.get(relay_key)
        if key is None or key.role is not KeyRole.RELAY or key.status is not KeyStatus.ACTIVE:
            raise UnknownRelayError(relay_key, enrolled=key is not None)

    def _write(self, entry: Entry) -> None:
        signed = entry.signed
        receipt = signed.receipt
        position = len(self._tables.receipts) + len(self._new.receipts) + 1
        add_new(self._new.numbers, receipt.id, position)
        self._new.receipts.append(
            StoredReceipt.of(signed, position),
        )
        for content in entry.contents:
            stored = StoredContent(
                id=content.ref.id,
                receipt=receipt.id,
                place=Place.ROW,
                salt=content.salt,
                body=content.body,
            )
            add_new(self._new.contents, stored.id, stored)
        for touch in entry.touches:
            touched = Touched(path=touch.path, receipt=receipt.id, content=touch.content)
            add_new(self._new.touches, touch.content, touched)


class MemoryStore:
    """Keeps a ledger for as long as the process lives."""

    url = "memory:"
    confirm_every: float | None = None

    def __init__(self) -> None:
        self._process = OwnProcess()
        self._lock = threading.Lock()
        self._tables = Tables()
        self._postponed: dict[HandoffId, float] = {}  # by `time.monotonic`

    def __repr__(self) -> str:
        return "<MemoryStore>"

    def founded(self) -> bool:
        """Return whether somebody has founded this ledger."""
        self._process.require()
        return self._tables.info is not None

    def found(self, info: LedgerInfo, first: Entry) -> LedgerInfo:
        """Make this empty store the ledger `info` with its first receipt, and return its identity."""
        self._process.require()
        with self._lock:
            if self._tables.info is None:
                transaction = _Transaction(self._tables)
                transaction.add_key(root_key(info.root_key))
                transaction.apply(first)
                transaction.commit()
                self._tables.info = info
            return self._tables.info

    @contextmanager
    def view(self, about: HandoffId | None = None) -> Iterator[LedgerView]:  # noqa: ARG002 - nothing to fetch in advance
        """Open a view of the ledger as it is now."""
        self._process.require()
        with self._lock:
            tables = copied(self._tables)
        yield MemoryView(tables)

    def append(self, entries: Sequence[Entry]) -> None:
        """Write all entries in one commit, or none."""
        self._process.require()
        with self._lock:
            transaction = _Transaction(self._tables)
            for entry in entries:
                transaction.apply(entry)
            transaction.commit()

    def claim(self, *, holder: str, lease_for: timedelta, agents: Collection[AgentId] | None = None) -> Lease | None:
        """Claim the oldest ready handoff to one of these agents."""
        self._process.require()
        with self._lock:
            for identifier, handoff in self._tables.handoffs.items():  # in the order in which they were written
                free = handoff.state is State.READY and self._tables.leases.get(identifier) is None
                free = free and self._postponed.get(identifier, 0.0) <= time.monotonic()
                if free and (agents is None or handoff.to in agents):
                    return self._hold(identifier, holder, lease_for)
        return None

    def renew(self, lease: Lease, lease_for: timedelta) -> Lease:
        """Extend a lease, counted from now. Raises `LeaseLostError`."""
        self._process.require()
        with self._lock:
            held = self._tables.leases.get(lease.handoff)
            if held is None or held.token != lease.token:
                raise LeaseLostError(lease.handoff)
            renewed = replace(held, until=now() + lease_for)
            self._tables.leases[lease.handoff] = renewed
        return renewed

    def release(self, lease: Lease) -> None:
        """Give a lease back."""
        self._process.require()
        with self._lock:
            held = self._tables.leases.get(lease.handoff)
            if held is not None and held.token == lease.token:
                self._tables.leases[lease.handoff] = None

    def seize(self, *, holder: str, lease_for: timedelta) -> Lease | None:
        """Take over one lease whose time has run out."""
        self._process.require()
        with self._lock:
            for identifier, lease in sorted(self._tables.leases.items()):
                if lease is not None and lease.until <= now():
                    return self._hold(identifier, holder, lease_for)
        return None

    def postpone(self, handoff: HandoffId, lasts: timedelta) -> None:
        """Let nobody claim a handoff for a while."""
        self._process.require()
        now = time.monotonic()
        with self._lock:
            self._postponed = {known: until for known, until in self._postponed.items() if until > now}
            self._postponed[handoff] = now + lasts.total_seconds()

    def _hold(self, handoff: HandoffId, holder: str, lease_for: timedelta) -> Lease:
        lease = Lease(handoff=handoff, holder=holder, token=secrets.randbits(53), until=now() + lease_for)
        self._tables.leases[handoff] = lease
        return lease

    def await_work(self, agents: Collection[AgentId], *, at_most: timedelta, stop: threading.Event) -> Wake:  # noqa: ARG002 - no notifications
        """Return at once: this store has no notifications, so the caller looks again after a while."""
        return Wake.UNTOLD

    def sequence(self) -> int:
        """Return 0: every receipt gets its position when it is written."""
        self._process.require()
        return 0

    def add_seal(self, seal: Seal) -> None:
        """Keep a seal."""
        self._process.require()
        with self._lock:
            taken = {kept.previous for kept in self._tables.seals.values()}
            if seal.size not in self._tables.seals and seal.previous in taken:
                raise StaleHeadError("seals", seal.size)
            self._tables.seals.setdefault(seal.size, seal)

    def roll(
        self, after: RollupMark, upto: RollupMark, handoffs: Sequence[RolledHandoff], days: Sequence[RolledDay]
    ) -> bool:
        """Keep roll-ups and move their mark, unless somebody moved it first."""
        self._process.require()
        with self._lock:
            tables = self._tables
            if tables.rolled.get("", RollupMark()) != after:
                return False
            tables.rolled[""] = upto
            if upto.version != after.version:
                tables.rolled_handoffs.clear()
                tables.rolled_days.clear()
            tables.rolled_handoffs.update({rolled.handoff: rolled for rolled in handoffs})
            tables.rolled_days.update({day.id: day for day in days if day.body})
            for day in days:
                if not day.body:
                    tables.rolled_days.pop(day.id, None)
        return True

    def migrations(self) -> tuple[AppliedMigration, ...]:
        """Return no migrations: memory has no schema."""
        return ()

    def migrate(self) -> None:
        """Do nothing: memory has no schema."""

    def close(self) -> None:
        """Do nothing: there is nothing to release."""
