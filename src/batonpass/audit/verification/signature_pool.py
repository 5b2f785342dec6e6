"""Helper processes that check signatures, and the threads that talk to them. Loaded where there is enough to do."""

import contextlib
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from queue import SimpleQueue
from typing import BinaryIO, Final

from batonpass.audit.verification.signature_helper import Question, encode_questions, read_frame, write_frame

# The helper imports what we import, wherever we found it.
_HELPER: Final = (
    "import sys; sys.path[:] = sys.argv[1:]; from batonpass.audit.verification.signature_helper import main; main()"
)


class SignaturePool:
    """Checks batches in processes of its own, whichever is free; what one of them leaves undone is done here."""

    def __init__(self, processes: int) -> None:
        self.helpers: Final = [_start_helper() for _ in range(processes)]
        self._free: SimpleQueue[subprocess.Popen[bytes]] = SimpleQueue()
        for helper in self.helpers:
            self._free.put(helper)
        self._threads = ThreadPoolExecutor(processes)

    def ask(self, questions: list[Question], instead: Callable[[], int]) -> Future[int]:
        """Return what will be the index of the first bad one, or -1; if a helper dies, what is said `instead`."""
        return self._threads.submit(self._ask, questions, instead)

    def close(self) -> None:
        """End all processes, and wait until they have ended."""
        for helper in self.helpers:
            # A helper that died leaves a broken pipe; what it was asked has been answered here.
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
            # The helper died; what it was asked is still to be answered.
            return instead()
        finally:
            self._free.put(helper)


def _start_helper() -> "subprocess.Popen[bytes]":
    return subprocess.Popen(  # noqa: S603 - our own interpreter and module
        [sys.executable, "-c", _HELPER, *sys.path],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        # Ctrl-C reaches every process in the terminal's group, and a helper's answer would be a traceback. Ours end
        # when we close their pipe, or die.
        process_group=0,
    )


def _pipe(pipe: "BinaryIO | object | None") -> BinaryIO:
    return pipe  # type: ignore[return-value]
