"""What tests of programs that use Batonpass need; our own behaviour tests need nothing else.

clock         a system whose time is held
faults        appends that fail, and processes that die, at a commit that the test names
builders      relays, runs and attempts in one line
observed      what a ledger says, as values: receipts by kind, states, calls in doubt, gaps, effects
entry_points  situations that every entry point must answer alike
"""

from batonpass.testing.builders import a_relay, a_run, an_attempt, for_caller
from batonpass.testing.clock import FrozenClock
from batonpass.testing.entry_points import SITUATIONS, Died, EntryPoint, Situation, Stage, Told, play, say_in_json
from batonpass.testing.faults import Faults, kill_at
from batonpass.testing.observed import Observed, SeenEffect, SeenReceipt, observe

__all__ = [
    "SITUATIONS",
    "Died",
    "EntryPoint",
    "Faults",
    "FrozenClock",
    "Observed",
    "SeenEffect",
    "SeenReceipt",
    "Situation",
    "Stage",
    "Told",
    "a_relay",
    "a_run",
    "an_attempt",
    "for_caller",
    "kill_at",
    "observe",
    "play",
    "say_in_json",
]
