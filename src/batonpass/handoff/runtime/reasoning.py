"""The reasoning of the sender at an offer: a signed pointer to its message, and content that says where it is."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from batonpass.model.base.ids import ReceiptId, RunId
from batonpass.model.bodies.reasoning import ReasoningPointer, Thought
from batonpass.model.ledger.content import Content
from batonpass.wire.documents import encode_reasoning

if TYPE_CHECKING:
    from batonpass.handoff.runtime.desk import Desk

REASONING: Final = "reasoning"
WORDS: Final = "reasoning.message"

# Stores have limits, and no offer should fail because of a long message. A larger one is only pointed to.
_LARGEST: Final = 1024 * 1024


def point_to(
    desk: "Desk", root: RunId, thought: Thought | None, checkpoint: ReceiptId | None = None
) -> ReasoningPointer | None:
    """Return the signed pointer to the reasoning of a sender; None if nothing is known about it."""
    if thought is None:
        return None if checkpoint is None else ReasoningPointer(checkpoint=checkpoint)
    place = thought.place
    return ReasoningPointer(
        checkpoint=checkpoint,
        # Keyed: signed bytes outlive the words when those are erased, and a plain digest would confirm a guess.
        digest=desk.secrets.digest(root, REASONING.encode(), place.sha256.encode()),
        message=place.message,
        line=place.line,
        offset=place.offset,
    )


def keep_thought(desk: "Desk", thought: Thought | None) -> Iterator[Content]:
    """Yield content that says where the message is, and the message itself if it is given and not too large."""
    if thought is None:
        return
    yield desk.json(REASONING, encode_reasoning(thought.place))
    if thought.body is not None and len(thought.body) <= _LARGEST:
        # A message may repeat the arguments of tools, so secrets are removed from it as from those.
        yield desk.told(WORDS, thought.body)
