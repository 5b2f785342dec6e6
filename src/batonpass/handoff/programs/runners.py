"""Runners: a function, a coroutine function or a program in any language that works on a handoff."""

import contextlib
import inspect
import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

from batonpass.errors import FencedError, HandoffSuspendedError, InvalidValueError, StreamClosedError
from batonpass.handoff.tools.json_values import looks
from batonpass.model.baton.items import Report

if TYPE_CHECKING:
    from batonpass.handoff.programs.run_port import WorkingRun
from batonpass.handoff.tools.returned_value import awaited

Runner: TypeAlias = Callable[[Any], Any]


_MADE_OF: Final = "__batonpass_config__"
AnyFunction = TypeVar("AnyFunction", bound=Runner)


def configured(function: AnyFunction, config: Mapping[str, Any] | None) -> AnyFunction:
    """Return a function with the makeup of its agent; accepting a handoff for it records the makeup."""
    setattr(function, _MADE_OF, config)
    return function


def config_of(runner: Runner) -> Mapping[str, Any] | None:
    """Return the makeup of the agent behind a runner: model, prompt and tools; None if it is unknown."""
    found = getattr(runner, _MADE_OF, None)
    return found if isinstance(found, Mapping) else None


def run_to_end(runner: Runner, run: "WorkingRun") -> None:
    """Let a runner work on a run, and close the run in every case. The returned value is the report."""
    try:
        returned = runner(run)
        if inspect.isawaitable(returned):
            import asyncio  # noqa: PLC0415 - as slow to import as all of batonpass, and few need it

            returned = asyncio.run(awaited(returned))
        take_report(run, returned)
        # If a policy or a store refuses to close the run, the attempt failed: it never stays open because of that.
        run.close()
    except Exception as error:  # noqa: BLE001 - whatever a runner raises is why its attempt failed
        fail_run(run, error)
    except BaseException as error:
        fail_run(run, error)
        raise


def take_report(run: "WorkingRun", returned: object) -> None:
    """Use the value that a runner returned as its report, unless it has reported already."""
    if run.reported is None and returned is not None:
        run.report(report_of(returned))


def fail_run(run: "WorkingRun", error: BaseException) -> None:
    """End a run without a result. A run that somebody else has ended, or that stopped to wait, stays as it is."""
    if isinstance(error, HandoffSuspendedError):
        return
    # It was cancelled, has lapsed or was taken over. The receipts say so, and nobody waits for us.
    with contextlib.suppress(FencedError, StreamClosedError):
        run.fail(error)


def report_of(returned: object) -> Report:
    """Return a returned value as a report: it may be a report, a text, or JSON for programs."""
    if isinstance(returned, Report):
        return returned
    if isinstance(returned, str):
        return Report(result=returned)
    try:
        value = json.dumps(returned, allow_nan=False, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        raise InvalidValueError(
            "result",
            f"a runner returns a report, a text, or JSON, not {looks(returned)[:80]}",
        ) from None
    return Report(value=value)
