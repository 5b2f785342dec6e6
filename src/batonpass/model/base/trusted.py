"""The trust boundary: values are checked where they enter, and not again where we pass them on.

They enter from callers, from bytes, from rows of any store, from files and from other processes. Each of these ways
calls the constructor, `Receipt(...)` or `Run(...)`, which checks every field. After that a value cannot change.

When this process makes a value from checked values alone, such as a receipt from a draft or a row from a receipt, all
fields were checked before. `unchecked_maker` makes such a value without a second check. A house test lists its callers.
See ADR 52.
"""

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, cast

from msgspec import Struct, defstruct
from msgspec.structs import force_setattr

Given = ParamSpec("Given")
Value = TypeVar("Value", bound=Struct)


def unchecked_maker(kind: Callable[Given, Value]) -> Callable[Given, Value]:
    """Return a function that makes values as the constructor of kind does, without the checks."""
    checked = cast("type[Struct]", kind)
    # msgspec always runs `__post_init__`, and it cannot be switched off for one call. So a subclass with the same
    # fields and no checks makes the value, and the value's class is then set to the real one. Nobody who gets the value
    # can tell the difference.
    # The subclass has `id` in place of the checks: it does nothing with its argument and, being written in C, costs
    # next to nothing.
    twin: Any = defstruct(checked.__name__, [], bases=(checked,), namespace={"__post_init__": id})

    def make(*args: Given.args, **parts: Given.kwargs) -> Value:
        value: Value = twin(*args, **parts)
        force_setattr(value, "__class__", checked)
        return value

    return make
