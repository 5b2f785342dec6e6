"""Calls as a grant sees them: an action, a resource and arguments."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TypeAlias

from msgspec import Struct, field
from msgspec.structs import replace

from batonpass.model.base.checks import require_instance, require_text
from batonpass.model.base.ids import require_agent
from batonpass.model.base.kept_property import kept_property
from batonpass.model.grants.pattern import require_action
from batonpass.model.grants.resource import Resource, read_resource

# Takes a path as a call names it. Returns the path in the work tree that it leads to once every link is followed, or an
# absolute path if it leads out of the work tree.
Resolver: TypeAlias = Callable[[str], str]


class Opaque(Struct, frozen=True):
    """Stands for an argument whose value may change before the tool reads it. It meets no condition."""

    type: str

    def __repr__(self) -> str:
        return f"an object of type {self.type}, which may change"


class Call(Struct, frozen=True, dict=True):
    """One call of a tool, before it is made. `resource` is as it was sent; `place` is the form that is compared."""

    tool: str
    action: str
    resource: str
    arguments: Mapping[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        require_agent("tool", self.tool)
        require_action(self.action)
        require_text("resource", self.resource)
        require_instance("arguments", self.arguments, Mapping)

    @kept_property
    def place(self) -> Resource:
        """Return the resource in the form that is compared. Raises `InvalidValueError` if it is ambiguous."""
        return read_resource("resource", self.resource)

    def __str__(self) -> str:
        return f"{self.action}:{self.place}"


def resolved(call: Call, resolver: Resolver, *, paths: Collection[str] = ()) -> Call:
    """Return a call whose resource and path arguments have every link followed.

    This happens before the check. Somebody who can exchange a link between the check and the call still wins that race.
    A tool that must not lose it opens its target without following links.
    """
    arguments = call.arguments
    for name in paths:
        arguments = _replaced(arguments, name.split("."), resolver)
    return replace(call, resource=resolver(call.resource), arguments=arguments)


def _replaced(arguments: Mapping[str, object], steps: Sequence[str], resolver: Resolver) -> Mapping[str, object]:
    """Return arguments with the links followed in the one that steps lead to, if it is there."""
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
