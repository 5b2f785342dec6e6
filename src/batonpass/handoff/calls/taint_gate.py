"""Calls of a tainted run: which sources appear in the arguments, and whether the call has to be held.

A call with consequences is held, unless a permit that is older than the taint names exactly this call: then no content
from outside chose it.
"""

import json
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from msgspec import MsgspecError
from msgspec.json import Decoder

from batonpass.audit.short_ids import ending
from batonpass.errors import InvalidValueError, NotFoundError, StoreError
from batonpass.guard.policy.gates import CallFacts, GateDecision
from batonpass.guard.policy.taint_gate import is_consequential, judge_tainted_call
from batonpass.handoff.taint.older_terms import older_terms
from batonpass.handoff.tools.json_values import strings_in
from batonpass.model.base.ids import StreamId
from batonpass.model.base.label import MOST_SOURCES, Source
from batonpass.model.baton.items import Artifact
from batonpass.model.bodies.body import HandoffEndorsed, Kind
from batonpass.model.grants.permit import Permit
from batonpass.store.port import ReceiptQuery
from batonpass.wire.documents import JSON
from batonpass.wire.receipt_codec import decode_receipt

_DECODER: Final[Decoder[Any]] = Decoder()

if TYPE_CHECKING:
    from batonpass.handoff.calls.pending_call import PendingCall
    from batonpass.handoff.runtime.desk import Desk
    from batonpass.handoff.runtime.run_state import Holding


def find_taint(pending: "PendingCall") -> None:
    """Note the label of everything that the run knows, and the sources whose words appear in the arguments."""
    desk, holding = pending.desk, pending.holding
    pending.label = holding.taint.label
    if not holding.taint.entered:
        return
    read_unread(desk, holding)
    # Read from the recorded form, where two names that are spelled alike are one.
    values = strings_in(_read_json(pending.described).get("arguments"))
    found = holding.taint.passages.find(values, holding.taint.entered)
    pending.untrusted = tuple(sorted(found))[:MOST_SOURCES]


def judge_taint(pending: "PendingCall", facts: CallFacts) -> Iterator[GateDecision]:
    """Yield the decision that holds a call of a tainted run, if there is one."""
    desk, holding = pending.desk, pending.holding
    taint = holding.taint
    if not taint or not is_consequential(facts):
        return
    _look_for_endorsements(desk, holding)
    if not taint:
        return
    decision = judge_tainted_call(facts, _older_terms(desk, holding), origin_of(holding))
    if decision is not None:
        yield decision


def origin_of(holding: "Holding") -> str:
    """Return the sources that taint a run, in a few words."""
    first = holding.taint.first
    more = len(holding.taint.entered) - len(first)
    named = ", ".join([f"{one.partition('_')[0]} {ending(one)}" for one in first])
    return f"{named} and {more} more" if more > 0 else named


def _look_for_endorsements(desk: "Desk", holding: "Holding") -> None:
    """Read the endorsements of the handoff since this attempt began. Only consequential calls need them."""
    handoff = holding.working.run.handoff
    if handoff is None:
        return
    with desk.store.view() as view:
        for stored in view.find_receipts(ReceiptQuery(stream=StreamId(handoff), kind=Kind.HANDOFF_ENDORSED)):
            body = decode_receipt(stored.payload).body
            if isinstance(body, HandoffEndorsed):
                holding.taint.endorse(body.source)


def _older_terms(desk: "Desk", holding: "Holding") -> tuple[Permit, ...]:
    if holding.taint.terms is None:
        with desk.store.view() as view:
            holding.taint.terms = older_terms(view, holding.id)
    at = holding.present(desk.clock)
    return tuple(permit for permit in holding.taint.terms if permit.until is None or at < permit.until)


def read_unread(desk: "Desk", holding: "Holding") -> None:
    """Read the untrusted artifacts that came by reference, each once, to compare later arguments with them."""
    taint = holding.taint
    if not taint.unread:
        return
    unread, taint.unread = taint.unread, set()
    with holding.lock:
        items = [item for item in holding.notes.values() if item.id in unread]
    artifacts = [(item.id, item.value) for item in items if isinstance(item.value, Artifact)]
    try:
        with desk.store.view() as view:
            for source, artifact in artifacts:
                if source in taint.entered and source not in taint.passages.texts:
                    stored = view.get_content(artifact.body)
                    add_text(holding, source, stored.body or b"", artifact.media_type)
    except (StoreError, NotFoundError, InvalidValueError):
        return  # only a hint is lost: the label and the hold do not depend on it


def add_text(holding: "Holding", source: Source, body: bytes, media_type: str) -> None:
    """Remember the text of a source, so that its words are recognised in arguments."""
    text = body.decode("utf-8", "replace")
    if media_type == JSON:
        with suppress(ValueError, RecursionError):
            text = "\n".join(strings_in(_read_json(text)))
    holding.taint.passages.add(source, text)


def _read_json(text: bytes | str) -> Any:  # noqa: ANN401 - JSON
    """Return the JSON value of a text. Raises `ValueError` and `RecursionError`."""
    try:
        return _DECODER.decode(text)
    except (MsgspecError, RecursionError):
        return json.loads(text)  # it accepts more than the standard, such as half a surrogate pair
