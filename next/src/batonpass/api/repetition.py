"""Which of several equal things this is. The number is part of a key, so the next attempt must count the same."""

import threading
from collections import defaultdict
from collections.abc import Hashable

from batonpass.model.items import Report


class Slot:
    """A number that is taken."""

    def __init__(self, number: int, taken: set[int]) -> None:
        self.number = number
        self._taken = taken
        self._is_held = True

    def give_back(self) -> None:
        """Free the number of what did not come about. This number and no other: the last may be in use."""
        if self._is_held:  # once: by the second time another may have it
            self._is_held = False
            self._taken.discard(self.number)


class Repetitions:
    """Gives each call of a run, and each of its offers, the lowest number that no equal one has.

    A count would hand out the number of a call that finished, and its result, once another has failed and given its own
    back.
    """

    def __init__(self) -> None:
        self._taken: defaultdict[Hashable, set[int]] = defaultdict(set)
        self._lock = threading.Lock()  # held for a moment and never over I/O, so no part of the system port

    def take(self, *what: Hashable) -> Slot:
        """Take the lowest free number of what is equal."""
        with self._lock:
            taken = self._taken[what]
            number = next(number for number in range(1, len(taken) + 2) if number not in taken)
            taken.add(number)
        return Slot(number, taken)


class Progress:
    """What all handles of a run in this process share: the numbers of its calls, and the report for its close."""

    def __init__(self) -> None:
        self.repetitions = Repetitions()
        self.report = Report()
        self.is_resumed = False  # it was taken over here: what its last holder left at work is over
        self.work: object = None  # what an adapter of a framework keeps of it
