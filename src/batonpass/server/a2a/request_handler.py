"""The requests of A2A, whichever way they came: each method calls the use case that every other door calls.

The SDK reads requests and writes answers, for JSON-RPC, HTTP+JSON and gRPC. It keeps no task: the ledger does.
"""

import logging
import secrets
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from datetime import timedelta
from functools import partial
from typing import Any, Final, TypeVar, cast

import anyio
from a2a.server.context import ServerCallContext
from a2a.server.request_handlers.request_handler import RequestHandler, validate_request_params
from a2a.types.a2a_pb2 import AgentCard as CardDocument
from a2a.types.a2a_pb2 import (
    CancelTaskRequest,
    DeleteTaskPushNotificationConfigRequest,
    GetExtendedAgentCardRequest,
    GetTaskPushNotificationConfigRequest,
    GetTaskRequest,
    ListTaskPushNotificationConfigsRequest,
    ListTaskPushNotificationConfigsResponse,
    ListTasksRequest,
    ListTasksResponse,
    Message,
    SendMessageRequest,
    SubscribeToTaskRequest,
    Task,
    TaskPushNotificationConfig,
    TaskState,
    TaskStatus,
)
from a2a.utils.constants import DEFAULT_LIST_TASKS_PAGE_SIZE
from a2a.utils.errors import (
    A2AError,
    InternalError,
    InvalidParamsError,
    PushNotificationNotSupportedError,
    TaskNotCancelableError,
    TaskNotFoundError,
    UnsupportedOperationError,
)
from a2a.utils.input_mode_validator import validate_input_modes
from a2a.utils.task import (
    ListTasksCursor,
    apply_history_length,
    decode_list_tasks_cursor,
    encode_list_tasks_cursor,
    validate_history_length,
    validate_page_size,
)
from msgspec import Struct

from batonpass.errors import (
    AccessError,
    BatonpassError,
    ContentTooLargeError,
    EgressError,
    HandoffEndedError,
    IllegalTransitionError,
    InvalidValueError,
    LookupFailedError,
    TooManyRequestsError,
)
from batonpass.handoff.history.travelled_lineage import URI, SentLineage, read_lineage_sent
from batonpass.model.base.ids import StreamId
from batonpass.model.baton.card import Card
from batonpass.records.text import read_receipt
from batonpass.relay import signer_of
from batonpass.server.a2a.caller import A2aCaller
from batonpass.server.a2a.card_document import card_document, path_of
from batonpass.server.a2a.incoming_task import IncomingMessage, IncomingTask, IncomingTasks
from batonpass.server.a2a.message_parts import ANSWER, document_of, extension_of, fingerprint_of, parts_of
from batonpass.server.a2a.push_configs import PushConfigs
from batonpass.server.a2a.settings import A2aSettings
from batonpass.server.a2a.task_document import OVER, task_document
from batonpass.server.a2a.task_events import SETTLED, TaskEvent, follow_task
from batonpass.server.app import in_thread
from batonpass.server.control_plane import ControlPlane
from batonpass.server.ledger_pulse import LedgerPulse

Told = TypeVar("Told")

_LOG: Final = logging.getLogger("batonpass.server.a2a")
AGENT_ASKED: Final = "batonpass.agent_asked"  # who asks whom, in the context of a request
_THREADS: Final = 40
# Somebody who waits longer asks again; the task goes on.
LONGEST_WAIT: Final = timedelta(minutes=10)
_LONGEST_ID: Final = 200


class AgentAsked(Struct, frozen=True, kw_only=True, eq=False):
    """Who asks, and which agent."""

    caller: A2aCaller
    card: Card


class A2aRequests(RequestHandler):
    """Answers the requests of A2A from the ledger."""

    def __init__(self, plane: ControlPlane, settings: A2aSettings, tasks: IncomingTasks, pushes: PushConfigs) -> None:
        self._plane = plane
        self._settings = settings
        self._pushes = pushes
        self._tasks = tasks
        self._pulse = LedgerPulse(plane.relay.store)
        self._threads = anyio.CapacityLimiter(_THREADS)
        self._streams = 0

    @validate_request_params
    async def on_message_send(self, params: SendMessageRequest, context: ServerCallContext) -> Task | Message:
        """Take a message, and wait until its task is over or needs somebody, unless told not to."""
        asked = asked_of(context)
        validate_history_length(params.configuration)
        told = await self._run(partial(self._send, asked, params))
        if not params.configuration.return_immediately:
            with anyio.move_on_after(LONGEST_WAIT.total_seconds()):
                async for _ in self._follow(asked, told):
                    pass
        return apply_history_length(await self._run(partial(self._read, asked, told)), params.configuration)

    @validate_request_params
    async def on_message_send_stream(
        self, params: SendMessageRequest, context: ServerCallContext
    ) -> AsyncGenerator[TaskEvent]:
        """Take a message, and tell the events of its task."""
        asked = asked_of(context)
        validate_history_length(params.configuration)
        told = await self._run(partial(self._send, asked, params))
        async for event in self._stream(asked, told):
            yield apply_history_length(event, params.configuration) if isinstance(event, Task) else event

    @validate_request_params
    async def on_subscribe_to_task(
        self, params: SubscribeToTaskRequest, context: ServerCallContext
    ) -> AsyncGenerator[TaskEvent]:
        """Tell the events of a task from now on."""
        asked = asked_of(context)
        task = await self._run(partial(self._read, asked, params.id))
        if task.status.state in OVER:
            raise UnsupportedOperationError(message="The task is over; there is nothing to follow")
        # Whoever follows a task hears of its end, whoever has to act before that.
        async for event in self._stream(asked, params.id, until=OVER):
            yield event

    @validate_request_params
    async def on_get_task(self, params: GetTaskRequest, context: ServerCallContext) -> Task | None:
        """Return a task of the caller's own."""
        asked = asked_of(context)
        validate_history_length(params)
        return apply_history_length(await self._run(partial(self._read, asked, params.id)), params)

    @validate_request_params
    async def on_list_tasks(self, params: ListTasksRequest, context: ServerCallContext) -> ListTasksResponse:
        """Return the tasks of the caller, those that changed last first."""
        asked = asked_of(context)
        validate_history_length(params)
        if params.HasField("page_size"):
            validate_page_size(params.page_size)
        return await self._run(partial(self._list, asked, params))

    @validate_request_params
    async def on_cancel_task(self, params: CancelTaskRequest, context: ServerCallContext) -> Task | None:
        """Withdraw a task. An agent that works on it can do nothing more."""
        asked = asked_of(context)
        return await self._run(partial(self._cancel, asked, params.id))

    @validate_request_params
    async def on_create_task_push_notification_config(
        self, params: TaskPushNotificationConfig, context: ServerCallContext
    ) -> TaskPushNotificationConfig:
        """Remember where a caller wants to be told about a task."""
        asked = self._pushing(context)

        def act() -> TaskPushNotificationConfig:
            return self._pushes.add(self._find(asked, params.task_id).id, params)

        return await self._run(act)

    @validate_request_params
    async def on_get_task_push_notification_config(
        self, params: GetTaskPushNotificationConfigRequest, context: ServerCallContext
    ) -> TaskPushNotificationConfig:
        """Return where a caller wants to be told."""
        asked = self._pushing(context)

        def act() -> TaskPushNotificationConfig:
            return self._pushes.get(self._find(asked, params.task_id).id, params.id)

        return await self._run(act)

    @validate_request_params
    async def on_list_task_push_notification_configs(
        self, params: ListTaskPushNotificationConfigsRequest, context: ServerCallContext
    ) -> ListTaskPushNotificationConfigsResponse:
        """Return every address at which a caller wants to be told about a task."""
        asked = self._pushing(context)

        def act() -> ListTaskPushNotificationConfigsResponse:
            found = self._pushes.find(self._find(asked, params.task_id).id)
            return ListTaskPushNotificationConfigsResponse(configs=found)

        return await self._run(act)

    @validate_request_params
    async def on_delete_task_push_notification_config(
        self, params: DeleteTaskPushNotificationConfigRequest, context: ServerCallContext
    ) -> None:
        """Forget where a caller wanted to be told."""
        asked = self._pushing(context)
        await self._run(lambda: self._pushes.remove(self._find(asked, params.task_id).id, params.id))

    async def on_get_extended_agent_card(
        self, params: GetExtendedAgentCardRequest, context: ServerCallContext
    ) -> CardDocument:
        """Say that there is no other card."""
        del params, context
        raise UnsupportedOperationError(message="Everybody who is let in gets the same card")

    def _pushing(self, context: ServerCallContext) -> AgentAsked:
        asked = asked_of(context)
        if not asked.caller.is_known:
            raise PushNotificationNotSupportedError(message="Without a token there are no push notifications")
        return asked

    def _send(self, asked: AgentAsked, params: SendMessageRequest) -> str:
        """Take a message, and return the id of its task."""
        message = Message()
        message.CopyFrom(params.message)
        push = params.configuration.task_push_notification_config
        pushes = params.configuration.HasField("task_push_notification_config")
        if pushes:
            if not asked.caller.is_known:
                raise PushNotificationNotSupportedError(message="Without a token there are no push notifications")
            self._pushes.require_usable(push)
        for name in ("message_id", "context_id"):
            if len(getattr(message, name)) > _LONGEST_ID:
                raise InvalidParamsError(message=f"{name} has at most {_LONGEST_ID} characters")
        if not message.parts:
            raise InvalidParamsError(message="A message has at least one part")
        validate_input_modes(message, card_document(asked.card, self._settings, signer_of(self._plane.relay)))
        task = self._answer(asked, message) if message.task_id else self._begin(asked, message)
        if pushes:
            self._pushes.add(task.id, push)
        return task.id

    def _begin(self, asked: AgentAsked, message: Message) -> IncomingTask:
        fingerprint = fingerprint_of(message)
        message.context_id = message.context_id or str(uuid.uuid4())
        sent = self._lineage(asked, message)
        believed = None if sent is None or sent.key is None else self._settings.peers[sent.key]
        incoming = IncomingMessage(
            message=message.message_id,
            fingerprint=fingerprint,
            context=message.context_id,
            document=document_of(message),
            parts=parts_of(message),
            upstream=0 if sent is None else sent.depth,
            may=None if sent is None else sent.said.may,
            source="a2a" if believed is None else f"a2a peer {believed}",
        )
        return self._tasks.send(asked.caller, asked.card, incoming)

    def _lineage(self, asked: AgentAsked, message: Message) -> SentLineage | None:
        here = f"{self._settings.address}{path_of(asked.card.agent)}"
        return read_lineage_sent(
            extension_of(message, URI),
            pinned=self._settings.peers.keys(),
            message=message.message_id,
            audience=(here,),
            now=self._plane.clock.now(),
        )

    def _answer(self, asked: AgentAsked, message: Message) -> IncomingTask:
        task = self._find(asked, message.task_id)
        with self._plane.relay.store.view() as view:
            known = task_document(view, task, whole=True)
        if message.context_id and message.context_id != known.context_id:
            raise InvalidParamsError(message="The task is of another context")
        if message.message_id in {one.message_id for one in known.history}:
            return task  # it was taken before
        if known.status.state != TaskState.TASK_STATE_INPUT_REQUIRED:
            raise UnsupportedOperationError(message="The task takes no message now: it asked nothing")
        message.context_id = known.context_id
        number = len(known.history)  # the first message is the request
        self._tasks.answer(task, parts_of(message, ANSWER.format(number)), document_of(message))
        return task

    def _cancel(self, asked: AgentAsked, given: str) -> Task:
        task = self._find(asked, given)
        try:
            self._tasks.cancel(task, asked.caller, "its caller cancelled it over A2A")
        except (HandoffEndedError, IllegalTransitionError):
            raise TaskNotCancelableError from None
        return self._read(asked, given)

    def _find(self, asked: AgentAsked, given: str) -> IncomingTask:
        return self._tasks.find(asked.caller, asked.card.agent, given)

    def _read(self, asked: AgentAsked, given: str) -> Task:
        task = self._find(asked, given)
        with self._plane.relay.store.view() as view:
            return task_document(view, task)

    def _look(self, asked: AgentAsked, given: str) -> tuple[Task, TaskStatus | None]:
        task = self._find(asked, given)
        with self._plane.relay.store.view() as view:
            told = task_document(view, task)
            if task.handoff is None or task.handoff.run is None:
                return told, None
            began = TaskStatus(state=TaskState.TASK_STATE_WORKING)
            began.timestamp.FromDatetime(read_receipt(view.get_receipt_at(StreamId(task.handoff.run), 1)).at)
            return told, began

    def _list(self, asked: AgentAsked, params: ListTasksRequest) -> ListTasksResponse:
        found = self._tasks.find_all(asked.caller, asked.card.agent, params.context_id or None)
        with self._plane.relay.store.view() as view:
            told = [task_document(view, one) for one in found]
        if params.status:
            told = [one for one in told if one.status.state == params.status]
        if params.HasField("status_timestamp_after"):
            after = params.status_timestamp_after.ToNanoseconds()
            told = [one for one in told if one.status.timestamp.ToNanoseconds() >= after]
        told.sort(key=lambda one: _cursor(one).sort_key(), reverse=True)
        total = len(told)
        if params.page_token:
            cursor = decode_list_tasks_cursor(params.page_token)
            if cursor is None:
                raise InvalidParamsError(message="The page token is not one of ours")
            told = [one for one in told if _cursor(one).sort_key() < cursor.sort_key()]
        size = params.page_size or DEFAULT_LIST_TASKS_PAGE_SIZE
        page, rest = told[:size], told[size:]
        for one in page:
            if not params.include_artifacts:
                one.ClearField("artifacts")
        return ListTasksResponse(
            tasks=[apply_history_length(one, params) for one in page],
            next_page_token=encode_list_tasks_cursor(_cursor(page[-1])) if rest else "",
            page_size=size,
            total_size=total,
        )

    async def _stream(
        self, asked: AgentAsked, task: str, until: frozenset[TaskState] = SETTLED
    ) -> AsyncIterator[TaskEvent]:
        if self._streams >= self._plane.limits.streams:
            raise UnsupportedOperationError(message="Too many streams are open; ask for the task instead")
        self._streams += 1
        try:
            async for event in self._follow(asked, task, until):
                yield event
        finally:
            self._streams -= 1

    def _follow(self, asked: AgentAsked, task: str, until: frozenset[TaskState] = SETTLED) -> AsyncIterator[TaskEvent]:
        return follow_task(partial(self._look, asked, task), self._pulse, self._run, until=until)

    async def _run(self, act: Callable[[], Told]) -> Told:
        """Run a use case in a worker thread, and tell its errors as A2A does."""
        try:
            told: Told = await in_thread(self._threads, act)
        except A2AError:
            raise
        except BatonpassError as error:
            raise told_error(error) from error
        except Exception as error:
            # The SDK would tell the client what it was.
            number = secrets.token_hex(4)
            _LOG.exception("%s: a request over A2A failed", number)
            raise InternalError(message=f"It is a fault of ours; its number is {number}") from error
        return told


def asked_of(context: ServerCallContext) -> AgentAsked:
    """Return who asks whom, as the door found out before it read the request."""
    found = context.state.get(AGENT_ASKED)
    if not isinstance(found, AgentAsked):
        raise InternalError
    return found


def told_error(error: BatonpassError) -> A2AError:
    """Return an error of ours as A2A tells it, with our code and sentence."""
    said = {"message": str(error), "data": {"code": error.code}}
    if isinstance(error, LookupFailedError):
        return TaskNotFoundError()
    if isinstance(error, InvalidValueError | ContentTooLargeError | EgressError):
        return InvalidParamsError(**cast("Any", said))
    if isinstance(error, AccessError | TooManyRequestsError | HandoffEndedError | IllegalTransitionError):
        return UnsupportedOperationError(**cast("Any", said))
    return InternalError(**cast("Any", {"data": {"code": error.code}}))


def _cursor(task: Task) -> ListTasksCursor:
    return ListTasksCursor(timestamp_ns=task.status.timestamp.ToNanoseconds(), task_id=task.id)
