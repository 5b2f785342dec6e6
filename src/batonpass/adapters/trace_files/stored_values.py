"""Values as LangGraph's serialiser stores them, decoded without making an object of any class.

An object there is a name and its fields here. Pickled values are never loaded.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec import Struct

# Extensions of msgpack: module, name, then the arguments, and for the last ones a method.
_POSITIONAL: Final = frozenset({0, 1, 3})
_NAMED: Final = frozenset({2, 4, 5})
_DEEPEST: Final = 50  # objects in objects
_NAME, _FIELDS = 1, 2


class StoredObject(Struct, frozen=True):
    """An object of some class: its name, and its fields or arguments."""

    name: str
    value: Any

    @property
    def fields(self) -> Mapping[str, Any]:
        """Return its fields; none if it has arguments instead."""
        return self.value if isinstance(self.value, dict) else {}


class UnreadableValueError(ValueError):
    """A value is stored in a way that is not read."""


def decode_stored(kind: str | None, data: bytes | None) -> Any:  # noqa: ANN401 - whatever a program keeps
    """Return a stored value. Raises one of `UNREADABLE` if it is damaged or of a kind that is not read."""
    if kind in {None, "null", "empty"} or data is None:
        return None
    if kind == "msgpack":
        return _decode(data, 0)
    if kind == "json":
        return _revived(msgspec.json.decode(data), 0)
    if kind in {"bytes", "bytearray"}:
        return f"({len(data):,} bytes)"
    raise UnreadableValueError(f"is stored as {kind!r}, which is not read")


def plain(value: Any, depth: int = 0) -> Any:  # noqa: ANN401 - as above
    """Return a value as JSON can have it: of an object its fields."""
    if depth > _DEEPEST:
        return "…"
    if isinstance(value, StoredObject):
        return plain(value.value, depth + 1)
    if isinstance(value, dict):
        return {str(key): plain(one, depth + 1) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one, depth + 1) for one in value]
    return value if isinstance(value, str | int | float | bool | None) else str(value)


def _decode(data: bytes | memoryview, depth: int) -> Any:  # noqa: ANN401 - as above
    if depth > _DEEPEST:
        raise UnreadableValueError("is nested too deep")

    def extended(code: int, inside: memoryview) -> Any:  # noqa: ANN401 - as above
        told = _decode(bytes(inside), depth + 1)
        if not isinstance(told, list) or len(told) <= _FIELDS or code not in _POSITIONAL | _NAMED:
            return StoredObject(f"extension {code}", None)
        return StoredObject(str(told[_NAME]), told[_FIELDS])

    return msgspec.msgpack.decode(data, ext_hook=extended)


def _revived(value: Any, depth: int) -> Any:  # noqa: ANN401 - as above
    """Return JSON in which objects are written as `{"lc": 2, "type": "constructor", "id": [...], "kwargs": {...}}`."""
    if depth > _DEEPEST:
        raise UnreadableValueError("is nested too deep")
    if isinstance(value, list):
        return [_revived(one, depth + 1) for one in value]
    if not isinstance(value, dict):
        return value
    made = {key: _revived(one, depth + 1) for key, one in value.items()}
    match made:
        case {"lc": int(), "type": "constructor", "id": [*_, str(name)], "kwargs": dict(fields)}:
            return StoredObject(name, fields)
    return made
