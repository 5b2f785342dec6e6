"""Two workers that want all the calls which their parent may make, each in a process of its own."""

from datetime import timedelta
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Final

from batonpass.errors import ConstraintViolatedError
from batonpass.handoff.tools.declaration import tool
from batonpass.model.base.lifecycle import State
from batonpass.relay import Relay

WORKERS: Final = 2
LONG: Final = timedelta(minutes=5)


def main(url: str, home: str, made: Connection) -> None:
    """Wait until both have begun, make calls until the limit stops it, and say how many were made."""
    count = 0
    write = tool("write", target="path")(lambda path: path)
    with Relay.open(url, home=Path(home)) as relay:
        lease = relay.claim(holder="racer", lease_for=LONG, agents=["worker"])
        assert lease is not None
        run = relay.handoff(lease.handoff).accept(lease=lease)
        begun = 0
        while begun < WORKERS:
            with relay.store.view() as view:
                begun = sum(handoff.state is State.RUNNING for handoff in view.find_handoffs())
        try:
            while True:
                run.call(write, f"{run.id}/{count}")
                count += 1
        except ConstraintViolatedError:
            made.send(count)
