"""An authenticator without a browser: it makes passkeys and signs as real ones do, and lies where a test wants it."""

import json
from base64 import urlsafe_b64encode
from dataclasses import dataclass, field, replace
from datetime import datetime
from hashlib import sha256
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.hashes import SHA256

from batonpass.handoff.approvals.decision_sheet import Material
from batonpass.handoff.approvals.passkey_request import request_signature
from batonpass.model.base.ids import PrincipalId
from batonpass.model.base.passkey import Passkey, PasskeyAlgorithm
from batonpass.model.bodies.body import PasskeyAnswer
from batonpass.model.ledger.projection import key_id
from batonpass.relay import Relay, desk_of
from batonpass.signing.approver_key import Approver
from batonpass.signing.ruling_proof import PasskeySigner, challenge_of, read_signature

SITE = "batonpass.example"
ORIGIN = f"https://{SITE}"
PRESENT, VERIFIED = 0x01, 0x04


def base64url(data: bytes) -> str:
    """Return bytes as browsers write them."""
    return urlsafe_b64encode(data).rstrip(b"=").decode()


@dataclass(frozen=True, slots=True)
class Authenticator:
    """A device with one passkey for one site."""

    site: str = SITE
    origin: str = ORIGIN
    flags: int = PRESENT | VERIFIED
    counter: int = 0
    credential: bytes = b"a credential"
    home: str = SITE  # for which it was made
    more: dict[str, Any] = field(default_factory=dict)  # what else the browser says
    key: EllipticCurvePrivateKey = field(default_factory=lambda: ec.generate_private_key(ec.SECP256R1()))

    @property
    def passkey(self) -> Passkey:
        """Return its public half."""
        point = self.key.public_key().public_numbers()
        public = point.x.to_bytes(32, "big") + point.y.to_bytes(32, "big")
        return Passkey(
            algorithm=PasskeyAlgorithm.ES256, site=self.home, credential=base64url(self.credential), public=public.hex()
        )

    def but(self, **changed: Any) -> "Authenticator":  # noqa: ANN401 - any of the fields above
        """Return the same device that says something else."""
        return replace(self, **changed)

    def answer(self, challenge: bytes) -> tuple[PasskeyAnswer, bytes]:
        """Return what browser and device say to a challenge, and the signature as the device makes it."""
        said = {"type": "webauthn.get", "challenge": base64url(challenge), "origin": self.origin, "crossOrigin": False}
        client = json.dumps({**said, **self.more})
        data = sha256(self.site.encode()).digest() + bytes([self.flags]) + self.counter.to_bytes(4, "big")
        made = self.key.sign(data + sha256(client.encode()).digest(), ec.ECDSA(SHA256()))
        return PasskeyAnswer(client_data=client, authenticator_data=data.hex()), made

    def approver(self, principal: PrincipalId, payload: bytes, at: datetime) -> Approver:
        """Return somebody whose device has signed a ruling."""
        answer, made = self.answer(challenge_of(payload))
        own = self.passkey
        signer = PasskeySigner(key_id(own.text), own.text, read_signature(own.algorithm, made))
        return Approver(principal, signer, at, answer)


def asked(
    relay: Relay,
    held: str,
    device: Authenticator,
    by: PrincipalId,
    *,
    shown: Material,
    looked_ms: int | None = None,
    approved: bool = True,
) -> Approver:
    """Return somebody whose device was asked to sign exactly this ruling."""
    made = request_signature(desk_of(relay), held, approved=approved, by=by, shown=shown, looked_ms=looked_ms)
    return device.approver(by, made.ruling, made.at)
