"""Values: what those outside of the model are made of, and the named parts of ours and of other people's."""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from msgspec import NODEFAULT, Struct


class Value(Struct, frozen=True):
    """A value: told by its parts, never changed. Guards, which lean on no library themselves, are made of these."""


def parts_of(value: object) -> dict[str, object] | None:
    """Return the parts of a struct or a dataclass by name, in their order; None for anything else, a class included."""
    # By its real type: an object can claim to be of any class.
    kind = type(value)
    if issubclass(kind, Struct):
        names: Iterable[str] = kind.__struct_fields__
    elif hasattr(kind, "__dataclass_fields__"):
        from dataclasses import fields  # noqa: PLC0415 - whoever made a dataclass has loaded it, and we make none

        made: Any = kind
        names = [part.name for part in fields(made)]
    else:
        return None
    # A part that was deleted, or never set, hides nothing: it is None.
    return {name: getattr(value, name, None) for name in names}


@lru_cache(maxsize=512)
def defaults_of(kind: type[Struct]) -> Mapping[str, object]:
    """Return what each part of a kind of value is where nobody says otherwise; `NODEFAULT` where it has to be said."""
    names, defaults = kind.__struct_fields__, kind.__struct_defaults__
    required = len(names) - len(defaults)
    return dict(zip(names, (*(NODEFAULT,) * required, *defaults), strict=True))
