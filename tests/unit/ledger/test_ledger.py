"""Appending: every receipt gets its place, whoever else is appending, and nobody gets a place that was taken away."""

import sys
import threading
from collections.abc import Callable, Sequence
from functools import partial
from linecache import getline
from types import FrameType
from typing import Any

import pytest
from msgspec.structs import replace

from batonpass.audit.verification.verify import verify_ledger
from batonpass.errors import (
    FencedError,
    NotFoundError,
    RewoundError,
    StaleHeadError,
    StreamClosedError,
    UnknownRelayError,
)
from batonpass.ledger import ledger
from batonpass.ledger.draft import Draft
from batonpass.ledger.position import Working
from batonpass.model.base.ids import ContentId, Digest, HandoffId, StreamId, new_call_id
from batonpass.model.base.lifecycle import Carrier
from batonpass.model.bodies.body import Kind, ToolRequested
from batonpass.model.ledger.entry import Entry
from batonpass.store.memory import MemoryStore
from batonpass.store.port import LedgerStore, ReceiptQuery
from batonpass.testing.builders import ANA, Scribe, a_scribe, a_small_tree
from batonpass.testing.clock import NOON
from batonpass.wire.receipt_codec import decode_receipt
from tests.unit.ledger.stores import RacingStore, two_processes
from tests.unit.model.examples import EDITOR


def a_call(scribe: Scribe, working: Working) -> Draft:
    """Return a tool call of a run, ready to be appended."""
    signer, epoch = scribe.run_keys.get(working.run.id)
    return Draft(
        stream=StreamId(working.run.id),
        body=ToolRequested(run=working.run.id, call=new_call_id(NOON), tool="write_file"),
        root=working.run.root,
        epoch=epoch,
        cosigner=signer,
    )


def seq_of(store: LedgerStore, working: Working) -> int:
    with store.view() as view:
        return view.get_stream(StreamId(working.run.id)).seq


def intent_of(store: LedgerStore, working: Working) -> ContentId:
    with store.view() as view:
        (started,) = view.find_receipts(ReceiptQuery(stream=StreamId(working.run.id), kind=Kind.RUN_STARTED))
    return decode_receipt(started.payload).content["intent"].id


def offered_to_workers(scribe: Scribe) -> HandoffId:
    return scribe.recording.offer(scribe.start(), EDITOR, "edit", carrier=Carrier.WORKER)


def test_receipts_of_a_stream_hang_from_each_other() -> None:
    """Each receipt names its place and the digest of the one before it."""
    scribe = a_scribe(MemoryStore())
    lead = scribe.start()
    first, second = (scribe.ledger.append(a_call(scribe, lead))[0] for _ in range(2))

    assert (2, 3) == (first.receipt.seq, second.receipt.seq)
    assert first.digest == second.receipt.previous


def test_drafts_of_one_append_are_one_commit() -> None:
    """Several drafts are one batch; those on one stream build on each other."""
    store = RacingStore()
    scribe = a_scribe(store)
    first, second = scribe.start(), scribe.start()
    store.tried.clear()
    signed = scribe.ledger.append(a_call(scribe, first), a_call(scribe, second), a_call(scribe, first))

    assert [3] == [len(batch) for batch in store.tried]
    assert [2, 2, 3] == [one.receipt.seq for one in signed]
    assert 6 == verify_ledger(store).receipts


def test_a_refused_draft_takes_the_whole_append_with_it() -> None:
    """If one draft is refused nothing is written, and the next append goes on from what is really there."""
    store = MemoryStore()
    scribe = a_scribe(store)
    first, second = scribe.start(), scribe.start()
    refused = a_call(scribe, second)
    scribe.recording.close(second)

    with pytest.raises(StreamClosedError):
        scribe.ledger.append(a_call(scribe, first), refused)

    assert 1 == seq_of(store, first)
    scribe.call(first)
    assert 3 == seq_of(store, first)


def test_two_processes_take_turns_on_a_handoffs_stream() -> None:
    """Anybody may act on a handoff: each sees what the other recorded."""
    store = MemoryStore()
    one, other = two_processes(store)
    handoff = offered_to_workers(one)
    for scribe in (one, other, one):
        scribe.recording.accept(handoff)
        scribe.recording.lapse(handoff)
    with store.view() as view:
        stream = view.get_stream(StreamId(handoff))

    assert (3, True) == (stream.seq, stream.open)
    assert 1 == verify_ledger(store).handoffs


def test_who_is_overtaken_goes_after_the_other() -> None:
    """Another process of the relay commits between our look at the head and our own commit: ours is built again."""
    store = RacingStore()
    one, other = two_processes(store)
    ours, theirs = (intent_of(store, one.start()) for _ in range(2))
    one.erasure.erase([intent_of(store, one.start())], by=ANA, reason="so that the head is known")
    store.tried.clear()
    store.first.append(lambda: other.erasure.erase([theirs], by=ANA, reason="faster"))
    one.erasure.erase([ours], by=ANA, reason="slower")

    assert [3, 3, 4] == [batch[0].signed.receipt.seq for batch in store.tried]
    assert 3 == verify_ledger(store).erased


def test_nobody_is_overtaken_for_ever() -> None:
    """A store in which others are always faster is a fault, and is reported as one."""
    store = HopelessStore()
    scribe = a_scribe(store)

    with pytest.raises(StaleHeadError):
        scribe.enrolment.revoke(scribe.identity.id, scribe.identity.signer.public_key, reason="x", root=scribe.root)

    assert 64 == store.refused


class HopelessStore(MemoryStore):
    """Refuses every append as late."""

    refused = 0

    def append(self, entries: Sequence[Entry]) -> None:
        """Refuse."""
        self.refused += 1
        raise StaleHeadError(entries[0].signed.receipt.stream, entries[0].signed.receipt.seq)


def test_a_stream_that_must_be_new_is_not_joined() -> None:
    """A draft that begins a stream is refused where somebody has begun it, not put behind."""
    store = MemoryStore()
    one, other = two_processes(store)
    lead = one.start()
    with store.view() as view:
        anchor = view.info().genesis

    with pytest.raises(StaleHeadError, match=lead.run.id):
        other.ledger.append(replace(a_call(one, lead), new=True, anchor=anchor, epoch=None))

    assert 1 == seq_of(store, lead)


def test_a_stream_that_never_began_is_named() -> None:
    """A draft without an anchor needs a stream to go on with."""
    scribe = a_scribe(MemoryStore())
    elsewhere = a_scribe(MemoryStore())
    foreign = elsewhere.start()

    with pytest.raises(NotFoundError, match=f"no stream '{foreign.run.id}'"):
        scribe.ledger.append(a_call(elsewhere, foreign))


def test_a_closed_stream_refuses() -> None:
    """After a run's end, nothing more is recorded for it."""
    store = MemoryStore()
    one, other = two_processes(store)
    lead = one.start()
    draft = a_call(one, lead)
    with store.view() as view:
        run = view.get_run(lead.run.id)
    signer, epoch = one.run_keys.get(lead.run.id)
    other.run_keys._keys[lead.run.id] = signer, epoch  # type: ignore[attr-defined]
    other.recording.close(Working(run=run))

    with pytest.raises(StreamClosedError, match=lead.run.id):
        one.ledger.append(draft)
    with pytest.raises(StreamClosedError, match=lead.run.id):
        other.ledger.append(draft)


def test_who_was_taken_over_is_fenced() -> None:
    """After another process rekeyed a run, whoever held the old epoch can record nothing for it."""
    store = MemoryStore()
    one, other = two_processes(store)
    lead = one.start()
    other.recording.rekey(lead.run.id)

    for _ in range(2):
        with pytest.raises(FencedError, match="is in epoch 2 and this writer has epoch 1"):
            one.call(lead)
    assert 2 == seq_of(store, lead)
    assert 2 == verify_ledger(store).streams


def test_who_was_fenced_may_rekey() -> None:
    """A run that was taken over can be taken back: the third key begins the third epoch."""
    store = MemoryStore()
    one, other = two_processes(store)
    lead = one.start()
    other.recording.rekey(lead.run.id)
    taken_back = one.recording.rekey(lead.run.id)
    one.call(taken_back)
    with store.view() as view:
        stream = view.get_stream(StreamId(lead.run.id))

    assert (3, 5) == (stream.epoch, stream.seq)
    for process in (one, other):
        with pytest.raises(FencedError):
            process.call(lead)
    assert 1 == verify_ledger(store).runs


def test_an_older_copy_of_the_store_is_found() -> None:
    """If the store forgets what it had acknowledged, the writer stops, and goes on stopping."""
    store = RacingStore()
    scribe = a_scribe(store)
    lead = scribe.start()
    older = store.snapshot()
    scribe.call(lead)
    store.restore(older)

    for _ in range(2):
        with pytest.raises(RewoundError, match="had 3 receipts and the store now holds 1"):
            scribe.ledger.append(a_call(scribe, lead))
    assert 1 == seq_of(store, lead)


def test_a_store_that_lost_the_whole_stream_is_found() -> None:
    """A copy from before the run began has nothing of it."""
    store = RacingStore()
    scribe = a_scribe(store)
    older = store.snapshot()
    lead = scribe.start()
    store.restore(older)

    for _ in range(2):
        with pytest.raises(RewoundError, match="had 1 receipts and the store now holds 0"):
            scribe.ledger.append(a_call(scribe, lead))


def test_an_older_copy_that_grew_past_us_is_found() -> None:
    """Restored, and then written by another until it is longer than what we knew: our receipts are still gone."""
    store = RacingStore()
    one, other = two_processes(store)
    for _ in range(2):
        one.erasure.erase([intent_of(store, one.start())], by=ANA, reason="early")
    older = store.snapshot()
    one.erasure.erase([intent_of(store, one.start())], by=ANA, reason="acknowledged")
    store.restore(older)
    for _ in range(3):
        other.erasure.erase([intent_of(store, other.start())], by=ANA, reason="after the restore")

    with pytest.raises(RewoundError, match="was replaced or restored"):
        one.erasure.erase([intent_of(store, one.start())], by=ANA, reason="late")


def test_a_revoked_relay_is_told_so() -> None:
    """A relay whose key was revoked cannot record, and the error says which key."""
    scribe = a_scribe(MemoryStore())
    lead = scribe.start()
    key = scribe.identity.signer
    scribe.enrolment.revoke(scribe.identity.id, key.public_key, reason="lost laptop", root=scribe.root)

    with pytest.raises(UnknownRelayError, match=f"{key.key[:16]} is no longer active"):
        scribe.call(lead)


class GatedStore(MemoryStore):
    """Holds up the commits of one stream until it is told to let them through."""

    def __init__(self) -> None:
        super().__init__()
        self.held: StreamId | None = None
        self.waiting = threading.Event()
        self.go = threading.Event()

    def append(self, entries: Sequence[Entry]) -> None:
        """Write entries; those of the held stream only when they may go."""
        if entries[0].signed.receipt.stream == self.held:
            self.waiting.set()
            assert self.go.wait(timeout=30)
        super().append(entries)


def test_streams_never_wait_for_each_other() -> None:
    """While one run's commit is held up, another run goes on from start to end."""
    store = GatedStore()
    scribe = a_scribe(store)
    stuck, free = scribe.start(), scribe.start()
    store.held = StreamId(stuck.run.id)
    thread = threading.Thread(target=scribe.call, args=(stuck,))
    thread.start()
    assert store.waiting.wait(timeout=30)
    scribe.call(free)
    scribe.recording.close(free)
    before = seq_of(store, stuck)
    store.go.set()
    thread.join(timeout=30)

    assert (4, 1, 3) == (seq_of(store, free), before, seq_of(store, stuck))


def test_threads_on_one_stream_wait_for_each_other() -> None:
    """Within a process nobody is overtaken: each receipt is built once, on the one before it."""
    store = RacingStore()
    scribe = a_scribe(store)
    lead = scribe.start()
    store.tried.clear()
    threads = [threading.Thread(target=scribe.call, args=(lead,)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)

    assert 16 == len(store.tried)
    assert (17, 18) == (seq_of(store, lead), verify_ledger(store).receipts)


def test_appends_to_several_streams_do_not_lock_each_other_out() -> None:
    """Two threads that name the same two streams in opposite order both come through."""
    store = MemoryStore()
    scribe = a_scribe(store)
    first, second = scribe.start(), scribe.start()

    def append(*workings: Working) -> None:
        for _ in range(50):
            scribe.ledger.append(*(a_call(scribe, working) for working in workings))

    threads = [threading.Thread(target=append, args=pair, daemon=True) for pair in ((first, second), (second, first))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)

    assert (101, 101) == (seq_of(store, first), seq_of(store, second))


def test_nothing_is_remembered_of_what_is_over() -> None:
    """A thousand closed runs leave nothing behind but the relay's own stream."""
    scribe = a_scribe(MemoryStore())
    for _ in range(20):
        a_small_tree(scribe, calls=1)
    scribe.recording.cancel(scribe.offer(lead := scribe.start()), by=ANA, reason="enough")

    assert {StreamId(lead.run.id)} == set(scribe.ledger._slots)


def test_a_run_that_others_ended_is_forgotten() -> None:
    """A run that lapsed, and says so when it is written to, is not remembered for ever."""
    scribe = a_scribe(MemoryStore())
    handoff = offered_to_workers(scribe)
    lost = scribe.recording.accept(handoff)
    scribe.recording.lapse(handoff)
    with pytest.raises(StreamClosedError):
        scribe.call(lost)

    assert StreamId(lost.run.id) not in scribe.ledger._slots


def test_a_refused_beginning_is_forgotten() -> None:
    """A stream that never came to be leaves nothing behind."""
    scribe = a_scribe(MemoryStore())
    handoff = scribe.offer(scribe.start())
    scribe.recording.accept(handoff)
    before = set(scribe.ledger._slots)
    with pytest.raises(Exception, match="'accept' is not possible"):
        scribe.recording.accept(handoff)

    assert before == set(scribe.ledger._slots)


def test_one_commit_has_as_many_streams_as_are_given() -> None:
    """An import begins more runs in one commit than the interpreter nests calls; none of their locks stays taken."""
    scribe = a_scribe(MemoryStore())
    runs = [scribe.start() for _ in range(sys.getrecursionlimit() + 1)]
    for _ in range(2):
        scribe.ledger.append(*(a_call(scribe, run) for run in runs))

    assert not any(slot.lock.locked() for slot in scribe.ledger._slots.values())


@pytest.mark.parametrize("nested", [ledger._NESTED, 1], ids=["a few streams", "many streams"])
def test_an_interrupt_between_any_two_lines_leaves_no_lock_taken(monkeypatch: pytest.MonkeyPatch, nested: int) -> None:
    """Ctrl-C while a receipt is appended ends that act only: the close that follows gets every lock."""
    monkeypatch.setattr(ledger, "_NESTED", nested)
    scribe = a_scribe(MemoryStore())
    first, second = scribe.start(), scribe.start()
    taken: list[threading.Lock] = []

    class Slot(ledger._Slot):
        def __init__(self) -> None:
            super().__init__()
            taken.append(self.lock)

    monkeypatch.setattr(ledger, "_Slot", Slot)
    monkeypatch.setattr(scribe.ledger, "_slots", {})
    for line in range(1, 400):
        drafts = (a_call(scribe, second), a_call(scribe, first))
        if not _interrupted(line, partial(scribe.ledger.append, *drafts)):
            break
        assert not any(lock.locked() for lock in taken)

    assert 20 < line < 399
    scribe.ledger.append(a_call(scribe, first), a_call(scribe, second))


_UNINTERRUPTED = ("with ", "try:", "holders.clear()")


def _interrupted(line: int, act: Callable[[], object]) -> bool:
    """Interrupt an act before a line of the ledger, counted as they run; return whether there were as many."""
    left = line

    def trace(frame: FrameType, event: str, _: object) -> Callable[[FrameType, str, object], Any] | None:
        nonlocal left
        if frame.f_code.co_filename != ledger.__file__:
            return None
        # The interpreter looks for signals after calls and jumps. `try` and the way out of a `with` are neither, and
        # nothing is called between the end of a `try` and the one step that frees all locks.
        if event == "line" and not getline(ledger.__file__, frame.f_lineno).strip().startswith(_UNINTERRUPTED):
            left -= 1
            if left == 0:
                raise KeyboardInterrupt
        return trace

    before = sys.gettrace()  # of whoever measures coverage: without it, no later test of this process would count
    sys.settrace(trace)
    try:
        act()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)
    return False


def test_a_digest_of_nothing_is_not_where_a_run_begins() -> None:
    """What the first receipt of a run hangs from is the ledger's own genesis."""
    store = MemoryStore()
    scribe = a_scribe(store)
    lead = scribe.start()
    with store.view() as view:
        (started,) = view.find_receipts(ReceiptQuery(stream=StreamId(lead.run.id)))
        genesis = view.info().genesis

    assert genesis == decode_receipt(started.payload).previous
    assert Digest("00" * 32) != genesis
