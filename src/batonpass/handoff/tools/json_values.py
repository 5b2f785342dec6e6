"""Arguments and results as JSON: how they are recorded, and how a later attempt gets a result back."""

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date
from decimal import Decimal
from enum import Enum
from functools import singledispatch
from hashlib import sha256
from os import PathLike, fsdecode
from types import NoneType
from typing import Any, Final
from uuid import UUID

from msgspec import Struct, field
from msgspec.json import Encoder

from batonpass.errors import InvalidValueError
from batonpass.handoff.tools.arguments import DEEPEST, type_name
from batonpass.model.base.value import parts_of
from batonpass.model.grants.call import Opaque

JSON: Final = "application/json"
BYTES: Final = "application/octet-stream"
TEXT: Final = "text/plain"
SHOWN: Final = "application/vnd.batonpass.shown"  # it has no JSON form: this is only how it looked

_ADDRESS: Final = re.compile(r" at 0x[0-9A-Fa-f]+")
_MOST_PARTS: Final = 1_000_000
_MOST_BITS: Final = 10_000  # Python refuses to write much longer integers as decimals

# The types of most arguments: they hold nothing that could change, and cannot contain themselves.
FLAT: Final = frozenset({str, bool, NoneType, int, float})
_ENCODER: Final = Encoder(order="sorted")
# Within these bounds, both encoders write all digits of a number and no exponent.
_LEAST_SPELLED: Final = 1e-4
_MOST_SPELLED: Final = 1e15
_FEW_LEVELS: Final = 4
_FEW_PARTS: Final = 30  # on each level, so fewer than a million in all


class _Walk(Struct):
    """Where a walk through a value stands: the containers around it, and how many more parts it may read."""

    around: list[int] = field(default_factory=list)  # the ids of the containers, from the outside in
    left: int = field(default_factory=lambda: _MOST_PARTS)


def describe(arguments: Mapping[str, object]) -> bytes:
    """Return arguments as JSON. The same call gives the same bytes in every process."""
    return json.dumps(plain(arguments), sort_keys=True, ensure_ascii=False, separators=(",", ":")).encode()


def describe_call(tool: str, arguments: Mapping[str, Any]) -> bytes:
    """Return tool and arguments as `describe` does. The arguments are `plain` already."""
    if not _is_written_alike(arguments, _FEW_LEVELS):
        # This walks through everything again, because parts are counted over all arguments together.
        return describe({"tool": tool, "arguments": arguments})
    return _ENCODER.encode({"tool": tool, "arguments": arguments})


def _is_written_alike(value: Any, levels: int) -> bool:  # noqa: ANN401 - JSON
    """Return whether a `plain` value is small, and both encoders write the same bytes for it."""
    kind = type(value)
    if kind is str or kind is bool or value is None:
        return True
    if kind is int or kind is float:
        return -_MOST_SPELLED < value < _MOST_SPELLED and (kind is int or not value or abs(value) >= _LEAST_SPELLED)
    if levels == 0 or (kind is not dict and kind is not list) or len(value) > _FEW_PARTS:
        return False
    if kind is dict and not "".join(value).isascii():
        return False
    # A loop like the one above: this runs for every argument of every call.
    for item in value.values() if kind is dict else value:  # noqa: SIM110
        if not _is_written_alike(item, levels - 1):
            return False
    return True


def is_as_described(value: object) -> bool:
    """Return whether the description of a value of a `FLAT` type is the value itself."""
    kind = type(value)
    if kind is str:
        return value.isascii()  # type: ignore[attr-defined,no-any-return]
    if kind is int:
        return value.bit_length() < _MOST_BITS  # type: ignore[attr-defined,no-any-return]
    return kind is not float or math.isfinite(value)  # type: ignore[arg-type]


def plain(value: object) -> Any:  # noqa: ANN401 - JSON
    """Return a value as JSON. A value without a JSON form is shown as text, with its type.

    A subclass of a built-in type is read through the built-in type, not through its own methods. Other objects are read
    through their own methods, and may raise anything. Raises `InvalidValueError` for a value with too many parts.
    """
    return _within(value, _Walk())


def _within(value: object, walk: _Walk) -> Any:  # noqa: ANN401 - JSON
    kind = type(value)
    if kind in FLAT and walk.left > 0 and len(walk.around) <= DEEPEST and is_as_described(value):
        walk.left -= 1
        return value
    if len(walk.around) > DEEPEST:
        return {"shown": "nested too deep"}
    if id(value) in walk.around:
        return {"shown": "<circular reference>"}
    walk.left -= 1
    if walk.left < 0:
        raise InvalidValueError("arguments", f"have more than {_MOST_PARTS:,} parts; attach them as an artifact")
    walk.around.append(id(value))
    try:
        return _plain(value, walk)
    finally:
        walk.around.pop()


@singledispatch
def _plain(value: object, walk: _Walk) -> Any:  # noqa: ANN401 - JSON
    if (parts := parts_of(value)) is not None:
        return {name: _within(part, walk) for name, part in parts.items()}
    return {"shown": looks(value), "type": type_name(value)}


@_plain.register
def _(value: Opaque, _: _Walk) -> Opaque:
    return value  # only while arguments are checked: no condition holds for it


@_plain.register(type(None))
@_plain.register(bool)
def _(value: object, _: _Walk) -> object:
    return value


@_plain.register
def _(value: int, _: _Walk) -> object:
    number = int.__int__(value)
    return number if number.bit_length() < _MOST_BITS else {"integer": hex(number)}


@_plain.register
def _(value: str, _: _Walk) -> str:
    return readable(value)


@_plain.register
def _(value: float, _: _Walk) -> object:
    number = float.__float__(value)
    return number if math.isfinite(number) else str(number)


@_plain.register(Decimal)
@_plain.register(date)
@_plain.register(UUID)
def _(value: object, _: _Walk) -> str:
    return readable(str(value))


@_plain.register
def _(value: Enum, walk: _Walk) -> Any:  # noqa: ANN401 - JSON
    return _within(value.value, walk)


@_plain.register(bytes)
@_plain.register(bytearray)
@_plain.register(memoryview)
def _(value: bytes, _: _Walk) -> dict[str, object]:
    return {"sha256": sha256(value).hexdigest(), "size": len(value)}


@_plain.register(PathLike)
def _(value: "PathLike[str]", _: _Walk) -> str:
    return readable(fsdecode(value))


@_plain.register(Mapping)
def _(value: Mapping[object, object], walk: _Walk) -> dict[str, Any]:
    items = dict.items(value) if isinstance(value, dict) else value.items()
    return {_name(key): _within(item, walk) for key, item in items}


@_plain.register(list)
def _(value: list[Any], walk: _Walk) -> list[Any]:
    return [_within(item, walk) for item in list.__iter__(value)]


@_plain.register(tuple)
def _(value: tuple[Any, ...], walk: _Walk) -> list[Any]:
    return [_within(item, walk) for item in tuple.__iter__(value)]


@_plain.register(set)
def _(value: set[Any], walk: _Walk) -> list[Any]:
    return _ordered(_within(item, walk) for item in set.__iter__(value))


@_plain.register(frozenset)
def _(value: frozenset[Any], walk: _Walk) -> list[Any]:
    return _ordered(_within(item, walk) for item in frozenset.__iter__(value))


def _ordered(items: Iterable[Any]) -> list[Any]:
    return sorted(items, key=lambda item: json.dumps(item, sort_keys=True, default=repr))


def keep_result(value: object, encode: Callable[[Any], bytes] | None = None) -> tuple[bytes, str]:
    """Return a result as bytes with their media type. A later attempt gets an equal value back.

    A value for which that is impossible is only shown: the call was made and has an outcome, whatever it returned.
    """
    try:
        kept = _kept(value, encode)
    except Exception:  # noqa: BLE001 - encoders, comparisons and iterators are not ours, and may raise anything
        kept = None
    return kept or (looks(value).encode(), SHOWN)


def _kept(value: object, encode: Callable[[Any], bytes] | None) -> tuple[bytes, str] | None:
    if encode is not None:
        encoded = encode(value)
        return (encoded, BYTES) if isinstance(encoded, bytes) else None
    if isinstance(value, bytes):
        return bytes(value), BYTES
    if isinstance(value, str) and ((type(value) is str and value.isascii()) or readable(value) == value):
        return value.encode(), TEXT
    data = json.dumps(value, allow_nan=False, ensure_ascii=False).encode()
    # A tuple, or a dict with keys that are not text, would come back as something else. It is only shown.
    return (data, JSON) if json.loads(data) == value else None


def give_back(body: bytes, media_type: str, decode: Callable[[bytes], Any] | None = None) -> Any:  # noqa: ANN401 - a tool's own result
    """Return a recorded result as a value. Raises `InvalidValueError` if it was only shown."""
    if decode is not None and media_type != SHOWN:
        return decode(body)
    match media_type:
        case "application/octet-stream":
            return body
        case "text/plain":
            return body.decode()
        case "application/json":
            return json.loads(body)
        case _:
            raise InvalidValueError(
                "result",
                "of an earlier attempt has no form that can be kept; declare the tool with encode= and decode=",
            )


def readable(text: str) -> str:
    """Return a text in which everything that is not valid Unicode is spelled out."""
    if type(text) is str and text.isascii():
        return text
    return str.encode(text, "utf-8", "backslashreplace").decode()


def _name(key: object) -> str:
    try:
        return readable(str(key))
    except Exception:  # noqa: BLE001 - as in looks
        return looks(key)


def looks(value: object) -> str:
    """Return how a value looks, even if its own `repr` fails."""
    try:
        # The address in memory differs every time, and the same call would never be recognised.
        return _ADDRESS.sub("", readable(repr(value)))
    except Exception as error:  # noqa: BLE001 - a repr may raise anything, and the call is still recorded
        return f"<{type(value).__qualname__} that cannot be shown: {type(error).__name__}>"


def strings_in(value: Any) -> Iterator[str]:  # noqa: ANN401 - JSON
    """Yield all texts and numbers in a document as texts, including the names of its fields."""
    pending = [value]
    while pending:
        one = pending.pop()
        if isinstance(one, str):
            yield one
        elif isinstance(one, dict):
            pending += [*one.values(), *one]
        elif isinstance(one, list):
            pending += one
        elif isinstance(one, int | float) and not isinstance(one, bool):
            yield str(one)
