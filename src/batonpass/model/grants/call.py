"""Calls, as a grant sees them: what is done, to what, with which arguments."""

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from typing import TypeAlias

from msgspec import Struct, field
from msgspec.structs import replace

from batonpass.model.base.checks import require_instance, require_text
from batonpass.model.base.ids import require_agent
from batonpass.model.grants.pattern import require_action
from batonpass.model.grants.resource import Resource, read_resource

# The file system's answer: given a path as a call names it, the path in the work tree that it leads to once every
# link is followed; an absolute one if it leads out of the work tree.
Resolver: TypeAlias = Callable[[str], str]


class Opaque(Struct, frozen=True):
    """Stands for an argument that may say something else when its tool asks: nothing can be granted by what it says."""

    type: str

    def __repr__(self) -> str:
        return f"an object of type {self.type}, which may change"


class Call(Struct, frozen=True, dict=True):
    """One call of a tool before it is made. Its resource is as it was sent; `place` is how it is compared."""

    tool: str
    action: str
    resource: str
    arguments: Mapping[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        require_agent("tool", self.tool)
        require_action(self.action)
        require_text("resource", self.resource)
        require_instance("arguments", self.arguments, Mapping)

    @cached_property
    def place(self) -> Resource:
        """Return the resource as it is compared. Raises `InvalidValueError` for one that could be taken for another."""
        return read_resource("resource", self.resource)

    def __str__(self) -> str:
        return f"{self.action}:{self.place}"


def resolved(call: Call, resolver: Resolver, *, paths: Collection[str] = ()) -> Call:
    """Return a call with its resource, and the arguments that are paths, as the file system knows them.

    Asked before the check. Whoever can exchange a link between the check and the call still wins that race: a tool
    that must not lose it opens what it acts on without following links.
    """
    arguments = call.arguments
    for name in paths:
        arguments = _replaced(arguments, name.split("."), resolver)
    return replace(call, resource=resolver(call.resource), arguments=arguments)


def _replaced(arguments: Mapping[str, object], steps: Sequence[str], resolver: Resolver) -> Mapping[str, object]:
    """Return arguments with the one that steps lead to followed, if there is one."""
    step, *deeper = steps
    if step not in arguments:
        return arguments
    value = arguments[step]
    if deeper:
        value = _replaced(value, deeper, resolver) if isinstance(value, Mapping) else value
        return {**arguments, step: value}
    return {**arguments, step: _followed(value, resolver)}


def _followed(value: object, resolver: Resolver) -> object:
    if isinstance(value, list | tuple):
        return [_followed(one, resolver) for one in value]
    return resolver(value) if isinstance(value, str) else value
