"""Work on a result that was refuted, and on one that stands."""

from batonpass import Relay


def _build(relay: Relay, *, refute: bool) -> None:
    with relay.start("Quote it", by="user:ana") as lead:
        first = lead.hand_off("rater", "Find the rate")
        with first as rater:
            rater.attach("rate.txt", b"1.08")
            rater.report("1.08")
        with lead.hand_off("writer", "Write the quote") as writer:
            writer.report("quoted with 1.08")
        if refute:
            first.refute("the rate is of last year", by="user:ana")


def raises(relay: Relay) -> None:
    """The quote stands on a rate that does not."""
    _build(relay, refute=True)


def near_miss(relay: Relay) -> None:
    """Nobody refuted anything."""
    _build(relay, refute=False)
