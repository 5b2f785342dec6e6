"""From what a caller writes to what is asked for."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from batonpass.errors import InvalidValueError
from batonpass.handoff.transfer.asked import Asked
from batonpass.model.baton import Brief
from batonpass.model.bodies import Relation
from batonpass.model.checks import as_member
from batonpass.model.grant import Grant
from batonpass.model.ids import AgentId
from batonpass.model.items import Item, ItemValue
from batonpass.model.lifecycle import Carrier
from batonpass.model.policy import HandoffPolicy
from batonpass.model.reasoning import Thought


def asked_for(
    *,
    to: str,
    task: str,
    relation: Relation | str,
    carrier: Carrier | str,
    deadline: datetime | None,
    hold: bool,
    key: str | None,
    carry: Iterable[Item] | None,
    context: str | None,
    policy: HandoffPolicy | None,
    grant: Grant | None,
    thought: Thought | None,
    brief: Mapping[str, Any],
    said: Mapping[type[Any], Iterable[ItemValue | str]],
) -> Asked:
    """Return what is asked for. Raises `InvalidValueError` for the first thing that cannot be right."""
    return Asked(
        to=AgentId(to),
        task=task,
        relation=as_member("relation", relation, Relation),
        brief=Brief(**brief),
        said=tuple([value for kind, given in said.items() if given != () for value in items_of(kind, given)]),
        deadline=deadline,
        carrier=as_member("carrier", carrier, Carrier),
        hold=hold,
        key=key,
        carry=None if carry is None else frozenset(item.id for item in carry),
        context=context,
        policy=policy,
        grant=grant,
        thought=thought,
    )


def items_of(kind: type[Any], given: Iterable[ItemValue | str]) -> Sequence[ItemValue]:
    """Return items of one kind; a text alone is the shortest way to write one."""
    if isinstance(given, str):
        raise InvalidValueError(kind.__name__, "is one text; write a list")
    values = [kind(value) if isinstance(value, str) else value for value in given]
    for value in values:
        if not isinstance(value, kind):
            raise InvalidValueError(kind.__name__, f"{type(value).__name__} stands where a {kind.__name__} belongs")
    return values
