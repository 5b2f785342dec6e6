"""The file system's answer: where a path in a work tree leads once every link is followed."""

import os
from pathlib import Path

from batonpass.errors import InvalidValueError
from batonpass.model.base.checks import shorten


class WorkTreePaths:
    """Resolves paths against a work tree: relative to it if they lead into it, absolute if they lead out.

    It says how things are when it is asked. A link that is made or exchanged afterwards is not seen, and a hard link
    has no other name that could be found: a tool that must withstand a hostile work tree opens files without following
    links, below a directory that it holds open.
    """

    def __init__(self, root: Path) -> None:
        self._root = os.path.realpath(root)

    def __call__(self, path: str) -> str:
        """Return where a path leads. Raises `InvalidValueError` for one that no file system could follow."""
        try:
            real = os.path.realpath(os.path.join(self._root, path))  # noqa: PTH118 - as it is written, `..` included
        except (OSError, ValueError):
            raise InvalidValueError("path", f"{shorten(path)} leads nowhere") from None
        return self.place_of(real)

    def place_of(self, real: str) -> str:
        """Return a path whose links are followed likewise: relative to the work tree, or absolute."""
        if real == self._root:
            return "."
        inside = real.removeprefix(f"{self._root.rstrip('/')}/")
        return inside if inside != real else real
