"""Acts about calls. The tool runs at the caller's side, between the two."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Annotated

from msgspec import UNSET, DecodeError, Meta, Raw, UnsetType, ValidationError, json

from batonpass.api.acts import WORK, Caller, Value, act
from batonpass.api.runs import InRun
from batonpass.errors import CallDeniedError, CallError, FencedError, InvalidValueError
from batonpass.model.bodies import ToolDenied, ToolFailed, ToolLateResult, ToolRequested
from batonpass.model.receipt import Signed
from batonpass.model.values import Name, Outcome
from batonpass.reading.history import read_text
from batonpass.runtime import call as calling
from batonpass.runtime.context import Context, open_run
from batonpass.wire.canonical import encode

_NULL = b"null"


class BeginCall(InRun, frozen=True, kw_only=True):
    """Ask for a call. `number`: it is the n-th equal call of this run. The caller counts, so asking twice is safe."""

    tool: Name
    action: Name
    target: str
    arguments: Raw | UnsetType = UNSET  # any JSON value
    number: Annotated[int, Meta(ge=1, le=1_000_000)] = 1
    idempotent: bool = False
    is_encoded: bool = False  # the arguments are canonical bytes already


class CallBegun(Value, frozen=True):
    """Make the call now; or, with `result`, do not: it was finished before."""

    call: str
    key: str  # the same each time it is tried: an outside system may do it once by it
    result: Raw | UnsetType = UNSET


@act("POST /v1/runs/{run}/calls", roles=WORK)
def begin_call(context: Context, caller: Caller, request: BeginCall) -> CallBegun:
    """Ask for a call and make the request durable. The tool runs at the caller's side, if the answer has no result."""
    run = context.find_run(caller.principal, request.run, request.epoch)
    if request.arguments is UNSET:
        arguments = _NULL
    elif request.is_encoded and not caller.principal:
        arguments = bytes(request.arguments)
    else:  # canonical, for its digest: callers in other languages put their spaces elsewhere
        arguments = encode(_readable(request.arguments))
    asked = calling.CallRequest(
        request.tool, request.action, request.target, arguments, request.number, request.idempotent
    )
    begun = calling.begin_call(context, run, asked)
    return CallBegun(call=begun.call, key=begun.key, result=UNSET if begun.result is None else Raw(begun.result))


def _readable(data: Raw) -> object:
    """Return a JSON value. Raises `InvalidValueError` for what a later reader could not take."""
    try:
        return json.decode(data)
    except (ValidationError, DecodeError, RecursionError, ValueError) as error:
        raise InvalidValueError(f"this is no JSON value that can be given again: {error}") from None


@begin_call.repeated
def _begun(context: Context, request: BeginCall, receipts: Sequence[Signed]) -> CallBegun:
    signed = receipts[-1]
    if isinstance(signed.body, ToolDenied):
        facts = {"call": signed.body.call, "rule": signed.body.rule}
        raise CallDeniedError(read_text(signed, "reason", "denied; the reason was erased"), facts=facts)
    if not isinstance(signed.body, ToolRequested):
        raise InvalidValueError(f"this request asked for no call of {request.tool}")
    call, key = signed.body.call, signed.body.key
    run = context.runs.get(signed.stream) or open_run(context.recorder, signed.stream, is_replayed=True)
    with suppress(FencedError):  # what was answered is answered again, also where the run was lost since
        run.refresh(context.recorder)
    finished = run.history.finished.get(key)
    if finished is not None:
        return CallBegun(call=call, key=key, result=Raw(finished))
    if call not in run.open_calls and not request.idempotent:
        # Begun by a process that is gone, or over: a key makes a request once, and not a tool twice.
        calling.refuse_doubtful(run, key)
        detail = f"{call} has ended without a result: ask for it with a new idempotency key"
        raise CallError(detail, facts={"call": call})
    return CallBegun(call=call, key=key)


class FinishCall(InRun, frozen=True, kw_only=True):
    """What became of a call. No `result`: it returned what JSON cannot hold, and a later attempt is not given it."""

    call: str
    result: Raw | UnsetType = UNSET
    error: str | None = None


class CallFinished(Value, frozen=True):
    """The outcome, as recorded."""

    outcome: Outcome


@act("POST /v1/runs/{run}/calls/{call}/outcome", roles=WORK)
def finish_call(context: Context, caller: Caller, request: FinishCall) -> CallFinished:
    """Record what became of a call, before its caller goes on."""
    run = context.find_run(caller.principal, request.run, request.epoch)
    result = None
    if request.error is None and not isinstance(request.result, UnsetType):
        _readable(request.result)
        result = bytes(request.result)
    outcome = calling.finish_call(context, run, request.call, result=result, error=request.error)
    return CallFinished(outcome=outcome)


@finish_call.repeated
def _finished(_: Context, __: FinishCall, receipts: Sequence[Signed]) -> CallFinished:
    body = receipts[-1].body
    if isinstance(body, ToolLateResult):
        raise FencedError(f"{body.run} was taken over: what it does now is not recorded in its name")
    return CallFinished(outcome="failed" if isinstance(body, ToolFailed) else "completed")
