"""What the tests of Claude Code's adapter and of the decorators show of the thirteen things, and what they do not.

These two have no driver: Claude Code is a program that nobody scripts turn by turn, and a loop of one's own is whatever
it is. So each thing names the tests that show it. `website/frameworks.py` plays them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

RECORDING: Final = "tests/claude_code/test_recording.py"
DELEGATION: Final = "tests/unit/adapters/coders/session/test_delegation.py"
SUBAGENTS: Final = "tests/unit/adapters/coders/rules/test_held_sessions.py::TestSubagents"
OWN: Final = "tests/unit/adapters/test_own_loop.py"


@dataclass(frozen=True, kw_only=True)
class ShownColumn:
    """A column of the table that is told by tests of its own."""

    title: str
    played_with: str  # where the version stands
    shown: Mapping[str, tuple[str, ...]]  # the tests that show a thing
    cannot: Mapping[str, str] = field(default_factory=dict)  # why it is impossible
    missing: Mapping[str, str] = field(default_factory=dict)  # why it is not there


CLAUDE_CODE: Final = ShownColumn(
    title="Claude Code",
    played_with="requirements-claude.lock",
    shown={
        "exact_task": (f"{RECORDING}::test_an_offer_field_by_field",),
        "baton_reaches_the_model": (f"{RECORDING}::test_the_briefing_reaches_the_model",),
        "accepted_only_when_it_starts": (
            f"{DELEGATION}::test_a_refused_delegation_is_withdrawn",
            f"{DELEGATION}::test_where_the_file_is_there_at_the_start_the_start_is_the_acceptance",
        ),
        "narrowed_grant": ("tests/claude_code/test_grants.py::test_a_session_does_what_it_was_granted",),
        "nested_child_is_guarded": (
            f"{SUBAGENTS}::test_of_a_sub_agent",
            f"{SUBAGENTS}::test_one_that_nobody_offered_anything_is_held_all_the_same",
            f"{DELEGATION}::test_sub_agents_of_sub_agents_hang_from_those",
        ),
        "a_guard_that_crashes_stops_the_call": (
            "tests/claude_code/test_hooks.py::test_enforced_nothing_runs_without_a_recorder",
        ),
        "two_handoffs_in_one_turn": (f"{RECORDING}::test_sub_agents_have_their_own_calls",),
        "parallel_children_have_streams_of_their_own": (f"{RECORDING}::test_sub_agents_have_their_own_calls",),
        "approved_in_another_process": (
            "tests/unit/adapters/coders/session/test_one_way.py::TestHolds::test_it_is_made_once_after_an_approval",
        ),
        "close_out": (f"{DELEGATION}::test_a_sub_agent_from_beginning_to_end",),
        "configuration": (f"{DELEGATION}::test_a_sub_agent_says_what_it_is_made_of",),
    },
    cannot={
        "retry_runs_the_child_only": "only its own program can start a sub-agent; its model has to ask for one again",
    },
    missing={
        "untrusted_output_is_marked": "what comes from outside taints the session, and is not marked for its model",
        "observed_changes_nothing": "the prompt of a sub-agent carries the baton in observed sessions too",
    },
)
OWN_LOOP: Final = ShownColumn(
    title="own loop",
    played_with="",
    shown={
        "exact_task": (f"{OWN}::test_an_agent_is_handed_its_task",),
        "narrowed_grant": (f"{OWN}::test_a_grant_holds_the_agent",),
        "nested_child_is_guarded": (f"{OWN}::test_an_agent_within_an_agent_is_held_as_well",),
        "a_guard_that_crashes_stops_the_call": (f"{OWN}::test_a_guard_that_crashes_stops_the_call",),
        "retry_runs_the_child_only": (f"{OWN}::test_a_retry_runs_the_agent_only",),
        "two_handoffs_in_one_turn": (f"{OWN}::test_the_same_task_twice_is_done_twice",),
        "parallel_children_have_streams_of_their_own": (f"{OWN}::test_coroutine_functions_stay_some",),
        "configuration": (f"{OWN}::test_an_agent_says_what_it_is_made_of",),
    },
    missing={
        "baton_reaches_the_model": "your program asks its model: `current_run().baton` is there to be shown to it",
        "accepted_only_when_it_starts": "a call of an agent is its start: nothing is offered before",
        "untrusted_output_is_marked": "your program shows results to its model; `current_run().taint()` says whose",
        "close_out": "it is the one of every handoff; no test of its own",
        "observed_changes_nothing": "what your model is given is your program's; no test of its own",
        "approved_in_another_process": "the held call raises; your program runs the agent again once it is approved",
    },
)
SHOWN_COLUMNS: Final[Mapping[str, ShownColumn]] = {"claude_code": CLAUDE_CODE, "own_loop": OWN_LOOP}
