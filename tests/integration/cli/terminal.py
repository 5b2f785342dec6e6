"""A terminal of its own: a program that asks there, and somebody who reads and types."""

import os
import pty
import select
import signal
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Self

from tests.integration.cli.shell import PATIENCE, PROGRAM, surroundings

_INTERRUPT: Final = b"\x03"
_SURELY_ASLEEP: Final = 5  # looks in a row
_CHUNK: Final = 65_536


class Terminal:
    """A command that runs with a controlling terminal; everything that appears there is in `shown`."""

    def __init__(self, folder: Path, arguments: Sequence[str], **more: str) -> None:
        self.shown = ""
        self._raw = b""
        self._met = 0  # how far it was waited for
        self.pid, self._ours = pty.fork()
        if self.pid == 0:
            os.chdir(folder)
            words = [*PROGRAM, *arguments]
            os.execve(words[0], words, surroundings(**more))  # noqa: S606 - our own program

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._ours)

    def until(self, words: str) -> Self:
        """Read until these words have appeared after the last that were waited for."""
        while words not in self.shown[self._met :] and self._read():
            continue
        assert words in self.shown[self._met :], self.shown
        self._met = self.shown.index(words, self._met) + len(words)
        return self

    def type(self, text: str | bytes) -> Self:
        """Type something."""
        os.write(self._ours, text.encode() if isinstance(text, str) else text)
        return self

    def interrupt(self) -> Self:
        """Press Ctrl-C once it waits for a key: what comes just before that, Python heeds only with the next one."""
        asleep, deadline = 0, time.monotonic() + PATIENCE
        while asleep < _SURELY_ASLEEP:
            state = Path(f"/proc/{self.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
            asleep = asleep + 1 if state == "S" else 0
            assert time.monotonic() < deadline, f"it never waited for a key: {self.shown}"
            time.sleep(0.02)
        return self.type(_INTERRUPT)

    def kill(self) -> None:
        """End it without asking."""
        os.kill(self.pid, signal.SIGKILL)

    def end(self) -> int:
        """Read to the end, and return its exit code; minus the number of a signal that ended it."""
        while self._read():
            continue
        _, status = os.waitpid(self.pid, 0)
        return os.waitstatus_to_exitcode(status)

    def _read(self) -> bool:
        """Read what is there; return whether there may be more."""
        deadline = time.monotonic() + PATIENCE
        while not select.select([self._ours], [], [], 0.1)[0]:
            assert time.monotonic() < deadline, f"nothing more came after: {self.shown}"
        try:
            chunk = os.read(self._ours, _CHUNK)
        except OSError:  # Linux says so when the last one who had the terminal open has left
            return False
        self._raw += chunk
        self.shown = self._raw.decode("utf-8", "replace")
        return bool(chunk)
