"""A provider of OpenID Connect without a network: it knows one person, and does as a test says."""

import base64
import contextlib
import hashlib
import json
import socket
import threading
import time
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa

from batonpass.dispatch.egress import Egress, EgressLimits
from batonpass.dispatch.egress_rule import EgressRule
from batonpass.model.policy.listed_place import read_listed

ISSUER = "http://login.internal"
CLIENT = "batonpass-page"
KEYS = [rsa.generate_private_key(public_exponent=65537, key_size=2048) for _ in range(2)]


@dataclass(slots=True)
class Provider:
    """Answers what a browser and a server ask of it."""

    claims: dict[str, Any] = field(default_factory=dict)  # over what an honest token has
    header: dict[str, Any] = field(default_factory=dict)
    without: tuple[str, ...] = ()
    key: int = 0  # which of its keys signs
    published: tuple[int, ...] = (0,)
    discovery: dict[str, Any] = field(default_factory=dict)
    secret: str | None = None
    fetched: list[str] = field(default_factory=list)
    asked: dict[str, str] = field(default_factory=dict)  # by the browser, at the authorization endpoint
    forged: str | None = None  # a token of somebody else's making

    def egress(self) -> Egress:
        """Return the only way to it."""
        rule = EgressRule([read_listed("login.internal")], resolve=lambda *_: ["127.0.0.1"])
        return Egress(rule, limits=EgressLimits(seconds=60), dial=self._dial)

    def log_in(self, place: str) -> str:
        """Log in as the person that it knows, at the address that a browser was sent to; return the code."""
        self.asked = {name: values[0] for name, values in parse_qs(urlsplit(place).query).items()}
        return "code-1"

    def token(self) -> str:
        """Return an ID token for the login under way."""
        now = int(time.time())
        honest = {
            "iss": ISSUER,
            "sub": "ana",
            "aud": CLIENT,
            "iat": now,
            "exp": now + 300,
            "nonce": self.asked.get("nonce"),
            "groups": ["staff", "ops"],
        }
        claims = {name: said for name, said in {**honest, **self.claims}.items() if name not in self.without}
        headers = {"kid": f"key-{self.key}", **self.header}
        return jwt.encode(claims, KEYS[self.key], algorithm="RS256", headers=headers)

    def answer(self, path: str, body: str, headers: dict[str, str]) -> tuple[int, Any]:
        """Answer a request of a server."""
        self.fetched.append(path)
        if path == "/.well-known/openid-configuration":
            places = {"authorization_endpoint": "authorize", "token_endpoint": "token", "jwks_uri": "keys"}
            found = {"issuer": ISSUER, **{name: f"{ISSUER}/{place}" for name, place in places.items()}}
            return 200, {**found, **self.discovery}
        if path == "/keys":
            return 200, {"keys": [{"kty": "odd"}, *(self._published(one) for one in self.published)]}
        said = {name: values[0] for name, values in parse_qs(body).items()}
        digest = base64.urlsafe_b64encode(hashlib.sha256(said["code_verifier"].encode()).digest()).rstrip(b"=")
        if said["code"] != "code-1" or digest.decode() != self.asked["code_challenge"]:
            return 400, {"error": "invalid_grant"}
        if self.secret is not None:
            pair = base64.b64encode(f"{CLIENT}:{self.secret}".encode()).decode()
            if headers.get("authorization") != f"Basic {pair}":
                return 401, {"error": "invalid_client"}
        return 200, {"access_token": "x", "token_type": "Bearer", "id_token": self.forged or self.token()}

    def _published(self, number: int) -> dict[str, Any]:
        public = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(KEYS[number].public_key()))
        return {**public, "kid": f"key-{number}", "use": "sig", "alg": "RS256"}

    def _dial(self, _address: str, _port: int, seconds: float) -> socket.socket:
        ours, theirs = socket.socketpair()
        ours.settimeout(seconds)
        threading.Thread(target=self._serve, args=(theirs,), daemon=True).start()
        return ours

    def _serve(self, theirs: socket.socket) -> None:
        with theirs, contextlib.suppress(OSError):
            got = b""
            while b"\r\n\r\n" not in got:
                got += theirs.recv(65536)
            head, _, body = got.partition(b"\r\n\r\n")
            first, *lines = head.decode().split("\r\n")
            headers = {name.lower(): said for name, _, said in (line.partition(": ") for line in lines)}
            while len(body) < int(headers.get("content-length", "0")):
                body += theirs.recv(65536)
            status, said = self.answer(first.split()[1], body.decode(), headers)
            sent = json.dumps(said).encode()
            theirs.sendall(f"HTTP/1.1 {status} Said\r\nContent-Length: {len(sent)}\r\n\r\n".encode() + sent)
