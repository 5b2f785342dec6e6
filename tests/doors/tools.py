"""The four acts as functions, for the doors that call functions."""

from collections.abc import Callable
from typing import Any

from batonpass.handoff.tools.declaration import tool
from batonpass.testing.doors import Act, Fetch, Pay, Read, Stage, Write, WriteAll
from batonpass.testing.doors.suite import TABLE

NAMES: dict[type, str] = {
    Write: "write_file",
    WriteAll: "write_files",
    Read: "read_file",
    Fetch: "fetch_page",
    Pay: "pay",
}


# What a column with real processes has; the column in this process has all.
FEW = tuple(
    situation
    for situation in TABLE
    if situation.name
    in {
        "a rule denies a tool",
        "a person approved the call",
        "a stranger's words came in before a payment",
        "a grant does not cover the act",
        "a grant is revoked between two calls",
        "the record is changed: from here",
    }
)


def tools_on(stage: Stage) -> dict[str, Callable[..., Any]]:
    """Return the tools by name; what they do is done on a stage."""

    @tool(target="path", reversible=True)
    def write_file(path: str, text: str) -> str:
        """Write a file."""
        return stage.do(Write(path, text))

    @tool(reversible=True)
    def write_files(files: dict[str, str]) -> str:
        """Write several files."""
        return stage.do(WriteAll(tuple(files.items())))

    @tool(target="path", reads=True)
    def read_file(path: str) -> str:
        """Read a file."""
        return stage.do(Read(path))

    @tool(target="url", reads=True, external=True)
    def fetch_page(url: str) -> str:
        """Fetch a page."""
        return stage.do(Fetch(url))

    @tool(target="to", action="pay", external=True)
    def pay(to: str, amount: int) -> str:
        """Send money."""
        return stage.do(Pay(to, amount))

    made = (write_file, write_files, read_file, fetch_page, pay)
    return {function.__name__: function for function in made}


def arguments_of(act: Act) -> dict[str, Any]:
    """Return what a tool is called with."""
    match act:
        case Write(path=path, text=text):
            return {"path": path, "text": text}
        case WriteAll(files=files):
            return {"files": dict(files)}
        case Read(path=path):
            return {"path": path}
        case Fetch(url=url):
            return {"url": url}
        case Pay(to=to, amount=amount):
            return {"to": to, "amount": amount}


def pattern_of(act: Act) -> str:
    """Return an act as a grant names it."""
    match act:
        case Write(path=path):
            return f"write:{path}"
        case WriteAll():
            return "call:write_files"
        case Read(path=path):
            return f"read:{path}"
        case Fetch(url=url):
            return f"read:{url}"
        case Pay(to=to):
            return f"pay:{to}"
