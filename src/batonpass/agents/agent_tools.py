"""Tools of native agents: found by name in either spelling, described to a model, called through the run."""

import re
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from batonpass.aio import AsyncRun
from batonpass.errors import InvalidValueError, NotFoundError
from batonpass.handoff.tools.declaration import declared_of
from batonpass.model.base.checks import require_text

Work = Callable[[AsyncRun], Awaitable[None]]

_UNSAFE: Final = re.compile(r"[^A-Za-z0-9_]")
_OFFERED: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolDefinition:
    """A tool as a model sees it, and the function behind it."""

    name: str
    function: Callable[..., Any]
    description: str = ""
    external: bool = False  # its results come from outside: data that travels in quarantine
    hands_off: bool = False  # it records a handoff, and no call
    about_itself: bool = False  # it only reads or records about its own run, so no call is recorded
    work_of: Callable[[str], Work] | None = None  # of a tool that hands off: who works for an agent

    def __post_init__(self) -> None:
        require_text("name", self.name)
        if not callable(self.function):
            raise InvalidValueError("function", f"of the tool {self.name} is not callable")


class ToolRegistry:
    """Tools by name. A name is found as it is written, or with hyphens for underscores."""

    def __init__(self, tools: Iterable[Callable[..., Any]] = ()) -> None:
        self._tools: dict[str, ToolDefinition] = {}
        for tool in tools:
            self.register(tool)

    def __repr__(self) -> str:
        return f"<ToolRegistry of {', '.join(self._tools) or 'no tool'}>"

    def register(
        self,
        function: Callable[..., Any],
        *,
        name: str | None = None,
        description: str | None = None,
        external: bool = False,
    ) -> ToolDefinition:
        """Register a function; its signature and docstring describe it to the model."""
        return self.register_tool_definition(
            ToolDefinition(
                name=name or declared_of(function).name,
                function=function,
                description=description or (function.__doc__ or "").strip(),
                external=external or declared_of(function).external,
            )
        )

    def register_tool_definition(self, definition: ToolDefinition) -> ToolDefinition:
        """Register a tool. Raises `InvalidValueError` if the name is taken."""
        if self._tools.get(definition.name, definition) is not definition:
            raise InvalidValueError("name", f"there is already a tool called {definition.name}")
        self._tools[definition.name] = definition
        return definition

    def get(self, name: str) -> ToolDefinition:
        """Return a tool by its name. Raises `NotFoundError`, and `InvalidValueError` if the spelling is ambiguous."""
        if (exact := self._tools.get(name)) is not None:
            return exact
        alike = [tool for tool in self._tools.values() if folded(tool.name) == folded(name)]
        if len(alike) > 1:
            raise InvalidValueError("tool", f"{name} could be {' or '.join(tool.name for tool in alike)}; spell it so")
        if not alike:
            raise NotFoundError("tool", f"{name} (there are {', '.join(self._tools) or 'none'})")
        return alike[0]

    def __iter__(self) -> Iterator[ToolDefinition]:
        return iter(self._tools.values())

    def __len__(self) -> int:
        return len(self._tools)


class ToolExecutor:
    """Gives a runner the tools of an agent, under the names that its model sees."""

    def __init__(self, registry: ToolRegistry | None = None) -> None:
        self.registry = ToolRegistry() if registry is None else registry

    def __repr__(self) -> str:
        return f"<ToolExecutor with {self.registry!r}>"

    def tools_of(self, names: Iterable[str] | None) -> dict[str, ToolDefinition]:
        """Return these tools, or all, by the name that the model sees, which every provider accepts."""
        chosen = list(self.registry) if names is None else [self.registry.get(name) for name in names]
        spelled = [folded(tool.name) for tool in chosen]
        offered: dict[str, ToolDefinition] = {}
        for tool, plain in zip(chosen, spelled, strict=True):
            # If two names differ only in a hyphen, each keeps its own spelling.
            name = plain if spelled.count(plain) == 1 else tool.name
            if _OFFERED.fullmatch(name) is None:
                raise InvalidValueError(
                    "tool", f"{name} is not a valid name for models: use at most 64 letters, digits, _ and -"
                )
            offered[name] = tool
        return offered


def folded(name: str) -> str:
    """Return a name in the spelling that every model provider accepts."""
    return _UNSAFE.sub("_", name)
