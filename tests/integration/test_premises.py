"""What an offer takes for granted, while another process speaks in the same tree."""

import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from batonpass.model.base.kinds import Part
from batonpass.model.bodies.handoff_bodies import HandoffInitiated
from batonpass.model.bodies.run_bodies import RunRecorded, RunStarted
from batonpass.relay import Relay
from batonpass.store.port import ReceiptQuery
from batonpass.wire.receipt_codec import decode_receipt

WISHES: Final = 60
SPEAKS: Final = f"""
import sys
from datetime import timedelta
from batonpass import Relay
with Relay.open(sys.argv[1]) as relay:
    lease = relay.claim(holder="elsewhere", lease_for=timedelta(minutes=5), agents=["talker"])
    run = relay.handoff(lease.handoff).accept(lease=lease)
    for number in range({WISHES}):
        run.add_intent(f"wish {{number}}", by="user:ana")
    run.close()
"""


@pytest.mark.slow
def test_no_offer_leaves_out_what_a_human_said_before_it(tmp_path: Path) -> None:
    """Whatever stands before an offer in the ledger is in it, though the lead heard of none of it."""
    with Relay.open(tmp_path / "ledger.db") as relay:
        lead = relay.start("begin", by="user:ana")
        lead.hand_off("talker", "talk", carrier="worker")
        command = [sys.executable, "-c", SPEAKS, str(tmp_path / "ledger.db")]
        with subprocess.Popen(command) as other:
            number = 0
            while other.poll() is None:
                number += 1
                with lead.hand_off("editor", f"part {number}"):
                    pass
        with relay.store.view() as view:
            bodies = [decode_receipt(stored.payload).body for stored in view.find_receipts(ReceiptQuery())]
        relay.verify()
    said, carried = 0, []
    for body in bodies:
        match body:
            case RunStarted():
                said += 1
            case RunRecorded():
                said += sum(item.part is Part.INTENT for item in body.items)
            case HandoffInitiated():
                carried.append((said, sum(item.part is Part.INTENT for item in body.carries)))

    assert (0, 1 + WISHES) == (other.returncode, said)
    assert all(before == inside for before, inside in carried)
    assert len(set(carried)) > 2, "nobody spoke between two offers"
