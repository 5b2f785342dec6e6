"""Which transcripts may tell of a file: one that does is never missed, however its name is written."""

import json
from pathlib import Path

import pytest

from batonpass.adapters.session_files.session_place import SessionFiles, mentioning


def a_transcript(folder: Path, main: bytes, agent: bytes | None = None) -> SessionFiles:
    path = folder / "session.jsonl"
    path.write_bytes(main)
    agents = {}
    if agent is not None:
        agents["a"] = folder / "agent-a.jsonl"
        agents["a"].write_bytes(agent)
    return SessionFiles(session="session", main=path, agents=agents)


NAMES = ["invoice.py", "größe.py", "日本.txt", 'a"b\\c.py', "emoji 🙂 file.md", "🙂", "tab\tname.py"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("ascii_only", [True, False], ids=["escaped", "as it is"])
def test_a_name_is_found_however_it_is_escaped(tmp_path: Path, name: str, *, ascii_only: bool) -> None:
    """JSON has several ways to write one name."""
    line = json.dumps({"file_path": f"/home/ana/src/{name}"}, ensure_ascii=ascii_only).encode()

    assert mentioning([f"src/{name}"])(a_transcript(tmp_path, line))


def test_a_sub_agents_file_counts(tmp_path: Path) -> None:
    """The main conversation need not name what a sub-agent changed."""
    assert mentioning(["b.py"])(a_transcript(tmp_path, b"{}", b'{"file_path":"b.py"}'))


def test_any_of_its_names_will_do(tmp_path: Path) -> None:
    """A file that was renamed is looked for under all of them."""
    assert mentioning(["new.py", "old.py"])(a_transcript(tmp_path, b'{"file_path":"old.py"}'))


@pytest.mark.parametrize("before", range(1024 * 1024 - 6, 1024 * 1024 + 2))
def test_a_name_across_two_chunks_is_found(tmp_path: Path, before: int) -> None:
    """Files are searched piece by piece, and no piece is larger than a megabyte."""
    assert mentioning(["name.py"])(a_transcript(tmp_path, b" " * before + b"name.py"))


def test_others_need_not_be_read(tmp_path: Path) -> None:
    """Neither do empty files."""
    assert not mentioning(["b.py"])(a_transcript(tmp_path, b'{"file_path":"a.py"}', b""))


def test_what_cannot_be_read_is_not_left_out(tmp_path: Path) -> None:
    """Whoever reads it says why; its size is not known."""
    gone = SessionFiles(session="gone", main=tmp_path / "gone.jsonl", agents={})

    assert (True, 0) == (mentioning(["b.py"])(gone), sum(gone.sizes.values()))
    assert 2 == sum(a_transcript(tmp_path, b"{}").sizes.values())
