"""Checking signatures on every core: the answer is that of one core, whoever dies on the way."""

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from itertools import count

import pytest

from batonpass.audit.verification.signatures import Job, SignatureQueue, first_unsigned, useful_processes
from batonpass.audit.verification.verify import verify_ledger
from batonpass.errors import ChainError, ContentMismatchError, SignatureError
from batonpass.signing.ed25519 import Ed25519Signer
from batonpass.store.memory import MemoryStore
from batonpass.testing.builders import a_scribe
from batonpass.wire.receipt_codec import signing_bytes
from tests.unit.audit.forging import Forger
from tests.unit.audit.verification.test_rows import change
from tests.unit.audit.verification.test_verify import flipped, spliced

FIRST = Ed25519Signer(b"1" * 32)
SECOND = Ed25519Signer(b"2" * 32)
BATCH = 400


def a_job(number: int, *, good: bool = True) -> Job:
    """Return a payload with two signatures, the second of which may be wrong."""
    payload = b"receipt %d" % number
    message = signing_bytes(payload)
    last = SECOND.sign(message if good else message + b"!")
    return payload, (
        (bytes.fromhex(FIRST.public_key), FIRST.sign(message)),
        (bytes.fromhex(SECOND.public_key), last),
    )


def jobs(total: int, *, bad: Sequence[int] = ()) -> Iterator[tuple[int, Job]]:
    """Yield jobs by number, some of them wrong."""
    return ((number, a_job(number, good=number not in bad)) for number in range(total))


def helpers_of(queue: SignatureQueue) -> "list[subprocess.Popen[bytes]]":
    """Return the processes that check for a queue."""
    return [] if queue._pool is None else queue._pool.helpers


def give(queue: SignatureQueue, total: int, *, bad: Sequence[int] = ()) -> None:
    for number, job in jobs(total, bad=bad):
        queue.add("stream", number, job)


@pytest.fixture(params=[0, 2], ids=["in this process", "in helper processes"])
def queue(request: pytest.FixtureRequest) -> Iterator[SignatureQueue]:
    with SignatureQueue(processes=request.param) as opened:
        yield opened


def test_all_good_is_minus_one() -> None:
    """If every signature matches there is no first that does not."""
    assert (-1, -1) == (first_unsigned([]), first_unsigned([job for _, job in jobs(5)]))


@pytest.mark.parametrize("bad", [0, 2, 4], ids="the bad one is number {}".format)
def test_the_first_bad_one_is_found(bad: int) -> None:
    """Of several that do not match, the first is named."""
    assert bad == first_unsigned([job for _, job in jobs(6, bad=(bad, 5))])


def test_each_signature_of_a_receipt_counts() -> None:
    """A receipt is signed only if all of its signatures match."""
    payload, (first, second) = a_job(1)

    assert 0 == first_unsigned([(payload, (second, (first[0], second[1])))])
    assert -1 == first_unsigned([(payload, (second, first))])


def test_everything_is_checked(queue: SignatureQueue) -> None:
    """However many there are, each is checked once."""
    give(queue, 3 * BATCH + 7)
    queue.finish()

    assert 2 * (3 * BATCH + 7) == queue.checked


@pytest.mark.parametrize(
    "bad",
    [
        pytest.param((0,), id="the very first"),
        pytest.param((BATCH - 1, BATCH), id="the last of a batch, and the next"),
        pytest.param((2 * BATCH + 5, 3 * BATCH, 3 * BATCH + 6), id="several, in two batches"),
        pytest.param((3 * BATCH + 6,), id="the very last"),
    ],
)
def test_the_first_bad_one_of_all_is_named(queue: SignatureQueue, bad: tuple[int, ...]) -> None:
    """Whoever is faster: what is reported is the first in order, with its place."""
    with pytest.raises(SignatureError) as found:
        _give_and_finish(queue, 3 * BATCH + 7, bad)

    assert ("stream", bad[0], "signature") == (found.value.stream, found.value.seq, found.value.field)


def _give_and_finish(queue: SignatureQueue, total: int, bad: tuple[int, ...]) -> None:
    give(queue, total, bad=bad)
    queue.finish()


@pytest.mark.parametrize("deaths", [1, 2], ids=["one of two", "both"])
@pytest.mark.parametrize("bad", [(), (BATCH + 3,)], ids=["with nothing wrong", "with something wrong"])
def test_a_dead_helpers_work_is_done_here(deaths: int, bad: tuple[int, ...]) -> None:
    """Kill helpers before they answer: nothing is skipped, nothing hangs, and leaving is not an error."""
    found: list[int | None] = []
    with SignatureQueue(processes=2) as queue:
        for helper in helpers_of(queue)[:deaths]:
            helper.kill()
            helper.wait()
        try:
            _give_and_finish(queue, 3 * BATCH, bad)
        except SignatureError as error:
            found.append(error.seq)

    assert list(bad) == found
    assert 2 * 3 * BATCH == queue.checked


def test_no_helper_is_left_behind() -> None:
    """When the queue is left, by an error too, its processes have ended."""
    with SignatureQueue(processes=2) as queue, pytest.raises(SignatureError):
        _give_and_finish(queue, BATCH, (1,))

    assert [0, 0] == [helper.poll() for helper in helpers_of(queue)]


def test_a_helper_loads_no_more_than_it_checks_with() -> None:
    """One is started for each core and each verification: values, stores and errors are for whoever asks it."""
    program = "import sys, batonpass.audit.verification.signature_helper; print(*sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    loaded = done.stdout.split()

    assert [
        "batonpass",
        "batonpass.audit",
        "batonpass.audit.verification",
        "batonpass.audit.verification.signature_helper",
        "batonpass.signing",
        "batonpass.signing.libsodium",
    ] == [name for name in loaded if name.partition(".")[0] == "batonpass"]
    assert [] == [name for name in ("msgspec", "nacl.bindings") if name in loaded]


def test_helpers_are_started_only_for_much_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """A small ledger is checked here; a large one by one helper for each core, if there are several."""
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    many = [useful_processes(receipts) for receipts in (0, 10 * BATCH, 10 * BATCH + 1, 10**6)]
    monkeypatch.setattr(os, "cpu_count", lambda: 1)

    assert ([0, 0, 4, 4], 0) == (many, useful_processes(10**6))


@pytest.mark.slow
def test_a_large_ledger_is_verified_by_helpers() -> None:
    """More receipts than pay for helpers: the evidence is complete, and one flipped bit is found in its place."""
    scribe = a_scribe(store := MemoryStore())
    lead = scribe.start()
    for _ in range(10 * BATCH):
        scribe.recording.request(lead, "write_file", "{}")
    assert 2 * (10 * BATCH + 2) == verify_ledger(store).signatures
    row = store._tables.receipts[3000]
    store._tables.receipts[3000] = type(row)(
        position=row.position,
        id=row.id,
        stream=row.stream,
        seq=row.seq,
        kind=row.kind,
        payload=row.payload,
        relay_signature=row.relay_signature,
        cosignature=flipped(row.cosignature),
    )

    with pytest.raises(SignatureError) as found:
        verify_ledger(store)

    assert (lead.run.id, row.seq) == (found.value.stream, found.value.seq)


def test_a_bad_signature_before_a_broken_chain_comes_first() -> None:
    """Signatures are checked behind the chain, and reported in front of it where they stand in front of it."""
    forger = Forger()
    forger.edit("lead", 1, relay_signature=flipped(forger.row("lead", 1).relay_signature))
    spliced(forger)

    with pytest.raises(SignatureError) as found:
        verify_ledger(forger.store)

    assert (forger.lead.run.id, 1) == (found.value.stream, found.value.seq)


def test_a_broken_chain_before_a_bad_signature_comes_first() -> None:
    """What stands behind the first finding is not looked at."""
    forger = Forger()
    spliced(forger)
    forger.edit("child", 4, relay_signature=flipped(forger.row("child", 4).relay_signature))

    with pytest.raises(ChainError) as found:
        verify_ledger(forger.store)

    assert 3 == found.value.seq


def test_other_words_before_a_bad_signature_come_first() -> None:
    """Other words in an early content and a bad signature later: the words come first."""
    forger = Forger()
    change(forger, "lead", 1, body=b"other words")
    forger.edit("child", 3, relay_signature=flipped(forger.row("child", 3).relay_signature))

    with pytest.raises(ContentMismatchError) as found:
        verify_ledger(forger.store)

    assert (forger.lead.run.id, 1) == (found.value.stream, found.value.seq)


def test_another_check_can_be_put_in_place_of_ours() -> None:
    """Whoever brings a check of their own, for a benchmark, is asked for each signature and no helper is started."""
    forger = Forger()
    asked = count()

    def check(_key: bytes, _message: bytes, _signature: bytes) -> bool:
        return next(asked) >= 0

    assert 15 == verify_ledger(forger.store, check=check).signatures == next(asked)


def test_helpers_do_not_hear_ctrl_c() -> None:
    """A terminal tells all of its group; helpers would answer with tracebacks. Ours end with us, also in the middle."""
    queue = SignatureQueue(processes=2)
    groups = {os.getpgid(helper.pid) for helper in helpers_of(queue)}
    give(queue, 3 * BATCH)
    queue.__exit__(KeyboardInterrupt, KeyboardInterrupt(), None)

    assert os.getpgid(0) not in groups
    assert [0, 0] == [helper.poll() for helper in helpers_of(queue)]
