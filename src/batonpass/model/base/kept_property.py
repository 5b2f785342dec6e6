"""A property that is worked out at its first use and kept with its object."""

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

_Found = TypeVar("_Found")


class kept_property(Generic[_Found]):  # noqa: N801 - used like `property`
    """`cached_property` as it is from Python 3.12 on: until then that takes a lock, and five times as long.

    Two threads that ask at once may both work it out, so this is only for values that depend on frozen fields.
    """

    def __init__(self, find: Callable[[Any], _Found]) -> None:
        self._find = find
        self.__doc__ = find.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> "kept_property[_Found]": ...

    @overload
    def __get__(self, instance: object, owner: type) -> _Found: ...

    def __get__(self, instance: object | None, owner: type) -> "kept_property[_Found] | _Found":
        if instance is None:
            return self
        # Python asks here only until the object has an attribute of this name.
        found = instance.__dict__[self._name] = self._find(instance)
        return found
