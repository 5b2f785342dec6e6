"""Calls of other programs' tools. The adapter of such a program names the action and the target of a call."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from batonpass.handoff.tools.actions import CALL
from batonpass.handoff.tools.tool_call import ToolCall

MCP: Final = "mcp__"
_BETWEEN: Final = "__"


@dataclass(frozen=True, slots=True)
class ForeignCall(ToolCall[Any]):
    """A call that another program makes. Its arguments already have names."""

    does: str = CALL  # as a grant names it
    to: str = ""  # its resource
    on_disk: bool = False  # the resource is a path
    local: bool = False  # paths in its arguments are files of this machine, judged by where they lead

    def __post_init__(self) -> None:
        """Copy nothing: these arguments were decoded from bytes, and nobody else holds them."""

    @property
    def named(self) -> Mapping[str, Any]:
        """Return the arguments by name."""
        return self.kwargs

    @property
    def bound(self) -> Mapping[str, Any]:
        """Return the arguments by name. They are JSON, so nothing in them is opaque."""
        return self.kwargs

    def require_target(self) -> None:
        """Refuse nothing: the adapter names the target of the call, and the grant is evaluated against that."""

    @property
    def action(self) -> str:
        """Return the action as a grant names it."""
        return self.does

    @property
    def resource(self) -> str:
        """Return the resource."""
        return self.to

    @property
    def acts_on_path(self) -> bool:
        """Return whether the resource is a path."""
        return self.on_disk

    @property
    def follows_paths(self) -> bool:
        """Return whether paths in its arguments are followed on this machine."""
        return self.local


def resource_of_mcp(server: str, tool: str) -> str:
    """Return the resource of an MCP tool, as a grant names it: `SERVER/TOOL`."""
    return f"{server}/{tool}"


def split_mcp(name: str) -> tuple[str, str] | None:
    """Return server and tool of `mcp__SERVER__TOOL`; None for any other name."""
    server, between, tool = name.removeprefix(MCP).partition(_BETWEEN)
    return (server, tool) if name.startswith(MCP) and between and server and tool else None
