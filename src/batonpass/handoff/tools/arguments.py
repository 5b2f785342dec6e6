"""Arguments of a call: copied once, so that the tool gets exactly the values that were checked and recorded.

The caller keeps its own objects, and may change them while the call is being checked. So containers are copied before
anything reads them. Only exact built-in types are copied: reading them runs nobody else's code. Every other object
passes by reference, and may say something different when the tool reads it. It becomes `Opaque`: the receipt shows how
it looked, but no target, condition or constraint is evaluated against it.
"""

from collections.abc import Iterable, Mapping
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import PosixPath, PurePosixPath, PureWindowsPath, WindowsPath
from types import NoneType
from typing import Any, Final
from uuid import UUID
from zoneinfo import ZoneInfo

from msgspec import Struct, field

from batonpass.model.grants.call import Opaque

DEEPEST: Final = 60  # deeper values are not described, so they are not copied either

# Paths of the standard library cannot be changed, so their spelling is read only once.
PATHS: Final = frozenset({PosixPath, PurePosixPath, PureWindowsPath, WindowsPath})
SCALARS: Final = frozenset({NoneType, bool, int, float, str, bytes, Decimal, date, UUID}) | PATHS
_CONTAINERS: Final = frozenset({dict, list, tuple, set, frozenset, bytearray})
# A datetime asks its time zone at every comparison, so only zones that never change are accepted.
_ZONES: Final = frozenset({NoneType, timezone, ZoneInfo})


def type_name(value: object) -> str:
    """Return the real name of a value's type, which the value cannot forge."""
    return f"{type(value).__module__}.{type(value).__qualname__}"


def is_plain(value: object) -> bool:
    """Return whether a value has a built-in type that cannot be changed, so that reading it runs nobody's code."""
    kind = type(value)
    return kind in SCALARS or (kind is datetime and type(value.tzinfo) in _ZONES)  # type: ignore[attr-defined]


def _is_key(value: object) -> bool:
    """Return whether a key can be put into another dict, which asks for its hash, without running anybody's code."""
    if type(value) is tuple or type(value) is frozenset:
        return all(map(_is_key, value))
    return is_plain(value)


def copy_arguments(
    args: tuple[Any, ...], kwargs: Mapping[str, Any], *, filled: Iterable[object] = ()
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments with containers that nobody else holds. Those in `filled` stay: the tool fills them.

    An object in two places is one object in the copy too. A container that contains itself still does.
    """
    if _CONTAINERS.isdisjoint(map(type, args)) and _CONTAINERS.isdisjoint(map(type, kwargs.values())):
        return args, dict(kwargs)  # most calls: nothing in them could be changed by somebody else
    copy = _Copy()
    for value in filled:
        copy.made[id(value)] = value, value
    return tuple(copy.of(value, 0) for value in args), {name: copy.of(value, 0) for name, value in kwargs.items()}


class _Copy(Struct):
    """A copy under way. It keeps each source beside its copy: an id is unique only while its object is alive."""

    made: dict[int, tuple[object, Any]] = field(default_factory=dict)

    def of(self, value: Any, depth: int) -> Any:  # noqa: ANN401 - whatever a tool is called with
        if type(value) not in _CONTAINERS or depth > DEEPEST:
            return value
        known = self.made.get(id(value))
        return self._new(value, depth + 1) if known is None else known[1]

    def _new(self, value: Any, depth: int) -> Any:  # noqa: ANN401 - as above
        kind = type(value)
        if kind is list:
            items = self._keep(value, [])
            # Another thread may change the list now. We copy a snapshot, which is taken in one step.
            items.extend(self.of(item, depth) for item in value.copy())
            return items
        if kind is dict:
            parts = tuple(value.items())
            if not all(_is_key(key) for key, _ in parts):
                return value
            fields = self._keep(value, {})
            fields.update((key, self.of(item, depth)) for key, item in parts)
            return fields
        if kind is tuple:
            row = tuple(self.of(item, depth) for item in value)
            known = self.made.get(id(value))  # it may contain itself, through a list
            unchanged = all(one is other for one, other in zip(row, value, strict=True))
            return known[1] if known is not None else self._keep(value, value if unchanged else row)
        # Members of a set cannot be changed unless they are opaque. A frozenset cannot be changed at all.
        return value if kind is frozenset else self._keep(value, value.copy())

    def _keep(self, value: object, copy: Any) -> Any:  # noqa: ANN401 - as above
        self.made[id(value)] = value, copy
        return copy


def veiled(value: Any, *, filled: Iterable[object] = ()) -> Any:  # noqa: ANN401 - whatever a tool is called with
    """Return a copied argument for checking: `Opaque` replaces everything that may change. Else the same object."""
    return _Veil({id(one) for one in filled}).of(value, 0)


class _Veil(Struct):
    """One pass through an argument."""

    filled: set[int]
    around: set[int] = field(default_factory=set)
    made: dict[int, Any] = field(default_factory=dict)

    def of(self, value: Any, depth: int) -> Any:  # noqa: ANN401 - as above
        if is_plain(value) or type(value) is Opaque:
            return value
        if type(value) not in _CONTAINERS or depth > DEEPEST or id(value) in self.filled or id(value) in self.around:
            return Opaque(type(value).__qualname__)
        if id(value) not in self.made:
            self.around.add(id(value))
            self.made[id(value)] = self._new(value, depth + 1)
            self.around.discard(id(value))
        return self.made[id(value)]

    def _new(self, value: Any, depth: int) -> Any:  # noqa: ANN401 - as above
        kind = type(value)
        if kind is bytearray:
            return value
        if kind is dict:
            if not all(map(_is_key, value)):
                return Opaque(type(value).__qualname__)
            fields = {key: self.of(item, depth) for key, item in value.items()}
            return value if all(fields[key] is item for key, item in value.items()) else fields
        items = [self.of(item, depth) for item in value]
        if all(one is other for one, other in zip(items, value, strict=True)):
            return value
        return tuple(items) if kind is tuple else items
