"""Values are checked where they enter. Who makes them unchecked, of what was checked, is listed here."""

import ast
from collections.abc import Iterator
from typing import Final

import pytest

from tests.house.tree import SOURCES, nodes, parsed

# Each makes values of others that were checked: a receipt of a draft, a row of a receipt. Nobody who reads input, a row
# or a file is here, and nobody who does belongs here.
MAKERS: Final = {
    "src/batonpass/handoff/runtime/run_state.py": {"Carried"},
    "src/batonpass/handoff/transfer/offer.py": {"Handoff", "HandoffInitiated"},  # the latter if nothing was decided
    "src/batonpass/handoff/transfer/attempt_receipts.py": {"HandoffAccepted", "HandoffCompleted"},
    "src/batonpass/handoff/calls/authority.py": {
        "Call"
    },  # of a declared tool, and a path that was read letter by letter
    "src/batonpass/handoff/calls/finish.py": {"ToolCompleted"},  # of a call that changed nothing, and is not odd
    "src/batonpass/handoff/calls/request.py": {"ToolRequested"},  # likewise: of ids and digests that are made there
    "src/batonpass/ledger/ledger.py": {"Receipt"},
    "src/batonpass/model/ledger/content.py": {"Content", "ContentRef"},
    "src/batonpass/model/ledger/projection.py": {"Cached", "DecidedCall", "Handoff", "HeldCall", "Run", "Stated"},
    "src/batonpass/store/derived_rows.py": {"Stream"},  # of a receipt, and a digest that is checked there
}
HOME: Final = "src/batonpass/model/base/trusted.py"


def made_unchecked(tree: ast.AST) -> Iterator[str]:
    """Yield what a file makes unchecked, as it names it; `?` for a use that is no plain call."""
    calls = {
        id(node.func): node.args[0].id
        for node in nodes(tree, ast.Call)
        if node.args and isinstance(node.args[0], ast.Name)
    }
    for node in nodes(tree, ast.Name, ast.Attribute, ast.ImportFrom):
        match node:
            case ast.Name(id="unchecked_maker") | ast.Attribute(attr="unchecked_maker"):
                yield calls.get(id(node), "?")
            case ast.ImportFrom(names=names) if any(one.name == "unchecked_maker" and one.asname for one in names):
                yield "?"


def test_only_the_pipeline_of_receipts_makes_values_unchecked() -> None:
    """A value that nobody checked would be signed, stored and believed by everybody after."""
    found = {name: set(made_unchecked(tree)) for name, tree in parsed(SOURCES) if name != HOME}

    assert MAKERS == {name: made for name, made in found.items() if made}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("make = unchecked_maker(Run)", {"Run"}, id="a call"),
        pytest.param("make = trusted.unchecked_maker(Run)", {"Run"}, id="a call by its module"),
        pytest.param("make = list(map(unchecked_maker, kinds))", {"?"}, id="a use without a name"),
        pytest.param("from batonpass.model.base.trusted import unchecked_maker as quick", {"?"}, id="another name"),
        pytest.param("from batonpass.model.base.trusted import unchecked_maker", set(), id="an import alone"),
    ],
)
def test_whoever_makes_them_is_found(text: str, expected: set[str]) -> None:
    """The rule cannot be kept by spelling it otherwise."""
    assert expected == set(made_unchecked(ast.parse(text)))


def test_frozen_values_are_changed_by_nobody_else() -> None:
    """What sets a part of a frozen value is for its own checks, which bring a part into its one form."""
    users = {
        name
        for name, tree in parsed(SOURCES)
        for said in (
            *(alias.name for alias in nodes(tree, ast.alias)),
            *(node.attr for node in nodes(tree, ast.Attribute)),
        )
        if said == "force_setattr"
    }

    assert set() == {name for name in users if not name.startswith("src/batonpass/model/")}
