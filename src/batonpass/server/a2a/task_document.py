"""A handoff as a task of A2A: its state, the question or the reason in words, and its results."""

import json
import re
from collections.abc import Iterator
from datetime import datetime
from typing import Final

from a2a.types.a2a_pb2 import Artifact as TaskArtifact
from a2a.types.a2a_pb2 import Message, Part, Role, Task, TaskState, TaskStatus
from google.protobuf.json_format import ParseDict, ParseError

from batonpass.errors import NotFoundError
from batonpass.handoff.history.travelled_lineage import URI
from batonpass.handoff.transfer.result import Result, read_result
from batonpass.model.base.content_names import MESSAGE as REASON
from batonpass.model.base.ids import RunId, StreamId
from batonpass.model.base.kinds import Kind
from batonpass.model.base.lifecycle import State
from batonpass.model.baton.items import Artifact
from batonpass.model.bodies.body import HandoffCompleted, HandoffFailed, RunRecorded
from batonpass.model.ledger.run import Handoff
from batonpass.records.item import find_body, find_value
from batonpass.records.text import read_receipt, read_texts
from batonpass.server.a2a.incoming_task import MESSAGE, IncomingTask
from batonpass.server.a2a.message_parts import LINK
from batonpass.store.port import LedgerView, ReceiptQuery

STATES: Final = {
    State.HELD: TaskState.TASK_STATE_AUTH_REQUIRED,
    State.OFFERED: TaskState.TASK_STATE_SUBMITTED,
    State.READY: TaskState.TASK_STATE_SUBMITTED,
    State.CLAIMED: TaskState.TASK_STATE_SUBMITTED,
    State.ASKED: TaskState.TASK_STATE_INPUT_REQUIRED,
    State.RUNNING: TaskState.TASK_STATE_WORKING,
    State.COMPLETED: TaskState.TASK_STATE_COMPLETED,
    State.VERIFIED: TaskState.TASK_STATE_COMPLETED,
    # Somebody looked at the result and it does not hold: it would be wrong to say that the task was done.
    State.REFUTED: TaskState.TASK_STATE_FAILED,
    State.FAILED: TaskState.TASK_STATE_FAILED,
    State.EXPIRED: TaskState.TASK_STATE_FAILED,
    State.CANCELLED: TaskState.TASK_STATE_CANCELED,
    State.DECLINED: TaskState.TASK_STATE_REJECTED,
    State.DENIED: TaskState.TASK_STATE_REJECTED,
}
_ADDRESS: Final = re.compile(rb"https?://[!-~]{1,2000}")
OVER: Final = frozenset(
    {
        TaskState.TASK_STATE_COMPLETED,
        TaskState.TASK_STATE_FAILED,
        TaskState.TASK_STATE_CANCELED,
        TaskState.TASK_STATE_REJECTED,
    }
)
# Nothing happens until somebody acts: whoever waits is told.
WAITS: Final = frozenset({TaskState.TASK_STATE_INPUT_REQUIRED, TaskState.TASK_STATE_AUTH_REQUIRED})
_CLOSED: Final = frozenset({State.COMPLETED, State.VERIFIED, State.REFUTED, State.FAILED})


def task_document(view: LedgerView, task: IncomingTask, *, whole: bool = True) -> Task:
    """Return a task as A2A tells it. Without `whole`, its messages and results are left out."""
    messages = list(_messages(view, task.root.id)) if whole else []
    first = messages[0] if messages else next(_messages(view, task.root.id), None)
    told = Task(id=task.id, context_id="" if first is None else first.context_id)
    for one in messages:
        one.task_id = task.id
        told.history.append(one)
    if task.handoff is None:
        told.status.CopyFrom(_refused(view, task, told.context_id))
        return told
    result = read_result(view, task.handoff)
    told.status.CopyFrom(_status(view, task.handoff, result, told.context_id))
    if whole and task.handoff.state in {State.COMPLETED, State.VERIFIED}:
        told.artifacts.extend(_artifacts(view, task.handoff, result))
    # What our own clients go by: whether somebody verified the result, which A2A has no word for.
    told.metadata.update({URI: {"state": str(task.handoff.state), "attempt": task.handoff.attempt}})
    return told


def _messages(view: LedgerView, root: RunId) -> Iterator[Message]:
    """Yield the messages of the caller, in the order in which they came."""
    for stored in view.find_receipts(ReceiptQuery(stream=StreamId(root), kind=Kind.RUN_RECORDED)):
        body = read_receipt(stored).body
        for ref in body.items if isinstance(body, RunRecorded) else ():
            value = find_value(view, ref.item)
            if isinstance(value, Artifact) and value.name == MESSAGE:
                yield _message(find_body(view, value.body))


def _message(body: bytes | None) -> Message:
    try:
        told = Message()
        ParseDict(json.loads(body or b"{}"), told, ignore_unknown_fields=True)
    except (ValueError, ParseError):
        return Message()
    return told


def _refused(view: LedgerView, task: IncomingTask, context: str) -> TaskStatus:
    status = TaskStatus(state=TaskState.TASK_STATE_REJECTED)
    for stored in view.find_receipts(ReceiptQuery(stream=StreamId(task.root.id), kind=Kind.HANDOFF_FAILED)):
        receipt = read_receipt(stored)
        words = read_texts(view, receipt).get(REASON)
        said = "" if words is None else words.words or ""
        code = receipt.body.error if isinstance(receipt.body, HandoffFailed) else ""
        status.message.CopyFrom(_said(task.id, context, f"{said} [{code}]", "refused"))
        status.timestamp.FromDatetime(receipt.at)
    if not status.HasField("timestamp"):
        status.timestamp.FromDatetime(task.root.ended_at or task.root.started_at)
    return status


def _status(view: LedgerView, handoff: Handoff, result: Result, context: str) -> TaskStatus:
    status = TaskStatus(state=STATES[handoff.state])
    status.timestamp.FromDatetime(_changed_at(view, handoff))
    words = result.question if handoff.state is State.ASKED else result.reason
    if handoff.state is State.HELD:
        words = "It waits until somebody here approves it."
    elif handoff.state in {State.COMPLETED, State.VERIFIED} and result.report is not None:
        words = result.report.result
    if words:
        status.message.CopyFrom(_said(handoff.id, context, words, f"{handoff.state}-{handoff.attempt}"))
    return status


def _said(task: str, context: str, words: str, which: str) -> Message:
    # Its id is made from what it says: whoever asks twice is not told two things.
    return Message(
        message_id=f"{task}-{which}",
        context_id=context,
        task_id=task,
        role=Role.ROLE_AGENT,
        parts=[Part(text=words)],
    )


def _changed_at(view: LedgerView, handoff: Handoff) -> datetime:
    """Return when the present state began."""
    if handoff.run is not None and handoff.state is State.RUNNING:
        return read_receipt(view.get_receipt_at(StreamId(handoff.run), 1)).at
    found = [_last_of(view, StreamId(handoff.id))]
    if handoff.run is not None and handoff.state in _CLOSED:
        found.append(_last_of(view, StreamId(handoff.run)))
    times = [at for at in found if at is not None]
    return max(times) if times else read_receipt(view.get_receipt_at(StreamId(handoff.parent), handoff.seq)).at


def _last_of(view: LedgerView, stream: StreamId) -> datetime | None:
    try:
        return read_receipt(view.get_receipt_at(stream, view.get_stream(stream).seq)).at
    except NotFoundError:
        return None


def _artifacts(view: LedgerView, handoff: Handoff, result: Result) -> Iterator[TaskArtifact]:
    """Yield the results of a task: the report, and the files that the agent gives back."""
    report = result.report
    if report is not None and (report.result or report.value is not None):
        told = TaskArtifact(artifact_id=f"{handoff.id}-result", name="result")
        if report.value is not None and report.value != json.dumps(report.result):
            data = Part(media_type="application/json")
            ParseDict(json.loads(report.value), data.data)
            told.parts.append(data)
        elif report.result:
            told.parts.append(Part(text=report.result, media_type="text/plain"))
        yield told
    if handoff.run is None:
        return
    closed = read_receipt(view.get_receipt_at(StreamId(handoff.run), view.get_stream(StreamId(handoff.run)).seq)).body
    for ref in closed.gives if isinstance(closed, HandoffCompleted) else ():
        value = find_value(view, ref.item)
        body = find_body(view, value.body) if isinstance(value, Artifact) else None
        if isinstance(value, Artifact) and body is not None:
            yield TaskArtifact(artifact_id=ref.item, name=value.name, parts=[_file(value, body)])


def _file(value: Artifact, body: bytes) -> Part:
    """Return a file as a part: a link if it is only that, as links come in; else its bytes, texts as well."""
    if value.name.endswith(LINK) and _ADDRESS.fullmatch(body):
        return Part(url=body.decode("ascii"), filename=value.name.removesuffix(LINK), media_type=value.media_type)
    # Nobody says that the bytes of a text are UTF-8.
    return Part(raw=body, filename=value.name, media_type=value.media_type)
