"""The base of readers of files that people name: all sessions in them count, wherever agents worked."""

from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from functools import cached_property, partial
from pathlib import Path
from typing import ClassVar, Final

from msgspec.structs import replace

from batonpass.adapters.session_files.json_lines import EPOCH, UNREADABLE, mending, why_unreadable
from batonpass.adapters.session_files.session_place import SessionFiles
from batonpass.adapters.session_files.session_reader import SessionReader
from batonpass.adapters.session_files.session_values import SkippedLine
from batonpass.adapters.trace_files.item_spool import ItemSpool, SpooledSession
from batonpass.adapters.trace_files.json_items import JsonItem, find_items

_KEPT: Final = 1000


class NamedSource(SessionReader):
    """A reader of files that a person names, on the command line or in a program."""

    source: ClassVar[str]  # the kind of its input, as a command's help says it
    may_fork: ClassVar[bool] = False

    def __init__(self, sources: Sequence[str]) -> None:
        self.sources = tuple(sources)

    @property
    def place(self) -> Path:
        """Return the first of the files."""
        return Path(self.sources[0])

    def mentioning(self, names: Iterable[str]) -> Callable[[SessionFiles], bool]:
        """Return a test whether a session may mention one of these files; here nobody knows before it is read."""
        del names
        return lambda _: True

    def ids(self, files: SessionFiles) -> Iterator[str]:
        """Yield nothing: no session begins with records of another."""
        del files
        return iter(())


class SpooledSource(NamedSource):
    """A reader of files in which sessions are mixed: they are read once, and taken apart on disk."""

    ways: ClassVar[frozenset[str]] = frozenset()
    units: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, sources: Sequence[str]) -> None:
        super().__init__(sources)
        self._skipped: list[SkippedLine] = []
        self._unkept = 0

    @abstractmethod
    def take(self, spool: ItemSpool, path: Path, item: JsonItem) -> None:
        """Put the items of one value of a file into the spool. Raises one of `UNREADABLE` if it cannot be read."""

    def find(self, project: Path) -> Iterator[SessionFiles]:
        """Yield all sessions in the files, wherever they worked."""
        del project
        for one in self._sessions.values():
            extent = {"items": one.items, "bytes": one.size, "until": int(one.ended * 1000)}
            yield SessionFiles(session=one.name, main=self.place, extent=extent)

    def began_at(self, files: SessionFiles) -> datetime:
        """Return the time of the first item."""
        found = self._sessions.get(files.session)
        return EPOCH if found is None else datetime.fromtimestamp(found.begun, UTC)

    def ended_at(self, files: SessionFiles) -> datetime:
        """Return the time of the last item."""
        found = self._sessions.get(files.session)
        return EPOCH if found is None else datetime.fromtimestamp(found.ended, UTC)

    def problems(self) -> tuple[SkippedLine, ...]:
        """Return the first lines that could not be read, and how many more there are."""
        if not self._unkept:
            return tuple(self._skipped)
        more = SkippedLine(path=self.place, line=0, what=f"{self._unkept:,} more could not be read", times=self._unkept)
        return (*self._skipped, more)

    def skip(self, path: Path, line: int, what: str, *, times: int = 1) -> None:
        """Note that something could not be read."""
        if len(self._skipped) < _KEPT:
            self._skipped.append(SkippedLine(path=path, line=line, what=what, times=times))
        else:
            self._unkept += times

    @cached_property
    def spool(self) -> ItemSpool:
        """Return all sessions, after the files were read."""
        spool = ItemSpool()
        for source in self.sources:
            path = Path(source)
            try:
                self._read(spool, path)
            except OSError as error:
                self.skip(path, 0, f"cannot be read: {error.strerror}")
        return spool

    @cached_property
    def _sessions(self) -> dict[str, SpooledSession]:
        return {one.name: one for one in self.spool.sessions()}

    def _read(self, spool: ItemSpool, path: Path) -> None:
        for item in find_items(path, ways=self.ways, units=self.units):
            if isinstance(item, SkippedLine):
                self.skip(item.path, item.line, item.what)
                continue
            taking = partial(self._take_mended, spool, path, item)
            try:
                mending(taking, item.data)
            except UNREADABLE as error:
                self.skip(path, item.line, f"{item.place}{why_unreadable(error)}")
        self.read_all(path)

    def _take_mended(self, spool: ItemSpool, path: Path, item: JsonItem, data: bytes) -> None:
        self.take(spool, path, replace(item, data=data))

    def read_all(self, path: Path) -> None:
        """Finish a file after all of it was read."""


class TallyOfUnknown:
    """Counts names that a format does not have, and says each once."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._lines: dict[str, int] = {}

    def add(self, what: str, line: int) -> None:
        """Count one more; the first line is kept."""
        known = what in self._counts or len(self._counts) < _KEPT
        name = what if known else "of further names"
        self._counts[name] += 1
        self._lines.setdefault(name, line)

    def tell(self) -> Iterator[tuple[str, int, int]]:
        """Yield each problem with its first line and its count."""
        return ((what, self._lines[what], times) for what, times in self._counts.items())
