"""A worker process whose task kills it: SIGKILL, as by the kernel when memory runs out. Run by `test_poison`."""

import os
import signal
import sys
import threading
from datetime import timedelta
from pathlib import Path

from batonpass.dispatch.worker import Worker
from batonpass.handoff.live.faces import LiveRun
from batonpass.handoff.transfer import sweep
from batonpass.relay import Relay

LEASE = timedelta(seconds=0.3)


def poison(_: LiveRun) -> None:
    """Die without a word."""
    os.kill(os.getpid(), signal.SIGKILL)


def main(url: str, home: str, handoff: str) -> None:
    """Work until the task kills this process, or until it is over."""
    setattr(sweep, "pause_after", lambda _: timedelta(seconds=0.01))  # noqa: B010 - no test waits for minutes
    with Relay.open(url, home=Path(home)) as relay:
        relay.register("editor", poison)
        worker = Worker(relay, lease_for=LEASE)
        stop = threading.Event()
        threading.Thread(target=worker.run_until, args=(stop,), kwargs={"poll": timedelta(seconds=0.05)}).start()
        while not relay.handoff(handoff).result().settled:
            stop.wait(0.05)
        stop.set()


if __name__ == "__main__":
    main(*sys.argv[1:])
