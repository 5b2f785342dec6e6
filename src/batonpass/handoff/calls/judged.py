"""What a guard looked at beyond what a call does to what: the arguments that some permit sets conditions on."""

from collections.abc import Sequence

from batonpass.guard.recorded import JUDGED, conditioned
from batonpass.handoff.calls.values import describe
from batonpass.handoff.desk import Desk
from batonpass.model.call import Call
from batonpass.model.condition import argument_of, is_absent
from batonpass.model.content import Content
from batonpass.model.grant import Terms


def judged(desk: Desk, terms: Sequence[Terms], tried: Call) -> tuple[Content, ...]:
    """Return as content with which arguments a call was judged, paths followed; none if no permit asks for any.

    They stand beside the arguments as they were given, because a verifier has no file system to follow paths in.
    """
    if not (names := conditioned(terms)):
        return ()
    found = {name: value for name in names if not is_absent(value := argument_of(name, tried.arguments))}
    return (desk.json(JUDGED, describe(found)),)
