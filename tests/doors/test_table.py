"""The table, as people read it: docs/spec/doors.md has its rows, and says what each door cannot express."""

from pathlib import Path
from typing import Final

import pytest

from batonpass.testing.doors import Door
from batonpass.testing.doors.offers import HANDOFFS
from batonpass.testing.doors.situations import SITUATIONS
from tests.doors.test_a2a import A2aAskedDoor, A2aAskingDoor
from tests.doors.test_agents import AgentDoor, AgentDoorOnHandoff
from tests.doors.test_async import AsyncDoor, AsyncDoorOnHandoff
from tests.doors.test_claude_agent_sdk import SdkDoor
from tests.doors.test_claude_code import HookDoor, HookProcessDoor
from tests.doors.test_coders import DOORS as CODERS
from tests.doors.test_http import HttpDoor
from tests.doors.test_mcp import ProxyDoor, ProxyDoorOnHandoff, ProxyProcessDoor
from tests.doors.test_program import ProgramDoor
from tests.doors.test_python import PythonDoor, PythonDoorOnHandoff
from tests.doors.test_shell import ShellDoor

PAGE: Final = Path(__file__).parents[2] / "docs" / "spec" / "doors.md"
DOORS: Final[list[type[Door]]] = [
    A2aAskedDoor,
    A2aAskingDoor,
    AgentDoor,
    AgentDoorOnHandoff,
    AsyncDoor,
    AsyncDoorOnHandoff,
    *CODERS,
    HookDoor,
    HookProcessDoor,
    HttpDoor,
    ProgramDoor,
    ProxyDoor,
    ProxyDoorOnHandoff,
    ProxyProcessDoor,
    PythonDoor,
    PythonDoorOnHandoff,
    SdkDoor,
    ShellDoor,
]


def rows(chapter: str) -> set[str]:
    """Return the first cells of the table in a chapter of the page."""
    text = PAGE.read_text(encoding="utf-8").partition(f"## {chapter}")[2].partition("\n## ")[0]
    cells = (line.split(" | ")[0].removeprefix("| ") for line in text.splitlines() if line.startswith("| "))
    return {cell for cell in cells if cell != "situation"}


def test_the_page_has_every_situation_and_no_other() -> None:
    """Whoever adds a row tells people of it."""
    assert {situation.name for situation in SITUATIONS} == rows("1. Calls")
    assert {handing.name for handing in HANDOFFS} == rows("3. Handoffs")


@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.__name__)
def test_the_page_says_what_a_door_cannot_express(door: type[Door]) -> None:
    """A row that is skipped is skipped for a reason that people can read."""
    text = PAGE.read_text(encoding="utf-8")

    assert [] == [reason for reason in door.cannot.values() if reason not in text]


def test_names_of_rows_are_unique() -> None:
    """An exception that is made for one row is made for no other."""
    names = [row.name for row in (*SITUATIONS, *HANDOFFS)]

    assert len(set(names)) == len(names)
