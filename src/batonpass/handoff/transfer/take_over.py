"""Taking over from a caller that is gone: its attempt ends, and the handoff is offered again, in one commit."""

from batonpass.handoff.transfer.receipts import close_out
from batonpass.ledger.recording import Recording
from batonpass.model.bodies import Body, ChildHead, HandoffRetried, Outcome
from batonpass.model.content import Content
from batonpass.model.ids import HandoffId, PrincipalId
from batonpass.model.run import Run

LOST = "caller.lost"


def take_over(recording: Recording, handoff: HandoffId, words: tuple[Content, ...], *, by: str) -> None:
    """End the attempt of a caller that is gone and offer the handoff again; `words` say why.

    Whoever still holds the attempt's run is fenced.
    """

    def superseded(dead: Run, children: tuple[ChildHead, ...]) -> tuple[Body, Body]:
        failed = close_out(dead, Outcome.FAILED, children, error=LOST)
        return failed, HandoffRetried(handoff=handoff, by=PrincipalId(by))

    recording.supersede(handoff, superseded, words)
