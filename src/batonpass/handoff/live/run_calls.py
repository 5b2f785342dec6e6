"""What a run does to the world: calls of tools, commands, and what became of the files."""

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from decimal import Decimal
from os import PathLike
from typing import ParamSpec, TypeVar

from batonpass.errors import InvalidValueError
from batonpass.handoff.calls.begin import begin_call
from batonpass.handoff.calls.call_limits import counts, require_room, spend
from batonpass.handoff.calls.finish import fail_call, finish_call
from batonpass.handoff.calls.pending_call import Replayed
from batonpass.handoff.calls.shell_call import NO_VARIABLES, plan_command
from batonpass.handoff.calls.unexplained import find_unexplained, watch_files
from batonpass.handoff.live.run_facts import RunFacts
from batonpass.handoff.runtime.desk import Desk
from batonpass.handoff.shell.commands import KEPT, Finished
from batonpass.handoff.tools.call_context import entered
from batonpass.handoff.tools.declaration import ToolCall, declare, declared_of, is_async, name_of
from batonpass.handoff.tools.returned_value import ended
from batonpass.model.base.checks import as_member
from batonpass.model.grants.charge import Unit
from batonpass.records.unexplained import Unexplained

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class RunCalls(RunFacts):
    """A run that calls tools and runs commands; everything is guarded before and recorded after."""

    _desk: Desk

    def call(
        self,
        function: Callable[Arguments, Result],
        /,
        *args: Arguments.args,
        **kwargs: Arguments.kwargs,
    ) -> Result:
        """Call a tool: the request is recorded before, the outcome after; what is finished is not done again.

        The tool gets copies of containers, which are what was judged; see `tool` for one that fills them. A generator
        is run to its end, and comes back as a list. Raises `CallInDoubtError` for a call of which nobody knows whether
        it happened, and `InvalidValueError` for a tool that returns something to be awaited: use an `AsyncRun`.
        """
        if is_async(function):
            # It would return at once, and be recorded as done before it has begun.
            raise InvalidValueError("function", f"{name_of(function)} is a coroutine function: call it on an AsyncRun")
        planned: ToolCall[Result] = ToolCall(declared_of(function), function, args, kwargs)
        begun = begin_call(self._desk, self._holding, planned)
        if isinstance(begun, Replayed):
            return begun.value  # type: ignore[no-any-return]
        try:
            with entered(begun.context(self.id)):
                result: Result = ended(planned.make(), planned.declared.name)
        except BaseException as error:
            fail_call(self._desk, self._holding, begun, planned, error)
            raise
        finish_call(self._desk, self._holding, begun, planned, result)
        return result

    def spend(self, *, tokens: int = 0, cost: Decimal | int | str = 0, on: str | None = None) -> None:
        """Count what was used up besides calls, such as the tokens of a model, against every limit above this run."""
        spend(self._desk, self._holding, tokens=tokens, cost=cost, on=on)

    def require_room(self, what: str = "model") -> None:
        """Refuse to go on where a limit is used up. Raises `ConstraintViolatedError` and `GrantRevokedError`."""
        require_room(self._desk, self._holding, what=what)

    def is_limited(self, unit: Unit | str) -> bool:
        """Return whether a limit counts this unit for the run: `tokens`, `spend` and so on."""
        return counts(self._holding, as_member("unit", unit, Unit))

    def shell(
        self,
        command: Sequence[str],
        *,
        cwd: str | PathLike[str] | None = None,
        env: Mapping[str, str] = NO_VARIABLES,
        inherit: Sequence[str] = (),
        stdin: str | None = None,
        timeout: timedelta | None = None,
        credential: tuple[str, str] | None = None,
        reads: bool = False,
        idempotent: bool = False,
        external: bool = False,
        kept: int = KEPT,
    ) -> Finished:
        """Run a command as a call, `run:PROGRAM` to its grant; the files that it changed stand on its receipt.

        It runs in `cwd`, else in the work tree, with little of our environment: `inherit` names more of it, `env` adds
        to it, and `credential` is one that is fetched for it and the variable that it gets it in. When it ends, or
        `timeout` has passed, all that it started is ended too. Of each stream, `kept` bytes are. `reads`, `idempotent`
        and `external` say of it what `tool` says of functions. Raises `CommandTimeoutError` and, in an enforced run
        that may not write what it changed, `OutsideGrantError`.
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
        """Let the close of this run tell which files of the work tree changed from now on by no recorded call.

        A run that is granted to write files of a git repository is watched from its beginning.
        """
        watch_files(self._desk, self._holding)

    def unexplained(self) -> tuple[Unexplained, ...]:
        """Return the files that changed so far, since they are watched, and that no recorded call changed so."""
        return find_unexplained(self._desk, self._holding)[0]
