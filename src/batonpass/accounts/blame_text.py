"""Blame in a few lines: who, when, on which task, for whom; by whose leave; by which call, and how we know."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Final

from batonpass.accounts.blame_values import Blame, Hop, Known, Line, Link, Maker, Standing
from batonpass.accounts.trail_telling import Note, Tone
from batonpass.accounts.trail_words import shortened
from batonpass.accounts.why_hops import GONE
from batonpass.attribution.change import FileChange, Hunk
from batonpass.attribution.mark import UNRECORDED, squeezed
from batonpass.audit.lookup import Found, Text, ending
from batonpass.model.ids import CallId
from batonpass.model.visible import visible

_HUMAN: Final = "user:"
_BAR: Final = "  │ "
_MOST: Final = 5
_STANDING: Final = {Standing.VERIFIED: Tone.GOOD, Standing.REFUTED: Tone.BAD, Standing.UNVERIFIED: Tone.WARN}
_HEARSAY: Final = "unsigned: a transcript says so"


@dataclass(frozen=True, slots=True)
class Row:
    """One line, in parts that are each meant in some way; whoever prints them makes their words harmless."""

    parts: tuple[Note, ...]
    indent: str = ""

    def __str__(self) -> str:
        """Return it without colours, and harmless."""
        return visible(f"{self.indent}{''.join(part.text for part in self.parts)}").rstrip()


@dataclass(frozen=True, slots=True)
class _Edit:
    """Lines that became others, and how many stood before them then and afterwards."""

    old: int
    new: int
    removed: tuple[str, ...]
    added: tuple[str, ...]


def render_blame(blame: Blame, *, full: bool = False, now: datetime | None = None) -> Iterator[Row]:
    """Yield the answer as people read it; in full, with whole words, every hop and the lines of the change."""
    teller = _Teller(blame, full=full, now=now or datetime.now().astimezone())
    groups = list(blame.groups())
    for group in groups:
        yield from teller.group(group, alone=len(groups) == 1)
    for made in blame.calls:
        if (maker := blame.makers.get(made)) is not None:
            yield from teller.maker(maker)
    for note in blame.notes if full or not (blame.lines or blame.places) else ():
        yield Row((Note(note),))


def spelled(at: datetime, now: datetime) -> str:
    """Return a time as people say it: of today, only the hour."""
    local = at.astimezone()
    return local.strftime("%H:%M" if local.date() == now.astimezone().date() else "%Y-%m-%d %H:%M")


def quoted(text: Text | None, *, full: bool = False) -> str:
    """Return somebody's words, quoted so that they cannot pose as ours: the first line, and how much more there is."""
    if text is None:
        return "unknown"
    if text.found is not Found.KEPT:
        return f"({text.found})"
    words = (text.words or "").strip()
    if full:
        return f'"{words}"'
    short = shortened(text.ref.id, words)
    if short.whole:
        return f'"{short.line}"'
    lines = words.count("\n")
    more = f"{lines} line{'s' * (lines != 1)}" if lines else f"{len(words) - len(short.line):,} characters"
    return f'"{short.line}…" (+{more})'


def who(maker: Maker, *, transcripts: bool, full: bool = False) -> str:
    """Return a run as people say it; of a transcript, by what the program calls it, since no ledger keeps our id."""
    if not transcripts:
        return f"{maker.run.agent} {maker.run.id if full else ending(maker.run.id)}"
    theirs = maker.hops[0].subagent or (maker.source.session if maker.source is not None else None) or ""
    return f"{maker.run.agent} {theirs if full else ending(theirs)}".rstrip()


def called(maker: Maker, *, transcripts: bool, full: bool = False) -> str:
    """Return a call as people say it; of a transcript, by the id that it has there."""
    key = maker.source.key if transcripts and maker.source is not None else maker.call
    name = (key or "").rpartition("/")[2]
    return f"{maker.tool} {name if full else ending(name)}".rstrip()


class _Teller:
    def __init__(self, blame: Blame, *, full: bool, now: datetime) -> None:
        self._blame = blame
        self._full = full
        self._now = now

    def group(self, group: Sequence[Line], *, alone: bool) -> Iterator[Row]:
        """Yield what is to be said about lines with one verdict."""
        first, last = group[0], group[-1]
        number = f"{first.number}" if len(group) == 1 else f"{first.number}-{last.number}"
        listed = alone or self._full
        rows = list(self._rows(first, group, listed=listed))
        for index, row in enumerate(rows if listed else rows[:1]):
            if alone:
                yield row
            elif index == 0:
                yield Row((Note(f"{number:<9} "), *row.parts), row.indent)
            else:
                yield Row(row.parts, " " * 10 + row.indent)

    def _rows(self, line: Line, group: Sequence[Line], *, listed: bool) -> Iterator[Row]:
        makers = [self._blame.makers[call] for call in line.calls if call in self._blame.makers]
        if line.known is Known.UNEXPLAINED or (line.calls and not makers):
            yield self._unexplained(line)
        elif len(makers) == 1 and len(line.calls) == 1 and line.run is not None:
            yield from self.maker(makers[0], group)
        else:
            yield from self._several(line, group, makers, listed=listed)

    def _unexplained(self, line: Line) -> Row:
        if self._blame.recorded == 0:
            why = "no change of this file is recorded"
        elif line.since is None:
            why = "older than anything that is recorded of this file"
        else:
            why = "no recorded change wrote it"
        since = "" if line.since is None else f" since {spelled(line.since, self._now)}"
        commit = tuple(Note(f" · {note.text}") for note in self._commit(line))
        return Row((Note(f"unexplained{since}", Tone.WARN), Note(f": {why}", Tone.PLAIN), *commit))

    def _several(self, line: Line, group: Sequence[Line], makers: Sequence[Maker], *, listed: bool) -> Iterator[Row]:
        unknown = len(line.calls) - len(makers)
        names = list(dict.fromkeys(map(self._candidate, makers)))
        named = f"{', '.join(names[:_MOST])}{', …' * (len(names) > _MOST)}"
        if line.run is not None:
            parts = [Note(named, Tone.GOOD), Note(f", by one of {len(line.calls)} calls", Tone.PLAIN)]
        else:
            parts = [Note(f"{'one of ' * (len(names) > 1) or 'perhaps '}{named}", Tone.WARN)]
        if line.or_nobody:
            since = "" if line.since is None else f" since {spelled(line.since, self._now)}"
            parts.append(Note(f", or somebody who is not recorded{since}", Tone.PLAIN))
        if unknown:
            parts.append(Note(f"; of {unknown} only the id is known"))
        yield Row((*parts, Note(":" * listed)))
        shown = makers if self._full else makers[:_MOST]
        for maker in shown:
            rows = list(self.maker(maker, group))
            yield from (Row(row.parts, f"  {row.indent}") for row in (rows if self._full else (rows[0], rows[2])))
        if len(shown) < len(makers):
            yield Row((Note(f"… and {len(makers) - len(shown)} more; --full lists them"),), "  ")

    def _candidate(self, maker: Maker) -> str:
        name = who(maker, transcripts=self._blame.is_heard)
        return f"{name} ({maker.tool}, no outcome)" if maker.in_doubt else name

    def maker(self, maker: Maker, group: Sequence[Line] = ()) -> Iterator[Row]:
        """Yield who made something: the chain, the leave, and the call."""
        yield self._chain(maker)
        yield self._leave(maker)
        yield self._call(maker, group)
        if self._full:
            yield from self._more(maker, group)

    def _chain(self, maker: Maker) -> Row:
        human = maker.principal.removeprefix(_HUMAN)
        parts = [Note(who(maker, transcripts=self._blame.is_heard), Tone.GOOD)]
        parts.append(Note(f" · {spelled(maker.at, self._now)}", Tone.PLAIN))
        if maker.run.handoff is not None:
            parts.append(Note(f" · {quoted(maker.hops[0].task)}", Tone.PLAIN))
        parts += [
            Note(f" ← {above.agent}{_doubt(hop)}") for hop, above in zip(maker.hops, maker.hops[1:], strict=False)
        ]
        return Row((*parts, Note(f" ← {human}: {quoted(maker.said)}", Tone.PLAIN)))

    def _leave(self, maker: Maker) -> Row:
        judged = f" ({maker.judgements[0].text})" if maker.judgements else ""
        if maker.may is None:
            grant = f"may: {GONE}"
        elif maker.may:
            more = " …" * (len(maker.may) > _MOST and not self._full)
            scopes = ", ".join(maker.may if self._full else maker.may[:_MOST])
            grant = f"may {scopes}{more} (granted by {maker.granted_by})"
        else:
            grant = "grant: none set"
        if maker.approvals:
            told = maker.approvals if self._full else maker.approvals[-1:]
            approval = "; ".join(f"{fact.label} {fact.text}" for fact in told)
        else:
            approval = "none needed" if maker.may else "none set"
        standing = Note(f"{maker.standing}{judged}", _STANDING[maker.standing])
        return Row((standing, Note(f" · {grant} · approval: {approval}", Tone.PLAIN)))

    def _call(self, maker: Maker, group: Sequence[Line]) -> Row:
        notes = [Note(called(maker, transcripts=self._blame.is_heard))]
        if group:
            notes += [Note(_header(edit)) for _, edit in islice(_hunks(maker, group), 1)]
        else:
            notes += [
                Note(f"{'deleted' if change.is_deletion else 'changed'} {change.path}")
                for change in maker.changes[:_MOST]
            ]
        if group and maker.in_doubt:
            notes.append(Note("no outcome: nobody knows whether it happened", Tone.WARN))
        if group and group[0].known is Known.MATCHED:
            notes.append(Note("matched by its text and its place", Tone.WARN))
        notes += self._besides(group[0]) if group else ()
        notes += self._proof(maker)
        return Row(tuple(part for note in notes for part in (Note(" · "), note))[1:])

    def _besides(self, line: Line) -> Iterator[Note]:
        yield from self._commit(line)
        if line.reformatted_by == UNRECORDED:
            yield Note("reformatted since, by nobody who is recorded", Tone.WARN)
        elif line.reformatted_by is not None:
            known = self._blame.makers.get(CallId(line.reformatted_by))
            by = ending(line.reformatted_by) if known is None else who(known, transcripts=self._blame.is_heard)
            yield Note(f"reformatted since by {by}", Tone.WARN)

    def _commit(self, line: Line) -> Iterator[Note]:
        if line.commit is not None:
            author = f" by {line.commit.author}" if line.known is Known.UNEXPLAINED or self._full else ""
            yield Note(f"commit {line.commit.id[:8]}{author}")

    def _proof(self, maker: Maker) -> Iterator[Note]:
        if maker.is_hearsay:
            yield Note(_HEARSAY, Tone.WARN)
        if maker.proof.problem is not None:
            yield Note(f"NOT TO BE TRUSTED: {maker.proof.problem}", Tone.BAD)
        elif not self._blame.is_heard:
            yield Note(f"{maker.proof.receipts} receipts verified")

    def _more(self, maker: Maker, group: Sequence[Line]) -> Iterator[Row]:
        for hop in maker.hops:
            if hop.handoff is not None:
                ours = (f"run {hop.run}", f"handoff {hop.handoff}") if not self._blame.is_heard else ()
                theirs = (f"sub-agent {hop.subagent}",) if hop.subagent else ()
                to = f"{hop.agent}, handed on by {hop.sender} ({hop.link})"
                yield Row((Note(" · ".join((to, *theirs, *ours))),), "  ")
                yield from _barred(quoted(hop.task, full=True))
        said_at = "" if maker.said_at is None else f" · {spelled(maker.said_at, self._now)}"
        yield Row((Note(f"{maker.principal}{said_at}"),), "  ")
        yield from _barred(quoted(maker.said, full=True))
        for change, edit in _hunks(maker, group):
            yield Row((Note(f"{change.path} {_header(edit)}"),), "  ")
            yield from (Row((Note(f"- {line}", Tone.BAD),), _BAR) for line in edit.removed)
            yield from (Row((Note(f"+ {line}", Tone.GOOD),), _BAR) for line in edit.added)
        yield from (Row((Note(f"{fact.label} {fact.text}"),), "  ") for fact in maker.judgements)
        source = maker.source
        ids: list[str | None] = [] if self._blame.is_heard else [maker.call, maker.receipt, maker.run.id]
        ids.append(maker.mode)
        if source is not None:
            ids += [source.program, f"session {source.session}", f"line {source.key}"]
        yield Row((Note(" · ".join(known for known in ids if known)),), "  ")


def _hunks(maker: Maker, group: Sequence[Line]) -> Iterator[tuple[FileChange, _Edit]]:
    """Yield what a call changed, without what its hunks only show; of lines, the hunks that wrote them."""
    wanted = {squeezed(line.text) for line in group}
    for change in maker.changes:
        for edit in map(_trimmed, change.hunks or ()):
            if not wanted or any(squeezed(line) in wanted for line in edit.added):
                yield change, edit


def _trimmed(hunk: Hunk) -> _Edit:
    """Return what a hunk changes: lines that begin or end both sides alike are only shown."""
    head = _alike(hunk.removed, hunk.added)
    removed, added = hunk.removed[head:], hunk.added[head:]
    tail = _alike(removed[::-1], added[::-1])
    return _Edit(
        hunk.old_index + head,
        hunk.new_index + head,
        removed[: len(removed) - tail],
        added[: len(added) - tail],
    )


def _alike(first: Sequence[str], second: Sequence[str]) -> int:
    """Return how many lines two texts begin with alike."""
    pairs = enumerate(zip(first, second, strict=False))
    return next((index for index, (one, other) in pairs if one != other), min(len(first), len(second)))


def _barred(words: str) -> Iterator[Row]:
    return (Row((Note(line.expandtabs(4), Tone.PLAIN),), _BAR) for line in words.split("\n"))


def _doubt(hop: Hop) -> str:
    if hop.link is Link.INFERRED:
        return " (inferred)"
    return " (unknown who started it)" if hop.link is Link.UNKNOWN else ""


def _header(edit: _Edit) -> str:
    """Return where a change was made and how large it was, as a unified diff says it."""
    return f"@@ -{_span(edit.old, len(edit.removed))} +{_span(edit.new, len(edit.added))} @@"


def _span(before: int, count: int) -> str:
    return f"{before + 1}" if count == 1 else f"{before + bool(count)},{count}"
