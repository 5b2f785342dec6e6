"""The answer to who wrote it: lines, the calls that made them, and everything above each call up to the human."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from enum import StrEnum

from msgspec import Struct, field

from batonpass.accounts.handoff.reasoning import Reasoning
from batonpass.accounts.taint.taint_values import Way
from batonpass.accounts.why.why_values import Fact
from batonpass.attribution.changes.change import FileChange
from batonpass.attribution.git.git_history import Commit
from batonpass.model.base.ids import AgentId, CallId, HandoffId, PrincipalId, ReceiptId, RunId
from batonpass.model.base.kinds import Mode
from batonpass.model.ledger.run import Run
from batonpass.records.call import CallRecord
from batonpass.records.grant import PermittedHop, UsedCredential
from batonpass.records.handoff import Standing
from batonpass.records.hold import CallLeave, HoldRecord
from batonpass.records.source import Source
from batonpass.records.text import Text


class HowKnown(StrEnum):
    """How it is known who wrote a line."""

    RECORDED = "recorded"  # by recorded changes, one after the other
    MATCHED = "matched"  # it was away in between, and was known again by its text and its place
    CANDIDATES = "candidates"  # several may have written it, and they are listed
    UNEXPLAINED = "unexplained"  # no recorded change wrote it


class TaskLink(StrEnum):
    """How it is known who handed a task on."""

    CERTAIN = "certain"  # recorded when it happened, and signed
    IMPORTED = "imported"  # a transcript says so; nobody signed it
    INFERRED = "inferred"  # the words are the same, and nothing else says so
    UNKNOWN = "unknown"  # nothing says who started it: it hangs from the root


class BlameHop(Struct, frozen=True, kw_only=True):
    """One run on the way up to the human, and how its task reached it."""

    run: RunId
    agent: AgentId
    handoff: HandoffId | None = None  # None for a root, like all that follows
    sender: AgentId | None = None
    offer: ReceiptId | None = None
    task: Text | None = None
    link: TaskLink | None = None
    subagent: str | None = None  # what the program that ran it calls it
    reasoning: Reasoning | None = None  # where it can be read what its sender thought


class BlameProof(Struct, frozen=True, kw_only=True):
    """Whether the receipts that an answer rests on are what was signed, in their places, with their words."""

    receipts: int
    problem: str | None = None
    code: str | None = None

    @property
    def holds(self) -> bool:
        """Return whether nothing is wrong with them."""
        return self.problem is None


class RunWork(Struct, frozen=True, kw_only=True):
    """What a run did in all: its calls by outcome, the files that they changed, whose secrets, and by whose leave."""

    outcomes: Mapping[str, int] = field(default_factory=dict)
    files: Mapping[str, int] = field(default_factory=dict)
    credentials: tuple[tuple[UsedCredential, int], ...] = ()
    leaves: tuple[tuple[CallRecord, CallLeave], ...] = ()  # of the calls that a rule asks somebody about


class Maker(Struct, frozen=True, kw_only=True):
    """What made something, and under whose authority."""

    call: CallId | None  # None if it was no call: something that was attached
    tool: str
    at: datetime
    receipt: ReceiptId
    run: Run
    mode: Mode
    source: Source | None
    changes: tuple[FileChange, ...]
    hops: tuple[BlameHop, ...]  # its own run first, the root last
    said: Text | None  # what the human had said last by then
    said_at: datetime | None
    may: tuple[str, ...] | None  # what it was granted, or its sender asked for; None if those words are gone
    standing: Standing
    judgements: tuple[Fact, ...]
    proof: BlameProof
    record: CallRecord | None = None  # the call itself; None if it was none, or nothing says what was asked
    leave: CallLeave | None = None  # by whose leave exactly this call was made
    handed: tuple[HoldRecord, ...] = ()  # handoffs above it that waited at their offer, its own first
    permits: tuple[PermittedHop, ...] = ()  # by which permit of each hop it was made
    credential: UsedCredential | None = None  # with whose secret
    work: RunWork | None = None  # of a run as a whole: all that it did
    in_doubt: bool = False  # a call that has no outcome: nobody knows whether it happened
    command: str | None = None  # what a shell was told, if it was one

    @property
    def principal(self) -> PrincipalId:
        """Return for whom it was."""
        return self.run.principal

    @property
    def granted_by(self) -> str:
        """Return who gave it what it may: whoever handed it the work, and to a root whoever it works for."""
        return self.hops[0].sender or self.principal

    @property
    def task(self) -> Text | None:
        """Return the exact task; of a root, what the human said."""
        return self.said if self.run.handoff is None else self.hops[0].task

    @property
    def is_hearsay(self) -> bool:
        """Return whether it was told by somebody afterwards, and not recorded when it happened."""
        return self.source is not None and self.source.imported


class BlamedLine(Struct, frozen=True, kw_only=True):
    """One line of the file as it is now. With a run and several calls, only the run is certain."""

    number: int
    text: str
    known: HowKnown
    run: RunId | None = None
    calls: tuple[CallId, ...] = ()  # who wrote it, or may have
    since: datetime | None = None  # if unexplained: it was not there yet at this time; None: before anything recorded
    or_nobody: bool = False  # somebody who is not recorded may have written it as well
    commit: Commit | None = None
    reformatted_by: str | None = None  # a call, or "unrecorded"

    @property
    def verdict(self) -> tuple[object, ...]:
        """Return all but the line itself: lines with the same verdict are told together."""
        return self.known, self.run, self.calls, self.since, self.or_nobody, self.commit, self.reformatted_by


class LedgerPlace(Struct, frozen=True, kw_only=True):
    """Somewhere in the ledger: what holds what was asked for, and whose it is."""

    what: str  # a task, a statement, a change, an artifact, and so on
    receipt: ReceiptId
    at: datetime
    agent: str
    run: RunId | None = None
    handoff: HandoffId | None = None
    call: CallId | None = None
    theirs: str | None = None  # how the program that it was imported from calls that run
    key: str | None = None  # what names it there
    detail: str = ""  # the words around it, a path, or a digest


class Blame(Struct, frozen=True, kw_only=True):
    """Who wrote something: of a file, each line that was asked about; of all else, where it is."""

    asked: str
    path: str | None = None
    total: int = 0  # lines of the file
    recorded: int = 0  # changes of the file that were found
    lines: tuple[BlamedLine, ...] = ()
    places: tuple[LedgerPlace, ...] = ()
    calls: tuple[CallId | ReceiptId, ...] = ()  # what made a thing that has no lines
    makers: Mapping[CallId | ReceiptId, Maker] = field(default_factory=dict)
    gone: bool = False  # the file is not there any more
    notes: tuple[str, ...] = ()  # what could not be read
    ways: Mapping[CallId | ReceiptId, tuple[Way, ...]] | None = None  # from outside to each maker; None: not looked for
    transcripts: int | None = None  # sessions that were read for want of a ledger; None: a ledger answered

    @property
    def is_heard(self) -> bool:
        """Return whether transcripts answered, because there was no ledger."""
        return self.transcripts is not None

    @property
    def is_explained(self) -> bool:
        """Return whether there is anything or anybody to name."""
        return bool(self.calls or self.places) or any(line.known is not HowKnown.UNEXPLAINED for line in self.lines)

    @property
    def holds(self) -> bool:
        """Return whether nothing is wrong with the receipts behind it."""
        return all(maker.proof.holds for maker in self.makers.values())

    def groups(self) -> Iterator[tuple[BlamedLine, ...]]:
        """Yield lines that stand together and have the same verdict."""
        group: list[BlamedLine] = []
        for line in self.lines:
            if group and (line.verdict != group[-1].verdict or line.number != group[-1].number + 1):
                yield tuple(group)
                group = []
            group.append(line)
        if group:
            yield tuple(group)

    def __str__(self) -> str:
        """Return it as people read it."""
        from batonpass.accounts.blame.blame_text import render_blame  # noqa: PLC0415 - how it is told depends on what it is

        return "\n".join(str(row) for row in render_blame(self))
