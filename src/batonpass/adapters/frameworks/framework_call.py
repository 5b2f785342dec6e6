"""A call that an agent of a framework wants to make."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from batonpass.handoff.tools.declaration import Declared, declared_of, find_declared
from batonpass.handoff.tools.tool_call import ToolCall
from batonpass.model.base.ids import as_agent


@dataclass(frozen=True)
class FrameworkCall(ToolCall[Any]):
    """A call whose arguments have names already. The framework makes it; a grant sees it like a call of a program."""

    def _bind(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Mapping[str, Any]:  # noqa: ARG002 - as its parent
        return kwargs


def framework_call(declared: Declared, arguments: Mapping[str, Any]) -> FrameworkCall:
    """Return a call of a declared tool. Its framework makes it, so it has no function of its own."""
    return FrameworkCall(declared, dict, (), arguments)


class DeclaredTools:
    """The declarations of a program about its tools, by their names in the framework."""

    def __init__(self, declared: Mapping[str, Callable[..., Any]]) -> None:
        self._declared = {name: declared_of(function) for name, function in declared.items()}

    def find(self, name: str, function: Callable[..., Any] | None = None) -> Declared:
        """Return the declaration of a tool: from this table, else from its function, else only its name."""
        own = None if function is None else find_declared(function)
        return self._declared.get(name) or own or Declared(name=as_agent(name))
