"""Locks for keys: of several who run an agent under the same key, one works and the others wait for its result."""

import asyncio
import fcntl
import os
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, Protocol

from batonpass.aio import AsyncRelay
from batonpass.aio.threads import in_thread
from batonpass.handoff.live.faces import pauses
from batonpass.handoff.sessions.keyed_root import name_of_key
from batonpass.relay import home_of
from batonpass.store.home import prepare_home

_TURNS: Final = "turns"


class _Lock(Protocol):
    def take(self) -> bool: ...

    def leave(self) -> None: ...


class _LockHere:
    """A lock among the threads of this process, for a ledger without a directory."""

    _taken: Final[set[tuple[int, str]]] = set()
    _lock: Final = threading.Lock()

    def __init__(self, store: object, name: str) -> None:
        self._name = id(store), name

    def take(self) -> bool:
        with self._lock:
            free = self._name not in self._taken
            self._taken.add(self._name)
            return free

    def leave(self) -> None:
        with self._lock:
            self._taken.discard(self._name)


class _LockInFile:
    """A lock among the processes that share a directory. The system frees the lock of a process that is killed."""

    def __init__(self, home: Path, name: str) -> None:
        self._path = home / _TURNS / name
        self._file = -1

    def take(self) -> bool:
        prepare_home(self._path.parent)
        file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(file)
            return False
        if not self._is_still(file):
            os.close(file)
            return False
        self._file = file
        return True

    def leave(self) -> None:
        # Removed while the lock is held: whoever opened it before notices that it is no longer this file.
        self._path.unlink(missing_ok=True)
        os.close(self._file)

    def _is_still(self, file: int) -> bool:
        try:
            return self._path.stat().st_ino == os.fstat(file).st_ino
        except FileNotFoundError:
            return False


@asynccontextmanager
async def key_lock(relay: AsyncRelay, agent: str, key: str | None) -> AsyncIterator[None]:
    """Wait until nobody else on this machine runs the agent under this key. Without a key, nobody waits."""
    if key is None:
        yield
        return
    name, home = name_of_key(agent, key), home_of(relay.sync)
    lock: _Lock = _LockHere(relay.store, name) if home is None else _LockInFile(home, name)
    for pause in pauses(None):
        await asyncio.sleep(pause)
        if await in_thread(lock.take, undo=lambda taken: lock.leave() if taken else None):
            break
    try:
        yield
    finally:
        await in_thread(lock.leave)
