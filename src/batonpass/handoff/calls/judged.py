"""What a guard looked at beyond what a call does to what: the arguments that some permit sets conditions on."""

from collections.abc import Sequence

from batonpass.guard.recorded import JUDGED
from batonpass.handoff.calls.values import describe
from batonpass.handoff.desk import Desk
from batonpass.model.call import Call
from batonpass.model.condition import argument_of, is_absent
from batonpass.model.content import Content


def judged(desk: Desk, names: Sequence[str], tried: Call) -> Content:
    """Return as content with which of these arguments a call was judged, paths followed.

    They stand beside the arguments as they were given, because a verifier has no file system to follow paths in.
    """
    found = {name: value for name in names if not is_absent(value := argument_of(name, tried.arguments))}
    return desk.json(JUDGED, describe(found))
