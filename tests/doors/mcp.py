"""The four acts as tools of two MCP servers: one is ours and has files, the other is a bank."""

from typing import ClassVar, Final

from batonpass.model.receipt import Mode
from batonpass.testing.doors import Act, Door, Fetch, Listener, Pay, Read, Write, WriteAll
from tests.doors.tools import AS_SPELLED, BY_ANOTHER_NET, NAMES, protected_in

SERVERS: Final[dict[type, str]] = {Write: "files", WriteAll: "files", Read: "files", Fetch: "bank", Pay: "bank"}


def _slips_through(case: str) -> bool:
    """Return whether the proxy's own net does not see it, so that it comes to the one that all doors have."""
    return case.startswith(
        (
            "the record is changed: in other letters",
            "the record is changed: by another name of the file",
            "the record is changed: as an address of this machine",
            "the rules are changed",
            "the record is changed among other files [enforced]",
        )
    )


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
        "one run": "what comes from outside comes by another server, and so into another run",
    }
    unfinished: ClassVar = {
        **{case: why for case, why in protected_in(*Mode, reason=BY_ANOTHER_NET).items() if not _slips_through(case)},
        "a key is read [observed]": "the proxy keeps the record from being read as well, where it only watches",
        **{f"a rule denies a target that is spelled otherwise [{mode}]": AS_SPELLED for mode in Mode},
    }

    def tool(self, act: Act) -> str:
        """Return the tool's name below its server's."""
        return f"mcp__{SERVERS[type(act)]}__{NAMES[type(act)]}"

    def pattern(self, act: Act) -> str:
        """Return the tool."""
        return f"call:{SERVERS[type(act)]}/{NAMES[type(act)]}"
