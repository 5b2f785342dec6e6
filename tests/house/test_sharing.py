"""What is set up for a whole module is set up once: one process runs all of that module."""

import ast
from pathlib import Path
from typing import Final

from tests.house.tree import TESTS, files, nodes, parsed
from tests.sharing import LONG, TOGETHER

ROOT: Final = Path(__file__).parents[2]
SHARED: Final = ('scope="module"', 'scope="session"')
SPREAD: Final = {  # each process has its own
    "tests/integration/sqlite/test_column_types.py",
    "tests/integration/test_mutations.py",
    "tests/postgres_server.py",
}


def test_what_shares_a_set_up_is_kept_together() -> None:
    """A file with a fixture for all of it stands in the list, and nothing stands there that is not a place."""
    sharing = {
        str(path.relative_to(ROOT))
        for path in files(TESTS, ".py")
        if path != Path(__file__) and any(scope in path.read_text(encoding="utf-8") for scope in SHARED)
    }

    assert set() == {name for name in sharing - SPREAD if not name.startswith(TOGETHER)}
    assert [] == [place for place in TOGETHER if not (ROOT / place).exists()]


def test_what_begins_first_is_there() -> None:
    """A test that is renamed begins first under its new name as well."""
    for name in LONG:
        file, _, test = name.partition("::")
        assert f"def {test}" in (ROOT / file).read_text(encoding="utf-8") or not test, name


def test_every_process_finds_the_tests_in_the_same_order() -> None:
    """A set of texts has another order in every process, and pytest-xdist refuses to share such tests."""
    tables = (
        (name, node.args[1])
        for name, tree in parsed(TESTS)
        for node in nodes(tree, ast.Call)
        if len(node.args) > 1 and isinstance(node.func, ast.Attribute) and node.func.attr == "parametrize"
    )

    assert [] == [f"{name}: {ast.unparse(table)}" for name, table in tables if _is_set(table)]


def _is_set(table: ast.expr) -> bool:
    match table:
        case ast.Set() | ast.SetComp():
            return True
        case ast.Call(func=ast.Name(id="set" | "frozenset")):
            return True
        case ast.BinOp(left=left, right=right):
            return _is_set(left) or _is_set(right)
    return False
