"""The repository as the house tests see it: its files, its modules, its documents."""

import ast
import gc
import importlib
import os
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Final, TypeVar

ROOT: Final = Path(__file__).parents[2]
SOURCES: Final = ROOT / "src"
PACKAGE: Final = SOURCES / "batonpass"
TESTS: Final = ROOT / "tests"
DOCS: Final = ROOT / "docs"

Node = TypeVar("Node", bound=ast.AST)  # of kinds that have no kinds below them

# What tools leave behind, and what the product itself writes.
_NOT_OURS: Final = frozenset({".git", ".venv", ".batonpass", ".hypothesis", "dist", "htmlcov", "__pycache__"})
_FENCED: Final = re.compile(r"^```[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def files(under: Path, *suffixes: str) -> Iterator[Path]:
    """Yield our files below a folder, sorted; all of them if no suffix is given."""
    yield from (path for path in _all_files(under) if not suffixes or path.suffix in suffixes)


@cache
def _all_files(under: Path) -> list[Path]:
    found = []
    for folder, below, names in os.walk(under):
        below[:] = [name for name in below if _is_ours(name)]  # an environment has ten times as many files as we have
        found += [Path(folder, name) for name in names if _is_ours(name)]
    return sorted(path for path in found if path.is_file())


def _is_ours(name: str) -> bool:
    return name not in _NOT_OURS and not name.endswith("_cache") and not name.startswith(".coverage")


def parsed(*folders: Path) -> Iterator[tuple[str, ast.Module]]:
    """Yield every Python file below some folders: its name in the repository, and its syntax tree."""
    for folder in folders:
        for path in files(folder, ".py"):
            yield shown(path), _tree(path)


@cache
def _tree(path: Path) -> ast.Module:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    gc.freeze()  # every tree stays, and all of them together are two million objects to go through again and again
    return tree


def nodes(tree: ast.AST, *kinds: type[Node]) -> Iterator[Node]:
    """Yield the nodes of these kinds of a syntax tree, kind by kind; of a kind, what stands further out comes first."""
    by_kind = _by_kind(tree)
    for kind in kinds:
        yield from by_kind.get(kind, ())  # type: ignore[misc]  # a list of nodes of this kind


@cache
def _by_kind(tree: ast.AST) -> dict[type[ast.AST], list[ast.AST]]:
    found: dict[type[ast.AST], list[ast.AST]] = {}
    for node in ast.walk(tree):
        found.setdefault(type(node), []).append(node)
    return found


def shown(path: Path) -> str:
    """Return a path as people write it in this repository."""
    return path.relative_to(ROOT).as_posix()


def module(name: str) -> ModuleType:
    """Return a module of ours, imported."""
    return importlib.import_module(name)


def document(name: str) -> str:
    """Return the text of a document that must exist."""
    path = DOCS / name
    assert path.is_file(), f"docs/{name} is missing"
    return path.read_text(encoding="utf-8")


def fenced(text: str) -> list[str]:
    """Return the contents of the fenced code blocks of a document."""
    return _FENCED.findall(text)
