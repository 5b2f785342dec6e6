"""The calls of a run: tools, commands, and the files that changed."""

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from decimal import Decimal
from os import PathLike
from typing import Any, ParamSpec, TypeVar

from batonpass.errors import InvalidValueError
from batonpass.handoff.calls.begin import begin_call
from batonpass.handoff.calls.call_limits import counts, require_room, spend
from batonpass.handoff.calls.finish import fail_call, finish_call
from batonpass.handoff.calls.pending_call import Begun, Replayed
from batonpass.handoff.calls.shell_call import NO_VARIABLES, plan_command
from batonpass.handoff.calls.unexplained import find_unexplained, watch_files
from batonpass.handoff.live.run_facts import RunFacts
from batonpass.handoff.runtime.desk import Desk
from batonpass.handoff.shell.commands import KEPT, Finished
from batonpass.handoff.tools.call_context import entered
from batonpass.handoff.tools.declaration import declare, declared_of, is_async, name_of
from batonpass.handoff.tools.returned_value import ended
from batonpass.handoff.tools.tool_call import ToolCall
from batonpass.model.base.checks import as_member
from batonpass.model.grants.charge import Unit
from batonpass.records.unexplained import Unexplained

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class RunCalls(RunFacts):
    """A run that calls tools and runs commands. Each call is checked and recorded before, and recorded after."""

    _desk: Desk

    def call(
        self,
        function: Callable[Arguments, Result],
        /,
        *args: Arguments.args,
        **kwargs: Arguments.kwargs,
    ) -> Result:
        """Call a tool: its request is recorded before, its outcome after. A call that was finished is not made again.

        The tool gets copies of lists and dicts, so that it runs with the arguments that were checked; see `tool` for
        one that has to change them. A generator is run to its end and returned as a list. Raises a `CallError` or a
        `GrantError` if the call must not be made, `CallInDoubtError` if nobody knows whether it happened before, and
        `InvalidValueError` for a coroutine function: use an `AsyncRun`.
        """
        if is_async(function):
            # It would return a coroutine at once, and be recorded as done before it has begun.
            raise InvalidValueError("function", f"{name_of(function)} is a coroutine function: call it on an AsyncRun")
        planned: ToolCall[Result] = ToolCall(declared_of(function), function, args, kwargs)
        begun = self._begin(planned)
        if isinstance(begun, Replayed):
            return begun.value  # type: ignore[no-any-return]
        try:
            with entered(begun.context(self.id)):
                result: Result = ended(planned.make(), planned.declared.name)
        except BaseException as error:
            self._fail(begun, planned, error)
            raise
        self._finish(begun, planned, result)
        return result

    # The three steps around a tool. Where its ledger is elsewhere, a run asks there, and the tool is called here.
    def _begin(self, call: ToolCall[Any]) -> Begun | Replayed:
        return begin_call(self._desk, self._holding, call)

    def _finish(self, begun: Begun, call: ToolCall[Any], value: object) -> None:
        finish_call(self._desk, self._holding, begun, call, value)

    def _fail(self, begun: Begun, call: ToolCall[Any], error: BaseException, *, made: bool = True) -> None:
        fail_call(self._desk, self._holding, begun, call, error, made=made)

    def spend(self, *, tokens: int = 0, cost: Decimal | int | str = 0, on: str | None = None) -> None:
        """Count tokens and cost outside of calls, such as those of a model, against every limit above this run."""
        spend(self._desk, self._holding, tokens=tokens, cost=cost, on=on)

    def require_room(self, tool: str = "model") -> None:
        """Refuse to go on if a limit is used up. Raises `ConstraintViolatedError` and `GrantRevokedError`.

        The denial is recorded as one of `tool`.
        """
        require_room(self._desk, self._holding, tool=tool)

    def is_limited(self, unit: Unit | str) -> bool:
        """Return whether the run has a limit in this unit: `tokens`, `spend` and so on."""
        return counts(self._holding, as_member("unit", unit, Unit))

    def shell(
        self,
        command: Sequence[str],
        *,
        cwd: str | PathLike[str] | None = None,
        env: Mapping[str, str] = NO_VARIABLES,
        inherit: Sequence[str] = (),
        stdin: str | None = None,
        timeout: timedelta | str | None = None,
        credential: tuple[str, str] | None = None,
        reads: bool = False,
        idempotent: bool = False,
        external: bool = False,
        kept: int = KEPT,
    ) -> Finished:
        """Run a command as a call. To a grant it is `run:PROGRAM`; its receipt lists the files that it changed.

        It runs in `cwd`, or else in the work tree, with few variables of our environment. `inherit` names more of them,
        and `env` adds new ones. `credential` is the name of a credential and the variable that gets its secret. When
        the command ends, or after `timeout`, all processes that it started are ended too. `kept` bytes of each output
        stream are kept. `reads`, `idempotent` and `external` mean the same as for `tool`. Raises `CommandTimeoutError`
        and, if an enforced run may not write the files that the command changed, `OutsideGrantError`.
        """
        planned = plan_command(
            self._desk,
            command,
            cwd=cwd,
            env=env,
            inherit=inherit,
            stdin=stdin,
            timeout=timeout,
            credential=credential,
            reads=reads,
            idempotent=idempotent,
            external=external,
            kept=kept,
        )
        return self.call(declare(planned.command, planned.declared), **planned.given)

    def watch_files(self) -> None:
        """Watch the work tree from now on: the close of this run lists the changes that no recorded call explains.

        If the grant of a run lets it write files of a git repository, they are watched from its beginning.
        """
        watch_files(self._desk, self._holding)

    def unexplained(self) -> tuple[Unexplained, ...]:
        """Return the files that have changed since they are watched, without a recorded call that explains it."""
        return find_unexplained(self._desk, self._holding)[0]
