"""Blame of what hooks recorded: how the link to a sub-agent is known, and what a failed command left behind."""

from pathlib import Path

import pytest

from batonpass.accounts.blame.blame_values import Maker, TaskLink
from batonpass.accounts.blame.file_blame import AskedFile, Lines, blame_file, read_file
from batonpass.accounts.blame.file_changes import place_of
from batonpass.relay import Relay
from tests.unit.adapters.coders.sessions import Session


def maker_of(relay: Relay, path: Path, line: int) -> Maker:
    """Return who wrote a line, of which there must be one."""
    asked = AskedFile(place=place_of(path), data=read_file(path), environment={"PATH": "/usr/bin:/bin"})
    with relay.store.view() as view:
        found = blame_file(view, asked, Lines(first=line, last=line))
    (call,) = found.lines[0].calls
    return found.makers[call]


@pytest.mark.parametrize(
    ("meta", "link"), [("c1", TaskLink.CERTAIN), (None, TaskLink.INFERRED)], ids=["told", "not told"]
)
def test_a_link_is_as_certain_as_it_was(
    session: Session, relay: Relay, project: Path, meta: str | None, link: TaskLink
) -> None:
    """Where nothing says which call started a sub-agent, the answer says that it was inferred."""
    session.says("Fix it")
    session.delegates("c1", "Shout")
    session.starts("a1", meta)
    session.asks("e1", "Edit", agent="a1", file_path=str(project / "a.py"))
    (project / "a.py").write_text("one\nTWO\n", encoding="utf-8")
    session.returns("e1", "Edit", "ok", agent="a1", file_path=str(project / "a.py"))

    maker = maker_of(relay, project / "a.py", 2)

    assert ("Edit", "editor", link) == (maker.tool, maker.run.agent, maker.hops[0].link)


def test_what_a_failed_command_changed_has_an_author(session: Session, relay: Relay, project: Path) -> None:
    """A command that wrote a line and then failed is still who wrote it."""
    session.says("Fix it")
    session.asks("b1", "Bash", command="sed -i s/two/TWO/ a.py; exit 1")
    (project / "a.py").write_text("one\nTWO\n", encoding="utf-8")
    session.fails("b1", "Bash", "exit 1", command="sed -i s/two/TWO/ a.py; exit 1")

    assert "Bash" == maker_of(relay, project / "a.py", 2).tool
