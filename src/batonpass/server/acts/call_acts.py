"""The calls of a run whose tools are on another machine: judged and recorded here, made there."""

import posixpath
from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from msgspec import Struct, field

from batonpass.errors import CallError, InvalidValueError, NotFoundError
from batonpass.handoff.calls.begin import begin_call
from batonpass.handoff.calls.finish import fail_call, finish_call
from batonpass.handoff.calls.pending_call import Begun, Replayed
from batonpass.handoff.files.work_tree import SeenChanges
from batonpass.handoff.grants.limit_use import Counting
from batonpass.handoff.runtime.faults import Fault
from batonpass.handoff.tools.actions import CALL, READ, WRITE
from batonpass.handoff.tools.declaration import Declared
from batonpass.handoff.tools.foreign_call import ForeignCall
from batonpass.model.base.checks import require_code
from batonpass.model.base.content_names import TARGET
from batonpass.model.base.ids import CallId, PrincipalId
from batonpass.model.bodies.effect import EffectKind
from batonpass.model.ledger.receipt import Receipt
from batonpass.records.call import CallRecord, read_calls
from batonpass.records.json_shapes import Shape
from batonpass.relay import desk_of
from batonpass.server.acts.own_run import own_run
from batonpass.server.acts.run_acts import FaultMessage
from batonpass.server.endpoint import AGENTS, ApiRequest, Endpoint
from batonpass.server.open_runs import OpenRun
from batonpass.server.shape_types import CallBegunShape, DoneShape

# A flag: what the call touched and changed there is the word of its client.
ELSEWHERE: Final = "made.elsewhere"
_CREATED: Final = 201


class CallMessage(Struct, frozen=True, kw_only=True):
    """A call that a run wants to make, and the declaration of its tool. The defaults assume nothing good."""

    tool: str
    arguments: dict[str, Any] = field(default_factory=dict)
    target: str | None = None  # what it acts on, as grants and rules name it
    action: str | None = None  # what it does to it; by default read or write
    reads: bool = False
    reversible: bool | None = None
    external: bool = False
    idempotent: bool = False
    costly: bool = False
    effect: EffectKind | None = None
    readers: tuple[str, ...] | None = None  # who may read what it returns; null: everybody
    scripts: tuple[str, ...] = ()  # arguments that a shell executes


class OutcomeMessage(Struct, frozen=True, kw_only=True):
    """How a call ended: with a result, or with an error."""

    result: Any = None
    error: FaultMessage | None = None
    cost: str | None = None  # what it cost, as a decimal number
    external: bool | None = None  # as declared when it began, for a server that restarted since


@dataclass(frozen=True, slots=True)
class RemoteCall(ForeignCall):
    """A call that is made on another machine. Paths in it are not looked up here."""

    aimed: str | None = None

    @property
    def mentioned(self) -> Mapping[str, Any]:
        """Return everything in which a path to protected files may stand."""
        return {**self.kwargs, "target": self.aimed} if self.aimed is not None else self.kwargs

    @property
    def seen_elsewhere(self) -> bool:
        """Return that nobody looks at files of this machine for it."""
        return True


def remote_call(said: CallMessage) -> RemoteCall:
    """Return a call as the guard judges it. Raises `InvalidValueError`."""
    declared = Declared(
        name=said.tool,
        target=None if said.target is None else lambda _: said.target,
        action=said.action,
        idempotent=said.idempotent,
        reversible=said.reversible,
        reads=said.reads,
        external=said.external,
        costly=said.costly,
        effect=said.effect,
        readers=None if said.readers is None else tuple(map(PrincipalId, said.readers)),
        scripts=said.scripts,
    )
    natural = CALL if said.target is None else READ if said.reads else WRITE
    does = said.action or natural
    on_disk = said.target is not None and does in {READ, WRITE}
    # Where a path leads can be seen only there; what it spells can be seen here: `out/../src/a` is `src/a`.
    named = said.target or said.tool
    return RemoteCall(
        declared,
        dict,
        (),
        said.arguments,
        flags=(ELSEWHERE,),
        does=does,
        to=posixpath.normpath(named) if on_disk else named,
        on_disk=on_disk,
        aimed=said.target,
    )


def begin(asked: ApiRequest) -> Shape:
    """Have a call judged and its request recorded, before it is made; or return its result if that is known."""
    call = remote_call(asked.body)
    desk = desk_of(asked.plane.relay)

    def act(run: OpenRun) -> Shape:
        begun = begin_call(desk, run.live._holding, call)  # noqa: SLF001 - a door inside the package
        if isinstance(begun, Replayed):
            return {"call": None, "key": None, "replayed": True, "value": begun.value}
        run.calls[begun.call] = (begun, call)
        return {"call": begun.call, "key": begun.key, "replayed": False, "value": None}

    return asked.plane.runs.act(own_run(asked), act)


def finish(asked: ApiRequest) -> Shape:
    """Record how a call ended, also one that another process of this server saw begin."""
    said: OutcomeMessage = asked.body
    if said.error is not None:
        require_code("error.code", said.error.code)
        if said.result is not None:
            raise InvalidValueError("result", "a call that failed has none")
    cost = None if said.cost is None else _decimal(said.cost)
    desk = desk_of(asked.plane.relay)
    wanted = CallId(asked.names["call"])

    def act(run: OpenRun) -> Shape:
        begun, call = run.calls.get(wanted) or _restored(asked, run, wanted, external=said.external is not False)
        if cost is not None:
            call = replace(call, declared=replace(call.declared, cost=lambda _: cost))
        holding = run.live._holding  # noqa: SLF001 - as above
        try:
            if said.error is None:
                finish_call(desk, holding, begun, call, said.result, seen=SeenChanges())
            else:
                fault = Fault(said.error.code, said.error.message)
                fail_call(desk, holding, begun, call, fault, seen=SeenChanges())
        except CallError:
            run.calls.pop(wanted, None)  # it is recorded, and breaks a constraint
            raise
        run.calls.pop(wanted, None)
        return {"done": True}

    return asked.plane.runs.act(own_run(asked), act)


def _decimal(text: str) -> Decimal:
    try:
        found = Decimal(text)
    except InvalidOperation:
        raise InvalidValueError("cost", "is no decimal number") from None
    if not found.is_finite() or found < 0:
        raise InvalidValueError("cost", "is no amount")
    return found


def _restored(asked: ApiRequest, run: OpenRun, wanted: CallId, *, external: bool) -> tuple[Begun, RemoteCall]:
    """Return a call without an outcome that another process saw begin, from its receipt. Raises `NotFoundError`.

    The receipt does not say whether the call reads content from outside. It does, unless the client says otherwise.
    """
    holding = run.live._holding  # noqa: SLF001 - a door inside the package
    with asked.plane.relay.store.view() as view:
        known = read_calls(view, holding.working.run).get(wanted)
        if known is None or not known.is_made or known.ended is not None:
            raise NotFoundError("call without an outcome", wanted)
        target = known.receipt.content.get(TARGET)
        words = None if target is None else view.get_content(target.id).body
    call = remote_call(
        CallMessage(
            tool=known.tool,
            target=None if words is None else words.decode(),
            reads=known.reads,
            reversible=known.reversible,
            idempotent=known.idempotent,
            external=external,
        )
    )
    counted = Counting(holding.bounds.accounts).counted()
    attempt = holding.working.run.attempt
    return Begun(call=wanted, key=known.key, attempt=attempt, counted=counted, began=None), call


def recall_begin(asked: ApiRequest, receipt: Receipt) -> Shape | None:
    """Return the earlier answer of `begin`: the call may be made. A denial is judged again."""
    for call in _calls(asked).values():
        if call.receipt.id == receipt.id and call.is_made:
            return {"call": call.id, "key": call.key, "replayed": False, "value": None}
    return None


def recall_finish(asked: ApiRequest, receipt: Receipt) -> Shape | None:
    """Return the earlier answer of `finish`."""
    call = _calls(asked).get(CallId(asked.names["call"]))
    ended = call is not None and call.ending is not None and call.ending.id == receipt.id
    return {"done": True} if ended else None


def _calls(asked: ApiRequest) -> Mapping[CallId, CallRecord]:
    run = own_run(asked)
    with asked.plane.relay.store.view() as view:
        return read_calls(view, view.get_run(run))


ENDPOINTS: Final = (
    Endpoint(
        method="POST",
        path="/v1/runs/{run}/calls",
        name="beginCall",
        about="Have a call judged and recorded before it is made.",
        roles=AGENTS,
        act=begin,
        recall=recall_begin,
        answers=CallBegunShape,
        body=CallMessage,
        status=_CREATED,
    ),
    Endpoint(
        method="POST",
        path="/v1/runs/{run}/calls/{call}/outcome",
        name="finishCall",
        about="Record how a call ended.",
        roles=AGENTS,
        act=finish,
        recall=recall_finish,
        answers=DoneShape,
        body=OutcomeMessage,
    ),
)
