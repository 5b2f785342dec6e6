"""One valid example of everything, with fixed ids: a test changes the one part that it is about."""

from datetime import UTC, datetime
from typing import Any, Final

from msgspec import NODEFAULT, Struct
from msgspec.structs import fields

from batonpass.model.base.ids import (
    AgentId,
    CallId,
    ContentId,
    Digest,
    HandoffId,
    KeyId,
    PrincipalId,
    PublicKey,
    ReceiptId,
    RelayId,
    RunId,
    SessionId,
    StreamId,
    TokenId,
    WebhookId,
)
from batonpass.model.base.kinds import AccessRole, CarriedFate, ItemFate, Mode, WebhookChange
from batonpass.model.base.label import Label, SourceType
from batonpass.model.base.lifecycle import Carrier, State
from batonpass.model.base.trace import TraceParent
from batonpass.model.bodies.body import (
    AlarmAcknowledged,
    AlarmCleared,
    AlarmRaised,
    ApproverEnrolled,
    ApproverRevoked,
    Body,
    Carried,
    Changed,
    Charge,
    CheckpointSaved,
    ChildHead,
    ContentErased,
    Effect,
    EffectKind,
    ErrorType,
    FileEndorsed,
    FindingAcknowledged,
    Gate,
    GrantRevoked,
    HandoffAccepted,
    HandoffAnswered,
    HandoffApproved,
    HandoffAsked,
    HandoffBacked,
    HandoffCancelled,
    HandoffCompleted,
    HandoffContextSanitized,
    HandoffDeclined,
    HandoffDenied,
    HandoffEndorsed,
    HandoffExpired,
    HandoffFailed,
    HandoffHeld,
    HandoffInitiated,
    HandoffLapsed,
    HandoffLate,
    HandoffParked,
    HandoffReplaced,
    HandoffResumed,
    HandoffRetried,
    HandoffRevised,
    HandoffSettled,
    Kind,
    Method,
    Outcome,
    Part,
    Relation,
    RelayEnrolled,
    RelayRevoked,
    RelayRotated,
    RulingProof,
    RunAcknowledged,
    RunClosed,
    RunEndorsed,
    RunGap,
    RunRecorded,
    RunRekeyed,
    RunRelaxed,
    RunSettled,
    RunSpent,
    RunStarted,
    RunSuspended,
    RunTainted,
    Sanitising,
    ScanFound,
    SessionPruned,
    SessionResumed,
    SessionSaved,
    Settlement,
    TokenAdded,
    TokenRevoked,
    ToolApproved,
    ToolBacked,
    ToolCached,
    ToolCompleted,
    ToolDenied,
    ToolFailed,
    ToolHeld,
    ToolRefused,
    ToolRequested,
    VerificationFailed,
    VerificationPassed,
    VerificationRepeated,
    VerificationWaived,
    WaitUntil,
    WebhookChanged,
)
from batonpass.model.bodies.reasoning import ReasoningPointer
from batonpass.model.grants.charge import Unit
from batonpass.model.ledger.content import Content, ContentRef, content_digest
from batonpass.model.ledger.receipt import SIGNED_BY_ROOT, SIGNED_BY_RUN, Receipt


def an_id(prefix: str, number: int = 1) -> str:
    """Return a fixed id."""
    return f"{prefix}_01kdzgqm80{number:016d}"


AT: Final = datetime(2026, 1, 2, 12, 0, 0, 123456, tzinfo=UTC)
LATER: Final = datetime(2026, 1, 2, 12, 30, tzinfo=UTC)
PARENT: Final = RunId(an_id("run", 1))
CHILD: Final = RunId(an_id("run", 2))
HANDOFF: Final = HandoffId(an_id("handoff"))
RELAY: Final = RelayId(an_id("relay"))
CALL: Final = CallId(an_id("call"))
CONTENT: Final = ContentId(an_id("content"))
RECEIPT: Final = ReceiptId(an_id("receipt"))
SESSION: Final = SessionId(an_id("session"))
TOKEN: Final = TokenId(an_id("token"))
WEBHOOK: Final = WebhookId(an_id("webhook"))
DIGEST: Final = Digest("ab" * 32)
COMMIT: Final = "cd" * 20
RELAY_KEY: Final = KeyId("cd" * 32)
RUN_KEY: Final = PublicKey("12" * 32)
NEW_KEY: Final = PublicKey("34" * 32)
EDITOR: Final = AgentId("editor")
ANA: Final = PrincipalId("user:ana")
SALT: Final = bytes(range(16))

HEAD: Final = ChildHead(run=CHILD, seq=3, head=DIGEST)
REF: Final = ContentRef(id=CONTENT, digest=content_digest(SALT, b"words"), size=5, media_type="text/plain")
WORDS: Final = Content(name="task", ref=REF, salt=SALT, body=b"words")

CHARGED: Final = Charge(account=StreamId(HANDOFF), unit=Unit.CALLS, amount=1)
SENT: Final = Effect(effect=CONTENT, kind=EffectKind.MESSAGE, target=DIGEST, count=2)
PROOF: Final = RulingProof(key=RELAY_KEY, at=AT, signature="ab" * 64)
FOUND: Final = ScanFound(place="context", rule="override.ignore", count=2, score=900)
DECIDED: Final = Carried(item=CONTENT, digest=DIGEST, part=Part.DECISION)
DECLINED: Final = HandoffId(an_id("handoff", 2))
FALLEN: Final = CarriedFate(item=CONTENT, fate=ItemFate.REFUTED, verdict=RECEIPT)
REVIEWER: Final = AgentId("reviewer")
LABEL: Final = Label(SourceType.EXTERNAL, (ANA, PrincipalId("user:bob")))
_LABELLED: Final[Any] = {"label": LABEL}
_TAINTED: Final[Any] = {**_LABELLED, "taint": (CALL, CONTENT)}
_VETTED: Final[Any] = {**_LABELLED, "untrusted": (CONTENT,)}
_ON: Final[Any] = {"handoff": HANDOFF}
_WAITS: Final[Any] = {"awaits": HandoffId(an_id("handoff", 9)), "wait_until": WaitUntil.DECIDED}
_BY_ANA: Final[Any] = {**_ON, "by": ANA}
_BOUND: Final[Any] = {"policy": DIGEST, "certificate": DIGEST}
TRACE: Final = TraceParent("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
_GRANTED: Final[Any] = {**_BOUND, "terms": DIGEST}
_HELD: Final[Any] = {"gate": Gate.CONFIRM, "until": LATER, "proven": True, "approvals": 2}
_SHOWN: Final[Any] = {
    "hold": DIGEST,
    "shown": DIGEST,
    "looked_ms": 1200,
    "measured_ms": 1500,
    "proof": PROOF,
    "flags": ("approval.unproven",),
    "expires": LATER,
}
_OF_CHILD: Final[Any] = {**_ON, "parent": PARENT, "run": CHILD, "attempt": 1}
_CLOSED: Final[Any] = {"children": (HEAD,), "effects": (CALL,), "unverified": (DECLINED,), "waiting": (DECLINED,)}
_JUDGED: Final[Any] = {
    **_BY_ANA,
    "attempt": 1,
    "method": Method.COMMAND,
    "by_producer": True,
    "exit_code": 1,
    "output": DIGEST,
}

# Every field has another value than its default: a receipt that says all that its kind can say.
BODIES: Final[dict[Kind, Body]] = {
    body.kind: body
    for body in (
        RunStarted(
            run=PARENT,
            agent=AgentId("lead"),
            principal=ANA,
            run_key=RUN_KEY,
            continues=RunId(an_id("run", 3)),
            series="quarterly",
            trace=TRACE,
            upstream=3,
            **_LABELLED,
            **_GRANTED,
        ),
        RunRekeyed(run=PARENT, run_key=NEW_KEY),
        RunRecorded(run=PARENT, by=ANA, items=(DECIDED,), **_LABELLED),
        RunRelaxed(run=PARENT, item=CONTENT, by=ANA),
        RunSettled(run=PARENT, by=ANA, call=CALL, settlement=Settlement.REPEAT),
        RunAcknowledged(run=PARENT, revision=1, baton=DIGEST),
        RunTainted(run=PARENT, sources=(CALL, CONTENT), handoff=HANDOFF, wrote=CALL),
        RunEndorsed(run=PARENT, source=CALL, by=ANA),
        RunGap(run=PARENT, calls=2),
        RunSpent(run=PARENT, tokens=1_200, cost=30_000, charges=(CHARGED,)),
        RunSuspended(run=PARENT, call=CALL, awaits=HANDOFF),
        RunClosed(
            run=PARENT,
            outcome=Outcome.FAILED,
            **_CLOSED,
            **_LABELLED,
            flags=("would_deny.constraint",),
            waiting_calls=(CALL,),
        ),
        CheckpointSaved(run=CHILD, after=CALL, **_LABELLED),
        HandoffInitiated(
            handoff=HANDOFF,
            run=PARENT,
            to=EDITOR,
            carrier=Carrier.CALLER,
            state=State.OFFERED,
            relation=Relation.PEER_TO_PEER,
            scope=StreamId(PARENT),
            key=DIGEST,
            fingerprint=Digest("ba" * 32),
            deadline=LATER,
            retries=3,
            carries=(DECIDED,),
            missing=("rationale", Part.QUESTION),
            unverified=(DECLINED,),
            fates=(FALLEN,),
            replaces=DECLINED,
            **_TAINTED,
            **_HELD | {"terms": DIGEST, "flags": ("would_hold.renew",), "rule": "renew"},
            reasoning=ReasoningPointer(checkpoint=ReceiptId(an_id("receipt")), digest=DIGEST, message=3),
            suspect=("task",),
            trace=TRACE,
        ),
        HandoffContextSanitized(
            **_ON,
            run=PARENT,
            action=Sanitising.QUARANTINED,
            label=SourceType.LLM_GENERATED,
            scanned=2,
            found=(FOUND,),
            context=CONTENT,
        ),
        HandoffAccepted(
            **_OF_CHILD,
            agent=EDITOR,
            principal=ANA,
            run_key=RUN_KEY,
            baton=DIGEST,
            problems=("gap.inputs",),
            would_ask=True,
            **_LABELLED,
            **_BOUND,
        ),
        HandoffCompleted(
            **_OF_CHILD, **_CLOSED, kept=2, keeps=(CALL,), gives=(DECIDED,), flags=("expects.untouched",), **_TAINTED
        ),
        HandoffFailed(
            **_OF_CHILD,
            **_CLOSED,
            kept=2,
            keeps=(CALL,),
            gives=(DECIDED,),
            flags=("expects.untouched",),
            **_TAINTED,
            error="timeout",
            to=EDITOR,
        ),
        HandoffHeld(**_ON, **_HELD, attempt=1, ended=HEAD, reason="call.irreversible", call=CALL, **_WAITS),
        HandoffResumed(**_ON, attempt=1, awaits=_WAITS["awaits"]),
        HandoffParked(**_ON, attempt=1, error="attempts-exhausted"),
        HandoffBacked(**_BY_ANA, **_SHOWN),
        HandoffApproved(**_BY_ANA, **_SHOWN),
        HandoffDenied(**_BY_ANA, **_SHOWN),
        HandoffAsked(**_BY_ANA, error=ErrorType.DATA_GAP, check="gap.inputs", question=DIGEST),
        HandoffAnswered(**_BY_ANA, revision=1, taint=(CALL,), waives="data-gap.input-missing", suspect=("answer",)),
        HandoffDeclined(**_BY_ANA, code="no-time"),
        HandoffLapsed(**_ON, attempt=1, ended=HEAD),
        HandoffExpired(**_ON, ended=HEAD),
        HandoffCancelled(**_BY_ANA, ended=HEAD),
        HandoffRetried(**_BY_ANA),
        HandoffRevised(
            **_BY_ANA, revision=1, drops=(CONTENT,), carries=(DECIDED,), fates=(FALLEN,), taint=(CALL, CONTENT)
        ),
        HandoffReplaced(**_BY_ANA, to=REVIEWER),
        HandoffSettled(**_BY_ANA, call=CALL, settlement=Settlement.SKIP),
        HandoffEndorsed(**_BY_ANA, source=CALL),
        HandoffLate(**_ON, run=CHILD, call=CALL, completed=True),
        VerificationPassed(**_JUDGED),
        VerificationFailed(**_JUDGED),
        VerificationRepeated(**_JUDGED, passed=True),
        VerificationWaived(**_BY_ANA, attempt=1),
        ToolRequested(
            run=CHILD,
            call=CALL,
            tool="write_file",
            key=DIGEST,
            target=Digest("ba" * 32),
            idempotent=True,
            reversible=True,
            reads=True,
            flags=("would_deny.budget",),
            tiers=("costly", "irreversible"),
            credential=DIGEST,
            charges=(CHARGED,),
            **_VETTED,
        ),
        ToolCompleted(
            run=CHILD,
            call=CALL,
            cost=7,
            flags=("result.constraint",),
            changes=(Changed(change=CONTENT, after=DIGEST),),
            cache=DIGEST,
            fresh_until=LATER,
            charges=(CHARGED,),
            took_us=1_250,
            exit_code=1,
            effects=(SENT,),
            taint=(CALL,),
            commits=(COMMIT,),
            **_LABELLED,
        ),
        ToolFailed(
            run=CHILD,
            call=CALL,
            error="timeout",
            changes=(Changed(change=CONTENT, after=DIGEST),),
            flags=("effect.outside-grant",),
            took_us=30_000_000,
            exit_code=137,
            effects=(SENT,),
            taint=(CALL,),
            commits=(COMMIT,),
            **_LABELLED,
        ),
        ToolDenied(run=CHILD, call=CALL, tool="write_file", rule="constraint"),
        ToolCached(
            run=CHILD,
            call=CallId(an_id("call", 2)),
            tool="write_file",
            made=CALL,
            result=RECEIPT,
            key=DIGEST,
            flags=("would_deny.budget",),
        ),
        SessionSaved(run=PARENT, saves=SESSION, kept=(DECIDED,), revisit=(CONTENT,), dropped=2, in_flight=(HANDOFF,)),
        SessionResumed(
            run=PARENT,
            roots=(ChildHead(run=RunId(an_id("run", 3)), seq=3, head=DIGEST),),
            resumes=SESSION,
            kept=(DECIDED,),
            revisit=(CONTENT,),
            dropped=2,
            in_flight=(HANDOFF,),
            bytes=1200,
            oldest=AT,
            taint=(CONTENT,),
        ),
        ToolHeld(
            run=CHILD,
            call=CALL,
            tool="write_file",
            rule="tier.irreversible",
            gate=Gate.APPROVE,
            key=DIGEST,
            reads=True,
            tiers=("irreversible",),
            proven=True,
            approvals=2,
            target=DIGEST,
            until=AT,
            stays=True,
            standing=DIGEST,
            **_VETTED,
        ),
        ToolBacked(run=PARENT, call=CALL, by=ANA, **_SHOWN),
        ToolApproved(run=PARENT, call=CALL, by=ANA, **_SHOWN),
        ToolRefused(run=PARENT, call=CALL, by=ANA, **_SHOWN),
        RelayEnrolled(relay=RELAY, public_key=RUN_KEY),
        RelayRotated(relay=RELAY, old_key=RUN_KEY, public_key=NEW_KEY),
        RelayRevoked(relay=RELAY, public_key=RUN_KEY),
        ApproverEnrolled(principal=ANA, public_key=RUN_KEY),
        ApproverRevoked(principal=ANA, public_key=RUN_KEY),
        ContentErased(contents=(CONTENT,), by=ANA),
        FileEndorsed(holds=(DIGEST,), by=ANA),
        FindingAcknowledged(root=PARENT, finding="0123456789ab", code="ghost-task", by=ANA),
        AlarmRaised(
            agent=EDITOR,
            alarm="0123456789ab",
            cause="constraints",
            window_since=AT,
            window_until=AT,
            compared_since=AT,
            compared_until=AT,
            first=HANDOFF,
            configuration="01234567",
        ),
        AlarmAcknowledged(agent=EDITOR, alarm="0123456789ab", by=ANA),
        AlarmCleared(agent=EDITOR, alarm="0123456789ab"),
        SessionPruned(root=PARENT, by=ANA, count=2),
        GrantRevoked(account=StreamId(HANDOFF), by=ANA),
        TokenAdded(
            token=TOKEN,
            secret=DIGEST,
            principal=ANA,
            role=AccessRole.AGENT,
            until=AT,
            by=ANA,
            agents=(AgentId("editor"),),
        ),
        TokenRevoked(token=TOKEN, by=ANA),
        WebhookChanged(webhook=WEBHOOK, change=WebhookChange.ADDED, by=ANA, kinds=("handoff", "tool.held")),
    )
}

# The same kinds with nothing but what they cannot do without.
BARE: Final[dict[Kind, Body]] = {
    kind: type(body)(
        **{field.name: getattr(body, field.name) for field in fields(body) if field.default is NODEFAULT},
    )
    for kind, body in BODIES.items()
}


def home_of(body: Body) -> StreamId:
    """Return the stream in which a body of this kind stands."""
    match body.kind.partition("."):
        case (
            ("relay" | "approver" | "content" | "grant" | "file" | "finding" | "alarm" | "token" | "webhook", *_)
            | ("tool", _, "backed" | "approved" | "refused")
            | ("session", _, "pruned")
        ):
            return StreamId(RELAY)
        case ("tool" | "checkpoint", *_):
            return StreamId(CHILD)
        case ("handoff", _, "accepted" | "completed" | "failed"):
            return StreamId(getattr(body, "run", CHILD))
        case ("handoff", _, name) if name not in {"initiated", "context_sanitized"}:
            return StreamId(HANDOFF)
        case ("verification", *_):
            return StreamId(HANDOFF)
        case _:
            return StreamId(PARENT)


def a_receipt(body: Body, **changed: Any) -> Receipt:  # noqa: ANN401 - any field of a receipt
    """Return a receipt with this body, in the stream where it belongs."""
    cosigned = body.kind in SIGNED_BY_RUN or body.kind in SIGNED_BY_ROOT
    on_relay = home_of(body) == StreamId(RELAY)
    values: dict[str, Any] = {
        "id": RECEIPT,
        "stream": home_of(body),
        "seq": 1,
        "previous": DIGEST,
        "epoch": 1,
        "at": AT,
        "mode": Mode.OBSERVED,
        "relay": RELAY,
        "relay_key": RELAY_KEY,
        "cosigner": KeyId("ef" * 32) if cosigned else None,
        "root": None if on_relay else PARENT,
        "session": SESSION,
        "body": body,
        "content": {"task": REF},
    }
    return Receipt(**values | changed)


def names_of(value: Struct) -> list[str]:
    """Return the names of a value's fields."""
    return [field.name for field in fields(value)]
