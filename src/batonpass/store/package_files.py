"""The files that come with a package: statements and migrations."""

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable


def files_of(package: str) -> "Traversable":
    """Return the directory of a package, as `importlib.resources.files` does."""
    places = [Path(place) for place in import_module(package).__path__]
    if len(places) == 1 and places[0].is_dir():
        return places[0]
    # What can read archives loads those for temporary files and for three kinds of compression: as long as a third of
    # our own import, and nearly nobody runs a package from an archive.
    from importlib.resources import files  # noqa: PLC0415 - as above

    return files(package)
