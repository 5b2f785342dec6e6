"""Counts that no other program on the machine can change: Python calls, SQL statements, pages written."""

import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from types import CodeType, FrameType
from typing import Any, Self


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """What happened in one process: so far, or between two moments."""

    calls: int  # of Python functions, in all threads
    statements: int  # of SQL; BEGIN, SAVEPOINT and COMMIT are some
    steps: int  # that SQLite's virtual machine took for them
    pages: int  # frames of the write-ahead log

    def since(self, before: "Counts") -> "Counts":
        """Return what was added to an earlier count."""
        return Counts(
            calls=self.calls - before.calls,
            statements=self.statements - before.statements,
            steps=self.steps - before.steps,
            pages=self.pages - before.pages,
        )


class Tally:
    """Counts while it stands. Threads and connections that were there before are not seen: open what is measured in it.

    Everything is several times as slow meanwhile, so nothing may be timed.
    """

    def __init__(self, *, sql: bool = True) -> None:
        self._sql = sql
        self._calls: list[list[int]] = []
        self._pages: dict[int, int] = {}
        self._statements = 0
        self._steps = 0

    def __enter__(self) -> Self:
        if self._sql:
            import apsw  # noqa: PLC0415 - whoever counts what an import costs must not have imported it here

            apsw.connection_hooks.append(self._watch)
        threading.setprofile(self._begin_thread)
        sys.setprofile(self._begin_thread)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)
        threading.setprofile(None)
        if self._sql:
            import apsw  # noqa: PLC0415 - as above

            apsw.connection_hooks.remove(self._watch)

    def read(self) -> Counts:
        """Return what was counted so far."""
        return Counts(
            calls=sum(calls for (calls,) in self._calls),
            statements=self._statements,
            steps=self._steps,
            pages=sum(self._pages.values()),
        )

    def _begin_thread(self, frame: FrameType, event: str, arg: object) -> None:
        # A number for each thread: two that add to one number lose calls.
        number = [0]
        self._calls.append(number)
        count = _counter(number, frozenset({self._end_statement.__code__, self._watch.__code__}))
        sys.setprofile(count)
        count(frame, event, arg)

    def _watch(self, connection: Any) -> None:  # noqa: ANN401 - apsw may not be imported
        import apsw  # noqa: PLC0415 - as above

        connection.trace_v2(apsw.SQLITE_TRACE_PROFILE, self._end_statement, id=self)

    def _end_statement(self, event: dict[str, Any]) -> None:
        # Asked now and not in the end: a connection that was closed has forgotten.
        connection = event["connection"]
        self._pages[id(connection)] = connection.status(_CACHE_WRITE)[0]
        self._steps += event["stmt_status"]["SQLITE_STMTSTATUS_VM_STEP"]
        self._statements += 1


_CACHE_WRITE = 9  # SQLITE_DBSTATUS_CACHE_WRITE: pages that went into the log, without those of a checkpoint


def _counter(number: list[int], ours: frozenset[CodeType]) -> Callable[[FrameType, str, object], None]:
    def count(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code not in ours:
            number[0] += 1

    return count
