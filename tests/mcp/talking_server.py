"""A server of the official SDK, which speaks every revision of the protocol: on stdio, or by HTTP on a port."""

import sys
from typing import Annotated

from mcp.server.mcpserver import Context, Elicit, MCPServer, Resolve
from pydantic import BaseModel

server = MCPServer("talker", instructions="Ask for tea.")


class Confirmed(BaseModel):
    """What a person says."""

    sure: bool


def ask(what: str) -> Elicit[Confirmed]:
    """Ask whether they are sure."""
    return Elicit(f"Really {what}?", Confirmed)


@server.tool()
def buy(what: str) -> dict[str, str]:
    """Buy something."""
    return {"bought": what}


@server.tool()
def give(what: str, confirmed: Annotated[Confirmed, Resolve(ask)]) -> str:
    """Give something away, if the person is sure."""
    return f"gave {what}: {confirmed.sure}"


@server.tool()
async def count(to: int, context: Context) -> int:
    """Count, and say how far it is."""
    for number in range(1, to + 1):
        await context.report_progress(number, to)
    return to


@server.resource("shop://menu")
def menu() -> str:
    """Return what there is."""
    return "tea, gold"


if __name__ == "__main__":
    if len(sys.argv) > 1:
        server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[1]))
    else:
        server.run()
