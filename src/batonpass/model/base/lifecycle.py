"""The states of a handoff, and the one table of transitions between them.

The stores, the verifier, the SQL checks and the chart in docs/spec/lifecycle.md all follow this table.
"""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from batonpass.errors import IllegalTransitionError


class State(StrEnum):
    """The state of a handoff. The text is stored, so it is forever."""

    HELD = "held"
    OFFERED = "offered"
    READY = "ready"
    CLAIMED = "claimed"
    ASKED = "asked"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    DECLINED = "declined"
    DENIED = "denied"
    CANCELLED = "cancelled"
    EXPIRED = "expired"
    VERIFIED = "verified"
    REFUTED = "refuted"


class HandoffEvent(StrEnum):
    """An event that moves a handoff to another state."""

    APPROVE = "approve"
    DENY = "deny"
    CLAIM = "claim"
    ACCEPT = "accept"
    ASK = "ask"
    ANSWER = "answer"
    DECLINE = "decline"
    COMPLETE = "complete"
    FAIL = "fail"
    HOLD = "hold"
    RESUME = "resume"
    PARK = "park"
    LAPSE = "lapse"
    CANCEL = "cancel"
    EXPIRE = "expire"
    VERIFY = "verify"
    REFUTE = "refute"
    RETRY = "retry"
    REPLACE = "replace"


class Carrier(StrEnum):
    """Who brings a handoff to its agent: the process that offered it, or a worker that claims it under a lease."""

    CALLER = "caller"
    WORKER = "worker"


# Something came back, and nobody has shown that it is wrong.
DELIVERED: Final = frozenset({State.COMPLETED, State.VERIFIED})

WAITING: Final[Mapping[Carrier, State]] = MappingProxyType(
    {Carrier.CALLER: State.OFFERED, Carrier.WORKER: State.READY},
)

_BOTH: Final = tuple(Carrier)
_CALLER: Final = (Carrier.CALLER,)
_WORKER: Final = (Carrier.WORKER,)

# Target None: the handoff waits to be taken, in the state that `WAITING` has for its carrier.
_ROWS: Final[tuple[tuple[State, HandoffEvent, tuple[Carrier, ...], State | None], ...]] = (
    (State.HELD, HandoffEvent.APPROVE, _BOTH, None),
    (State.HELD, HandoffEvent.DENY, _BOTH, State.DENIED),
    (State.HELD, HandoffEvent.RESUME, _BOTH, None),  # the child that its attempt waited for has ended
    (State.HELD, HandoffEvent.CANCEL, _BOTH, State.CANCELLED),
    (State.HELD, HandoffEvent.EXPIRE, _BOTH, State.EXPIRED),
    (State.OFFERED, HandoffEvent.ACCEPT, _CALLER, State.RUNNING),
    (State.OFFERED, HandoffEvent.DECLINE, _CALLER, State.DECLINED),
    (State.OFFERED, HandoffEvent.ASK, _CALLER, State.ASKED),
    (State.OFFERED, HandoffEvent.CANCEL, _CALLER, State.CANCELLED),
    (State.OFFERED, HandoffEvent.EXPIRE, _CALLER, State.EXPIRED),
    (State.READY, HandoffEvent.CLAIM, _WORKER, State.CLAIMED),
    (State.READY, HandoffEvent.CANCEL, _WORKER, State.CANCELLED),
    (State.READY, HandoffEvent.EXPIRE, _WORKER, State.EXPIRED),
    (State.CLAIMED, HandoffEvent.ACCEPT, _WORKER, State.RUNNING),
    (State.CLAIMED, HandoffEvent.ASK, _WORKER, State.ASKED),
    (State.CLAIMED, HandoffEvent.DECLINE, _WORKER, State.DECLINED),
    (State.CLAIMED, HandoffEvent.CANCEL, _WORKER, State.CANCELLED),
    (State.CLAIMED, HandoffEvent.PARK, _WORKER, State.FAILED),  # no further attempt is made
    (State.CLAIMED, HandoffEvent.LAPSE, _WORKER, State.READY),
    (State.ASKED, HandoffEvent.ANSWER, _BOTH, None),
    (State.ASKED, HandoffEvent.CANCEL, _BOTH, State.CANCELLED),
    (State.ASKED, HandoffEvent.EXPIRE, _BOTH, State.EXPIRED),
    (State.RUNNING, HandoffEvent.COMPLETE, _BOTH, State.COMPLETED),
    (State.RUNNING, HandoffEvent.FAIL, _BOTH, State.FAILED),
    (State.RUNNING, HandoffEvent.HOLD, _BOTH, State.HELD),
    (State.RUNNING, HandoffEvent.CANCEL, _BOTH, State.CANCELLED),
    (State.RUNNING, HandoffEvent.EXPIRE, _BOTH, State.EXPIRED),
    (State.RUNNING, HandoffEvent.LAPSE, _WORKER, State.READY),  # its worker died, which is normal
    (State.COMPLETED, HandoffEvent.VERIFY, _BOTH, State.VERIFIED),
    (State.COMPLETED, HandoffEvent.REFUTE, _BOTH, State.REFUTED),
    (State.FAILED, HandoffEvent.RETRY, _BOTH, None),
    (State.FAILED, HandoffEvent.REPLACE, _BOTH, None),
    (State.DECLINED, HandoffEvent.RETRY, _BOTH, None),
    (State.DECLINED, HandoffEvent.REPLACE, _BOTH, None),
    (State.REFUTED, HandoffEvent.RETRY, _BOTH, None),
    (State.REFUTED, HandoffEvent.REPLACE, _BOTH, None),
)

TRANSITIONS: Final[Mapping[tuple[State, HandoffEvent, Carrier], State]] = MappingProxyType(
    {
        (state, event, carrier): target or WAITING[carrier]
        for state, event, carriers, target in _ROWS
        for carrier in carriers
    },
)


def advance(state: State, event: HandoffEvent, carrier: Carrier) -> State:
    """Return the next state. Raises `IllegalTransitionError` if the table has no such transition."""
    try:
        return TRANSITIONS[state, event, carrier]
    except KeyError:
        raise IllegalTransitionError(state, event, carrier) from None


def follow(state: State, event: HandoffEvent, carrier: Carrier) -> State:
    """Return the next state as the receipts show it: a claim that has no receipt is implied.

    Raises `IllegalTransitionError` if the event is not possible even after a claim.
    """
    # A claim is a lease in the store and leaves no receipt. Whoever has only receipts sees a handoff go from `ready`
    # straight to an event that needs a claim, so the claim is put in between.
    if state is State.READY and (State.CLAIMED, event, carrier) in TRANSITIONS:
        return advance(advance(state, HandoffEvent.CLAIM, carrier), event, carrier)
    return advance(state, event, carrier)


def sources(event: HandoffEvent, carrier: Carrier) -> tuple[State, ...]:
    """Return the states in which `follow` accepts an event."""
    direct = tuple(state for state, known, by in TRANSITIONS if (known, by) == (event, carrier))
    return (*direct, State.READY) if State.CLAIMED in direct and State.READY not in direct else direct


def target(event: HandoffEvent, carrier: Carrier) -> State | None:
    """Return the state that an event leads to; None if it is impossible for this carrier.

    It does not depend on the state before: for one carrier, all rows of an event have the same target.
    """
    return next((to for (_, known, by), to in TRANSITIONS.items() if (known, by) == (event, carrier)), None)
