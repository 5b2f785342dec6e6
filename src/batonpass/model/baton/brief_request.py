"""A brief as callers write it: the fields of the recorded brief, the relation, and free text."""

from collections.abc import Sequence
from operator import attrgetter
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import force_setattr, replace

from batonpass.errors import InvalidValueError
from batonpass.model.base.checks import as_member, require_instance, require_text
from batonpass.model.base.kinds import Relation
from batonpass.model.base.value import shown_as
from batonpass.model.baton.baton import Brief, Budget
from batonpass.model.baton.items import Item
from batonpass.model.bodies.reasoning import ReasoningPlace, Thought


class BriefRequest(Struct, frozen=True, kw_only=True, dict=True):
    """Everything that the sender says about a task besides the task itself.

    Two offers that say the same are the same handoff.
    """

    rationale: str | None = None  # why the task is handed off
    reasoning: Item | ReasoningPlace | None = None  # the sender's reasoning: an artifact, or the place of a message
    serves: str | None = None  # the criterion of the sender's own task that this serves
    criteria: Sequence[str] = ()  # acceptance criteria
    inputs: Sequence[str] = ()  # required: names of artifacts, or keys of claims
    expects: Sequence[str] = ()  # targets that must have changed at the end
    stop_when: Sequence[str] = ()  # conditions under which the agent should stop
    verify_by: Sequence[str] = ()  # the command that verifies the result
    needs_tools: Sequence[str] = ()
    needs_skills: Sequence[str] = ()
    budget: Budget | None = None
    role: str | None = None
    phase: str | None = None
    none: Sequence[str] = ()  # parts that are empty on purpose
    relation: Relation | str = Relation.LEAD_TO_WORKER
    context: str | None = None  # free text; the relay labels it, and scans it if a policy says so

    def __repr__(self) -> str:
        return shown_as("Brief", self)

    def __post_init__(self) -> None:
        recorded = self.__dict__["made"] = self._made()
        for name, given, checked in zip(_LIST_NAMES, _LISTS(self), _LISTS(recorded), strict=True):
            if checked is not given:
                force_setattr(self, name, checked)  # a tuple in place of the caller's list, which could still change
        if type(self.relation) is not Relation:
            force_setattr(self, "relation", as_member("relation", self.relation, Relation))
        if self.context is not None:
            require_text("context", self.context)

    def recorded(self, *, may: Sequence[str] = (), criteria: Sequence[str] = ()) -> Brief:
        """Return the brief as it is recorded. Raises `InvalidValueError` if criteria are given twice."""
        if criteria and self.criteria:
            raise InvalidValueError("criteria", "are given by criteria= and by brief=; say them in one place")
        made: Brief = self.__dict__["made"]
        return replace(made, may=may, criteria=criteria or self.criteria) if may or criteria else made

    def _made(self) -> Brief:
        said: dict[str, Any] = dict(zip(_RECORDED_NAMES, _RECORDED(self), strict=True))
        if self.reasoning is not None:
            require_instance("reasoning", self.reasoning, (Item, ReasoningPlace))
            said["reasoning"] = self.reasoning.id if isinstance(self.reasoning, Item) else None
        return Brief(**said)

    @property
    def thought(self) -> Thought | None:
        """Return the place of the message that the sender hands off with; None if it gave no place."""
        return Thought(place=self.reasoning) if isinstance(self.reasoning, ReasoningPlace) else None


_RECORDED_NAMES: Final = tuple(name for name in BriefRequest.__struct_fields__ if name in Brief.__struct_fields__)
_RECORDED: Final = attrgetter(*_RECORDED_NAMES)
_LIST_NAMES: Final = ("criteria", "inputs", "expects", "stop_when", "verify_by", "needs_tools", "needs_skills", "none")
_LISTS: Final = attrgetter(*_LIST_NAMES)
