"""Records of Agent Trace: what is read, what is refused, and what is written."""

import json
import os
import re
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

import pytest

from batonpass.notes.foreign.agent_trace import FILE, FOLDER, LARGEST, TracedLines, read_traces, write_trace
from batonpass.notes.foreign.hearsay import settle
from batonpass.notes.line_ranges import LineRanges

COMMIT = "ab" * 20
RECORD = {
    "version": "0.1.0",
    "id": "550e8400-e29b-41d4-a716-446655440000",
    "timestamp": "2026-01-23T14:30:00Z",
    "vcs": {"type": "git", "revision": COMMIT},
    "tool": {"name": "cursor", "version": "2.4.0"},
    "files": [
        {
            "path": "a.py",
            "conversations": [
                {
                    "url": "https://api.example.com/v1/conversations/1",
                    "contributor": {"type": "ai", "model_id": "anthropic/claude-opus-4-5"},
                    "ranges": [
                        {"start_line": 1, "end_line": 3, "content_hash": "murmur3:9f2e8a1b"},
                        {"start_line": 5, "end_line": 5, "contributor": {"type": "human"}},
                        {"start_line": 6, "end_line": 6, "contributor": {"type": "unknown"}},
                        {"start_line": 7, "end_line": 7, "contributor": {"type": "mixed"}},
                    ],
                }
            ],
        }
    ],
    "metadata": {"confidence": 0.95},
}


def kept(root: Path, *records: object) -> Path:
    """Keep records where the reference program keeps them."""
    (root / FOLDER).mkdir()
    rows = (one if isinstance(one, str) else json.dumps(one) for one in records)
    (root / FOLDER / FILE).write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
    return root


def ranged(first: object, last: object) -> dict[str, object]:
    """Return a record about one range."""
    said = {"contributor": {"type": "ai"}, "ranges": [{"start_line": first, "end_line": last}]}
    return {**RECORD, "files": [{"path": "a.py", "conversations": [said]}]}


def test_ranges_are_of_their_contributors(tmp_path: Path) -> None:
    """The one of the range goes before the one of the conversation; an unknown one claims nothing."""
    traces = read_traces(kept(tmp_path, RECORD))
    said = settle(traces.said[COMMIT, "a.py"], range(1, 9))

    assert {1: "cursor", 2: "cursor", 3: "cursor", 5: "a human", 7: "an agent and a human"} == {
        line: one.by for line, one in said.items()
    }
    assert ("anthropic/claude-opus-4-5", True) == (said[1].model, said[5].is_human)
    assert () == traces.remarks


@pytest.mark.parametrize(
    "record",
    [
        "{",
        "[" * 100_000,
        '{"a":' * 50_000,
        "[]",
        '"' + "x" * 2_000_000 + '"',
        {**RECORD, "files": {}},
        {**RECORD, "vcs": {"type": "git", "revision": "HEAD"}},
        {**RECORD, "vcs": {"type": "git", "revision": "--output=x"}},
        ranged(0, 3),
        ranged(3, 1),
        ranged(-1, 1),
        ranged(1, 10**18),
        ranged(1, 10**400),
        ranged("1", 2),
        ranged(1.5, 2),
    ],
)
def test_a_record_that_is_wrong_is_left_out_and_told(tmp_path: Path, record: object) -> None:
    """The others are still read."""
    traces = read_traces(kept(tmp_path, record, RECORD))

    assert [(COMMIT, "a.py")] == list(traces.said)
    assert ("1 records of .agent-trace/traces.jsonl were not read: they are not of the form of Agent Trace",) == (
        traces.remarks
    )


def test_a_record_about_no_commit_claims_nothing(tmp_path: Path) -> None:
    """Its lines could be anywhere."""
    nowhere = {name: value for name, value in RECORD.items() if name != "vcs"}
    traces = read_traces(kept(tmp_path, nowhere, {**RECORD, "vcs": {"type": "jj", "revision": "kkmpptxz"}}))

    assert ({}, ()) == (traces.said, traces.remarks)


def test_links_pipes_and_what_is_too_large_are_not_read(tmp_path: Path) -> None:
    """A repository could lead us to another file, or to one without an end."""
    real = kept(tmp_path, RECORD) / FOLDER / FILE
    roots = [tmp_path / name for name in ("linked", "folder", "pipe", "large", "directory")]
    for root in roots:
        root.mkdir()
    (roots[1] / FOLDER).symlink_to(real.parent)
    for root in (roots[0], roots[2], roots[3]):
        (root / FOLDER).mkdir()
    (roots[0] / FOLDER / FILE).symlink_to(real)
    os.mkfifo(roots[2] / FOLDER / FILE)
    with (roots[3] / FOLDER / FILE).open("wb") as file:
        file.truncate(LARGEST + 1)
    (roots[4] / FOLDER / FILE).mkdir(parents=True)

    assert [{}] * 5 == [read_traces(root).said for root in roots]
    assert ["linked", "pipe", "large", "directory"] == [root.name for root in roots if read_traces(root).remarks]


def test_a_path_that_is_not_utf_8_is_spelled_out() -> None:
    """JSON is, and everything else in the record can still be read."""
    line = TracedLines(
        path=os.fsdecode(b"caf\xe9.py"), lines=LineRanges.of([1]), run="run_1", call="call_1", model=None, facts={}
    )
    (file,) = json.loads(write_trace(COMMIT, [line], at=datetime(2026, 2, 1, tzinfo=UTC), version="1"))["files"]

    assert r"caf\xe9.py" == file["path"]


def test_what_is_written_has_the_form_of_the_specification(tmp_path: Path) -> None:
    """Every field that is required, of the type and pattern that it names; and we read it again."""
    facts = {"agent": "editor", "for": "user:ana"}
    lines = [
        TracedLines(path="a.py", lines=LineRanges.of([1, 2]), run="run_1", call="call_1", model="gpt-6", facts=facts),
        TracedLines(path="a.py", lines=LineRanges.of([4]), run="run_1", call="call_2", model="gpt-6", facts=facts),
        TracedLines(path="b.py", lines=LineRanges.of([9]), run="run_2", call="call_3", model=None, facts={}),
    ]
    written = write_trace(COMMIT, lines, at=datetime(2026, 2, 1, tzinfo=UTC), version="1.2.3")
    document = json.loads(written)

    assert re.fullmatch(r"[0-9]+\.[0-9]+\.[0-9]+", document["version"])
    assert str(UUID(document["id"])) == document["id"]
    assert "2026-02-01T00:00:00Z" == document["timestamp"]
    assert {"type": "git", "revision": COMMIT} == document["vcs"]
    one, other = (file["conversations"] for file in document["files"])
    assert [{"start_line": 1, "end_line": 2}, {"start_line": 4, "end_line": 4}] == one[0]["ranges"]
    assert ({"type": "ai", "model_id": "gpt-6"}, {"type": "ai"}) == (one[0]["contributor"], other[0]["contributor"])
    assert facts == document["metadata"]["dev.batonpass"]["runs"]["run_1"]
    said = settle(read_traces(kept(tmp_path, document)).said[COMMIT, "a.py"], range(1, 9))
    assert {1, 2, 4} == set(said)
