"""Replays the recorded writes of a file to its lines as they are now: for each the write, or why there is none.

A write names the digest that it found and the digest that it left. Where it found what the write before it had left, or
what an earlier one had, its hunks apply exactly. Where it found anything else, something unrecorded came between: only
lines that certainly survived it keep their writer, and are said to be recognised by their words.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from batonpass.attribution.alignment import align, is_distinctive
from batonpass.model.values import Hunk

Origin: TypeAlias = Literal["recorded", "older", "not_recorded", "unknown"]
"""A recorded write; there before the first one; came outside of it; of one of several, or its lines are gone."""

_MARGIN_US: Final = 1_000_000  # a call looks at its file a moment away from the times that its receipts have
_MOST_CHANGES: Final = 1_000  # that are looked past, from the latest on


class Write(Struct, frozen=True, kw_only=True):
    """What a recorded call left of a file."""

    before: str | None  # digests; None: there was no file
    after: str | None
    hunks: tuple[Hunk, ...] | None  # None: its lines were not kept
    began_at: int = 0
    ended_at: int = 0
    call: str = ""
    rivals: tuple[str, ...] = ()  # calls that may have written while this one ran, and left no outcome


class Line(Struct, eq=False):
    """A line through all texts in which it stands: its words are known as soon as one of them is."""

    origin: Origin
    text: str | None = None
    write: int | None = None  # the number of the write, if it is recorded
    hunk: str = ""
    is_matched: bool = False  # recognised by its words after an unrecorded change
    calls: tuple[str, ...] = ()  # if it is of one of several: which


class Replayed(Struct, frozen=True, kw_only=True):
    """The lines of a file as it is now."""

    lines: tuple[Line, ...]
    state: int | None  # the write that left exactly this; None: none did
    is_known: bool  # whether exactly this text was found or left by a recorded write


class _Text(Struct, eq=False, kw_only=True):
    """One text of the file: where the next write begins. Either it was made of `parent` by a write, or it is a base."""

    parent: "_Text | None" = None
    write: int | None = None
    base: Literal["created", "older", "changed", "opaque"] | None = None
    previous: "_Text | None" = None  # of a changed text: the last one that is known before it
    suspects: tuple[int, ...] = ()  # writes that may have run at the same time as this one
    is_whole: bool = False  # of an opaque text: there was no file, so all of its lines are its write's
    grew: int = 0  # lines, by its write


def replay(writes: Sequence[Write], digest: str, lines: Sequence[str]) -> Replayed:
    """Return who wrote the lines of a file that has this digest now."""
    known, last = _read(writes)
    present = known.get(digest)
    if present is not None:
        exact = _resolve(writes, present, lines)
        if exact is not None:
            return Replayed(lines=exact, state=present.write, is_known=True)
    changed = _Text(base="older" if last is None else "changed", previous=last)
    return Replayed(lines=_resolve(writes, changed, lines) or (), state=None, is_known=False)


def _read(writes: Sequence[Write]) -> tuple[dict[str, _Text], _Text | None]:
    """Return the texts that the record knows, by digest, and the last one."""
    known: dict[str, _Text] = {}
    last: _Text | None = None
    reached: str | None = None  # the digest of the last text
    for number, write in enumerate(writes):
        suspects: tuple[int, ...] = ()
        if last is not None and write.before != reached:
            suspects = _suspects(writes, number)
        if write.before is None:
            source = _Text(base="created")
        elif last is not None and write.before == reached:
            source = last
        elif write.before in known:
            source = known[write.before]
        else:
            source = known[write.before] = _Text(base="older" if last is None else "changed", previous=last)
        last, reached = _after(write, number, source, suspects), write.after
        if write.after is not None:
            known[write.after] = last
    return known, last


def _suspects(writes: Sequence[Write], number: int) -> tuple[int, ...]:
    """Return the writes whose lines this one may have found among its own, because both ran at once."""
    began_at = writes[number].began_at - _MARGIN_US
    return tuple(other for other in range(number) if writes[other].ended_at >= began_at)


def _after(write: Write, number: int, source: _Text, suspects: tuple[int, ...]) -> _Text:
    if write.after is None:
        return _Text(base="created", write=number)
    if write.hunks is None:
        return _Text(base="opaque", write=number, is_whole=write.before is None and not (suspects or write.rivals))
    grew = sum(len(hunk.added) - hunk.removed for hunk in write.hunks)
    return _Text(parent=source, write=number, suspects=suspects, grew=grew)


def _resolve(writes: Sequence[Write], text: _Text, words: Sequence[str]) -> tuple[Line, ...] | None:
    """Return the lines of a text whose words are known; None if the record does not lead to these words."""
    base, found, lines = _apply(writes, text, len(words))
    if len(lines) != len(words):
        return None
    for line, word in zip(lines, words, strict=True):
        line.text = word
    if base.base == "changed":
        _recognise(writes, base, found)
    return tuple(lines)


def _apply(writes: Sequence[Write], text: _Text, length: int | None = None) -> tuple[_Text, list[Line], list[Line]]:
    """Return where a text began, the lines that were there, and its own; none if its hunks do not fit.

    Without a length nobody knows how many lines there were: one line stands for each that the record does not know.
    """
    path: list[_Text] = []
    while text.parent is not None:
        path.append(text)
        text = text.parent
    found: list[Line] = []
    if length is not None and text.base != "created":
        found = [_base_line(text) for _ in range(length - sum(step.grew for step in path))]
    unknown = [_base_line(text)] if length is None and text.base != "created" else []
    lines = list(found)
    for step in reversed(path):
        hunks = writes[step.write or 0].hunks or ()
        end = max((hunk.at - 1 + hunk.removed for hunk in hunks), default=0)
        after = _apply_hunks(writes, step, lines + unknown * (end - len(lines)))
        if after is None:
            return text, found, []
        lines = after
    return text, found, lines + unknown


def _base_line(base: _Text) -> Line:
    if base.base == "opaque":
        return Line("recorded", write=base.write) if base.is_whole else Line("unknown")
    return Line("older" if base.base == "older" else "not_recorded")


def _apply_hunks(writes: Sequence[Write], step: _Text, lines: list[Line]) -> list[Line] | None:
    """Return the lines after a write; None if its hunks do not fit."""
    made: list[Line] = []
    at = 0
    for hunk in writes[step.write or 0].hunks or ():
        start = hunk.at - 1
        if not at <= start <= start + hunk.removed <= len(lines):
            return None
        made += lines[at:start]
        # As diff counts: a side without lines is named by the line before it.
        old, new = start + (hunk.removed > 0), len(made) + (len(hunk.added) > 0)
        place = f"@@ -{old},{hunk.removed} +{new},{len(hunk.added)} @@"
        made += [_added_line(writes, step, text, place) for text in hunk.added]
        at = start + hunk.removed
    return made + lines[at:]


def _added_line(writes: Sequence[Write], step: _Text, text: str, place: str) -> Line:
    number = step.write or 0
    write = writes[number]
    suspects = (writes[other] for other in step.suspects)
    rivals = [each.call for each in suspects if any(text in hunk.added for hunk in each.hunks or ())]
    if rivals or write.rivals:
        return Line("unknown", text, calls=(*rivals, *write.rivals, write.call))
    return Line("recorded", text, number, place)


def _recognise(writes: Sequence[Write], base: _Text, found: Sequence[Line]) -> None:
    """Let lines that survived an unrecorded change keep their writers."""
    if base.previous is None:
        return
    texts = [line.text for line in found]
    base, _, old = _apply(writes, base.previous)
    for place, source in align([line.text for line in old], texts).items():
        _keep(found[place], old[source])
    # Past a second change, what stands once, is distinctive, and was written by nothing else in the record.
    times = Counter(texts)
    rest = {line.text: line for line in found if line.origin == "not_recorded" and times[line.text] == 1}
    rest = {text: line for text, line in rest.items() if text and is_distinctive(text)}
    only = _only_writers(writes) if base.previous is not None and rest else {}
    for _ in range(_MOST_CHANGES):
        if base.previous is None or not rest:
            return
        base, _, old = _apply(writes, base.previous)
        for line in old:
            if line.text is not None and line.text in rest and only[line.text] == line.write:
                _keep(rest.pop(line.text), line)


def _keep(line: Line, source: Line) -> None:
    line.origin, line.write, line.hunk, line.is_matched = source.origin, source.write, source.hunk, True
    line.calls = source.calls


def _only_writers(writes: Sequence[Write]) -> dict[str, int | None]:
    """Return of each line that was ever written by which write; None if by several."""
    only: dict[str, int | None] = {}
    for number, write in enumerate(writes):
        for hunk in write.hunks or ():
            for text in hunk.added:
                only[text] = number if only.get(text, number) == number else None
    return only
