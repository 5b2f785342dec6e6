"""A card: what an agent says about itself."""

from typing import Any, Final

import pytest
from msgspec.structs import fields, replace

from batonpass.errors import InvalidValueError
from batonpass.model.baton.card import Card
from tests.unit.model.examples import EDITOR
from tests.unit.model.wrongs import NOT_AGENTS

CARD: Final = Card(
    agent=EDITOR,
    description="edits code",
    skills=("python",),
    tools=("write_file",),
    accepts=("text/plain", "application/json"),
    ceiling=("write:src/**",),
    public=True,
)
NOT_LISTS: Final = ("python", [""], [" "], [7], ["\ud800"])
WRONG: Final[dict[str, tuple[object, ...]]] = {
    "agent": NOT_AGENTS,
    "description": (7, None, b"edits", "\ud800"),
    "skills": NOT_LISTS,
    "tools": NOT_LISTS,
    "accepts": (*NOT_LISTS, ["text"], ["text/plain; charset=utf-8"], ["Text/Plain"]),
    "ceiling": NOT_LISTS,
    "public": (None, 1, "yes"),
}


def test_no_field_goes_unchecked() -> None:
    """The table has every field."""
    assert {field.name for field in fields(Card)} == set(WRONG)


@pytest.mark.parametrize("name", WRONG, ids="the {} of a card".format)
def test_an_invalid_field_is_refused_by_name(name: str) -> None:
    """Whatever is wrong, the field is named; a single text where a list belongs is a mistake."""
    for wrong in WRONG[name]:
        with pytest.raises(InvalidValueError) as refused:
            replace(CARD, **{name: wrong})
        assert name == refused.value.field


def test_what_a_card_does_not_say_is_not_known() -> None:
    """None is not the same as none: an agent without skills says so with an empty list."""
    card = Card(agent=EDITOR)

    assert ("", None, None, None) == (card.description, card.skills, card.tools, card.accepts)
    assert () == replace(card, skills=()).skills


def test_lists_are_kept_as_they_were() -> None:
    """What was said stays, whatever becomes of the list that said it; the card itself cannot be changed."""
    skills: Any = ["python"]
    card = Card(agent=EDITOR, skills=skills)
    skills.append("rust")

    assert ("python",) == card.skills
    with pytest.raises(AttributeError):
        card.skills = ()  # type: ignore[misc]
    assert CARD == replace(CARD)


@pytest.mark.parametrize("ceiling", [None, ()])
def test_an_agent_that_anybody_may_ask_has_a_ceiling(ceiling: tuple[str, ...] | None) -> None:
    """Whoever comes in without a token holds nothing else."""
    with pytest.raises(InvalidValueError, match="ceiling"):
        Card(agent=EDITOR, public=True, ceiling=ceiling)
