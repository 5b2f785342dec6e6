"""The handles, awaited. Made by `tools/generate_async.py` from `handles.py`: change that one."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, Self, TypeVar, Unpack, overload

from msgspec import UNSET, Raw, UnsetType, json

from batonpass.api import calls as call_acts
from batonpass.api import handoffs as handoff_acts
from batonpass.api import runs as run_acts
from batonpass.api.acts import Caller
from batonpass.api.async_port import AsyncPort, await_function, open_async_port
from batonpass.api.repetition import Slot
from batonpass.api.run_base import CURRENT_RUN, ENFORCED_RUNS, OfferArguments, RunBase, make_grant
from batonpass.api.tools import (
    CURRENT_CALL,
    CurrentCall,
    encode_arguments,
    encode_result,
    tool_of,
)
from batonpass.errors import NotFoundError
from batonpass.model.grants import Grant
from batonpass.model.items import AnyItem, Baton, Brief, HandoffOptions, OfferedParts
from batonpass.model.lifecycle import RunState, State
from batonpass.model.values import Settlement
from batonpass.system import System

if TYPE_CHECKING:
    from batonpass.reading.handoffs import HandoffView, RunLine
    from batonpass.reports.blame import Blame
    from batonpass.verify.verifier import Evidence

P = ParamSpec("P")
T = TypeVar("T")


class AsyncBegunCall:
    """A call that was begun: make it, unless it is replayed, and say what became of it."""

    def __init__(self, port: AsyncPort, run: str, begun: call_acts.CallBegun, slot: Slot) -> None:
        self._port = port
        self._run = run
        self._slot = slot
        self.id = begun.call
        self.key = begun.key
        self.is_replayed = not isinstance(begun.result, UnsetType)
        self.value: Any = None if isinstance(begun.result, UnsetType) else json.decode(begun.result)

    async def succeed(self, value: object) -> None:
        """Record the result, before the agent has it."""
        try:
            data = encode_result(value)
            result = UNSET if data is None else Raw(data)
            request = call_acts.FinishCall(run=self._run, call=self.id, result=result)
            await self._port.do(call_acts.finish_call, request)
        except BaseException:
            self.abandon()  # the caller has no result: if it asks again, it asks for this call, and not for another
            raise

    async def fail(self, error: str) -> None:
        """Record that it failed. Its number is free again, so the next attempt at it has the same key."""
        try:
            await self._port.do(call_acts.finish_call, call_acts.FinishCall(run=self._run, call=self.id, error=error))
        finally:
            self.abandon()

    def abandon(self) -> None:
        """Free the number of a call that has no result: an equal call finds it in doubt, or makes it again."""
        self._slot.give_back()


class AsyncRun(RunBase[AsyncPort]):
    """One agent at work. Leaving its `with` closes it; an exception closes it as failed."""

    async def record(self, *items: AnyItem, key: str | None = None) -> None:
        """Record what this run knows. Its later children are given it."""
        await self._port.do(run_acts.record, run_acts.Record(run=self.id, epoch=self.epoch, items=items), key)

    async def record_gaps(self, *gaps: str, key: str | None = None) -> None:
        """Record what this run did and could not be recorded when it happened, for adapters."""
        await self._port.do(run_acts.record, run_acts.Record(run=self.id, epoch=self.epoch, gaps=gaps), key)

    @overload
    async def hand_off(
        self, to: str, task: str, *, accept: Literal[False] = False, **arguments: Unpack[OfferArguments]
    ) -> "AsyncHandoff": ...

    @overload
    async def hand_off(
        self, to: str, task: str, *, accept: Literal[True], **arguments: Unpack[OfferArguments]
    ) -> "AsyncRun": ...

    async def hand_off(
        self,
        to: str,
        task: str,
        *,
        may: Sequence[str] | None = None,
        may_delegate: Sequence[str] | None = None,
        grant: Grant | None = None,
        criteria: Sequence[str] = (),
        brief: Brief | None = None,
        items: Sequence[AnyItem] = (),
        accept: bool = False,
        options: HandoffOptions | None = None,
        key: str | None = None,
    ) -> "AsyncHandoff | AsyncRun":
        """Offer a task to an agent; durable when it returns. The same offer again is the same handoff.

        With `accept` the child begins in the same commit, its run is the answer, and nothing is left between the two to
        die in.
        """
        parts = OfferedParts(criteria=tuple(criteria), items=tuple(items), brief=brief or Brief())
        request = run_acts.HandOff(
            run=self.id,
            epoch=self.epoch,
            to=to,
            task=task,
            grant=make_grant(may, may_delegate, grant),
            parts=parts,
            key=None if options is None else options.key,
            accept=accept,
        )
        offered = await self._port.do(run_acts.hand_off, request, key)
        run = None if offered.run is None else AsyncRun(self._port, offered.run)
        return run if accept and run is not None else AsyncHandoff(self._port, offered.handoff, run)

    async def begin_call(
        self,
        tool: str,
        arguments: bytes,
        *,
        action: str = "call",
        target: str | None = None,
        idempotent: bool = False,
        key: str | None = None,
    ) -> AsyncBegunCall:
        """Begin a call that is made elsewhere, for adapters. `arguments` is canonical JSON."""
        target = tool if target is None else target
        slot = self.progress.repetitions.take(tool, target, arguments)
        request = call_acts.BeginCall(
            run=self.id,
            epoch=self.epoch,
            tool=tool,
            action=action,
            target=target,
            arguments=Raw(arguments),
            number=slot.number,
            idempotent=idempotent,
            is_encoded=True,
        )
        try:
            begun = await self._port.do(call_acts.begin_call, request, key)
        except BaseException:
            slot.give_back()
            raise
        return AsyncBegunCall(self._port, self.id, begun, slot)

    @overload
    async def call(self, function: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T: ...

    @overload
    async def call(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T: ...

    async def call(self, function: Callable[P, Any], *args: P.args, **kwargs: P.kwargs) -> Any:
        """Make a call through the guard: requested is durable before it, the outcome after it."""
        tool = tool_of(function)
        begun = await self.begin_call(
            tool.name,
            encode_arguments(args, kwargs),
            action=tool.action,
            target=tool.target_of(args, kwargs, is_enforced=self.mode == "enforced"),
            idempotent=tool.idempotent,
        )
        if begun.is_replayed:
            value: Any = begun.value
            return value
        is_kept = False
        token = CURRENT_CALL.set(CurrentCall(run=self.id, call=begun.id, key=begun.key, attempt=self.attempt))
        run_token = CURRENT_RUN.set(self)  # whose call it is, whichever `with` is around it
        try:
            try:
                # Ctrl-C is no outcome: a BaseException passes, and leaves the call in doubt, which is what it is.
                result: Any = await await_function(function, args, kwargs)
            except Exception as error:
                await begun.fail(repr(error))
                raise
            finally:
                CURRENT_CALL.reset(token)
                CURRENT_RUN.reset(run_token)
            await begun.succeed(result)
            is_kept = True
        finally:
            if not is_kept:  # wherever it was cut short: who asks again asks for this call
                begun.abandon()
        return result

    async def settle(self, call: str, how: Settlement, *, by: str, reason: str = "", key: str | None = None) -> None:
        """Decide about a call in doubt: `repeat` makes it again when it is asked for, `skip` never does."""
        request = run_acts.SettleCall(run=self.id, epoch=self.epoch, call=call, how=how, by=by, reason=reason)
        await self._port.do(run_acts.settle_run, request, key)

    async def close(self, error: BaseException | None = None, *, key: str | None = None) -> None:
        """End the run, with its report; with an error it has failed."""
        words = None if error is None else repr(error)
        request = run_acts.Close(run=self.id, epoch=self.epoch, report=self.progress.report, error=words)
        try:
            await self._port.do(run_acts.close, request, key)
        finally:
            ENFORCED_RUNS.discard(self.progress)

    async def __aenter__(self) -> Self:
        self._token = CURRENT_RUN.set(self)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        token, self._token = self._token, None
        if token is not None:
            with suppress(ValueError):  # left in another context than it was entered in, as generators are
                CURRENT_RUN.reset(token)
        await self.close(error)


class AsyncHandoff:
    """One task, handed to one agent. `with` accepts it and closes the attempt."""

    def __init__(self, port: AsyncPort, handoff: str, run: AsyncRun | None = None) -> None:
        self._port = port
        self.run = run  # the attempt that this handle began
        self.id = handoff

    async def info(self) -> "HandoffView":
        """Return everything that the ledger has of it now: attempts, calls, what is in doubt."""
        from batonpass.api import reports as report_acts  # noqa: PLC0415 - most programs ask nothing

        return await self._port.do(report_acts.show_handoff, handoff_acts.OfHandoff(handoff=self.id))

    async def state(self) -> State:
        """Return its state now."""
        return (await self.result()).state

    async def baton(self) -> Baton:
        """Return everything that travels with it."""
        return (await self._port.do(handoff_acts.show_baton, handoff_acts.OfHandoff(handoff=self.id))).baton

    async def result(self) -> handoff_acts.Result:
        """Return what came out of it so far."""
        return await self._port.do(handoff_acts.show_result, handoff_acts.OfHandoff(handoff=self.id))

    async def accept(self, *, replay: bool = False, key: str | None = None) -> AsyncRun:
        """Begin an attempt. With `replay` a completed handoff gives again what its attempt did."""
        if self.run is not None and not self.run.is_recorded:
            return self.run  # offered while nothing could be written: it works, and the record says that it is missing
        opened = await self._port.do(handoff_acts.accept, handoff_acts.Accept(handoff=self.id, replay=replay), key)
        self.run = AsyncRun(self._port, opened)
        return self.run

    async def retry(
        self,
        *,
        by: str | None = None,
        reason: str = "",
        repeat: Sequence[str] = (),
        skip: Sequence[str] = (),
        key: str | None = None,
    ) -> Self:
        """End the last attempt and offer the same baton again. Finished calls are not made a second time."""
        request = handoff_acts.Retry(handoff=self.id, by=by, reason=reason, repeat=tuple(repeat), skip=tuple(skip))
        await self._port.do(handoff_acts.retry, request, key)
        self.run = None
        return self

    async def __aenter__(self) -> AsyncRun:
        run = self.run if self.run is not None else await self.accept(replay=True)
        await run.__aenter__()
        return run

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.run is not None:
            await self.run.__aexit__(kind, error, trace)


class AsyncRelay:
    """The way to a ledger, and the only author of its receipts."""

    def __init__(self, port: AsyncPort) -> None:
        self._port = port

    @classmethod
    async def open(
        cls,
        ledger: str | Path | None = None,
        *,
        work_tree: str | Path | None = None,
        create: bool = True,
        system: System | None = None,
        caller: Caller | None = None,
    ) -> Self:
        """Open the ledger of this repository, a file, `postgresql://…`, or `memory:`."""
        return cls(await open_async_port(ledger, work_tree=work_tree, create=create, system=system, caller=caller))

    async def start(
        self,
        intent: str,
        *,
        by: str | None = None,
        agent: str = "lead",
        may: Sequence[str] | None = None,
        may_delegate: Sequence[str] | None = None,
        grant: Grant | None = None,
        items: Sequence[AnyItem] = (),
        key: str | None = None,
    ) -> AsyncRun:
        """Begin a run for a principal. With a grant it is enforced, else observed."""
        own = make_grant(may, may_delegate, grant)
        request = run_acts.Start(intent=intent, by=by, agent=agent, grant=own, items=tuple(items))
        return AsyncRun(self._port, await self._port.do(run_acts.start, request, key))

    async def resume(self, run: str = "last", *, key: str | None = None) -> AsyncRun:
        """Take a root run over from its holder: what it finished is given again, and its old holder is fenced."""
        from batonpass.api import reports as report_acts  # noqa: PLC0415 - as above

        after = None
        while run == "last":
            page = await self._port.do(
                report_acts.list_runs, report_acts.ListRuns(state=RunState.OPEN, after=after, limit=200)
            )
            run, after = next((each.id for each in page.items if each.handoff is None), run), page.next
            if run == "last" and after is None:
                raise NotFoundError("no root run is open in this ledger: there is nothing to resume")
        resumed = AsyncRun(self._port, await self._port.do(run_acts.resume, run_acts.OfRun(run=run), key))
        resumed.progress.is_resumed = True
        return resumed

    async def handoff(self, handoff: str) -> AsyncHandoff:
        """Return a handoff of any process, by its whole id. Raises `NotFoundError`."""
        request = handoff_acts.OfHandoff(handoff=handoff)
        return AsyncHandoff(self._port, (await self._port.do(handoff_acts.show_result, request)).handoff)

    async def runs(self, *, state: RunState | None = None, agent: str | None = None) -> AsyncIterator["RunLine"]:
        """Yield the runs of this ledger, the latest first."""
        from batonpass.api import reports as report_acts  # noqa: PLC0415 - as above

        after = None
        while True:
            request = report_acts.ListRuns(state=state, agent=agent, after=after, limit=200)
            page = await self._port.do(report_acts.list_runs, request)
            for info in page.items:
                yield info
            after = page.next
            if after is None:
                return

    async def run(self, run: str) -> AsyncRun:
        """Return a run of any process of this relay, by its whole id; one that has ended only gives again what it did.

        Raises `NotFoundError`.
        """
        return AsyncRun(self._port, await self._port.do(run_acts.open_run, run_acts.OfRun(run=run)))

    async def verify(self, *, root_key: str | None = None, relay_key: str | None = None) -> "Evidence":
        """Verify every receipt, and return what was checked. Raises `VerificationError` for the first that is wrong.

        With `root_key`, kept elsewhere, a ledger that was made anew under another one is found as well.
        """
        from batonpass.api import ledgers as ledger_acts  # noqa: PLC0415 - as above

        request = ledger_acts.VerifyLedger(root_key=root_key, relay_key=relay_key)
        return await self._port.do(ledger_acts.verify_ledger, request)

    async def blame(self, path: str | Path, line: int | None = None) -> "Blame":
        """Return who wrote a file, or one line of it: the call, its grant, and the chain up to the person's words.

        Raises `NotFoundError` if there is no such file, and `InvalidValueError` if it has no such line.
        """
        from batonpass.api import reports as report_acts  # noqa: PLC0415 - as above

        return await self._port.do(report_acts.blame, report_acts.BlameFile(path=str(path), line=line))

    async def revoke_grant(
        self, account: str, *, by: str | None = None, reason: str = "", key: str | None = None
    ) -> None:
        """End a grant and all that hang from it: what was given to a root run, or with a handoff."""
        from batonpass.api import ledgers as ledger_acts  # noqa: PLC0415 - as above

        request = ledger_acts.RevokeGrant(account=account, by=by, reason=reason)
        await self._port.do(ledger_acts.revoke_grant, request, key)

    async def close(self) -> None:
        """Close the ledger."""
        await self._port.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
