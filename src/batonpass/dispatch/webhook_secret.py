"""The secrets of webhooks, and their signatures, as Standard Webhooks say.

A secret is shown once, when it is made. It is kept as keys are: in a file that only its owner can read. After a
rotation the one before signs beside the new one for a day, so that nobody has to change both sides at the same moment.
"""

import base64
import hmac
import os
from datetime import datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Final

from msgspec import Struct

from batonpass.credentials.port import Secret
from batonpass.errors import KeyRefusedError
from batonpass.model.base.ids import WebhookId
from batonpass.signing.keyfile import read_private, write_private

PREFIX: Final = "whsec_"
BOTH_FOR: Final = timedelta(hours=24)
_FOLDER: Final = "webhooks"
_FORMAT: Final = "batonpass-webhook-v1"
_BYTES: Final = 32


class WebhookSecrets(Struct, frozen=True, kw_only=True):
    """The secret of a webhook, and maybe the one before it."""

    now: Secret
    before: Secret | None = None
    until: datetime | None = None  # when the one before ends

    def in_use(self, at: datetime) -> tuple[Secret, ...]:
        """Return the secrets that sign at this moment, the present one first."""
        both = self.before is not None and self.until is not None and at < self.until
        return (self.now, self.before) if both and self.before is not None else (self.now,)


def new_secret() -> Secret:
    """Return a fresh secret."""
    return Secret(PREFIX + base64.b64encode(os.urandom(_BYTES)).decode())


def sign_message(secrets: tuple[Secret, ...], message: str, at: datetime, body: bytes) -> str:
    """Return the header `webhook-signature` of a message: one signature for each secret."""
    signed = b".".join((message.encode(), str(int(at.timestamp())).encode(), body))
    return " ".join(f"v1,{_signature(secret, signed)}" for secret in secrets)


def _signature(secret: Secret, signed: bytes) -> str:
    key = base64.b64decode(secret.reveal().removeprefix(PREFIX))
    return base64.b64encode(hmac.new(key, signed, sha256).digest()).decode()


def secret_file(home: Path, webhook: WebhookId) -> Path:
    """Return where the secret of a webhook is."""
    return home / _FOLDER / f"{webhook}.secret"


def write_secrets(path: Path, secrets: WebhookSecrets) -> None:
    """Keep secrets durably; only their owner can read them."""
    words = [_FORMAT, secrets.now.reveal()]
    if secrets.before is not None and secrets.until is not None:
        words += [secrets.before.reveal(), secrets.until.isoformat()]
    write_private(path, f"{' '.join(words)}\n")


def read_secrets(path: Path) -> WebhookSecrets:
    """Return the secrets in a file. Raises `KeyMissingError` and `KeyRefusedError`."""
    match read_private(path).split():
        case [form, now] if form == _FORMAT:
            return WebhookSecrets(now=Secret(now))
        case [form, now, before, until] if form == _FORMAT:
            return WebhookSecrets(now=Secret(now), before=Secret(before), until=datetime.fromisoformat(until))
        case _:
            raise KeyRefusedError(f"{path} is not the secret of a webhook")
