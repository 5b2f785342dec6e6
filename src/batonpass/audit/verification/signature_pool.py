"""A pool of helper processes that check signatures, and the threads that talk to them.

Imported only for large ledgers.
"""

import contextlib
import fcntl
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from queue import SimpleQueue
from typing import BinaryIO, Final

from batonpass.audit.verification.signature_helper import Question, encode_questions, read_frame, write_frame

# The helper imports the same modules as we do, from the same paths.
_HELPER: Final = (
    "import sys; sys.path[:] = sys.argv[1:]; from batonpass.audit.verification.signature_helper import main; main()"
)
_PIPE_BYTES: Final = 1 << 20  # more than a batch has


class SignaturePool:
    """Checks batches in helper processes. A batch that a helper leaves undone is checked here."""

    def __init__(self, processes: int) -> None:
        self.helpers: Final = [_start_helper() for _ in range(processes)]
        self._free: SimpleQueue[subprocess.Popen[bytes]] = SimpleQueue()
        for helper in self.helpers:
            self._free.put(helper)
        self._threads = ThreadPoolExecutor(processes)

    def ask(self, questions: list[Question], instead: Callable[[], int]) -> Future[int]:
        """Return a future with the index of the first bad message, or -1. If the helper dies, `instead` is called."""
        return self._threads.submit(self._ask, questions, instead)

    def close(self) -> None:
        """End all helper processes, and wait until they have ended."""
        for helper in self.helpers:
            # A dead helper leaves a broken pipe; its questions have been answered here.
            with contextlib.suppress(OSError):
                _pipe(helper.stdin).close()
        self._threads.shutdown(cancel_futures=True)
        for helper in self.helpers:
            helper.wait()
            _pipe(helper.stdout).close()

    def _ask(self, questions: list[Question], instead: Callable[[], int]) -> int:
        helper = self._free.get()
        try:
            write_frame(_pipe(helper.stdin), encode_questions(questions))
            return int(read_frame(_pipe(helper.stdout)))
        except (OSError, ValueError):
            # The helper died, and its questions still need an answer.
            return instead()
        finally:
            self._free.put(helper)


def _start_helper() -> "subprocess.Popen[bytes]":
    helper = subprocess.Popen(  # noqa: S603 - our own interpreter and module
        [sys.executable, "-c", _HELPER, *sys.path],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        # Ctrl-C reaches every process in the terminal's group, and a helper would answer with a traceback. Helpers end
        # when we close their pipe, or die.
        process_group=0,
    )
    # A pipe of the usual 64 KB takes a batch in seven pieces, and after each our thread waits for the interpreter. Not
    # every system can do that, and a user has a limit for all pipes together.
    with contextlib.suppress(AttributeError, OSError):
        fcntl.fcntl(_pipe(helper.stdin), fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
    return helper


def _pipe(pipe: "BinaryIO | object | None") -> BinaryIO:
    return pipe  # type: ignore[return-value]
