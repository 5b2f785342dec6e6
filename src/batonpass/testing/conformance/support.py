"""Shared by the parts of the suite: a relay that records in the store under test, and lookups."""

import os
import threading
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import TypeVar

import pytest
from msgspec.structs import replace

from batonpass.errors import ForkedError, StaleHeadError
from batonpass.ledger.draft import Draft
from batonpass.ledger.ledger import sign_receipt
from batonpass.ledger.position import Working
from batonpass.model.base.ids import Digest, RunId, StreamId, new_call_id
from batonpass.model.bodies.body import RelayEnrolled, ToolRequested
from batonpass.model.ledger.content import new_content
from batonpass.model.ledger.entry import Entry
from batonpass.model.ledger.receipt import StoredReceipt
from batonpass.model.ledger.seal import Seal
from batonpass.model.ledger.stream import Mark, Stream
from batonpass.store.port import LedgerStore, ReceiptQuery
from batonpass.testing.builders import Scribe, a_scribe

NOW = datetime(2026, 1, 2, 12, tzinfo=UTC)

_Item = TypeVar("_Item")


def an_entry(scribe: Scribe, working: Working, head: Stream, *, epoch: int | None = None) -> Entry:
    """Return a signed call of a run, built on a head that the caller chooses."""
    signer, _ = scribe.run_keys.get(working.run.id)
    content = new_content("arguments", "{}", NOW)
    draft = Draft(
        stream=StreamId(working.run.id),
        body=ToolRequested(run=working.run.id, call=new_call_id(NOW), tool="write_file"),
        root=working.run.root,
        cosigner=signer,
        contents=(content,),
    )
    signed = sign_receipt(draft, head if epoch is None else replace(head, epoch=epoch), scribe.identity, NOW)
    return Entry(signed=signed, contents=(content,))


def head_of(store: LedgerStore, working: Working) -> Stream:
    """Return the head of a run's stream."""
    with store.view() as view:
        return view.get_stream(StreamId(working.run.id))


def mark_of(store: LedgerStore, working: Working) -> Mark:
    """Return the last receipt of a run as an acknowledged one."""
    with store.view() as view:
        stream, ledger = view.get_stream(StreamId(working.run.id)), view.info().id
    return Mark(ledger=ledger, stream=stream.id, seq=stream.seq, head=stream.head, at=NOW)


def all_receipts(store: LedgerStore, query: ReceiptQuery | None = None) -> list[StoredReceipt]:
    """Return the receipts of a query."""
    with store.view() as view:
        return list(view.find_receipts(query or ReceiptQuery()))


class WithScribe:
    """The base of all parts of the suite."""

    @pytest.fixture
    def scribe(self, store: LedgerStore) -> Scribe:
        """Return a relay that records in the store."""
        return a_scribe(store)


def a_second_relay(scribe: Scribe) -> Scribe:
    """Enrol another relay in the scribe's ledger, and return its scribe."""
    other = a_scribe(scribe.store)
    scribe.enrolment.enroll(other.identity.id, other.identity.signer.public_key, root=scribe.root)
    return other


def a_seal(size: int, previous: int = 0) -> Seal:
    """Return a seal over this many receipts; only its shape is real."""
    return Seal(
        size=size,
        previous=previous,
        root=Digest("cd" * 32),
        note=f"seal of {size}",
        frontier=b"\1" * 32 * size.bit_count(),
    )


def enrolment_of(scribe: Scribe) -> Draft:
    """Return the draft that enrols a relay."""
    body = RelayEnrolled(relay=scribe.identity.id, public_key=scribe.identity.signer.public_key)
    return Draft(stream=StreamId(scribe.identity.id), body=body, anchor=Digest("00" * 32), cosigner=scribe.root)


def root_of(store: LedgerStore, receipt: StoredReceipt) -> RunId | None:
    """Return the tree that a receipt belongs to."""
    with store.view() as view:
        return view.get_stream(receipt.stream).root


def at_once(work: Callable[[_Item], object], items: Sequence[_Item]) -> None:
    """Call `work` with each item, each in a thread of its own, all at the same time."""
    barrier = threading.Barrier(len(items))

    def start(item: _Item) -> None:
        barrier.wait()
        work(item)

    threads = [threading.Thread(target=start, args=(item,)) for item in items]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def append_at_once(store: LedgerStore, entries: Sequence[Entry]) -> list[BaseException | None]:
    """Append entries from as many threads at once, and return the result of each."""
    outcomes: list[BaseException | None] = []

    def work(entry: Entry) -> None:
        try:
            store.append([entry])
        except StaleHeadError as error:
            outcomes.append(error)
        else:
            outcomes.append(None)

    at_once(work, entries)
    return outcomes


def sequence_until(store: LedgerStore, stop: threading.Event) -> None:
    """Sequence again and again until the event is set."""
    while not stop.is_set():
        store.sequence()


def in_a_fork(act: Callable[[], object]) -> int:
    """Act in a forked child, and return its exit code: 42 if the act was refused because of the fork."""
    pid = os.fork()
    if pid == 0:
        try:
            act()
        except ForkedError:
            os._exit(42)
        except BaseException:  # noqa: BLE001 - a forked child must never return into the test runner
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
