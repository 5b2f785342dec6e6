"""One message to a webhook: a CloudEvent in structured form, signed as Standard Webhooks say."""

import secrets
from datetime import datetime
from importlib.metadata import version
from typing import Final

import msgspec
from msgspec import Struct

from batonpass.dispatch.webhook_secret import WebhookSecrets, sign_message
from batonpass.model.base.ids import LedgerId, WebhookId
from batonpass.model.ledger.receipt import Receipt, StoredReceipt
from batonpass.telemetry.cloud_event import MEDIA_TYPE, SPECVERSION, CloudEvent, cloud_event, source_of

TRIAL: Final = "batonpass.webhook.test"


class WebhookMessage(Struct, frozen=True, kw_only=True):
    """A message. Its id stays the same however often it is sent, and to how many recipients."""

    id: str
    body: bytes

    def signed(self, secrets: WebhookSecrets, at: datetime) -> dict[str, str]:
        """Return the headers with which it is sent at a moment."""
        return {
            "Content-Type": f"{MEDIA_TYPE}; charset=utf-8",
            "User-Agent": f"batonpass/{version('batonpass')}",
            "webhook-id": self.id,
            "webhook-timestamp": str(int(at.timestamp())),
            "webhook-signature": sign_message(secrets.in_use(at), self.id, at, self.body),
        }


def receipt_message(ledger: LedgerId, stored: StoredReceipt, receipt: Receipt) -> WebhookMessage:
    """Return the message about a receipt. It has ids, codes and digests, and no word that anybody wrote."""
    return _message(cloud_event(ledger, stored, receipt))


def trial_message(ledger: LedgerId, webhook: WebhookId, at: datetime) -> WebhookMessage:
    """Return a message that is about nothing, to try a webhook with."""
    return _message(
        CloudEvent(
            specversion=SPECVERSION,
            id=f"test_{secrets.token_hex(8)}",
            source=source_of(ledger),
            type=TRIAL,
            subject=webhook,
            time=at.isoformat(timespec="microseconds").replace("+00:00", "Z"),
            datacontenttype="application/json",
            data={"webhook": webhook},
        )
    )


def _message(event: CloudEvent) -> WebhookMessage:
    return WebhookMessage(id=event.id, body=msgspec.json.encode(event))
