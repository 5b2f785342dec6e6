"""Loads SQL statements by name. Each is in a `.sql` file of its package, under a `-- name:` line."""

import re
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable


def files_of(package: str) -> "Traversable":
    """Return the directory of a package, as `importlib.resources.files` does, and mostly without importing that."""
    places = [Path(place) for place in import_module(package).__path__]
    if len(places) == 1 and places[0].is_dir():
        return places[0]
    # importlib.resources can read archives, and imports tempfile and three compression modules for that. This takes a
    # third as long as importing all of batonpass, and hardly anybody runs a package from an archive.
    from importlib.resources import files  # noqa: PLC0415 - as above

    return files(package)


_NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)


class Queries(dict[str, str]):
    """The statements of one file, by name.

    It is a dict, and not an object that has one, because every statement that runs is looked up here.
    """

    def __init__(self, package: str, file: str = "queries.sql") -> None:
        text = files_of(package).joinpath(file).read_text(encoding="utf-8")
        _, *parts = _NAME.split(text)
        for name, statement in zip(parts[::2], parts[1::2], strict=True):
            self[name] = _without_remarks(statement)


def _without_remarks(statement: str) -> str:
    """Return a statement without its semicolon and without the comment behind it, which is about the next statement."""
    lines = statement.rstrip().splitlines()
    while lines and (lines[-1].startswith("--") or not lines[-1].strip()):
        lines.pop()
    return "\n".join(lines).strip().removesuffix(";")
