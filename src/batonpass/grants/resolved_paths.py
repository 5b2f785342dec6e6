"""Where a path in a work tree leads once every link is followed."""

import os
from pathlib import Path

from batonpass.errors import InvalidValueError
from batonpass.model.base.checks import shorten


class WorkTreePaths:
    """Resolves paths against a work tree: relative to it if they lead into it, absolute if they lead out.

    The answer holds for the moment of the question. A link that is made or replaced afterwards is not seen, and no hard
    link can be recognised. A tool that must withstand a hostile work tree has to open files without following links,
    below a directory that it holds open.
    """

    def __init__(self, root: Path) -> None:
        self._root = os.path.realpath(root)

    def __call__(self, path: str) -> str:
        """Return where a path leads. Raises `InvalidValueError` if no file system could follow it."""
        try:
            real = os.path.realpath(os.path.join(self._root, path))  # noqa: PTH118 - as written, `..` included: a link before `..` changes where it leads
        except (OSError, ValueError):
            raise InvalidValueError("path", f"{shorten(path)} leads nowhere") from None
        return self.place_of(real)

    def place_of(self, real: str) -> str:
        """Return a path whose links are already followed: relative to the work tree if it is inside, else absolute."""
        if real == self._root:
            return "."
        inside = real.removeprefix(f"{self._root.rstrip('/')}/")
        return inside if inside != real else real
