"""What `batonpass grant suggest` prints, pasted into batonpass.toml."""

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from batonpass.cli.nouns import cli
from batonpass.handoff.tools.declaration import tool
from batonpass.policy.policy_table import read_policy
from batonpass.relay import Relay


def batonpass(*words: str) -> Result:
    return CliRunner().invoke(cli, list(words), prog_name="batonpass")


@tool(target="path")
def write(path: str) -> None:
    """Write a file."""


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return where two agents were watched."""
    monkeypatch.chdir(tmp_path)
    with Relay.open(f"sqlite:///{tmp_path}/.batonpass/ledger.db") as relay:
        lead = relay.start("Fix it", by="user:ana")
        lead.call(write, "docs/a.md")
        with lead.hand_off("editor", "Edit") as editor:
            editor.call(write, "docs/a.md")
            editor.call(write, "src/a.py")
        lead.close()
    return tmp_path


SUGGESTED = """\
[grant.editor]
may = [
    "write:docs/a.md",  # 1 call
    "write:src/a.py",  # 1 call
]
may_delegate = []

[grant.lead]
may = [
    "write:docs/a.md",  # 1 call, 1 below
]
may_delegate = [
    "write:docs/a.md",  # 1 call, 1 below
    "write:src/a.py",  # 1 call below
]
"""


def test_what_is_suggested_is_toml_with_what_it_rests_on() -> None:
    """Line by line, behind each permit how many calls it covers, of the agent itself and below it."""
    assert SUGGESTED == batonpass("grant", "suggest").stdout


def test_what_is_pasted_is_checked_and_explained(place: Path) -> None:
    """The file is right as it was printed; explaining it says who may what, and where that stands."""
    file = place / "batonpass.toml"
    file.write_text(f'{SUGGESTED}limits = "at most 9 calls"\nmax_depth = 2\n', encoding="utf-8")

    checked, explained = batonpass("policy", "check"), batonpass("policy", "explain")

    assert ["editor", "lead"] == sorted(read_policy(file).grants)
    assert (0, True) == (checked.exit_code, "0 rules · 2 grants" in checked.stdout)
    assert "  lead · batonpass.toml:8" in explained.stdout
    assert "    may delegate  write:docs/a.md\n                  write:src/a.py\n" in explained.stdout
    assert "    within        at most 9 calls, a chain to depth 2" in explained.stdout


def test_a_permit_that_is_wrong_is_named_with_its_line(place: Path) -> None:
    """Exit code 1, and the line of the very permit."""
    (place / "batonpass.toml").write_text(SUGGESTED.replace("write:src/a.py", "write", 1), encoding="utf-8")

    checked = batonpass("policy", "check")

    assert (1, True) == (checked.exit_code, "batonpass.toml:4: grant.editor.may[2]" in checked.stderr)


def test_a_table_is_tried_on_what_is_recorded(place: Path) -> None:
    """What its agent would have been denied, and what those below it would have, as it could not delegate that."""
    file = place / "batonpass.toml"
    file.write_text(
        '[grant.editor]\nmay = ["write:docs/**"]\n\n[grant.lead]\nmay = ["write:docs/**"]\nmay_delegate = []\n',
        encoding="utf-8",
    )
    tried, one = batonpass("policy", "dry-run"), batonpass("policy", "explain", "lead")

    assert "grant.editor would have denied 1 of 4\n" in tried.stdout
    assert "editor may write:docs/**, and tried write:src/a.py" in tried.stdout
    assert "grant.lead would have denied 2 of 4\n" in tried.stdout
    assert "lead may delegate nothing, editor tried write:src/a.py" in tried.stdout
    assert ["lead · batonpass.toml:4", "  may           write:docs/**", "  may delegate  nothing"] == [
        line.replace(f"{place}/", "") for line in one.stdout.splitlines()
    ]


def test_a_suggested_table_denies_nothing_that_was_done(place: Path) -> None:
    """It is right as it was printed, also where a condition is added that held."""
    conditional = SUGGESTED.replace('"write:src/a.py"', '"write:src/a.py where path in [\\"src/a.py\\"]"')
    (place / "batonpass.toml").write_text(conditional, encoding="utf-8")
    told = batonpass("policy", "dry-run").stdout

    assert ["denied 0 of 4"] * 2 == [line.partition("would have ")[2] for line in told.splitlines() if "grant." in line]
