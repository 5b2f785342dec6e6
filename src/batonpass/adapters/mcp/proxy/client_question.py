"""Asks the person at the client whether a held call may be made, through the protocol's elicitation."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from batonpass.adapters.mcp.messages.message import INPUT_REQUIRED, Message
from batonpass.adapters.mcp.proxy.call_decision import CallHeld

if TYPE_CHECKING:
    from batonpass.handoff.approvals.decision_sheet import Material

ELICIT: Final = "elicitation/create"
ASKED: Final = "batonpass-approval"  # the key of our question among those that a client answers

# Characters. The sheet is never cut, and nobody reads more than this in a form of a client: then a person decides where
# the whole sheet can be read.
LONGEST_QUESTION: Final = 10_000

_ACCEPTED: Final = "accept"
_DECLINED: Final = "decline"
_FIRST_WITH_ELICITATION: Final = "2025-06-18"


def can_be_asked(capabilities: Mapping[str, Any], version: str) -> bool:
    """Return whether a client shows forms to people. Protocol revisions are dates, so they sort as text."""
    asks = capabilities.get("elicitation")
    if not isinstance(asks, dict) or version < _FIRST_WITH_ELICITATION:
        return False
    return "form" in asks or "url" not in asks


def question(material: "Material") -> dict[str, Any]:
    """Return the question for the person: everything that is material, unshortened, and a yes or a no."""
    return {"message": material.text, "requestedSchema": {"type": "object", "properties": {}}}


def question_as_result(asked: Mapping[str, Any], state: str) -> dict[str, Any]:
    """Return the question as a result that makes the client repeat its call with the answer."""
    requests = {ASKED: {"method": ELICIT, "params": asked}}
    return {"resultType": INPUT_REQUIRED, "inputRequests": requests, "requestState": state}


def read_verdict(answered: Message) -> bool | None:
    """Return the person's answer; None if there is none."""
    return _verdict(answered.result or {})


def read_carried_verdict(again: Message) -> bool | None:
    """Return the person's answer from the repeated call that carries it; None if there is none."""
    responses = again.params.get("inputResponses")
    found = responses.get(ASKED) if isinstance(responses, dict) else None
    return _verdict(found if isinstance(found, dict) else {})


def _verdict(response: Mapping[str, Any]) -> bool | None:
    return {_ACCEPTED: True, _DECLINED: False}.get(str(response.get("action")))


def sentence_declined(held: CallHeld) -> str:
    """Return the sentence for a model whose call was declined by a person."""
    return f"Declined by the user, and not made: {held.why} (rule {held.rule}). Do not call it again unasked."
