"""The values of a blame answer: lines, the calls that wrote them, and the way up to the human."""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum

from msgspec import Struct, field

from batonpass.accounts.handoff.reasoning import Reasoning
from batonpass.accounts.why.why_values import Fact
from batonpass.attribution.changes.change import FileChange
from batonpass.attribution.git.git_history import Commit
from batonpass.model.base.ids import AgentId, CallId, HandoffId, PrincipalId, PublicKey, ReceiptId, RunId
from batonpass.model.base.kinds import Mode
from batonpass.model.ledger.run import Run
from batonpass.notes.foreign.hearsay import Hearsay
from batonpass.records.call import CallRecord
from batonpass.records.grant import PermittedHop, UsedCredential
from batonpass.records.handoff import Standing
from batonpass.records.hold import CallLeave, HoldRecord
from batonpass.records.source import Source
from batonpass.records.text import Text


class HowKnown(StrEnum):
    """How we know who wrote a line."""

    RECORDED = "recorded"  # by following recorded changes
    MATCHED = "matched"  # it was gone in between, and recognised by its text and place
    CANDIDATES = "candidates"  # several may have written it; they are listed
    UNEXPLAINED = "unexplained"  # no recorded change wrote it


class TaskLink(StrEnum):
    """How we know who handed on a task."""

    CERTAIN = "certain"  # recorded when it happened, and signed
    IMPORTED = "imported"  # from a transcript, unsigned
    INFERRED = "inferred"  # only because the words are the same
    UNKNOWN = "unknown"  # unknown; it is attached to the root


class BlameHop(Struct, frozen=True, kw_only=True):
    """One run on the way up to the human, and how it got its task."""

    run: RunId
    agent: AgentId
    handoff: HandoffId | None = None  # None for a root, as are all fields below
    sender: AgentId | None = None
    offer: ReceiptId | None = None
    task: Text | None = None
    link: TaskLink | None = None
    subagent: str | None = None  # its name in the program that ran it
    reasoning: Reasoning | None = None  # where the sender's reasoning can be read


class BlameProof(Struct, frozen=True, kw_only=True):
    """Whether the receipts behind an answer are correct: signatures, places and contents."""

    receipts: int
    problem: str | None = None
    code: str | None = None

    @property
    def holds(self) -> bool:
        """Return whether no problem was found."""
        return self.problem is None


class NotedBy(Struct, frozen=True, kw_only=True):
    """The origin of an answer that came from a git note: whose relay signed it, and how far its receipts prove it."""

    signer: PrincipalId | None  # whose relay; None: nobody vouches for the key
    key: PublicKey
    problem: str | None = None  # why the signature does not count
    commit: str  # the commit that the note is about
    opened: bool = False  # a receipt opens exactly these lines
    task: str | None = None  # the digest of the task, whose words are not shared
    approval: str | None = None  # as the relay says
    approved_by: tuple[PrincipalId, ...] = ()  # as the relay says
    proven_by: tuple[PrincipalId, ...] = ()  # with the signature of an approver whose key is pinned
    program: str | None = None  # the coding agent
    model: str | None = None

    @property
    def counts(self) -> bool:
        """Return whether somebody vouches for the key, and it was valid."""
        return self.signer is not None and self.problem is None


class RunWork(Struct, frozen=True, kw_only=True):
    """All work of a run: calls by outcome, changed files, credentials and approvals."""

    outcomes: Mapping[str, int] = field(default_factory=dict)
    files: Mapping[str, int] = field(default_factory=dict)
    credentials: tuple[tuple[UsedCredential, int], ...] = ()
    leaves: tuple[tuple[CallRecord, CallLeave], ...] = ()  # of the calls for which a rule asks for approval


class Maker(Struct, frozen=True, kw_only=True):
    """The run or call that made something, and under whose authority."""

    call: CallId | None  # None if it was not a call, but an attachment
    tool: str
    at: datetime
    receipt: ReceiptId
    run: Run
    mode: Mode
    source: Source | None
    changes: tuple[FileChange, ...]
    hops: tuple[BlameHop, ...]  # its own run first, the root last
    said: Text | None  # the human's latest words at that time
    said_at: datetime | None
    may: tuple[str, ...] | None  # its grant, or the permits that its sender asked for; None if erased
    standing: Standing
    judgements: tuple[Fact, ...]
    proof: BlameProof
    record: CallRecord | None = None  # the call itself; None if it is not one, or its request is missing
    leave: CallLeave | None = None  # the approval of exactly this call
    handed: tuple[HoldRecord, ...] = ()  # handoffs above it that were held at their offer, its own first
    permits: tuple[PermittedHop, ...] = ()  # the permit of each hop that covered it
    credential: UsedCredential | None = None  # the secret that it used
    work: RunWork | None = None  # for a whole run: everything it did
    in_doubt: bool = False  # a call without an outcome: it may not have happened
    command: str | None = None  # the command, if it was a shell
    noted: NotedBy | None = None  # it comes from a note, and not from a ledger

    @property
    def principal(self) -> PrincipalId:
        """Return the principal."""
        return self.run.principal

    @property
    def granted_by(self) -> str:
        """Return who granted it: its sender, or for a root its principal."""
        return self.hops[0].sender or self.principal

    @property
    def task(self) -> Text | None:
        """Return the exact task; for a root, the human's words."""
        return self.said if self.run.handoff is None else self.hops[0].task

    @property
    def is_hearsay(self) -> bool:
        """Return whether it was imported, and not recorded when it happened."""
        return self.source is not None and self.source.imported


class BlamedLine(Struct, frozen=True, kw_only=True):
    """One line of the current file. If it has a run and several calls, only the run is certain."""

    number: int
    text: str
    known: HowKnown
    run: RunId | None = None
    calls: tuple[CallId, ...] = ()  # who wrote it, or may have
    since: datetime | None = None  # if unexplained: it did not exist yet at this time; None: older than all records
    or_nobody: bool = False  # or written by somebody who is not recorded
    commit: Commit | None = None
    reformatted_by: str | None = None  # a call id, or "unrecorded"
    said: tuple[Hearsay, ...] = ()  # if unexplained: the claims of other tools

    @property
    def verdict(self) -> tuple[object, ...]:
        """Return everything but the line itself: lines with equal verdicts are grouped."""
        return self.known, self.run, self.calls, self.since, self.or_nobody, self.commit, self.reformatted_by, self.said


class LedgerPlace(Struct, frozen=True, kw_only=True):
    """A place in the ledger that contains the text asked for, and who wrote it."""

    what: str  # a task, a statement, a change, an artifact, and so on
    receipt: ReceiptId
    at: datetime
    agent: str
    run: RunId | None = None
    handoff: HandoffId | None = None
    call: CallId | None = None
    theirs: str | None = None  # name of that run in the program it was imported from
    key: str | None = None  # its id there
    detail: str = ""  # the surrounding words, a path, or a digest
