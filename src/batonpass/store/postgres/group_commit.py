"""Group commit: appends that are under way at the same time share a round trip and a commit.

A commit costs the server more than the rows that it writes. So an append that comes while `_AT_ONCE` others are at the
server waits for one of them to end. Then one of those that waited writes for all of them. An append never waits longer
than `_COMPANY_SECONDS`: then it goes to the server with the others that wait by then.

A thread that writes for others may be interrupted at any moment (Ctrl-C in the main thread). So the others do not wait
for a message from it, but for a lock that it holds by `with`, which the interpreter frees however the thread leaves.
"""

import threading
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

import psycopg

from batonpass.errors import StoreError
from batonpass.model.ledger.entry import Entry
from batonpass.store.postgres.append import Append, write_each, write_together
from batonpass.store.postgres.connections import Connection, Connections
from batonpass.store.postgres.failures import is_lost

_COMPANY_SECONDS: Final = 0.01
_AT_ONCE: Final = 2  # while one is synced to the disk, the server can work on the next
_MOST: Final = 32  # each of up to a megabyte; PostgreSQL tracks 64 subtransactions at no extra cost


class _Member:
    """An append that waits for its turn."""

    __slots__ = ("append", "at_work", "chosen", "entry", "leader", "turn", "written")

    def __init__(self, append: Append, entry: Entry) -> None:
        self.append = append
        self.entry = entry
        self.chosen = False  # it leads the next group, in the place of one that has ended
        self.leader: _Member | None = None  # another member, which writes it
        self.written = False
        self.turn = threading.Lock()  # released when it is chosen or written; only a hint, which may come twice or late
        self.turn.acquire()
        self.at_work = threading.Lock()  # held by its thread until its append was written or tried

    def wake(self) -> None:
        """Wake its thread, which then looks at its state."""
        with suppress(RuntimeError):  # it was woken already
            self.turn.release()


class Group:
    """The appends of one process. Safe to use from many threads."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._waiting: deque[_Member] = deque()
        self._lock = threading.Lock()
        self._under_way = 0

    def append(self, append: Append) -> None:
        """Append, alone or in a group, and return when it is durable.

        Raises the errors of `Append.run`, or a `StoreError`.
        """
        entry = append.entry
        if entry is None:
            self._connections.repeat(append.run)
            return
        member: _Member | None = None
        begun = False
        try:
            with self._lock:
                if self._under_way < _AT_ONCE:
                    self._under_way += 1
                    begun = True
                else:
                    member = _Member(append, entry)
                    self._waiting.append(member)
            if begun:
                self._connections.repeat(append.run)
        finally:
            if begun:
                self._pass_on()
        if member is None:
            return
        with member.at_work:
            self._wait(member)
        # Refused, in doubt, or locked out by others. Alone, it learns the reason, or waits for the lock.
        if not member.written:
            self._connections.repeat(append.run)

    def _wait(self, member: _Member) -> None:
        """Wait for our turn; return when the append was written or tried, by another member or here with a group."""
        try:
            member.turn.acquire(timeout=_COMPANY_SECONDS)
            members = self._gather(member)
        except BaseException:
            self._leave(member)
            raise
        if members:
            self._lead(members)
        elif member.leader is not None:
            with member.leader.at_work:
                pass  # it has written our append, or tried to

    def _gather(self, leader: _Member) -> list[_Member]:
        """Return the group that this member leads, itself first; nobody if another member writes it already."""
        with self._lock:
            if leader.leader is not None or not (leader.chosen or leader in self._waiting):
                return []  # the latter if whoever was about to write it was interrupted: then it goes alone
            if not leader.chosen:  # it has waited long enough, and goes beside those that are at the server
                self._waiting.remove(leader)
                self._under_way += 1
                leader.chosen = True  # from now on it has a place, to pass on
            members = [leader, *(self._waiting.popleft() for _ in range(min(len(self._waiting), _MOST - 1)))]
            for other in members[1:]:
                other.leader = leader
        return members

    def _leave(self, member: _Member) -> None:
        """Stop waiting, because this thread is interrupted. A member that writes the append already goes on with it."""
        with self._lock, suppress(ValueError):
            self._waiting.remove(member)
        if member.chosen:
            self._pass_on()

    def _pass_on(self) -> None:
        """Let the next member that waits lead in our place, if there is one.

        The place is kept for it: an append that comes before it is awake joins its group, instead of going ahead alone.
        """
        with self._lock:
            following = self._waiting.popleft() if self._waiting and self._under_way <= _AT_ONCE else None
            if following is None:
                self._under_way -= 1
            else:
                following.chosen = True
        if following is not None:
            following.wake()

    def _lead(self, members: Sequence[_Member]) -> None:
        """Write for all members, tell them, and let the next one lead. A single member runs its own append."""
        try:
            if len(members) > 1:
                self._write(members)
            else:
                self._connections.repeat(members[0].append.run)
                members[0].written = True
        finally:
            # First the next group, then our members: it can go to the server while they wake.
            self._pass_on()
            for member in members[1:]:
                member.wake()

    def _write(self, members: Sequence[_Member]) -> None:
        """Write for all members in one commit. If the connection breaks, each member asks for its own outcome."""
        # In doubt until we know the outcome, also if this thread is interrupted in between.
        _doubt(members, is_so=True)
        written = [False] * len(members)
        try:
            with self._connections.writer(self._connections.patience()) as connection:
                try:
                    written = _write_all(connection, [member.entry for member in members])
                except psycopg.Error as error:
                    if is_lost(error, connection):
                        connection.close()
                        # Each member stays in doubt: before it tries again by itself, it asks the server whether its
                        # bytes are there.
                        return
        except StoreError:
            pass  # there is no connection; each member will report that by itself
        _doubt(members, is_so=False)
        for member, done in zip(members, written, strict=True):
            member.written = done


def _write_all(connection: Connection, entries: Sequence[Entry]) -> list[bool]:
    """Write all entries with one statement, or else each apart in one commit; return which were written."""
    if write_together(connection, entries):
        return [True] * len(entries)
    return write_each(connection, entries)


def _doubt(members: Sequence[_Member], *, is_so: bool) -> None:
    for member in members:
        member.append.in_doubt = is_so
