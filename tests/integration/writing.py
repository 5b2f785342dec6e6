"""A process that records as quickly as it can, in several threads, and says what was acknowledged."""

import faulthandler
import os
import signal
import sys
import threading
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Final

from batonpass.model.base.ids import AgentId, PrincipalId
from batonpass.relay import Relay, recording_of
from batonpass.testing.plain_acts import plainly

TELLS_WHERE_IT_IS: Final = signal.SIGUSR1


def main(url: str, home: str, threads: int, calls: int, told: Connection) -> None:
    """Let each thread work on a run of its own; tell the id of every call whose request was acknowledged."""
    complaints = os.open(Path(home) / f"{os.getpid()}.complaints", os.O_WRONLY | os.O_CREAT, 0o600)
    os.dup2(complaints, sys.stderr.fileno())
    # What crashes or hangs says where, in its complaints.
    faulthandler.enable()
    faulthandler.register(TELLS_WHERE_IT_IS)
    # A line is written at once or not at all, also by one who is killed; the connection's own messages are not.
    pipe = told.fileno()
    recording = recording_of(Relay.open(url, home=Path(home)))
    os.write(pipe, b"ready\n")

    def work(name: str) -> None:
        run = recording.start(f"work of {name}", agent=AgentId(name), by=PrincipalId("user:ana"))
        for number in range(calls):
            os.write(pipe, f"{plainly(recording).request(run, 'count', str(number))}\n".encode())
        plainly(recording).close(run)

    workers = [threading.Thread(target=work, args=(f"worker-{number}",)) for number in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
