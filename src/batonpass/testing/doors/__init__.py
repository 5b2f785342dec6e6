"""The suite that every door must pass: one table of situations, with the same verdict, receipts and sentences.

Write a `Door` for your adapter, subclass the suite, and add a fixture that returns your door:

    class TestMyDoor(DoorConformance):
        @pytest.fixture
        def door(self):
            return MyDoor()
"""

from batonpass.testing.doors.acts import Act, Delegate, Fetch, Pay, Read, Write, WriteAll
from batonpass.testing.doors.door import MADE, Door, Ending, Listener, Opened, Told, Verdict, heard, raised
from batonpass.testing.doors.handoffs import HandoffConformance
from batonpass.testing.doors.stage import PERSON, Interrupted, Stage
from batonpass.testing.doors.suite import DoorConformance

__all__ = [
    "MADE",
    "PERSON",
    "Act",
    "Delegate",
    "Door",
    "DoorConformance",
    "Ending",
    "Fetch",
    "HandoffConformance",
    "Interrupted",
    "Listener",
    "Opened",
    "Pay",
    "Read",
    "Stage",
    "Told",
    "Verdict",
    "Write",
    "WriteAll",
    "heard",
    "raised",
]
