"""Which of several equal calls this is. The number is part of a call's key, so the next attempt must count the same."""

import threading
from collections import defaultdict

from msgspec.structs import replace

from batonpass.api.calls import BeginCall
from batonpass.model.items import Report


class Repetitions:
    """Gives each call of a run the lowest number that no equal call has.

    A count would hand out the number of a call that finished, and its result, once another has failed and given its own
    back.
    """

    def __init__(self) -> None:
        self._taken: defaultdict[tuple[str, bytes], set[int]] = defaultdict(set)
        self._lock = threading.Lock()  # held for a moment and never over I/O, so no part of the system port

    def take(self, request: BeginCall) -> BeginCall:
        """Return the request with its number."""
        with self._lock:
            taken = self._taken[request.tool, bytes(request.arguments)]  # type: ignore[arg-type]
            number = 1
            while number in taken:
                number += 1
            taken.add(number)
        return request if number == 1 else replace(request, number=number)

    def give_back(self, request: BeginCall) -> None:
        """Free the number of a call that did not come about. This number and no other: the last may be in use."""
        with self._lock:
            self._taken[request.tool, bytes(request.arguments)].discard(request.number)  # type: ignore[arg-type]


class Progress:
    """What all handles of a run in this process share: the numbers of its calls, and the report for its close."""

    def __init__(self) -> None:
        self.repetitions = Repetitions()
        self.report = Report()
        self.work: object = None  # what an adapter of a framework keeps of it
