"""Print what each package uses of its budget; exit 1 where one is over, or where a package has none."""

import ast
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "batonpass"
FIGURES = ("lines", "sql", "modules", "names")


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """What a package holds."""

    lines: int = 0
    sql: int = 0
    modules: int = 0
    names: int = 0
    imports: int = 0  # lines of Python that import

    def __add__(self, other: "Size") -> "Size":
        return Size(
            lines=self.lines + other.lines,
            sql=self.sql + other.sql,
            modules=self.modules + other.modules,
            names=self.names + other.names,
            imports=self.imports + other.imports,
        )


def count_lines(path: Path) -> int:
    """Return how many lines a file has."""
    return len(path.read_text(encoding="utf-8").splitlines())


def is_generated(path: Path) -> bool:
    """Return whether a tool made this file from another, which is counted; a test compares the two."""
    return "Made by `tools/" in path.read_text(encoding="utf-8").partition("\n")[0]


def count_import_lines(tree: ast.Module) -> int:
    """Return how many lines the imports of a module take, those inside functions too."""
    nodes = (node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom))
    return sum((node.end_lineno or node.lineno) - node.lineno + 1 for node in nodes)


def bound_names(statement: ast.stmt) -> Iterator[str]:
    """Yield each name that a top-level statement binds."""
    match statement:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
            yield from (alias.asname or alias.name.split(".")[0] for alias in aliases)
        case ast.Assign(targets=targets):
            yield from (target.id for target in targets if isinstance(target, ast.Name))
        case ast.AnnAssign(target=ast.Name(id=name)):
            yield name


def public_names(tree: ast.Module) -> set[str]:
    """Return what __all__ exports, or each top-level name without an underscore where there is no __all__."""
    for statement in tree.body:
        if isinstance(statement, ast.Assign | ast.AnnAssign) and "__all__" in bound_names(statement):
            return set(ast.literal_eval(statement.value)) if statement.value else set()
    return {name for statement in tree.body for name in bound_names(statement) if not name.startswith("_")}


def measure(entry: Path) -> Size:
    """Measure one top-level entry of the source tree: a module or a package."""
    face = entry / "__init__.py" if entry.is_dir() else entry
    size = Size(names=len(public_names(ast.parse(face.read_bytes()))) if face.is_file() else 0)
    for path in sorted(entry.rglob("*") if entry.is_dir() else [entry]):
        if path.suffix == ".py" and is_generated(path):
            size += Size(modules=1)
        elif path.suffix == ".py" and (lines := count_lines(path)):
            size += Size(lines=lines, modules=1, imports=count_import_lines(ast.parse(path.read_bytes())))
        elif path.suffix == ".sql":
            size += Size(sql=count_lines(path))
    return size


def row(name: str, size: Size, limits: dict[str, int]) -> tuple[str, list[str]]:
    """Return a line of the table, and what is over budget in it."""
    cells, faults = [], []
    for figure in FIGURES:
        used, limit = getattr(size, figure), limits.get(figure)
        cells.append(f"{used:>6,}" + (f" / {limit:<6,}" if limit else " " * 9))
        if limit is not None and used > limit:
            faults.append(f"over budget: {name} has {used:,} {figure}, at most {limit:,}")
    return f"{name:<16}{' '.join(cells)}".rstrip(), faults


def report(source: Path, budgets: dict[str, Any]) -> tuple[list[str], list[str]]:
    """Return the table and its faults."""
    packages = budgets["packages"]
    owner = {member: name for name, budget in packages.items() for member in budget.get("members", [name])}
    sizes: dict[str, Size] = {}
    faults = []
    for entry in sorted(source.iterdir()):
        if entry.suffix != ".py" and not any(entry.rglob("*.py")):
            continue
        if entry.stem not in owner:
            faults.append(f"no budget: {entry.name} is in no package of budgets.toml")
        name = owner.get(entry.stem, entry.stem)
        sizes[name] = sizes.get(name, Size()) + measure(entry)

    table = [f"{'package':<16}" + " ".join(f"{figure:>6} / {'limit':<6}" for figure in FIGURES).rstrip()]
    for name in sorted(sizes, key=[*packages, *sizes].index):
        line, over = row(name, sizes[name], {"sql": 0, **packages[name]} if name in packages else {})
        table.append(line)
        faults += over

    total = sum(sizes.values(), start=Size())
    line, over = row("total", total, budgets["total"])
    share = total.imports / max(total.lines, 1)
    return [*table, line, f"imports: {share:.1%} of the lines of Python"], faults + over


def main() -> int:
    """Print the table to stdout and the faults to stderr."""
    table, faults = report(SOURCE, tomllib.loads((ROOT / "budgets.toml").read_text(encoding="utf-8")))
    print("\n".join(table))
    for fault in faults:
        print(fault, file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
