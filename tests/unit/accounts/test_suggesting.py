"""From what was watched to what is enforced: a suggestion is pasted into the file, and the same work passes."""

import subprocess
from pathlib import Path

import pytest

from batonpass.accounts.suggesting import suggest
from batonpass.errors import GrantDeniedError, OutsideGrantError
from batonpass.grants.resolving import WorkTree
from batonpass.handoff.calls.tools import tool
from batonpass.handoff.run import LiveRun
from batonpass.model.grant_toml import write_grants
from batonpass.model.ids import AgentId
from batonpass.policy.document import parse_document
from batonpass.policy.reading import policy_of
from batonpass.relay import Relay
from batonpass.store.opening import open_store

ANA = "user:ana"
ENFORCED = "[policy]\nenforce = true\n\n"


@tool(target="path", reads=True)
def read(path: str) -> str:
    """Read a file."""
    return path


@tool(target="path")
def write(path: str) -> None:
    """Write a file."""


@tool
def ping() -> None:
    """Do something that names nothing."""


def work(relay: Relay, place: Path) -> LiveRun:
    """Read, and have an editor write, who has a helper; paths are spelled in several ways."""
    lead = relay.start("Fix it", by=ANA)
    lead.call(read, str(place / "docs" / "index.md"))
    with lead.hand_off("editor", "Edit") as editor:
        editor.call(write, "link/a.py")
        editor.call(ping)
        with editor.hand_off("helper", "Help") as helper:
            helper.call(read, "src/../docs/more.md")
    return lead


def tidy(relay: Relay, path: str) -> None:
    """Have an editor run a command that writes a file."""
    with relay.start("Tidy up", by=ANA) as lead, lead.hand_off("editor", "Edit") as editor:
        editor.shell(["sh", "-c", f"echo tidy > {path}"])


def suggested(relay: Relay, **asked: object) -> str:
    """Return what is suggested for everybody, as it is printed."""
    with relay.store.view() as view:
        found = suggest(view, **asked).grants  # type: ignore[arg-type]  # whatever a test asks for
    return "\n".join(write_grants({one.agent: one.grant}) for one in found)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a work tree with a link in it, in which everything happens."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "src").mkdir()
    (tmp_path / "link").symlink_to("src")
    return tmp_path


def test_a_suggestion_lets_the_same_work_pass_and_no_other(place: Path) -> None:
    """Wherever links led, and for those too who only hand on; whatever nobody did is refused."""
    watched = Relay(open_store("memory:"))
    work(watched, place)

    held = Relay(open_store("memory:"), policy=policy_of(parse_document((ENFORCED + suggested(watched)).encode())))
    lead = work(held, place)

    for path in ("docs/other.md", "src/a.py"):
        with pytest.raises(GrantDeniedError):
            lead.call(read, path)
    with lead.hand_off("editor", "Edit again") as editor, pytest.raises(GrantDeniedError):
        editor.call(write, "src/b.py")


def test_what_those_below_did_has_to_be_delegable(place: Path) -> None:
    """Everybody may what they did, and may delegate what was done below them."""
    relay = Relay(open_store("memory:"))
    work(relay, place)
    with relay.store.view() as view:
        rights = {one.agent: (one.grant.may.lines, one.grant.may_delegate.lines) for one in suggest(view).grants}
        (lead,) = suggest(view, agent=AgentId("lead")).grants

    below = ("call:ping", "read:docs/more.md", "write:src/a.py")
    assert {
        "lead": (("read:docs/index.md",), below),
        "editor": (("call:ping", "write:src/a.py"), ("read:docs/more.md",)),
        "helper": (("read:docs/more.md",), ()),
    } == rights
    assert ("lead", below) == (lead.agent, lead.grant.may_delegate.lines)


def test_what_nothing_can_grant_is_not_suggested(place: Path) -> None:
    """A name that could be read as another one is recorded all the same, and stands in no permit."""
    relay = Relay(open_store("memory:"))
    lead = relay.start("Fix it", by=ANA)
    lead.call(read, "a\u202eb")
    lead.call(read, "plain")

    assert place.is_dir()
    assert '[grant.lead]\nmay = [\n    "read:plain",\n]\nmay_delegate = []\n' == suggested(relay)


class TestCommands:
    """A command needs more than its own name: the files that it changes have to be granted as well."""

    @pytest.fixture
    def repository(self, place: Path) -> Path:
        """Return the work tree as a git repository, in which commands are watched."""
        subprocess.run(["git", "init", "-q", str(place)], check=True)
        return place

    def test_what_a_command_changed_is_suggested(self, repository: Path) -> None:
        """So that the same command passes under the suggestion; for those above, that they may delegate it."""
        watched = Relay(open_store("memory:"))
        tidy(watched, "src/list.txt")
        with watched.store.view() as view:
            rights = {one.agent: (one.grant.may.lines, one.grant.may_delegate.lines) for one in suggest(view).grants}
        held = Relay(open_store("memory:"), policy=policy_of(parse_document((ENFORCED + suggested(watched)).encode())))
        (repository / "src" / "list.txt").unlink()
        tidy(held, "src/list.txt")

        both = ("run:sh", "write:src/list.txt")
        assert {"lead": ((), both), "editor": (both, ())} == rights

    def test_files_are_named_from_where_it_is_asked(self, repository: Path) -> None:
        """In a directory of the repository, as a relay that was opened there would name them."""
        relay = Relay(open_store("memory:"))
        tidy(relay, "src/list.txt")
        asked = {"resolve": WorkTree(repository / "src"), "repository": repository, "agent": AgentId("editor")}

        assert '[grant.editor]\nmay = [\n    "run:sh",\n    "write:list.txt",\n]\nmay_delegate = []\n' == suggested(
            relay, **asked
        )

    def test_what_a_held_run_did_beyond_its_grant_is_not_suggested(self, repository: Path) -> None:
        """It would be a way to get what was not granted: do it, and wait for somebody who pastes."""
        assert repository.is_dir()
        relay = Relay(open_store("memory:"))
        lead = relay.start("Fix it", by=ANA, may=["run:sh"])
        with pytest.raises(OutsideGrantError):
            lead.shell(["sh", "-c", "echo tidy > src/list.txt"])

        assert '[grant.lead]\nmay = [\n    "run:sh",\n]\nmay_delegate = []\n' == suggested(relay)
