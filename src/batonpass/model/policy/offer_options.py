"""Options of one offer that are not part of its baton."""

from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import force_setattr

from batonpass.errors import InvalidValueError
from batonpass.model.base.checks import as_member, require_instance, require_integer, require_text
from batonpass.model.baton.items import Item
from batonpass.model.policy.handoff_policy import HandoffPolicy

Answerer: TypeAlias = Callable[[str], str | None]  # takes a question, returns its answer; None leaves it to others


class ChangedInputs(StrEnum):
    """The reaction to inputs of a handoff that have changed since it was offered."""

    SAME = "same"  # go on with the inputs it was offered with
    FRESH = "fresh"  # begin with the current inputs, and keep no call that read the old ones


class Handling(Struct, frozen=True, kw_only=True):
    """Options of one offer. Apart from `key` and `again`, none of them makes it a different handoff."""

    key: str | None = None  # the same key is the same handoff; by default it is made from the offer
    again: int = 0  # which repetition of the same task this is, in a loop: another number is another handoff
    # If the inputs have changed since an earlier offer. None: with a key it is refused, otherwise it is a new handoff.
    inputs: ChangedInputs | str | None = None
    carry: Iterable[Item] | None = None  # the items that travel; None: those that travel by default
    policy: HandoffPolicy | None = None  # applied in addition to the relay's own; it can only refuse more
    answer: Answerer | None = None  # answers the receiver's questions
    # How often it is tried again by itself if its runner fails, with a growing pause, and then no more. None: a failure
    # is left to the sender, and what a lost worker had begun is tried as often as the policy says.
    retries: int | None = None

    def __post_init__(self) -> None:
        if self.key is not None:
            require_text("key", self.key)
        require_integer("again", self.again)
        if self.inputs is not None:
            force_setattr(self, "inputs", as_member("inputs", self.inputs, ChangedInputs))
        if self.policy is not None:
            require_instance("policy", self.policy, HandoffPolicy)
        if self.retries is not None:
            require_integer("retries", self.retries)
        if self.answer is not None and not callable(self.answer):
            raise InvalidValueError("answer", "must be a function that takes a question and returns the answer")
        if self.carry is not None:
            kept = tuple(self.carry)
            for item in kept:
                require_instance("carry", item, Item)
            force_setattr(self, "carry", kept)
