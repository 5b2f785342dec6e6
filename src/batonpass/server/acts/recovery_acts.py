"""Decisions after a failure: another agent for a handoff, and the settlement of a call in doubt."""

from typing import Final

from msgspec import Struct

from batonpass.model.base.ids import CallId
from batonpass.model.bodies.body import Settlement
from batonpass.model.policy.offer_options import ChangedInputs
from batonpass.records.json_shapes import Shape, handoff_shape
from batonpass.records.lineage import read_task
from batonpass.server.acts.own_run import in_whose_name, own_handoff
from batonpass.server.endpoint import DECIDERS, ApiRequest, Endpoint
from batonpass.server.shape_types import HandoffShape


class ReplaceMessage(Struct, frozen=True, kw_only=True):
    """The agent that takes a handoff over, the reason, and the settlement of calls in doubt."""

    to: str
    reason: str | None = None
    repeat: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()
    inputs: ChangedInputs | None = None
    by: str | None = None


class SettleMessage(Struct, frozen=True, kw_only=True):
    """The settlement of a call in doubt."""

    settlement: Settlement
    reason: str | None = None
    by: str | None = None


def replace(asked: ApiRequest) -> Shape:
    """Give the handoff to another agent, with the same baton."""
    said: ReplaceMessage = asked.body
    handoff = own_handoff(asked)
    asked.plane.relay.handoff(handoff.id).replace(
        said.to,
        by=in_whose_name(asked, said.by),
        reason=said.reason,
        repeat=[CallId(one) for one in said.repeat],
        skip=[CallId(one) for one in said.skip],
        inputs=said.inputs,
    )
    return _told(asked)


def settle(asked: ApiRequest) -> Shape:
    """Settle a call in doubt: it is made again, or counts as done."""
    said: SettleMessage = asked.body
    handoff = own_handoff(asked)
    asked.plane.relay.handoff(handoff.id).settle(
        CallId(asked.names["call"]), said.settlement, by=in_whose_name(asked, said.by), reason=said.reason
    )
    return _told(asked)


def _told(asked: ApiRequest) -> Shape:
    with asked.plane.relay.store.view() as view:
        known = view.get_handoff(own_handoff(asked).id)
        return handoff_shape(known, read_task(view, known))


ENDPOINTS: Final = (
    Endpoint(
        method="POST",
        path="/v1/handoffs/{handoff}/replacement",
        name="replaceAgent",
        about="Give a handoff to another agent, with the same baton.",
        roles=DECIDERS,
        act=replace,
        answers=HandoffShape,
        body=ReplaceMessage,
        status=200,
    ),
    Endpoint(
        method="POST",
        path="/v1/handoffs/{handoff}/calls/{call}/settlement",
        name="settleCall",
        about="Settle a call in doubt: it is made again, or counts as done.",
        roles=DECIDERS,
        act=settle,
        answers=HandoffShape,
        body=SettleMessage,
        status=200,
    ),
)
