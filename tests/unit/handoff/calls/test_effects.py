"""Which files a call is watched at, and what is seen there."""

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from batonpass.handoff.files.edited_files import find_edited, watch
from batonpass.model.base.ids import CallId, RunId
from batonpass.relay import Relay
from batonpass.store.memory import MemoryStore
from tests.unit.handoff.places import ANA
from tests.unit.handoff.repositories import repository, write

AT = datetime(2026, 1, 2, tzinfo=UTC)


@pytest.mark.parametrize("name", ["Makefile", "LICENSE", "a:b", "src/a.py", "my notes.txt"])
@pytest.mark.parametrize("before", [None, "before"], ids=["that appears", "that was there"])
def test_a_file_that_an_argument_names_is_watched(tmp_path: Path, name: str, before: str | None) -> None:
    """Whatever it is called, and whether or not it was there before the call."""
    file = tmp_path / name
    file.parent.mkdir(exist_ok=True)
    if before is not None:
        file.write_text(before, encoding="utf-8")
    watched = watch({"path": name, "text": "after"}, tmp_path)
    file.write_text("after", encoding="utf-8")

    assert [(name, before is None)] == [
        (change.path, change.before is None)
        for change in (edit.change(call=CallId("call_1"), run=RunId("run_1"), at=AT) for edit in find_edited(watched))
    ]


def test_words_that_are_no_files_are_no_changes(tmp_path: Path) -> None:
    """A word, a directory, a sentence and half a character are looked at at most, and nothing is said of them."""
    (tmp_path / "src").mkdir()
    watched = watch({"a": "yes", "b": "src", "c": "two words", "d": "\ud800", "e": "x" * 300, "f": 7}, tmp_path)

    assert ([], {"yes"}) == (
        list(find_edited(watched)),
        {path.name for path in watched.before},
    )


def test_words_do_not_crowd_out_paths(tmp_path: Path) -> None:
    """Only so many files are watched; what looks like a path comes first."""
    watched = watch({**{f"flag{number}": f"word{number}" for number in range(40)}, "path": "src/a.py"}, tmp_path)

    assert (16, "a.py") == (len(watched.before), next(iter(watched.before)).name)


@pytest.mark.parametrize("name", [os.fsdecode(b"\xff.txt"), "link.txt"], ids=["named", "behind a link"])
@pytest.mark.parametrize("is_repository", [False, True])
def test_a_name_that_is_not_utf_8_is_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, *, is_repository: bool
) -> None:
    """The byte is spelled out; the call is not in doubt, and whoever made it gets the result."""
    place = repository(tmp_path / "tree") if is_repository else tmp_path
    (place / "link.txt").symlink_to(os.fsdecode(b"\xff.txt"))
    monkeypatch.chdir(place)
    relay = Relay(MemoryStore())
    with relay.start("Write", by=ANA) as lead:
        lead.call(write, name, "one")
    with relay.store.view() as view:
        paths = [touch.path for touch in view.find_touches()]

    assert [r"\xff.txt"] == paths
