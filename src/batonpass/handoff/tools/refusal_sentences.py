"""The sentences for a model about a call or handoff that was not made: the same words at every door."""

from typing import Final

from batonpass.errors import BatonpassError, CallSuspendedError, HandoffHeldError
from batonpass.model.bodies.tool_bodies import BACKGROUND, OTHERWISE, REFUSED, UNASKED

TOLD: Final = ("Denied, and not made: ", "Held, and not made: ", "Held, and not begun: ")  # how each begins
# For calls that had already been made when they were judged. People read these, not models.
MADE: Final = {
    UNASKED: "it was made before anybody was asked",
    REFUSED: "it was refused, and made all the same",
    OTHERWISE: "it was made with other arguments than were judged",
    BACKGROUND: "it went on after it had returned",
}


def sentence_for(error: BatonpassError) -> str:
    """Return the sentence for a model: that nothing was done, why, and the remedy."""
    if isinstance(error, CallSuspendedError):
        return (
            f"Held, and not made: {error.sentence} (rule {error.rule}). A person can let it be made with "
            f"`batonpass handoff approve {error.call[-6:]}`. After that, call it again with the same arguments; "
            "until then, go on with something else or tell the user."
        )
    if isinstance(error, HandoffHeldError):
        return (
            f"Held, and not begun: {error}. After that, ask for it again in the same words; until then, go on with "
            "something else or tell the user."
        )
    return not_made(str(error))


def not_made(why: str) -> str:
    """Return the sentence for a model about a call that was denied."""
    return f"Denied, and not made: {why}"
