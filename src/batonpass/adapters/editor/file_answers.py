"""Answers about whole files, kept while neither the file, the ledger nor the checked out commit has changed."""

import time
from collections import OrderedDict
from math import inf
from pathlib import Path
from typing import Final

from batonpass.accounts.blame.blame_text import Blame
from batonpass.adapters.line_blame import blame_beside, ledger_beside
from batonpass.attribution.changes.sides import find_repository
from batonpass.errors import BatonpassError
from batonpass.notes.foreign.agent_trace import FILE, FOLDER
from batonpass.notes.note_store import TRACKED, NoteKind
from batonpass.store.factory import SQLITE

_MOST: Final = 32
# No file tells that there is something new on a server, or in the sessions of agents; those take long to read.
_SERVER_STALE_AFTER: Final = 30.0  # seconds
_SESSIONS_STALE_AFTER: Final = 300.0

_Key = tuple[object, ...]


class FileAnswers:
    """Who wrote files. Not for several threads at once."""

    def __init__(self, ledger: str | None) -> None:
        self._ledger = ledger
        self._kept: OrderedDict[Path, tuple[_Key, float, Blame | BatonpassError]] = OrderedDict()

    def of(self, path: Path) -> Blame:
        """Return who wrote the lines of a file. Raises the errors of `blame_beside`."""
        settings = ledger_beside(path, self._ledger)
        url = None if settings is None else settings.ledger
        key = _signs(path, url)
        kept = self._kept.get(path)
        if kept is None or kept[0] != key or time.monotonic() > kept[1]:
            # Its end is counted from its beginning: a change while it is read may be in it or not.
            kept = key, time.monotonic() + _lasting(url), self._find(path)
            self._kept[path] = kept
            while len(self._kept) > _MOST:
                self._kept.popitem(last=False)
        self._kept.move_to_end(path)
        if isinstance(kept[2], BatonpassError):
            raise kept[2]
        return kept[2]

    def _find(self, path: Path) -> Blame | BatonpassError:
        """Return the answer, or why there is none, which is kept as well: a hover asks at every rest of the mouse."""
        try:
            return blame_beside(path, self._ledger)
        except BatonpassError as error:
            return error


def _lasting(url: str | None) -> float:
    if url is None:
        return _SESSIONS_STALE_AFTER
    return inf if url.startswith(SQLITE) else _SERVER_STALE_AFTER


def _signs(path: Path, url: str | None) -> _Key:
    """Return a fingerprint that changes whenever the answer may change."""
    seen = [path]
    if url is not None and url.startswith(SQLITE):
        database = url.removeprefix(SQLITE)
        seen += [Path(database), Path(f"{database}-wal")]
    repository = find_repository(path.parent)
    if repository is not None:
        folder = repository / ".git"
        seen += [folder, folder / "HEAD", folder / "logs" / "HEAD", folder / "packed-refs", folder / "ORIG_HEAD"]
        notes = folder / "refs" / "notes"
        seen += [*(notes / kind.value for kind in NoteKind), notes / "ai", folder / TRACKED, repository / FOLDER / FILE]
    return url, *map(_sign, seen)


def _sign(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except (OSError, ValueError):
        return None
    # An empty log means the same as a missing one.
    return (found.st_mtime_ns, found.st_size, found.st_ino) if found.st_size else None
