"""How one offer is treated, apart from what it says."""

from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import force_setattr

from batonpass.errors import InvalidValueError
from batonpass.model.base.checks import as_member, require_instance, require_text
from batonpass.model.baton.items import Item
from batonpass.model.policy.handoff_policy import HandoffPolicy

Answerer: TypeAlias = Callable[[str], str | None]  # a question, and what to say to it; None leaves it to others


class ChangedInputs(StrEnum):
    """What to do about a handoff whose inputs have changed since it was offered."""

    SAME = "same"  # go on with what it was offered with
    FRESH = "fresh"  # begin with the inputs of now, and keep no call that read the old ones


class Handling(Struct, frozen=True, kw_only=True):
    """How one offer is treated, whatever it says: no part of it makes another handoff, except for the key."""

    key: str | None = None  # the same key is the same handoff; by default that is what the offer says
    inputs: ChangedInputs | str | None = (
        None  # if its inputs have changed; None: refused with a key, else a new handoff
    )
    carry: Iterable[Item] | None = None  # a selection of what the sender knows; None: all of it
    policy: HandoffPolicy | None = None  # applied besides the relay's own; it can only refuse more
    answer: Answerer | None = None  # asked what the receiver asks

    def __post_init__(self) -> None:
        if self.key is not None:
            require_text("key", self.key)
        if self.inputs is not None:
            force_setattr(self, "inputs", as_member("inputs", self.inputs, ChangedInputs))
        if self.policy is not None:
            require_instance("policy", self.policy, HandoffPolicy)
        if self.answer is not None and not callable(self.answer):
            raise InvalidValueError("answer", "is no function that takes a question and returns what to say to it")
        if self.carry is not None:
            kept = tuple(self.carry)
            for item in kept:
                require_instance("carry", item, Item)
            force_setattr(self, "carry", kept)
