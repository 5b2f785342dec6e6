"""Removes secrets from recorded content: by value, by format, and by the name next to them.

A secret that was fetched for a run is known, and is removed everywhere. Text that only looks like a secret, or stands
under a name like `password`, is removed from arguments, results and messages. The words of people and handoffs are kept
byte for byte.
"""

import json
import shlex
import threading
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, Final
from urllib.parse import quote

from msgspec import Struct

from batonpass.credentials.command_words import PROGRAMS, SHORT_OPTION, is_said
from batonpass.credentials.command_words import without_secrets as without_secret_words
from batonpass.credentials.quoted_pairs import PAIR
from batonpass.credentials.quoted_pairs import without_secrets as without_secret_pairs
from batonpass.credentials.secret_names import GONE, is_secret_name, is_secret_option

# Contents that tools produce or receive. Words of people are not among them.
WORKED: Final = frozenset(
    {"arguments", "judged", "result", "message", "target", "command", "output", "evidence", "scope", "use", "refusal"}
)
# Contents in which an action precedes its resource: `read_secret:billing` is not an assignment.
_SPELLED: Final = frozenset({"scope", "use", "refusal"})
_ACTED: Final = frozenset({"scope", "use"})
_GIVEN: Final = "arguments"
_BY_LINES: Final = "command"  # one word on each line

# A shorter value would match ordinary text.
_SHORTEST: Final = 8

# Without any of these, a text needs no parsing. That is true of most texts.
_NEARBY: Final = (
    r"(?i)passw|passphrase|secret|token|(?:api|access|private|signing)[_-]?key|authorization|cookie|credential|"
    r"(?:[_.-]|\b|store|key)(?:pass|pw|pwd)\b|[a-z0-9]pwd\b|\\u00[0-9a-f]{2}|\b(?:" + "|".join(PROGRAMS) + r")\b|"
    r":(?:\\*/)+[^/\s:@\"]*:[^/\s\"]+(?:@|…|\\u2026)|"
    # In JSON a letter stands before what begins a line, so the formats below see no word begin there.
    r"\\[bfnrt](?:gh[pousr]_|github_pat_|glpat-|[prs]k[-_]|xox[abeoprs]-|AKIA|ASIA|AIza|token_|npm_|pypi-|eyJ|bearer)"
)

# Token formats of well-known services. Each has a prefix that nothing else has.
_LOOKS: Final = (
    r"\bgh[pousr]_[A-Za-z0-9]{36,}",
    r"\bgithub_pat_[A-Za-z0-9_]{50,}",
    r"\bglpat-[A-Za-z0-9_-]{20,}",
    r"\bsk-(?:ant-|proj-|svcacct-)?[A-Za-z0-9_-]{20,}",
    r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}",
    r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b",
    r"\bAIza[A-Za-z0-9_-]{35}",
    r"\b(?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]{16,}",
    r"\btoken_[0-9a-hjkmnp-tv-z]{26}\.[A-Za-z0-9_-]{20,}",
    r"\bnpm_[A-Za-z0-9]{36}\b",
    r"\bpypi-[A-Za-z0-9_-]{50,}",
    r"\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}",
    # Only long ones, or those in a header: prose has "basic responsibilities" too.
    r"(?i)\bbearer\s+[A-Za-z0-9._~+/-]{20,}=*",
    r"(?i)\bauthorization[\"']?\s*[:=]\s*[\"']?basic\s+[A-Za-z0-9+/]{8,}=*",
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----[^-]*-----END [A-Z ]*PRIVATE KEY-----",
    # A password in a URL, up to the last @. One slash is enough: a URL that was normalised as a path has only one.
    r"(?i)\b[a-z][a-z0-9+.-]*:(?:\\?/)+[^/\s:@\"'\\]*:[^/\s\"\\]+@",
    # The same URL, shortened with an ellipsis.
    r"(?i)\b[a-z][a-z0-9+.-]*:(?:\\?/)+[^/\s:@\"'\\]*:[^/\s\"\\@]+…",
)
_HEADER: Final = r"(?i)(\bauthorization[\"']?\s*[:=]\s*[\"']?(?:bearer|token|apikey)\s+)[^\s\"'\\]+"
_BESIDE: Final = r"(?:password|passwd|passphrase|secret|token|api[_-]?key|access[_-]?key|private[_-]?key)"
# `password=…` in a text, up to the end of the word.
_ASSIGNED: Final = rf"(?i)\b((?:[a-z0-9]+[_-])*{_BESIDE}\s*[=:]\s*)([^\s\"'\\,;&)\]}}]{{6,}})"
# `PGPASSWORD=x` and `--token x` in any text: of any length, quoted or not.
_VALUE: Final = r"""((?:'[^']*'|"[^"]*")+|[^\s"'\\]+)"""
_VARIABLE: Final = rf"\b([A-Z][A-Z0-9_]*)={_VALUE}"
_OPTION: Final = rf"(?i)((?:^|[\s\"'(\[,`]))(--?(?:[a-z0-9]+[_-])*{_BESIDE})(=|\s+){_VALUE}"
# The password in `curl --user NAME:PASSWORD`.
_USER: Final = r"""(\bcurl\b[^\n;|&]*?\s(?:-[uU]|--(?:proxy-)?user)[ =]?["']?[^\s:"'\\]*:)[^\s"'\\]+"""
_LONGEST_TEXT: Final = 131_072  # splitting into words is slow; a longer text is only searched
_MOST_DOCUMENTS: Final = 32
_DECODER: Final = json.JSONDecoder()
_DEEPEST: Final = 60


class Redactor:
    """Removes secrets from texts and documents. Thread-safe; patterns are compiled on first use."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: tuple[str, ...] = ()
        self._compiled: _Patterns | None = None

    def know(self, secret: str) -> None:
        """Remove this value from now on, in every common encoding."""
        if len(secret) < _SHORTEST:
            return
        with self._lock:
            spellings = {*self._known, *_spellings(secret)}
            # Longest first, so that a spelling that contains another is removed completely.
            self._known = tuple(sorted(spellings, key=lambda text: (-len(text), text)))

    def text(self, name: str, text: str) -> str:
        """Return the text of a content without secrets."""
        if self._known:
            text = self._without_known(text)
        if name not in WORKED:
            return text
        if name == _BY_LINES:
            text = "\n".join(without_secret_words(text.split("\n")))
        if self._is_harmless(text.encode()):
            return text
        return self._spelled(text) if name in _ACTED else self._clean(text, assigned=name not in _SPELLED)

    def arguments(self, given: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return arguments without the values of secret names, and without text that looks like a secret."""
        return self._walk(dict(given), assigned=True)  # type: ignore[no-any-return]

    def document(self, name: str, document: bytes) -> bytes:
        """Return a JSON document without secrets; the same bytes if there are none."""
        if not self._known and (name not in WORKED or self._is_harmless(document)):
            return document
        text = document.decode()
        clean = self._without_known(text) if self._known else text
        if name in WORKED and not self._is_harmless(clean.encode()):
            clean = self._without_parts(clean, assigned=name == _GIVEN, spelled=name in _ACTED)
        return document if clean == text else clean.encode()

    def body(self, name: str, body: bytes) -> bytes:
        """Return bytes without secrets; the same bytes if they are not text or hold none."""
        if not self._known and (name not in WORKED or (body.isascii() and self._is_harmless(body))):
            return body
        try:
            text = body.decode()
        except UnicodeDecodeError:
            return self._without_known_bytes(body)
        clean = self.text(name, text)
        return body if clean == text else clean.encode()

    def _is_harmless(self, text: bytes) -> bool:
        """Return whether a text in UTF-8 has no sign of a secret.

        The same is then true of every part of it that begins and ends at a word boundary.
        """
        return (self._compiled or self._ready()).sign.search(text) is None

    def _without_known(self, text: str) -> str:
        for secret in self._known:
            if secret in text:
                text = text.replace(secret, GONE)
        return text

    def _without_known_bytes(self, body: bytes) -> bytes:
        for secret in self._known:
            body = body.replace(secret.encode(), GONE.encode())
        return body

    def _clean(self, text: str, *, assigned: bool, depth: int = 0) -> str:
        """Return a text without anything that looks like a secret or follows the name of one."""
        patterns = self._compiled or self._ready()
        if patterns.nearby.search(text) is None:
            return patterns.without_looks(text)
        if (inner := _json_in(text)) is not None and depth < _DEEPEST:
            cleaned = self._walk(inner, assigned=assigned, depth=depth + 1)
            # A duplicate key is lost in parsing; its value is still in the text.
            return without_secret_pairs(
                text if cleaned == inner else json.dumps(cleaned, ensure_ascii=False), patterns.pair
            )
        if len(text) <= _LONGEST_TEXT and depth < _DEEPEST:
            text = "".join(self._without_documents(text, assigned=assigned, depth=depth + 1))
            text = "\n".join(map(_without_words, text.split("\n")))
        text = without_secret_pairs(text, patterns.pair)
        text = patterns.variable.sub(_without_variable, text)
        text = patterns.option.sub(_without_value, text)
        text = patterns.short_option.sub(_without_short, text)
        text = patterns.user.sub(rf"\1{GONE}", text)
        text = patterns.header.sub(rf"\1{GONE}", text)
        # Named values first: they are removed completely, while a format may match only a part of one.
        text = patterns.looks.sub(GONE, text)
        return patterns.assigned.sub(_without_assigned, text) if assigned else text

    def _without_documents(self, text: str, *, assigned: bool, depth: int) -> Iterator[str]:
        """Yield the pieces of a text, with the JSON documents in it cleaned."""
        at = 0
        # Every bracket may open a document, and parsing one may take long: after the limit, text is only searched.
        for start in islice((at for at, character in enumerate(text) if character in "[{"), _MOST_DOCUMENTS):
            if start < at:
                continue
            try:
                found, end = _DECODER.raw_decode(text, start)
            except ValueError:
                continue
            except RecursionError:
                break
            cleaned = self._walk(found, assigned=assigned, depth=depth)
            yield text[at:start]
            yield text[start:end] if cleaned == found else json.dumps(cleaned, ensure_ascii=False)
            at = end
        yield text[at:]

    def _spelled(self, text: str) -> str:
        """Return `action:resource` without secrets; the resource is cleaned alone, so that its format shows."""
        if len(text) > 1 and text[0] == text[-1] == '"':
            return f'"{self._spelled(text[1:-1])}"'  # a permit is quoted if it contains blanks
        action, colon, thing = text.partition(":")
        return f"{action}{colon}{self._clean(thing, assigned=True)}" if colon else self._clean(text, assigned=True)

    def _without_parts(self, text: str, *, assigned: bool, spelled: bool) -> str:
        """Return a document with the secrets in its values replaced."""
        patterns = self._ready()
        if patterns.nearby.search(text) is None:
            return patterns.without_looks(text)
        try:
            found = json.loads(text)
            cleaned = self._walk(found, assigned=assigned, spelled=spelled)
        except (ValueError, RecursionError):
            return without_secret_pairs(patterns.looks.sub(GONE, text), patterns.pair)
        if cleaned == found:
            return without_secret_pairs(text, patterns.pair)  # for duplicate keys, as in _clean
        return json.dumps(cleaned, sort_keys=True, ensure_ascii=False, separators=(",", ":"))

    def _walk(self, value: Any, *, assigned: bool, depth: int = 0, named: bool = False, spelled: bool = False) -> Any:  # noqa: ANN401 - JSON
        match value:
            case dict():
                program = _program_of(value)
                return {
                    self._clean(key, assigned=False)
                    if isinstance(key, str) and not key.isidentifier()
                    else key: self._walk(
                        without_secret_words(item, program) if program is not None and _are_words(item) else item,
                        assigned=assigned,
                        depth=depth,
                        named=named or (isinstance(key, str) and is_secret_name(key)),
                        spelled=spelled,
                    )
                    for key, item in value.items()
                }
            case list():
                items = without_secret_words(value) if _are_words(value) else value
                return [
                    self._walk(item, assigned=assigned, depth=depth, named=named, spelled=spelled) for item in items
                ]
            case str() if spelled and not named:
                return self._spelled(value)
            case str():
                return GONE if named and value else self._clean(value, assigned=assigned, depth=depth)
            case _:
                return value

    def _ready(self) -> "_Patterns":
        with self._lock:
            if self._compiled is None:
                import re2  # noqa: PLC0415 - a slow import that a program without calls never needs

                options = re2.Options()
                options.max_mem = 64 << 20
                looks = "|".join(f"(?:{look})" for look in _LOOKS)
                patterns = (
                    # In bytes, because RE2 works on bytes and most texts arrive as bytes.
                    f"(?:{_NEARBY})|{looks}".encode(),
                    looks,
                    _NEARBY,
                    PAIR,
                    _VARIABLE,
                    _OPTION,
                    SHORT_OPTION,
                    _USER,
                    _HEADER,
                    _ASSIGNED,
                )
                self._compiled = _Patterns(*(re2.compile(pattern, options) for pattern in patterns))
            return self._compiled


class _Patterns(Struct, frozen=True):
    """The compiled patterns. RE2 guarantees linear time for all of them."""

    sign: Any  # matches wherever one of the next two does
    looks: Any
    nearby: Any
    pair: Any
    variable: Any
    option: Any
    short_option: Any
    user: Any
    header: Any
    assigned: Any

    def without_looks(self, text: str) -> str:
        """Return a text without tokens of a known format."""
        return text if self.looks.search(text) is None else str(self.looks.sub(GONE, text))


def _spellings(secret: str) -> Iterator[str]:
    yield secret
    yield quote(secret, safe="")
    yield json.dumps(secret)[1:-1]
    yield json.dumps(secret, ensure_ascii=False)[1:-1]
    data = secret.encode("utf-8", "surrogatepass")
    for encode in (b64encode, urlsafe_b64encode):
        yield encode(data).decode().rstrip("=")
    yield data.hex()


def _json_in(text: str) -> Any:  # noqa: ANN401 - JSON
    """Return the JSON document that a text consists of; None if it is not one."""
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _without_words(line: str) -> str:
    """Return a line without secrets if it is a command line as `shlex.join` writes it; otherwise unchanged."""
    try:
        words = shlex.split(line)
    except ValueError:
        return line
    return shlex.join(without_secret_words(words, sentence=True)) if shlex.join(words) == line else line


def _are_words(value: object) -> bool:
    return isinstance(value, list) and len(value) > 0 and all(isinstance(item, str) for item in value)


def _program_of(fields: Mapping[Any, Any]) -> str | None:
    """Return the program that an argument list belongs to: a recorded command has its line next to it."""
    line = fields.get("line")
    return line.split(" ", 1)[0] if isinstance(line, str) else None


def _without_variable(found: Any) -> str:  # noqa: ANN401 - a match
    return f"{found[1]}={GONE}" if is_secret_name(found[1]) else str(found[0])


def _without_value(found: Any) -> str:  # noqa: ANN401 - a match
    before, option, between, value = found.groups()
    stays = not is_secret_option(option) or (is_said(value) if between != "=" else value == GONE)
    return str(found[0]) if stays else f"{before}{option}{between}{GONE}"


def _without_short(found: Any) -> str:  # noqa: ANN401 - a match
    option, value = (part for part in found.groups() if part is not None)
    return str(found[0]) if is_said(value) else f"{option}{GONE}"


def _without_assigned(found: Any) -> str:  # noqa: ANN401 - a match
    # The pattern stops at a bracket, so it also matches a value that was replaced before.
    return str(found[0]) if GONE.startswith(found[2]) else f"{found[1]}{GONE}"
