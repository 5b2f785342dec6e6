"""The file `batonpass.toml`: its top-level tables, its values, and their lines."""

import tomllib
from collections.abc import Collection, Mapping
from enum import StrEnum
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, TypeVar

from msgspec import Struct, field

from batonpass.errors import InvalidValueError, PolicyFileError
from batonpass.model.base.checks import shorten
from batonpass.model.base.ids import Digest
from batonpass.policy.file_place import FILE_NAME
from batonpass.policy.line_numbers import Path as Keys
from batonpass.policy.line_numbers import find_lines

POLICY: Final = "policy"
HANDOFFS: Final = "handoffs"
TIERS: Final = "tiers"
RULES: Final = "rules"
CLAUDE_CODE: Final = "claude-code"
MCP: Final = "mcp"
GRANT: Final = "grant"
APPROVERS: Final = "approvers"
NOTIFY: Final = "notify"
EGRESS: Final = "egress"
PEERS: Final = "peers"
LOGIN: Final = "login"
TABLES: Final = (POLICY, HANDOFFS, TIERS, RULES, CLAUDE_CODE, MCP, GRANT, APPROVERS, NOTIFY, EGRESS, PEERS, LOGIN)

_MOST_BYTES: Final = 1024 * 1024

Member = TypeVar("Member", bound=StrEnum)


class DocumentPlace(Struct, frozen=True):
    """A value in the file, with the keys that lead to it, so that errors can name its line."""

    document: "Document"
    keys: Keys
    value: Any

    @property
    def line(self) -> int:
        """Return its line, or that of the nearest enclosing value."""
        keys = self.keys
        while keys and keys not in self.document.lines:
            keys = keys[:-1]
        return self.document.lines.get(keys, 1)

    @property
    def name(self) -> str:
        """Return the keys as people write them."""
        written = [f"[{key + 1}]" if isinstance(key, int) else f".{key}" for key in self.keys]
        return "".join(written).removeprefix(".")

    def error(self, problem: str) -> PolicyFileError:
        """Return an error about this place."""
        return PolicyFileError(self.document.file, self.line, self.name, problem)

    def table(self, known: Collection[str] | None = None) -> Mapping[str, "DocumentPlace"]:
        """Return the values of a table by key. Raises `PolicyFileError` for an unknown key."""
        if not isinstance(self.value, dict):
            raise self.error(f"is not a table; write [{self.name}]")
        places = {key: DocumentPlace(self.document, (*self.keys, key), value) for key, value in self.value.items()}
        for key, place in places.items():
            if known is not None and key not in known:
                raise place.error(f"there is no such key; the keys are {', '.join(known)}")
        return places

    def elements(self, what: str) -> list["DocumentPlace"]:
        """Return the values of an array."""
        if not isinstance(self.value, list):
            raise self.error(f"is not a list of {what}; put it in brackets")
        return [DocumentPlace(self.document, (*self.keys, number), value) for number, value in enumerate(self.value)]

    def texts(self, what: str) -> tuple[str, ...]:
        """Return an array of texts."""
        return tuple(element.text() for element in self.elements(what))

    def text(self) -> str:
        """Return a non-empty text."""
        if not isinstance(self.value, str) or not self.value.strip():
            raise self.error(f'{shorten(self.value)} is not a text; write it in quotes, as "…"')
        return self.value

    def boolean(self) -> bool:
        """Return true or false."""
        if not isinstance(self.value, bool):
            raise self.error(f"{shorten(self.value)} is neither true nor false")
        return self.value

    def integer(self, least: int = 0) -> int:
        """Return a whole number."""
        if isinstance(self.value, bool) or not isinstance(self.value, int) or not least <= self.value < 2**31:
            raise self.error(f"{shorten(self.value)} is not a whole number from {least} on")
        return self.value

    def member(self, members: type[Member]) -> Member:
        """Return the enumeration member with this value."""
        try:
            return members(self.value)
        except ValueError:
            raise self.error(f"{shorten(self.value)} is not one of {', '.join(members)}") from None


class Document(Struct, frozen=True, kw_only=True):
    """The parsed file, with the line of each key and the digest of its bytes."""

    file: str
    digest: Digest | None = None
    content: Mapping[str, Any] = field(default_factory=dict)
    lines: Mapping[Keys, int] = field(default_factory=dict)

    def table(self, name: str) -> DocumentPlace:
        """Return a top-level table; an empty one if it is missing."""
        return DocumentPlace(self, (name,), self.content.get(name, {}))


def read_document(path: Path) -> Document:
    """Return the document in a file. Raises `PolicyFileError` if it cannot be read or has an unknown table."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise PolicyFileError(path.name, 1, "", f"cannot be read: {error.strerror or error}") from None
    return parse_document(data, path.name)


def parse_document(data: bytes, file: str = FILE_NAME) -> Document:
    """Return the document in these bytes. Raises `PolicyFileError`."""
    if len(data) > _MOST_BYTES:
        raise PolicyFileError(file, 1, "", f"has {len(data):,} bytes; a policy has at most {_MOST_BYTES:,}")
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise PolicyFileError(file, line, "", "is not UTF-8 here; save it as UTF-8") from None
    try:
        content = tomllib.loads(text)
        lines = find_lines(text.replace("\r\n", "\n"))
    except (ValueError, RecursionError) as error:
        raise PolicyFileError(file, _line_of(error, text), "", f"is not TOML: {_words_of(error)}") from None
    document = Document(file=file, digest=Digest(sha256(data).hexdigest()), content=content, lines=lines)
    DocumentPlace(document, (), content).table(TABLES)
    return document


def require_fitting(place: DocumentPlace, error: InvalidValueError) -> PolicyFileError:
    """Return an error about a value, with the line of its key."""
    if isinstance(error, PolicyFileError):
        return error  # it has its line already
    key = error.field.rpartition(".")[2]
    inside = isinstance(place.value, dict) and key in place.value
    named = DocumentPlace(place.document, (*place.keys, key), place.value[key]) if inside else place
    return named.error(error.problem if inside else f"{error.field}: {error.problem}")


def _line_of(error: Exception, text: str) -> int:
    # The parser gives the position only in its message: "(at line 3, column 7)" or "(at end of document)".
    _, _, rest = str(error).rpartition("(at line ")
    number = rest.partition(",")[0]
    if number.isdecimal():
        return int(number)
    return text.count("\n") + 1 if str(error).endswith("(at end of document)") else 1


def _words_of(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "it is nested too deep"
    return str(error).partition(" (at ")[0]
