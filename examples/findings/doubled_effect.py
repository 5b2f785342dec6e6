"""A retry that sends again, and one that keeps what was sent."""

from collections.abc import Callable
from contextlib import suppress

from batonpass import Relay, Run
from examples.findings.tools import send


def _retry(relay: Relay, pay: Callable[[Run, int], object]) -> None:
    with relay.start("Pay them", by="user:ana") as lead:
        handoff = lead.hand_off("clerk", "Pay the printer")
        for attempt in (1, 2):
            with suppress(RuntimeError), handoff as clerk:
                pay(clerk, attempt)
                if attempt == 1:
                    raise RuntimeError
                clerk.report("paid")
            if attempt == 1:
                handoff.retry(by="user:ana")


def raises(relay: Relay) -> None:
    """The second attempt pays twice, so one of the two payments is new."""

    def pay(clerk: Run, attempt: int) -> None:
        for _ in range(attempt):
            clerk.call(send, "the printer", 100)

    _retry(relay, pay)


def near_miss(relay: Relay) -> None:
    """The second attempt asks for the same call, and gets its result."""

    def pay(clerk: Run, _: int) -> None:
        clerk.call(send, "the printer", 100)

    _retry(relay, pay)
