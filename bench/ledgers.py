"""Ledgers to measure: made in a folder, filled quickly, and what one receipt in them weighs."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from batonpass.clock import Clock, SystemClock
from batonpass.ledger.draft import Draft
from batonpass.model.base.ids import AgentId, Digest, RunId, StreamId, new_call_id, new_handoff_id, new_run_id
from batonpass.model.base.lifecycle import Carrier, State
from batonpass.model.bodies.body import (
    HandoffAccepted,
    HandoffCompleted,
    HandoffInitiated,
    Outcome,
    RunClosed,
    RunStarted,
    ToolCompleted,
    ToolRequested,
)
from batonpass.model.ledger.content import new_content
from batonpass.model.ledger.receipt import SignedReceipt, StoredReceipt
from batonpass.relay import Relay
from batonpass.signing.ed25519 import Ed25519Signer
from batonpass.signing.keyring import Keyring
from batonpass.store.factory import open_store
from batonpass.store.port import LedgerStore, LedgerView, ReceiptQuery
from batonpass.testing.builders import ANA, Scribe, a_scribe
from batonpass.wire.receipt_codec import decode_receipt
from bench.measure import Act

TOOL: Final = "write_file"
ARGUMENTS: Final = '{"path":"src/billing/totals.py","text":"' + "return round_half_even(total)\\n" * 6 + '"}'
RESULT: Final = "1 file changed, 6 insertions(+), 6 deletions(-)"

_RUN_RECEIPTS: Final = 100
_RUNS_AT_ONCE: Final = 10
LEAD_HANDOFFS: Final = 100
_LEADS_AT_ONCE: Final = 10
# An append changes about six pages, and after some thousand pages the log is folded back and written over.
_APPENDS_TO_USE_UP_LOG: Final = 1_000


@contextmanager
def sqlite_ledger(directory: Path) -> Iterator[Scribe]:
    """Open a ledger in a folder of its own, made if there is none."""
    directory.mkdir(exist_ok=True)
    with closing_store(f"sqlite:///{directory / 'ledger.db'}") as store:
        yield a_scribe(store)


@contextmanager
def closing_store(url: str) -> Iterator[LedgerStore]:
    """Open a store, and close it in the end."""
    store = open_store(url)
    try:
        yield store
    finally:
        store.close()


def scribe_of(relay: Relay, home: Path, clock: Clock | None = None) -> Scribe:
    """Return what records in the ledger of a relay under the relay's own keys, beneath its public names."""
    if not relay.store.founded():
        relay.start("Found the ledger", by=ANA).close()
    keyring = Keyring(home, SystemClock())
    return a_scribe(relay.store, clock=clock, identity=keyring.relay(), root=keyring.root())


def requests(scribe: Scribe) -> Act:
    """Return the act that is measured most: a run of its own records that it is about to call a tool."""
    run = scribe.start()
    return lambda: scribe.recording.request(run, TOOL, ARGUMENTS)


def use_up_log(scribe: Scribe) -> None:
    """Append until the write-ahead log has its length and is written over: what a ledger does most of its life."""
    act = requests(scribe)
    for _ in range(_APPENDS_TO_USE_UP_LOG):
        act()


def request_bytes(scribe: Scribe) -> int:
    """Return how many bytes a request makes durable: the signed bytes, the signatures, the salt and the body."""
    run = scribe.start()
    scribe.recording.request(run, TOOL, ARGUMENTS)
    return run_bytes(scribe.store, run.run.id)[-1]


def run_bytes(store: LedgerStore, run: RunId) -> list[int]:
    """Return how many bytes each receipt of a run made durable."""
    return receipt_bytes(store, ReceiptQuery(stream=StreamId(run)))


def receipt_bytes(store: LedgerStore, query: ReceiptQuery) -> list[int]:
    """Return how many bytes some receipts made durable, each with its contents."""
    with store.view() as view:
        return [
            len(stored.payload) + len(stored.relay_signature) + len(stored.cosignature or b"") + contents
            for stored, contents in _with_contents(view, query)
        ]


def fill(scribe: Scribe, receipts: int) -> None:
    """Add at least so many receipts: runs of a hundred, all signed twice, a thousand in one commit."""
    genesis = _genesis(scribe)
    for _ in range(-(-receipts // (_RUN_RECEIPTS * _RUNS_AT_ONCE))):
        scribe.ledger.append(*(draft for _ in range(_RUNS_AT_ONCE) for draft in _whole_run(genesis)))


def fill_with_handoffs(
    scribe: Scribe, handoffs: int, *, agents: Sequence[str] = ("editor",), leads: int = _LEADS_AT_ONCE
) -> None:
    """Add at least so many handoffs, offered, accepted and completed: ten leads with a hundred each in two commits."""
    genesis = _genesis(scribe)
    for _ in range(-(-handoffs // (LEAD_HANDOFFS * leads))):
        offered = scribe.ledger.append(*(draft for _ in range(leads) for draft in _lead(genesis, agents)))
        # An acceptance hangs from the digest of the signed offer, so it cannot be in the same commit.
        scribe.ledger.append(*(draft for offer in offered for draft in _attempt(offer)))


def count_receipts(scribe: Scribe) -> int:
    """Return how many receipts a ledger has."""
    with scribe.store.view() as view:
        return view.counts().receipts


def _genesis(scribe: Scribe) -> Digest:
    with scribe.store.view() as view:
        return view.info().genesis


def _lead(genesis: Digest, agents: Sequence[str]) -> Iterator[Draft]:
    at = datetime.now(UTC)
    run = new_run_id(at)
    signer = Ed25519Signer.generate()
    yield Draft(
        stream=StreamId(run),
        body=RunStarted(run=run, agent=AgentId("lead"), principal=ANA, run_key=signer.public_key),
        root=run,
        anchor=genesis,
        new=True,
        cosigner=signer,
        contents=(new_content("intent", "Fix invoice rounding", at),),
    )
    for number in range(LEAD_HANDOFFS):
        offered = HandoffInitiated(
            handoff=new_handoff_id(at),
            run=run,
            to=AgentId(agents[number % len(agents)]),
            carrier=Carrier.CALLER,
            state=State.OFFERED,
            scope=StreamId(run),
            key=Digest(f"{number:064x}"),
            fingerprint=Digest(f"{number:064x}"),
        )
        task = new_content("task", f"{number}: {ARGUMENTS}", at)
        yield Draft(stream=StreamId(run), body=offered, root=run, cosigner=signer, contents=(task,))


def _attempt(signed: SignedReceipt) -> Iterator[Draft]:
    offered = signed.receipt.body
    if not isinstance(offered, HandoffInitiated):
        return
    run = new_run_id(signed.receipt.at)
    signer = Ed25519Signer.generate()
    accepted = HandoffAccepted(
        handoff=offered.handoff,
        parent=offered.run,
        run=run,
        attempt=1,
        agent=offered.to,
        principal=ANA,
        run_key=signer.public_key,
        baton=signed.digest,
    )
    completed = HandoffCompleted(handoff=offered.handoff, parent=offered.run, run=run, attempt=1, children=())
    stream, root = StreamId(run), signed.receipt.root
    yield Draft(stream=stream, body=accepted, root=root, anchor=signed.digest, new=True, cosigner=signer)
    yield Draft(stream=stream, body=completed, root=root, cosigner=signer)


def _whole_run(genesis: Digest) -> Iterator[Draft]:
    at = datetime.now(UTC)
    run = new_run_id(at)
    stream = StreamId(run)
    signer = Ed25519Signer.generate()
    yield Draft(
        stream=stream,
        body=RunStarted(run=run, agent=AgentId("lead"), principal=ANA, run_key=signer.public_key),
        root=run,
        anchor=genesis,
        new=True,
        cosigner=signer,
        contents=(new_content("intent", "Fix invoice rounding", at),),
    )
    for _ in range((_RUN_RECEIPTS - 2) // 2):
        call = new_call_id(at)
        arguments = new_content("arguments", ARGUMENTS, at, media_type="application/json")
        requested = ToolRequested(run=run, call=call, tool=TOOL)
        yield Draft(stream=stream, body=requested, root=run, cosigner=signer, contents=(arguments,))
        result = new_content("result", RESULT, at)
        completed = ToolCompleted(run=run, call=call)
        yield Draft(stream=stream, body=completed, root=run, cosigner=signer, contents=(result,))
    closed = RunClosed(run=run, outcome=Outcome.COMPLETED, children=())
    yield Draft(stream=stream, body=closed, root=run, cosigner=signer)


def _with_contents(view: LedgerView, query: ReceiptQuery) -> Iterator[tuple[StoredReceipt, int]]:
    for stored in view.find_receipts(query):
        refs = decode_receipt(stored.payload).content.values()
        contents = view.find_contents([ref.id for ref in refs])
        yield stored, sum(len(content.salt or b"") + len(content.body or b"") for content in contents)
