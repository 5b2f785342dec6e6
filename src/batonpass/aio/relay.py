"""`AsyncRelay` and `AsyncAdmin`: the relay for asynchronous programs."""

import functools
from collections.abc import Callable, Iterator, Mapping
from os import PathLike
from typing import Self, TypeVar

from batonpass.admin import Admin
from batonpass.aio.faces import Face, Opening, opens, twin
from batonpass.aio.run import AsyncCall, AsyncHandoff, AsyncRun, AsyncRunner, end_cancelled
from batonpass.aio.threads import in_thread
from batonpass.clock import Clock
from batonpass.handoff.programs.runners import Runner
from batonpass.handoff.tools.declaration import is_async
from batonpass.model.base.ids import AgentId, RunId
from batonpass.model.baton.card import Card
from batonpass.policy.policy_table import AnyPolicy
from batonpass.relay import AnyCheck, AnyProvider, Relay
from batonpass.store.port import LedgerStore

AnyRunner = TypeVar("AnyRunner", bound=Runner)


class AsyncAdmin(Face[Admin]):
    """Keys, approvers, seals, bundles and erasure: the methods for people who look after a ledger."""

    identity = twin(Admin.identity)
    seal = twin(Admin.seal)
    erase = twin(Admin.erase)
    keys = twin(Admin.keys)
    enroll = twin(Admin.enroll)
    rotate = twin(Admin.rotate)
    revoke = twin(Admin.revoke)
    enroll_approver = twin(Admin.enroll_approver)
    revoke_approver = twin(Admin.revoke_approver)
    revocations = twin(Admin.revocations)
    import_ = twin(Admin.import_)
    add_token = twin(Admin.add_token)
    webhooks = twin(Admin.webhooks)
    record_webhook = twin(Admin.record_webhook)
    tokens = twin(Admin.tokens)
    revoke_token = twin(Admin.revoke_token)

    async def export(self, run: RunId, *, form: str = "bundle", with_content: bool | None = None) -> Iterator[str]:
        """Return the lines of the whole tree of a run, as `Admin.export` does. All are read before it returns."""
        return iter(await in_thread(lambda: list(self.sync.export(run, form=form, with_content=with_content))))


class AsyncRelay(Face[Relay]):
    """Checks and records the work of agents in one ledger. `AsyncRelay(relay)` is a face of an open relay.

    Methods that touch the ledger are awaited. `async with relay.start(...)` and `async with run.hand_off(...)` need no
    `await`.
    """

    @classmethod
    def open(
        cls,
        ledger: str | PathLike[str] | None = None,
        *,
        home: str | PathLike[str] | None = None,
        clock: Clock | None = None,
        keys_in_files: bool = False,
        create: bool = True,
        policy: AnyPolicy | None = None,
        work_tree: str | PathLike[str] | None = None,
        token: str | None = None,
    ) -> Opening[Self]:
        """Open a ledger by its URL or file. Without one, open the ledger of this directory.

        The parameters are those of `Relay.open`.
        """
        act = functools.partial(
            Relay.open,
            ledger,
            home=home,
            clock=clock,
            keys_in_files=keys_in_files,
            create=create,
            policy=policy,
            work_tree=work_tree,
            token=token,
        )

        async def opening() -> Self:
            return cls(await in_thread(act, undo=Relay.close))

        return Opening(opening())

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @property
    def reads_alarms(self) -> bool:
        """Return whether a rule of the policy reads alarms, so that somebody should check them from time to time."""
        return self.sync.reads_alarms

    @property
    def store(self) -> LedgerStore:
        """Return the store, for reading. Its methods block."""
        return self.sync.store

    @property
    def admin(self) -> AsyncAdmin:
        """Return the methods that look after the ledger: keys, approvers, seals, bundles, erasure."""
        return AsyncAdmin(self.sync.admin)

    @property
    def runners(self) -> Mapping[AgentId, Runner]:
        """Return the registered runners, by agent."""
        return self.sync.runners

    def register(self, agent: str, runner: AnyRunner, *, card: Card | None = None) -> AnyRunner:
        """Register the runner of an agent, and return it. A coroutine function gets an `AsyncRun`, wherever it runs."""
        self.sync.register(agent, AsyncRunner(runner) if is_async(runner) else runner, card=card)
        return runner

    def introduce(self, card: Card) -> None:
        """Hold an agent to its card, whether or not it has a runner here."""
        self.sync.introduce(card)

    def agent(self, name: str, *, card: Card | None = None) -> Callable[[AnyRunner], AnyRunner]:
        """Register the decorated function as the runner of an agent: `@relay.agent("editor")`."""
        return lambda runner: self.register(name, runner, card=card)

    def check(self, name: str, check: AnyCheck) -> AnyCheck:
        """Register a check for conditions of decisions, `check:NAME`.

        A check that is a coroutine function gets an event loop of its own.
        """
        return self.sync.check(name, check)

    def credential(self, name: str, provider: AnyProvider) -> AnyProvider:
        """Register a provider of credentials for tools that declare `credential=NAME`.

        The relay asks it for each such call. The secret is never written down.
        """
        return self.sync.credential(name, provider)

    start = opens(Relay.start, AsyncRun, end_cancelled)
    resume = opens(Relay.resume, AsyncRun)
    resume_session = opens(Relay.resume_session, AsyncRun, end_cancelled)
    handoff = opens(Relay.handoff, AsyncHandoff)
    held_call = opens(Relay.held_call, AsyncCall)
    claim = twin(Relay.claim)
    heartbeat = twin(Relay.heartbeat)
    release = twin(Relay.release)
    sweep = twin(Relay.sweep)
    verify = twin(Relay.verify)
    endorse_file = twin(Relay.endorse_file)
    acknowledge = twin(Relay.acknowledge)
    check_alarms = twin(Relay.check_alarms)
    acknowledge_alarm = twin(Relay.acknowledge_alarm)
    recall = twin(Relay.recall)
    prune_session = twin(Relay.prune_session)
    read = twin(Relay.read)
    trail = twin(Relay.trail)
    revoke_grant = twin(Relay.revoke_grant)
    close = twin(Relay.close)
