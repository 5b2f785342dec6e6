"""Three programs written for another library run here with only their import lines changed."""

import ast
import asyncio
import inspect
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.integration.agents.messages_api import Asked, MessagesApi, Said, Text, Use, serving

# Text, so that no formatter makes them ours: they stay as their authors wrote them.
PROGRAMS: Final = Path(__file__).parent / "programs"
KEY: Final = "GRAMPUS_MODEL__ANTHROPIC_API_KEY"
JUDGES: Final = {"verify_result", "accept_unverified", "refute_result", "send_back"}  # for whoever hands off
INVOICE: Final = "I need help with my last invoice."


def script(asked: Asked) -> Said:
    """Support hands to billing, in the spelling of its tools; billing to the specialist if it can; each answers."""
    if "customer support agent" in asked.system:
        if asked.answers == 0:
            return Use(
                "handoff_to_billing-agent", {"task": "Explain the last invoice", "context": "A polite customer."}
            )
        return Text("Your last invoice is for the March plan.")
    if "billing specialist" in asked.system and "handoff_to_payment_specialist" in asked.tools and asked.answers == 0:
        return Use("handoff_to_payment_specialist", {"task": "Check the payment"})
    if "payment specialist" in asked.system and asked.answers == 0:
        return Use("handoff_to_billing_agent", {"task": "Take it back"})
    return Use("report_back", {"result": "March plan, 19.00 EUR", "none": ["question", "rejected", "assumption"]})


@pytest.fixture
def api() -> Iterator[MessagesApi]:
    """Return a provider on this machine."""
    with serving(script) as api:
        yield api


def run(program: str, api: MessagesApi, folder: Path) -> str:
    """Run a program as a file in an empty folder and return what it prints."""
    # A file may use await at its head as the interactive interpreter lets people do; nothing else is added to it.
    loader = (
        "import ast, asyncio, inspect, sys\n"
        "code = compile(open(sys.argv[1]).read(), sys.argv[1], 'exec', flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)\n"
        "names = {'__name__': '__main__'}\n"
        "running = eval(code, names)\n"
        "inspect.iscoroutine(running) and asyncio.run(running)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", loader, PROGRAMS / program],
        cwd=folder,
        env={**os.environ, "ANTHROPIC_BASE_URL": api.url, KEY: "sk-for-the-test"},
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )
    assert (0, "") == (done.returncode, done.stderr)
    return done.stdout


@pytest.mark.slow
def test_the_basic_handoff_runs(api: MessagesApi, tmp_path: Path) -> None:
    """Support offers the tool and those that judge a result, billing gets task and intent, the user has an answer."""
    assert "Your last invoice is for the March plan.\n" == run("basic_handoff.txt", api, tmp_path)
    support, billing, _ = api.asked

    assert {"handoff_to_billing_agent", *JUDGES} == set(support.tools)
    assert not JUDGES & set(billing.tools)
    assert (True, True) == ("- Explain the last invoice" in billing.words, f"- {INVOICE} [" in billing.words)
    assert (False, False) == (INVOICE in billing.system, "sk-for-the-test" in str([asked.body for asked in api.asked]))


@pytest.mark.slow
def test_the_chain_stops_where_the_policy_says(api: MessagesApi, tmp_path: Path) -> None:
    """User, support, billing, specialist: a further hop is refused, and the specialist answers instead."""
    said = run("multi_hop.txt", api, tmp_path)
    refused = [asked for asked in api.asked if "this lineage already has" in asked.words]

    assert "Your last invoice is for the March plan.\n" == said
    assert ["payment specialist" in asked.system for asked in refused] == [True]


@pytest.mark.slow
def test_the_events_of_a_session_are_listed(api: MessagesApi, tmp_path: Path) -> None:
    """The log tells the handoffs of the session, also the refused one, each with time, type and what happened."""
    run("multi_hop.txt", api, tmp_path)
    lines = run("event_query.txt", api, tmp_path).splitlines()
    types = [line.partition("] ")[2].partition(":")[0] for line in lines]

    assert [
        "handoff.initiated",
        "handoff.context_sanitized",
        "handoff.accepted",
        "handoff.initiated",
        "handoff.accepted",
        "handoff.initiated",
        "handoff.failed",
        "handoff.completed",
        "handoff.completed",
    ] == types
    assert all(line.startswith("[20") for line in lines)


@pytest.mark.parametrize("program", sorted(path.name for path in PROGRAMS.glob("*.txt")))
def test_only_import_lines_name_this_library(program: str) -> None:
    """Nothing of a program but its imports knows where it runs."""
    text = (PROGRAMS / program).read_text(encoding="utf-8")
    flags = ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    tree = compile(text, program, "exec", flags=flags)
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom | ast.Import)]
    lines = {line for node in imports for line in range(node.lineno, (node.end_lineno or 0) + 1)}
    named = {number for number, line in enumerate(text.splitlines(), 1) if "batonpass" in line}

    assert (True, set()) == (bool(named), named - lines)


def test_the_loader_takes_await_at_the_head_of_a_file() -> None:
    """What the programs are run with is what people type at the prompt."""
    code = compile("await asyncio.sleep(0)", "x", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    running = eval(code, {"asyncio": asyncio})  # noqa: S307 - our own words

    assert inspect.iscoroutine(running)
    asyncio.run(running)
