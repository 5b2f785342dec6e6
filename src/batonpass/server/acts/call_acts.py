"""The calls of a run whose tools are on another machine: judged and recorded here, made there."""

import posixpath
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from msgspec import Struct, field

from batonpass.errors import CallError, InvalidValueError, NotFoundError
from batonpass.handoff.calls.begin import begin_call
from batonpass.handoff.calls.finish import fail_call, finish_call
from batonpass.handoff.calls.pending_call import Replayed
from batonpass.handoff.files.work_tree import SeenChanges
from batonpass.handoff.runtime.faults import Fault
from batonpass.handoff.tools.actions import CALL, READ, WRITE
from batonpass.handoff.tools.declaration import Declared
from batonpass.handoff.tools.foreign_call import ForeignCall
from batonpass.model.base.checks import require_code
from batonpass.model.base.ids import CallId
from batonpass.model.bodies.effect import EffectKind
from batonpass.records.shape import Shape
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
    """A call that a run wants to make, and what is declared about its tool. The defaults assume nothing good."""

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


class OutcomeMessage(Struct, frozen=True, kw_only=True):
    """How a call ended: with a result, or with an error."""

    result: Any = None
    error: FaultMessage | None = None


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
    """Record how a call ended. One that this server does not know any more stays in doubt."""
    said: OutcomeMessage = asked.body
    if said.error is not None:
        require_code("error.code", said.error.code)
        if said.result is not None:
            raise InvalidValueError("result", "a call that failed has none")
    desk = desk_of(asked.plane.relay)
    wanted = CallId(asked.names["call"])

    def act(run: OpenRun) -> Shape:
        found = run.calls.get(wanted)
        if found is None:
            raise NotFoundError("call without an outcome", wanted)
        begun, call = found
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


ENDPOINTS: Final = (
    Endpoint(
        method="POST",
        path="/v1/runs/{run}/calls",
        name="beginCall",
        about="Have a call judged and recorded before it is made.",
        roles=AGENTS,
        act=begin,
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
        answers=DoneShape,
        body=OutcomeMessage,
    ),
)
