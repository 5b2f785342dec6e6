"""What travels with a handoff now: its offer, and the revisions of it since."""

from collections.abc import Iterable

from msgspec import Struct

from batonpass.model.base.kinds import Carried, CarriedFate
from batonpass.model.bodies.body import Body, HandoffInitiated, HandoffRevised


class Travelling(Struct, frozen=True):
    """The items of the latest revision, and what their receiver was told of their fates."""

    carries: tuple[Carried, ...]
    fates: tuple[CarriedFate, ...]


def travelling(initiated: HandoffInitiated, acts: Iterable[Body]) -> Travelling:
    """Return what travels with a handoff after all that was done to it, in the order in which it was."""
    carries = {ref.item: ref for ref in initiated.carries}
    fates = {fate.item: fate for fate in initiated.fates}
    for act in acts:
        if isinstance(act, HandoffRevised):
            carries.update((ref.item, ref) for ref in act.carries)
            fates.update((fate.item, fate) for fate in act.fates)
            for item in act.drops:
                carries.pop(item, None)
                fates.pop(item, None)
    return Travelling(tuple(carries.values()), tuple(fates.values()))
