"""Processes that keep others waiting, or decide at the same moment as another. Run by `test_never_stuck`."""

import threading
import time
from datetime import timedelta
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Barrier
from typing import Final

from batonpass.dispatch.worker import Worker
from batonpass.model.bodies.body import Gate
from batonpass.model.policy.policy_rules import Policy, Rule, Subject
from batonpass.relay import Relay

PATIENCE: Final = 60.0
TWO: Final = Policy(
    enforce=True,
    proven=False,
    rules=(
        Rule(name="two-calls", on=Subject.CALL, gate=Gate.APPROVE, tool="deploy", approvals=2),
        Rule(name="two-handoffs", on=Subject.HANDOFF, gate=Gate.APPROVE, agent="shipper", approvals=2),
    ),
)


def work_too_long(url: str, home: str, line: Connection) -> None:
    """Take the handoff that is named, as its caller, and never end."""
    with Relay.open(url, home=home) as relay:
        line.send("ready")
        relay.handoff(line.recv()).accept()
        time.sleep(PATIENCE)


def approve_together(url: str, home: str, who: str, together: Barrier, line: Connection) -> None:
    """Approve what is named, each time at the same moment as somebody else, until the name is empty."""
    with Relay.open(url, home=home, policy=TWO) as relay:
        while name := line.recv():
            held = relay.held_call(name) if name.startswith("call_") else relay.handoff(name)
            together.wait(PATIENCE)
            held.approve(by=who)
            line.send("done")


def work_nested(url: str, home: str) -> None:
    """Work until killed: a parent waits for its child, which is carried by a worker as well."""
    with Relay.open(url, home=home) as relay:
        relay.register("parent", lambda run: run.hand_off("child", run.task, carrier="worker").wait().value)
        relay.register("child", lambda run: run.task.upper())
        Worker(relay).run_until(threading.Event(), poll=timedelta(milliseconds=20))
