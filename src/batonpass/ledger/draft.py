"""A draft: something to record, before it has a place in a stream."""

from msgspec import Struct

from batonpass.model.base.ids import Digest, RunId, SessionId, StreamId
from batonpass.model.base.kinds import Mode
from batonpass.model.bodies.body import Body
from batonpass.model.grants.charge import Within
from batonpass.model.ledger.content import Content
from batonpass.model.ledger.entry import Premise, Touch
from batonpass.model.ledger.key import Signer


class Draft(Struct, frozen=True, kw_only=True):
    """Something to record. The ledger adds the place in the stream, the time and the signatures."""

    stream: StreamId
    body: Body
    root: RunId | None = None
    anchor: Digest | None = None  # the digest that a stream's first receipt follows
    new: bool = False  # the stream must not exist yet; else it continues, or begins at the anchor
    after: Digest | None = None  # write only if this is the stream's head, or the anchor of a stream not there yet
    epoch: int | None = None  # the epoch that the writer holds; None: the stream's current one
    cosigner: Signer | None = None
    contents: tuple[Content, ...] = ()
    touches: tuple[Touch, ...] = ()  # paths under which its contents can be found
    within: tuple[Within, ...] = ()  # limits that must hold after its charges
    premise: Premise | None = None  # the knowledge of its writer; if it is out of date, nothing is written
    mode: Mode = Mode.OBSERVED
    session: SessionId | None = None
    token: int | None = None  # of the lease under which a worker takes a handoff
