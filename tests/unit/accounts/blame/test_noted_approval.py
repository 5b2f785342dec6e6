"""An approval in a note: it counts with the key of an approver whom the reader has pinned, and with no other."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from batonpass.cli.nouns import cli
from batonpass.errors import CallSuspendedError
from batonpass.handoff.tools.declaration import tool
from batonpass.model.base.ids import CallId
from batonpass.model.policy.policy_rules import Policy
from batonpass.notes.trusted_keys import KEYS_FILE
from batonpass.relay import Relay
from batonpass.signing.ed25519 import Ed25519Signer
from tests.attribution.repository import git
from tests.unit.handoff.approvers import BEN, an_approver

WHO = ("-c", "user.name=Ana", "-c", "user.email=ana@example.org")


@tool(reversible=False, target="path")
def publish(path: str, text: str) -> None:
    """Write a file, which nobody takes back."""
    Path(path).write_text(text, encoding="utf-8")


@pytest.fixture
def keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Let Ben approve a call of Ana's agent, note it, and go to a clone; return the keys of her relay and of Ben."""
    monkeypatch.setenv("HOME", str(tmp_path))
    root = tmp_path / "shop"
    root.mkdir()
    monkeypatch.chdir(root)
    git(root, "init", "--quiet", "--initial-branch=main")
    (root / ".gitignore").write_text(".batonpass\n", encoding="utf-8")
    commit(root, "Begin")
    policy = Policy(enforce=True, proven=True)
    with Relay.open(f"sqlite:///{root}/.batonpass/ledger.db", work_tree=root, policy=policy) as relay:
        ben = an_approver(relay, BEN)
        with relay.start("Publish", by="user:ana") as lead:
            with pytest.raises(CallSuspendedError) as held:
                lead.call(publish, "a.txt", "published\n")
            relay.held_call(CallId(held.value.call)).approve(by=ben)
            lead.call(publish, "a.txt", "published\n")
        found: dict[str, str] = {
            "relay": next(iter(relay.admin.keys())).public_key,
            "ben": ben.signer.public_key,
        }
    commit(root, "Publish")
    assert 0 == CliRunner().invoke(cli, ["git", "note"]).exit_code
    git(tmp_path, "clone", "--quiet", "shop", "clone")
    git(tmp_path / "clone", "fetch", "--quiet", "origin", "refs/notes/*:refs/notes/*")
    monkeypatch.chdir(tmp_path / "clone")
    return found


def commit(root: Path, message: str) -> None:
    """Commit everything."""
    git(root, "add", "--all")
    git(root, *WHO, "commit", "--quiet", f"--message={message}")


def pin(**tables: str) -> None:
    """Trust keys on the default branch, as it was fetched."""
    entries = {"relay": "user:ana", "approver": "user:ben"}
    text = "".join(f'[[{name}]]\nowner = "{entries[name]}"\nkey = "{key}"\n' for name, key in tables.items())
    origin = Path("../shop")
    (origin / KEYS_FILE).write_text(text, encoding="utf-8")
    commit(origin, "Keys")
    git(Path(), "pull", "--quiet")


def told() -> tuple[list[str], list[str], str]:
    """Return whose approval counts, who the relay says approved it, and the words for people."""
    answer = CliRunner().invoke(cli, ["blame", "a.txt:1", "--json"])
    (maker,) = json.loads(answer.stdout)["makers"].values()
    words = CliRunner().invoke(cli, ["blame", "a.txt:1"]).stdout
    return maker["noted"]["proven_by"], maker["noted"]["approved_by"], words


def test_a_pinned_approvers_signature_counts(keys: dict[str, str]) -> None:
    """The relay's word is not needed for it, and the summary counts it."""
    pin(relay=keys["relay"], approver=keys["ben"])
    proven, said, words = told()
    summary = json.loads(CliRunner().invoke(cli, ["git", "summary", "HEAD~1", "--json"]).stdout)

    assert (["user:ben"], ["user:ben"]) == (proven, said)
    assert "approval: approved by user:ben (signed)" in words
    assert 1 == summary["approved"]


def test_an_approver_who_is_not_pinned_does_not_count(keys: dict[str, str]) -> None:
    """The relay says that he approved it, and that is said."""
    pin(relay=keys["relay"])
    proven, said, words = told()
    summary = json.loads(CliRunner().invoke(cli, ["git", "summary", "HEAD~1", "--json"]).stdout)

    assert ([], ["user:ben"]) == (proven, said)
    assert "approval: none that counts; ana's relay says" in words
    assert 0 == summary["approved"]


def test_another_key_in_his_name_does_not_count(keys: dict[str, str]) -> None:
    """The signature decides, not the name."""
    pin(relay=keys["relay"], approver=Ed25519Signer.generate().public_key)

    assert [] == told()[0]


def test_a_pinned_approver_does_not_make_a_strangers_relay_count(keys: dict[str, str]) -> None:
    """Nobody vouches for the receipts that the approval is about."""
    pin(approver=keys["ben"])
    proven, _, words = told()

    assert [] == proven
    assert "approval: none that counts" in words
