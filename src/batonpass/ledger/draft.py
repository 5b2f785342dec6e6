"""A draft: what is to be recorded, before it has a place in a stream."""

from msgspec import Struct

from batonpass.model.base.ids import Digest, RunId, SessionId, StreamId
from batonpass.model.base.kinds import Mode
from batonpass.model.bodies.body import Body
from batonpass.model.grants.charge import Within
from batonpass.model.ledger.content import Content
from batonpass.model.ledger.entry import Premise, Touch
from batonpass.model.ledger.key import Signer


class Draft(Struct, frozen=True, kw_only=True):
    """Something to record; the ledger adds the place in the stream, the time and the signatures."""

    stream: StreamId
    body: Body
    root: RunId | None = None
    anchor: Digest | None = None  # where a stream's first receipt hangs
    new: bool = False  # the stream must not exist yet; else it goes on as it stands, or begins at the anchor
    after: Digest | None = None  # only if this is the last thing that its stream, or its anchor, says
    epoch: int | None = None  # the epoch that the writer holds; None takes the stream's present one
    cosigner: Signer | None = None
    contents: tuple[Content, ...] = ()
    touches: tuple[Touch, ...] = ()  # under which paths its contents are to be found again
    within: tuple[Within, ...] = ()  # limits that what it charges has to stay within
    premise: Premise | None = None  # what it was made under, and is not written without
    mode: Mode = Mode.OBSERVED
    session: SessionId | None = None
    token: int | None = None  # of the lease under which a worker takes a handoff
