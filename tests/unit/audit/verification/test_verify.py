"""Verification: a whole ledger gives evidence; one wrong thing is named, with its stream, seq and field."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest
from msgspec.structs import replace

from batonpass.audit.verification.evidence import Evidence
from batonpass.audit.verification.verify import verify_ledger
from batonpass.errors import (
    ChainError,
    EditedError,
    MissingError,
    NewerVersionError,
    NotALedgerError,
    PositionError,
    RevokedKeyError,
    SignatureError,
    UnknownKeyError,
    VerificationError,
)
from batonpass.model.base.ids import RECEIPT, KeyId, PublicKey, new_call_id, new_id, new_relay_id
from batonpass.model.bodies.body import Kind, RelayRevoked, ToolRequested
from batonpass.signing.ed25519 import Ed25519Signer
from batonpass.signing.keyring import RelayIdentity
from batonpass.store.memory import MemoryStore
from batonpass.testing.builders import a_scribe, a_small_tree
from batonpass.testing.clock import NOON
from batonpass.wire.canonical import digest
from tests.unit.audit.forging import Forger

STRANGER = Ed25519Signer(b"x" * 32)


@dataclass(frozen=True)
class Wrong:
    """What somebody does to a ledger, and what must be found."""

    act: Callable[[Forger], object]
    error: type[VerificationError]
    stream: str | None
    seq: int | None
    field: str | None
    says: str = "."


def flipped(data: bytes | None, at: int = 0) -> bytes:
    """Return bytes with one bit changed."""
    changed = bytearray(data or b"")
    changed[at] ^= 1
    return bytes(changed)


def swap(forger: Forger, name: str, first: int, second: int) -> None:
    """Exchange two receipts and their positions."""
    rows = forger.tables.receipts
    one, other = forger.place(name, first), forger.place(name, second)
    rows[one], rows[other] = rows[other], rows[one]
    forger.renumber()


def double(forger: Forger, name: str, seq: int) -> None:
    """Put a copy of a receipt at the end."""
    row = forger.row(name, seq)
    forger.tables.receipts.append(replace(row, position=len(forger.tables.receipts) + 1))


def spliced(forger: Forger) -> None:
    """Give a receipt of the child the previous of another."""
    forger.resign("child", 3, previous=forger.receipt("child", 2).previous)


def call_after_the_end(forger: Forger) -> None:
    """Go on with a run that is closed."""
    run = forger.lead.run.id
    forger.add("lead", ToolRequested(run=run, call=new_call_id(NOON), tool="write_file"))


def by_an_unknown_relay(forger: Forger) -> None:
    """Record with a key that nobody enrolled."""
    stranger = RelayIdentity(new_relay_id(NOON), STRANGER)
    lead = forger.scribe.start()
    body = ToolRequested(run=lead.run.id, call=new_call_id(NOON), tool="t")
    forger.add(lead.run.id, body, recorder=stranger)


def by_the_root_key(forger: Forger) -> None:
    """Record with the root key, which enrols relays and is none."""
    recorder = RelayIdentity(forger.scribe.identity.id, forger.scribe.root)
    lead = forger.scribe.start()
    forger.add(lead.run.id, ToolRequested(run=lead.run.id, call=new_call_id(NOON), tool="t"), recorder=recorder)


def under_another_relays_name(forger: Forger) -> None:
    """Record with an enrolled key under the id of another relay."""
    recorder = RelayIdentity(new_relay_id(NOON), forger.scribe.identity.signer)
    lead = forger.scribe.start()
    forger.add(lead.run.id, ToolRequested(run=lead.run.id, call=new_call_id(NOON), tool="t"), recorder=recorder)


def after_its_revocation(forger: Forger) -> None:
    """Record with a key that was revoked."""
    identity = forger.scribe.identity
    lead = forger.scribe.start()
    body = RelayRevoked(relay=identity.id, public_key=identity.signer.public_key)
    forger.add("relay", body)
    forger.add(lead.run.id, ToolRequested(run=lead.run.id, call=new_call_id(NOON), tool="t"))


def in_a_newer_version(forger: Forger) -> None:
    """Write a receipt of the next format."""
    payload = forger.row("child", 2).payload
    forger.write("child", 2, payload.replace(b"receipt:v0", b"receipt:v1"))


CASES = {
    "a receipt was removed": Wrong(
        lambda f: f.remove("child", 2, renumber=False), MissingError, "child", 3, None, "no receipt at position 5"
    ),
    "the first receipt was removed": Wrong(
        lambda f: f.remove("relay", 1, renumber=False), MissingError, "lead", 1, None, "no receipt at position 1"
    ),
    "a receipt was removed and the positions closed": Wrong(
        lambda f: f.remove("child", 2, renumber=True), MissingError, "child", 2, None, "receipt 2 is missing"
    ),
    "a stream lost its beginning": Wrong(
        lambda f: f.remove("child", 1, renumber=True), MissingError, "child", 1, None, "begins with receipt 2"
    ),
    "a derived row was removed": Wrong(
        lambda f: f.tables.runs.pop(f.child.run.id), MissingError, None, None, None, "1 of 2 run rows are gone"
    ),
    "the enrolment was removed": Wrong(
        lambda f: f.remove("relay", 1, renumber=True), UnknownKeyError, "lead", 1, "recorder", "never enrolled"
    ),
    "two receipts changed places": Wrong(
        lambda f: swap(f, "child", 2, 3), MissingError, "child", 2, None, "receipt 2 is missing"
    ),
    "a receipt was doubled": Wrong(
        lambda f: double(f, "child", 2), ChainError, "child", 2, "seq", "comes after receipt 4"
    ),
    "a receipt hangs from another": Wrong(spliced, ChainError, "child", 3, "previous", "does not hang"),
    "a stream begins in a later epoch": Wrong(
        lambda f: f.resign("child", 1, epoch=2), ChainError, "child", 1, "epoch", "begins in epoch 2"
    ),
    "a receipt claims another epoch": Wrong(
        lambda f: f.resign("child", 2, epoch=2), ChainError, "child", 2, "epoch", "in epoch 2, its stream in 1"
    ),
    "a closed run goes on": Wrong(call_after_the_end, ChainError, "lead", 4, "seq", "after the end"),
    "a payload has a flipped bit": Wrong(
        lambda f: f.edit("child", 2, payload=flipped(f.row("child", 2).payload)), EditedError, "child", 2, "payload"
    ),
    "a payload is empty": Wrong(
        lambda f: f.edit("child", 2, payload=b""), EditedError, "child", 2, "payload", "cannot be read"
    ),
    "a payload has an impossible value": Wrong(
        lambda f: f.write("child", 2, f.row("child", 2).payload.replace(b'"seq":2', b'"seq":0')),
        EditedError,
        "child",
        2,
        "seq",
    ),
    "the id beside the payload differs": Wrong(
        lambda f: f.edit("child", 2, id=new_id(RECEIPT, NOON)), EditedError, "child", 2, "id", "the column says"
    ),
    "the seq beside the payload differs": Wrong(
        lambda f: f.edit("child", 2, seq=7), EditedError, "child", 2, "seq", "the column says 7"
    ),
    "the kind beside the payload differs": Wrong(
        lambda f: f.edit("child", 2, kind=Kind.TOOL_FAILED), EditedError, "child", 2, "kind", "tool.failed"
    ),
    "the relay's signature has a flipped bit": Wrong(
        lambda f: f.edit("child", 2, relay_signature=flipped(f.row("child", 2).relay_signature)),
        SignatureError,
        "child",
        2,
        "signature",
    ),
    "the run's signature has a flipped bit": Wrong(
        lambda f: f.edit("child", 2, cosignature=flipped(f.row("child", 2).cosignature, 63)),
        SignatureError,
        "child",
        2,
        "signature",
    ),
    "a signature is cut": Wrong(
        lambda f: f.edit("child", 2, relay_signature=b"short"), SignatureError, "child", 2, "signature"
    ),
    "two signatures changed places": Wrong(
        lambda f: f.edit(
            "child",
            2,
            relay_signature=f.row("child", 2).cosignature,
            cosignature=f.row("child", 2).relay_signature,
        ),
        SignatureError,
        "child",
        2,
        "signature",
    ),
    "the run's signature is gone": Wrong(
        lambda f: f.edit("child", 2, cosignature=None), SignatureError, "child", 2, "cosignature"
    ),
    "a signature too many": Wrong(
        lambda f: f.edit("lead", 2, cosignature=f.row("lead", 2).relay_signature),
        SignatureError,
        "lead",
        2,
        "cosignature",
    ),
    "another key signed for the run": Wrong(
        lambda f: f.resign("child", 2, by=STRANGER), UnknownKeyError, "child", 2, "cosigner", "may not sign this"
    ),
    "the parent's key signed for the child": Wrong(
        lambda f: f.resign("child", 2, by=f.keys.get(f.lead.run.id)[0]), UnknownKeyError, "child", 2, "cosigner"
    ),
    "another key signed for the root": Wrong(
        lambda f: f.resign("relay", 1, by=STRANGER), UnknownKeyError, "relay", 1, "cosigner"
    ),
    "an unknown relay recorded": Wrong(by_an_unknown_relay, UnknownKeyError, "last", 2, "recorder", "never enrolled"),
    "the root key recorded": Wrong(by_the_root_key, UnknownKeyError, "last", 2, "recorder", "never enrolled"),
    "a relay recorded under another's name": Wrong(under_another_relays_name, UnknownKeyError, "last", 2, "recorder"),
    "a revoked key recorded": Wrong(after_its_revocation, RevokedKeyError, "last", 2, "recorder", "was revoked"),
    "a position was given twice": Wrong(
        lambda f: f.edit("child", 3, position=5), PositionError, "child", 3, "position", "does not come after 5"
    ),
    "a position below the first": Wrong(
        lambda f: f.edit("relay", 1, position=0), MissingError, "lead", 1, None, "no receipt at position 1"
    ),
    "a receipt is of a newer version": Wrong(
        in_a_newer_version, NewerVersionError, "child", 2, "predicateType", "version v1.*upgrade batonpass"
    ),
}


@pytest.mark.parametrize("wrong", CASES.values(), ids=CASES.keys())
def test_what_is_wrong_is_named(wrong: Wrong) -> None:
    """Each way to spoil a ledger has its own finding, in its place."""
    forger = Forger()
    wrong.act(forger)

    with pytest.raises(wrong.error, match=wrong.says) as found:
        verify_ledger(forger.store)

    stream = forger.tables.receipts[-1].stream if wrong.stream == "last" else wrong.stream
    assert wrong.error is found.type
    assert (stream and forger.stream(stream), wrong.seq, wrong.field) == (
        found.value.stream,
        found.value.seq,
        found.value.field,
    )


def test_a_signature_is_found_before_what_follows_from_the_receipts() -> None:
    """Rows are looked at while signatures are still being checked; what is wrong with a receipt is said first."""
    forger = Forger()
    last = forger.tables.receipts[-1]
    forger.tables.receipts[-1] = replace(last, relay_signature=flipped(last.relay_signature))
    del forger.tables.runs[forger.child.run.id]

    with pytest.raises(SignatureError) as found:
        verify_ledger(forger.store)

    assert (last.stream, last.seq) == (found.value.stream, found.value.seq)


def test_a_whole_ledger_gives_evidence() -> None:
    """What was checked is counted, and the key that all trust hangs from is named."""
    forger = Forger()
    expected = Evidence(
        ledger=forger.tables.info.id,  # type: ignore[union-attr]
        root_key=forger.scribe.root.key,
        receipts=8,
        signatures=15,
        streams=3,
        runs=2,
        handoffs=1,
        contents=6,
        erased=0,
        withheld=0,
        relays=1,
        seals=0,
        unjudged=0,
        unknown_kinds=0,
    )

    assert expected == verify_ledger(forger.store)


@pytest.mark.parametrize("pin", ["key", "id"], ids=["by the key itself", "by its id"])
def test_the_root_key_can_be_pinned(pin: str) -> None:
    """Whoever knows the root key from elsewhere can insist on it."""
    forger = Forger()
    root = forger.scribe.root
    pinned: PublicKey | KeyId = root.public_key if pin == "key" else root.key
    other = STRANGER.public_key if pin == "key" else STRANGER.key

    assert root.key == verify_ledger(forger.store, root_key=pinned).root_key
    with pytest.raises(UnknownKeyError, match="not the one that was given") as found:
        verify_ledger(forger.store, root_key=other)
    assert "root_key" == found.value.field


@pytest.mark.parametrize("root_key", ["", "zz" * 32, "AB" * 32], ids="the root key {:.4}".format)
def test_a_root_key_that_cannot_be_one_is_an_edit(root_key: str) -> None:
    """Rubbish in the ledger's own row is found before anything hangs from it."""
    forger = Forger()
    forger.tables.info = replace(forger.tables.info, root_key=root_key)  # type: ignore[type-var]

    with pytest.raises(EditedError) as found:
        verify_ledger(forger.store)

    assert ("ledger", "root_key") == (found.value.stream, found.value.field)


@pytest.mark.parametrize("part", ["id", "root_key"], ids="another {}".format)
def test_another_ledgers_name_breaks_every_tree(part: str) -> None:
    """A ledger cannot take another id or another root key: its first receipt hangs from both."""
    forger = Forger()
    other = Forger().tables.info
    forger.tables.info = replace(forger.tables.info, **{part: getattr(other, part)})  # type: ignore[type-var]

    with pytest.raises(VerificationError) as found:
        verify_ledger(forger.store)

    assert (forger.stream("relay"), 1, "previous") == (found.value.stream, found.value.seq, found.value.field)


def test_an_empty_store_is_no_ledger() -> None:
    """There is nothing to verify where nothing was recorded."""
    with pytest.raises(NotALedgerError):
        verify_ledger(MemoryStore())


def test_progress_is_reported_to_the_end() -> None:
    """Whoever draws a bar is told how far it is, of how much."""
    scribe = a_scribe(store := MemoryStore())
    for _ in range(70):
        a_small_tree(scribe)
    told: list[tuple[int, int]] = []
    verify_ledger(store, progress=lambda done, total: told.append((done, total)))

    assert [(1000, 1121), (1121, 1121)] == told


def test_a_kind_of_the_future_verifies_by_its_bytes() -> None:
    """A receipt of a kind that this version does not know is counted, chained and its signatures checked."""
    forger = Forger()
    lead = forger.scribe.start()
    forger.add(lead.run.id, ToolRequested(run=lead.run.id, call=new_call_id(NOON), tool="t"))
    payload = forger.row(lead.run.id, 2).payload.replace(b"tool.requested", b"memory.taken")
    forger.write(lead.run.id, 2, payload)
    forger.edit(lead.run.id, 2, kind="memory.taken")
    stream = forger.stream(lead.run.id)
    forger.tables.streams[stream] = replace(forger.tables.streams[stream], head=digest(payload))

    assert 1 == verify_ledger(forger.store).unknown_kinds
    forger.edit(lead.run.id, 2, cosignature=flipped(forger.row(lead.run.id, 2).cosignature))
    with pytest.raises(SignatureError):
        verify_ledger(forger.store)
