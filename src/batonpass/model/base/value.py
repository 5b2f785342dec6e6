"""The base of values outside the model, and helpers that read the fields of any struct or dataclass."""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from msgspec import NODEFAULT, Struct


class Value(Struct, frozen=True):
    """A frozen value, equal to others with equal fields. Guards, which must not import msgspec, derive from it."""


def parts_of(value: object) -> dict[str, object] | None:
    """Return the fields of a struct or a dataclass by name, in order; None for anything else, also for a class."""
    # `type(value)` and not `__class__`: an object can claim to be of any class.
    kind = type(value)
    if issubclass(kind, Struct):
        names: Iterable[str] = kind.__struct_fields__
    elif hasattr(kind, "__dataclass_fields__"):
        from dataclasses import fields  # noqa: PLC0415 - whoever made a dataclass has loaded it, and we make none

        made: Any = kind
        names = [part.name for part in fields(made)]
    else:
        return None
    # A field that was deleted or never set is given as None, so that it cannot hide.
    return {name: getattr(value, name, None) for name in names}


def shown_as(name: str, value: Struct) -> str:
    """Return a value as its caller wrote it: under its public name, and only with fields that were given."""
    defaults = defaults_of(type(value))
    given = {part: getattr(value, part) for part in value.__struct_fields__}
    return f"{name}({', '.join(f'{part}={one!r}' for part, one in given.items() if one != defaults[part])})"


@lru_cache(maxsize=512)
def defaults_of(kind: type[Struct]) -> Mapping[str, object]:
    """Return the default of each field of a struct type; `NODEFAULT` for a field that is required."""
    names, defaults = kind.__struct_fields__, kind.__struct_defaults__
    required = len(names) - len(defaults)
    return dict(zip(names, (*(NODEFAULT,) * required, *defaults), strict=True))
