"""What a receipt says of its stream and of other receipts. Admission has the rest: states, attempts, heads of fences.

`check_place` comes before admission, which then may rely on what a body names; `check_references` after it, so the
handoff, the run or the call that a body names is there.
"""

from collections.abc import Mapping
from typing import Any, Final

from msgspec import DecodeError, json

from batonpass.model.bodies import (
    Body,
    GrantRevoked,
    HandoffAccepted,
    HandoffCancelled,
    HandoffCompleted,
    HandoffEnded,
    HandoffFailed,
    HandoffInitiated,
    HandoffRetried,
    KeyEnrolled,
    RunClosed,
    RunRecorded,
    RunRekeyed,
    RunStarted,
    ToolCompleted,
    ToolDenied,
    ToolFailed,
    ToolLateResult,
    ToolRequested,
    ToolSettled,
)
from batonpass.model.grants import Terms
from batonpass.model.lifecycle import State
from batonpass.model.receipt import Signed
from batonpass.verify.facts import Facts, FaultError, OfferFacts, RunFacts

_OPENING: Final = (RunStarted, HandoffAccepted, KeyEnrolled)
_decode_terms: Final = json.Decoder(Terms).decode

# The field of a body that names its stream.
_STREAM_FIELD: Final[dict[type[Body], str]] = {
    RunStarted: "run",
    RunRekeyed: "run",
    RunRecorded: "run",
    RunClosed: "run",
    HandoffAccepted: "run",
    ToolRequested: "run",
    ToolCompleted: "run",
    ToolFailed: "run",
    ToolDenied: "run",
    HandoffRetried: "handoff",
    HandoffCancelled: "handoff",
    ToolLateResult: "handoff",
    KeyEnrolled: "relay",
}
_STREAM_PREFIX: Final[dict[type[Body], str]] = {
    HandoffInitiated: "run_",
    HandoffCompleted: "run_",
    HandoffFailed: "run_",
    GrantRevoked: "relay_",
}


def check_place(facts: Facts, signed: Signed) -> None:
    """Raise `FaultError` unless a kind stands in its kind of stream, with the root and the mode of that stream."""
    receipt, body, stream = signed.receipt, signed.body, signed.stream
    name = _STREAM_FIELD.get(type(body))
    if name is not None and getattr(body, name) != stream:
        raise FaultError(name, f"{receipt.kind} of {getattr(body, name)} in {stream}")
    if not stream.startswith(_STREAM_PREFIX.get(type(body), "")):
        raise FaultError("kind", f"{receipt.kind} in {stream}")
    if isinstance(body, ToolSettled) and stream != body.run and not stream.startswith("handoff_"):
        raise FaultError("run", f"{receipt.kind} of {body.run} in {stream}")
    if isinstance(body, _OPENING) != (receipt.seq == 1) and not stream.startswith("handoff_"):
        raise FaultError("kind", f"number {receipt.seq} of {stream} is {receipt.kind}")
    if receipt.seq == 1 and receipt.epoch:
        raise FaultError("epoch", f"{stream} begins in epoch {receipt.epoch}")
    if (receipt.request is None) != (receipt.fingerprint is None):
        raise FaultError("fingerprint", "a request and its fingerprint are named together")
    if receipt.root != _root_of(facts, signed):
        raise FaultError("root", f"{stream} is in the tree of {_root_of(facts, signed)}, and not of {receipt.root}")
    if stream.startswith("run_") and receipt.mode != _mode_of(facts, signed):
        raise FaultError("mode", f"is {receipt.mode} in {stream}, which is {_mode_of(facts, signed)}")


def _root_of(facts: Facts, signed: Signed) -> str | None:
    """Return the root of the tree that a stream belongs to; None for the stream of a relay."""
    body, tables = signed.body, facts.tables
    if isinstance(body, RunStarted):
        return body.run
    row = tables.streams.get(signed.stream)
    if row is not None:
        return row.root
    handoff = tables.handoffs.get(body.handoff if isinstance(body, HandoffAccepted) else signed.stream)
    return None if handoff is None else handoff.root


def _mode_of(facts: Facts, signed: Signed) -> str:
    """Return the mode of a run: enforced if it holds terms, from its first receipt to its last."""
    body = signed.body
    if isinstance(body, RunStarted):
        return "enforced" if "terms" in signed.receipt.content else "observed"
    if isinstance(body, HandoffAccepted):
        return "observed" if body.terms is None else "enforced"
    return facts.runs[signed.stream].mode


def check_references(facts: Facts, signed: Signed) -> None:
    """Raise `FaultError` unless what a receipt says of others is so."""
    check = _REFERENCES.get(type(signed.body))
    if check is not None:
        check(facts, signed, signed.body)


def _check_offer(facts: Facts, signed: Signed, _: HandoffInitiated) -> None:
    # An offer without terms by a run that holds some would let its receiver do whatever it likes.
    if facts.runs[signed.stream].accounts and "terms" not in signed.receipt.content:
        raise FaultError("content", f"{signed.stream} works under a grant, and offers without one")


def _check_acceptance(facts: Facts, _: Signed, body: HandoffAccepted) -> None:
    offer = facts.offers[body.handoff]
    for name in ("baton", "terms", "expires_at"):
        accepted, offered = getattr(body, name), getattr(offer, name)
        if accepted != offered:
            raise FaultError(name, f"accepts {name} {accepted}, and {offered} was offered")


def _check_ended(facts: Facts, signed: Signed, body: RunClosed | HandoffEnded) -> None:
    run = signed.stream
    if isinstance(body, RunClosed) and facts.tables.streams[run].handoff is not None:
        raise FaultError("kind", f"{run} is an attempt at a handoff, and ends with it")
    for child in body.children:
        row = facts.tables.streams.get(child.run)
        if row is None or row.handoff is None or not facts.is_own_child(run, row.handoff):
            raise FaultError("children", f"names {child.run}, which is no child of {run}")
        # At least this far: the child may have gone on between the look at it and this receipt.
        heads = facts.heads[child.run]
        if not 0 < child.seq <= len(heads) or heads[child.seq - 1] != bytes.fromhex(child.head):
            raise FaultError("children", f"names a head of {child.run} that it never had")


def _check_cancelled(facts: Facts, _: Signed, body: HandoffCancelled) -> None:
    handoff, tables = body.handoff, facts.tables
    while not facts.is_own_child(body.holder, handoff):
        # What a withdrawn handoff had handed on is withdrawn with it.
        above = tables.streams[tables.handoffs[handoff].parent].handoff
        if above is None or tables.handoffs[above].state != State.CANCELLED:
            raise FaultError("holder", f"{body.holder} withdraws {body.handoff}, which it did not offer")
        handoff = above


def _check_request(facts: Facts, signed: Signed, body: ToolRequested) -> None:
    if body.call in facts.calls:
        raise FaultError("call", f"{body.call} was requested before")
    if body.charges != facts.runs[signed.stream].accounts:
        due = ", ".join(facts.runs[signed.stream].accounts) or "none"
        raise FaultError("charges", f"charges {', '.join(body.charges) or 'none'}, and its run holds grants of {due}")


def _check_requested(facts: Facts, _: Signed, body: ToolLateResult | ToolSettled) -> None:
    if facts.calls.get(body.call) != body.run:
        raise FaultError("call", f"{body.call} was never requested by {body.run}")


def _check_settled(facts: Facts, signed: Signed, body: ToolSettled) -> None:
    _check_requested(facts, signed, body)
    if signed.stream == body.run and facts.tables.streams[body.run].handoff is not None:
        raise FaultError("run", f"{body.run} is an attempt: its calls are settled in the stream of its handoff")


def _check_revoked(facts: Facts, _: Signed, body: GrantRevoked) -> None:
    if body.account not in facts.tables.handoffs and body.account not in facts.tables.streams:
        raise FaultError("account", f"revokes a grant of {body.account}, which is not in this ledger")


# Dispatched by the type that is the key: so each gets the body that it names.
_REFERENCES: Final[dict[type[Body], Any]] = {
    HandoffInitiated: _check_offer,
    HandoffAccepted: _check_acceptance,
    HandoffCompleted: _check_ended,
    HandoffFailed: _check_ended,
    RunClosed: _check_ended,
    HandoffCancelled: _check_cancelled,
    ToolRequested: _check_request,
    ToolLateResult: _check_requested,
    ToolSettled: _check_settled,
    GrantRevoked: _check_revoked,
}


def note(facts: Facts, signed: Signed, contents: Mapping[str, bytes | None]) -> None:
    """Remember what a receipt establishes for those after it."""
    body, stream = signed.body, signed.stream
    if stream.startswith("run_"):
        facts.heads.setdefault(stream, []).append(bytes.fromhex(signed.digest))
    if isinstance(body, ToolRequested):
        facts.calls[body.call] = stream
    elif isinstance(body, HandoffInitiated):
        named = signed.receipt.content
        facts.offers[body.handoff] = OfferFacts(named["baton"], named.get("terms"), _expiry(contents.get("terms")))
    elif isinstance(body, RunStarted):
        own = (stream,) if "terms" in signed.receipt.content else ()
        facts.runs[stream] = RunFacts(signed.receipt.mode, own)
    elif isinstance(body, HandoffAccepted):
        above = facts.runs[body.parent].accounts
        own = () if body.terms is None else (body.handoff,)
        facts.runs[stream] = RunFacts(signed.receipt.mode, above + own)
    elif isinstance(body, KeyEnrolled):
        facts.root_key = body.root_key
        facts.relays[body.relay] = body.public_key


def _expiry(terms: bytes | None) -> int | None:
    if terms is None:
        return None
    try:
        return _decode_terms(terms).expires_at
    except (DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise FaultError("terms", f"its terms cannot be read: {error}") from None
