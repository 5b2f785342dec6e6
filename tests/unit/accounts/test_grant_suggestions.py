"""From what was watched to what is enforced: a suggestion is pasted into the file, and the same work passes."""

import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from batonpass.accounts.grant_suggestions import suggest
from batonpass.accounts.handoff.scope_used import read_scope_used
from batonpass.errors import GrantDeniedError, OutsideGrantError
from batonpass.grants.resolved_paths import WorkTreePaths
from batonpass.handoff.live.faces import LiveRun
from batonpass.handoff.tools.declaration import tool
from batonpass.model.base.ids import AgentId
from batonpass.model.grants.grant_toml import write_grants
from batonpass.policy.document import parse_document
from batonpass.policy.policy_table import policy_of
from batonpass.relay import Relay
from batonpass.store.factory import open_store
from tests.offers import grouped

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


# Whoever does it, whether it writes, and to what; the last two names stand in no grant that people could read.
steps = st.lists(
    st.tuples(
        st.sampled_from(["lead", "editor", "helper"]),
        st.booleans(),
        st.lists(st.sampled_from(["a", "b", "c", "a b", "where", "x;y", "pa\u0443", "a*b"]), min_size=1, max_size=3),
    ),
    min_size=1,
    max_size=8,
)
Steps = list[tuple[str, bool, list[str]]]


def do(relay: Relay, wanted: Steps, **terms: Any) -> set[tuple[str, bool, str]]:  # noqa: ANN401 - of a grant
    """Let a lead, its editor and the editor's helper do this, and return what of it was refused."""
    refused = set()
    lead = relay.start("Fix it", by=ANA, **grouped(**terms))
    editor = lead.hand_off("editor", "Edit").accept()
    helper = editor.hand_off("helper", "Help").accept()
    for who, writes, segments in wanted:
        run, path = {"lead": lead, "editor": editor, "helper": helper}[who], "/".join(segments)
        try:
            run.call(write if writes else read, path)
        except GrantDeniedError:
            refused.add((who, writes, path))
    return refused


def is_readable(path: str) -> bool:
    """Return whether a grant that people read may name it."""
    return not {"pa\u0443", "a*b"} & set(path.split("/"))


@settings(max_examples=15, deadline=None)
@given(steps)
def test_any_work_passes_again_under_its_suggestion(wanted: Steps) -> None:
    """For the whole tree, as it is pasted; what no grant can name is refused, and was counted as not covered."""
    everybody = [(who, False, ["all"]) for who in ("lead", "editor", "helper")]
    watched = Relay(open_store("memory:"))
    assert set() == do(watched, [*everybody, *wanted])
    with watched.store.view() as view:
        uncovered = suggest(view).uncovered
    held = Relay(open_store("memory:"), policy=policy_of(parse_document((ENFORCED + suggested(watched)).encode())))

    unnamed = {(who, writes, "/".join(segments)) for who, writes, segments in wanted}
    unnamed = {one for one in unnamed if not is_readable(one[2])}
    assert unnamed == do(held, [*everybody, *wanted])
    assert bool(unnamed) is bool(uncovered)
    assert {("lead", True, "elsewhere/z")} == do(held, [("lead", True, ["elsewhere", "z"])])


@settings(max_examples=15, deadline=None)
@given(
    steps,
    st.lists(
        st.sampled_from(["write:a/**", "read:*", "write:*/*; at most 1 calls", 'read:** where path starts with "a"']),
        max_size=3,
    ),
)
def test_any_work_of_one_run_passes_again_under_what_it_says_was_enough(wanted: Steps, may: list[str]) -> None:
    """Whatever the grant was that it tried out: what is within it and what is beyond it are all that it did."""
    watched = Relay(open_store("memory:"))
    mine = [("lead", writes, segments) for _, writes, segments in wanted]
    lead = watched.start("Fix it", by=ANA, may=[*may, "call:nothing"], mode="observed")
    for _, writes, segments in mine:
        lead.call(write if writes else read, "/".join(segments))
    lead.close()
    with watched.store.view() as view:
        used = read_scope_used(view, [(view.get_run(lead.id), None)])
    assert used is not None
    unnamed = [segments for _, _, segments in mine if not is_readable("/".join(segments))]
    assert len(unnamed) == used.unnamed
    again = Relay(open_store("memory:")).start("Fix it", by=ANA, may=[*used.least, *used.beyond, "call:nothing"])
    for _, writes, segments in mine:
        if is_readable("/".join(segments)):
            again.call(write if writes else read, "/".join(segments))
    with pytest.raises(GrantDeniedError):
        again.call(write, "elsewhere/z")


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
        asked = {"resolve": WorkTreePaths(repository / "src"), "repository": repository, "agent": AgentId("editor")}

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
