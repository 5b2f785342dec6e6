"""The answer of blame, and its text in a few lines: agent, task and human; grant and approval; call and proof."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from itertools import islice
from typing import Final

from msgspec import Struct, field

from batonpass.accounts.blame.blame_sheet import BlameSheet
from batonpass.accounts.blame.blame_values import BlamedLine, BlameHop, HowKnown, LedgerPlace, Maker, TaskLink
from batonpass.accounts.blame.blame_words import (
    STANDING_TONES,
    BlameRow,
    approval_notes,
    called,
    header_of,
    hearsay_words,
    hunks_of,
    is_meanwhile,
    proof_notes,
    quoted,
    shown_command,
    spelled,
    task_words,
    told_change,
    who,
)
from batonpass.accounts.taint.taint_values import Way
from batonpass.accounts.trail.receipt_lines import Tone, TrailNote
from batonpass.accounts.why.why_hops import GONE
from batonpass.attribution.changes.mark import UNRECORDED
from batonpass.audit.short_ids import ending
from batonpass.model.base.ids import CallId, ReceiptId
from batonpass.notes.foreign.hearsay import Hearsay

_HUMAN: Final = "user:"
_MOST: Final = 5
_MOST_IN_FULL: Final = 12  # of three lines each, which fills a screen


class Blame(Struct, frozen=True, kw_only=True):
    """Who wrote something: the requested lines of a file; for anything else, the places where it is."""

    asked: str
    path: str | None = None
    total: int = 0  # lines of the file
    recorded: int = 0  # recorded changes of the file
    lines: tuple[BlamedLine, ...] = ()
    places: tuple[LedgerPlace, ...] = ()
    calls: tuple[CallId | ReceiptId, ...] = ()  # the calls that made a thing without lines
    makers: Mapping[CallId | ReceiptId, Maker] = field(default_factory=dict)
    gone: bool = False  # the file no longer exists
    notes: tuple[str, ...] = ()  # parts that could not be read, and other remarks
    ways: Mapping[CallId | ReceiptId, tuple[Way, ...]] | None = None  # from outside to each maker; None if not searched
    transcripts: int | None = None  # sessions read because there was no ledger; None if a ledger answered
    from_notes: bool = False  # there was no ledger, and git notes answered

    @property
    def is_heard(self) -> bool:
        """Return whether transcripts were read, for want of a ledger."""
        return self.transcripts is not None

    @property
    def is_explained(self) -> bool:
        """Return whether there is anybody or anything to name."""
        named = (line.known is not HowKnown.UNEXPLAINED or line.said for line in self.lines)
        return bool(self.calls or self.places) or any(named)

    @property
    def is_complete(self) -> bool:
        """Return whether every line is explained."""
        return all(line.known is not HowKnown.UNEXPLAINED for line in self.lines)

    @property
    def holds(self) -> bool:
        """Return whether the receipts behind it are correct."""
        return all(maker.proof.holds for maker in self.makers.values())

    def groups(self) -> Iterator[tuple[BlamedLine, ...]]:
        """Yield adjacent lines with the same verdict."""
        group: list[BlamedLine] = []
        for line in self.lines:
            if group and (line.verdict != group[-1].verdict or line.number != group[-1].number + 1):
                yield tuple(group)
                group = []
            group.append(line)
        if group:
            yield tuple(group)

    def __str__(self) -> str:
        """Return the short answer for people."""
        return "\n".join(str(row) for row in render_blame(self))


def render_blame(blame: Blame, *, full: bool = False, now: datetime | None = None) -> Iterator[BlameRow]:
    """Yield the answer for people; in full, with all words, every hop and the changed lines."""
    teller = _Teller(blame=blame, full=full, now=now or datetime.now().astimezone())
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


class _Teller(Struct, frozen=True, kw_only=True):
    blame: Blame
    full: bool
    now: datetime

    def group(self, group: Sequence[BlamedLine], *, alone: bool) -> Iterator[BlameRow]:
        """Yield the answer for lines with the same verdict."""
        first, last = group[0], group[-1]
        number = f"{first.number}" if len(group) == 1 else f"{first.number}-{last.number}"
        listed = alone or self.full
        rows = list(self._rows(first, group, listed=listed))
        for index, row in enumerate(rows if listed else rows[:1]):
            if alone:
                yield row
            elif index == 0:
                yield BlameRow((TrailNote(f"{number:<9} "), *row.parts), row.indent)
            else:
                yield BlameRow(row.parts, " " * 10 + row.indent)

    def _rows(self, line: BlamedLine, group: Sequence[BlamedLine], *, listed: bool) -> Iterator[BlameRow]:
        makers = [self.blame.makers[call] for call in line.calls if call in self.blame.makers]
        if line.known is HowKnown.UNEXPLAINED or (line.calls and not makers):
            yield from map(self._heard, line.said)
            yield self._unexplained(line)
        elif len(makers) == 1 and len(line.calls) == 1 and line.run is not None:
            yield from self.maker(makers[0], group)
        else:
            yield from self._several(line, group, makers, listed=listed)

    def _heard(self, said: Hearsay) -> BlameRow:
        doubt, words = hearsay_words(said)
        return BlameRow((TrailNote(f"{doubt} {said.by}", Tone.WARN), TrailNote(f" · {words}", Tone.PLAIN)))

    def _unexplained(self, line: BlamedLine) -> BlameRow:
        if self.blame.from_notes:
            why = "no note claims it"
        elif self.blame.recorded == 0:
            why = "no change of this file is recorded"
        elif line.since is None:
            why = "older than any record of this file"
        else:
            why = "no recorded change wrote it"
        since = self._since(line)
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
            parts.append(TrailNote(f", or somebody who is not recorded{self._since(line)}", Tone.PLAIN))
        if unknown:
            parts.append(TrailNote(f"; for {unknown} only the id is known"))
        yield BlameRow((*parts, TrailNote(":" * listed)))
        shown = makers[: _MOST_IN_FULL if self.full else _MOST]
        for maker in shown:
            # A mere candidate is not worth a whole screen.
            rows = list(self.maker(maker, group) if len(makers) == 1 else self._in_short(maker, group))
            yield from (BlameRow(row.parts, f"  {row.indent}") for row in (rows if self.full else (rows[0], rows[2])))
        if len(shown) < len(makers):
            lists = "--json" if self.full else "--full"
            yield BlameRow((TrailNote(f"… and {len(makers) - len(shown)} more; {lists} lists them"),), "  ")

    def ran(self, maker: Maker) -> str:
        """Return the command of a shell call; for other calls, their name."""
        if maker.command is None:
            return called(maker, transcripts=self.blame.is_heard, full=self.full)
        return shown_command(maker.command, full=self.full)

    def _since(self, line: BlamedLine) -> str:
        return "" if line.since is None else f" since {spelled(line.since, self.now)}"

    def _candidate(self, maker: Maker) -> str:
        name = who(maker, transcripts=self.blame.is_heard)
        return f"{name} ({maker.tool}, no outcome)" if maker.in_doubt else name

    def maker(self, maker: Maker, group: Sequence[BlamedLine] = ()) -> Iterator[BlameRow]:
        """Yield the answer for one call or run: chain, authority and call; in full, the four questions."""
        if self.full:
            ways = None if self.blame.ways is None else self.blame.ways.get(maker.call or maker.receipt, ())
            sheet = BlameSheet(maker=maker, ways=ways, group=group, heard=self.blame.is_heard, now=self.now)
            yield from sheet.rows()
        else:
            yield from self._in_short(maker, group)

    def _in_short(self, maker: Maker, group: Sequence[BlamedLine]) -> Iterator[BlameRow]:
        yield self._chain(maker)
        yield self._leave(maker)
        yield self._call(maker, group)

    def _chain(self, maker: Maker) -> BlameRow:
        human = maker.principal.removeprefix(_HUMAN)
        parts = [TrailNote(who(maker, transcripts=self.blame.is_heard), Tone.GOOD)]
        parts.append(TrailNote(f" · {spelled(maker.at, self.now)}", Tone.PLAIN))
        if maker.run.handoff is not None:
            parts.append(TrailNote(f" · {task_words(maker)}", Tone.PLAIN))
        parts += [
            TrailNote(f" ← {above.agent}{_doubt(hop)}") for hop, above in zip(maker.hops, maker.hops[1:], strict=False)
        ]
        said = "" if maker.noted is not None and maker.said is None else f": {quoted(maker.said)}"
        return BlameRow((*parts, TrailNote(f" ← {human}{said}", Tone.PLAIN)))

    def _leave(self, maker: Maker) -> BlameRow:
        judged = f" ({maker.judgements[0].text})" if maker.judgements else ""
        if maker.noted is not None:
            grant = "grant: not in a note"
        elif maker.may is None:
            grant = f"may: {GONE}"
        elif maker.may:
            more = " …" * (len(maker.may) > _MOST and not self.full)
            scopes = ", ".join(maker.may if self.full else maker.may[:_MOST])
            grant = f"may {scopes}{more} (granted by {maker.granted_by})"
        else:
            grant = "grant: none set"
        standing = TrailNote(f"{maker.standing}{judged}", STANDING_TONES[maker.standing])
        return BlameRow((standing, TrailNote(f" · {grant} · ", Tone.PLAIN), *approval_notes(maker)))

    def _call(self, maker: Maker, group: Sequence[BlamedLine]) -> BlameRow:
        notes = [TrailNote(called(maker, transcripts=self.blame.is_heard))]
        if maker.source is not None and maker.source.model is not None:
            notes.append(TrailNote(f"by {maker.source.model}"))
        if maker.command is not None:
            notes.append(TrailNote(shown_command(maker.command, full=self.full)))
        if group:
            notes += [TrailNote(header_of(edit)) for _, edit in islice(hunks_of(maker, group), 1)]
        else:
            notes += [TrailNote(told_change(change)) for change in maker.changes[:_MOST]]
        if group and maker.in_doubt:
            notes.append(TrailNote("no outcome: nobody knows whether it happened", Tone.WARN))
        if group and group[0].known is HowKnown.MATCHED:
            notes.append(TrailNote("matched by its text and its place", Tone.WARN))
        notes += self._besides(group[0]) if group else ()
        notes += proof_notes(maker, heard=self.blame.is_heard)
        return BlameRow(tuple(part for note in notes for part in (TrailNote(" · "), note))[1:])

    def _besides(self, line: BlamedLine) -> Iterator[TrailNote]:
        yield from self._commit(line)
        if line.reformatted_by == UNRECORDED:
            yield TrailNote("reformatted since by somebody who is not recorded", Tone.WARN)
        elif line.reformatted_by is not None:
            known = self.blame.makers.get(CallId(line.reformatted_by))
            by = ending(line.reformatted_by) if known is None else who(known, transcripts=self.blame.is_heard)
            yield TrailNote(f"reformatted since by {by}", Tone.WARN)

    def _commit(self, line: BlamedLine) -> Iterator[TrailNote]:
        if line.commit is not None:
            author = f" by {line.commit.author}" if line.known is HowKnown.UNEXPLAINED or self.full else ""
            yield TrailNote(f"commit {line.commit.id[:8]}{author}")


def _is_candidate(maker: Maker, group: Sequence[BlamedLine]) -> bool:
    return is_meanwhile([change for change, _ in hunks_of(maker, group)])


def _doubt(hop: BlameHop) -> str:
    if hop.link is TaskLink.INFERRED:
        return " (inferred)"
    return " (unknown who started it)" if hop.link is TaskLink.UNKNOWN else ""
