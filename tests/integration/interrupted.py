"""A program that is interrupted by real SIGINTs, again and again, while it hands work off. Run by `test_interrupts`."""

import faulthandler
import json
import os
import random
import signal
import sys
import threading
import time
from pathlib import Path

from batonpass.model.base.ids import AgentId
from batonpass.model.baton.card import Card
from batonpass.relay import Relay

HANGS_AFTER = 90  # seconds: then the traceback of every thread is printed, and the process ends
LONGEST = 0.03  # a round takes about as long, so that each of its steps is hit


def main(url: str, home: str, rounds: int, seed: int) -> None:
    """Hand off under many root runs, each interrupted at a random moment; print how many were."""
    faulthandler.dump_traceback_later(HANGS_AFTER, exit=True)
    chance = random.Random(seed)
    interrupted = 0
    with Relay.open(url, home=Path(home)) as relay:
        relay.introduce(Card(agent=AgentId("editor")))
        for _ in range(rounds):
            interrupted += _round(relay, chance.uniform(0, LONGEST))
    sys.stdout.write(json.dumps(interrupted))


def _round(relay: Relay, after: float) -> bool:
    sent = threading.Event()
    sender = threading.Thread(target=_interrupt, args=(after, sent))
    try:
        with relay.start("Interrupted", by="user:ana") as lead:
            sender.start()
            try:
                for number in range(1000):
                    lead.hand_off("editor", f"Task {number}", carrier="worker")
            finally:
                # From here on nobody interrupts: this is about what an interrupt leaves, not about a second one.
                signal.signal(signal.SIGINT, signal.SIG_IGN)
    except KeyboardInterrupt:
        return True
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        sender.join()
        signal.signal(signal.SIGINT, signal.default_int_handler)
    return False


def _interrupt(after: float, sent: threading.Event) -> None:
    time.sleep(after)
    os.kill(os.getpid(), signal.SIGINT)
    sent.set()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
