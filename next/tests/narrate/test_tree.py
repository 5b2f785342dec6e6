"""A tree in words: who worked below whom, and what stands at the left of each line."""

from typing import Any, Final, get_type_hints

from msgspec import convert

from batonpass.narrate.work import narrate_tree

NOON: Final = "2026-01-05T12:00:00Z"
_TREE: Final = get_type_hints(narrate_tree)["tree"]


def a_handoff(number: int, to: str, *, state: str = "completed", attempt: int = 1) -> dict[str, Any]:
    return {
        "id": f"handoff_{number:026}",
        "to": to,
        "task": f"task {number}",
        "state": state,
        "attempt": attempt,
        "parent": "run_",
        "root": "run_",
        "run": None,
        "seq": number,
        "offered_at": NOON,
    }


def a_run(number: int, agent: str, *, handoff: dict[str, Any] | None = None, **others: Any) -> dict[str, Any]:  # noqa: ANN401 - fields of a run
    return {
        "id": f"run_{number:026}",
        "agent": agent,
        "state": "completed",
        "attempt": 1,
        "task": None if handoff is None else handoff["task"],
        "root": "run_",
        "parent": None,
        "handoff": None if handoff is None else handoff["id"],
        "receipts": 2,
        "started_at": NOON,
        "last_at": NOON,
        "ended_at": NOON,
        "mode": "observed",
    } | others


def a_call(number: int, tool: str, outcome: str | None = "completed") -> dict[str, Any]:
    return {
        "id": f"call_{number:026}",
        "run": "run_",
        "seq": number,
        "key": "0",
        "tool": tool,
        "action": "call",
        "target": tool,
        "arguments": "[[],{}]",
        "requested_at": NOON,
        "outcome": outcome,
        "is_in_doubt": outcome is None,
    }


def lines_of(*runs: dict[str, Any], intent: str | None = "Look into it") -> list[str]:
    tree: dict[str, Any] = {"principal": "user:ana", "intent": intent, "runs": runs}
    return [line.text for line in narrate_tree(convert(tree, _TREE))]


def test_attempts_calls_and_offers_stand_below_the_run_that_made_them() -> None:
    """Calls come first, then each attempt at what was handed on, then what waits; branches join where they belong."""
    compiled, drafted, waiting = a_handoff(1, "compiler"), a_handoff(2, "drafter"), a_handoff(3, "mailer", attempt=0)
    checked = a_handoff(4, "checker")
    waiting["state"] = "offered"
    lines = lines_of(
        a_run(1, "lead", state="open", calls=[a_call(1, "plan")], children=[compiled, drafted, waiting]),
        a_run(2, "compiler", handoff=compiled, calls=[a_call(2, "pull")]),
        a_run(3, "drafter", handoff=drafted, state="fenced", calls=[a_call(3, "mail", None)]),
        a_run(4, "drafter", handoff=drafted, attempt=2, kept=2, children=[checked]),
        a_run(5, "checker", handoff=checked),
    )

    assert lines == [
        'user:ana: "Look into it"',
        "└─ lead 0001  open",
        "   │  plan()  completed · <1ms",
        '   ├─ compiler 0002  completed  "task 1"',
        "   │     pull()  completed · <1ms",
        '   ├─ drafter 0003  fenced by a retry  "task 2"',
        "   │     mail()  no outcome: in doubt 0003",
        '   ├─ drafter 0004  completed  "task 2"',
        "   │  │  2 calls kept from earlier attempts, not made again",
        '   │  └─ checker 0005  completed  "task 4"',
        '   └─ mailer  offered  "task 3"',
    ]


def test_a_handoff_that_waits_again_is_said_beside_its_attempts() -> None:
    """After a retry was ordered the tree shows the attempt that ended and the one that waits."""
    again = a_handoff(1, "drafter", state="offered", attempt=1)
    lines = lines_of(a_run(1, "lead", children=[again]), a_run(2, "drafter", handoff=again, state="fenced"))

    assert lines[2:] == [
        '   ├─ drafter 0002  fenced by a retry  "task 1"',
        '   └─ drafter  offered · attempt 2 waits  "task 1"',
    ]


def test_erased_words_are_said_to_be_erased() -> None:
    """A tree whose words were erased keeps its form."""
    assert lines_of(a_run(1, "lead"), intent=None) == ["user:ana: (erased)", "└─ lead 0001  completed"]


def test_a_chain_may_be_deeper_than_the_stack_of_python() -> None:
    """A thousand agents that each hand on are a line each, further and further to the right."""
    handoffs = [a_handoff(number, "next") for number in range(1, 1_500)]
    runs = [a_run(0, "lead", children=handoffs[:1])]
    runs += [
        a_run(number, "next", handoff=handoff, children=handoffs[number : number + 1])
        for number, handoff in enumerate(handoffs, 1)
    ]

    assert len(lines_of(*runs)) == 1_501
