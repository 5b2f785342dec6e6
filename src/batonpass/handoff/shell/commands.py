"""Running a command: a program with arguments, run once, limited in time and output. No process of it stays behind."""

import json
import os
import signal
import subprocess
import tempfile
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import IO, Any, Final

from msgspec import Struct
from msgspec.structs import asdict

from batonpass.errors import CommandTimeoutError
from batonpass.handoff.shell.environment import environment_of, find_program
from batonpass.handoff.tools.call_context import current_call
from batonpass.model.base.checks import shorten

KEPT: Final = 1024 * 1024  # bytes of each stream

_CHUNK: Final = 65_536
_PATIENCE: Final = 1.0  # seconds; only a process that left our process group can keep these threads waiting
_LAST_WORDS: Final = 500


class Finished(Struct, frozen=True, kw_only=True):
    """The end of a command and its output. If the output is too long, the middle is left out, with a note."""

    exit_code: int  # 128 plus the signal, if a signal ended it
    stdout: str
    stderr: str
    stdout_bytes: int  # of the whole output
    stderr_bytes: int
    stdout_sha256: str  # of the whole output
    stderr_sha256: str
    whole: bool = True  # False if something was left out

    def __repr__(self) -> str:
        said = shorten(self.stdout or self.stderr)
        return f"<Finished with exit code {self.exit_code}, {said}, bytes: {self.stdout_bytes} + {self.stderr_bytes}>"

    @property
    def ok(self) -> bool:
        """Return whether its exit code is 0."""
        return self.exit_code == 0


def encode_finished(finished: Finished) -> bytes:
    """Return a finished command as the bytes that are recorded."""
    return json.dumps(asdict(finished), ensure_ascii=False).encode()


def decode_finished(data: bytes) -> Finished:
    """Return a finished command from its recorded bytes."""
    return Finished(**json.loads(data))


class Command:
    """A command that can run once, and can be killed from another thread. Its arguments are those that are recorded."""

    def __init__(self, program: str, *, place: Path, secret_in: str | None = None, kept: int = KEPT) -> None:
        self._program = program
        self._place = place
        self._secret_in = secret_in
        self._kept = kept
        self._lock = threading.Lock()
        self._ended = False
        self._process: subprocess.Popen[bytes] | None = None

    def __call__(
        self,
        *,
        line: str,  # noqa: ARG002 - recorded, and what a grant can hold it to; what is run are the parts
        arguments: Sequence[str],
        cwd: str,  # noqa: ARG002 - likewise, as the work tree names the place
        env: Mapping[str, str],
        inherit: Sequence[str],
        stdin: str | None,
        timeout: float | None,
    ) -> Finished:
        """Run it and return its result. Raises `CommandTimeoutError`, and `OSError` if it cannot be started."""
        environment = environment_of(env, inherit)
        call = current_call()
        if self._secret_in is not None and call is not None and call.credential is not None:
            environment[self._secret_in] = call.credential.secret.reveal()
        with tempfile.TemporaryFile() as source:
            source.write((stdin or "").encode("utf-8", "surrogateescape"))
            source.seek(0)
            process = self._start([self._program, *arguments], environment, source)
        return self._finish(process, timeout)

    def kill(self) -> None:
        """Kill it with everything that it started. If it has not started yet, it never will."""
        with self._lock:
            self._ended = True
            process = self._process
            if process is not None:
                # The group has the id of its leader, and that id is not used again before somebody waits for the
                # leader.
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, signal.SIGKILL)

    def _start(
        self, command: Sequence[str], environment: Mapping[str, str], source: IO[bytes]
    ) -> "subprocess.Popen[bytes]":
        # Searched on our own PATH: another PATH for the command must not exchange the program that was granted.
        program = command[0] if "/" in command[0] else find_program(command[0])
        if program is None:
            raise FileNotFoundError(f"there is no program {command[0]!r}")
        with self._lock:
            if self._ended:
                raise InterruptedError("ended before it began")
            self._process = subprocess.Popen(  # noqa: S603 - the caller's own command, as a list, without a shell
                list(command),
                executable=program,
                cwd=self._place,
                env=dict(environment),
                stdin=source,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
                bufsize=0,
            )
            return self._process

    def _finish(self, process: "subprocess.Popen[bytes]", timeout: float | None) -> Finished:
        written = [_Written(process.stdout, self._kept), _Written(process.stderr, self._kept)]
        gone = threading.Event()
        watching = threading.Thread(target=self._watch, args=(process, gone), daemon=True)
        threads = [watching, *(threading.Thread(target=one.read, daemon=True) for one in written)]
        for thread in threads:
            thread.start()
        in_time = False
        try:
            in_time = gone.wait(timeout)
        finally:
            if not in_time:
                self.kill()
            watching.join()
            with self._lock:
                # From here on the id may belong to another process, so nobody may signal it any more.
                code = process.wait()
                self._process = None
            for thread in threads[1:]:
                thread.join(_PATIENCE)
        finished = _finished(128 - code if code < 0 else code, *written)
        if not in_time:
            words = " | ".join((finished.stderr or finished.stdout)[-_LAST_WORDS:].split("\n")).strip(" |")
            raise CommandTimeoutError(self._program, timeout or 0, finished.exit_code, words)
        return finished

    def _watch(self, process: "subprocess.Popen[bytes]", gone: threading.Event) -> None:
        """Wait until it has ended, and kill its remaining processes: a call that is over changes nothing more."""
        if hasattr(os, "waitid"):
            # WNOWAIT leaves the ended process in place, so its id still belongs to it when its group is killed.
            os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        else:  # pragma: no cover - macOS
            process.wait()
        self.kill()
        gone.set()


class _Written:
    """The output to one stream: all of it is counted and digested, the beginning and the end are kept."""

    def __init__(self, stream: IO[bytes] | None, kept: int) -> None:
        self._stream = stream
        self._half = kept // 2
        self._head = bytearray()
        self._tail = bytearray()
        self._sha = sha256()
        self.size = 0

    def read(self) -> None:
        if self._stream is None:
            return
        with self._stream as stream, suppress(ValueError, OSError):
            while chunk := os.read(stream.fileno(), _CHUNK):
                self._take(chunk)

    @property
    def digest(self) -> str:
        return self._sha.hexdigest()

    @property
    def left_out(self) -> int:
        return self.size - len(self._head) - len(self._tail)

    @property
    def text(self) -> str:
        if not self.left_out:
            return _text(self._head + self._tail)
        return f"{_text(self._head)}\n[{self.left_out:,} bytes left out]\n{_text(self._tail)}"

    def _take(self, chunk: bytes) -> None:
        self.size += len(chunk)
        self._sha.update(chunk)
        room = self._half - len(self._head)
        self._head += chunk[:room]
        self._tail += chunk[room:]
        del self._tail[: max(0, len(self._tail) - self._half)]


def _finished(code: int, stdout: _Written, stderr: _Written) -> Finished:
    return Finished(
        exit_code=code,
        stdout=stdout.text,
        stderr=stderr.text,
        stdout_bytes=stdout.size,
        stderr_bytes=stderr.size,
        stdout_sha256=stdout.digest,
        stderr_sha256=stderr.digest,
        whole=not (stdout.left_out or stderr.left_out),
    )


def _text(data: bytearray) -> str:
    return bytes(data).decode("utf-8", "backslashreplace")


def exit_code_of(ended: Any) -> int | None:  # noqa: ANN401 - whatever a call returned or raised
    """Return the exit code of the command that a call ran; None if it ran none."""
    return ended.exit_code if isinstance(ended, Finished | CommandTimeoutError) else None
