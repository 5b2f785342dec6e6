"""The reference store: plain dictionaries behind one lock. What it does is what the port means."""

import threading
from collections import ChainMap
from collections.abc import Iterator, MutableMapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Final

from batonpass.errors import NotALedgerError, NotFoundError, StaleHeadError, UnknownRelayError
from batonpass.model.content import Place, StoredContent
from batonpass.model.entry import Entry
from batonpass.model.ids import RECEIPT, AgentId, ContentId, HandoffId, KeyId, ReceiptId, RunId, StreamId, first_id
from batonpass.model.key import Key, KeyRole, KeyStatus
from batonpass.model.projection import enrols_itself, root_key
from batonpass.model.receipt import StoredReceipt
from batonpass.model.run import Handoff, Run
from batonpass.model.seal import Seal
from batonpass.model.stream import Stream
from batonpass.store.admission import is_there, require_next
from batonpass.store.fold import Derived, add_new, get_row
from batonpass.store.migrate import AppliedMigration
from batonpass.store.port import Counts, LedgerInfo, LedgerView, ReceiptQuery
from batonpass.store.process import OwnProcess


@dataclass(slots=True)
class _Tables:
    info: LedgerInfo | None = None
    receipts: list[StoredReceipt] = field(default_factory=list)
    numbers: MutableMapping[ReceiptId, int] = field(default_factory=dict)
    streams: MutableMapping[StreamId, Stream] = field(default_factory=dict)
    contents: MutableMapping[ContentId, StoredContent] = field(default_factory=dict)
    runs: MutableMapping[RunId, Run] = field(default_factory=dict)
    handoffs: MutableMapping[HandoffId, Handoff] = field(default_factory=dict)
    keys: MutableMapping[KeyId, Key] = field(default_factory=dict)
    seals: MutableMapping[int, Seal] = field(default_factory=dict)


_MAPS: Final = ("numbers", "streams", "contents", "runs", "handoffs", "keys", "seals")


def _copied(tables: _Tables) -> _Tables:
    return _Tables(tables.info, list(tables.receipts), *(dict(getattr(tables, name)) for name in _MAPS))


class _Transaction:
    """Collects changes beside the tables, so that a refused batch leaves nothing behind."""

    def __init__(self, tables: _Tables) -> None:
        self._tables = tables
        self._new = _Tables(None, [], *(ChainMap({}, getattr(tables, name)) for name in _MAPS))
        self._derived = Derived(self._new.streams, self._new.runs, self._new.handoffs, self._new.keys)

    def commit(self) -> None:
        self._tables.receipts.extend(self._new.receipts)
        for name in _MAPS:
            getattr(self._tables, name).update(getattr(self._new, name).maps[0])

    def add_key(self, key: Key) -> None:
        self._new.keys[key.id] = key

    def apply(self, entry: Entry) -> None:
        signed = entry.signed
        receipt = signed.receipt
        change = entry.change
        stream = self._new.streams.get(receipt.stream)
        if is_there(stream, signed):
            return
        if not enrols_itself(receipt):
            self._require_active(receipt.relay_key)
        require_next(stream, signed, bumps=change.bumps)
        self._write(entry)
        self._derived.fold(receipt, signed.digest, change)
        for content in self._new.contents.keys() & set(change.erased):
            self._new.contents[content] = replace(
                self._new.contents[content],
                place=Place.ERASED,
                salt=None,
                body=None,
            )

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


class MemoryStore:
    """Keeps a ledger for as long as the process lives."""

    url = "memory:"
    largest_content: int | None = None

    def __init__(self) -> None:
        self._process = OwnProcess()
        self._lock = threading.Lock()
        self._tables = _Tables()

    def founded(self) -> bool:
        """Return whether somebody has founded this ledger."""
        self._process.require()
        return self._tables.info is not None

    def found(self, info: LedgerInfo, first: Entry) -> LedgerInfo:
        """Make this empty store the ledger `info` with its first receipt, and return who it is."""
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
    def view(self) -> Iterator[LedgerView]:
        """Open everything as it is now, for reading."""
        self._process.require()
        with self._lock:
            tables = _copied(self._tables)
        yield MemoryView(tables)

    def append(self, entries: Sequence[Entry]) -> None:
        """Write all entries in one commit, or none."""
        self._process.require()
        with self._lock:
            transaction = _Transaction(self._tables)
            for entry in entries:
                transaction.apply(entry)
            transaction.commit()

    def sequence(self) -> int:
        """Give every committed receipt its position: here it has it from the start."""
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

    def migrations(self) -> tuple[AppliedMigration, ...]:
        """Return nothing: memory has no schema."""
        return ()

    def migrate(self) -> None:
        """Do nothing: memory has no schema."""

    def close(self) -> None:
        """Let go of everything."""


class MemoryView:
    """Everything as it was at one moment."""

    def __init__(self, tables: _Tables) -> None:
        self._tables = tables

    def info(self) -> LedgerInfo:
        """Return who this ledger is."""
        if self._tables.info is None:
            raise NotALedgerError("nothing has been recorded in this memory yet")
        return self._tables.info

    def counts(self) -> Counts:
        """Return how much there is."""
        tables = self._tables
        return Counts(
            receipts=len(tables.receipts),
            streams=len(tables.streams),
            runs=len(tables.runs),
            handoffs=len(tables.handoffs),
            contents=len(tables.contents),
            seals=len(tables.seals),
            bytes=sum(len(receipt.payload) for receipt in tables.receipts),
        )

    def get_stream(self, stream: StreamId) -> Stream:
        """Return where a stream stands."""
        return get_row(self._tables.streams, stream, "stream")

    def find_streams(self) -> Iterator[Stream]:
        """Yield all streams."""
        yield from self._tables.streams.values()

    def get_receipt(self, receipt: ReceiptId) -> StoredReceipt:
        """Return one receipt."""
        return self._tables.receipts[get_row(self._tables.numbers, receipt, "receipt") - 1]

    def get_receipt_at(self, stream: StreamId, seq: int) -> StoredReceipt:
        """Return one receipt by its place in its stream."""
        for receipt in self._tables.receipts:
            if (receipt.stream, receipt.seq) == (stream, seq):
                return receipt
        raise NotFoundError("receipt", f"{seq} of {stream}")

    def find_receipts(self, query: ReceiptQuery) -> Iterator[StoredReceipt]:
        """Yield receipts."""
        return (receipt for receipt in self._tables.receipts if self._matches(query, receipt))

    def _matches(self, query: ReceiptQuery, receipt: StoredReceipt) -> bool:
        run = self._tables.runs.get(RunId(receipt.stream))
        position = receipt.position or 0
        return (
            query.stream in {None, receipt.stream}
            and query.root in {None, self._tables.streams[receipt.stream].root}
            and (query.kind is None or f"{receipt.kind}.".startswith(f"{query.kind}."))
            and (query.agent is None or (run is not None and run.agent == query.agent))
            and (query.since is None or receipt.id >= first_id(RECEIPT, query.since))
            and not query.unsequenced
            and (query.first or 0) <= position
            and (query.last is None or position <= query.last)
        )

    def last_position(self) -> int:
        """Return the position of the last sequenced receipt."""
        return len(self._tables.receipts)

    def get_content(self, content: ContentId) -> StoredContent:
        """Return one content."""
        return get_row(self._tables.contents, content, "content")

    def find_contents(self, contents: Sequence[ContentId]) -> Iterator[StoredContent]:
        """Yield those of these contents that are there."""
        return (self._tables.contents[content] for content in contents if content in self._tables.contents)

    def find_content_ids(self) -> Iterator[ContentId]:
        """Yield the ids of all contents."""
        yield from self._tables.contents

    def get_run(self, run: RunId) -> Run:
        """Return one run."""
        return get_row(self._tables.runs, run, "run")

    def find_runs(
        self,
        *,
        agent: AgentId | None = None,
        root: RunId | None = None,
        parent: RunId | None = None,
    ) -> Iterator[Run]:
        """Yield runs, the latest first."""
        return (
            run
            for _, run in sorted(self._tables.runs.items(), reverse=True)
            if agent in {None, run.agent} and root in {None, run.root} and parent in {None, run.parent}
        )

    def get_handoff(self, handoff: HandoffId) -> Handoff:
        """Return one handoff."""
        return get_row(self._tables.handoffs, handoff, "handoff")

    def find_handoffs(self, *, root: RunId | None = None) -> Iterator[Handoff]:
        """Yield handoffs, the latest first."""
        return (
            handoff
            for _, handoff in sorted(self._tables.handoffs.items(), reverse=True)
            if root in {None, handoff.root}
        )

    def find_keys(self) -> Iterator[Key]:
        """Yield every key that is or was enrolled, the root key first."""
        yield from self._tables.keys.values()

    def find_seals(self) -> Iterator[Seal]:
        """Yield seals by size."""
        return (seal for _, seal in sorted(self._tables.seals.items()))

    def find_ids(self, prefix: str, ending: str) -> Iterator[str]:
        """Yield ids with this ending, the latest first."""
        relays = (key.relay for key in self._tables.keys.values() if key.relay is not None)
        known = (*relays, *self._tables.runs, *self._tables.handoffs, *self._tables.numbers, *self._tables.contents)
        wanted = {name for name in known if name.startswith(f"{prefix}_") and name.endswith(ending)}
        yield from sorted(wanted, reverse=True)
