"""A folder that takes long to make: every test finds it as it was made, under the same path."""

import shutil
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class KeptFolder:
    """A folder, and a copy of it beside it. Its path stays, which hooks, remotes and ledgers have written down."""

    path: Path

    @property
    def _copy(self) -> Path:
        return self.path.with_name(f"{self.path.name}-as-it-was")

    def keep(self) -> "KeptFolder":
        """Copy what was made, and return this folder."""
        shutil.copytree(self.path, self._copy, symlinks=True)
        return self

    def restore(self) -> Path:
        """Return the folder with nothing in it but what was made, whatever a test did to it."""
        shutil.rmtree(self.path, ignore_errors=True)
        shutil.copytree(self._copy, self.path, symlinks=True)
        return self.path
