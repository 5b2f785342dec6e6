"""A process that exchanges lines with us. It never blocks us, leaves no process behind, and its last words are kept."""

import os
import selectors
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from queue import SimpleQueue
from typing import IO, Final, Self, TypeVar

from batonpass.errors import RunnerError

Line = TypeVar("Line", bytes, bytearray)

LONGEST_LINE: Final = 16 * 1024 * 1024

_CHUNK: Final = 65_536
_LAST_WORDS: Final = 2000
_BYTES_EACH: Final = 4  # at most, for one character
_PATIENCE: Final = 1.0  # seconds; only a process that left our process group can keep these threads waiting


class LineTooLongError(Exception):
    """A line is longer than allowed."""


class Process:
    """A program in a process group of its own. Leaving the context kills the whole group."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        cwd: str | os.PathLike[str] | None = None,
        env: Mapping[str, str] | None = None,
        timeout: timedelta | None = None,
    ) -> None:
        try:
            self._process = subprocess.Popen(  # noqa: S603 - the caller's own command, as a list, without a shell
                list(command),
                cwd=cwd,
                env=None if env is None else dict(env),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
                bufsize=0,
            )
        except (OSError, ValueError) as error:
            raise RunnerError(f"{' '.join(command)!r} cannot be started: {error}") from error
        self.timed_out = False
        self._outgoing: SimpleQueue[bytes | None] = SimpleQueue()
        self._words = bytearray()
        self._gone, self._going = os.pipe()
        self._timers: list[threading.Timer] = []
        self._threads = [
            threading.Thread(target=work, daemon=True) for work in (self._write, self._listen, self._watch)
        ]
        for thread in self._threads:
            thread.start()
        if timeout is not None:
            self._end_after(timeout, self._time_out)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for timer in self._timers:
            timer.cancel()
            timer.join()
        self._kill()
        writing, listening, watching = self._threads
        watching.join()
        # From here on the id may belong to another process, so nobody may signal it any more.
        self._process.wait()
        self._outgoing.put(None)
        writing.join(_PATIENCE)
        listening.join(_PATIENCE)
        for descriptor in (self._gone, self._going):
            os.close(descriptor)
        self._stdout.close()

    @property
    def exit_code(self) -> int | None:
        """Return the exit code, once the context is left. A signal is a negative number."""
        return self._process.returncode

    @property
    def last_words(self) -> str:
        """Return the end of its stderr."""
        return bytes(self._words).decode("utf-8", "replace").strip()[-_LAST_WORDS:]

    def send(self, line: bytes) -> None:
        """Queue a line for its stdin. The caller does not wait until the program reads it."""
        self._outgoing.put(line + b"\n")

    def hang_up(self, patience: timedelta) -> None:
        """Close its stdin, and kill it if it has not ended after `patience`."""
        self._outgoing.put(None)
        self._end_after(patience, self._kill)

    def lines(self) -> Iterator[bytes]:
        """Yield its output line by line, until it has ended and everything is read. Raises `LineTooLongError`."""
        descriptor = self._stdout.fileno()
        os.set_blocking(descriptor, False)
        buffer, searched, gone = bytearray(), 0, False
        with selectors.DefaultSelector() as selector:
            selector.register(descriptor, selectors.EVENT_READ)
            selector.register(self._gone, selectors.EVENT_READ)
            while True:
                if not gone:
                    gone = any(key.fd == self._gone for key, _ in selector.select())
                try:
                    chunk = os.read(descriptor, _CHUNK)
                except BlockingIOError:
                    if gone:
                        break  # a process that left the group may keep the pipe open for ever
                    continue
                if not chunk:
                    break
                buffer += chunk
                while (end := buffer.find(b"\n", searched)) >= 0:
                    yield _bounded(bytes(buffer[:end]))
                    del buffer[: end + 1]
                    searched = 0
                searched = len(_bounded(buffer))
        if buffer:
            yield bytes(buffer)

    @property
    def _stdout(self) -> IO[bytes]:
        return _opened(self._process.stdout)

    def _end_after(self, duration: timedelta, act: Callable[[], None]) -> None:
        timer = threading.Timer(duration.total_seconds(), act)
        timer.daemon = True
        self._timers.append(timer)
        timer.start()

    def _time_out(self) -> None:
        self.timed_out = True
        self._kill()

    def _kill(self) -> None:
        # The group has the id of its leader, and nobody else gets that id before we wait for the leader, which we do
        # last.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def _write(self) -> None:
        with suppress(BrokenPipeError), _opened(self._process.stdin) as stdin:
            while (line := self._outgoing.get()) is not None:
                unwritten = memoryview(line)
                while unwritten:
                    unwritten = unwritten[os.write(stdin.fileno(), unwritten) :]

    def _listen(self) -> None:
        with _opened(self._process.stderr) as stderr:
            while chunk := os.read(stderr.fileno(), _CHUNK):
                self._words += chunk
                del self._words[: -_LAST_WORDS * _BYTES_EACH]

    def _watch(self) -> None:
        """Wait until it has ended, and kill its remaining processes: an attempt that is over does nothing more."""
        if hasattr(os, "waitid"):
            os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOWAIT)
        else:  # pragma: no cover - macOS
            self._process.wait()
        self._kill()
        os.write(self._going, b".")


def _opened(stream: IO[bytes] | None) -> IO[bytes]:
    if stream is None:
        raise AssertionError("all three are pipes")
    return stream


def _bounded(line: Line) -> Line:
    if len(line) > LONGEST_LINE:
        raise LineTooLongError
    return line
