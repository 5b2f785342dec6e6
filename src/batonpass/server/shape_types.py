"""The shapes of answers as types, from which the OpenAPI document is made. `records.json_shapes` makes the values.

A test compares the two, field by field, so neither can change alone.
"""

from typing import Annotated, Any, Generic, TypeAlias, TypeVar

from msgspec import Meta, Struct

from batonpass.model.base.kinds import AccessRole, Mode, WebhookChange
from batonpass.model.base.lifecycle import Carrier, State
from batonpass.model.ledger.run import RunState
from batonpass.review.finding import Severity

Item = TypeVar("Item")
Moment: TypeAlias = Annotated[str, Meta(extra_json_schema={"format": "date-time"})]
Document: TypeAlias = dict[str, Any]


class Page(Struct, Generic[Item], frozen=True, kw_only=True):
    """A part of a list, and where the next part begins; null if this is the last."""

    items: list[Item]
    next: str | None


class WordsShape(Struct, frozen=True, kw_only=True):
    """Text that somebody wrote, as far as it is still there."""

    id: str
    digest: str
    size: int
    media_type: str
    state: str
    text: str | None
    whole: bool
    base64: str = ""


class RunShape(Struct, frozen=True, kw_only=True):
    """One agent working once on one task."""

    id: str
    agent: str
    state: RunState
    principal: str
    task: WordsShape | None
    root: str
    parent: str | None
    handoff: str | None
    attempt: int
    started_at: Moment
    ended_at: Moment | None


class RunDetailShape(RunShape, frozen=True, kw_only=True):
    """A run with its calls, its children, its report, and every run above it."""

    imported: str | None
    mode: Mode | None
    session: str | None
    epoch: int | None
    receipts: list[str]
    ancestors: list[RunShape]
    children: list[RunShape]
    calls: list[Document]
    report: WordsShape | None


class HandoffShape(Struct, frozen=True, kw_only=True):
    """One task that a run delegated to an agent."""

    id: str
    to: str
    state: State
    attempt: int
    task: WordsShape | None
    root: str
    parent: str
    run: str | None
    carrier: Carrier
    deadline: Moment | None
    offered_at: Moment


class OfferedShape(HandoffShape, frozen=True, kw_only=True):
    """A handoff that was made just now, or that was there: then its result may be there too."""

    reused: bool


class HandoffDetailShape(HandoffShape, frozen=True, kw_only=True):
    """A handoff with its attempts, the holds and the rulings on them, and the verdicts on its results."""

    mode: Mode
    attempts: list[RunShape]
    holds: list[Document]
    verdicts: list[Document]
    acts: list[str]


class BriefingShape(Struct, frozen=True, kw_only=True):
    """The briefing of a handoff's receiver: instructions, and apart from them the data from outside."""

    handoff: str
    instructions: str
    data: str
    deferred: list[str]


class ExcerptShape(Struct, frozen=True, kw_only=True):
    """A part of a text that a briefing gives by reference, and how many characters follow."""

    ref: str
    text: str
    start: int
    rest: int


class ReceiptShape(Struct, frozen=True, kw_only=True):
    """One signed record, with the words beside it."""

    id: str
    kind: str
    at: Moment
    stream: str
    seq: int
    epoch: int
    position: int | None
    digest: str
    previous: str
    mode: Mode
    relay: str
    relay_key: str
    cosigner: str | None
    root: str | None
    session: str | None
    body: Document
    content: dict[str, WordsShape]


class MatchShape(Struct, frozen=True, kw_only=True):
    """A place in a receipt, or in the words beside it, that a search found."""

    receipt: str
    stream: str
    kind: str
    at: Moment
    agent: str
    field: str
    line: int | None
    before: str
    found: str
    after: str


class ArtifactShape(Struct, frozen=True, kw_only=True):
    """A content that a receipt of a run names."""

    receipt: str
    name: str
    content: str
    digest: str
    size: int
    media_type: str
    state: str


class GrantShape(Struct, frozen=True, kw_only=True):
    """The grant of a run or a handoff: every hop from the root down."""

    account: str
    mode: Mode
    chain: list[Document]


class ApprovalShape(Struct, frozen=True, kw_only=True):
    """Something that waits for a person: a held handoff, or a held call of a run that goes on meanwhile."""

    id: str
    kind: str
    run: str
    agent: str
    rule: str | None
    gate: str | None
    people: int | None
    proven: bool
    tool: str | None
    target: str | None
    since: Moment | None


class QuestionShape(Struct, frozen=True, kw_only=True):
    """A question that a receiver asked before it acts."""

    handoff: str
    run: str
    agent: str
    question: WordsShape | None
    asked_at: Moment


class CardShape(Struct, frozen=True, kw_only=True):
    """An agent that this server knows."""

    agent: str
    description: str
    skills: list[str] | None
    tools: list[str] | None
    accepts: list[str] | None
    ceiling: list[str] | None
    runs_here: bool


class WorkerShape(Struct, frozen=True, kw_only=True):
    """A lease: which worker works on which handoff, and until when."""

    holder: str
    handoff: str
    until: Moment


class LeaseShape(WorkerShape, frozen=True, kw_only=True):
    """A lease, for the worker that holds it."""

    token: int


class ClaimShape(Struct, frozen=True, kw_only=True):
    """The lease on a handoff; null if nothing waits."""

    lease: LeaseShape | None


class SealShape(Struct, frozen=True, kw_only=True):
    """A signed Merkle root over all receipts up to a position."""

    size: int
    previous: int
    root: str
    note: str


class TokenShape(Struct, frozen=True, kw_only=True):
    """An access token, without anything that would let somebody in."""

    id: str
    receipt: str
    principal: str
    role: AccessRole
    agents: list[str]
    may: list[str]
    may_delegate: list[str]
    valid: bool
    added_by: str
    added_at: Moment
    until: Moment
    revoked_by: str | None
    revoked_at: Moment | None


class IssuedTokenShape(TokenShape, frozen=True, kw_only=True):
    """A new token with its text, which is shown this once."""

    token: str


class WebhookShape(Struct, frozen=True, kw_only=True):
    """A webhook, without its secret and without the part of its URL that often is one."""

    id: str
    receipt: str
    place: str | None
    kinds: list[str]
    state: WebhookChange
    active: bool
    added_by: str
    added_at: Moment
    changed_by: str
    changed_at: Moment
    reason: str | None


class IssuedWebhookShape(Struct, frozen=True, kw_only=True):
    """A webhook and its new secret, which is shown this once."""

    id: str
    secret: str


class WebhookAnswerShape(Struct, frozen=True, kw_only=True):
    """The answer of a webhook to an event that says nothing."""

    status: int
    taken: bool


class SeenShape(Struct, frozen=True, kw_only=True):
    """Who has seen a finding and leaves it as it is, and why."""

    by: str
    at: Moment
    reason: str | None


class FindingShape(Struct, frozen=True, kw_only=True):
    """Something that a person should see, with the receipts that prove it."""

    finding: str
    kind: str
    title: str
    severity: Severity
    root: str
    subject: str
    agent: str
    person: str | None  # whose habit it is, if it is one
    at: Moment
    sentence: str
    matters: str
    mast: str | None
    owasp: str | None
    receipts: list[str]
    go_on: list[str]
    details: list[str]
    acknowledged: SeenShape | None


class AlarmShape(Struct, frozen=True, kw_only=True):
    """An alarm about an agent at a kind of task, and its present state."""

    alarm: str
    agent: str
    task_kind: str | None
    config: str | None
    cause: str
    sentence: str | None
    first_handoff: str | None
    raised_at: Moment
    stands: bool
    acknowledged: SeenShape | None
    cleared_at: Moment | None
    receipt: str


class LedgerShape(Struct, frozen=True, kw_only=True):
    """The ledger behind this server."""

    id: str
    root_key: str
    position: int
    version: str


class BegunShape(Struct, frozen=True, kw_only=True):
    """A run that was begun just now, the proof for its holder, and everything that travels with its task."""

    run: RunShape
    proof: str | None  # null if the client keeps the key of the run, and makes the proof itself
    mode: Mode
    task: Document


class CallBegunShape(Struct, frozen=True, kw_only=True):
    """A call that may be made now, or whose result is known: then it is not made."""

    call: str | None
    key: str | None
    replayed: bool
    value: Any


class ShownContentShape(Struct, frozen=True, kw_only=True):
    """A content that something to be signed names by its digest: the sha256 of salt and body, both in base64 here."""

    name: str
    id: str
    media_type: str
    salt: str
    body: str


class ToSignShape(Struct, frozen=True, kw_only=True):
    """The bytes that an act needs to have signed before anything is written: `message`, in base64, by `key`."""

    act: str
    number: int
    key: str
    message: str
    contents: list[ShownContentShape]


class RecordedShape(Struct, frozen=True, kw_only=True):
    """An item that was written down."""

    item: str
    digest: str
    by: str
    at: Moment


class DoneShape(Struct, frozen=True, kw_only=True):
    """It is done."""

    done: bool


class ClosedShape(Struct, frozen=True, kw_only=True):
    """A run that has ended."""

    run: str
    state: RunState
    again_after: float | None  # seconds until its handoff is tried again by itself


class ResultShape(Struct, frozen=True, kw_only=True):
    """The state of a handoff: its result, or the reason why there is none."""

    handoff: str
    state: State
    delivered: bool
    attempt: int
    report: Any
    value: Any
    reason: str
    question: str | None
    run: str | None
    error: str | None
    blocked_by: str | None


class SheetShape(Struct, frozen=True, kw_only=True):
    """The sheet that an approver has to read first, and the digest that the ruling has to name."""

    id: str
    text: str
    shown: str
    hold: str
    proven: bool
    people: int


class PreparedShape(Struct, frozen=True, kw_only=True):
    """A ruling that a passkey has to sign: its text, the digest that is the challenge, and which passkey."""

    ruling: str
    challenge: str
    at: str
    site: str
    credential: str


class VerifiedShape(Struct, frozen=True, kw_only=True):
    """The counts of a verification."""

    receipts: int
    position: int


class ErrorShape(Struct, frozen=True, kw_only=True):
    """An error: a stable code for programs, and a sentence for people. Some carry further facts."""

    code: str
    message: str


class RefusalShape(Struct, frozen=True, kw_only=True):
    """The answer to every failed request."""

    error: ErrorShape
