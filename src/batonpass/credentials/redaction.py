"""Redaction: secrets are taken out of what is written down, by their value, by their look and by the name beside them.

What was fetched for a run is known, and is taken out wherever it stands. What only looks like a secret, or stands
under a name like `password`, is taken out of arguments, results and messages; not of what people said and handed on,
which stays byte for byte as it is.
"""

import json
import re
import threading
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import quote

GONE: Final = "[redacted]"

# What a tool was given and what came of it. People's own words are not in here.
WORKED: Final = frozenset(
    {"arguments", "judged", "result", "message", "target", "command", "output", "evidence", "scope", "use", "refusal"}
)
# Actions stand in these before what they are done to: `read_secret:billing` assigns nothing.
_SPELLED: Final = frozenset({"scope", "use", "refusal"})

# A value this short would be found all over the place.
_SHORTEST: Final = 8

_NAMES: Final = (
    "password",
    "passwd",
    "passphrase",
    "secret",
    "token",
    "apikey",
    "accesskey",
    "privatekey",
    "signingkey",
    "clientsecret",
    "authorization",
    "cookie",
    "credential",
    "credentials",
)
_NAME_NEARBY: Final = (
    r"(?i)(passw|passphrase|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|signing[_-]?key|authorization|"
    r"cookie|credential)[a-z_-]*[\"']?\s*[:=]"
)

# What well-known services give out. Each begins in a way that nothing else does.
_LOOKS: Final = (
    r"\bgh[pousr]_[A-Za-z0-9]{36,}",
    r"\bgithub_pat_[A-Za-z0-9_]{50,}",
    r"\bglpat-[A-Za-z0-9_-]{20,}",
    r"\bsk-(?:ant-|proj-|svcacct-)?[A-Za-z0-9_-]{20,}",
    r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}",
    r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b",
    r"\bAIza[A-Za-z0-9_-]{35}",
    r"\b(?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]{16,}",
    r"\bnpm_[A-Za-z0-9]{36}\b",
    r"\bpypi-[A-Za-z0-9_-]{50,}",
    r"\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}",
    # Long enough, or where a header says so: there are basic responsibilities as well.
    r"(?i)\bbearer\s+[A-Za-z0-9._~+/-]{20,}=*",
    r"(?i)\bauthorization[\"']?\s*[:=]\s*[\"']?basic\s+[A-Za-z0-9+/]{8,}=*",
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----[^-]*-----END [A-Z ]*PRIVATE KEY-----",
    r"(?i)\b[a-z][a-z0-9+.-]*://[^/\s:@\"'\\]*:[^/\s@\"'\\]+@",
)
# `password=…` in a text, up to where a word ends; in JSON the names of keys are looked at instead.
_ASSIGNED: Final = (
    r"(?i)\b((?:[a-z0-9]+[_-])*(?:password|passwd|passphrase|secret|token|api[_-]?key|access[_-]?key|private[_-]?key)"
    r"\s*[=:]\s*)([^\s\"'\\,;&)\]}]{6,})"
)


class Redactor:
    """Takes secrets out of texts and documents. Safe in many threads; patterns are compiled on first use."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: tuple[str, ...] = ()
        self._compiled: tuple[Any, Any, Any] | None = None

    def know(self, secret: str) -> None:
        """Take this value out from now on, wherever it stands and in whichever common spelling."""
        if len(secret) < _SHORTEST:
            return
        with self._lock:
            spellings = {*self._known, *_spellings(secret)}
            # The longest first: a spelling that holds another one is taken out whole.
            self._known = tuple(sorted(spellings, key=lambda text: (-len(text), text)))

    def text(self, name: str, text: str) -> str:
        """Return the text of a content without secrets."""
        text = self._without_known(text)
        return self._without_looks(text, assigned=name not in _SPELLED) if name in WORKED else text

    def arguments(self, given: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return arguments without what stands under a name like `password`."""
        return _without_named(dict(given), named=False)  # type: ignore[no-any-return]

    def document(self, name: str, document: bytes) -> bytes:
        """Return JSON without secrets, the same bytes if there are none."""
        if not self._known and name not in WORKED:
            return document
        text = document.decode()
        clean = self._without_known(text)
        if name in WORKED:
            clean = self._without_named(self._without_looks(clean, assigned=False))
        return document if clean == text else clean.encode()

    def body(self, name: str, body: bytes) -> bytes:
        """Return bytes without secrets, the same if they are no text, or hold none."""
        if not self._known and name not in WORKED:
            return body
        try:
            text = body.decode()
        except UnicodeDecodeError:
            return self._without_known_bytes(body)
        clean = self.text(name, text)
        return body if clean == text else clean.encode()

    def _without_known(self, text: str) -> str:
        for secret in self._known:
            if secret in text:
                text = text.replace(secret, GONE)
        return text

    def _without_known_bytes(self, body: bytes) -> bytes:
        for secret in self._known:
            body = body.replace(secret.encode(), GONE.encode())
        return body

    def _without_looks(self, text: str, *, assigned: bool) -> str:
        looks, assignment, _ = self._ready()
        text = looks.sub(GONE, text)
        return assignment.sub(rf"\1{GONE}", text) if assigned else text

    def _without_named(self, text: str) -> str:
        _, _, nearby = self._ready()
        if nearby.search(text) is None:
            return text
        try:
            found = json.loads(text)
        except (ValueError, RecursionError):
            return text
        cleaned = _without_named(found, named=False)
        if cleaned == found:
            return text
        return json.dumps(cleaned, sort_keys=True, ensure_ascii=False, separators=(",", ":"))

    def _ready(self) -> tuple[Any, Any, Any]:
        with self._lock:
            if self._compiled is None:
                import re2  # noqa: PLC0415 - compiled code that a program without calls never needs

                options = re2.Options()
                options.max_mem = 64 << 20
                patterns = ("|".join(f"(?:{look})" for look in _LOOKS), _ASSIGNED, _NAME_NEARBY)
                looks, assigned, nearby = (re2.compile(pattern, options) for pattern in patterns)
                self._compiled = looks, assigned, nearby
            return self._compiled


def _spellings(secret: str) -> Iterator[str]:
    yield secret
    yield quote(secret, safe="")
    yield json.dumps(secret)[1:-1]
    yield json.dumps(secret, ensure_ascii=False)[1:-1]
    data = secret.encode("utf-8", "surrogatepass")
    for encode in (b64encode, urlsafe_b64encode):
        yield encode(data).decode().rstrip("=")
    yield data.hex()


def _without_named(value: Any, *, named: bool) -> Any:  # noqa: ANN401 - JSON
    if isinstance(value, dict):
        return {key: _without_named(item, named=named or _is_secret_name(key)) for key, item in value.items()}
    if isinstance(value, list):
        return [_without_named(item, named=named) for item in value]
    return GONE if named and isinstance(value, str) and value else value


def _is_secret_name(name: str) -> bool:
    plain = re.sub(r"[^a-z0-9]", "", name.lower())
    return plain.endswith(_NAMES)
