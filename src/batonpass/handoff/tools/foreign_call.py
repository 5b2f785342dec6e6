"""Calls of other programs' tools: who knows such a program says what a call does, and to what."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from batonpass.handoff.tools.actions import CALL
from batonpass.handoff.tools.declaration import ToolCall

MCP: Final = "mcp__"
_BETWEEN: Final = "__"


@dataclass(frozen=True, slots=True)
class ForeignCall(ToolCall[Any]):
    """A call whose arguments have names already, and which somebody else makes."""

    does: str = CALL  # its action, as a grant names it
    to: str = ""  # its resource
    on_disk: bool = False  # the resource is a path
    local: bool = False  # paths among its arguments mean files here, and are judged by where they lead

    def __post_init__(self) -> None:
        """Copy nothing: these arguments were read from bytes, and nobody else has them."""

    @property
    def named(self) -> Mapping[str, Any]:
        """Return the arguments by name."""
        return self.kwargs

    @property
    def bound(self) -> Mapping[str, Any]:
        """Return the arguments by name: JSON holds nothing that could change its mind."""
        return self.kwargs

    def require_target(self) -> None:
        """Refuse nothing: whoever knows the program says what the call acts on, and a grant is held against that."""

    @property
    def action(self) -> str:
        """Return what the call does, as a grant names it."""
        return self.does

    @property
    def resource(self) -> str:
        """Return what it does that to."""
        return self.to

    @property
    def acts_on_path(self) -> bool:
        """Return whether the resource is a path."""
        return self.on_disk

    @property
    def follows_paths(self) -> bool:
        """Return whether paths among its arguments are followed here."""
        return self.local


def resource_of_mcp(server: str, tool: str) -> str:
    """Return what a call of an MCP server's tool acts on, as a grant names it: the tool, below its server."""
    return f"{server}/{tool}"


def split_mcp(name: str) -> tuple[str, str] | None:
    """Return server and tool of `mcp__SERVER__TOOL`; None if that is no tool of an MCP server."""
    server, between, tool = name.removeprefix(MCP).partition(_BETWEEN)
    return (server, tool) if name.startswith(MCP) and between and server and tool else None


def find_mcp(name: str) -> str | None:
    """Return what a call of `mcp__SERVER__TOOL` acts on; None if that is no tool of an MCP server."""
    found = split_mcp(name)
    return None if found is None else resource_of_mcp(*found)
