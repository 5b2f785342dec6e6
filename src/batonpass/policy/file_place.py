"""Where `batonpass.toml` is. Whoever opens a ledger asks for it; few have one, and only they load what reads it."""

from pathlib import Path
from typing import Final

FILE_NAME: Final = "batonpass.toml"


def find_file(directory: Path) -> Path | None:
    """Return the nearest `batonpass.toml`, here or in a parent; None if there is none."""
    for place in (directory, *directory.parents):
        if (place / FILE_NAME).is_file():
            return place / FILE_NAME
    return None
