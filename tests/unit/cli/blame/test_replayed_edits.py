"""Edits of sub-agents, of which a transcript tells the words and not the place."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit.accounts.shop import Shop
from tests.unit.adapters.claude_code.histories import History
from tests.unit.cli.desk import Desk
from tests.unit.cli.transcripts import a_bare_desk, run_without_ledger

BASE = "def a():\n    return 1\n\n\ndef b():\n    return 2\n"
EDITS = {"beef": ("    return 1\n", "    return 10\n    # new\n"), "cafe": ("    return 2", "    return 20")}
NOW = "def a():\n    return 10\n    # new\n\n\ndef b():\n    return 20\n"


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    """Return a desk with a file that was committed, and that two sub-agents edited since."""
    desk = a_bare_desk(tmp_path, monkeypatch)
    file, history, shop = desk.directory / "a.py", History(tmp_path, desk.directory), Shop(desk.directory)
    file.write_text(BASE, encoding="utf-8")
    monkeypatch.setenv("GIT_COMMITTER_DATE", "2026-02-01T00:00:00Z")
    shop.git("init", "-q")
    shop.git("add", "a.py")
    shop.git("commit", "-qm", "First")
    history.says("Do it")
    for agent, (old, new) in EDITS.items():
        history.uses(f"task-{agent}", "Task", {"description": "d", "prompt": agent, "subagent_type": "editor"})
        path = history.agent(agent)
        about: dict[str, Any] = {"isSidechain": True, "agentId": agent}
        history.says(agent, path, **about)
        given = {"file_path": str(file), "old_string": old, "new_string": new}
        history.uses(f"edit-{agent}", "Edit", given, path, **about)
        history.returns(f"edit-{agent}", "The file has been updated", path, **about)
        history.answers("done", path, **about)
        history.returns(f"task-{agent}", "done", toolUseResult={"status": "completed", "agentId": agent})
    file.write_text(NOW, encoding="utf-8")
    return desk


def _known(desk: Desk) -> dict[int, str]:
    answer = json.loads(run_without_ledger(desk, "blame", "a.py", "--json")[1])
    return {line["line"]: line["known"] for line in answer["lines"] if line["known"] != "unexplained"}


def test_edits_that_lead_to_the_file_have_their_places(desk: Desk) -> None:
    """What is committed, edited as the transcripts say, is the file: each line has one author."""
    assert {2: "matched", 3: "matched", 7: "matched"} == _known(desk)


@pytest.mark.parametrize("now", [f"{NOW}# more\n", NOW.replace("20", "30")], ids=["more", "other"])
def test_edits_that_lead_elsewhere_prove_nothing(desk: Desk, now: str) -> None:
    """Somebody else changed the file as well, so the lines have candidates."""
    (desk.directory / "a.py").write_text(now, encoding="utf-8")

    assert {"candidates"} == set(_known(desk).values())


def test_an_edit_that_fits_twice_proves_nothing(desk: Desk) -> None:
    """Which of the two places it was cannot be told."""
    shop = Shop(desk.directory)
    (desk.directory / "a.py").write_text(BASE + BASE, encoding="utf-8")
    shop.git("commit", "-qam", "Twice")
    (desk.directory / "a.py").write_text(NOW + BASE, encoding="utf-8")

    assert {"candidates"} == set(_known(desk).values())
