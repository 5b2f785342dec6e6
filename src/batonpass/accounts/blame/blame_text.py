"""Blame in a few lines: agent, time, task and human; grant and approval; the call, and how we know."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import islice
from typing import Final

from batonpass.accounts.blame.blame_command import is_meanwhile, shown_command, told_change
from batonpass.accounts.blame.blame_sheet import sheet_rows
from batonpass.accounts.blame.blame_values import Blame, BlamedLine, BlameHop, HowKnown, Maker, TaskLink
from batonpass.accounts.blame.blame_words import (
    BlameRow,
    approval_notes,
    called,
    header_of,
    hunks_of,
    quoted,
    spelled,
    who,
)
from batonpass.accounts.trail.receipt_lines import Tone, TrailNote
from batonpass.accounts.why.why_hops import GONE
from batonpass.attribution.changes.mark import UNRECORDED
from batonpass.audit.short_ids import ending
from batonpass.model.base.ids import CallId
from batonpass.records.handoff import Standing

_HUMAN: Final = "user:"
_BAR: Final = "  │ "
_MOST: Final = 5
_MOST_IN_FULL: Final = 12  # of three lines each, which fills a screen
_STANDING: Final = {Standing.VERIFIED: Tone.GOOD, Standing.REFUTED: Tone.BAD, Standing.UNVERIFIED: Tone.WARN}
_HEARSAY: Final = "unsigned: a transcript says so"


def render_blame(blame: Blame, *, full: bool = False, now: datetime | None = None) -> Iterator[BlameRow]:
    """Yield the answer for people; in full, with all words, every hop and the changed lines."""
    teller = _Teller(blame, full=full, now=now or datetime.now().astimezone())
    groups = list(blame.groups())
    for group in groups:
        yield from teller.group(group, alone=len(groups) == 1)
    for made in blame.calls:
        if (maker := blame.makers.get(made)) is not None:
            if blame.path is not None and is_meanwhile(maker.changes):
                yield BlameRow(
                    (TrailNote(f"changed while {teller.ran(maker)} ran: perhaps this, or somebody else", Tone.WARN),)
                )
            yield from teller.maker(maker)
    for note in blame.notes if full or not (blame.lines or blame.places) else ():
        yield BlameRow((TrailNote(note),))


class _Teller:
    def __init__(self, blame: Blame, *, full: bool, now: datetime) -> None:
        self._blame = blame
        self._full = full
        self._now = now

    def group(self, group: Sequence[BlamedLine], *, alone: bool) -> Iterator[BlameRow]:
        """Yield the answer for lines with the same verdict."""
        first, last = group[0], group[-1]
        number = f"{first.number}" if len(group) == 1 else f"{first.number}-{last.number}"
        listed = alone or self._full
        rows = list(self._rows(first, group, listed=listed))
        for index, row in enumerate(rows if listed else rows[:1]):
            if alone:
                yield row
            elif index == 0:
                yield BlameRow((TrailNote(f"{number:<9} "), *row.parts), row.indent)
            else:
                yield BlameRow(row.parts, " " * 10 + row.indent)

    def _rows(self, line: BlamedLine, group: Sequence[BlamedLine], *, listed: bool) -> Iterator[BlameRow]:
        makers = [self._blame.makers[call] for call in line.calls if call in self._blame.makers]
        if line.known is HowKnown.UNEXPLAINED or (line.calls and not makers):
            yield self._unexplained(line)
        elif len(makers) == 1 and len(line.calls) == 1 and line.run is not None:
            yield from self.maker(makers[0], group)
        else:
            yield from self._several(line, group, makers, listed=listed)

    def _unexplained(self, line: BlamedLine) -> BlameRow:
        if self._blame.recorded == 0:
            why = "no change of this file is recorded"
        elif line.since is None:
            why = "older than anything that is recorded of this file"
        else:
            why = "no recorded change wrote it"
        since = "" if line.since is None else f" since {spelled(line.since, self._now)}"
        commit = tuple(TrailNote(f" · {note.text}") for note in self._commit(line))
        return BlameRow((TrailNote(f"unexplained{since}", Tone.WARN), TrailNote(f": {why}", Tone.PLAIN), *commit))

    def _several(
        self, line: BlamedLine, group: Sequence[BlamedLine], makers: Sequence[Maker], *, listed: bool
    ) -> Iterator[BlameRow]:
        unknown = len(line.calls) - len(makers)
        names = list(dict.fromkeys(map(self._candidate, makers)))
        named = f"{', '.join(names[:_MOST])}{', …' * (len(names) > _MOST)}"
        if line.run is not None:
            parts = [TrailNote(named, Tone.GOOD), TrailNote(f", by one of {len(line.calls)} calls", Tone.PLAIN)]
        else:
            ran = [self.ran(maker) for maker in makers if _is_candidate(maker, group)]
            meanwhile = f"changed while {', '.join(dict.fromkeys(ran))} ran: " if ran else ""
            parts = [TrailNote(f"{meanwhile}{'one of ' * (len(names) > 1) or 'perhaps '}{named}", Tone.WARN)]
        if line.or_nobody:
            since = "" if line.since is None else f" since {spelled(line.since, self._now)}"
            parts.append(TrailNote(f", or somebody who is not recorded{since}", Tone.PLAIN))
        if unknown:
            parts.append(TrailNote(f"; of {unknown} only the id is known"))
        yield BlameRow((*parts, TrailNote(":" * listed)))
        shown = makers[: _MOST_IN_FULL if self._full else _MOST]
        for maker in shown:
            # A mere candidate is not worth a whole screen.
            rows = list(self.maker(maker, group) if len(makers) == 1 else self._in_short(maker, group))
            yield from (BlameRow(row.parts, f"  {row.indent}") for row in (rows if self._full else (rows[0], rows[2])))
        if len(shown) < len(makers):
            lists = "--json" if self._full else "--full"
            yield BlameRow((TrailNote(f"… and {len(makers) - len(shown)} more; {lists} lists them"),), "  ")

    def ran(self, maker: Maker) -> str:
        """Return the command of a shell call; for other calls, their name."""
        if maker.command is None:
            return called(maker, transcripts=self._blame.is_heard, full=self._full)
        return shown_command(maker.command, full=self._full)

    def _candidate(self, maker: Maker) -> str:
        name = who(maker, transcripts=self._blame.is_heard)
        return f"{name} ({maker.tool}, no outcome)" if maker.in_doubt else name

    def maker(self, maker: Maker, group: Sequence[BlamedLine] = ()) -> Iterator[BlameRow]:
        """Yield the answer for one call or run: chain, authority and call; in full, the four questions."""
        if self._full:
            ways = None if self._blame.ways is None else self._blame.ways.get(maker.call or maker.receipt, ())
            yield from sheet_rows(self._blame, maker, ways, group, self._now)
        else:
            yield from self._in_short(maker, group)

    def _in_short(self, maker: Maker, group: Sequence[BlamedLine]) -> Iterator[BlameRow]:
        yield self._chain(maker)
        yield self._leave(maker)
        yield self._call(maker, group)

    def _chain(self, maker: Maker) -> BlameRow:
        human = maker.principal.removeprefix(_HUMAN)
        parts = [TrailNote(who(maker, transcripts=self._blame.is_heard), Tone.GOOD)]
        parts.append(TrailNote(f" · {spelled(maker.at, self._now)}", Tone.PLAIN))
        if maker.run.handoff is not None:
            parts.append(TrailNote(f" · {quoted(maker.hops[0].task)}", Tone.PLAIN))
        parts += [
            TrailNote(f" ← {above.agent}{_doubt(hop)}") for hop, above in zip(maker.hops, maker.hops[1:], strict=False)
        ]
        return BlameRow((*parts, TrailNote(f" ← {human}: {quoted(maker.said)}", Tone.PLAIN)))

    def _leave(self, maker: Maker) -> BlameRow:
        judged = f" ({maker.judgements[0].text})" if maker.judgements else ""
        if maker.may is None:
            grant = f"may: {GONE}"
        elif maker.may:
            more = " …" * (len(maker.may) > _MOST and not self._full)
            scopes = ", ".join(maker.may if self._full else maker.may[:_MOST])
            grant = f"may {scopes}{more} (granted by {maker.granted_by})"
        else:
            grant = "grant: none set"
        standing = TrailNote(f"{maker.standing}{judged}", _STANDING[maker.standing])
        return BlameRow((standing, TrailNote(f" · {grant} · ", Tone.PLAIN), *approval_notes(maker)))

    def _call(self, maker: Maker, group: Sequence[BlamedLine]) -> BlameRow:
        notes = [TrailNote(called(maker, transcripts=self._blame.is_heard))]
        if maker.command is not None:
            notes.append(TrailNote(shown_command(maker.command, full=self._full)))
        if group:
            notes += [TrailNote(header_of(edit)) for _, edit in islice(hunks_of(maker, group), 1)]
        else:
            notes += [TrailNote(told_change(change)) for change in maker.changes[:_MOST]]
        if group and maker.in_doubt:
            notes.append(TrailNote("no outcome: nobody knows whether it happened", Tone.WARN))
        if group and group[0].known is HowKnown.MATCHED:
            notes.append(TrailNote("matched by its text and its place", Tone.WARN))
        notes += self._besides(group[0]) if group else ()
        notes += self._proof(maker)
        return BlameRow(tuple(part for note in notes for part in (TrailNote(" · "), note))[1:])

    def _besides(self, line: BlamedLine) -> Iterator[TrailNote]:
        yield from self._commit(line)
        if line.reformatted_by == UNRECORDED:
            yield TrailNote("reformatted since, by nobody who is recorded", Tone.WARN)
        elif line.reformatted_by is not None:
            known = self._blame.makers.get(CallId(line.reformatted_by))
            by = ending(line.reformatted_by) if known is None else who(known, transcripts=self._blame.is_heard)
            yield TrailNote(f"reformatted since by {by}", Tone.WARN)

    def _commit(self, line: BlamedLine) -> Iterator[TrailNote]:
        if line.commit is not None:
            author = f" by {line.commit.author}" if line.known is HowKnown.UNEXPLAINED or self._full else ""
            yield TrailNote(f"commit {line.commit.id[:8]}{author}")

    def _proof(self, maker: Maker) -> Iterator[TrailNote]:
        if maker.is_hearsay:
            yield TrailNote(_HEARSAY, Tone.WARN)
        if maker.proof.problem is not None:
            yield TrailNote(f"NOT TO BE TRUSTED: {maker.proof.problem}", Tone.BAD)
        elif not self._blame.is_heard:
            yield TrailNote(f"{maker.proof.receipts} receipts verified")


def _is_candidate(maker: Maker, group: Sequence[BlamedLine]) -> bool:
    return is_meanwhile([change for change, _ in hunks_of(maker, group)])


def _doubt(hop: BlameHop) -> str:
    if hop.link is TaskLink.INFERRED:
        return " (inferred)"
    return " (unknown who started it)" if hop.link is TaskLink.UNKNOWN else ""
