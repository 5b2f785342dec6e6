"""Commands: a program with its arguments, run once, bounded in time and output, and with nothing of it left behind."""

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

KEPT: Final = 1024 * 1024  # bytes of each stream

_CHUNK: Final = 65_536
_PATIENCE: Final = 1.0  # for threads that only somebody who escaped our process group can hold up
_LAST_WORDS: Final = 500


class Finished(Struct, frozen=True, kw_only=True):
    """How a command ended, and what it wrote. Of more than was to be kept, the middle is left out, and says so."""

    exit_code: int  # 128 and the number of the signal, if one ended it
    stdout: str
    stderr: str
    stdout_bytes: int  # all that it wrote
    stderr_bytes: int
    stdout_sha256: str  # likewise
    stderr_sha256: str
    whole: bool = True  # False if something is left out

    @property
    def ok(self) -> bool:
        """Return whether it says that all went well."""
        return self.exit_code == 0


def encode_finished(finished: Finished) -> bytes:
    """Return what is kept of it."""
    return json.dumps(asdict(finished), ensure_ascii=False).encode()


def decode_finished(data: bytes) -> Finished:
    """Return it as it was."""
    return Finished(**json.loads(data))


class Command:
    """A command that can be run once, and ended from another thread. It is called with what is recorded of it."""

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
        """Run it and return how it ended. Raises `CommandTimeoutError`, and `OSError` if it cannot be started."""
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
        """End it, and all that it started; if it has not begun, it never will."""
        with self._lock:
            self._ended = True
            process = self._process
            if process is not None:
                # The group has the id of its leader, which nobody else gets before the leader is waited for.
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, signal.SIGKILL)

    def _start(
        self, command: Sequence[str], environment: Mapping[str, str], source: IO[bytes]
    ) -> "subprocess.Popen[bytes]":
        # Found by our own PATH: whoever gives a command another one does not exchange the program that was granted.
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
                # From here on its id may belong to somebody else: nobody signals it any more.
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
        """Wait until it is gone, and end what it left behind: a call that is over changes nothing more."""
        if hasattr(os, "waitid"):
            os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        else:  # pragma: no cover - macOS
            process.wait()
        self.kill()
        gone.set()


class _Written:
    """What a program writes to one stream: all of it counted and digested, the beginning and the end kept."""

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
    """Return how a command ended that a call ran; None if it ran none."""
    return ended.exit_code if isinstance(ended, Finished | CommandTimeoutError) else None
