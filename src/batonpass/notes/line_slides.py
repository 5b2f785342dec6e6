"""Equal lines around a change: a diff could have taken them instead, and no diff knows which it was."""

from collections.abc import Iterator, Sequence


def slides(lines: Sequence[str], moved: Sequence[str], start: int, end: int) -> Iterator[int]:
    """Yield the numbers of lines that can be taken for lines of a block, which begins behind `start` lines.

    `moved` is the block: it is there from `start` to `end`, or it went and these are the same.
    """
    size = len(moved)
    # Going on beyond the block, it repeats itself.
    at = end
    while at < len(lines) and lines[at] == (moved[at - end] if at - end < size else lines[at - size]):
        at += 1
        yield at
    at = start - 1
    while at >= 0 and lines[at] == (moved[size - start + at] if start - 1 - at < size else lines[at + size]):
        yield at + 1
        at -= 1


def twins(lines: Sequence[str], start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the lines around a block with the line of the block that each can be taken for, as numbers from 1."""
    size = end - start
    for number in slides(lines, lines[start:end], start, end):
        yield number, number - size if number > end else number + size
