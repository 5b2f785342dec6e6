"""A brief as callers write it: the recorded brief, what kind of handoff it is, and free text."""

from collections.abc import Sequence
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import force_setattr, replace

from batonpass.errors import InvalidValueError
from batonpass.model.base.checks import as_member, require_instance, require_text
from batonpass.model.base.kinds import Relation
from batonpass.model.baton.baton import Brief, Budget
from batonpass.model.baton.items import Item
from batonpass.model.bodies.reasoning import ReasoningPlace, Thought


class BriefRequest(Struct, frozen=True, kw_only=True, dict=True):
    """What the sender says about a task beyond the task itself; two offers that say the same are the same handoff."""

    rationale: str | None = None  # why it is handed off
    reasoning: Item | ReasoningPlace | None = None  # what the sender thinks now: an artifact, or where a message stands
    serves: str | None = None  # which criterion of the sender's own task
    criteria: Sequence[str] = ()  # when is it done well
    inputs: Sequence[str] = ()  # names of artifacts or keys of claims that it cannot do without
    expects: Sequence[str] = ()  # targets that must have changed at the end
    stop_when: Sequence[str] = ()
    verify_by: Sequence[str] = ()  # the command that decides whether the result holds
    needs_tools: Sequence[str] = ()
    needs_skills: Sequence[str] = ()
    budget: Budget | None = None
    role: str | None = None
    phase: str | None = None
    none: Sequence[str] = ()  # parts of which the sender says that there are none
    relation: Relation | str = Relation.LEAD_TO_WORKER
    context: str | None = None  # free text: labelled, and scanned where a policy says so

    def __post_init__(self) -> None:
        recorded = self.__dict__["made"] = self._made()
        for name in _LISTS:
            if (checked := getattr(recorded, name)) is not getattr(self, name):
                force_setattr(self, name, checked)  # nobody changes it afterwards
        force_setattr(self, "relation", as_member("relation", self.relation, Relation))
        if self.context is not None:
            require_text("context", self.context)

    def recorded(self, *, may: Sequence[str] = (), criteria: Sequence[str] = ()) -> Brief:
        """Return it as a baton has it. Raises `InvalidValueError` for the first thing that cannot be right."""
        if criteria and self.criteria:
            raise InvalidValueError("criteria", "are given by criteria= and by brief=; say them in one place")
        made: Brief = self.__dict__["made"]
        return replace(made, may=may, criteria=criteria or self.criteria) if may or criteria else made

    def _made(self) -> Brief:
        said: dict[str, Any] = {name: getattr(self, name) for name in _RECORDED}
        if self.reasoning is not None:
            require_instance("reasoning", self.reasoning, (Item, ReasoningPlace))
            said["reasoning"] = self.reasoning.id if isinstance(self.reasoning, Item) else None
        return Brief(**said)

    @property
    def thought(self) -> Thought | None:
        """Return where the message stands that the sender hands off with; None where it does not say."""
        return Thought(place=self.reasoning) if isinstance(self.reasoning, ReasoningPlace) else None


_RECORDED: Final = tuple(name for name in BriefRequest.__struct_fields__ if name in Brief.__struct_fields__)
_LISTS: Final = ("criteria", "inputs", "expects", "stop_when", "verify_by", "needs_tools", "needs_skills", "none")
