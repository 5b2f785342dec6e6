"""Programs for tests: a few lines of Python that speak the protocol, and the run that they work on."""

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from textwrap import dedent
from typing import Any, Final

from batonpass import Constraint
from batonpass.handoff.live.faces import LiveRun
from batonpass.handoff.programs.program import Program
from batonpass.handoff.transfer.result import Result
from batonpass.relay import Relay

# Asks, and writes every answer to stderr, from where `answers` fetches them.
_SPEAKS: Final = """
import json, sys, time
given = json.loads(sys.stdin.readline())
def say(message):
    print(message if isinstance(message, str) else json.dumps(message), flush=True)
def ask(**message):
    say({"id": 1, **message})
    return json.loads(sys.stdin.readline())
"""


def a_program(body: str, **more: Any) -> Program:  # noqa: ANN401 - as Program
    """Return a program in Python that can `say` and `ask`, and has what it was `given`."""
    return Program([sys.executable, "-c", _SPEAKS + dedent(body)], **more)


def a_shell(script: str, **more: Any) -> Program:  # noqa: ANN401 - as Program
    """Return a program in shell."""
    return Program(["sh", "-c", script], **more)


def a_lead() -> LiveRun:
    return Relay.open("memory:").start("Count the words", by="user:ana", items=[Constraint("never guess")])


def run_program(program: Program, lead: LiveRun | None = None, task: str = "Count the words of 'a b c'") -> Result:
    """Hand a task to a program and return what came of it."""
    return (lead or a_lead()).hand_off("counter", task, run=program).wait(timedelta(seconds=60))


def answers_to(
    tmp_path: Path,
    requests: Sequence[Mapping[str, Any] | str],
    lead: LiveRun | None = None,
    tools: Mapping[str, Callable[..., Any]] | None = None,
) -> list[Any]:
    """Return what a program is answered that sends these requests, one after the other."""
    said = tmp_path / "answers"
    body = f"""
    with open({str(said)!r}, "w") as file:
        for request in json.loads({json.dumps(json.dumps(list(requests)))}):
            say(request)
            file.write(sys.stdin.readline())
    """
    result = run_program(a_program(body, tools=tools or {}), lead)
    assert "completed" == result.state, result.reason
    return [json.loads(line) for line in said.read_text(encoding="utf-8").splitlines()]
