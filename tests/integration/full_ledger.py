"""A ledger with everything in it that a ledger can hold, for those who break it one thing at a time."""

from datetime import timedelta

from batonpass.ledger.seals import Sealing
from batonpass.model.base.ids import AgentId, StreamId
from batonpass.model.base.lifecycle import Carrier
from batonpass.signing.ed25519 import Ed25519Signer
from batonpass.store.port import ReceiptQuery
from batonpass.testing.builders import ANA, Scribe, a_small_tree
from batonpass.testing.conformance.charges import one_call, request
from batonpass.testing.conformance.decided_calls import decided, held
from batonpass.testing.conformance.kept_results import SESSION, kept
from batonpass.testing.conformance.offers import LONG_AGO, offered
from batonpass.testing.conformance.remarks import ONE, OTHER, left
from batonpass.testing.conformance.support import a_second_relay
from batonpass.testing.conformance.touched_paths import a_change, a_changing_call, changed
from batonpass.wire.receipt_codec import decode_receipt

RECEIPTS = 100

# Not leases: they are no record of anything. Whoever can write there can keep workers from a handoff for a while, or
# call two to it, of whom one is refused; no receipt says who should hold what, so there is nothing to compare with.
TABLES = {
    "receipts": ("position", "id", "stream", "seq", "kind", "payload", "relay_signature", "cosignature"),
    "contents": ("id", "number", "receipt", "place", "salt", "body"),
    "streams": ("number", "id", "root", "seq", "head", "epoch", "open"),
    "runs": (
        "id",
        "root",
        "parent",
        "handoff",
        "attempt",
        "agent",
        "principal",
        "state",
        "started_at",
        "ended_at",
        "series",
        "session",
        "settled",
    ),
    "handoffs": (
        "id",
        "root",
        "parent",
        "agent",
        "carrier",
        "state",
        "attempt",
        "run",
        "initiated",
        "seq",
        "scope",
        "key",
        "deadline",
        "settled",
    ),
    "touches": ("content", "receipt", "path"),
    "cached": ("call", "key", "receipt", "until"),
    "charged": ("account", "unit", "used"),
    "statements": ("item", "root", "digest", "author", "at"),
    "keys": ("id", "role", "public_key", "relay", "status", "principal"),
    "held_calls": ("call", "run", "receipt"),
    "decided_calls": ("call", "run", "receipt", "approved"),
    "remarks": ("receipt", "said", "name"),
    "seals": ("size", "previous", "root", "note", "frontier"),
    "ledger": ("id", "root_key"),
    "settled": ("only", "receipt", "content", "run", "handoff"),
    "receipt_names": ("name", "position"),
    "receipt_places": ("position", "stream", "seq"),
    "content_ids": ("id", "number"),
}


def record_everything(scribe: Scribe) -> None:
    """Record something of everything, and at least a hundred receipts."""
    other = a_second_relay(scribe)
    lead = scribe.start("big", agent="artist")
    scribe.call(lead, result="x" * 70_000)
    for number in range(2):
        changed(scribe, lead, "src/total.py", f"src/{number}.py", "src/total.py")
    scribe.store.append([a_changing_call(scribe, lead, [a_change("src/large.py", lines="x" * 70_000)])])
    (secret,) = changed(scribe, lead, "src/secret.py")
    scribe.enrolment.enroll_approver(ANA, Ed25519Signer.generate().public_key, root=scribe.root)
    for number in range(2):
        decided(scribe, held(scribe, lead), approved=bool(number % 2))
    for digest in (ONE, OTHER):
        left(scribe, lead, digest)
    for _ in range(2):
        again = scribe.recording.start("again", agent="artist", by=ANA, session=SESSION)
        kept(scribe, again)
        request(scribe, again, one_call(again, 1)[0])
    for _ in range(2):
        handoff = scribe.recording.offer(lead, AgentId("painter"), "paint", carrier=Carrier.WORKER)
        scribe.recording.accept(handoff)
        scribe.recording.lapse(handoff)
        scribe.recording.close(scribe.recording.accept(handoff))
    for _ in range(2):
        nightly = scribe.recording.start("paint again", agent="artist", by=ANA, series="nightly")
        for scope in (nightly.run.id, None):
            offered(scribe, nightly, scope=scope, deadline=LONG_AGO, carrier=Carrier.WORKER)
    scribe.store.claim(holder="worker", lease_for=timedelta(hours=1))
    cancelled = scribe.offer(lead)
    scribe.recording.cancel(cancelled, by=ANA, reason="enough")
    scribe.recording.rekey(lead.run.id)
    with scribe.store.view() as view:
        started = next(view.find_receipts(ReceiptQuery(stream=StreamId(lead.run.id))))
    intent = decode_receipt(started.payload).content["intent"].id
    scribe.erasure.erase([intent, secret.content], by=ANA, reason="asked to")
    Sealing(scribe.store, scribe.identity).seal()
    while True:
        a_small_tree(other)
        a_small_tree(scribe, calls=3)
        with scribe.store.view() as view:
            if view.counts().receipts >= RECEIPTS:
                return
