"""The typed Python handles: thin words over a port. `aio.py` is made from this file."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, Self, TypeVar, Unpack, overload

from msgspec import UNSET, Raw, UnsetType, json

from batonpass.api import calls as call_acts
from batonpass.api import handoffs as handoff_acts
from batonpass.api import runs as run_acts
from batonpass.api.acts import Caller
from batonpass.api.opening import open_port
from batonpass.api.port import Port
from batonpass.api.repetition import Slot
from batonpass.api.run_base import CURRENT_RUN, ENFORCED_RUNS, OfferArguments, RunBase, make_grant
from batonpass.api.tools import (
    CURRENT_CALL,
    CurrentCall,
    call_function,
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


class BegunCall:
    """A call that was begun: make it, unless it is replayed, and say what became of it."""

    def __init__(self, port: Port, run: str, begun: call_acts.CallBegun, slot: Slot) -> None:
        self._port = port
        self._run = run
        self._slot = slot
        self.id = begun.call
        self.key = begun.key
        self.is_replayed = not isinstance(begun.result, UnsetType)
        self.value: Any = None if isinstance(begun.result, UnsetType) else json.decode(begun.result)

    def succeed(self, value: object) -> None:
        """Record the result, before the agent has it."""
        try:
            data = encode_result(value)
            result = UNSET if data is None else Raw(data)
            request = call_acts.FinishCall(run=self._run, call=self.id, result=result)
            self._port.do(call_acts.finish_call, request)
        except BaseException:
            self.abandon()  # the caller has no result: if it asks again, it asks for this call, and not for another
            raise

    def fail(self, error: str) -> None:
        """Record that it failed. Its number is free again, so the next attempt at it has the same key."""
        try:
            self._port.do(call_acts.finish_call, call_acts.FinishCall(run=self._run, call=self.id, error=error))
        finally:
            self.abandon()

    def abandon(self) -> None:
        """Free the number of a call that has no result: an equal call finds it in doubt, or makes it again."""
        self._slot.give_back()


class Run(RunBase[Port]):
    """One agent at work. Leaving its `with` closes it; an exception closes it as failed."""

    def record(self, *items: AnyItem, key: str | None = None) -> None:
        """Record what this run knows. Its later children are given it."""
        self._port.do(run_acts.record, run_acts.Record(run=self.id, epoch=self.epoch, items=items), key)

    def record_gaps(self, *gaps: str, key: str | None = None) -> None:
        """Record what this run did and could not be recorded when it happened, for adapters."""
        self._port.do(run_acts.record, run_acts.Record(run=self.id, epoch=self.epoch, gaps=gaps), key)

    @overload
    def hand_off(
        self, to: str, task: str, *, accept: Literal[False] = False, **arguments: Unpack[OfferArguments]
    ) -> "Handoff": ...

    @overload
    def hand_off(self, to: str, task: str, *, accept: Literal[True], **arguments: Unpack[OfferArguments]) -> "Run": ...

    def hand_off(
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
    ) -> "Handoff | Run":
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
        offered = self._port.do(run_acts.hand_off, request, key)
        run = None if offered.run is None else Run(self._port, offered.run)
        return run if accept and run is not None else Handoff(self._port, offered.handoff, run)

    def begin_call(
        self,
        tool: str,
        arguments: bytes,
        *,
        action: str = "call",
        target: str | None = None,
        idempotent: bool = False,
        key: str | None = None,
    ) -> BegunCall:
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
            begun = self._port.do(call_acts.begin_call, request, key)
        except BaseException:
            slot.give_back()
            raise
        return BegunCall(self._port, self.id, begun, slot)

    def call(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Make a call through the guard: requested is durable before it, the outcome after it."""
        tool = tool_of(function)
        begun = self.begin_call(
            tool.name,
            encode_arguments(args, kwargs),
            action=tool.action,
            target=tool.target_of(args, kwargs, is_enforced=self.mode == "enforced"),
            idempotent=tool.idempotent,
        )
        if begun.is_replayed:
            value: T = begun.value
            return value
        is_kept = False
        token = CURRENT_CALL.set(CurrentCall(run=self.id, call=begun.id, key=begun.key, attempt=self.attempt))
        run_token = CURRENT_RUN.set(self)  # whose call it is, whichever `with` is around it
        try:
            try:
                # Ctrl-C is no outcome: a BaseException passes, and leaves the call in doubt, which is what it is.
                result: T = call_function(function, args, kwargs)
            except Exception as error:
                begun.fail(repr(error))
                raise
            finally:
                CURRENT_CALL.reset(token)
                CURRENT_RUN.reset(run_token)
            begun.succeed(result)
            is_kept = True
        finally:
            if not is_kept:  # wherever it was cut short: who asks again asks for this call
                begun.abandon()
        return result

    def settle(self, call: str, how: Settlement, *, by: str, reason: str = "", key: str | None = None) -> None:
        """Decide about a call in doubt: `repeat` makes it again when it is asked for, `skip` never does."""
        request = run_acts.SettleCall(run=self.id, epoch=self.epoch, call=call, how=how, by=by, reason=reason)
        self._port.do(run_acts.settle_run, request, key)

    def close(self, error: BaseException | None = None, *, key: str | None = None) -> None:
        """End the run, with its report; with an error it has failed."""
        words = None if error is None else repr(error)
        request = run_acts.Close(run=self.id, epoch=self.epoch, report=self.progress.report, error=words)
        try:
            self._port.do(run_acts.close, request, key)
        finally:
            ENFORCED_RUNS.discard(self.progress)

    def __enter__(self) -> Self:
        self._token = CURRENT_RUN.set(self)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        token, self._token = self._token, None
        if token is not None:
            with suppress(ValueError):  # left in another context than it was entered in, as generators are
                CURRENT_RUN.reset(token)
        self.close(error)


class Handoff:
    """One task, handed to one agent. `with` accepts it and closes the attempt."""

    def __init__(self, port: Port, handoff: str, run: Run | None = None) -> None:
        self._port = port
        self.run = run  # the attempt that this handle began
        self.id = handoff

    def info(self) -> "HandoffView":
        """Return everything that the ledger has of it now: attempts, calls, what is in doubt."""
        from batonpass.api import reports as report_acts  # noqa: PLC0415 - most programs ask nothing

        return self._port.do(report_acts.show_handoff, handoff_acts.OfHandoff(handoff=self.id))

    def state(self) -> State:
        """Return its state now."""
        return self.result().state

    def baton(self) -> Baton:
        """Return everything that travels with it."""
        return self._port.do(handoff_acts.show_baton, handoff_acts.OfHandoff(handoff=self.id)).baton

    def result(self) -> handoff_acts.Result:
        """Return what came out of it so far."""
        return self._port.do(handoff_acts.show_result, handoff_acts.OfHandoff(handoff=self.id))

    def accept(self, *, replay: bool = False, key: str | None = None) -> Run:
        """Begin an attempt. With `replay` a completed handoff gives again what its attempt did."""
        if self.run is not None and not self.run.is_recorded:
            return self.run  # offered while nothing could be written: it works, and the record says that it is missing
        opened = self._port.do(handoff_acts.accept, handoff_acts.Accept(handoff=self.id, replay=replay), key)
        self.run = Run(self._port, opened)
        return self.run

    def retry(
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
        self._port.do(handoff_acts.retry, request, key)
        self.run = None
        return self

    def __enter__(self) -> Run:
        run = self.run if self.run is not None else self.accept(replay=True)
        run.__enter__()
        return run

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.run is not None:
            self.run.__exit__(kind, error, trace)


class Relay:
    """The way to a ledger, and the only author of its receipts."""

    def __init__(self, port: Port) -> None:
        self._port = port

    @classmethod
    def open(
        cls,
        ledger: str | Path | None = None,
        *,
        work_tree: str | Path | None = None,
        create: bool = True,
        system: System | None = None,
        caller: Caller | None = None,
    ) -> Self:
        """Open the ledger of this repository, a file, `postgresql://…`, or `memory:`."""
        return cls(open_port(ledger, work_tree=work_tree, create=create, system=system, caller=caller))

    def start(
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
    ) -> Run:
        """Begin a run for a principal. With a grant it is enforced, else observed."""
        own = make_grant(may, may_delegate, grant)
        request = run_acts.Start(intent=intent, by=by, agent=agent, grant=own, items=tuple(items))
        return Run(self._port, self._port.do(run_acts.start, request, key))

    def resume(self, run: str = "last", *, key: str | None = None) -> Run:
        """Take a root run over from its holder: what it finished is given again, and its old holder is fenced."""
        from batonpass.api import reports as report_acts  # noqa: PLC0415 - as above

        after = None
        while run == "last":
            page = self._port.do(
                report_acts.list_runs, report_acts.ListRuns(state=RunState.OPEN, after=after, limit=200)
            )
            run, after = next((each.id for each in page.items if each.handoff is None), run), page.next
            if run == "last" and after is None:
                raise NotFoundError("no root run is open in this ledger: there is nothing to resume")
        resumed = Run(self._port, self._port.do(run_acts.resume, run_acts.OfRun(run=run), key))
        resumed.progress.is_resumed = True
        return resumed

    def handoff(self, handoff: str) -> Handoff:
        """Return a handoff of any process, by its whole id. Raises `NotFoundError`."""
        request = handoff_acts.OfHandoff(handoff=handoff)
        return Handoff(self._port, self._port.do(handoff_acts.show_result, request).handoff)

    def runs(self, *, state: RunState | None = None, agent: str | None = None) -> Iterator["RunLine"]:
        """Yield the runs of this ledger, the latest first."""
        from batonpass.api import reports as report_acts  # noqa: PLC0415 - as above

        after = None
        while True:
            request = report_acts.ListRuns(state=state, agent=agent, after=after, limit=200)
            page = self._port.do(report_acts.list_runs, request)
            for info in page.items:  # noqa: UP028 - `yield from` has no awaited form
                yield info
            after = page.next
            if after is None:
                return

    def run(self, run: str) -> Run:
        """Return a run of any process of this relay, by its whole id; one that has ended only gives again what it did.

        Raises `NotFoundError`.
        """
        return Run(self._port, self._port.do(run_acts.open_run, run_acts.OfRun(run=run)))

    def verify(self, *, root_key: str | None = None, relay_key: str | None = None) -> "Evidence":
        """Verify every receipt, and return what was checked. Raises `VerificationError` for the first that is wrong.

        With `root_key`, kept elsewhere, a ledger that was made anew under another one is found as well.
        """
        from batonpass.api import ledgers as ledger_acts  # noqa: PLC0415 - as above

        request = ledger_acts.VerifyLedger(root_key=root_key, relay_key=relay_key)
        return self._port.do(ledger_acts.verify_ledger, request)

    def blame(self, path: str | Path, line: int | None = None) -> "Blame":
        """Return who wrote a file, or one line of it: the call, its grant, and the chain up to the person's words.

        Raises `NotFoundError` if there is no such file, and `InvalidValueError` if it has no such line.
        """
        from batonpass.api import reports as report_acts  # noqa: PLC0415 - as above

        return self._port.do(report_acts.blame, report_acts.BlameFile(path=str(path), line=line))

    def revoke_grant(self, account: str, *, by: str | None = None, reason: str = "", key: str | None = None) -> None:
        """End a grant and all that hang from it: what was given to a root run, or with a handoff."""
        from batonpass.api import ledgers as ledger_acts  # noqa: PLC0415 - as above

        request = ledger_acts.RevokeGrant(account=account, by=by, reason=reason)
        self._port.do(ledger_acts.revoke_grant, request, key)

    def close(self) -> None:
        """Close the ledger."""
        self._port.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
