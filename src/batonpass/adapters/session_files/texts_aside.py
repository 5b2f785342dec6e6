"""Long texts of a session, on disk while the tree of the session is in memory."""

import tempfile
import weakref
from collections.abc import Iterator, Mapping
from typing import IO, Any, Final

import msgspec

_LONG: Final = 8 * 1024  # characters; most are far shorter, and stay where they are


class TextsAside:
    """A temporary file that is there as long as somebody may read from it."""

    def __init__(self) -> None:
        self._file: IO[bytes] | None = None
        self._end = 0

    def keep(self, data: bytes) -> "AsideText":
        """Put a text aside."""
        if self._file is None:
            self._file = tempfile.TemporaryFile(prefix="batonpass-read-")  # noqa: SIM115 - the finalizer closes it
            weakref.finalize(self, self._file.close)
        self._file.seek(self._end)
        self._end += self._file.write(data)
        return AsideText(self, self._end - len(data), len(data))

    def arguments(self, given: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return arguments, put aside if they are long and JSON can have them."""
        if sum(len(one) if isinstance(one, str) else _inside(one) for one in given.values()) < _LONG:
            return given
        try:
            return AsideArguments(self.keep(msgspec.json.encode(given)))
        except (TypeError, ValueError, RecursionError):
            return given  # half a surrogate pair, or something else that is kept as it is

    def text(self, given: str) -> "AsideText | None":
        """Put a text aside if it is long; None if it is not, or cannot be written."""
        try:
            return self.keep(given.encode()) if len(given) >= _LONG else None
        except UnicodeEncodeError:
            return None

    def read(self, start: int, size: int) -> bytes:
        """Return the bytes of a text that was put aside."""
        if self._file is None:
            raise EOFError
        self._file.seek(start)
        return self._file.read(size)


class AsideText:
    """Where a text is."""

    __slots__ = ("_aside", "_size", "_start")

    def __init__(self, aside: TextsAside, start: int, size: int) -> None:
        self._aside, self._start, self._size = aside, start, size

    def read(self) -> bytes:
        """Return the text."""
        return self._aside.read(self._start, self._size)


class AsideArguments(Mapping[str, Any]):
    """Arguments of a call that are read when they are needed."""

    __slots__ = ("_text",)

    def __init__(self, text: AsideText) -> None:
        self._text = text

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401 - whatever a call is given
        return self._read()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._read())

    def __len__(self) -> int:
        return len(self._read())

    def _read(self) -> dict[str, Any]:
        told: dict[str, Any] = msgspec.json.decode(self._text.read())
        return told


def _inside(value: object) -> int:
    """Return how many characters are in a value, as far as that can be seen at a glance."""
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return sum(
        len(one) if isinstance(one, str) else _LONG if isinstance(one, dict | list) and one else 0 for one in parts
    )
