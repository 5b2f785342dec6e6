"""The place of `batonpass.toml`. It is separate because every start looks for the file, and most find none."""

from pathlib import Path
from typing import Final

FILE_NAME: Final = "batonpass.toml"


def find_file(directory: Path) -> Path | None:
    """Return the nearest `batonpass.toml`, here or in a parent directory; None if there is none."""
    for place in (directory, *directory.parents):
        if (place / FILE_NAME).is_file():
            return place / FILE_NAME
    return None
