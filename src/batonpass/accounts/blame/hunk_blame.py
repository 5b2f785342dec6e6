"""Blame for a commit or diff: one line for each hunk, with the authors of the added lines."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby

from msgspec import Struct
from msgspec.structs import replace

from batonpass.accounts.blame.blame_text import Blame
from batonpass.accounts.blame.blame_values import BlamedLine, HowKnown, Maker
from batonpass.accounts.blame.blame_words import BlameRow, approval_notes, hearsay_words, quoted, who
from batonpass.accounts.trail.receipt_lines import Tone, TrailNote
from batonpass.attribution.git.commit_span import ChangedLines
from batonpass.model.base.ids import CallId
from batonpass.notes.foreign.hearsay import Hearsay

_Verdict = tuple[HowKnown, tuple[CallId, ...], tuple[Hearsay, ...]]


class BlamedHunk(Struct, frozen=True, kw_only=True):
    """The lines that a diff added and removed in one place, and who wrote the new ones."""

    place: ChangedLines
    blame: Blame | None  # None if it only removed lines, or is not text

    @property
    def lines(self) -> tuple[BlamedLine, ...]:
        """Return the new lines."""
        return () if self.blame is None else self.blame.lines


def blame_hunks(changed: Iterable[ChangedLines], blame_of: Callable[[str], Blame | None]) -> Iterator[BlamedHunk]:
    """Yield the hunks of a diff, each with its part of the file's blame."""
    for path, places in groupby(changed, key=lambda one: one.path):
        hunks = list(places)
        needed = any(place.added or place.is_whole or place.is_made for place in hunks)
        whole = blame_of(path) if needed else None
        for place in hunks:
            yield _hunk(place, whole)


def _hunk(place: ChangedLines, whole: Blame | None) -> BlamedHunk:
    if whole is not None and place.is_whole and whole.lines:
        place = replace(place, added=whole.total)
    elif place.is_whole:
        place = replace(place, first=0, instead="new, not text", is_made=True)
    if whole is not None and place.is_made and whole.calls:
        return BlamedHunk(place=place, blame=whole)
    if whole is None or not place.added or not whole.lines:
        return BlamedHunk(place=place, blame=None)
    lines = whole.lines[place.first - 1 : place.last]
    names = {call for line in lines for call in line.calls}
    makers = {name: maker for name, maker in whole.makers.items() if name in names}
    ways = None if whole.ways is None else {name: ways for name, ways in whole.ways.items() if name in names}
    asked = f"{place.path}:{place.first}" + (f"-{place.last}" if place.added > 1 else "")
    return BlamedHunk(place=place, blame=replace(whole, asked=asked, lines=lines, makers=makers, ways=ways))


def hunk_row(hunk: BlamedHunk) -> BlameRow:
    """Return one hunk on one line: place, author, task, approval, and content from outside."""
    place = hunk.place
    where = f"{place.path}:{place.first}" + (f"-{place.last}" if place.added > 1 else "")
    if place.instead is not None:
        return BlameRow((TrailNote(f"{place.path}  ", Tone.PLAIN), *_whole(hunk.blame), TrailNote(place.instead)))
    if hunk.blame is None:
        count = place.removed
        gone = f"{count} line{'s' * (count != 1)} removed" if not place.added and count else "not text"
        return BlameRow((TrailNote(f"{place.path}:{place.first}", Tone.PLAIN), TrailNote(f"  {gone}")))
    return BlameRow((TrailNote(f"{where}  ", Tone.PLAIN), *_told(hunk.blame)))


def _whole(blame: Blame | None) -> Iterator[TrailNote]:
    """Yield who made a file that has no lines."""
    for maker in () if blame is None else (blame.makers[call] for call in blame.calls if call in blame.makers):
        yield TrailNote(who(maker, transcripts=blame is not None and blame.is_heard), Tone.GOOD)
        yield from () if blame is None else _task_and_leave(blame, maker)
        yield TrailNote(" · ")


def _told(blame: Blame) -> Iterator[TrailNote]:
    """Yield the main author of these lines, then the names of all others."""
    counted = Counter(map(_verdict, blame.lines))
    main, count = counted.most_common(1)[0]
    known, calls, _ = main
    makers = [blame.makers[call] for call in calls if call in blame.makers]
    if not makers:
        yield from _unexplained(next(line for line in blame.lines if _verdict(line) == main))
    else:
        names = dict.fromkeys(who(maker, transcripts=blame.is_heard) for maker in makers)
        is_certain = known is not HowKnown.CANDIDATES
        yield TrailNote(f"{'perhaps ' * (not is_certain)}{' or '.join(names)}", Tone.GOOD if is_certain else Tone.WARN)
        yield from _task_and_leave(blame, makers[0])
    rest: Counter[str] = Counter()
    for verdict, more in counted.items():
        if verdict != main:
            rest[_name(blame, verdict)] += more
    if rest:
        told = (f"{name} {more}" for name, more in rest.items())
        yield TrailNote(f" · {count} of {len(blame.lines)} lines; {', '.join(told)}")


def _verdict(line: BlamedLine) -> _Verdict:
    return line.known, line.calls, line.said


def _unexplained(line: BlamedLine) -> Iterator[TrailNote]:
    yield TrailNote(_unrecorded(line.said), Tone.WARN)
    if line.commit is not None:
        yield TrailNote(f" · commit {line.commit.id[:8]} by {line.commit.author}")


def _unrecorded(said: Sequence[Hearsay]) -> str:
    """Return the lines that no record explains, and the claims of other tools about them."""
    told = dict.fromkeys(f"{hearsay_words(one)[0]} {one.by}" for one in said)
    return ", ".join(("unexplained", *told))


def _name(blame: Blame, verdict: _Verdict) -> str:
    known, calls, said = verdict
    makers = (maker for name, maker in blame.makers.items() if name in calls)
    names = dict.fromkeys(who(maker, transcripts=blame.is_heard) for maker in makers)
    return f"{'perhaps ' * (known is HowKnown.CANDIDATES)}{' or '.join(names)}" if names else _unrecorded(said)


def _task_and_leave(blame: Blame, maker: Maker) -> Iterator[TrailNote]:
    yield TrailNote(f" · {quoted(maker.task)} · ", Tone.PLAIN)
    yield from approval_notes(maker)
    if maker.proof.problem is not None:
        yield TrailNote(" · NOT TO BE TRUSTED", Tone.BAD)
    ways = (blame.ways or {}).get(maker.call or maker.receipt, ())
    if ways:
        quoting = any(way.is_quoted_at_the_end for way in ways)
        told = "the call contains words from outside" if quoting else "content from outside had reached it"
        yield TrailNote(f" · {told}: {ways[0].entry.name}", Tone.BAD if quoting else Tone.WARN)
