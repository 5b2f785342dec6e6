"""Lets workers wait for work: the server notifies one of them when there is something to claim.

A notification is only a hint. It may go to a worker that has just died, or miss one that begins to wait while an offer
is being committed. So a waiting worker looks again after a short while, and then from time to time.
"""

import random
import secrets
import threading
import time
from collections.abc import Collection
from contextlib import suppress
from typing import Final

import psycopg

from batonpass.errors import StoreError
from batonpass.model.base.ids import AgentId
from batonpass.store.port import Wake
from batonpass.store.postgres.connections import Connections
from batonpass.store.postgres.leases import STATEMENTS
from batonpass.store.postgres.prepared_statements import Connection, ask

_WAIT: Final = STATEMENTS["wait"]
_IS_FREE: Final = STATEMENTS["is_free"]
_STOP_WAITING: Final = STATEMENTS["stop_waiting"]

_MICROS: Final = 1_000_000
_SLICE_SECONDS: Final = 0.25  # a waiting worker learns within this time that it is to stop
_SECOND_LOOK_SECONDS: Final = 0.1  # an offer that was being committed when we began to wait is visible by then
_SPREAD_SECONDS: Final = 0.5  # all waiting workers learn when a lease runs out; this keeps them from coming at once


class Notifications:
    """Waits for work, with one connection per worker that waits."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._idle: list[_Listener] = []
        self._lock = threading.Lock()
        self._closed = False

    def wait(self, agents: Collection[AgentId], seconds: float, stop: threading.Event) -> Wake:
        """Wait until there is work for one of these agents or something is due, the time is over, or `stop` is set.

        Returns at once if the server cannot be reached.
        """
        try:
            listener = self._take()
        except StoreError:
            return Wake.UNTOLD
        try:
            told = listener.wait(list(agents), seconds, stop)
        except psycopg.Error:
            listener.close()
            return Wake.UNTOLD
        except BaseException:
            listener.close()
            raise
        self._give_back(listener)
        return told

    def close(self) -> None:
        """Close the idle listeners now, and the others when they come back."""
        with self._lock:
            self._closed, idle, self._idle = True, self._idle, []
        for listener in idle:
            listener.close()

    def _take(self) -> "_Listener":
        with self._lock:
            if self._idle:
                return self._idle.pop()
        return _Listener(self._connections.new())

    def _give_back(self, listener: "_Listener") -> None:
        with self._lock:
            if not self._closed:
                self._idle.append(listener)
                return
        listener.close()


class _Listener:
    """A connection that listens on a channel of its own."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._channel = f"batonpass_{secrets.token_hex(8)}"

    def close(self) -> None:
        with suppress(psycopg.Error):
            self._connection.close()

    def register(self, agents: list[AgentId], seconds: float) -> float | None:
        """Ask to be notified for so long; return in how many seconds something is due, None if nothing is."""
        given = {"channel": self._channel, "agents": agents, "wait_for": int(seconds * _MICROS)}
        ((due,),) = ask(self._connection, _WAIT, given)
        return None if due is None else max(due, 0) / _MICROS

    def wait(self, agents: list[AgentId], seconds: float, stop: threading.Event) -> Wake:
        due = self.register(agents, seconds)
        end = time.monotonic() + seconds
        spread = random.uniform(0, _SPREAD_SECONDS)  # noqa: S311 - no secret
        due_at = end if due is None else time.monotonic() + due + spread
        if self._hears_of_work(agents, min(end, due_at), stop):
            return Wake.WORK
        self.stop(agents if stop.is_set() else [])
        return Wake.DUE if due_at < end else Wake.NOTHING

    def _hears_of_work(self, agents: list[AgentId], end: float, stop: threading.Event) -> bool:
        # From now on we are notified of new offers. Earlier ones are visible already, so one look finds them.
        for seconds in (0.0, _SECOND_LOOK_SECONDS):
            if self._hears(min(time.monotonic() + seconds, end), stop):
                return True
            if ask(self._connection, _IS_FREE, {"agents": agents}) == [(True,)]:
                self.stop([])
                return True
        return self._hears(end, stop)

    def _hears(self, end: float, stop: threading.Event) -> bool:
        # A notification that came with an answer is buffered already, and no more input may follow.
        if self._connection.pgconn.notifies() is not None:
            return True
        while not stop.is_set() and (left := end - time.monotonic()) > 0:
            if any(self._connection.notifies(timeout=min(left, _SLICE_SECONDS), stop_after=1)):
                return True
        return False

    def stop(self, pass_on: list[AgentId]) -> None:
        """Ask for no more notifications. If one came meanwhile, it is passed on to another worker for these agents."""
        ask(self._connection, _STOP_WAITING, {"channel": self._channel, "agents": pass_on})
