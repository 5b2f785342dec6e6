"""Looks after the tasks that are not over: tells their callers the news, and ends their roots when they are over.

The open roots in the ledger are the list of these tasks, so a restart forgets nothing. A root is ended after its
caller was told, so a caller that was not told before a crash is told after it: at least once.
"""

import asyncio
import json
import logging
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Final, TypeVar

import anyio
from a2a.types.a2a_pb2 import Task, TaskPushNotificationConfig, TaskState, TaskStatus
from a2a.utils.constants import A2A_JSON_MEDIA_TYPE
from a2a.utils.proto_utils import to_stream_response
from google.protobuf.json_format import MessageToDict

from batonpass.dispatch.egress import Egress
from batonpass.errors import EgressError, EgressRefusedError, HandoffEndedError, KeyMissingError
from batonpass.model.base.ids import RunId, StreamId
from batonpass.model.ledger.run import RunState
from batonpass.records.text import read_receipt
from batonpass.server.a2a.incoming_task import CALLER, IncomingTask, IncomingTasks, task_of
from batonpass.server.a2a.push_configs import PushConfigs
from batonpass.server.a2a.task_document import OVER, task_document
from batonpass.server.a2a.task_events import TaskEvent, changes
from batonpass.server.app import in_thread
from batonpass.server.control_plane import ControlPlane
from batonpass.server.ledger_pulse import LOOK_EVERY, LedgerPulse

Told = TypeVar("Told")

_LOG: Final = logging.getLogger("batonpass.server.a2a")
_TRIES: Final = 8
_FIRST_PAUSE: Final = 0.5  # seconds; it doubles
_THREADS: Final = 8


class TaskKeeper:
    """Looks after the tasks of one server, in its event loop."""

    def __init__(self, plane: ControlPlane, tasks: IncomingTasks, pushes: PushConfigs, egress: Egress) -> None:
        self._plane = plane
        self._tasks = tasks
        self._pushes = pushes
        self._egress = egress
        self._pulse = LedgerPulse(plane.relay.store)
        self._threads = anyio.CapacityLimiter(_THREADS)
        self._kept: dict[RunId, asyncio.Task[bool]] = {}

    async def keep(self) -> None:
        """Look after every task, until the server ends."""
        position = -1
        while True:
            last = await self._pulse.last_position(self._run)
            if last != position:
                position = last
                for root in await self._open_roots():
                    if root not in self._kept:
                        self._kept[root] = asyncio.create_task(self._look_after(root))
                        self._kept[root].add_done_callback(partial(self._done, root))
            await asyncio.sleep(LOOK_EVERY)

    def _done(self, root: RunId, ended: "asyncio.Task[bool]") -> None:
        if ended.cancelled():
            return
        # One that could not be ended is not tried again at each look: the next start of a server does.
        if (error := ended.exception()) is not None:
            _LOG.error("the task of %s is not looked after any more: %s", root, type(error).__name__)
        elif ended.result():
            self._kept.pop(root, None)

    async def _open_roots(self) -> list[RunId]:
        def find() -> list[RunId]:
            if not self._plane.relay.store.founded():
                return []
            with self._plane.relay.store.view() as view:
                return [run.id for run in view.find_runs(agent=CALLER, states=(RunState.OPEN,), roots=True)]

        return await self._run(find)

    async def _look_after(self, root: RunId) -> bool:
        """Look after a task until it is over. Return whether its root is ended."""
        before: Task | None = None
        told: set[str] = set()
        position = -1
        while True:
            while (last := await self._pulse.last_position(self._run)) <= position:  # noqa: ASYNC110 - as elsewhere
                await asyncio.sleep(LOOK_EVERY)
            position = last
            task, now, began = await self._run(partial(self._read, root))
            if task.handoff is None:
                continue  # it is being offered just now
            for event in [now] if before is None else changes(before, now, began):
                told |= await self._tell(task.id, event)
            before = now
            if now.status.state in OVER:
                break
        return await self._run(partial(self._end, task, told))

    def _read(self, root: RunId) -> tuple[IncomingTask, Task, TaskStatus | None]:
        with self._plane.relay.store.view() as view:
            task = task_of(view, view.get_run(root))
            began = None
            if task.handoff is not None and task.handoff.run is not None:
                began = TaskStatus(state=TaskState.TASK_STATE_WORKING)
                began.timestamp.FromDatetime(read_receipt(view.get_receipt_at(StreamId(task.handoff.run), 1)).at)
            return task, task_document(view, task), began

    def _end(self, task: IncomingTask, told: Collection[str]) -> bool:
        try:
            self._tasks.close(task)
        except HandoffEndedError:
            pass  # another server of this ledger was faster
        except KeyMissingError:
            return False  # its key is with the server that began it, and that one ends it
        # What a caller gave after it was over stays: it asks for that again, although nothing more is told.
        for config in told:
            self._pushes.remove(task.id, config)
        return True

    async def _tell(self, task: str, event: TaskEvent) -> set[str]:
        """Tell everybody who wants to know, and return the ids of their configurations."""
        configs = await self._run(partial(self._pushes.find, task))
        body = json.dumps(MessageToDict(to_stream_response(event))).encode()
        if configs:
            await asyncio.gather(*(self._push(config, body) for config in configs))
        return {config.id for config in configs}

    async def _push(self, config: TaskPushNotificationConfig, body: bytes) -> None:
        pause = _FIRST_PAUSE
        for _ in range(_TRIES):
            try:
                send = partial(
                    self._egress.send, "POST", config.url, headers=headers_of(config), body=body, wants_body=False
                )
                answer = await self._run(send)
                if answer.is_good:
                    return
            except EgressRefusedError:
                return  # it was allowed when it was given, and is not any more
            except EgressError:
                pass
            await asyncio.sleep(pause)
            pause *= 2
        _LOG.warning("nobody took the notifications about %s", config.task_id)

    async def _run(self, act: Callable[[], Told]) -> Told:
        told: Told = await in_thread(self._threads, act)
        return told


def headers_of(config: TaskPushNotificationConfig) -> Mapping[str, str]:
    """Return the headers of a notification: the token that the caller gave to recognise it by."""
    told = {"Content-Type": A2A_JSON_MEDIA_TYPE}
    if config.token:
        told["X-A2A-Notification-Token"] = config.token
    if config.authentication.scheme and config.authentication.credentials:
        told["Authorization"] = f"{config.authentication.scheme} {config.authentication.credentials}"
    return told
