"""What no call may touch: the record, its keys, and what decides about calls."""

import os
import stat
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import unquote

from batonpass.store.home import home_of

RECORD: Final = "the ledger or its keys"
RULES: Final = "what decides about calls"

_LONGEST_PATH: Final = 4096
_FILE: Final = "file"
_RULES: Final = (".claude/settings.json", ".claude/settings.local.json", "batonpass.toml")
_AROUND_RULES: Final = (".claude",)


@dataclass(frozen=True, slots=True)
class Protected:
    """The places of one relay: where its record and keys lie, and the files that decide about calls."""

    record: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()
    around_rules: tuple[str, ...] = ()  # directories that may be worked in, and not moved, removed or replaced

    @classmethod
    def around(cls, home: Path | None, ledger: str, work_tree: Path) -> "Protected":
        """Return what is to be protected of a relay that keeps its keys in `home` and its ledger at a URL."""
        places = [] if home is None else [str(home)]
        file = ledger.removeprefix("sqlite:///") if ledger.startswith("sqlite:///") else None
        if file is not None:
            places += [*(f"{file}{ending}" for ending in ("", "-wal", "-shm")), str(home_of(Path(file)))]
        return cls(
            tuple(os.path.realpath(place) for place in places),
            tuple(os.path.realpath(work_tree / name) for name in _RULES),
            tuple(os.path.realpath(work_tree / name) for name in _AROUND_RULES),
        )

    def find(self, paths: Iterable[str], *, reads: bool, enforced: bool, targets: Collection[str] = ()) -> str | None:
        """Return what a call would touch that names these paths, each with every link followed; None if nothing.

        In a run that is only watched nothing is kept from being read, and only the record from being changed. Under a
        grant, a call that changes its target touches all that lies in it: who moves a directory moves its files.
        """
        if reads and not enforced:
            return None
        changes = enforced and not reads
        for path in paths:
            whole, linked = changes and path in targets, _identity(path)
            if _touches(path, self.record, whole=whole) or (linked and linked in _identities(self.record)):
                return RECORD
            if changes and (
                _touches(path, self.rules, whole=whole)
                or any(_is(path, place) for place in self.around_rules)
                or (linked and linked in _identities(self.rules))
            ):
                return RULES
        return None


def paths_in(arguments: Mapping[str, object], directory: str) -> Iterator[str]:
    """Yield where the texts among arguments would lead as paths: at any depth, and names of fields as well.

    Some tools take a list, as commands are; some a mapping from paths to what is to be written there.
    """
    pending: list[object] = [*arguments.values()]
    seen: set[str] = set()
    while pending:
        value = pending.pop()
        if isinstance(value, Mapping):
            pending += [*value, *value.values()]
        elif isinstance(value, list | tuple):
            pending += value
        elif isinstance(value, str) and 0 < len(value) <= _LONGEST_PATH and "\n" not in value and "\0" not in value:
            for spelled in _spellings(value) - seen:
                seen.add(spelled)
                yield os.path.realpath(os.path.join(directory, spelled))  # noqa: PTH118 - as it is written, `..` included


def _spellings(value: str) -> set[str]:
    """Return the paths that a tool may read in a text: an option has one behind a sign, as in `--file=x`."""
    found = {value, value.rpartition("=")[2]}
    for part in tuple(found):
        if part.startswith("~"):
            found.add(os.path.expanduser(part))  # noqa: PTH111 - a text is wanted
        elif part[: len(_FILE) + 1].casefold() == f"{_FILE}:":
            found.add(unquote(part.partition(":")[2].removeprefix("//localhost").removeprefix("//")))
    return found - {""}


def _touches(path: str, places: Iterable[str], *, whole: bool) -> bool:
    return any(_lies_in(path, place) or (whole and _lies_in(place, path)) for place in places)


def _lies_in(path: str, place: str) -> bool:
    # Case never counts: on some disks it does not.
    given, ours = path.casefold(), place.casefold()
    return given == ours or given.startswith(f"{ours.rstrip('/')}/")


def _is(path: str, place: str) -> bool:
    return path.casefold() == place.casefold()


def _identity(path: str) -> tuple[int, int] | None:
    """Return which file a path leads to, if it is one that has another name as well: a hard link cannot be followed."""
    try:
        found = os.stat(path)  # noqa: PTH116 - a text is given
    except (OSError, ValueError):
        return None
    return (found.st_dev, found.st_ino) if stat.S_ISREG(found.st_mode) and found.st_nlink > 1 else None


def _identities(places: Iterable[str]) -> set[tuple[int, int]]:
    found: set[tuple[int, int]] = set()
    for place in places:
        below = (os.path.join(folder, name) for folder, _, names in os.walk(place) for name in names)  # noqa: PTH118
        found |= {known for path in (place, *below) if (known := _identity(path)) is not None}
    return found
