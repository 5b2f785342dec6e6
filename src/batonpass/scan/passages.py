"""Finds passages of some texts in others, also in another spelling, at a bounded cost.

Texts are compared by their letters and digits. Blocks at regular distances are kept of each source. A copied passage
contains at least one of them, and from there it is followed to both ends. Shorter copies are recognised by distinctive
words: an address, an account, a pipe into a program.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Generic, NamedTuple, TypeVar

from batonpass.scan.letters import Reading, letters_of, read_plain
from batonpass.scan.tokens import find_tokens

Name = TypeVar("Name")

PASSAGE: Final = 28  # letters and digits, about six words; shorter matches happen by chance
BLOCK: Final = PASSAGE // 2  # any passage contains a whole block of its source
_SHORTEST: Final = 6
_SHORTEST_WHOLE: Final = 20  # for a text that is contained in another completely
_MOST_BLOCKS: Final = 1 << 19  # per text; above six million letters the blocks are further apart
_MOST_LETTERS: Final = 1 << 24  # per text
_MOST_TEXTS: Final = 64
_MOST_MARKS: Final = 1 << 13  # blocks and tokens of one text in the shared index
_MOST_IN_ALL: Final = 1 << 25  # letters of all texts together; the latest text is always kept
_MOST_LOOKED_AT: Final = 1 << 18  # characters per call
_SIGN: Final = re.compile(r"(?<![/:\w])(?:~?/|[$€£¥+])$")
_LONGEST_AROUND: Final = 1024  # letters on each side of a token
_STEP: Final = 16  # characters that are compared first
_MOST_FOLLOWED: Final = 256  # tokens of one text that are extended to a passage


class Span(NamedTuple):
    """A part of a text; the end is exclusive."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class _Text:
    letters: str = field(repr=False)
    blocks: dict[str, int] = field(repr=False)  # the position of each in `letters`
    tokens: frozenset[str] = field(repr=False)

    @classmethod
    def of(cls, text: str) -> "_Text":
        plain = read_plain(text)
        letters = letters_of(plain)[:_MOST_LETTERS]
        stride = max(BLOCK, -(-len(letters) // _MOST_BLOCKS))
        # Of equal blocks the first wins: most quotes start at the beginning of a passage.
        last = (len(letters) - BLOCK) // stride * stride
        blocks = {letters[at : at + BLOCK]: at for at in range(last, -1, -stride)}
        return cls(letters, blocks, frozenset(token.key for token in find_tokens(plain)))

    @property
    def is_long(self) -> bool:
        """Return whether it has too many blocks and tokens for the shared index."""
        return len(self.blocks) + len(self.tokens) > _MOST_MARKS


@dataclass(slots=True)
class Passages(Generic[Name]):
    """Texts by name that are searched for in others; the oldest are dropped when there are too many."""

    texts: dict[Name, _Text] = field(default_factory=dict)
    _letters: int = 0  # of all of them
    # How many texts have each block and token, without long texts. If there are no long texts, a value without any of
    # these marks needs no comparison.
    _marks: dict[str, int] = field(default_factory=dict, repr=False, compare=False)
    _long: int = 0  # number of long texts, which are not in the index

    def add(self, name: Name, text: str) -> None:
        """Add a text."""
        read = _Text.of(text)
        if len(read.letters) >= _SHORTEST:
            self._take(name, read)

    def update(self, other: "Passages[Name]") -> None:
        """Add the texts of another instance, without reading them again."""
        for name, text in other.texts.items():
            self._take(name, text)

    def _take(self, name: Name, text: _Text) -> None:
        known = self.texts.get(name)
        if known is not None:
            self._let_go(known)
        self.texts[name] = text
        self._letters += len(text.letters)
        self._long += text.is_long
        marks = self._marks
        for mark in () if text.is_long else (*text.blocks, *text.tokens):
            marks[mark] = marks.get(mark, 0) + 1
        while len(self.texts) > _MOST_TEXTS or (self._letters > _MOST_IN_ALL and len(self.texts) > 1):
            self._let_go(self.texts.pop(next(iter(self.texts))))

    def _let_go(self, text: _Text) -> None:
        self._letters -= len(text.letters)
        self._long -= text.is_long
        marks = self._marks
        for mark in () if text.is_long else (*text.blocks, *text.tokens):
            if marks[mark] == 1:
                del marks[mark]
            else:
                marks[mark] -= 1

    def _may_share(self, tokens: frozenset[str], letters: str) -> bool:
        """Return whether a value may have a token or a block of a text that is not long."""
        marks = self._marks
        if not marks.keys().isdisjoint(tokens):
            return True
        # To search for a block is as costly as to make three windows. The cheaper way is taken.
        if 3 * len(marks) < len(letters):
            return any(map(letters.__contains__, marks))
        return not marks.keys().isdisjoint(_windows(letters))

    def find(self, values: Iterable[str], names: Mapping[Name, object]) -> tuple[Name, ...]:
        """Return the named texts of which passages occur in one of these values."""
        texts: dict[Name, _Text] | None = None  # set at the first value that may match
        found: set[Name] = set()
        left = _MOST_LOOKED_AT
        for value in values if self.texts else ():
            if left <= 0 or (texts is not None and len(found) == len(texts)):
                break
            if len(value) < BLOCK and value.isascii() and value.isalpha():
                left -= len(value)
                continue  # a single short word, such as the name of an argument, proves nothing
            reading = Reading(value[:left])
            left -= len(value)
            tokens = frozenset(token.key for token in find_tokens(reading.plain))
            letters = reading.letters
            if not tokens and len(letters) < BLOCK:
                continue  # shorter than a block and without tokens: it cannot match
            may_be_whole = _may_be_whole(reading)
            # Most values match no text, and the shared index tells that at once.
            if not (self._long or may_be_whole or self._may_share(tokens, letters)):
                continue
            windows = _windows(letters)
            if texts is None:
                texts = {name: text for name, text in self.texts.items() if name in names}
            for name, text in texts.items():
                # The cheap tests first: there may be many texts, and most do not match.
                if tokens.isdisjoint(text.tokens) and not may_be_whole and windows.isdisjoint(text.blocks):
                    continue
                if name not in found and _stands(text, reading, tokens, windows):
                    found.add(name)
        return tuple(name for name in texts or () if name in found)


def _windows(letters: str) -> set[str]:
    """Return every block of letters, wherever it begins."""
    return {letters[at : at + BLOCK] for at in range(len(letters) - BLOCK + 1)}


def mark(text: str, passages: Passages[Name], known: Passages[Name] | None = None) -> tuple[Span, ...]:
    """Return the spans of a text that are passages of these sources, from left to right, without overlap.

    Passages that also occur in `known` are not marked: a trusted author wrote them before.
    """
    reading = Reading(text)
    tokens = {token.key: (token.start, token.end) for token in find_tokens(reading.plain)}
    ours = () if known is None else tuple(known.texts.values())
    said = frozenset().union(*(each.tokens for each in ours))
    parts: list[Span] = []
    for source in passages.texts.values():
        shared = [place for key, place in tokens.items() if key in source.tokens and key not in said]
        parts += _followed(source, reading, shared)
        parts += _runs(source, reading)
        if _is_whole(source, reading):
            parts.append(Span(0, len(reading.letters)))
    parts = _joined(parts)
    for each in ours:
        if parts:
            parts = _without(parts, _joined([*_runs(each, reading)]), tokens, reading)
        if _is_whole(each, reading):
            return ()
    return tuple(_joined([_written(reading, part) for part in parts]))


def _stands(text: _Text, reading: Reading, tokens: frozenset[str], windows: set[str]) -> bool:
    if not tokens.isdisjoint(text.tokens) or _is_whole(text, reading):
        return True
    return not text.blocks.keys().isdisjoint(windows) and next(_runs(text, reading), None) is not None


def _is_whole(text: _Text, reading: Reading) -> bool:
    """Return whether a short text is contained in a source completely."""
    return _may_be_whole(reading) and reading.letters in text.letters


def _may_be_whole(reading: Reading) -> bool:
    return _SHORTEST_WHOLE <= len(reading.letters) < PASSAGE


def _runs(source: _Text, reading: Reading) -> Iterator[Span]:
    """Yield the passages of a source in the letters of a text.

    Each letter is compared at most twice: the search goes on behind the end of a passage.
    """
    letters, blocks = reading.letters, source.blocks
    done = at = 0
    while at + BLOCK <= len(letters):
        begins = blocks.get(letters[at : at + BLOCK])
        if begins is None:
            at += 1
            continue
        start, end = _extent(source.letters, letters, begins, at, BLOCK, least=done)
        span = _whole_words(reading, start, end)
        if span.end - span.start >= PASSAGE:
            yield span
        done = at = max(end, at + 1)


def _followed(source: _Text, reading: Reading, places: list[tuple[int, int]]) -> Iterator[Span]:
    """Yield the tokens in a text, each extended by everything around it that the source has too."""
    for number, (start, end) in enumerate(places):
        first, last = reading.letter_at(start), reading.letter_at(end)
        word = reading.letters[first:last]
        begins = source.letters.find(word) if number < _MOST_FOLLOWED else -1
        if begins < 0:
            yield Span(first, last)  # another spelling: `9,800 EUR` and `EUR 9800`
            continue
        outer = _extent(source.letters, reading.letters, begins, first, len(word), least=0, most=_LONGEST_AROUND)
        around = _whole_words(reading, *outer)
        yield Span(min(first, around.start), max(last, around.end))


def _extent(
    source: str, letters: str, begins: int, at: int, size: int, *, least: int, most: int | None = None
) -> tuple[int, int]:
    """Return how far two texts are equal around a position in each."""
    before = min(begins, at - least) if most is None else min(begins, at - least, most)
    room = min(len(source) - begins, len(letters) - at)
    room = room if most is None else min(room, size + most)
    ahead = _same(source, letters, begins + size, at + size, room - size, back=False)
    return at - _same(source, letters, begins, at, before, back=True), at + size + max(ahead, 0)


# A hostile text may share long runs with many sources, so pieces of growing size are compared, and the place where they
# differ is found by bisection.
def _same(one: str, other: str, first: int, second: int, most: int, *, back: bool) -> int:
    """Return how many characters are equal after two positions, or before them, up to a limit."""
    done, step = 0, _STEP
    while done < most:
        step = min(step, most - done)
        here, there = (first - done - step, second - done - step) if back else (first + done, second + done)
        if one[here : here + step] == other[there : there + step]:
            done, step = done + step, step * 2
        elif step == 1:
            break
        else:
            step = step // 2
            most = min(most, done + 2 * step + 1)
    return done


def _whole_words(reading: Reading, start: int, end: int) -> Span:
    """Return a span of letters without partial words at its ends."""
    start = min(reading.start_from(start), end)
    return Span(start, max(reading.start_until(end), start))


def _joined(spans: Iterable[Span]) -> list[Span]:
    """Return spans from left to right; those that touch are joined."""
    joined: list[Span] = []
    for span in sorted(spans):
        if span.end <= span.start:
            continue
        if joined and span.start <= joined[-1].end:
            joined[-1] = Span(joined[-1].start, max(joined[-1].end, span.end))
        else:
            joined.append(span)
    return joined


def _without(spans: list[Span], gone: list[Span], tokens: dict[str, tuple[int, int]], reading: Reading) -> list[Span]:
    """Return spans minus others; a remainder stays if it is long enough or contains a token."""
    places = [(reading.letter_at(start), reading.letter_at(end)) for start, end in tokens.values()]
    left: list[Span] = []
    for span in spans:
        at = span.start
        for cut in gone:
            if cut.end <= at or cut.start >= span.end:
                continue
            left.append(Span(at, max(at, cut.start)))
            at = max(at, cut.end)
        left.append(Span(at, span.end))
    return [
        span
        for span in left
        if span.end - span.start >= PASSAGE or any(span.start <= start < end <= span.end for start, end in places)
    ]


def _written(reading: Reading, span: Span) -> Span:
    """Return a span of letters as a span of the original, with the sign that a path or an amount begins with."""
    start, end = reading.plain_at(span.start), reading.plain_at(span.end - 1) + 1
    sign = _SIGN.search(reading.plain[max(0, start - 3) : start])
    start -= 0 if sign is None else len(sign[0])
    return Span(*reading.written(start, end))
