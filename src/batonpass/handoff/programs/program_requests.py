"""The requests of a program while it works on a run, and the answers. Any other request is refused by name."""

import binascii
import json
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar, Final

from msgspec import Struct, field
from msgspec.structs import asdict

from batonpass.errors import (
    CallError,
    CallSuspendedError,
    FencedError,
    GrantError,
    HandoffError,
    HandoffHeldError,
    HandoffSuspendedError,
    InvalidValueError,
    StreamClosedError,
)
from batonpass.handoff.programs.program_briefing import tell_grant, tell_revision, tell_value
from batonpass.handoff.runtime.faults import code_of
from batonpass.handoff.tools.json_values import plain, readable
from batonpass.handoff.tools.refusal_sentences import sentence_for
from batonpass.handoff.transfer.offer_request import ITEM_KINDS, items_by_part
from batonpass.handoff.transfer.result import Result
from batonpass.model.base.checks import require_code
from batonpass.model.base.lifecycle import Carrier, State
from batonpass.model.baton.baton import Budget
from batonpass.model.baton.brief_request import BriefRequest
from batonpass.model.baton.items import (
    Assumption,
    Claim,
    Constraint,
    Decision,
    Exclusion,
    Item,
    ItemValue,
    OpenQuestion,
    RejectedPath,
    Report,
    WorkItem,
)
from batonpass.model.bodies.body import Relation
from batonpass.model.bodies.reasoning import ReasoningPlace
from batonpass.model.policy.offer_options import Handling
from batonpass.wire.documents import DocumentReader

if TYPE_CHECKING:
    from batonpass.handoff.programs.run_port import WorkingRun

# The words of humans, artifacts and reports have requests of their own. A program cannot speak for a human.
_RECORDED: Final[Mapping[str, DocumentReader[ItemValue]]] = {
    kind.__name__: DocumentReader(kind)
    for kind in (Constraint, Exclusion, WorkItem, OpenQuestion, RejectedPath, Decision, Assumption, Claim)
}


class ProgramError(Exception):
    """A failure that a program reports about its own work."""

    # Signed bytes contain nobody's words. The program's own code is stored beside them, with its message.
    code: ClassVar = "program.failed"

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"{require_code('code', code)}: {message}")


class ItemMessage(Struct, frozen=True, kw_only=True):
    """An item by the name of its type."""

    type: str
    value: dict[str, Any]


class RecordMessage(Struct, frozen=True, kw_only=True):
    """Something to write down, which travels with every handoff of the run from now on."""

    item: ItemMessage


class _Call(Struct, frozen=True, kw_only=True):
    tool: str
    arguments: dict[str, Any] = field(default_factory=dict)


class _Read(Struct, frozen=True, kw_only=True):
    name: str


class AttachMessage(Struct, frozen=True, kw_only=True):
    """A file or a text to attach. `untrusted` marks content from outside."""

    name: str
    text: str | None = None
    base64: str | None = None
    media_type: str | None = None
    source: str | None = None
    untrusted: bool = False


class CheckpointMessage(Struct, frozen=True, kw_only=True):
    """The state from which the next attempt goes on: the messages of a model, or any JSON."""

    messages: Any


class _AskGrant(Struct, frozen=True, kw_only=True):
    """A question: what may I do now? It has no fields."""


class _Acknowledge(Struct, frozen=True, kw_only=True):
    revision: int


class HandoffMessage(Struct, frozen=True, kw_only=True):
    """A task to hand off to an agent, with everything that may be said about it."""

    to: str
    task: str
    relation: Relation = Relation.LEAD_TO_WORKER
    carrier: Carrier = Carrier.CALLER
    may: tuple[str, ...] = ()
    rationale: str | None = None
    reasoning: ReasoningPlace | None = None
    serves: str | None = None
    criteria: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    expects: tuple[str, ...] = ()
    stop_when: tuple[str, ...] = ()
    verify_by: tuple[str, ...] = ()
    needs_tools: tuple[str, ...] = ()
    needs_skills: tuple[str, ...] = ()
    budget: Budget | None = None
    deadline: datetime | None = None
    role: str | None = None
    phase: str | None = None
    constraints: tuple[Constraint | str, ...] = ()
    exclusions: tuple[Exclusion | str, ...] = ()
    completed: tuple[WorkItem | str, ...] = ()
    open_questions: tuple[OpenQuestion | str, ...] = ()
    rejected_paths: tuple[RejectedPath | str, ...] = ()
    decisions: tuple[Decision | str, ...] = ()
    assumptions: tuple[Assumption | str, ...] = ()
    claims: tuple[Claim | str, ...] = ()
    none: tuple[str, ...] = ()
    hold: bool = False
    key: str | None = None
    again: int = 0


# The fields that describe the task. A program can say no more about it than this.
_BRIEF: Final = tuple(name for name in BriefRequest.__struct_fields__ if name in HandoffMessage.__struct_fields__)


class ReportMessage(Struct, frozen=True, kw_only=True):
    """The report of a run: its result, open questions, rejected paths, decisions and claims."""

    result: str = ""
    value: Any = None
    completed: tuple[WorkItem | str, ...] = ()
    open_questions: tuple[OpenQuestion | str, ...] = ()
    rejected_paths: tuple[RejectedPath | str, ...] = ()
    decisions: tuple[Decision | str, ...] = ()
    assumptions: tuple[Assumption | str, ...] = ()
    claims: tuple[Claim | str, ...] = ()
    confidence: int | None = None
    none: tuple[str, ...] = ()


class _Fail(Struct, frozen=True, kw_only=True):
    code: str
    message: str


_MESSAGES: Final[Mapping[str, DocumentReader[Any]]] = {
    "record": DocumentReader(RecordMessage),
    "call": DocumentReader(_Call),
    "read": DocumentReader(_Read),
    "attach": DocumentReader(AttachMessage),
    "checkpoint": DocumentReader(CheckpointMessage),
    "hand_off": DocumentReader(HandoffMessage),
    "grant": DocumentReader(_AskGrant),
    "acknowledge": DocumentReader(_Acknowledge),
    "report": DocumentReader(ReportMessage),
    "fail": DocumentReader(_Fail),
}


class Serving:
    """A conversation with a program: each message gets one answer, until it has reported or failed."""

    def __init__(self, run: "WorkingRun", tools: Mapping[str, Callable[..., Any]]) -> None:
        self._run = run
        self._tools = tools
        self._acts: Final[Mapping[str, Callable[[Any], object]]] = {
            "record": self._record,
            "call": self._call,
            "read": self._read,
            "attach": self._attach,
            "checkpoint": self._checkpoint,
            "hand_off": self._hand_off,
            "grant": self._tell_grant,
            "acknowledge": self._acknowledge,
            "report": self._report,
            "fail": self._fail,
        }
        self.failure: ProgramError | None = None
        self.reported = False

    def is_over(self) -> bool:
        """Return whether the program has reported or failed."""
        return self.reported or self.failure is not None

    def answer(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """Serve a request of a program, and return the answer. A refusal or an error is an answer too.

        Raises `CallSuspendedError` if a call is held and the attempt has to stop. Raises `FencedError` or
        `StreamClosedError` if the run is over.
        """
        asked = message.get("id")
        identifier = asked if isinstance(asked, str | int) and not isinstance(asked, bool) else None
        try:
            result = self._serve(message, identifier)
        except (CallSuspendedError, HandoffSuspendedError, FencedError, StreamClosedError):
            raise
        except (CallError, GrantError, HandoffError) as error:
            return {"id": identifier, "ok": False, "error": {"code": error.code, "message": sentence_for(error)}}
        except Exception as error:  # noqa: BLE001 - errors of tools and values are for the program to handle
            fault = {"code": code_of(error), "message": readable(str(error))}
            return {"id": identifier, "ok": False, "error": fault}
        answer = {"id": identifier, "ok": True, "result": result}
        # Nothing is said where there is nothing to say: most programs never see this field.
        if not self.is_over() and (news := self._run.news()):
            answer["revisions"] = [tell_revision(one) for one in news]
        return answer

    def _serve(self, message: Mapping[str, Any], identifier: str | int | None) -> object:
        kind = message.get("type")
        if not isinstance(kind, str) or kind not in self._acts:
            raise InvalidValueError("type", f"is one of {', '.join(self._acts)}")
        last = kind in {"report", "fail"}
        if identifier is None and (message.get("id") is not None or not last):
            raise InvalidValueError("id", "is a text or an integer, by which you know the answer again")
        said = {name: value for name, value in message.items() if name not in {"id", "type"}}
        return self._acts[kind](_MESSAGES[kind].read(said, kind))

    def _record(self, asked: RecordMessage) -> object:
        (item,) = self._run.record(item_of(asked))
        return {"item": item.id}

    def _call(self, asked: _Call) -> object:
        function = self._tools.get(asked.tool)
        if function is None:
            known = ", ".join(self._tools) or "none"
            raise InvalidValueError("call.tool", f"there is no {asked.tool}; the tools are: {known}")
        result = self._run.call(function, **asked.arguments)
        return _bytes(result) if isinstance(result, bytes) else plain(result)

    def _read(self, asked: _Read) -> object:
        return _bytes(self._run.read(asked.name))

    def _attach(self, asked: AttachMessage) -> object:
        return {"item": attach_to(self._run, asked).id}

    def _checkpoint(self, asked: CheckpointMessage) -> object:
        self._run.checkpoint(asked.messages)
        return {}

    def _hand_off(self, asked: HandoffMessage) -> object:
        handoff = self._run.hand_off(**offer_of(asked))
        result = handoff.result()
        if not result.delivered:
            # A handoff carried by the caller runs here and now, or never: no worker will claim it.
            result = handoff.run() if asked.carrier is Carrier.CALLER else handoff.wait()
        return tell_result(result)

    def _tell_grant(self, _: _AskGrant) -> object:
        return tell_grant(self._run.grant())

    def _acknowledge(self, asked: _Acknowledge) -> object:
        self._run.acknowledge(asked.revision)
        return {}

    def _report(self, asked: ReportMessage) -> object:
        self._run.report(report_of(asked))
        self.reported = True
        return {}

    def _fail(self, asked: _Fail) -> object:
        self.failure = ProgramError(asked.code, asked.message)
        return {}


def item_of(asked: RecordMessage) -> ItemValue:
    """Return the item that somebody wants to write down. Raises `InvalidValueError`."""
    recorded = _RECORDED.get(asked.item.type)
    if recorded is None:
        raise InvalidValueError("record.item.type", f"is one of {', '.join(_RECORDED)}")
    return recorded.read(asked.item.value, "record.item.value")


def attach_to(run: "WorkingRun", asked: AttachMessage) -> Item:
    """Attach a file or a text to a run. Raises `InvalidValueError` unless it is exactly one of the two."""
    if (asked.text is None) == (asked.base64 is None):
        raise InvalidValueError("attach", "has either a text or base64")
    return run.attach(
        asked.name,
        asked.text if asked.text is not None else _decoded(asked.base64 or ""),
        media_type=asked.media_type,
        source=asked.source,
        untrusted=asked.untrusted,
    )


def offer_of(asked: HandoffMessage) -> dict[str, Any]:
    """Return the arguments for `hand_off` of a run."""
    return {
        "to": asked.to,
        "task": asked.task,
        "may": asked.may,
        "brief": BriefRequest(**{name: getattr(asked, name) for name in _BRIEF}),
        "items": items_by_part({name: getattr(asked, name) for name in ITEM_KINDS}),
        "deadline": asked.deadline,
        "carrier": asked.carrier,
        "hold": asked.hold,
        "handling": Handling(key=asked.key, again=asked.again),
    }


def report_of(asked: ReportMessage) -> Report:
    """Return the report of a run. Raises `InvalidValueError`."""
    parts = {name: part for name, part in asdict(asked).items() if name != "value"}
    value = None if asked.value is None else json.dumps(asked.value, allow_nan=False, ensure_ascii=False)
    return Report(value=value, **parts)


def tell_result(result: Result) -> dict[str, Any]:
    """Return the result of a handoff as JSON: its state, and its report or why there is none."""
    held = result.state is State.HELD and result.attempt == 0
    return {
        "handoff": result.handoff,
        "state": result.state,
        "delivered": result.delivered,
        "attempt": result.attempt,
        "report": None if result.report is None else tell_value(result.report),
        "value": result.value,
        "reason": sentence_for(HandoffHeldError(result.handoff)) if held else result.reason,
        "question": result.question,
    }


def _bytes(data: bytes) -> dict[str, str]:
    return {"base64": b64encode(data).decode("ascii")}


def _decoded(text: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise InvalidValueError("attach.base64", "is not base64") from None
