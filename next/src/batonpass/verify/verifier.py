"""Verification: reads every receipt once, in the order of the ledger, and names the first thing that is wrong.

Nothing is believed that the store says. Chains, signatures and references come from the signed bytes; the derived rows
are folded again by the rule that admitted each receipt (`change_of`), and compared. The steps have the order and the
names that they have in `docs/spec/verification.md`; what is not claimed stands there, and in the evidence.
"""

from collections import Counter
from collections.abc import Callable
from typing import Final, NamedTuple

from msgspec import Struct, msgpack

from batonpass.errors import BatonpassError, VerificationError
from batonpass.model.bodies import HandoffAccepted, KeyEnrolled, RunRekeyed, RunStarted, public_kind
from batonpass.model.change import change_of
from batonpass.model.ids import derived_id
from batonpass.model.receipt import Signed
from batonpass.signing.keys import is_signed
from batonpass.store.admission import TABLES
from batonpass.store.port import Store, Stored, View
from batonpass.verify.facts import Facts, FaultError
from batonpass.verify.parts import PARTS
from batonpass.verify.references import check_place, check_references, note
from batonpass.wire.canonical import genesis
from batonpass.wire.contents import unpack
from batonpass.wire.statements import pre_authentication, read_signed

_PROGRESS_EVERY: Final = 1_000
_NAMED_ROWS: Final = 5

_encode_row: Final = msgpack.Encoder().encode


class Evidence(Struct, frozen=True, kw_only=True):
    """What was verified. `not_run` names each step that was not run: nothing is claimed of it."""

    receipts: int
    streams: int
    signatures: int
    contents: int
    root_key: str  # that everything hangs from: compare it with the one that is kept elsewhere
    steps: tuple[str, ...]
    not_run: tuple[str, ...]


class Judged:
    """A stored row, with what the steps before have read of it."""

    __slots__ = ("contents", "key", "message", "row", "signed")

    row: Stored
    signed: Signed
    message: bytes  # what is signed
    key: str  # the recorder's
    contents: dict[str, bytes | None]

    def __init__(self, row: Stored) -> None:
        self.row = row


def _check_bytes(_: Facts, judged: Judged) -> None:
    """Require that the payload is a statement in canonical form, of a kind that this version knows."""
    try:
        judged.signed = read_signed(*judged.row[3:])
    except VerificationError as error:
        raise FaultError("payload", str(error)) from None


def _check_order(facts: Facts, judged: Judged) -> None:
    """Require that positions count from one, and that a receipt stands where it was signed for."""
    signed = judged.signed
    expected = (facts.receipts + 1, signed.stream, signed.receipt.seq)
    for name, value, due in zip(("position", "stream", "seq"), judged.row, expected, strict=False):
        # 1.0 equals 1, and True does: a value of another type is a fault even where it is equal.
        if type(value) is not type(due) or value != due:
            raise FaultError(name, f"its row says {name} {value!r}, and {due!r} is due")


def _check_chain(facts: Facts, judged: Judged) -> None:
    """Require that a receipt follows the one before it, and the first of a stream what its kind hangs from."""
    signed, tables = judged.signed, facts.tables
    row = tables.streams.get(signed.stream)
    seq, previous = (0, _origin(facts, signed)) if row is None else (row.seq, row.head)
    if signed.receipt.seq != seq + 1:
        raise FaultError("seq", f"follows number {seq} of its stream")
    if signed.previous != previous:
        raise FaultError("previous", f"follows {signed.previous[:12]}…, and what is before it is {previous[:12]}…")


def _origin(facts: Facts, signed: Signed) -> str:
    """Return what the first receipt of a stream hangs from."""
    body = signed.body
    if isinstance(body, KeyEnrolled):
        return genesis(facts.root_key or body.root_key)
    if isinstance(body, RunStarted):
        return genesis(facts.root_key) if facts.root_key else ""
    handoff = facts.tables.handoffs.get(body.handoff if isinstance(body, HandoffAccepted) else signed.stream)
    if handoff is None:
        raise FaultError("kind", f"{signed.stream} cannot begin with {signed.receipt.kind}, or of what was not offered")
    return handoff.last


def _check_recorder(facts: Facts, judged: Judged) -> None:
    """Require that the recorder was enrolled before, by the ledger's root key; its id follows from its key."""
    receipt, body = judged.signed.receipt, judged.signed.body
    if not isinstance(body, KeyEnrolled):
        key = facts.relays.get(receipt.recorder)
        if key is None:
            raise FaultError("recorder", f"is recorded by {receipt.recorder}, which was not enrolled before")
        judged.key = key
        return
    if body.root_key != (facts.root_key or body.root_key):
        raise FaultError("root_key", "enrols a relay by another root key than the one of this ledger")
    if not body.relay == receipt.recorder == derived_id("relay", bytes.fromhex(body.public_key)):
        raise FaultError("relay", "enrols a relay under an id that does not follow from its key")
    judged.key = body.public_key


def _check_signature(facts: Facts, judged: Judged) -> None:
    """Require that the recording relay signed these bytes."""
    judged.message = pre_authentication(judged.signed.payload)
    if not is_signed(judged.message, judged.signed.signature, judged.key):
        raise FaultError("signature", f"is not signed by {judged.signed.receipt.recorder}")
    facts.signatures += 1


def _check_cosignature(facts: Facts, judged: Judged) -> None:
    """Require the run's signature on what opens a run, the root key's on what enrols a relay, and no other."""
    body, cosignature = judged.signed.body, judged.signed.cosignature
    if isinstance(body, RunStarted | RunRekeyed | HandoffAccepted):
        key, owner = body.run_key, "run_key"
    elif isinstance(body, KeyEnrolled):
        key, owner = body.root_key, "root_key"
    elif cosignature is None:
        return
    else:
        raise FaultError("cosignature", f"{judged.signed.receipt.kind} has a second signature, which means nothing")
    if cosignature is None or not is_signed(judged.message, cosignature, key):
        raise FaultError("cosignature", f"is not signed by the key that it names as {owner}")
    facts.signatures += 1


def _check_contents(facts: Facts, judged: Judged) -> None:
    """Require that contents are those that were committed to, none is gone, and each is a part that this kind has."""
    signed = judged.signed
    parts, named = PARTS[public_kind(signed.receipt.kind, signed.body)], signed.receipt.content.keys()
    if not parts.required <= named <= parts.required | parts.optional:
        strange = ", ".join(sorted(named - parts.optional ^ parts.required))
        raise FaultError("content", f"{signed.receipt.kind} has other contents than its kind: {strange}")
    try:
        judged.contents = unpack(signed.contents, signed.receipt.content)
    except VerificationError as error:
        raise FaultError("contents", str(error)) from None
    if gone := sorted(part for part, data in judged.contents.items() if data is None):
        raise FaultError("contents", f"its contents are gone, and no receipt says that they were erased: {gone}")
    facts.contents += len(named)


def _check_place(facts: Facts, judged: Judged) -> None:
    """Require that a kind stands in its kind of stream, with the run, handoff, root, mode and epoch of it."""
    check_place(facts, judged.signed)


def _check_admission(facts: Facts, judged: Judged) -> None:
    """Require that the rows, as the receipts before have made them, allow what this one does."""
    try:
        facts.tables.apply(change_of(judged.signed))
    except BatonpassError as error:
        raise FaultError("body", f"a store refuses it ({error.code}): {error}") from None


def _check_references(facts: Facts, judged: Judged) -> None:
    """Require that what it says of others is so: offers, terms, heads, requested calls, charged accounts."""
    check_references(facts, judged.signed)
    note(facts, judged.signed, judged.contents)


class Step(NamedTuple):
    """One step: its name in the specification, the code of its faults, and what judges a receipt."""

    name: str
    code: str
    check: Callable[[Facts, Judged], None]


STEPS: Final = (
    Step("bytes", "verify.bytes", _check_bytes),
    Step("order", "verify.order", _check_order),
    Step("chain", "verify.chain", _check_chain),
    Step("recorder", "verify.recorder", _check_recorder),
    Step("signature", "verify.signature", _check_signature),
    Step("cosignature", "verify.signature", _check_cosignature),
    Step("contents", "verify.content", _check_contents),
    Step("place", "verify.reference", _check_place),
    Step("admission", "verify.admission", _check_admission),
    Step("references", "verify.reference", _check_references),
)
ROOT_KEY: Final = "root key"
RELAY_KEY: Final = "relay key"
ROWS: Final = "rows"
INDEXES: Final = "indexes"
NOT_RUN: Final = ("end", "grants")  # a ledger that was cut short; each call against its grant


def verify(
    store: Store,
    *,
    root_key: str | None = None,
    relay_key: str | None = None,
    progress: Callable[[int], None] | None = None,
) -> Evidence:
    """Return what was verified. Raises `VerificationError` for the first fault, by position.

    With `root_key`, kept elsewhere, a ledger that was made anew under another root key is found as well; with
    `relay_key` one in which this relay is not enrolled. `progress` is given the number of receipts from time to time.
    """
    facts = Facts()
    with store.view() as view:
        for row in view.receipts():
            _verify_receipt(facts, row)
            if progress is not None and facts.receipts % _PROGRESS_EVERY == 0:
                progress(facts.receipts)
        _verify_keys(facts, root_key, relay_key)
        for table in TABLES:
            _compare_rows(facts, view, table)
        damage = view.damage()
        if damage is not None:  # readers look by indexes: one that lies hides what stands in the table
            detail = f"the database is damaged: {damage}"
            raise VerificationError(detail, code="verify.rows", facts={"step": INDEXES, "field": "index"})
    if progress is not None:
        progress(facts.receipts)
    pinned = ((ROOT_KEY, root_key), (RELAY_KEY, relay_key))
    return Evidence(
        receipts=facts.receipts,
        streams=len(facts.tables.streams),
        signatures=facts.signatures,
        contents=facts.contents,
        root_key=facts.root_key,
        steps=(*(step.name for step in STEPS), *(name for name, key in pinned if key is not None), ROWS, INDEXES),
        not_run=(*(name for name, key in pinned if key is None), *NOT_RUN),
    )


def _verify_receipt(facts: Facts, row: Stored) -> None:
    judged, step = Judged(row), STEPS[0]
    try:
        for step in STEPS:
            step.check(facts, judged)
    except FaultError as fault:
        position, signed = facts.receipts + 1, getattr(judged, "signed", None)
        stream, seq = (row[1], row[2]) if signed is None else (signed.stream, signed.receipt.seq)
        where = {"position": position, "stream": stream, "seq": seq, "field": fault.field}
        detail = f"position {position}, {stream} #{seq}: {fault}"
        raise VerificationError(detail, code=step.code, facts={**where, "step": step.name}) from None
    facts.receipts += 1


def _verify_keys(facts: Facts, root_key: str | None, relay_key: str | None) -> None:
    code = "verify.recorder"
    if not facts.receipts:
        raise VerificationError("the ledger holds no receipt: not even the one that founds it", code=code)
    if root_key not in {None, facts.root_key}:
        detail = f"the ledger hangs from the root key {facts.root_key}, and not from the one that is expected"
        raise VerificationError(detail, code=code, facts={"field": "root_key", "step": ROOT_KEY})
    if relay_key is not None and relay_key not in facts.relays.values():
        detail = "the relay with the key that is expected was never enrolled in this ledger"
        raise VerificationError(detail, code=code, facts={"field": "relay_key", "step": RELAY_KEY})


def _compare_rows(facts: Facts, view: View, table: str) -> None:
    # Encoded, because 1.0 equals 1 and text that is stored as bytes looks like text: types are compared as well.
    derived = Counter(map(_encode_row, facts.tables.rows(table)))
    stored = Counter(map(_encode_row, view.rows(table)))
    if derived == stored:
        return
    wrong = sorted({str(msgpack.decode(row)[0]) for row in (derived - stored) + (stored - derived)})
    more = "" if len(wrong) <= _NAMED_ROWS else f" and {len(wrong) - _NAMED_ROWS} more"
    detail = f"{table}: rows that do not follow from the receipts: {', '.join(wrong[:_NAMED_ROWS])}{more}"
    raise VerificationError(detail, code="verify.rows", facts={"step": ROWS, "table": table, "rows": wrong})
