"""A call, a handoff and a ruling are each made by one piece of code: nobody else builds their receipts."""

import ast
from collections.abc import Iterator
from functools import cache
from typing import Final, get_args

from tests.house.tree import SOURCES, module, nodes, parsed

# Where live receipts of calls and handoffs are made; what people rule about either of them is made in one module.
WAYS: Final = (
    "src/batonpass/handoff/calls/",
    "src/batonpass/handoff/transfer/",
    "src/batonpass/handoff/approvals/decision.py",
)
# Not live: what happened long ago in a transcript, and what tests of stores need.
EXCEPTIONS: Final = ("src/batonpass/adapters/importer/session_drafts.py", "src/batonpass/testing/")


@cache
def bodies() -> frozenset[str]:
    """Return the names of the bodies of receipts about calls and handoffs."""
    kinds = module("batonpass.model.bodies.body")
    every = (body for body in get_args(kinds.Body) if body is not kinds.UnknownBody)
    return frozenset(body.__name__ for body in every if str(body.kind).startswith(("tool.", "handoff.")))


def built_in(tree: ast.AST, names: frozenset[str]) -> Iterator[str]:
    """Yield which of these classes a file makes instances of; patterns only look at them."""
    known = {
        alias.asname or alias.name: alias.name
        for node in nodes(tree, ast.ImportFrom)
        if (node.module or "").startswith("batonpass")
        for alias in node.names
        if alias.name in names
    }
    if not known and not any(node.attr in names for node in nodes(tree, ast.Attribute)):
        return
    for node in nodes(tree, ast.Call):
        # `Body(...)`, `module.Body(...)`, and `(One if so else Other)(...)`.
        for part in ast.walk(node.func):
            if isinstance(part, ast.Name) and part.id in known:
                yield f"{known[part.id]} in line {node.lineno}"
            elif isinstance(part, ast.Attribute) and part.attr in names:
                yield f"{part.attr} in line {node.lineno}"


def test_receipts_of_calls_and_handoffs_are_made_in_one_place() -> None:
    """A second builder is where the next hole is: a door translates, and these ways make the receipts."""
    elsewhere = {
        name: found
        for name, tree in parsed(SOURCES)
        if not name.startswith((*WAYS, *EXCEPTIONS)) and (found := list(built_in(tree, bodies())))
    }

    assert {} == elsewhere


def test_every_way_makes_them() -> None:
    """The rule would be kept by a house without any calls, so this one has some."""
    names = bodies()
    made = {
        way for name, tree in parsed(SOURCES) for way in WAYS if name.startswith(way) and any(built_in(tree, names))
    }

    assert set(WAYS) == made


def test_a_second_builder_would_be_found() -> None:
    """By whatever name, and however the class is reached."""
    text = """
from batonpass.model.bodies.body import ToolDenied as Denied, ToolFailed, ToolRequested
from batonpass.model import bodies
Denied(run=1)
bodies.ToolCompleted(run=1)
(ToolFailed if x else ToolRequested)(run=1)
match x:
    case ToolRequested(run=1): pass
isinstance(x, ToolRequested)
"""

    assert [
        "ToolDenied in line 4",
        "ToolCompleted in line 5",
        "ToolFailed in line 6",
        "ToolRequested in line 6",
    ] == list(built_in(ast.parse(text), bodies()))
