"""What no call may touch: the record, its keys, and what decides about calls."""

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

_LONGEST_PATH: Final = 4096
_RULES: Final = (".claude/settings.json", ".claude/settings.local.json", "batonpass.toml")


@dataclass(frozen=True, slots=True)
class Protected:
    """The places of one relay: where its record and keys lie, and the files that decide about calls."""

    record: tuple[str, ...] = ()
    rules: tuple[str, ...] = field(default=())

    @classmethod
    def around(cls, home: Path | None, ledger: str, work_tree: Path) -> "Protected":
        """Return what is to be protected of a relay that keeps its keys in `home` and its ledger at a URL."""
        places = [] if home is None else [str(home)]
        file = ledger.removeprefix("sqlite:///") if ledger.startswith("sqlite:///") else None
        if file is not None:
            places += [f"{file}{ending}" for ending in ("", "-wal", "-shm")]
        return cls(
            tuple(os.path.realpath(place) for place in places),
            tuple(os.path.realpath(work_tree / name) for name in _RULES),
        )

    def find(self, paths: Iterable[str], *, reads: bool, enforced: bool) -> str | None:
        """Return what one of these paths, each with every link followed, would touch; None if nothing.

        In a run that is only watched nothing is kept from being read, and only the record from being changed.
        """
        for path in paths:
            if any(_lies_in(path, place) for place in self.record) and (enforced or not reads):
                return "the ledger or its keys"
            if enforced and not reads and any(_lies_in(path, place) for place in self.rules):
                return "what decides about calls"
        return None


def paths_in(arguments: Mapping[str, object], directory: str) -> Iterator[str]:
    """Yield where the texts among arguments would lead as paths, also those in lists, as commands have them."""
    pending = list(arguments.values())
    while pending:
        value = pending.pop()
        if isinstance(value, list | tuple):
            pending += value
        elif isinstance(value, str) and 0 < len(value) <= _LONGEST_PATH and "\n" not in value and "\0" not in value:
            # An option may have its path behind a sign, as in `--file=x`.
            for part in {value, value.rpartition("=")[2]} - {""}:
                yield os.path.realpath(os.path.join(directory, part))  # noqa: PTH118 - as it is written, `..` included


def _lies_in(path: str, place: str) -> bool:
    # Case never counts: on some disks it does not.
    given, ours = path.casefold(), place.casefold()
    return given == ours or given.startswith(f"{ours.rstrip('/')}/")
