"""Blame in full: four questions on one screen.

Which agent and task; which credential; whose grant and approval; and where content from outside came in, with the
shortest way from there.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import islice
from typing import Final

from msgspec import Struct

from batonpass.accounts.blame.blame_values import BlamedLine, BlameHop, HowKnown, Maker, RunWork, TaskLink
from batonpass.accounts.blame.blame_words import (
    STANDING_TONES,
    BlameRow,
    approval_notes,
    approval_words,
    called,
    header_of,
    hunks_of,
    proof_notes,
    shown_command,
    spelled,
    task_words,
    told_change,
    who,
)
from batonpass.accounts.taint.taint_values import TaintHop as WayHop
from batonpass.accounts.taint.taint_values import Way, marked_parts
from batonpass.accounts.trail.receipt_lines import Tone, TrailNote
from batonpass.accounts.why.why_hops import GONE
from batonpass.audit.short_ids import ending
from batonpass.records.grant import PermittedHop, UsedCredential
from batonpass.records.hold import Leave
from batonpass.records.text import Found, Text

# Lines for each part, so that a whole answer fits on forty.
_TASK: Final = 4
_SAID: Final = 3
_HOPS: Final = 3
_ABOVE: Final = 3
_WAYS: Final = 2
_WAY: Final = 5
_CHANGE: Final = 6
_CALLS: Final = 6
_WIDE: Final = 160
_SCREEN: Final = 40

_LABEL: Final = 13


class BlameSheet(Struct, frozen=True, kw_only=True):
    """The four questions about one call or run."""

    maker: Maker
    ways: Sequence[Way] | None  # None if not searched
    group: Sequence[BlamedLine]  # the lines in question, if there are any
    heard: bool  # from transcripts
    now: datetime

    def rows(self) -> Iterator[BlameRow]:
        """Yield the questions with their answers; at most forty lines."""
        before = [*self._who(), *self._credential(), *self._authority()]
        after = [*self._change(), self._ids()]
        yield from before
        yield from self._outside(_SCREEN - len(before) - len(after))
        yield from after

    def _who(self) -> Iterator[BlameRow]:
        """Yield the agent and task, and the chain up to the human's words."""
        maker, own = self.maker, self.maker.hops[0]
        parts = [who(maker, transcripts=self.heard), spelled(maker.at, self.now)]
        parts += [f"attempt {maker.run.attempt}"] if maker.run.attempt > 1 else []
        parts += [f"sub-agent {own.subagent}"] if own.subagent else []
        yield _row("1 who", TrailNote(" · ".join(parts), Tone.GOOD))
        if maker.run.handoff is not None and own.task is None and maker.noted is not None:
            yield _row("task", TrailNote(task_words(maker), Tone.PLAIN))
        elif maker.run.handoff is not None:
            yield from _words("task", own.task, _TASK)
        for hop, above in islice(zip(maker.hops, maker.hops[1:], strict=False), _HOPS):
            yield from self._handed(hop, above)
        if len(maker.hops) - 1 > _HOPS:
            yield _row("", TrailNote(f"… and {len(maker.hops) - 1 - _HOPS} more handoffs up to the root"))
        said_at = "" if maker.said_at is None else f" · {spelled(maker.said_at, self.now)}"
        yield _row("for", TrailNote(f"{maker.principal}{said_at}", Tone.PLAIN))
        if maker.said is not None or maker.noted is None:
            yield from _words("", maker.said, _SAID)

    def _handed(self, hop: BlameHop, above: BlameHop) -> Iterator[BlameRow]:
        name = above.agent if self.heard else f"{above.agent} {ending(above.run)}"
        certain = "" if hop.link in {None, TaskLink.CERTAIN} else f" ({hop.link})"
        yield _row("", TrailNote(f"← handed on by {name}{certain}", Tone.PLAIN))
        if hop.reasoning is not None:
            yield _row("", TrailNote(f"  which thought: {hop.reasoning.sentence}"))

    def _credential(self) -> Iterator[BlameRow]:
        """Yield the credential that it used."""
        work, used = self.maker.work, self.maker.credential
        if work is not None:
            counted = (f"{_identity(one)} in {count} call{'s' * (count != 1)}" for one, count in work.credentials)
            told = "; ".join(counted) or _UNARMED
        elif self.maker.noted is not None:
            told = _NOT_NOTED
        elif self.maker.is_hearsay:
            told = "not recorded: a transcript does not say"
        else:
            told = _UNARMED if used is None else _identity(used)
        yield _row("2 credential", TrailNote(told, Tone.PLAIN))

    def _authority(self) -> Iterator[BlameRow]:
        """Yield the grant and the approval, and the standing of the result."""
        maker = self.maker
        if maker.noted is not None:
            grant = _NOT_NOTED
        elif maker.may is None:
            grant = GONE
        elif maker.may:
            grant = f"may {_cut(', '.join(maker.may))} (granted by {maker.granted_by})"
        else:
            grant = "none, so no grant was enforced"
        yield _row("3 grant", TrailNote(f"{grant} · {maker.mode}", Tone.PLAIN))
        for permitted in _ends(maker.permits, _ABOVE):
            told = "… and more between them" if permitted is None else f"{permitted.agent} by {permitted.permit}"
            yield _row("", TrailNote(told, Tone.PLAIN))
        first, *rest = list(approval_notes(maker))
        yield _row("approval", TrailNote(first.text.removeprefix("approval: "), first.tone), *rest)
        yield from self._decided()
        judged = "; ".join(f"{fact.label} {fact.text}" for fact in maker.judgements)
        told = f"{maker.standing} ({judged})" if judged else str(maker.standing)
        yield _row("result", TrailNote(told, STANDING_TONES[maker.standing]))

    def _decided(self) -> Iterator[BlameRow]:
        """Yield the approvals of a run's calls."""
        work = self.maker.work
        for call, leave in () if work is None else work.leaves[:_CALLS]:
            said = "; ".join(map(approval_words, leave.approvals)) or str(leave.leave)
            tone = Tone.WARN if leave.leave in {Leave.MISSING, Leave.WAITING} else Tone.PLAIN
            asks = f" (rule {', '.join(leave.rules)} asks)" if leave.rules else ""
            yield _row("", TrailNote(f"{call.tool} {ending(call.id)}: {said}{asks}", tone))
        if work is not None and len(work.leaves) > _CALLS:
            yield _row("", TrailNote(f"… and {len(work.leaves) - _CALLS} more"))

    def _outside(self, room: int) -> Iterator[BlameRow]:
        """Yield where content from outside came in, and the shortest way from there, with copied words marked."""
        if not self.ways:
            told = "not searched: there is no ledger" if self.ways is None else "nothing from outside had reached it"
            yield _row("4 outside", TrailNote(told, Tone.PLAIN))
            return
        shown = 0
        for way in self.ways[:_WAYS]:
            space = room - 1 - (len(self.ways) > shown + 1)
            if shown and space < _WAY:
                break
            entry = way.entry
            said = "" if entry.words is None else f": {_cut(str(entry.words))}"
            came = f"{entry.name} · {entry.by} · {spelled(entry.at, self.now)}{said}"
            rows = list(_way_rows(way, max(_WAY, space if shown else space // min(len(self.ways), _WAYS))))
            yield _row("" if shown else "4 outside", TrailNote(came, Tone.WARN))
            yield from rows
            room -= 1 + len(rows)
            shown += 1
        if len(self.ways) > shown:
            more = len(self.ways) - shown
            asked = ending(str(self.maker.call or self.maker.run.id), 6)
            yield _row("", TrailNote(f"… and {more} more from outside: `batonpass taint {asked}`"))

    def _change(self) -> Iterator[BlameRow]:
        """Yield the call, the lines that it changed, and how that is known."""
        maker = self.maker
        if maker.work is not None:
            yield from _work_rows(maker.work)
            return
        parts = [called(maker, transcripts=self.heard)]
        parts += [] if maker.command is None else [shown_command(maker.command)]
        edits = list(hunks_of(maker, self.group))
        parts += [f"{change.path} {header_of(edit)}" for change, edit in edits[:1]]
        if not edits:
            parts += [told_change(change) for change in maker.changes[:_HOPS]]
        parts += [self.group[0].known] if self.group else []
        yield _row("by", TrailNote(" · ".join(parts), Tone.PLAIN), *self._warnings())
        lines = [
            *(TrailNote(f"- {line}", Tone.BAD) for _, edit in edits for line in edit.removed),
            *(TrailNote(f"+ {line}", Tone.GOOD) for _, edit in edits for line in edit.added),
        ]
        yield from (_row("", TrailNote(_cut(note.text.expandtabs(4)), note.tone)) for note in lines[:_CHANGE])
        if len(lines) > _CHANGE:
            yield _row("", TrailNote(f"… and {len(lines) - _CHANGE} more lines"))

    def _warnings(self) -> Iterator[TrailNote]:
        maker = self.maker
        if maker.in_doubt:
            yield TrailNote(" · no outcome: nobody knows whether it happened", Tone.WARN)
        if self.group and self.group[0].known is HowKnown.MATCHED:
            yield TrailNote(" by its text and its place", Tone.WARN)
        for note in proof_notes(maker, heard=self.heard):
            yield TrailNote(" · ")
            yield note

    def _ids(self) -> BlameRow:
        """Return the full ids, for further commands."""
        maker, source = self.maker, self.maker.source
        known: list[str | None] = [] if self.heard else [maker.call, maker.receipt, maker.run.id, maker.run.handoff]
        if source is not None:
            known += [source.program, f"session {source.session}", f"line {source.key}"]
        return _row("ids", TrailNote(" · ".join(one for one in known if one)))


_UNARMED: Final = "none: no secret was given to it through the relay"
_NOT_NOTED: Final = "not in a note; the ledger that it comes from knows"


def _work_rows(work: RunWork) -> Iterator[BlameRow]:
    counts = ", ".join(f"{count} {name}" for name, count in work.outcomes.items()) or "no calls"
    yield _row("calls", TrailNote(counts, Tone.PLAIN))
    files = [f"{path}{f' ×{count}' * (count > 1)}" for path, count in work.files.items()]
    if files:
        more = f" and {len(files) - _CALLS} more" if len(files) > _CALLS else ""
        yield _row("changed", TrailNote(f"{', '.join(files[:_CALLS])}{more}", Tone.PLAIN))


def _way_rows(way: Way, most: int) -> Iterator[BlameRow]:
    """Yield the hops after the first. If there are too many, keep the last one and those with copied words."""
    hops = way.hops[1:]
    groups = [list(_hop_rows(hop)) for hop in hops]
    if sum(map(len, groups)) <= most:
        yield from (row for group in groups for row in group)
        return
    quoting = [index for index, hop in enumerate(hops) if hop.is_quoting]
    kept: set[int] = set()
    room = most - 1
    for index in dict.fromkeys((len(groups) - 1, *quoting, *range(len(groups)))):
        if len(groups[index]) <= room:
            kept.add(index)
            room -= len(groups[index])
    left = len(groups) - len(kept)
    gap = next(index for index in range(len(groups)) if index not in kept)
    for index, group in enumerate(groups):
        yield from group if index in kept else ()
        if index == gap:
            yield _row("", TrailNote(f"→ … {left} hop{'s' * (left != 1)} left out"))


def _hop_rows(hop: WayHop) -> Iterator[BlameRow]:
    what = f" {hop.what}" if hop.what else ""
    flagged = " · its words stand in the arguments" if hop.flagged and not hop.quotes else ""
    yield _row("", TrailNote(_cut(f"→ {hop.name} {hop.did}{what}{flagged}"), Tone.PLAIN))
    for quote in hop.quotes[:2]:
        marked = (TrailNote(part, Tone.BAD if is_marked else Tone.PLAIN) for part, is_marked in marked_parts(quote))
        yield _row("", TrailNote(f"    {quote.where}: ", Tone.PLAIN), *marked)


def _ends(permits: Sequence[PermittedHop], most: int) -> list[PermittedHop | None]:
    """Return the permits, its own first; if there are too many, None in place of those in the middle."""
    return [*permits] if len(permits) <= most + 1 else [*permits[: most - 1], None, permits[-1]]


def _words(label: str, text: Text | None, most: int) -> Iterator[BlameRow]:
    """Yield somebody's words, as many lines as fit, each marked as quoted."""
    if text is None or text.found is not Found.KEPT or text.words is None:
        yield _row(label, TrailNote("unknown" if text is None else text.first_line, Tone.PLAIN))
        return
    lines = text.words.strip().split("\n")
    shown = lines if len(lines) <= most else lines[: most - 1]
    for number, line in enumerate(shown):
        yield _row("" if number else label, TrailNote(f"│ {_cut(line.expandtabs(4))}", Tone.PLAIN))
    if len(shown) < len(lines):
        yield _row("", TrailNote(f"│ … {len(lines) - len(shown)} more lines"))


def _identity(used: UsedCredential) -> str:
    return GONE if used.name is None else f"{used.name} of {used.identity}"


def _cut(text: str) -> str:
    return text if len(text) <= _WIDE else f"{text[: _WIDE - 1]}…"


def _row(label: str, *notes: TrailNote) -> BlameRow:
    return BlameRow((TrailNote(f"{label:<{_LABEL}}"), *notes))
