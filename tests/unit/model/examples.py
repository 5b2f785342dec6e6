"""One valid example of everything, with fixed ids: a test changes the one part that it is about."""

from dataclasses import fields
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from batonpass.model.bodies import (
    Body,
    ChildHead,
    ContentErased,
    HandoffAccepted,
    HandoffCancelled,
    HandoffCompleted,
    HandoffFailed,
    HandoffInitiated,
    HandoffLapsed,
    Kind,
    Outcome,
    RelayEnrolled,
    RelayRevoked,
    RelayRotated,
    RunClosed,
    RunRekeyed,
    RunStarted,
    ToolCompleted,
    ToolFailed,
    ToolRequested,
)
from batonpass.model.content import Content, ContentRef, content_digest
from batonpass.model.ids import (
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
)
from batonpass.model.key import Key, KeyRole, KeyStatus
from batonpass.model.lifecycle import Carrier, State
from batonpass.model.receipt import SIGNED_BY_ROOT, SIGNED_BY_RUN, Mode, Receipt
from batonpass.model.run import Handoff, Run, RunState
from batonpass.model.seal import Seal
from batonpass.model.stream import Stream

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


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
DIGEST: Final = Digest("ab" * 32)
RELAY_KEY: Final = KeyId("cd" * 32)
RUN_KEY: Final = PublicKey("12" * 32)
NEW_KEY: Final = PublicKey("34" * 32)
EDITOR: Final = AgentId("editor")
ANA: Final = PrincipalId("user:ana")
SALT: Final = bytes(range(16))

HEAD: Final = ChildHead(run=CHILD, seq=3, head=DIGEST)
REF: Final = ContentRef(id=CONTENT, digest=content_digest(SALT, b"words"), size=5, media_type="text/plain")
WORDS: Final = Content(name="task", ref=REF, salt=SALT, body=b"words")

BODIES: Final[dict[Kind, Body]] = {
    body.kind: body
    for body in (
        RunStarted(run=PARENT, agent=AgentId("lead"), principal=ANA, run_key=RUN_KEY),
        RunRekeyed(run=PARENT, run_key=NEW_KEY),
        RunClosed(run=PARENT, outcome=Outcome.COMPLETED, children=(HEAD,)),
        HandoffInitiated(handoff=HANDOFF, run=PARENT, to=EDITOR, carrier=Carrier.CALLER, state=State.OFFERED),
        HandoffAccepted(
            handoff=HANDOFF,
            parent=PARENT,
            run=CHILD,
            attempt=1,
            agent=EDITOR,
            principal=ANA,
            run_key=RUN_KEY,
        ),
        HandoffCompleted(handoff=HANDOFF, parent=PARENT, run=CHILD, attempt=1),
        HandoffFailed(handoff=HANDOFF, parent=PARENT, run=CHILD, attempt=1, children=(HEAD,)),
        HandoffLapsed(handoff=HANDOFF, attempt=1, ended=HEAD),
        HandoffCancelled(handoff=HANDOFF, by=ANA, ended=HEAD),
        ToolRequested(run=CHILD, call=CALL, tool="write_file"),
        ToolCompleted(run=CHILD, call=CALL),
        ToolFailed(run=CHILD, call=CALL, error="timeout"),
        RelayEnrolled(relay=RELAY, public_key=RUN_KEY),
        RelayRotated(relay=RELAY, old_key=RUN_KEY, public_key=NEW_KEY),
        RelayRevoked(relay=RELAY, public_key=RUN_KEY),
        ContentErased(contents=(CONTENT,), by=ANA),
    )
}

RUN: Final = Run(
    id=CHILD,
    root=PARENT,
    parent=PARENT,
    handoff=HANDOFF,
    attempt=1,
    agent=EDITOR,
    principal=ANA,
    state=RunState.COMPLETED,
    started_at=AT,
    ended_at=LATER,
)
OFFER: Final = Handoff(
    id=HANDOFF,
    root=PARENT,
    parent=PARENT,
    to=EDITOR,
    carrier=Carrier.CALLER,
    state=State.RUNNING,
    attempt=1,
    run=CHILD,
    initiated=DIGEST,
)
STREAM: Final = Stream(id=StreamId(CHILD), root=PARENT, seq=3, head=DIGEST, epoch=1, open=True)
KEY: Final = Key(
    id=RELAY_KEY,
    role=KeyRole.RELAY,
    public_key=RUN_KEY,
    relay=RELAY,
    status=KeyStatus.ACTIVE,
)
SEAL: Final = Seal(size=5, previous=2, root=DIGEST, note="seal", frontier=bytes(64))


def home_of(body: Body) -> StreamId:
    """Return the stream in which a body of this kind stands."""
    match body:
        case HandoffLapsed() | HandoffCancelled():
            return StreamId(HANDOFF)
        case RelayEnrolled() | RelayRotated() | RelayRevoked() | ContentErased():
            return StreamId(RELAY)
        case (
            HandoffAccepted() | HandoffCompleted() | HandoffFailed() | ToolRequested() | ToolCompleted() | ToolFailed()
        ):
            return StreamId(CHILD)
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


def names_of(value: "DataclassInstance") -> list[str]:
    """Return the names of a value's fields."""
    return [field.name for field in fields(value)]
