"""Cached results: for a while, a tool that allows it is not called again in the same session or series."""

from datetime import datetime
from typing import Any

from msgspec import Struct

from batonpass.errors import InvalidValueError, NotFoundError, StoreError
from batonpass.handoff.calls.call_limits import write_counted
from batonpass.handoff.calls.pending_call import PendingCall, Replayed
from batonpass.handoff.history.offers import is_intact
from batonpass.handoff.runtime.desk import Desk
from batonpass.handoff.tools.declaration import Declared
from batonpass.handoff.tools.json_values import give_back
from batonpass.model.base.content_names import ARGUMENTS, RESULT
from batonpass.model.base.ids import CallId, Digest, ReceiptId, RunId, new_call_id
from batonpass.model.bodies.body import ToolCached, ToolCompleted
from batonpass.model.ledger.run import Cached
from batonpass.store.port import LedgerView
from batonpass.wire.receipt_codec import decode_receipt


class FreshResult(Struct, frozen=True, kw_only=True):
    """A cached result that is still fresh."""

    call: CallId
    receipt: ReceiptId
    value: Any


def cache_key(desk: Desk, root: RunId, declared: Declared, described: bytes) -> Digest | None:
    """Return the cache key of a call: the same for the same tool and arguments in one session or series.

    None for a tool without a cache. None too if the ledger cannot be read: then the call is simply made.
    """
    if declared.cache_for is None:
        return None
    try:
        return desk.secrets.session_digest(root, b"cache", described)
    except StoreError:
        return None


def find_cached(pending: PendingCall) -> Replayed | None:
    """Return the cached result of an identical call if it is fresh, and record that it was used."""
    desk, holding, declared = pending.desk, pending.holding, pending.declared
    if pending.made or declared.cache_for is None:
        return None
    again = find_again(desk, cache_key(desk, holding.root, declared, pending.described), declared)
    if again is None:
        return None
    cached = ToolCached(
        run=holding.id,
        call=new_call_id(desk.clock.now()),
        tool=declared.name,
        made=again.call,
        result=again.receipt,
        key=pending.key,
        flags=tuple(dict.fromkeys(pending.flags)),
    )
    # It uses up nothing, because nothing is called. But the commit still refuses it if the grant was revoked: a result
    # is data as well.
    write_counted(pending, lambda _: cached, [desk.json(ARGUMENTS, pending.described), *pending.beside])
    return Replayed(again.value)


def find_again(desk: Desk, key: Digest | None, declared: Declared) -> FreshResult | None:
    """Return the first result under a key that is fresh, intact and can be given back; None if there is none."""
    if key is None:
        return None
    # A cache only saves a call. Whatever goes wrong with it, the tool is called instead.
    now = desk.clock.now()
    try:
        with desk.store.view() as view:
            for cached in view.find_cached(key):
                if now < cached.until and (again := _read(view, cached, now, declared)) is not None:
                    return again
    except StoreError:
        return None
    return None


def _read(view: LedgerView, cached: Cached, now: datetime, declared: Declared) -> FreshResult | None:
    # The row only says where to look. The signed receipt decides: if it names another cache key, it is not used.
    try:
        receipt = decode_receipt(view.get_receipt(cached.receipt).payload)
    except (NotFoundError, InvalidValueError):
        return None
    body, ref = receipt.body, receipt.content.get(RESULT)
    if not isinstance(body, ToolCompleted) or body.cache != cached.key or body.fresh_until is None or ref is None:
        return None
    # A result from the future: one of the clocks jumped, and nobody knows how old it is. So it is not used.
    if not receipt.at <= now < body.fresh_until:
        return None
    try:
        stored = view.get_content(ref.id)
        if stored.body is None or not is_intact(stored, ref.digest):
            return None
        return FreshResult(
            call=body.call, receipt=receipt.id, value=give_back(stored.body, ref.media_type, declared.decode)
        )
    except (NotFoundError, InvalidValueError):
        return None
