"""One valid example of each row that is derived from receipts, with fixed ids."""

from typing import Final

from batonpass.model.base.ids import StreamId
from batonpass.model.base.lifecycle import Carrier, State
from batonpass.model.ledger.key import Key, KeyRole, KeyStatus
from batonpass.model.ledger.lease import Lease
from batonpass.model.ledger.run import Cached, DecidedCall, Handoff, HeldCall, Run, RunState, Stated
from batonpass.model.ledger.seal import Seal
from batonpass.model.ledger.stream import Stream
from tests.unit.model.examples import (
    ANA,
    AT,
    CALL,
    CHILD,
    CONTENT,
    DIGEST,
    EDITOR,
    HANDOFF,
    LATER,
    PARENT,
    RECEIPT,
    RELAY,
    RELAY_KEY,
    RUN_KEY,
    SESSION,
)

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
    series="quarterly",
    session=SESSION,
)
HELD_CALL: Final = HeldCall(call=CALL, run=PARENT, receipt=RECEIPT)
DECIDED_CALL: Final = DecidedCall(call=CALL, run=PARENT, receipt=RECEIPT, approved=True)
CACHED: Final = Cached(call=CALL, key=DIGEST, receipt=RECEIPT, until=LATER)
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
    seq=2,
    scope=StreamId(PARENT),
    key=DIGEST,
    deadline=LATER,
)
STATED: Final = Stated(item=CONTENT, root=PARENT, digest=DIGEST, by=ANA, at=AT)
LEASE: Final = Lease(handoff=HANDOFF, holder="worker-1", token=3, until=LATER)
STREAM: Final = Stream(id=StreamId(CHILD), root=PARENT, seq=3, head=DIGEST, epoch=1, open=True)
KEY: Final = Key(
    id=RELAY_KEY,
    role=KeyRole.RELAY,
    public_key=RUN_KEY,
    relay=RELAY,
    status=KeyStatus.ACTIVE,
    principal=ANA,
)
SEAL: Final = Seal(size=5, previous=2, root=DIGEST, note="seal", frontier=bytes(64))
