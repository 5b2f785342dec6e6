"""A ledger without acts: receipts at any place that a test names, legal or not, beside the rows that they should make.

Acts write only what is legal; a store must refuse the rest. What a test does not say is as it would be in the next
legal receipt, by the rows so far.
"""

from pathlib import Path
from typing import Any, Final

from batonpass.api.opening import open_store
from batonpass.errors import BatonpassError, ConflictError
from batonpass.log.append import CURRENT_REQUEST, Draft, Recorder, Request, sign
from batonpass.model.bodies import KINDS, HandoffInitiated
from batonpass.model.change import change_of
from batonpass.model.ids import derived_id
from batonpass.model.receipt import Place, Signed
from batonpass.model.values import Effect, RunHead
from batonpass.place import Place as Location
from batonpass.signing.keys import SEED_BYTES, KeyPair
from batonpass.store.admission import TABLES, Tables, explain_entry
from batonpass.store.port import Store
from batonpass.system import System
from batonpass.testing.clock import FrozenClock
from batonpass.wire.canonical import digest, genesis
from batonpass.wire.statements import read_signed

_KEY: Final = digest(b"a key")
_ROOT: Final = KeyPair(b"\0" * SEED_BYTES)
Rows = dict[str, list[tuple[object, ...]]]


class Ledger:
    """A store, relays to sign for it, and `tables`: the rows that follow from what was appended here."""

    def __init__(self, store: Store, *, clock: FrozenClock | None = None, root_key: KeyPair = _ROOT) -> None:
        self.store = store
        self.genesis = genesis(root_key.public)
        self.tables = Tables()
        self._clock = clock or FrozenClock()
        self._root_key = root_key
        self._written: set[bytes] = set()

    def relay(self, number: int = 1) -> str:
        """Return the id of a relay. It is enrolled by its `key.enrolled`, in the stream of this name."""
        return self._recorder(number).relay

    def new_id(self, prefix: str) -> str:
        """Return an id that sorts after all earlier ones."""
        self._clock.advance(0.001)
        return self._recorder(1).new_id(prefix)

    def found(self) -> "Ledger":
        """Enrol the first relay, and return this."""
        self.append(self.sign("key.enrolled", self.relay()))
        return self

    def sign(
        self,
        kind: str,
        stream: str,
        *,
        after: Signed | None = None,
        previous: str | None = None,
        seq: int | None = None,
        epoch: int | None = None,
        relay: int = 1,
        root: str | None = None,
        request: tuple[str, str] | None = None,
        words: bytes = b"words",
        **fields: Any,  # noqa: ANN401 - of the body
    ) -> Signed:
        """Return a receipt. `after` is one of the same entry, or one that is not the head any more."""
        place = self._place(kind, stream, after, fields.get("handoff", stream))
        place.head = place.head if previous is None else previous
        place.seq = place.seq if seq is None else seq - 1
        place.epoch = place.epoch if epoch is None else epoch
        self._clock.advance(0.001)
        recorder = self._recorder(relay)
        body = KINDS[kind](**{**self._defaults(kind, stream, recorder, after, fields), **fields})
        token = CURRENT_REQUEST.set(None if request is None else Request(*(digest(part.encode()) for part in request)))
        try:
            return sign(recorder, place, Draft(body, {"words": words}), root=root or self._root_of(stream, fields))
        finally:
            CURRENT_REQUEST.reset(token)

    def write(self, kind: str, stream: str, **how: Any) -> Signed:  # noqa: ANN401 - as `sign` takes it
        """Sign a receipt and append it."""
        signed = self.sign(kind, stream, **how)
        self.append(signed)
        return signed

    def a_run(self) -> str:
        """Begin a root run, and return its id."""
        return self.write("run.started", self.new_id("run")).stream

    def an_offer(self, run: str) -> str:
        """Let a run offer a handoff, and return its id."""
        handoff = self.new_id("handoff")
        self.write("handoff.initiated", run, handoff=handoff)
        return handoff

    def an_attempt(self, handoff: str) -> str:
        """Accept a handoff, and return the run of the attempt."""
        return self.write("handoff.accepted", self.new_id("run"), handoff=handoff).stream

    def effects(self, *targets: str) -> tuple[Effect, ...]:
        """Return effects of a call on targets."""
        return tuple(Effect(target=target, after=_KEY) for target in targets)

    def head(self, run: str, head: str | None = None) -> RunHead:
        """Return the head of a run as another receipt names it, or as it would if it had the digest `head`."""
        row = self.tables.streams[run]
        return RunHead(row.id, row.seq, row.head if head is None else head)

    def append(self, *entry: Signed) -> None:
        """Write an entry. Raises what the store raises."""
        self.store.append(entry)
        if not self.is_written(*entry):
            self.note(*entry)

    def note(self, *entry: Signed) -> None:
        """Fold an entry that another wrote."""
        for signed in entry:
            self.tables.apply(change_of(signed))
            self._written.add(signed.payload)

    def is_written(self, *entry: Signed) -> bool:
        """Return whether these bytes were appended here before."""
        return all(signed.payload in self._written for signed in entry)

    def expected(self, *entry: Signed) -> str:
        """Return the code of the error that an append of this entry must raise, by the rows so far; empty if none."""
        try:
            changes = [change_of(one) for one in entry]
        except ConflictError as refused:
            return refused.code
        refusal = None if self.is_written(*entry) else explain_entry(changes, self.tables)
        return "" if refusal is None else refusal.code

    def verdict(self, *entry: Signed) -> str:
        """Append an entry, and return the code of the error that it raised; empty if none."""
        try:
            self.append(*entry)
        except BatonpassError as error:
            return error.code
        return ""

    def rows(self) -> Rows:
        """Return the rows of each table, as the store has them."""
        with self.store.view() as view:
            return {table: list(view.rows(table)) for table in TABLES}

    def expected_rows(self) -> Rows:
        """Return the rows of each table that follow from what was appended here."""
        return {table: self.tables.rows(table) for table in TABLES}

    def fold(self) -> tuple[list[int], Rows, Rows]:
        """Return, of one moment, all positions, the rows that the receipts make in their order, and the rows."""
        tables = Tables()
        with self.store.view() as view:
            positions = []
            for position, _, _, payload, signature, cosignature, contents in view.receipts():
                positions.append(position)
                tables.apply(change_of(read_signed(payload, signature, cosignature, contents)))
            return (
                positions,
                {table: tables.rows(table) for table in TABLES},
                {table: list(view.rows(table)) for table in TABLES},
            )

    def written(self) -> list[str]:
        """Return the digests of all receipts, by position."""
        with self.store.view() as view:
            return [digest(payload) for _, _, _, payload, *_ in view.receipts()]

    def _recorder(self, number: int) -> Recorder:
        key = KeyPair(bytes([number]) * SEED_BYTES)
        relay = derived_id("relay", bytes.fromhex(key.public))
        return Recorder(
            store=self.store, system=self._clock, key=key, relay=relay, genesis=self.genesis, secret=b"secret"
        )

    def _place(self, kind: str, stream: str, after: Signed | None, handoff: str) -> Place:
        if after is not None and after.stream == stream:
            epoch = after.receipt.epoch + (kind == "run.rekeyed")
            return Place(stream=stream, seq=after.receipt.seq, head=after.digest, epoch=epoch)
        row = self.tables.find_stream(stream)
        if row is not None:
            return Place(stream=stream, seq=row.seq, head=row.head, epoch=row.epoch + (kind == "run.rekeyed"))
        if after is not None:
            return Place(stream=stream, seq=0, head=after.digest)
        offered = self.tables.find_handoff(handoff)
        return Place(stream=stream, seq=0, head=self.genesis if offered is None else offered.last)

    def _root_of(self, stream: str, fields: dict[str, Any]) -> str | None:
        if stream.startswith("relay"):
            return None
        row = self.tables.find_stream(stream)
        handoff = self.tables.find_handoff(fields.get("handoff", stream))
        known = (row and row.root) or (handoff and handoff.root)
        return known or (stream if stream.startswith("run") else None)

    def _defaults(
        self, kind: str, stream: str, recorder: Recorder, after: Signed | None, fields: dict[str, Any]
    ) -> dict[str, Any]:
        noun, _, verb = kind.partition(".")
        if verb == "accepted":
            return self._defaults_of_acceptance(stream, fields["handoff"], after)
        if noun == "handoff" and verb != "initiated":
            return self._defaults_of_handoff(verb, stream)
        by = {"by": "user:ana"}
        run = {"run": stream}
        ended = {**run, "took_us": 1}
        defaults: dict[str, dict[str, Any]] = {
            "key.enrolled": {
                "subject": "relay",
                "relay": stream,
                "owner": "this machine",
                "public_key": recorder.key.public,
                "root_key": self._root_key.public,
            },
            "grant.revoked": by,
            "run.started": {**run, "agent": "lead", "principal": "user:ana", "run_key": _KEY},
            "run.rekeyed": {**run, "run_key": _KEY},
            "run.recorded": {**run, "subject": "items", "count": 1},
            "run.closed": {**run, "outcome": "completed"},
            "handoff.initiated": {"to": "editor", "execution": "caller", "state": "offered"},
            "tool.requested": {**run, "key": _KEY, "tool": "read"},
            "tool.completed": ended,
            "tool.failed": ended,
            "tool.denied": {**run, "key": _KEY, "tool": "read", "rule": "grant.exceeded"},
            "tool.late_result": {"handoff": stream, "outcome": "completed", "took_us": 1},
            "tool.settled": {**run, **by, "settlement": "repeat"},
        }
        return defaults[kind]

    def _defaults_of_acceptance(self, stream: str, handoff: str, offer: Signed | None) -> dict[str, Any]:
        run = {"run": stream, "run_key": _KEY, "baton": _KEY}
        row = self.tables.find_handoff(handoff)
        if row is not None:
            return {**run, "parent": row.parent, "attempt": row.attempt + 1, "agent": row.to}
        if offer is not None and isinstance(offer.body, HandoffInitiated):
            return {**run, "parent": offer.stream, "attempt": 1, "agent": offer.body.to}
        return {**run, "parent": stream, "attempt": 1, "agent": "editor"}

    def _defaults_of_handoff(self, verb: str, stream: str) -> dict[str, Any]:
        attempt = self.tables.find_stream(stream)
        row = self.tables.find_handoff((attempt and attempt.handoff) or stream)
        if row is None:
            return {}
        if verb in {"completed", "failed"}:
            return {"handoff": row.id, "parent": row.parent, "attempt": row.attempt}
        acted: dict[str, Any] = {"handoff": row.id, "attempt": row.attempt, "by": "user:ana"}
        ended = None if row.run is None else self.head(row.run)
        if verb == "retried":
            return {**acted, "ended_run": ended}
        holder = self.tables.find_stream(row.parent)
        epoch = 0 if holder is None else holder.epoch
        withdrawn = {"code": "handoff.parent_closed", "holder": row.parent, "holder_epoch": epoch}
        return {**acted, **withdrawn, "ended_run": ended if row.state == "running" else None}


def a_ledger(url: str, *, system: System | None = None, root_key: bytes | None = None) -> Ledger:
    """Return an empty ledger of a URL, or another one that is there: `found` begins it."""
    clock = FrozenClock()
    store = open_store(Location(directory=Path(), url=url, work_tree=Path()), system or clock)
    return Ledger(store, clock=clock, root_key=_ROOT if root_key is None else KeyPair(root_key))
