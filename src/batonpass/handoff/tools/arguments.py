"""Arguments of a call: copied once, so that what is judged, what is recorded and what the tool gets are the same.

Whoever calls a tool keeps its own objects, and may change them while the call is judged. So containers are copied
before anything looks at them. Only exact built-in types are copied: their content can be read without running
anybody's code. Everything else passes by reference, and nothing that was read of it need be true when the tool reads
it. So it is `Opaque`: it is described as it looked, and no target, condition or constraint is held against it.
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

DEEPEST: Final = 60  # what is nested deeper is described by nobody, and so it is not copied either

# Paths of the standard library cannot be changed; what they spell is asked once.
PATHS: Final = frozenset({PosixPath, PurePosixPath, PureWindowsPath, WindowsPath})
SCALARS: Final = frozenset({NoneType, bool, int, float, str, bytes, Decimal, date, UUID}) | PATHS
_CONTAINERS: Final = frozenset({dict, list, tuple, set, frozenset, bytearray})
# A moment asks its time zone whenever it is compared, so the zone has to be one that never changes its mind.
_ZONES: Final = frozenset({NoneType, timezone, ZoneInfo})


def type_name(value: object) -> str:
    """Return the name of a value's type, whatever the value says about itself."""
    return f"{type(value).__module__}.{type(value).__qualname__}"


def is_plain(value: object) -> bool:
    """Return whether a value is of a built-in type that nobody can change, and runs nobody's code when it is read."""
    kind = type(value)
    return kind in SCALARS or (kind is datetime and type(value.tzinfo) in _ZONES)  # type: ignore[attr-defined]


def _is_key(value: object) -> bool:
    """Return whether a key can be put into another dict without running anybody's code: that asks for its hash."""
    if type(value) is tuple or type(value) is frozenset:
        return all(map(_is_key, value))
    return is_plain(value)


def copy_arguments(
    args: tuple[Any, ...], kwargs: Mapping[str, Any], *, filled: Iterable[object] = ()
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return arguments whose containers are nobody else's; `filled` are those that the tool fills for its caller.

    What is in two places is one object in the copy too, and what stands in itself still does.
    """
    if _CONTAINERS.isdisjoint(map(type, args)) and _CONTAINERS.isdisjoint(map(type, kwargs.values())):
        return args, dict(kwargs)  # as most are: nothing in it could be changed by somebody else
    copy = _Copy()
    for value in filled:
        copy.made[id(value)] = value, value
    return tuple(copy.of(value, 0) for value in args), {name: copy.of(value, 0) for name, value in kwargs.items()}


class _Copy(Struct):
    """A copy under way. Each source is kept with its copy: an id belongs to a value only while that is alive."""

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
            # Whoever else has it may change it now: we go over a snapshot, which is taken in one step.
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
            known = self.made.get(id(value))  # it may stand in itself, by way of a list
            unchanged = all(one is other for one, other in zip(row, value, strict=True))
            return known[1] if known is not None else self._keep(value, value if unchanged else row)
        # What can be in a set cannot be changed, unless it is opaque; a frozenset cannot be changed at all.
        return value if kind is frozenset else self._keep(value, value.copy())

    def _keep(self, value: object, copy: Any) -> Any:  # noqa: ANN401 - as above
        self.made[id(value)] = value, copy
        return copy


def veiled(value: Any, *, filled: Iterable[object] = ()) -> Any:  # noqa: ANN401 - whatever a tool is called with
    """Return a copied argument as it may be judged, with an `Opaque` for all that may change; else the same object."""
    return _Veil({id(one) for one in filled}).of(value, 0)


class _Veil(Struct):
    """One look at an argument: what it goes through, and what it has been through."""

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
