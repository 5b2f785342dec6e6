"""What an agent is made of, in one form for every door."""

from types import SimpleNamespace

import pytest

from batonpass.handoff.programs.agent_makeup import makeup


def named(**names: str) -> object:
    """Return an object of a framework with these attributes."""
    return SimpleNamespace(**names)


def tomorrow() -> str:
    return "a prompt that is made anew for each task"


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        pytest.param("m-1", "m-1", id="a name"),
        pytest.param(named(model_name="m-1", name="chat"), "m-1", id="the name of a model before that of its object"),
        pytest.param(named(model="m-1"), "m-1", id="a client that says which model it asks"),
        pytest.param(named(), "SimpleNamespace", id="an object that says nothing is known by its class"),
    ],
)
def test_a_model_has_a_name(model: object, expected: str) -> None:
    """Whatever a framework calls it."""
    assert {"model": expected} == makeup(model=model)


@pytest.mark.parametrize("nothing", [None, "", (), [None]])
def test_what_nobody_knows_is_left_out(nothing: object) -> None:
    """An unknown prompt is not the same as an empty one somewhere else."""
    assert {} == makeup(model=None, prompt=nothing)


def test_a_prompt_is_known_by_its_digest() -> None:
    """Of one text or of several; where one ends and the next begins makes a difference."""
    said = [makeup(prompt=one)["prompt"] for one in ("You are it.", ["You are it."], ["You are ", "it."])]

    assert said[0] == said[1] != said[2]
    assert all(one.startswith("sha256:") and "You" not in one for one in said)


def test_a_prompt_that_a_function_makes_is_known_by_the_function() -> None:
    """With its words, each task would be the first of a new baseline."""
    assert makeup(prompt=tomorrow) == makeup(prompt=tomorrow)
    assert makeup(prompt=tomorrow) != makeup(prompt=named)


def test_no_tools_are_said_to_be_none() -> None:
    """That is another agent than one whose tools nobody knows."""
    assert {"tools": []} == makeup(tools=())


def test_tools_have_names_in_order() -> None:
    """As a text, a function, an object or a declaration for a model; what has no name is left out."""
    declared = [{"type": "function", "function": {"name": "c"}}, {"name": "d"}, {"type": "web_search"}, {}]

    assert {"tools": ["b", "c", "d", "tomorrow", "web_search", "x"]} == makeup(
        tools=["x", tomorrow, named(name="b"), named(), *declared]
    )
