"""Webhooks as they were added and changed: their addresses, their filters, and whether they are active."""

from collections.abc import Iterator
from datetime import datetime

from msgspec import Struct, structs

from batonpass.model.base.content_names import REASON, URL
from batonpass.model.base.ids import PrincipalId, ReceiptId, RelayId, StreamId, WebhookId
from batonpass.model.base.kinds import Kind, WebhookChange
from batonpass.model.bodies.body import WebhookChanged
from batonpass.records.text import read_receipt, read_texts
from batonpass.store.port import LedgerView, ReceiptQuery


class WebhookRecord(Struct, frozen=True, kw_only=True):
    """A webhook: its address, the kinds that it gets, who added it, and its latest state."""

    id: WebhookId
    relay: RelayId  # the relay that has its secret, and delivers
    receipt: ReceiptId  # that added it
    position: int | None  # of that receipt: it gets those after it
    url: str | None  # None: somebody erased it
    kinds: tuple[str, ...]
    added_by: PrincipalId
    added_at: datetime
    state: WebhookChange
    changed_by: PrincipalId
    changed_at: datetime
    reason: str | None = None  # of the last change

    @property
    def is_active(self) -> bool:
        """Return whether it gets new receipts."""
        return self.state not in {WebhookChange.FAILED, WebhookChange.REMOVED} and self.url is not None

    def wants(self, kind: str) -> bool:
        """Return whether it is told of receipts of a kind."""
        return not self.kinds or any(kind == one or kind.startswith(f"{one}.") for one in self.kinds)


def find_webhooks(view: LedgerView) -> Iterator[WebhookRecord]:
    """Yield all webhooks, the first that was added first, those that were removed included."""
    # They stand in the streams of relays, which are short, so no index is kept for them.
    relays = dict.fromkeys(key.relay for key in view.find_keys() if key.relay is not None)
    found = [one for relay in relays for one in _webhooks_of(view, relay).values()]
    yield from sorted(found, key=lambda one: (one.added_at, one.id))


def _webhooks_of(view: LedgerView, relay: RelayId) -> dict[WebhookId, WebhookRecord]:
    known: dict[WebhookId, WebhookRecord] = {}
    for stored in view.find_receipts(ReceiptQuery(stream=StreamId(relay), kind=Kind.WEBHOOK_CHANGED)):
        receipt = read_receipt(stored)
        if not isinstance(receipt.body, WebhookChanged):
            continue
        body, texts = receipt.body, read_texts(view, receipt)
        url, reason = texts.get(URL), texts.get(REASON)
        now = WebhookRecord(
            id=body.webhook,
            relay=relay,
            receipt=receipt.id,
            position=stored.position,
            url=None if url is None else url.words,
            kinds=body.kinds,
            added_by=body.by,
            added_at=receipt.at,
            state=body.change,
            changed_by=body.by,
            changed_at=receipt.at,
            reason=None if reason is None else reason.words,
        )
        before = known.get(body.webhook)
        known[body.webhook] = (
            now
            if before is None
            else structs.replace(
                before, state=now.state, changed_by=now.changed_by, changed_at=now.changed_at, reason=now.reason
            )
        )
    return known
