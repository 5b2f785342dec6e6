"""The trust boundary: values are checked where they enter, and not again where we pass them on.

They enter by their constructors, from bytes, from rows of any store, from files and from other processes. All of these
call `Receipt(...)`, `Run(...)` and so on, which check every part. Once it is inside, a value cannot be changed.

What this process then makes of such values alone, a receipt of a draft, a row of a receipt, has parts that were checked
already; `unchecked_maker` is how it is made without doing so twice. A house test lists who calls it. See ADR 52.
"""

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, cast

from msgspec import Struct, defstruct
from msgspec.structs import force_setattr

Given = ParamSpec("Given")
Value = TypeVar("Value", bound=Struct)


def unchecked_maker(kind: Callable[Given, Value]) -> Callable[Given, Value]:
    """Return what makes values of a kind as its constructor does, and looks at none of their parts."""
    checked = cast("type[Struct]", kind)
    # A constructor always runs the checks of its class. So a twin makes the value, which has the same parts and no
    # checks, and hands it over to the class: nobody who gets it can tell that it was not made there.
    # In place of the checks stands `id`, which looks at nothing and, unlike a function of ours, costs nothing.
    twin: Any = defstruct(checked.__name__, [], bases=(checked,), namespace={"__post_init__": id})

    def make(*args: Given.args, **parts: Given.kwargs) -> Value:
        value: Value = twin(*args, **parts)
        force_setattr(value, "__class__", checked)
        return value

    return make
