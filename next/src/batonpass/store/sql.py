"""Queries by name, out of `.sql` files. A parameter is written `:name`, and means the same in both dialects."""

from pathlib import Path
from typing import Final

_HERE: Final = Path(__file__).parent


def read_sql(path: str) -> str:
    """Return the text of a file of SQL, by its place below this package."""
    return _HERE.joinpath(path).read_text(encoding="utf-8")


def read_queries(*paths: str) -> dict[str, str]:
    """Return the queries of some files: `-- name: get_stream` begins one."""
    queries: dict[str, str] = {}
    for path in paths:
        for block in read_sql(path).split("-- name: ")[1:]:
            name, _, text = block.partition("\n")
            lines = [line for line in text.splitlines() if not line.startswith("--")]
            queries[name.strip()] = "\n".join(lines).strip()
    return queries
