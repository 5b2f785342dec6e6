"""Builders for tests: a test passes only the arguments that matter to it."""

from dataclasses import dataclass
from datetime import timedelta

from batonpass.clock import Clock, SystemClock
from batonpass.ledger.enrolment import Enrolment, found_ledger
from batonpass.ledger.erasure import Erasure
from batonpass.ledger.ledger import Ledger
from batonpass.ledger.position import Working
from batonpass.model.base.ids import AgentId, HandoffId, PrincipalId
from batonpass.model.bodies.body import AlarmRaised
from batonpass.model.ledger.key import RunKeys, Signer
from batonpass.signing.keyring import Keyring, RelayIdentity
from batonpass.signing.runkeys import RunKeysInMemory
from batonpass.store.port import LedgerStore
from batonpass.testing.clock import NOON
from batonpass.testing.plain_acts import PlainRecording

ANA = PrincipalId("user:ana")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scribe:
    """Everything that a relay uses to record in one store, with keys in memory."""

    store: LedgerStore
    identity: RelayIdentity
    root: Signer
    run_keys: RunKeys
    ledger: Ledger
    recording: PlainRecording
    enrolment: Enrolment
    erasure: Erasure

    def start(self, intent: str = "Fix invoice rounding", *, agent: str = "lead") -> Working:
        """Start a root run."""
        return self.recording.start(intent, agent=AgentId(agent), by=ANA)

    def offer(self, parent: Working, to: str = "editor", task: str = "Make total() round half-even") -> HandoffId:
        """Offer a task."""
        return self.recording.offer(parent, AgentId(to), task)

    def delegate(self, parent: Working, to: str = "editor", task: str = "Make total() round half-even") -> Working:
        """Offer a task and accept it."""
        return self.recording.accept(self.offer(parent, to, task))

    def call(self, working: Working, tool: str = "write_file", arguments: str = "{}", result: str = "ok") -> None:
        """Request a call and finish it."""
        self.recording.finish(working, self.recording.request(working, tool, arguments), result)


def a_scribe(
    store: LedgerStore,
    *,
    clock: Clock | None = None,
    identity: RelayIdentity | None = None,
    root: Signer | None = None,
) -> Scribe:
    """Found a ledger in an empty store, or join an existing one, and return a scribe for it."""
    clock = clock or SystemClock()
    keyring = Keyring(None, clock)
    identity = identity or keyring.relay()
    root = root or keyring.make_root()
    if not store.founded():
        found_ledger(store, identity, root, clock)
    ledger = Ledger(store, identity, clock)
    run_keys = RunKeysInMemory()
    return Scribe(
        store=store,
        identity=identity,
        root=root,
        run_keys=run_keys,
        ledger=ledger,
        recording=PlainRecording(store, ledger, run_keys, clock),
        enrolment=Enrolment(store, ledger, identity, clock),
        erasure=Erasure(store, ledger, identity, clock),
    )


def a_small_tree(scribe: Scribe, *, calls: int = 2) -> Working:
    """Record a lead with two children, each with some calls, and close all of them; return the lead."""
    lead = scribe.start()
    for agent in ("editor", "reviewer"):
        child = scribe.delegate(lead, agent)
        for number in range(calls):
            scribe.call(child, arguments=f'{{"path":"src/{agent}{number}.py"}}')
        scribe.recording.close(child, report=f"{agent} is done")
    scribe.recording.close(lead, report="all done")
    return lead


def an_alarm(agent: AgentId, alarm: str, *, cause: str = "constraints") -> AlarmRaised:
    """Return an alarm about an agent, after a week that is compared with the week before."""
    week = timedelta(weeks=1)
    return AlarmRaised(
        agent=agent,
        alarm=alarm,
        cause=cause,
        window_since=NOON - week,
        window_until=NOON,
        compared_since=NOON - 2 * week,
        compared_until=NOON - week,
    )
