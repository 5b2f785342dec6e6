"""Webhooks: added, removed, given another secret and taken up again; each of these is a receipt."""

from datetime import datetime
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from msgspec import Struct

from batonpass.audit.meant_ids import get_meant_webhook
from batonpass.credentials.port import Secret
from batonpass.dispatch.egress import Egress, EgressAnswer
from batonpass.dispatch.webhook_message import WebhookMessage, trial_message
from batonpass.dispatch.webhook_secret import (
    BOTH_FOR,
    WebhookSecrets,
    new_secret,
    read_secrets,
    secret_file,
    write_secrets,
)
from batonpass.errors import InvalidValueError, NotFoundError
from batonpass.model.base.ids import PrincipalId, WebhookId, new_webhook_id, require_principal
from batonpass.model.base.kinds import WebhookChange
from batonpass.model.bodies.body import Kind, WebhookChanged
from batonpass.records.recipients.webhook import WebhookRecord
from batonpass.relay import Relay, desk_of, home_of

_FAMILIES: Final = frozenset(kind.partition(".")[0] for kind in Kind)


class IssuedWebhook(Struct, frozen=True, kw_only=True):
    """A webhook with its new secret, which is shown this once."""

    id: WebhookId
    secret: Secret


class Webhooks:
    """The webhooks of one relay. Their secrets are beside its keys."""

    def __init__(self, relay: Relay, egress: Egress) -> None:
        self._relay = relay
        self._egress = egress

    def add(self, url: str, *, by: str, kinds: tuple[str, ...] = ()) -> IssuedWebhook:
        """Add a webhook that gets all receipts from now on, and return its secret.

        Raises `EgressRefusedError` if the URL may not be asked, and `InvalidValueError`.
        """
        for kind in kinds:
            if kind not in _FAMILIES and kind not in set(Kind):
                raise InvalidValueError(
                    "kind", f"{kind} is no kind of receipt, such as tool.held, nor a family of them"
                )
        self._egress.judge(url)
        webhook = new_webhook_id(self._now())
        secret = new_secret()
        # The secret first: a webhook without one could never be delivered to.
        write_secrets(self._file(webhook), WebhookSecrets(now=secret))
        body = WebhookChanged(
            webhook=webhook, change=WebhookChange.ADDED, by=_principal(by), kinds=tuple(dict.fromkeys(kinds))
        )
        self._relay.admin.record_webhook(body, url=url)
        return IssuedWebhook(id=webhook, secret=secret)

    def rotate(self, webhook: str, *, by: str) -> IssuedWebhook:
        """Give a webhook another secret, and return it. The one before signs beside it for a day."""
        found = self._present(webhook)
        secret, before = new_secret(), self.secrets(found.id).now
        write_secrets(self._file(found.id), WebhookSecrets(now=secret, before=before, until=self._now() + BOTH_FOR))
        self._change(found, WebhookChange.ROTATED, by)
        return IssuedWebhook(id=found.id, secret=secret)

    def remove(self, webhook: str, *, by: str, reason: str) -> WebhookRecord:
        """Remove a webhook: it is told nothing more."""
        found = self._present(webhook)
        self._change(found, WebhookChange.REMOVED, by, reason)
        self._file(found.id).unlink(missing_ok=True)
        return found

    def resume(self, webhook: str, *, by: str) -> WebhookRecord:
        """Try a webhook again that was given up. It is told everything since then."""
        found = self._present(webhook)
        self._change(found, WebhookChange.RESUMED, by)
        return found

    def give_up(self, webhook: WebhookRecord, reason: str) -> None:
        """Record that a webhook is not tried any more."""
        self._change(webhook, WebhookChange.FAILED, "service:batonpass", reason)

    def test(self, webhook: str) -> EgressAnswer:
        """Send a webhook an event that says nothing, and return its answer. Raises as `Egress.send` does."""
        found = self._present(webhook)
        with self._relay.store.view() as view:
            ledger = view.info().id
        return self.send(found, trial_message(ledger, found.id, self._now()))

    def send(self, webhook: WebhookRecord, message: WebhookMessage) -> EgressAnswer:
        """Send a webhook one message. Raises as `Egress.send` does, and `KeyMissingError` without its secret."""
        headers = message.signed(self.secrets(webhook.id), self._now())
        return self._egress.send("POST", webhook.url or "", headers=headers, body=message.body, wants_body=False)

    def secrets(self, webhook: WebhookId) -> WebhookSecrets:
        """Return the secrets of a webhook of this relay. Raises `KeyMissingError`."""
        return read_secrets(self._file(webhook))

    def own(self) -> tuple[WebhookRecord, ...]:
        """Return the webhooks that this relay delivers to."""
        relay, _ = self._relay.admin.identity()
        return tuple(one for one in self._relay.admin.webhooks() if one.relay == relay and one.is_active)

    def _present(self, webhook: str) -> WebhookRecord:
        with self._relay.store.view() as view:
            found = get_meant_webhook(view, webhook)
        if found.state is WebhookChange.REMOVED:
            raise NotFoundError("webhook", found.id)
        return found

    def _change(self, webhook: WebhookRecord, change: WebhookChange, by: str, reason: str | None = None) -> None:
        body = WebhookChanged(webhook=webhook.id, change=change, by=_principal(by))
        self._relay.admin.record_webhook(body, reason=reason)

    def _file(self, webhook: WebhookId) -> Path:
        home = home_of(self._relay)
        if home is None:
            raise InvalidValueError("ledger", "one in memory has no place for the secret of a webhook")
        return secret_file(home, webhook)

    def _now(self) -> datetime:
        return desk_of(self._relay).clock.now()


def _principal(given: str) -> PrincipalId:
    return require_principal("by", PrincipalId(given))


def place_of(url: str | None) -> str | None:
    """Return the part of a URL that may be shown: the rest is often a secret."""
    if url is None:
        return None
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
