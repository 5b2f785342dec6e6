"""Print which rows of parity.toml are open, by part; exit 1 where the table and the tests contradict each other."""

import argparse
import ast
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PARTS = (
    "slice",
    "record",
    "acts",
    "verdicts",
    "authority",
    "sandbox",
    "working",
    "pass",
    "entry-points",
    "attribution",
    "reports",
    "frameworks",
    "moving-in",
)
STATES = ("dropped", "design", "tests", "open")
REQUIRED = {"id", "what", "from", "part"}
OPTIONAL = {"dropped", "design"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A test says that it proves a row; `id` is None where the mark's argument is no literal string."""

    id: str | None
    place: str


def is_parity_mark(node: ast.AST) -> bool:
    """Return whether this is `pytest.mark.parity`, or `mark.parity`."""
    match node:
        case ast.Attribute(value=ast.Attribute(attr="mark") | ast.Name(id="mark"), attr="parity"):
            return True
    return False


def find_claims(source: str, path: str) -> Iterator[Claim]:
    """Yield each id that a test file claims: by decorator, by pytestmark, or by the marks of a parameter."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and is_parity_mark(node.func):
            for argument in [*node.args, *(keyword.value for keyword in node.keywords)]:
                value = argument.value if isinstance(argument, ast.Constant) else None
                yield Claim(id=value if isinstance(value, str) else None, place=f"{path}:{argument.lineno}")


def read_claims(root: Path) -> list[Claim]:
    """Return the claims of all test files."""
    paths = sorted((root / "tests").rglob("*.py"))
    return [
        claim
        for path in paths
        for claim in find_claims(path.read_text(encoding="utf-8"), path.relative_to(root).as_posix())
    ]


def state_of(row: Mapping[str, str], claimed: set[str | None]) -> str:
    """Return how a row is settled, or that it is open."""
    if "dropped" in row:
        return "dropped"
    if "design" in row:
        return "design"
    return "tests" if row["id"] in claimed else "open"


def find_row_faults(row: Mapping[str, Any], root: Path) -> Iterator[str]:
    """Yield what is wrong with a row by itself."""
    name = row.get("id", "a row without an id")
    if missing := sorted(REQUIRED - row.keys()):
        yield f"{name}: has no {', '.join(missing)}"
    if unknown := sorted(row.keys() - REQUIRED - OPTIONAL):
        yield f"{name}: has unknown keys: {', '.join(unknown)}"
    if wrong := sorted(key for key, value in row.items() if not isinstance(value, str) or not value.strip()):
        yield f"{name}: has no text as {', '.join(wrong)}"
    if row.get("part", PARTS[0]) not in PARTS:
        yield f"{name}: is of no known part: {row['part']}"
    if row.keys() >= OPTIONAL:
        yield f"{name}: is dropped, so it needs no design"
    file, _, constraint = str(row.get("design", "")).partition(": ")
    if "design" in row and not ((root / file).is_file() and constraint):
        yield f'{name}: its design is not "file: constraint" of a file that exists: {row["design"]}'


def find_faults(table: Mapping[str, Any], claims: Sequence[Claim], root: Path) -> Iterator[str]:
    """Yield what makes the table wrong: in a row, between rows, or between rows and tests."""
    rows = table["row"]
    for row in rows:
        yield from find_row_faults(row, root)
    ids = Counter(row["id"] for row in rows if "id" in row)
    yield from (f"{name}: {count} rows have this id" for name, count in ids.items() if count > 1)

    dropped = {row.get("id") for row in rows if "dropped" in row}
    for claim in claims:
        if claim.id is None:
            yield f"{claim.place}: an id of a parity mark is a literal string"
        elif claim.id not in ids:
            yield f"{claim.place}: claims {claim.id}, which no row has"
        elif claim.id in dropped:
            yield f"{claim.place}: claims {claim.id}, which is dropped"

    claimed = {claim.id for claim in claims}
    done = table["done"]["parts"]
    yield from (f"done: no part is called {part}" for part in done if part not in PARTS)
    for row in rows:
        if row.keys() >= REQUIRED and row["part"] in done and state_of(row, claimed) == "open":
            yield f"{row['id']}: is open, and {row['part']} is declared done"


def report(root: Path, part: str | None = None) -> tuple[list[str], list[str]]:
    """Return the table of parts, or the open rows of one part, and the faults."""
    table = tomllib.loads((root / "parity.toml").read_text(encoding="utf-8"))
    claims = read_claims(root)
    faults = list(find_faults(table, claims, root))
    rows = [row for row in table["row"] if row.keys() >= REQUIRED]
    claimed = {claim.id for claim in claims}
    if part is not None:
        is_open = (row for row in rows if row["part"] == part and state_of(row, claimed) == "open")
        return [f"{row['id']}: {row['what']}" for row in is_open], faults

    counts = Counter((key, state_of(row, claimed)) for row in rows for key in (row["part"], "total"))
    lines = [f"{'part':<16}" + " ".join(f"{title:>8}" for title in ("rows", *STATES))]
    for name in [*PARTS, "total"]:
        cells = [counts[name, state] for state in STATES]
        lines.append(f"{name:<16}" + " ".join(f"{count:>8,}" for count in (sum(cells), *cells)))
    return lines, faults


def main(arguments: Sequence[str] | None = None, *, root: Path = ROOT) -> int:
    """Print the table, or the open rows of one part, to stdout and the faults to stderr."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--part", choices=PARTS, help="list the open rows of this part")
    lines, faults = report(root, parser.parse_args(arguments).part)
    print("\n".join(lines))
    for fault in faults:
        print(fault, file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
