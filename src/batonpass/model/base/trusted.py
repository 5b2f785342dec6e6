"""The trust boundary: values are checked where they enter, and not again where we pass them on.

They enter from callers, from bytes, from rows of any store, from files and from other processes. Each of these ways
calls the constructor, `Receipt(...)` or `Run(...)`, which checks every field. After that a value cannot change.

When this process makes a value from checked values alone, such as a receipt from a draft or a row from a receipt, all
fields were checked before. `unchecked_maker` makes such a value without a second check. A house test lists its callers.
See ADR 52.
"""

from collections.abc import Callable
from operator import methodcaller
from typing import Any, ParamSpec, TypeVar, cast

from msgspec import Struct, defstruct

Given = ParamSpec("Given")
Value = TypeVar("Value", bound=Struct)


def unchecked_maker(kind: Callable[Given, Value]) -> Callable[Given, Value]:
    """Return a function that makes values as the constructor of kind does, without the checks."""
    checked = cast("type[Struct]", kind)
    # msgspec always runs `__post_init__`, and it cannot be switched off for one call. So a subclass with the same
    # fields makes the value, and in place of the checks it sets the value's class to the real one. Nobody who gets the
    # value can tell the difference. The subclass is not frozen, or it could not; the value is, once it has its class.
    # `methodcaller` is written in C: a value is made without entering a Python function.
    become = methodcaller("__setattr__", "__class__", checked)
    twin: Any = defstruct(checked.__name__, [], bases=(checked,), frozen=False, namespace={"__post_init__": become})
    return cast("Callable[Given, Value]", twin)
