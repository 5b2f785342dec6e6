"""Conversations that a framework keeps by itself: what goes on in another process, and what is done anew."""

import pytest

from batonpass import Relay, tool
from batonpass.adapters.frameworks.agent_work import AgentWork
from batonpass.adapters.frameworks.framework_call import FrameworkCall, framework_call
from batonpass.adapters.frameworks.framework_ledger import FrameworkLedger
from batonpass.adapters.frameworks.framework_recorder import (
    ThreadTurn,
    begin_work,
    find_left,
    resume_senders,
    take_up,
)
from batonpass.handoff.calls.pending_call import Begun, Replayed
from batonpass.handoff.tools.declaration import declared_of
from batonpass.model.base.ids import AgentId
from batonpass.model.base.lifecycle import State
from batonpass.model.ledger.run import Run

WORDS = "Fix invoice rounding"
FIRST = ThreadTurn(thread="t", name="1")
SECOND = ThreadTurn(thread="t", name="2")


@tool(target="path", reversible=True)
def write_file(path: str) -> str:
    return path


def _call(path: str) -> FrameworkCall:
    return framework_call(declared_of(write_file), {"path": path})


def _make(work: AgentWork, path: str) -> bool:
    """Make a call, and return whether it was made: a known result is not made again."""
    begun, told = work.ask(_call(path))
    if isinstance(told, Replayed):
        return False
    assert isinstance(begun, Begun)
    work.finish(begun, _call(path), path)
    return True


def _begun(relay: Relay, turn: ThreadTurn, words: str = WORDS) -> AgentWork:
    work = begin_work(FrameworkLedger(by="user:ana", relay=relay), "lead", words, turn=turn)
    work.open()
    return work


def _roots(relay: Relay) -> list[Run]:
    with relay.store.view() as view:
        return sorted(view.find_runs(roots=True), key=lambda run: run.id)


def test_a_turn_that_is_not_over_goes_on(relay: Relay) -> None:
    """Another process resumes its run, and what was finished there is not done again."""
    first = _begun(relay, FIRST)
    assert _make(first, "a")

    again = _begun(relay, FIRST)

    assert again.run is not None
    assert first.run is not None
    assert first.run.id == again.run.id
    assert [False, True] == [_make(again, "a"), _make(again, "b")]


def test_what_the_framework_has_kept_is_not_given_to_it_again(relay: Relay) -> None:
    """It goes on after that: a call like it is another call, and is made; nobody else has changed its target."""
    _make(_begun(relay, FIRST), "a")

    again = _begun(relay, FIRST)
    again.recognise([_call("a"), _call("unknown")])

    assert [True, True] == [_make(again, "a"), _make(again, "unknown")]
    again.close("done")
    assert ["completed"] == [run.state for run in _roots(relay)]


def test_a_turn_that_is_over_is_done_anew(relay: Relay) -> None:
    """Who goes back to an earlier point of a conversation means it."""
    first = _begun(relay, FIRST)
    assert _make(first, "a")
    first.close("done")

    again = _begun(relay, FIRST)

    assert _make(again, "a")
    assert 2 == len(_roots(relay))


def test_two_agents_of_a_turn_have_a_run_each(relay: Relay) -> None:
    """They have one name and work side by side in one process: neither takes the run of the other."""
    ledger = FrameworkLedger(by="user:ana", relay=relay)
    both = [begin_work(ledger, "lead", WORDS, turn=FIRST) for _ in range(2)]
    for work in both:
        work.open()

    assert [True, True] == [_make(work, "a") for work in both]
    assert 2 == len(_roots(relay))


def test_a_turn_that_was_left_goes_on_in_the_same_process(relay: Relay) -> None:
    """The framework failed there, and is invoked again."""
    ledger = FrameworkLedger(by="user:ana", relay=relay)
    first = begin_work(ledger, "lead", WORDS, turn=FIRST)
    first.open()
    assert _make(first, "a")
    first.leave()

    again = begin_work(ledger, "lead", WORDS, turn=FIRST)
    again.open()

    assert not _make(again, "a")
    assert 1 == len(_roots(relay))


def test_the_next_turn_ends_what_was_left(relay: Relay) -> None:
    """A conversation that went on does not go back by itself. All its turns are one session."""
    _begun(relay, FIRST).leave()

    _begun(relay, SECOND, "Never mind").close("done")

    assert ["failed", "completed"] == [run.state for run in _roots(relay)]
    with relay.store.view() as view:
        assert 2 == len([*view.find_runs(session=FIRST.session, roots=True)])


@pytest.mark.parametrize("ends", ["failed", "killed"])
def test_who_was_passed_the_conversation_goes_on(relay: Relay, ends: str) -> None:
    """Another process finds what was left, and its sender, who gets the result."""
    lead = _begun(relay, FIRST)
    editor = lead.offer(AgentId("editor"), "Edit it", key="k")
    editor.open()
    assert _make(editor, "a")
    if ends == "failed":
        editor.abort(OSError("the provider is gone"))
    lead.leave()
    ledger = FrameworkLedger(by="user:ana", relay=relay)

    assert find_left(ledger, FIRST, AgentId("editor"), "Something else") is None
    assert find_left(ledger, FIRST, AgentId("checker"), WORDS) is None
    handoff = find_left(ledger, FIRST, AgentId("editor"), WORDS)
    assert handoff is not None
    (sender,) = resume_senders(ledger, handoff)
    again = take_up(ledger, handoff, sender)
    again.open()

    assert not _make(again, "a")
    again.close("edited")
    sender.close("done")
    assert State.COMPLETED is handoff.state()
    assert (2, "completed") == (handoff.info().attempt, _roots(relay)[0].state)


def test_it_goes_on_without_a_sender_whose_run_is_over(relay: Relay) -> None:
    """The sender had no result, and nobody gives it one."""
    lead = _begun(relay, FIRST)
    editor = lead.offer(AgentId("editor"), "Edit it", key="k")
    editor.open()
    editor.abort(OSError("the provider is gone"))
    lead.abort(OSError("the provider is gone"))
    ledger = FrameworkLedger(by="user:ana", relay=relay)
    handoff = find_left(ledger, FIRST, AgentId("editor"), "Edit it")
    assert handoff is not None

    assert [] == resume_senders(ledger, handoff)
    again = take_up(ledger, handoff)
    again.open()
    again.close("edited")

    assert State.COMPLETED is handoff.state()
