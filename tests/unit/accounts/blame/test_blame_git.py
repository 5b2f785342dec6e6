"""What is said of lines that an agent had git bring."""

from pathlib import Path

import pytest

from batonpass.adapters.line_blame import blame
from batonpass.relay import Relay
from tests.attribution.repository import git

TOTAL = "total = sum_of_all(invoice)\n"
TAXES = "taxes = rate_for(country) * total\n"
EMAIL = "send_by_email(invoice, names)\n"


def test_an_agent_that_merges_is_given_nothing_of_what_came(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Recorded by a relay, and all within a second: its own short line stays its own, and the person's is nobody's."""
    root, file = tmp_path / "work", tmp_path / "work" / "invoice.py"
    root.mkdir()
    monkeypatch.chdir(root)
    who = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
    file.write_text(TOTAL + TAXES, encoding="utf-8")
    git(root, "init", "--quiet", "--initial-branch=main")
    git(root, "add", "--all")
    git(root, *who, "commit", "--quiet", "--message=one")
    git(root, "checkout", "--quiet", "-b", "topic")
    file.write_text(TOTAL + EMAIL + TAXES, encoding="utf-8")
    git(root, *who, "commit", "--quiet", "--all", "--message=a person")
    git(root, "checkout", "--quiet", "main")

    def write_file(path: str, text: str) -> None:
        Path(path).write_text(text, encoding="utf-8")

    with Relay.open(f"sqlite:///{tmp_path}/ledger.db", work_tree=root) as relay:
        with relay.start("work", by="user:ana") as lead:
            lead.call(write_file, file.name, TOTAL + TAXES + "k = 5\n")
            git(root, *who, "commit", "--quiet", "--all", "--message=of an agent")
            lead.shell(["git", *who, "merge", "--quiet", "--no-edit", "topic"])
        found = blame(file, relay=relay)

    assert [None, None, None, lead.id] == [line.run for line in found.lines]
    assert [()] * 3 == [line.calls for line in found.lines[:3]]
