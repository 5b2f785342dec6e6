"""`batonpass policy`: check the file, explain what it says, and try it on what is recorded."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from batonpass.cli.nouns import cli
from batonpass.handoff.tools.declaration import tool
from batonpass.relay import Relay
from tests.unit.cli.desk import Desk

RULES = """
[[rules]]
name = "prod"
on = "call"
gate = "deny"
target = "prod"

[[rules]]
name = "never"
on = "handoff"
gate = "approve"
agent = "nobody"
"""


@tool(reversible=False, target="place")
def deploy(place: str) -> None:
    """Do nothing, for good."""


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["policy", *arguments], prog_name="batonpass")


def answer(*arguments: str) -> Any:  # noqa: ANN401 - whatever JSON can hold
    return json.loads(run(*arguments, "--json").stdout)


@pytest.fixture
def shipped(tmp_path: Path) -> str:
    """Return the handoff of a tree in which two things were deployed."""
    with (
        Relay.open(f"sqlite:///{tmp_path}/.batonpass/ledger.db") as relay,
        relay.start("Ship it", by="user:ana") as lead,
    ):
        handoff = lead.hand_off("shipper", "Ship it")
        with handoff as shipper:
            shipper.call(deploy, "staging")
            shipper.call(deploy, "prod")
        return handoff.id


def test_without_a_file_the_shipped_policy_is_printed() -> None:
    """It is a file to begin with."""
    done = run("explain")

    assert (0, True) == (done.exit_code, "[handoffs.worker-to-lead]" in done.stdout)
    assert "approve" == answer("explain")["tiers"]["irreversible"]
    assert "there is no batonpass.toml here: the shipped policy is in force\n" == run("check").stdout
    assert {"right": True, "file": None, "digest": None, "deprecated": None} == answer("check")


def test_who_may_approve_what_is_explained(tmp_path: Path) -> None:
    """By person, with how many people a rule takes, for people and for programs."""
    people = '[approvers."user:ana"]\nagents = ["payer"]\nmay = ["pay:*"]\n\n[approvers."user:ben"]\n\n'
    rule = '[[rules]]\nname = "two"\non = "call"\ngate = "approve"\napprovals = 2\n'
    (tmp_path / "batonpass.toml").write_text(people + rule, encoding="utf-8")
    told, found = run("explain").stdout, answer("explain")

    for part in ("user:ana may approve pay:* of payer", "user:ben may approve everything", "approve by 2 people"):
        assert part in told
    assert ({"agents": ["payer"], "may": ["pay:*"]}, {"agents": None, "may": None}, 2) == (
        found["approvers"]["user:ana"],
        found["approvers"]["user:ben"],
        found["rules"][0]["approvals"],
    )


def test_a_file_is_checked(tmp_path: Path) -> None:
    """Right or wrong, with the line, for people and for programs."""
    (tmp_path / "batonpass.toml").write_text(RULES, encoding="utf-8")
    (tmp_path / "wrong.toml").write_text("[tiers]\ncheap = 1\n", encoding="utf-8")
    right, wrong = run("check"), run("check", "wrong.toml")

    assert (0, True) == (right.exit_code, "2 rules" in right.stdout)
    assert (1, True) == (wrong.exit_code, "wrong.toml:2: tiers.cheap: there is no such key" in wrong.stderr)
    assert (False, 2, "tiers.cheap") == tuple(answer("check", "wrong.toml")[key] for key in ("right", "line", "key"))


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("[claude-code]\ndefault = 'ask'\n", 2),
        ("[claude-code.main]\ndeny = ['Bash(']\n", 2),
        ("[mcp.files]\n\ntool = 1\n", 3),
    ],
    ids=["no such default", "no pattern", "nothing that is said of a server"],
)
def test_what_others_read_from_the_file_is_checked_as_well(tmp_path: Path, text: str, line: int) -> None:
    """The tables of the hooks and of the proxy are part of the file."""
    (tmp_path / "odd.toml").write_text(text, encoding="utf-8")

    assert (False, line) == tuple(answer("check", "odd.toml")[key] for key in ("right", "line"))


FORMER = '[claude-code.main]\ndeny = ["WebFetch"]  # never\n\n# and all else\n[tiers]\ncostly = "none"\n'
UPGRADED = """\
# and all else
[tiers]
costly = "none"

[[rules]]
name = "claude-code.main.denied"
on = "call"
gate = "deny"
agent = "claude-code"
tool = ["WebFetch"]
door = "claude-code"
"""


def test_tables_of_earlier_versions_are_written_as_rules(tmp_path: Path) -> None:
    """They are still valid, with a sentence that says what to do; what is written means the same."""
    path = tmp_path / "batonpass.toml"
    path.write_text(FORMER, encoding="utf-8")
    checked, shown = run("check"), run("upgrade")
    unchanged = path.read_text(encoding="utf-8")
    written = run("upgrade", "--write")

    assert (0, True) == (checked.exit_code, "1 rule" in checked.stdout)
    deprecated = "batonpass.toml:1: [claude-code] is deprecated: `batonpass policy upgrade` writes it as [[rules]]"
    assert f"batonpass: {deprecated}\n" == checked.stderr
    assert (UPGRADED, FORMER) == (shown.stdout, unchanged)
    assert (f"upgraded {path}\n", UPGRADED) == (written.stdout, path.read_text(encoding="utf-8"))
    assert (None, "there is nothing to upgrade\n") == (answer("check")["deprecated"], run("upgrade").stdout)


def test_a_layout_that_cannot_be_upgraded_is_left_as_it_is(tmp_path: Path) -> None:
    """A person has to do it; nothing is lost on the way."""
    path = tmp_path / "batonpass.toml"
    path.write_text('claude-code.main.deny = ["WebFetch"]\n', encoding="utf-8")
    done = run("upgrade", "--write")

    assert (2, True) == (done.exit_code, "is laid out in a way that only a person can upgrade" in done.stderr)
    assert 'claude-code.main.deny = ["WebFetch"]\n' == path.read_text(encoding="utf-8")


def test_a_dry_run_counts_rule_by_rule(tmp_path: Path, shipped: str) -> None:
    """So many of so many would have been denied, for example these; one that fits nothing is told as well."""
    (tmp_path / "batonpass.toml").write_text(RULES, encoding="utf-8")
    words = run("dry-run", "--last", "200").stdout

    assert ["prod would have denied 1 of 3", "never would have held 0 of 3"] == [
        line for line in words.splitlines() if line.startswith(("prod", "never"))
    ]
    found = answer("dry-run")
    assert (3, 1, 1) == (
        found["looked_at"],
        found["rules"]["prod"]["denied"],
        found["rules"]["tier.irreversible"]["held"],
    )
    assert [shipped] == [example["id"] for example in found["rules"]["method.lead-to-worker"]["examples"]]
    assert 1 == answer("dry-run", "--last", "1")["looked_at"]


def test_nothing_to_hold_is_said(tmp_path: Path) -> None:
    """An empty ledger has nothing that a policy could be tried on."""
    with Relay.open(f"sqlite:///{tmp_path}/.batonpass/ledger.db") as relay, relay.start("Look", by="user:ana"):
        pass

    assert "nothing would have been held or denied of 0\n" == run("dry-run").stdout


def test_a_handoff_a_call_and_a_rule_are_explained(tmp_path: Path, shipped: str) -> None:
    """What the policy says of it, by which rule, written where."""
    (tmp_path / "batonpass.toml").write_text(RULES, encoding="utf-8")
    call = answer("dry-run")["rules"]["prod"]["examples"][0]["id"]

    assert "method.lead-to-worker · the shipped policy" in run("explain", shipped).stdout
    assert "deny · prod · batonpass.toml:2\n" in run("explain", call).stdout
    assert ["would_deny.prod"] == [each["flag"] for each in answer("explain", call)["decisions"]]
    assert "prod · batonpass.toml:2 · deny for every call with target prod\n" == run("explain", "prod").stdout
    assert ("deny", 2) == tuple(answer("explain", "prod")[key] for key in ("gate", "line"))
    assert "deny for every call with target prod" in run("explain").stdout
    assert 1 == run("explain", "nothing-like-it").exit_code


def test_a_policy_may_be_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By an option, or by a setting."""
    (tmp_path / "other.toml").write_text(RULES, encoding="utf-8")
    by_option = answer("explain", "prod", "--policy", "other.toml")
    monkeypatch.setenv("BATONPASS_POLICY", "other.toml")

    assert by_option == answer("explain", "prod")


def test_the_shipped_policy_is_a_file_to_begin_with(desk: Desk) -> None:
    """Line by line, so that what is printed can be read as a policy."""
    shown = desk.words("policy", "explain")
    (desk.directory / "batonpass.toml").write_text(shown, encoding="utf-8")

    assert "\\n" not in shown
    assert desk.words("policy", "check").startswith("valid: ")
