"""Ids as people type them."""

import pytest

from batonpass.testing import a_relay, a_run, observe
from tests.cli.conftest import Story, Terminal

pytestmark = pytest.mark.parity("ids-by-suffix-last-or-name")


@pytest.mark.parametrize(
    "spelled",
    [
        pytest.param(lambda story: story.drafter.id, id="the whole id"),
        pytest.param(lambda story: story.drafter.id[-4:], id="its last four letters"),
        pytest.param(lambda story: story.drafter.id[-9:], id="more of its last letters"),
        pytest.param(lambda story: story.drafter.info().run[-4:], id="the last letters of an attempt"),
        pytest.param(lambda story: story.drafter.info().run, id="the whole id of an attempt"),
        pytest.param(lambda _: "drafter", id="the name of an agent with one handoff"),
    ],
)
def test_a_handoff_is_found(terminal: Terminal, story: Story, spelled: object) -> None:
    """An id, its last letters, those of an attempt, or the agent's name find the same handoff."""
    assert callable(spelled)
    shown = terminal.run("handoff", "show", spelled(story), "--json").json()

    assert story.drafter.id == shown["id"]


def test_last_is_the_latest_handoff(terminal: Terminal, story: Story) -> None:
    """`last` is the one that was offered last, whoever offered it."""
    assert list(observe(story.relay).handoffs)[-1] == terminal.run("handoff", "show", "last", "--json").json()["id"]


def test_an_ambiguous_name_is_refused_with_the_choices(terminal: Terminal, story: Story) -> None:
    """An agent with two handoffs is not guessed at, for people as for programs."""
    story.clock.advance(60)
    other = story.lead.hand_off("drafter", "Draft the summary for Jonas", may=["call:**"])
    terminal.run("handoff", "show", "drafter")
    problem = terminal.run("handoff", "retry", "drafter", "--json").json()

    assert "id.ambiguous" == problem["code"]
    assert {story.drafter.id, other.id} == {choice["id"] for choice in problem["facts"]["choices"]}
    terminal.matches("ambiguous", story)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("nobody", id="no agent of this name"),
        pytest.param("zzzz", id="no id that ends so"),
        pytest.param("", id="nothing"),
        pytest.param("%", id="a sign that a database would take for anything"),
        pytest.param("handoff_", id="only what every id begins with"),
    ],
)
def test_an_unknown_id_says_where_to_look(terminal: Terminal, story: Story, text: str) -> None:
    """What is not there is an answer of its own: no, and the command that lists what there is."""
    answer = terminal.run("handoff", "show", text)

    assert (1, "") == (answer.status, answer.out)
    assert "batonpass run list" in answer.err
    assert "id.unknown" in answer.err
    assert story.drafter.id == terminal.run("handoff", "show", "drafter", "--json").json()["id"]


def test_fewer_than_four_letters_are_no_id(terminal: Terminal, story: Story) -> None:
    """Three letters fit too many ids in a year, so they fit none today."""
    assert "id.unknown" == terminal.run("handoff", "show", story.drafter.id[-3:], "--json").json()["code"]


def test_last_of_nothing(terminal: Terminal) -> None:
    """In a ledger without a handoff `last` is none."""
    with a_relay("empty.db") as relay:
        a_run(relay)

    assert "id.unknown" == terminal.run("handoff", "show", "last", "--ledger", "empty.db", "--json").json()["code"]


def test_calls_in_doubt_are_found_by_tool_or_letters(terminal: Terminal, story: Story) -> None:
    """Two equal tools in doubt are told apart by their letters; the choices are shown."""
    one, two = (call.id for call in story.drafter.info().in_doubt)
    assert "id.unknown" == terminal.run("handoff", "retry", "drafter", "--skip", "mail", "--json").json()["code"]

    answer = terminal.run("handoff", "retry", "drafter", "--skip", one[-5:], "--repeat", two, "--json").json()
    settled = observe(story.relay).of("tool.settled")
    assert {one: "skip", two: "repeat"} == {each.body["call"]: each.body["settlement"] for each in settled}
    assert [] == answer["in_doubt"]


def test_a_call_is_repeated_or_skipped_not_both(terminal: Terminal, story: Story) -> None:
    """A contradiction is a wrong question, and changes nothing."""
    answer = terminal.run("handoff", "retry", "drafter", "--skip", "publish", "--repeat", "publish")

    assert (2, "failed") == (answer.status, story.drafter.state())
