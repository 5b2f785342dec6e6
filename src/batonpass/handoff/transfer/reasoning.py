"""The sender's reasoning at the moment of an offer: a signed pointer, and beside it where that can be read."""

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

# Stores have their limits, and no offer fails for what was thought with it: a larger message is only pointed to.
_LARGEST: Final = 1024 * 1024


def point_to(
    desk: "Desk", root: RunId, thought: Thought | None, checkpoint: ReceiptId | None = None
) -> ReasoningPointer | None:
    """Return what an offer signs about its sender's reasoning; None where nothing is known: nothing is filled in."""
    if thought is None:
        return None if checkpoint is None else ReasoningPointer(checkpoint=checkpoint)
    place = thought.place
    return ReasoningPointer(
        checkpoint=checkpoint,
        # Keyed: a plain digest in signed bytes would outlive the words when they are erased, and confirm a guess.
        digest=desk.secrets.digest(root, REASONING.encode(), place.sha256.encode()),
        message=place.message,
        line=place.line,
        offset=place.offset,
    )


def keep_thought(desk: "Desk", thought: Thought | None) -> Iterator[Content]:
    """Yield where the sender's message stands, and the message itself where nobody else keeps it."""
    if thought is None:
        return
    yield desk.json(REASONING, encode_reasoning(thought.place))
    if thought.body is not None and len(thought.body) <= _LARGEST:
        # A message repeats what tools were called with: what looks like a secret is taken out, as it is there.
        yield desk.told(WORDS, thought.body)
