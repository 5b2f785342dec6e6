"""The resident recorder: takes the events of one project from hook commands and returns the answers.

There is one per ledger and project, guaranteed by a lock that its starter hands over; a second one leaves. It listens
before it imports the rest of the package, so that hooks wait meanwhile and start no other recorder.
"""

import contextlib
import fcntl
import json
import os
import select
import signal
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

from batonpass.adapters.coders.client import LARGEST, LOCK_FD, LOG, HookInvocation, deny
from batonpass.adapters.coders.spool import drain, read_object
from batonpass.adapters.tool_kinds import Coder, as_coder

ASKED: Final = "?"  # sent instead of a stamp to ask who is there
IDLE: Final = 900.0  # seconds without an event until it leaves
BROKEN: Final = 10.0  # seconds until it leaves after the ledger could not be opened, so that another one tries
HUNG: Final = 60.0  # seconds until it gives up an event, and with it this process
_TICK: Final = 5.0
_TO_SEND: Final = 10.0
_AT_ONCE: Final = 64
_PAUSE: Final = 0.02
_IN_LINE: Final = 512
_HEAD: Final = 128
_CREDENTIALS: Final = struct.Struct("3i")
_LONGEST_LOG: Final = 1 << 20


class EventRecorder(Protocol):
    """Records events. Must be thread-safe."""

    def handle(self, event: Mapping[str, Any], hook_of: Coder, marks: frozenset[str]) -> Mapping[str, Any]:
        """Record an event and return the answer for its agent; an empty answer allows everything."""

    def note_gap(self, event: Mapping[str, Any] | None, reason: str, hook_of: Coder) -> None:
        """Record that an event was missed."""

    def close(self) -> None:
        """Close the ledger."""


class _Received(NamedTuple):
    """An event, the agent whose hook was called, and the marks of agents in the environment of that hook."""

    body: bytes
    hook_of: Coder
    marks: frozenset[str]


class Resident:
    """Serves hook commands until it is stopped, idle, or an event hangs."""

    def __init__(
        self, listener: socket.socket, call: HookInvocation, open_recorder: Callable[[], EventRecorder]
    ) -> None:
        self._listener = listener
        self._call = call
        self._open = open_recorder
        self._home = Path(call.home)
        self._place = self._find_place()
        self._recorder: EventRecorder | None = None
        self._problem: str | None = None
        self._opened = threading.Event()
        self._draining = threading.Lock()
        self._running: dict[int, float] = {}
        self._numbers = iter(range(1 << 62))
        self._last = time.monotonic()
        self._woken, self._wake = os.pipe()

    def serve(self) -> None:
        """Serve until it is time to leave. Accepted events are finished, unless they hang."""
        self._spawn(self._begin)
        try:
            while self._has_reason_to_stay():
                heard: list[int | socket.socket] = (
                    [self._woken] if len(self._running) >= _AT_ONCE else [self._woken, self._listener]
                )
                ready, _, _ = select.select(heard, [], [], _TICK if len(heard) > 1 else _PAUSE)
                if self._woken in ready:
                    break
                if ready:
                    self._spawn(self._attend, self._listener.accept()[0])
                else:
                    self._spawn(self._drain)
        finally:
            # First of all, so that new hooks find no socket and start another recorder once the lock is free.
            if self._find_place() == self._place:
                self._socket.unlink(missing_ok=True)
            self._listener.close()
        while self._running and not self._is_hung():
            time.sleep(_PAUSE)
        if self._recorder is not None and not self._running:
            self._recorder.close()

    def stop(self, *_: object) -> None:
        """Make `serve` return soon."""
        os.write(self._wake, b".")

    def _has_reason_to_stay(self) -> bool:
        if self._is_hung():
            _log(f"an event took more than {HUNG:g} seconds; another process takes over")
            return False
        if self._find_place() != self._place:
            return False  # the home was removed or replaced: hooks cannot find this process any more
        return time.monotonic() - self._last < (IDLE if self._problem is None else BROKEN)

    @property
    def _socket(self) -> Path:
        return self._home / f"{self._call.name}.sock"

    def _find_place(self) -> tuple[int, int] | None:
        try:
            found = self._socket.stat()
        except OSError:
            return None
        return found.st_dev, found.st_ino

    def _is_hung(self) -> bool:
        now = time.monotonic()
        return now - min(list(self._running.values()), default=now) > HUNG

    def _spawn(self, work: Callable[..., None], *arguments: object) -> None:
        """Run something in a daemon thread: one that hangs cannot be ended, and must not keep the process alive."""
        number = next(self._numbers)
        self._running[number] = time.monotonic()

        def run() -> None:
            try:
                work(*arguments)
            finally:
                del self._running[number]

        threading.Thread(target=run, daemon=True).start()

    def _begin(self) -> None:
        try:
            self._recorder = self._open()
        except Exception as error:  # noqa: BLE001 - any error is reported to the hooks
            self._problem = _sentence(error)
            _log(self._problem)
        finally:
            self._opened.set()
        self._drain()

    def _drain(self) -> None:
        if self._recorder is None or not self._draining.acquire(blocking=False):
            return
        try:
            drain(self._home, self._recorder.note_gap)
        except Exception as error:  # noqa: BLE001 - unrecorded gaps stay in the spool for the next time
            _log(f"the spool: {_sentence(error)}")
        finally:
            self._draining.release()

    def _attend(self, line: socket.socket) -> None:
        with line:
            try:
                self._last = time.monotonic()
                line.settimeout(_TO_SEND)
                received = self._received(line)
                if received is not None and not _is_gone(line):
                    line.sendall(b"taken\n")
                    line.sendall(self._answered(received))
            except OSError as error:
                _log(f"a hook command: {_sentence(error)}")

    def _received(self, line: socket.socket) -> "_Received | None":
        """Return the event that a hook command sends; None if it is not for this recorder."""
        if not is_ours(line):
            return None
        head, _, begun = _until_newline(line).partition(b"\n")
        stamp, length, agent, marks = [*head.decode("ascii", "replace").split(" "), "", "", ""][:4]
        if stamp == ASKED:
            line.sendall(f"here {self._call.stamp} {os.getpid()}\n".encode())
            return None
        if stamp != self._call.stamp:
            line.sendall(b"other\n")
            self.stop()
            return None
        if not length.isdigit() or int(length) > LARGEST:
            return None
        body = bytearray(begun)
        while len(body) < int(length):
            part = line.recv(1 << 20)
            if not part:
                return None
            body += part
        return _Received(bytes(body), as_coder(agent), frozenset(marks.split(",")) - {""})

    def _answered(self, received: "_Received") -> bytes:
        """Return the answer to an accepted event. Never raises."""
        # The hook command does not send an accepted event again. So a failure is recorded as a gap here, and only if
        # that fails too ("failed"), the command spools the event.
        self._opened.wait()
        if self._recorder is None:
            return f"failed {self._problem}\n".encode()
        event = read_object(received.body)
        try:
            if event is None:
                raise ValueError("the event is not a JSON object")  # noqa: TRY301 - one exit for all failures
            said = self._recorder.handle(event, received.hook_of, received.marks)
            answer = json.dumps(said).encode() if said else b""
        except Exception as error:  # noqa: BLE001 - an observed session goes on after any error
            why = _sentence(error)
            _log(why)
            try:
                self._recorder.note_gap(event, why, received.hook_of)
            except Exception:  # noqa: BLE001 - then the hook command spools the event
                return f"failed {why}\n".encode()
            answer = deny(received.body, why, received.hook_of) if self._call.enforce else b""
        return b"done %d\n" % len(answer) + answer


def listen(name: str) -> socket.socket:
    """Return a listening socket in this directory. The caller must hold the lock."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    fresh = f".{name}.{os.getpid()}"
    # Renamed only when it listens: nobody finds a socket that refuses, and a stale one is replaced.
    Path(fresh).unlink(missing_ok=True)
    listener.bind(fresh)
    Path(fresh).chmod(0o600)
    listener.listen(_IN_LINE)
    Path(fresh).rename(f"{name}.sock")
    return listener


def has_lock(name: str) -> bool:
    """Take the lock of the only recorder, unless the starter handed it over; return whether it is held."""
    try:
        ours = os.fstat(LOCK_FD)
        named = Path(f"{name}.lock").stat()
        handed = (ours.st_dev, ours.st_ino) == (named.st_dev, named.st_ino)
    except OSError:
        handed = False
    lock = LOCK_FD if handed else os.open(f"{name}.lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def is_ours(line: socket.socket) -> bool:
    """Return whether the peer has our uid. If the kernel does not tell, the directory's permissions decide."""
    if not hasattr(socket, "SO_PEERCRED"):
        return True
    told = line.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    return bool(_CREDENTIALS.unpack(told)[1] == os.geteuid())


def ask_who(call: HookInvocation, patience: float) -> str | None:
    """Return the stamp and the pid of a project's recorder; None if there is none, or it does not answer."""
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line:
        line.settimeout(patience)
        folder = os.open(call.home, os.O_RDONLY | os.O_DIRECTORY)
        try:
            # The path of a socket is limited to 107 bytes, so the directory is named by its descriptor.
            place = f"/proc/self/fd/{folder}"
            line.connect(f"{place if Path(place).exists() else call.home}/{call.name}.sock")
        finally:
            os.close(folder)
        line.sendall(f"{ASKED} 0\n".encode())
        word, _, rest = line.recv(_HEAD).decode("ascii", "replace").strip().partition(" ")
        return rest if word == "here" else None
    return None


def main() -> None:
    """Run as the recorder of a project, unless there is one."""
    call = HookInvocation(sys.argv[1:], dict(os.environ))
    os.umask(0o077)
    os.chdir(call.home)
    if not has_lock(call.name):
        return
    with contextlib.suppress(OSError):
        if Path(LOG).stat().st_size > _LONGEST_LOG:
            os.truncate(LOG, 0)
    listener = listen(call.name)
    os.chdir(call.project)
    resident = Resident(listener, call, lambda: open_recorder(call))
    signal.signal(signal.SIGTERM, resident.stop)
    signal.signal(signal.SIGINT, resident.stop)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    resident.serve()


def open_recorder(call: HookInvocation) -> EventRecorder:
    """Open the ledger of a project and return a recorder."""
    # Imported here, because it takes a quarter of a second, and hooks can already connect meanwhile.
    from batonpass.adapters.coders.session import hook_recorder  # noqa: PLC0415

    # A hook never creates a ledger: `batonpass init claude-code` does.
    return hook_recorder.open_recorder(
        Path(call.project), enforce=call.enforce, ledger=call.told, environment=call.environment, create=False
    )


def _is_gone(line: socket.socket) -> bool:
    """Return whether a hook command gave up; it has then spooled the event itself."""
    line.settimeout(0)
    try:
        return line.recv(1, socket.MSG_PEEK) == b""
    except BlockingIOError:
        return False
    finally:
        line.settimeout(_TO_SEND)


def _until_newline(line: socket.socket) -> bytes:
    head = b""
    while b"\n" not in head and len(head) < _HEAD:
        part = line.recv(1 << 20)
        if not part:
            break
        head += part
    return head


def _sentence(error: Exception) -> str:
    """Return an error as one line."""
    return " ".join(f"{getattr(error, 'code', type(error).__name__)}: {error}".split())


def _log(text: str) -> None:
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    with contextlib.suppress(OSError):
        os.write(2, f"{now} {os.getpid()} {text}\n".encode("utf-8", "replace"))


if __name__ == "__main__":
    main()
