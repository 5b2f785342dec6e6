"""A provider of OpenID Connect: where it is asked, its keys, and whether an ID token is one of its own.

Everything that it is asked goes by the egress rule. Its keys are fetched again when a token names one that is not among
them, which is how providers rotate, and not more often than once in a while.
"""

import base64
import hmac
import json
import threading
import time
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote, urlencode, urlsplit

import jwt
from msgspec import Struct

from batonpass.credentials.port import Secret
from batonpass.dispatch.egress import Egress
from batonpass.errors import LoginRefusedError
from batonpass.model.policy.login_settings import LoginSettings

# None that uses a shared secret, and never `none`: a public key must not become the key of an HMAC.
ALGORITHMS: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
_LEEWAY: Final = 60  # seconds that clocks may differ
_KNOWN_FOR: Final = 3600.0
_AGAIN_AFTER: Final = 30.0
_WELL_KNOWN: Final = "/.well-known/openid-configuration"


class ProviderPlaces(Struct, frozen=True, kw_only=True):
    """Where a provider is asked."""

    authorization: str
    token: str
    keys: str


class LoginProvider:
    """One provider. Safe to use from many threads."""

    def __init__(self, settings: LoginSettings, egress: Egress, secret: Secret | None) -> None:
        self._settings = settings
        self._egress = egress
        self._secret = secret
        self._lock = threading.Lock()
        self._places: ProviderPlaces | None = None
        self._places_at = 0.0
        self._keys: dict[str | None, jwt.PyJWK] = {}
        self._keys_at: float | None = None

    def places(self) -> ProviderPlaces:
        """Return where the provider is asked. Raises `LoginRefusedError` and `EgressError`."""
        with self._lock:
            if self._places is None or time.monotonic() - self._places_at > _KNOWN_FOR:
                self._places, self._places_at = self._discover(), time.monotonic()
            return self._places

    def redirect(self, here: str, *, state: str, nonce: str, challenge: str) -> str:
        """Return where a browser is sent to log in."""
        asked = {
            "response_type": "code",
            "client_id": self._settings.client_id,
            "redirect_uri": here,
            "scope": " ".join(self._settings.scopes),
            "state": state,
            "nonce": nonce,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
        }
        place = self.places().authorization
        return f"{place}{'&' if urlsplit(place).query else '?'}{urlencode(asked)}"

    def exchange(self, code: str, here: str, verifier: str) -> str:
        """Return the ID token for a code. Raises `LoginRefusedError` and `EgressError`."""
        said = {"grant_type": "authorization_code", "code": code, "redirect_uri": here, "code_verifier": verifier}
        headers = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
        if self._secret is None:
            said["client_id"] = self._settings.client_id
        else:
            pair = f"{quote(self._settings.client_id, safe='')}:{quote(self._secret.reveal(), safe='')}"
            headers["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
        answer = self._egress.send("POST", self.places().token, headers=headers, body=urlencode(said).encode())
        found = _object(answer.body) if answer.is_good else {}
        token = found.get("id_token")
        if not isinstance(token, str):
            raise LoginRefusedError("the provider gave no token for this code")
        return token

    def claims(self, token: str, nonce: str) -> Mapping[str, Any]:
        """Return the claims of an ID token that this provider made for this login. Raises `LoginRefusedError`."""
        try:
            header = jwt.get_unverified_header(token)
            if header.get("alg") not in ALGORITHMS or "crit" in header:
                raise LoginRefusedError("the provider signed in a way that is not taken")
            claims: dict[str, Any] = jwt.decode(
                token,
                self._key(header.get("kid"), header["alg"]),
                algorithms=[header["alg"]],
                audience=self._settings.client_id,
                issuer=self._settings.issuer,
                leeway=_LEEWAY,
                options={"require": ["exp", "iat", "aud", "iss", "sub"], "verify_iat": True},
            )
        except jwt.PyJWTError as error:
            raise LoginRefusedError(f"the token of the provider does not hold ({type(error).__name__})") from None
        given = claims.get("nonce")
        if not isinstance(given, str) or not hmac.compare_digest(given.encode(), nonce.encode()):
            raise LoginRefusedError("the token of the provider is for another login")
        others = claims["aud"] if isinstance(claims["aud"], list) else [claims["aud"]]
        if claims.get("azp", self._settings.client_id) != self._settings.client_id or (
            len(others) > 1 and "azp" not in claims
        ):
            raise LoginRefusedError("the token of the provider is for another program")
        return claims

    def _key(self, name: str | None, algorithm: str) -> jwt.PyJWK:
        with self._lock:
            old = self._keys_at is None or time.monotonic() - self._keys_at > _AGAIN_AFTER
        if name not in self._keys and old:
            self._fetch_keys()
        found = self._keys.get(name)
        if found is None and name is None and len(self._keys) == 1:
            found = next(iter(self._keys.values()))
        if found is None:
            raise LoginRefusedError("the provider signed with a key that it does not publish")
        if found.algorithm_name != algorithm:
            raise LoginRefusedError("the provider signed in another way than its key is for")
        return found

    def _fetch_keys(self) -> None:
        answer = self._egress.send("GET", self.places().keys, headers={"Accept": "application/json"})
        listed = _object(answer.body).get("keys") if answer.is_good else None
        keys: dict[str | None, jwt.PyJWK] = {}
        for one in listed if isinstance(listed, list) else []:
            try:
                if isinstance(one, dict) and one.get("use", "sig") == "sig" and one.get("kty") != "oct":
                    keys[one.get("kid")] = jwt.PyJWK(one)
            except jwt.PyJWTError:
                continue  # of a kind that we do not know
        with self._lock:
            self._keys, self._keys_at = keys, time.monotonic()

    def _discover(self) -> ProviderPlaces:
        issuer = self._settings.issuer
        answer = self._egress.send("GET", issuer.rstrip("/") + _WELL_KNOWN, headers={"Accept": "application/json"})
        found = _object(answer.body) if answer.is_good else {}
        if found.get("issuer") != issuer:
            raise LoginRefusedError("the provider says that it is another one than the settings name")
        places = [found.get(name) for name in ("authorization_endpoint", "token_endpoint", "jwks_uri")]
        scheme = urlsplit(issuer).scheme
        if not all(isinstance(one, str) and urlsplit(one).scheme in {"https", scheme} for one in places):
            raise LoginRefusedError("the provider does not say where it is asked")
        return ProviderPlaces(authorization=str(places[0]), token=str(places[1]), keys=str(places[2]))


def _object(body: bytes) -> dict[str, Any]:
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
