"""Where transcripts are found, and where not."""

import json
from pathlib import Path

import pytest

from batonpass.adapters.claude_code.transcripts.transcript_places import (
    config_directory,
    find_transcripts,
    slug_of,
)
from batonpass.adapters.session_files.session_place import relative_path
from tests.unit.adapters.claude_code.histories import SESSION, History


@pytest.mark.parametrize(
    ("directory", "slug"),
    [
        pytest.param("/home/ana/shop", "-home-ana-shop", id="a slash is a dash"),
        pytest.param("/tmp/my.proj_x", "-tmp-my-proj-x", id="so is a dot, and an underscore"),  # noqa: S108 - a name
        pytest.param("/h/café", "-h-caf-", id="so is a letter beyond ASCII"),
        pytest.param("/h/\U0001f600", "-h---", id="what JavaScript counts as two is two dashes"),
        pytest.param("/" + "a" * 300, "-" + "a" * 199, id="a long one is cut: a hash follows there"),
    ],
)
def test_a_folder_is_named_after_the_directory(directory: str, slug: str) -> None:
    """Whatever is no ASCII letter or digit is a dash."""
    assert slug == slug_of(directory)


def test_the_environment_may_say_where(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """CLAUDE_CONFIG_DIR comes before the home directory."""
    monkeypatch.setenv("HOME", str(tmp_path))

    assert tmp_path / "elsewhere" == config_directory({"CLAUDE_CONFIG_DIR": str(tmp_path / "elsewhere")})
    assert tmp_path / ".claude" == config_directory({})


def test_where_nothing_is_kept_nothing_is_found(history: History) -> None:
    """A machine without Claude Code has no sessions."""
    assert [] == list(find_transcripts(history.project, config=history.config))


def test_sub_agents_are_found_with_their_session(history: History) -> None:
    """Also in folders below."""
    history.says("Fix it")
    history.says("a task", history.agent("a1"))
    deep = history.agent("a2").parent / "workflows" / "wf" / "agent-a2.jsonl"
    history.says("another", deep)

    (found,) = find_transcripts(history.project, config=history.config)

    assert (SESSION, {"a1": history.agent("a1"), "a2": deep}) == (found.session, dict(found.agents))


def test_sessions_elsewhere_are_found_by_their_lines(history: History) -> None:
    """Whoever started below the project, or moved there, worked in the project."""
    elsewhere = history.config / "projects" / "-elsewhere" / f"{SESSION}.jsonl"
    history.says("Begin", elsewhere, cwd="/elsewhere")
    history.says("Go on", elsewhere, cwd=str(history.project / "src"))

    assert [elsewhere] == [found.main for found in find_transcripts(history.project, config=history.config)]


def test_a_directory_with_the_same_folder_is_another(history: History) -> None:
    """`a.b` and `a_b` share a folder: the lines tell whose session it was."""
    history.says("Not here", cwd=str(history.project).replace("shop", "sh.op"))
    history.says("Nor here", history.main("other"), cwd=f"{history.project}-2")

    assert [] == list(find_transcripts(history.project, config=history.config))


def test_a_session_that_names_no_directory_is_taken_by_its_folder(history: History) -> None:
    """Old lines do not say where they were written."""
    history.write(history.main(), json.dumps({"type": "user", "uuid": "u"}).encode() + b"\n")

    assert [SESSION] == [found.session for found in find_transcripts(history.project, config=history.config)]


def test_empty_files_and_other_files_are_no_sessions(history: History) -> None:
    """Only transcripts are looked at."""
    history.write(history.folder / "notes.txt", b"notes")
    history.write(history.folder / "agent-a1.jsonl", b"{}\n")
    (history.folder / "folder.jsonl").mkdir()
    (history.config / "projects" / "file").write_bytes(b"")

    assert [] == list(find_transcripts(history.project, config=history.config))


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        pytest.param("/p/src/a.py", "src/a.py", id="a path inside is relative"),
        pytest.param("/p/./src/../b.py", "b.py", id="detours are left out"),
        pytest.param("/p/../etc/passwd", "/p/../etc/passwd", id="one that leads out stays whole"),
        pytest.param("/else/a.py", "/else/a.py", id="one elsewhere stays whole"),
        pytest.param("/pp/a.py", "/pp/a.py", id="a longer name is elsewhere"),
        pytest.param("src/a.py", "src/a.py", id="a relative one stays as it is"),
        pytest.param("/p//src/a.py", "src/a.py", id="with more slashes than it takes"),
    ],
)
def test_paths_are_seen_from_the_project(path: str, shown: str) -> None:
    """So that the same file has the same name wherever the project lies."""
    assert shown == relative_path(path, Path("/p"))
