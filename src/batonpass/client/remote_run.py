"""A run whose ledger is elsewhere: a control plane judges and records, the tools are called here.

The key of the run is here too: the control plane asks for each signature, and gets it only for acts that the program
asked for.
"""

import json
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn, cast
from urllib.parse import quote

from msgspec.structs import asdict

from batonpass.client.absent_ledger import AbsentDesk
from batonpass.client.answered_values import told_handoff, told_item
from batonpass.client.exchange import PlaneExchange
from batonpass.client.remote_handoff import RemoteHandoff
from batonpass.client.run_words import (
    attach_act,
    begin_act,
    checkpoint_act,
    close_act,
    finish_act,
    offer_act,
    record_act,
)
from batonpass.errors import (
    AmbiguousIdError,
    CallSuspendedError,
    HandoffSuspendedError,
    InvalidValueError,
    NotFoundError,
    NotOverHttpError,
    PolicyRefusedError,
)
from batonpass.handoff.calls.pending_call import Begun, Replayed
from batonpass.handoff.live.faces import LiveHandoff, LiveRun
from batonpass.handoff.programs.program_briefing import tell_value
from batonpass.handoff.programs.runners import Runner
from batonpass.handoff.runtime.faults import code_of, words_of
from batonpass.handoff.runtime.run_state import Holding
from batonpass.handoff.tools.json_values import give_back, keep_result, plain
from batonpass.handoff.tools.tool_call import ToolCall
from batonpass.handoff.transfer.offer_request import ITEM_KINDS, GivenItem
from batonpass.ledger.position import Working
from batonpass.model.base.durations import moment_after
from batonpass.model.base.ids import AgentId, CallId, Digest
from batonpass.model.base.kinds import Mode
from batonpass.model.base.lifecycle import Carrier
from batonpass.model.baton.brief_request import BriefRequest
from batonpass.model.baton.items import Artifact, Item, ItemValue, Report
from batonpass.model.bodies.body import Outcome
from batonpass.model.grants.grant_request import GrantRequest, grant_asked
from batonpass.model.ledger.run import Run
from batonpass.model.policy.offer_options import Handling
from batonpass.wire.documents import to_document

if TYPE_CHECKING:
    from batonpass.handoff.runtime.desk import Desk

_JSON: Final = "application/json"
# Methods that need the ledger itself, or the machine on which it is.
_THERE: Final = frozenset(
    (
        *("baton", "notes", "earlier", "session", "label", "taint", "revisions", "news", "acknowledge", "held_work"),
        *("relax", "endorse", "note_untrusted", "deny", "remember", "settle", "add_intent", "prove", "grant"),
        *("save_session", "spend", "require_room", "is_limited", "watch_files", "unexplained"),
    )
)


class RemoteRun(LiveRun):
    """A run whose ledger is elsewhere. Methods that need the ledger itself raise `NotOverHttpError`."""

    def __init__(
        self,
        exchange: PlaneExchange,
        run: Run,
        mode: Mode,
        *,
        told: Mapping[str, Any],
        runners: Mapping[AgentId, Runner],
        work_tree: Path,
    ) -> None:
        holding = Holding(working=Working(run=run, mode=mode))
        self.told = told  # the first message of the protocol for programs: task, baton, grant, what happened earlier
        self._exchange = exchange
        self._work_tree = work_tree
        self._ends: timedelta | None = None
        super().__init__(cast("Desk", AbsentDesk(work_tree)), holding, runners)

    def __getattribute__(self, name: str) -> Any:  # noqa: ANN401 - whatever it is
        # Some of these would answer from the part that is here: a wrong answer is worse than none.
        if name in _THERE:
            raise NotOverHttpError(f"`{name}` of a run")
        return super().__getattribute__(name)

    @property
    def task(self) -> str:
        """Return the exact task; empty for a root run, which has an intent instead."""
        return str(self.told.get("task", ""))

    def traceparent(self) -> str:
        """Return the `traceparent` header for callees of this run, as the control plane said it."""
        return str(self.told.get("traceparent", ""))

    def messages(self) -> object | None:
        """Return the messages of the last checkpoint of an earlier attempt; None if there is none."""
        return cast("Mapping[str, Any]", self.told.get("earlier", {})).get("messages")

    def record(self, *items: ItemValue, by: str | None = None) -> tuple[Item, ...]:
        """Record items; they travel with every handoff of this run from now on."""
        if by is not None:
            raise NotOverHttpError("to record in somebody else's name")
        written = []
        for item in items:
            said = {"item": {"type": type(item).__name__, "value": to_document(item)}}
            told = self._exchange.act(f"/v1/runs/{self.id}/items", said, record_act(self.id, (item,)))
            written.append(told_item(told, item))
        self._holding.add(*written)
        return tuple(written)

    def attach(
        self,
        name: str,
        body: bytes | str,
        *,
        media_type: str | None = None,
        source: str | None = None,
        untrusted: bool = False,
    ) -> Item:
        """Attach a file or a text as an artifact. `untrusted` marks content from outside: data, never instructions."""
        data = body.encode() if isinstance(body, str) else bytes(body)
        said: dict[str, Any] = {"name": name, "media_type": media_type, "source": source, "untrusted": untrusted}
        said |= {"text": body} if isinstance(body, str) else {"base64": b64encode(data).decode("ascii")}
        act = attach_act(self.id, name, data, untrusted=untrusted)
        told = self._exchange.act(f"/v1/runs/{self.id}/artifacts", said, act)
        value = Artifact(
            name,
            body=told["item"],
            sha256=Digest(sha256(data).hexdigest()),
            size=len(data),
            media_type=media_type or ("text/plain" if isinstance(body, str) else "application/octet-stream"),
            source=source or f"agent:{self.agent}",
            untrusted=untrusted,
        )
        return told_item(told, value)

    def read(self, name: str) -> bytes:
        """Return the bytes of an artifact. Raises `NotFoundError`, `ContentErasedError`."""
        return self._exchange.read(f"/v1/runs/{self.id}/attached/{quote(name, safe='')}", run=self.id).body

    def checkpoint(self, messages: object) -> None:
        """Save a checkpoint from which the next attempt can go on: the messages of a model, or any JSON."""
        said = json.loads(json.dumps(messages, allow_nan=False))
        act = checkpoint_act(self.id, said)
        self._exchange.act(f"/v1/runs/{self.id}/checkpoints", {"messages": said}, act)

    def note_message(self, message: object, *, number: int | None = None) -> None:
        """Remember nothing: the last message of a model is noted where the ledger is."""

    def _begin(self, call: ToolCall[Any]) -> Begun | Replayed:
        declared = call.declared
        if declared.credential is not None:
            raise NotOverHttpError(f"the credential of {declared.name}")
        call.require_sound()
        arguments = dict(call.arguments)
        named = call.target if declared.named is None else declared.named
        said = {
            "tool": declared.name,
            "arguments": arguments,
            "target": named,
            "action": declared.action,
            "reads": declared.reads,
            "reversible": declared.reversible,
            "external": declared.external,
            "idempotent": declared.idempotent,
            "costly": declared.costly,
            "effect": declared.effect,
            "readers": declared.readers,
            "scripts": list(declared.scripts),
        }
        path = f"/v1/runs/{self.id}/calls"
        told = self._exchange.act(path, said, begin_act(self.id, declared.name, arguments))
        if told["replayed"]:
            kept, _ = keep_result(told["value"])
            decoded = declared.decode is not None and told["value"] is not None
            return Replayed(give_back(kept, _JSON, declared.decode) if decoded else told["value"])
        key = None if told["key"] is None else Digest(told["key"])
        return Begun(call=CallId(told["call"]), key=key, attempt=self.attempt)

    def _finish(self, begun: Begun, call: ToolCall[Any], value: object) -> None:
        declared = call.declared
        kept = plain(value) if declared.encode is None else json.loads(declared.encode(value))
        cost = None if declared.cost is None else str(declared.cost(value))
        said = {"result": kept, "external": declared.external, "cost": cost}
        path = f"/v1/runs/{self.id}/calls/{begun.call}/outcome"
        self._exchange.act(path, said, finish_act(self.id, begun.call, kept, None))

    def _fail(self, begun: Begun, call: ToolCall[Any], error: BaseException, *, made: bool = True) -> None:
        if made and not isinstance(error, Exception):
            return  # it was interrupted, and nobody knows how far it came: it has no outcome, so it is in doubt
        code = code_of(error)
        said = {"error": {"code": code, "message": words_of(error)}, "external": call.declared.external}
        path = f"/v1/runs/{self.id}/calls/{begun.call}/outcome"
        self._exchange.act(path, said, finish_act(self.id, begun.call, None, code))

    def hand_off(
        self,
        to: str,
        task: str,
        *,
        may: Sequence[str] = (),
        grant: GrantRequest | None = None,
        criteria: Sequence[str] = (),
        brief: BriefRequest | None = None,
        items: Iterable[GivenItem] = (),
        deadline: datetime | timedelta | str | None = None,
        carrier: Carrier | str = Carrier.CALLER,
        hold: bool = False,
        run: Runner | None = None,
        handling: Handling | None = None,
    ) -> LiveHandoff:
        """Hand off one task to an agent. The handoff is durable when this returns, as at a relay in this process.

        A policy or a selection of items for this handoff alone raises `NotOverHttpError`.
        """
        chosen = handling or Handling()
        if chosen.policy is not None or chosen.carry is not None:
            raise NotOverHttpError("a policy or a selection of items for one handoff")
        said = {
            **_told_brief(brief, criteria),
            **told_items(items),
            **told_grant(grant_asked(may, grant)),
            "to": to,
            "task": task,
            "deadline": _told_moment(moment_after("deadline", deadline, datetime.now(UTC))),
            "carrier": Carrier(carrier),
            "hold": hold,
            "key": chosen.key,
            "again": chosen.again,
            "changed_inputs": chosen.inputs,
            "retries": chosen.retries,
        }
        told = self._exchange.act(f"/v1/runs/{self.id}/handoffs", said, offer_act(self.id, to, task))
        known = told_handoff(told)
        return RemoteHandoff(
            self._exchange,
            known.id,
            opener=self._opened,
            runners=self._runners,
            parent=self._holding,
            runner=run,
            answerer=chosen.answer,
            reused=bool(told.get("reused")),
        )

    def handoff(self, handoff: str) -> LiveHandoff:
        """Return a handoff that this run made: by its id, the end of its id, or its agent."""
        told = self._exchange.read_json(f"/v1/handoffs?parent={self.id}&limit=200", run=self.id)["items"]
        found = [one for one in told if one["to"] == handoff or (handoff and one["id"].endswith(handoff))]
        if not found:
            raise NotFoundError("handoff of this run", handoff)
        if len(found) > 1:
            raise AmbiguousIdError("handoff", handoff, tuple(one["id"] for one in found))
        return RemoteHandoff(
            self._exchange,
            told_handoff(found[0]).id,
            opener=self._opened,
            runners=self._runners,
            parent=self._holding,
        )

    def refuse_handoff(self, to: str, task: str, refusal: PolicyRefusedError) -> NoReturn:
        """Raise the refusal. It is not recorded: only the control plane decides about handoffs."""
        del to, task
        raise refusal

    def _end(self, outcome: Outcome, error: BaseException | None) -> None:
        if self._closed:
            return
        if isinstance(error, CallSuspendedError | HandoffSuspendedError):
            # Somebody has to decide. An attempt has ended there already, and a root stays open.
            self._closed = True
            return
        report = self._holding.report
        said: dict[str, Any] = {"outcome": outcome, "report": None if report is None else _told_report(report)}
        if error is not None:
            said["error"] = {"code": code_of(error), "message": words_of(error)}
        told = self._exchange.act(f"/v1/runs/{self.id}/close", said, close_act(self.id, outcome, report))
        again = told.get("again_after")
        self._holding.tried_again_after = None if again is None else timedelta(seconds=again)
        self._closed = True

    def _opened(self, told: Mapping[str, Any], run: Run) -> "RemoteRun":
        return RemoteRun(
            self._exchange,
            run,
            Mode(told["mode"]),
            told=told["task"],
            runners=self._runners,
            work_tree=self._work_tree,
        )


def _told_report(report: Report) -> dict[str, Any]:
    return tell_value(report)


def _told_brief(brief: BriefRequest | None, criteria: Sequence[str]) -> dict[str, Any]:
    if brief is None:
        return {"criteria": list(criteria)}
    if criteria and brief.criteria:
        raise InvalidValueError("criteria", "are given by criteria= and by brief=; say them in one place")
    if isinstance(brief.reasoning, Item):
        raise NotOverHttpError("reasoning that is an artifact")
    said = {name: to_document(part) for name, part in asdict(brief).items() if part not in (None, ())}
    return said | {"criteria": list(criteria or brief.criteria)}


def told_items(items: Iterable[GivenItem]) -> dict[str, Any]:
    """Return items by the names of their lists."""
    names = {kind: name for name, kind in ITEM_KINDS.items()}
    told: dict[str, Any] = {}
    for item in items:
        if type(item) not in names:
            raise InvalidValueError("items", f"has a {type(item).__name__}, which cannot be given to a handoff")
        told.setdefault(names[type(item)], []).append(to_document(item))
    return told


def told_grant(grant: GrantRequest | None) -> dict[str, Any]:
    """Return a grant as the interface takes it. Raises `NotOverHttpError` for a grant that it cannot express."""
    if grant is None:
        return {}
    if grant.max_depth is not None or (grant.limits is not None and not isinstance(grant.limits, str)):
        raise NotOverHttpError("a grant with limits that are no text, or with a greatest depth")
    until = moment_after("until", grant.until, datetime.now(UTC))
    return {
        "may": list(grant.may),
        "may_delegate": list(grant.may_delegate),
        "limits": grant.limits,
        "until": _told_moment(until),
    }


def _told_moment(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()
