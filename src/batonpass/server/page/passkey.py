"""Passkeys that people make on the page. Making one records nothing: the holder of the root key enrols it.

A session proves nothing, so it cannot make anybody an approver. The page gives its visitor the public half and the
command that enrols it; they pass it on to somebody who knows them.
"""

import hmac
import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Final
from urllib.parse import urlsplit

from batonpass.errors import InvalidValueError, KeyRefusedError
from batonpass.handoff.approvals.passkey_request import find_own_passkey
from batonpass.handoff.history.holds import approvers_of
from batonpass.model.base.ids import PublicKey
from batonpass.model.base.passkey import Passkey, PasskeyAlgorithm
from batonpass.model.ledger.key import KeyStatus
from batonpass.model.ledger.projection import key_id
from batonpass.server.boundary import is_loopback
from batonpass.server.endpoint import DECIDERS
from batonpass.server.page.request import PageRequest, Shown
from batonpass.signing.rs256 import EXPONENT
from batonpass.signing.ruling_proof import require_usable

_NAME: Final = "Batonpass"
_ES256: Final = -7  # the names of algorithms in COSE
_EDDSA: Final = -8
_RS256: Final = -257
_ALGORITHMS: Final = (_ES256, _EDDSA, _RS256)  # the one that is liked best first
_WAIT_MS: Final = 300_000


def show_passkey(asked: PageRequest) -> Shown:
    """Return the key with which somebody approves, or how they get one."""
    principal = asked.visitor.caller.principal
    with asked.looking() as view:
        active = [key for key in approvers_of(view, principal) if key.status is KeyStatus.ACTIVE]
        own = find_own_passkey(view, principal)
    site, may_decide = site_of(asked.origin), asked.visitor.may(DECIDERS)
    return {
        "key": active[0] if active else None,
        "passkey": None if own is None else own[1],
        "site": site,
        "elsewhere": None if site else f"{_named(asked.origin)}/passkey",
        "options": json.dumps(_options(asked, site)) if site and not active and may_decide else None,
        "may_decide": may_decide,
        "made": None,
    }


def make_passkey(asked: PageRequest, fields: Mapping[str, str]) -> Shown:
    """Return the public half of the passkey that a browser has just made, and how it is enrolled.

    Raises `KeyRefusedError` if its answer was not made here, for this person, now.
    """
    asked.visitor.caller.require_role(DECIDERS)
    made = require_usable(_read_answer(asked, fields))
    return {**show_passkey(asked), "options": None, "made": made, "made_id": key_id(made)}


def site_of(origin: str) -> str | None:
    """Return the name of a host at which browsers make passkeys; None for an address."""
    host = (urlsplit(origin).hostname or "").lower()
    return host if any(letter.isalpha() for letter in host) and ":" not in host else None


def _named(origin: str) -> str:
    """Return an origin by name, if its address is that of this machine."""
    parts = urlsplit(origin)
    if not is_loopback(parts.hostname or ""):
        return ""
    return f"{parts.scheme}://localhost" + ("" if parts.port is None else f":{parts.port}")


def _challenge(asked: PageRequest) -> bytes:
    """Return the challenge of a new passkey: it belongs to this session and this person, so nothing is kept of it."""
    said = f"passkey {asked.visitor.caller.principal}"
    return hmac.digest(asked.visitor.session.form_secret.encode(), said.encode(), "sha256")


def _options(asked: PageRequest, site: str) -> dict[str, Any]:
    principal = asked.visitor.caller.principal
    with asked.looking() as view:
        # The same person at the same ledger is the same account, so that a second passkey replaces the first.
        account = sha256(f"{view.info().id} {principal}".encode()).hexdigest()
    return {
        "rp": {"id": site, "name": _NAME},
        "user": {"id": account, "name": principal, "displayName": asked.visitor.name},
        "challenge": _challenge(asked).hex(),
        "pubKeyCredParams": [{"type": "public-key", "alg": alg} for alg in _ALGORITHMS],
        "authenticatorSelection": {"residentKey": "preferred", "userVerification": "required"},
        "attestation": "none",
        "timeout": _WAIT_MS,
    }


def _read_answer(asked: PageRequest, fields: Mapping[str, str]) -> PublicKey:
    # Imported here because it takes a quarter of a second, and people make a passkey once.
    from webauthn import verify_registration_response  # noqa: PLC0415 - as above
    from webauthn.helpers import bytes_to_base64url, decode_credential_public_key  # noqa: PLC0415 - as above
    from webauthn.helpers.cose import COSEAlgorithmIdentifier  # noqa: PLC0415 - as above
    from webauthn.helpers.decode_credential_public_key import (  # noqa: PLC0415 - as above
        DecodedEC2PublicKey,
        DecodedOKPPublicKey,
        DecodedRSAPublicKey,
    )
    from webauthn.helpers.exceptions import WebAuthnException  # noqa: PLC0415 - as above

    site = site_of(asked.origin)
    if site is None:
        raise KeyRefusedError("a passkey belongs to a name, and this page was asked for by an address")
    credential = fields.get("credential", "")
    answer = {
        "id": credential,
        "rawId": credential,
        "type": "public-key",
        "response": {
            "clientDataJSON": fields.get("client_data", ""),
            "attestationObject": fields.get("attestation", ""),
        },
    }
    try:
        checked = verify_registration_response(
            credential=answer,
            expected_challenge=_challenge(asked),
            expected_rp_id=site,
            expected_origin=asked.origin,
            require_user_verification=True,
            supported_pub_key_algs=[COSEAlgorithmIdentifier(one) for one in _ALGORITHMS],
        )
        key = decode_credential_public_key(checked.credential_public_key)
    except (WebAuthnException, ValueError, KeyError, TypeError, IndexError) as error:
        raise KeyRefusedError(f"what the browser answered is no passkey for this page: {error}") from None
    if isinstance(key, DecodedEC2PublicKey):
        algorithm, public = PasskeyAlgorithm.ES256, key.x + key.y
    elif isinstance(key, DecodedOKPPublicKey):
        algorithm, public = PasskeyAlgorithm.ED25519, key.x
    elif isinstance(key, DecodedRSAPublicKey) and int.from_bytes(key.e) == EXPONENT:
        algorithm, public = PasskeyAlgorithm.RS256, key.n
    else:
        raise KeyRefusedError("this passkey signs in a way that is not checked here; ES256, Ed25519 and RS256 are")
    try:
        return Passkey(
            algorithm=algorithm,
            site=site,
            credential=bytes_to_base64url(checked.credential_id),
            public=public.hex(),
        ).text
    except InvalidValueError as error:
        raise KeyRefusedError(str(error)) from None
