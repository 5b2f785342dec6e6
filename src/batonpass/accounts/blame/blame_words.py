"""The building blocks of blame answers: names, times, quotes, approvals and hunks."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Final

from msgspec import Struct

from batonpass.accounts.blame.blame_values import BlamedLine, Maker, NotedBy
from batonpass.accounts.trail.first_lines import looked_for, proven, shortened
from batonpass.accounts.trail.receipt_lines import Tone, TrailNote
from batonpass.attribution.changes.change import Certainty, FileChange, Hunk
from batonpass.attribution.changes.mark import squeezed
from batonpass.audit.short_ids import ending
from batonpass.model.base.visible import visible
from batonpass.notes.foreign.hearsay import Hearsay, HearsayReach, HearsaySource
from batonpass.records.call import CallRecord, read_arguments
from batonpass.records.handoff import Standing
from batonpass.records.hold import Approval, Leave
from batonpass.records.text import Found, Text
from batonpass.store.port import LedgerView

STANDING_TONES: Final = {Standing.VERIFIED: Tone.GOOD, Standing.REFUTED: Tone.BAD, Standing.UNVERIFIED: Tone.WARN}
_LONGEST: Final = 60
_TOLD: Final = {
    HearsaySource.GIT_AI: "git-ai's note",
    HearsaySource.AGENT_TRACE: "a record of Agent Trace",
    HearsaySource.ENTIRE: "a checkpoint of Entire",
    HearsaySource.CO_AUTHORED: "a trailer Co-Authored-By",
    HearsaySource.ASSISTED: "a trailer Assisted-by",
}
_COMMANDS: Final = ("command", "line")  # the argument's name in Claude Code's shells and in `run.shell`


class BlameRow(Struct, frozen=True):
    """One line of output, in parts with a tone. The printer of the parts must make them safe."""

    parts: tuple[TrailNote, ...]
    indent: str = ""

    def __str__(self) -> str:
        """Return it without colours, made safe for a terminal."""
        return visible(f"{self.indent}{''.join(part.text for part in self.parts)}").rstrip()


class LineEdit(Struct, frozen=True):
    """Replaced lines, and how many lines came before them, then and afterwards."""

    old: int
    new: int
    removed: tuple[str, ...]
    added: tuple[str, ...]


def spelled(at: datetime, now: datetime) -> str:
    """Return a local time; without the date if it is today."""
    local = at.astimezone()
    return local.strftime("%H:%M" if local.date() == now.astimezone().date() else "%Y-%m-%d %H:%M")


def quoted(text: Text | None, *, full: bool = False) -> str:
    """Return somebody's words in quotes: the first line, and how much more there is."""
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
    """Return the name of a run; from a transcript, with the program's own id, since our id is not kept."""
    if not transcripts:
        return f"{maker.run.agent} {maker.run.id if full else ending(maker.run.id)}"
    theirs = maker.hops[0].subagent or (maker.source.session if maker.source is not None else None) or ""
    return f"{maker.run.agent} {theirs if full else ending(theirs)}".rstrip()


def called(maker: Maker, *, transcripts: bool, full: bool = False) -> str:
    """Return the name of a call; from a transcript, with its id there."""
    key = maker.source.key if transcripts and maker.source is not None else maker.call
    name = (key or "").rpartition("/")[2]
    return f"{maker.tool} {name if full else ending(name)}".rstrip()


def proof_notes(maker: Maker, *, heard: bool) -> Iterator[TrailNote]:
    """Yield whether the receipts behind an answer are correct; `heard` if transcripts were read instead."""
    if maker.noted is not None:
        yield from _noted_notes(maker, maker.noted)
        return
    if maker.is_hearsay:
        yield TrailNote(f"unsigned: {maker.source.teller if maker.source else 'a transcript'} says so", Tone.WARN)
    if maker.proof.problem is not None:
        yield TrailNote(f"NOT TO BE TRUSTED: {maker.proof.problem}", Tone.BAD)
    elif not heard:
        yield TrailNote(f"{maker.proof.receipts} receipts verified")


def _noted_notes(maker: Maker, noted: NotedBy) -> Iterator[TrailNote]:
    """Yield whose word a note is. A note can be signed; only a ledger can be verified."""
    if noted.signer is None or noted.problem is not None:
        yield TrailNote(f"hearsay: a note says so, and {noted.problem} ({noted.key[:8]})", Tone.WARN)
    elif maker.source is not None and maker.source.imported:
        yield TrailNote(f"{possessive(noted.signer)} relay says so, from an unsigned transcript", Tone.WARN)
    else:
        yield TrailNote(f"signed by {possessive(noted.signer)} relay")
        if not noted.opened:
            yield TrailNote("its change is not opened")


def hearsay_words(said: Hearsay) -> tuple[str, str]:
    """Return a claim of another tool in words: who says it, about which lines, and that nothing proves it."""
    told = _TOLD[said.source]
    what = {
        HearsayReach.LINE: f"{told} says so",
        HearsayReach.NEARBY: f"{told} says so of a line with this number, before or after the commit",
        HearsayReach.COMMIT: f"{told} says so of the commit as a whole",
    }[said.reach]
    doubt = "hearsay:" if said.reach is HearsayReach.LINE else "perhaps"
    kind = ("human",) if said.is_human else ()
    facts = (*kind, said.model, None if said.human is None else f"for {said.human}", what, "unsigned")
    return doubt, " · ".join(fact for fact in facts if fact)


def possessive(principal: str) -> str:
    """Return whose something is: `ana's`."""
    return f"{principal.removeprefix('user:')}'s"


def task_words(maker: Maker) -> str:
    """Return the task in quotes; from a note without the words, its digest."""
    task = maker.hops[0].task
    if task is None and maker.noted is not None:
        return "task not shared" if maker.noted.task is None else f"task {maker.noted.task[:8]}, not shared"
    return quoted(task)


def approval_notes(maker: Maker) -> Iterator[TrailNote]:
    """Yield the approval of exactly this call, and those of the handoffs above it."""
    leave = maker.leave
    if maker.noted is not None and leave is None:
        yield _noted_approval(maker.noted)
    elif maker.is_hearsay:
        yield TrailNote("approval: none recorded", Tone.PLAIN)
    elif maker.work is not None and maker.work.leaves:
        count = len(maker.work.leaves)
        yield TrailNote(f"approval: a rule asks for it for {count} of its calls", Tone.PLAIN)
    elif leave is None or leave.leave is Leave.NOT_NEEDED:
        yield TrailNote("approval: none needed", Tone.PLAIN)
    elif leave.leave is Leave.MISSING:
        yield TrailNote(f"approval: none, though rule {', '.join(leave.rules)} asks for one", Tone.WARN)
    elif leave.leave is Leave.WAITING:
        yield TrailNote("approval: still waiting", Tone.WARN)
    else:
        tone = Tone.PLAIN if leave.leave is Leave.GIVEN else Tone.BAD
        yield TrailNote(f"approval: {'; '.join(map(approval_words, leave.approvals))}", tone)
    for hold in maker.handed:
        said = "; ".join(map(approval_words, hold.approvals)) or "nobody has decided"
        yield TrailNote(f" · handoff to {hold.hold.worker}: {said}", Tone.PLAIN)


def _noted_approval(noted: NotedBy) -> TrailNote:
    """Return an approval that a note tells of: it counts only with the signature of an approver whose key is known."""
    if noted.proven_by:
        return TrailNote(f"approval: approved by {', '.join(noted.proven_by)} (signed)", Tone.PLAIN)
    if not noted.counts:
        return TrailNote("approval: none that counts", Tone.PLAIN)
    names = f" by {', '.join(noted.approved_by)}" if noted.approved_by else ""
    said = f"{possessive(noted.signer or '')} relay says {noted.approval}{names}"
    return TrailNote(f"approval: none that counts; {said}", Tone.WARN)


def approval_words(approval: Approval) -> str:
    """Return a ruling in words: by whom, how far proven, which text they were shown and for how long."""
    parts = [f"{'approved' if approval.is_for else 'denied'} by {approval.by} ({proven(approval.body)})"]
    if approval.is_for:
        parts.append("was shown nothing" if approval.shown is None else f"was shown {approval.shown[:12]}")
    if (looked := looked_for(approval.body)) is not None:
        parts.append(looked)
    return ", ".join(parts)


def hunks_of(maker: Maker, group: Sequence[BlamedLine]) -> Iterator[tuple[FileChange, LineEdit]]:
    """Yield the edits of a call, without context lines; with lines given, only the edits that wrote them."""
    wanted = {squeezed(line.text) for line in group}
    for change in maker.changes:
        for edit in map(_trimmed, change.hunks or ()):
            if not wanted or any(squeezed(line) in wanted for line in edit.added):
                yield change, edit


def _trimmed(hunk: Hunk) -> LineEdit:
    """Return the lines that a hunk really changes, without equal lines at its ends."""
    head = _alike(hunk.removed, hunk.added)
    removed, added = hunk.removed[head:], hunk.added[head:]
    tail = _alike(removed[::-1], added[::-1])
    return LineEdit(
        hunk.old_index + head, hunk.new_index + head, removed[: len(removed) - tail], added[: len(added) - tail]
    )


def _alike(first: Sequence[str], second: Sequence[str]) -> int:
    """Return how many first lines two texts share."""
    pairs = enumerate(zip(first, second, strict=False))
    return next((index for index, (one, other) in pairs if one != other), min(len(first), len(second)))


def header_of(edit: LineEdit) -> str:
    """Return the place and size of an edit, like the header of a unified diff."""
    return f"@@ -{_span(edit.old, len(edit.removed))} +{_span(edit.new, len(edit.added))} @@"


def _span(before: int, count: int) -> str:
    return f"{before + 1}" if count == 1 else f"{before + bool(count)},{count}"


def read_command(view: LedgerView, call: CallRecord) -> str | None:
    """Return the command of a shell call; None if it is not one, or the command is gone."""
    given = read_arguments(view, call) or {}
    known = (given.get(name) for name in _COMMANDS)
    return next((one for one in known if isinstance(one, str) and one.strip()), None)


def shown_command(command: str, *, full: bool = False) -> str:
    """Return a command as answers show it: its first line, shortened."""
    words = command.strip()
    if full:
        return f"`{words}`"
    line = words.partition("\n")[0]
    short = line if len(line) <= _LONGEST else f"{line[:_LONGEST].rstrip()}"
    return f"`{short}{'…' * (short != words)}`"


def is_meanwhile(changes: Iterable[FileChange]) -> bool:
    """Return whether a call is only a candidate for all of these changes; False if there are none."""
    certainties = {change.certainty for change in changes}
    return Certainty.CANDIDATE in certainties and Certainty.CERTAIN not in certainties


def told_change(change: FileChange) -> str:
    """Return how a call relates to a change, in words."""
    done = "deleted" if change.is_deletion else "changed"
    match change.certainty:
        case Certainty.CANDIDATE:
            return f"{change.path} was {done} while it ran"
        case Certainty.BROUGHT:
            return f"git brought {change.path}" if not change.is_deletion else f"git took away {change.path}"
        case Certainty.CERTAIN:
            return f"{done} {change.path}"
