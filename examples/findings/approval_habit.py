"""Somebody who approves everything at a glance, task after task; and somebody who says no once."""

from batonpass import Relay


def _ask(relay: Relay, number: int, *, approve: bool = True) -> None:
    with relay.start(f"Release {number}", by="user:ana") as lead:
        handoff = lead.hand_off("shipper", f"Ship release {number}", hold=True)
        material = handoff.material()
        if not approve:
            handoff.deny(by="user:ben", reason="its tests fail", shown=material)
            return
        handoff.approve(by="user:ben", shown=material)
        with handoff as shipper:
            shipper.report("shipped")


def raises(relay: Relay) -> None:
    """Ben has never said no, and never needed five seconds."""
    for number in range(5):
        _ask(relay, number)


def near_miss(relay: Relay) -> None:
    """Ben looked: one of them he did not let through."""
    for number, approve in enumerate((True, True, False, True, True)):
        _ask(relay, number, approve=approve)
