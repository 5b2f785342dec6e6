"""The events of a task, as they happen: read from the ledger, so that a late client misses nothing."""

import asyncio
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Final

from a2a.types.a2a_pb2 import Task, TaskArtifactUpdateEvent, TaskState, TaskStatus, TaskStatusUpdateEvent

from batonpass.server.a2a.task_document import OVER, WAITS
from batonpass.server.ledger_pulse import LOOK_EVERY, InThread, LedgerPulse

TaskEvent = Task | TaskStatusUpdateEvent | TaskArtifactUpdateEvent

SETTLED: Final = OVER | WAITS


async def follow_task(
    read: Callable[[], tuple[Task, TaskStatus | None]],
    pulse: LedgerPulse,
    in_thread: InThread,
    *,
    until: frozenset[TaskState],
) -> AsyncIterator[TaskEvent]:
    """Yield a task, and then each change of it, until its state is one of these.

    `read` returns the task as it is, and when its agent began, if it did.
    """
    position = await pulse.last_position(in_thread)
    known, _ = await _read(read, in_thread)
    yield known
    while known.status.state not in until:
        while (last := await pulse.last_position(in_thread)) <= position:  # noqa: ASYNC110 - other processes record too, and set no event
            await asyncio.sleep(LOOK_EVERY)
        position = last
        now, began = await _read(read, in_thread)
        for event in changes(known, now, began):
            yield event
        known = now


async def _read(
    read: Callable[[], tuple[Task, TaskStatus | None]], in_thread: InThread
) -> tuple[Task, TaskStatus | None]:
    found = await in_thread(partial(read))
    if not isinstance(found, tuple):
        raise TypeError("a task is read as a pair")
    return found


def changes(before: Task, now: Task, began: TaskStatus | None) -> list[TaskEvent]:
    """Return the events of a task between two looks. Its artifacts are told before it is over."""
    if before.status == now.status:
        return []
    told: list[TaskEvent] = []
    seen = {before.status.state, now.status.state}
    if began is not None and TaskState.TASK_STATE_WORKING not in seen and now.status.state in OVER:
        # It was begun and ended between our looks. Both happened.
        told.append(TaskStatusUpdateEvent(task_id=now.id, context_id=now.context_id, status=began))
    known = {one.artifact_id for one in before.artifacts}
    told += [
        TaskArtifactUpdateEvent(task_id=now.id, context_id=now.context_id, artifact=one, last_chunk=True)
        for one in now.artifacts
        if one.artifact_id not in known
    ]
    told.append(
        TaskStatusUpdateEvent(task_id=now.id, context_id=now.context_id, status=now.status, metadata=now.metadata)
    )
    return told
