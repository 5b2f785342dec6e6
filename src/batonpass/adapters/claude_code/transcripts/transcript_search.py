"""Which transcripts can tell of a file: found by their bytes, so that the others need not be read at all."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import Final

from batonpass.adapters.claude_code.transcripts.transcript_places import Transcript

_CHUNK: Final = 1024 * 1024

# JSON writes these as they are, always. Everything else may be escaped, in more than one way.
_PLAIN: Final = re.compile(r"[A-Za-z0-9 ._+@,()=-]+")


def mentioning(names: Iterable[str]) -> Callable[[Transcript], bool]:
    """Return what tells whether a session's files may name one of these files; it never misses one that does.

    Paths in transcripts are absolute, relative, or parts of commands: the last part of a name is what they share.
    """
    wanted = {_certain_part(PurePosixPath(name).name) for name in names}

    def may_mention(transcript: Transcript) -> bool:
        return any(_holds(path, wanted) for path in transcript.files)

    return may_mention


def _certain_part(name: str) -> bytes:
    """Return the longest part of a name that JSON cannot have written in another way."""
    return max(_PLAIN.findall(name), key=len, default="").encode()


def _holds(path: Path, wanted: Collection[bytes]) -> bool:
    longest = max(map(len, wanted), default=0)
    try:
        with path.open("rb") as file:
            kept = b""
            while chunk := file.read(_CHUNK):
                text = kept + chunk
                if any(part in text for part in wanted):
                    return True
                kept = text[-longest:]  # a name may begin in one chunk and end in the next
            return False
    except OSError:
        return True  # whoever reads it will say why it cannot be read


def total_size(transcripts: Iterable[Transcript]) -> int:
    """Return how many bytes these sessions' files have."""
    return sum(_sizes(transcripts))


def _sizes(transcripts: Iterable[Transcript]) -> Iterator[int]:
    for transcript in transcripts:
        for path in transcript.files:
            try:
                yield path.stat().st_size
            except OSError:
                continue
