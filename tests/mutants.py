"""Breaks the product in one place at a time and says which tests notice: `python tests/mutants.py SOURCE TESTS…`.

Run it before and after a change of tests that should be as strong as they were: the same mutants have to die. Seeds
make the same mutants of the same source. Each is tried in a fork that has imported pytest, but nothing of ours.
"""

import argparse
import ast
import copy
import importlib.abc
import importlib.machinery
import os
import random
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Final

import pytest

OTHERWISE: Final[dict[type[ast.AST], type[ast.AST]]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
}


def break_node(node: ast.AST) -> bool:
    """Change what a node means and return True; False for one that is left as it is."""
    match node:
        case ast.Compare(ops=[op, *rest]) if type(op) in OTHERWISE:
            node.ops = [OTHERWISE[type(op)](), *rest]  # type: ignore[list-item]
        case ast.BoolOp(op=op) | ast.BinOp(op=op) if type(op) in OTHERWISE:
            node.op = OTHERWISE[type(op)]()  # type: ignore[assignment]
        case ast.Constant(value=bool(value)):
            node.value = not value
        case ast.Constant(value=int(value)):
            node.value = value + 1
        case ast.If() | ast.IfExp():
            node.test = ast.UnaryOp(op=ast.Not(), operand=node.test)
        case ast.Raise():
            node.exc, node.cause = ast.parse("AssertionError()", mode="eval").body, None
        case _:
            return False
    ast.fix_missing_locations(node)
    return True


def places_in(path: Path) -> Iterator[tuple[Path, int]]:
    """Yield where a file can be broken."""
    for number, node in enumerate(ast.walk(ast.parse(path.read_text(encoding="utf-8")))):
        if break_node(copy.copy(node)):
            yield path, number


def mutant_at(path: Path, number: int) -> tuple[str, ast.Module]:
    """Return a module that differs from this one in one place, and a line that says where."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    node = next(node for at, node in enumerate(ast.walk(tree)) if at == number)
    before = ast.unparse(node).splitlines()[0][:70]
    break_node(node)
    return f"{path}:{getattr(node, 'lineno', 0)}: {before} -> {ast.unparse(node).splitlines()[0][:70]}", tree


class Broken(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports a mutant in place of the module that it was made of."""

    def __init__(self, path: Path, tree: ast.Module) -> None:
        parts = path.with_suffix("").parts
        self._name = ".".join(parts[parts.index("batonpass") :]).removesuffix(".__init__")
        self._code = compile(tree, str(path), "exec")
        self._path = path

    def find_spec(
        self, fullname: str, path: object = None, target: object = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Claim the one module."""
        del path, target
        if fullname != self._name:
            return None
        spec = importlib.machinery.ModuleSpec(fullname, self, origin=str(self._path))
        if self._path.name == "__init__.py":
            spec.submodule_search_locations = [str(self._path.parent.resolve())]
        return spec

    def exec_module(self, module: ModuleType) -> None:
        """Run the mutant."""
        exec(self._code, module.__dict__)  # noqa: S102 - our own source


def dies(path: Path, tree: ast.Module, tests: Sequence[str]) -> bool:
    """Say whether a test fails, or none can be collected, with this mutant."""
    child = os.fork()
    if child == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.dup2(1, 2)
        sys.meta_path.insert(0, Broken(path, tree))
        options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:randomly", "--no-header"]
        os._exit(int(pytest.main([*options, *tests]) != 0))
    return os.waitpid(child, 0)[1] != 0


def main() -> None:
    """Try some mutants of a file or of all files in a folder, and print which of them die."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source", type=Path)
    parser.add_argument("tests", nargs="+")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=10)
    given = parser.parse_args()
    files = sorted(given.source.rglob("*.py")) if given.source.is_dir() else [given.source]
    places = [place for path in files for place in places_in(path)]
    if dies(files[0], ast.parse(files[0].read_text(encoding="utf-8")), given.tests):
        sys.exit("The tests fail as they are.")
    for path, number in random.Random(given.seed).sample(places, min(given.count, len(places))):
        what, tree = mutant_at(path, number)
        sys.stdout.write(f"{'dies ' if dies(path, tree, given.tests) else 'LIVES'} {what}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
