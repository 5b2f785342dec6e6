"""A fleet in one process: a relay whose agents a test writes, a lead that hands off to workers, and workers."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final

from batonpass.dispatch.worker import Worked, Worker
from batonpass.handoff.live.faces import LiveHandoff, LiveRun
from batonpass.handoff.programs.runners import Runner
from batonpass.model.base.ids import HandoffId, StreamId
from batonpass.model.base.lifecycle import Carrier
from batonpass.model.policy.handoff_policy import HandoffPolicy
from batonpass.relay import Relay
from batonpass.store.memory import MemoryStore
from batonpass.store.port import ReceiptQuery
from tests.offers import grouped

PATIENCE: Final = 20.0
MOMENT: Final = timedelta(milliseconds=1)


@dataclass
class Fleet:
    """A relay, its lead, and what its workers said."""

    relay: Relay
    lead: LiveRun
    worked: list[Worked] = field(default_factory=list)

    def offer(self, to: str = "editor", task: str = "Make total() round half-even", **more: Any) -> LiveHandoff:  # noqa: ANN401 - as hand_off
        """Hand a task to whichever worker takes it."""
        return self.lead.hand_off(to, task, carrier=Carrier.WORKER, **grouped(**more))

    def worker(self, **more: Any) -> Worker:  # noqa: ANN401 - as Worker
        """Return a worker that remembers what it finished."""
        return Worker(self.relay, finished=self.worked.append, **more)

    def states(self) -> list[tuple[str, str, int]]:
        """Return what workers told: for whom, how it ended, at which attempt."""
        return [(worked.agent, str(worked.state), worked.attempt) for worked in self.worked]

    def leases(self) -> list[str]:
        """Return who holds what now."""
        with self.relay.store.view() as view:
            return [lease.holder for lease in view.find_leases()]

    def kinds(self, stream: HandoffId) -> list[str]:
        """Return what happened to a handoff."""
        with self.relay.store.view() as view:
            return [str(receipt.kind) for receipt in view.find_receipts(ReceiptQuery(stream=StreamId(stream)))]


def a_fleet(store: MemoryStore | None = None, *, policy: HandoffPolicy | None = None, **runners: Runner) -> Fleet:
    relay = Relay(store or MemoryStore(), policy=policy)
    for agent, runner in runners.items():
        relay.register(agent, runner)
    return Fleet(relay, relay.start("Fix invoice rounding", by="user:ana"))


def until(holds: Callable[[], object]) -> None:
    """Wait until something holds, and fail if it never does."""
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end, "it never came to hold"
        time.sleep(0.001)


def in_background(work: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread
