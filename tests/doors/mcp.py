"""The four acts as tools of two MCP servers: one is ours and has files, the other is a bank."""

from typing import ClassVar, Final

from batonpass.testing.doors import Act, Door, Fetch, Listener, Pay, Read, Write, WriteAll
from tests.doors.tools import NAMES

SERVERS: Final[dict[type, str]] = {Write: "files", WriteAll: "files", Read: "files", Fetch: "bank", Pay: "bank"}


class McpDoor(Door):
    """A client of MCP servers behind the proxy; each server has a proxy and a run of its own."""

    listener = Listener.MODEL
    policy = """
[mcp.files]
local = true
reads = ["read_file"]
reversible = ["write_file*"]
targets = { write_file = "path" }

[mcp.bank]
reads = ["fetch_page"]
targets = { pay = "to" }
"""
    cannot: ClassVar = {
        "constraints": "nobody says typed constraints to a client",
        "grants by target": "a grant names a server's tool, and not what it is called with",
        "a rule denies a target that is spelled otherwise": "where a path leads at a server only the server knows",
        "one run": "what comes from outside comes by another server, and so into another run",
    }

    def tool(self, act: Act) -> str:
        """Return the tool's name below its server's."""
        return f"mcp__{SERVERS[type(act)]}__{NAMES[type(act)]}"

    def pattern(self, act: Act) -> str:
        """Return the tool."""
        return f"call:{SERVERS[type(act)]}/{NAMES[type(act)]}"
