"""The base of values outside of the model that are made of its values: what a frozen dataclass is, at a tenth."""

from msgspec import Struct


class Value(Struct, frozen=True):
    """A value: told by its parts, never changed. Guards, which lean on no library themselves, are made of these."""
