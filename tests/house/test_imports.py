"""What the pure packages may lean on, and where a new top-level module is announced."""

import ast
import sys
import tomllib
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from typing import Final

import pytest

from tests.house.tree import PACKAGE, ROOT, document, nodes, parsed

STANDARD: Final = sys.stdlib_module_names | {"batonpass"}
ALLOWED: Final = {"model": STANDARD | {"msgspec"}, "guard": STANDARD, "drift": STANDARD}


def imported(tree: ast.Module) -> Iterator[str]:
    """Yield the top-level name of everything a file imports, at its head, in a function or for types only."""
    for node in nodes(tree, ast.Import, ast.ImportFrom):
        match node:
            case ast.Import(names=names):
                yield from (alias.name.partition(".")[0] for alias in names)
            case ast.ImportFrom(module=str(name), level=0):
                yield name.partition(".")[0]


@pytest.mark.parametrize("package", ALLOWED)
def test_pure_packages_lean_on_the_standard_library(package: str) -> None:
    """Guards and drift work wherever Python works; values also where msgspec does, which makes them."""
    foreign = [
        f"{name} imports {top}"
        for name, tree in parsed(PACKAGE / package)
        for top in imported(tree)
        if top not in ALLOWED[package]
    ]

    assert [] == foreign


def test_no_module_leads_back_to_itself() -> None:
    """No module imports itself through others, not even inside of one package, in a function or for types."""
    trees = {name.removeprefix("src/").removesuffix(".py").replace("/", "."): tree for name, tree in parsed(PACKAGE)}
    modules = {name.removesuffix(".__init__"): tree for name, tree in trees.items()}

    assert [] == cycle_in({name: set(leads_to(tree, modules)) for name, tree in modules.items()})


def test_no_package_leads_back_to_itself() -> None:
    """Packages and modules side by side have an order, at every depth: also where no contract names it."""
    trees = {name.removeprefix("src/").removesuffix(".py").replace("/", "."): tree for name, tree in parsed(PACKAGE)}
    modules = {name.removesuffix(".__init__"): tree for name, tree in trees.items()}
    graph = {name: set(leads_to(tree, modules)) for name, tree in modules.items()}
    depths = range(1, max(name.count(".") for name in modules) + 1)

    assert [] == [cycle for depth in depths if (cycle := cycle_in(side_by_side(graph, depth)))]


def side_by_side(graph: Mapping[str, set[str]], depth: int) -> dict[str, set[str]]:
    """Return which packages at one depth lead to which others beside them, by the imports of everything in them."""
    found: dict[str, set[str]] = {}
    for name, others in graph.items():
        *above, own = name.split(".")[: depth + 1]
        if len(above) == depth:
            inside = f"{'.'.join(above)}."
            beside = {other.removeprefix(inside).partition(".")[0] for other in others if other.startswith(inside)}
            found.setdefault(f"{inside}{own}", set()).update(f"{inside}{one}" for one in beside - {own})
    return found


def test_a_cycle_of_packages_is_found_though_no_module_is_in_one() -> None:
    """Two packages that need each other are a cycle, also through four different modules."""
    graph = {"a.b.one": {"a.c.one"}, "a.c.two": {"a.b.two"}, "a.c.one": set(), "a.b.two": set()}

    assert ([], {"a.b", "a.c"}) == (cycle_in(graph), set(cycle_in(side_by_side(graph, 1))))


def leads_to(tree: ast.Module, modules: Mapping[str, object]) -> Iterator[str]:
    """Yield those of our modules that a file imports, wherever the import stands."""
    for node in nodes(tree, ast.Import, ast.ImportFrom):
        match node:
            case ast.Import(names=names):
                yield from (alias.name for alias in names if alias.name in modules)
            case ast.ImportFrom(module=str(package), level=0, names=names):
                found = {f"{package}.{alias.name}" for alias in names} & modules.keys()
                yield from found or {package} & modules.keys()


def cycle_in(graph: Mapping[str, set[str]]) -> list[str]:
    """Return the names along one cycle; an empty list where there is none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        cycle: list[str] = error.args[1]
        return cycle
    return []


def test_a_cycle_is_found_in_whatever_way_it_is_imported() -> None:
    """Two files that need each other are a cycle, also where one does so in a function."""
    files = {"a.b": "import a.c", "a.c": "def f():\n    from a import b", "a": ""}
    graph = {name: set(leads_to(ast.parse(text), files)) for name, text in files.items()}

    assert {"a.b", "a.c"} == set(cycle_in(graph))


def test_imports_are_found_wherever_they_stand() -> None:
    """An import inside a function or under TYPE_CHECKING counts like one at the head of the file."""
    text = "import a.b\nfrom .c import d\nif TYPE_CHECKING:\n    from e.f import g\ndef h():\n    import i\n"

    assert {"a", "e", "i"} == set(imported(ast.parse(text)))


def test_every_top_level_module_is_in_the_architecture() -> None:
    """A module that docs/ARCHITECTURE.md does not place is not there."""
    modules = {path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    text = document("ARCHITECTURE.md")

    assert set() == {name for name in modules if not name.startswith("__") and name not in text}


def test_the_import_rule_is_exhaustive() -> None:
    """The contract that orders the layers fails on a module that it does not know."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    layers = [contract for contract in settings["tool"]["importlinter"]["contracts"] if contract["type"] == "layers"]

    assert ["batonpass"] == layers[0]["containers"]
    assert [] == [contract["name"] for contract in layers if not contract["exhaustive"]]
