"""Authorship logs of git-ai: what is read, what is refused, and what is written."""

import json
from hashlib import sha256

import pytest

from batonpass.errors import InvalidValueError
from batonpass.notes.foreign.authorship_log import (
    AgentIdentity,
    AttestedLines,
    AuthorshipSession,
    read_authorship,
    session_key,
    write_authorship,
)
from batonpass.notes.foreign.hearsay import HearsayReach
from batonpass.notes.line_ranges import LineRanges

COMMIT = "ab" * 20
AGENT = {"tool": "cursor", "id": "6ef2-a67f", "model": "claude-sonnet-4-5"}
METADATA = {
    "schema_version": "authorship/3.0.0",
    "git_ai_version": "1.4.5",
    "base_commit_sha": COMMIT,
    "prompts": {"abcd1234abcd1234": {"agent_id": {**AGENT, "tool": "windsurf"}, "total_additions": 25}},
    "humans": {"h_31dce776f88375": {"author": "Dev <dev@example.com>"}},
    "sessions": {"s_c9883b05a2487d": {"agent_id": AGENT, "human_author": "dev@example.com"}},
}
ROWS = """src/main.rs
  abcd1234abcd1234 1-10
  s_c9883b05a2487d::t_9f8e7d6c5b4a32 5-6,9
  h_31dce776f88375 12-13
  s_00000000000000::t_00000000000000 14
"src/my file.rs"
  s_c9883b05a2487d::t_a1b2c3d4e5f678 1
"""


def a_log(rows: str = ROWS, **changes: object) -> bytes:
    """Return a log with these rows, and with fields of its metadata changed."""
    return f"{rows}---\n{json.dumps({**METADATA, **changes}, indent=2)}".encode()


def test_each_key_leads_to_its_table_and_the_last_entry_counts() -> None:
    """Sessions, humans and prompts of earlier versions; a key that stands for nobody claims nothing."""
    log = read_authorship(a_log(), COMMIT)
    said = log.of("src/main.rs", range(1, 20))

    assert {5: "cursor", 6: "cursor", 9: "cursor"}.items() <= {line: one.by for line, one in said.items()}.items()
    assert "windsurf" == said[1].by == said[10].by
    assert ("Dev <dev@example.com>", True) == (said[12].by, said[12].is_human)
    assert {11, 14, 15}.isdisjoint(said)
    assert ("claude-sonnet-4-5", "dev@example.com", "6ef2-a67f") == (said[5].model, said[5].human, said[5].session)
    assert {1: "cursor"} == {line: one.by for line, one in log.of("src/my file.rs", [1, 2]).items()}


def test_a_log_that_was_copied_from_another_commit_is_about_lines_nearby() -> None:
    """Its numbers are those of a file that may have been another."""
    said = read_authorship(a_log(base_commit_sha="cd" * 20), COMMIT).of("src/main.rs", [1])

    assert HearsayReach.NEARBY is said[1].reach


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff\xfe",
        b"src/a.py\n  abcd1234abcd1234 1\n",
        b"---\n{}",
        b"---\n" + b"[" * 100_000,
        b'---\n{"a":' * 50_000,
        a_log(schema_version="authorship/4.0.0"),
        a_log(prompts=[]),
        a_log("  abcd1234abcd1234 1\n"),
        a_log("a.py\n  abcd1234abcd1234\n"),
        a_log("a.py\n  abcd1234abcd1234 0\n"),
        a_log("a.py\n  abcd1234abcd1234 9-3\n"),
        a_log("a.py\n  abcd1234abcd1234 1-4294967295\n"),
        a_log("a.py\n  abcd1234abcd1234 -5\n"),
        a_log("a.py\n  abcd1234abcd1234 1,,2\n"),
        a_log("a.py\n  abcd1234abcd1234 \u0661\n"),
        a_log("a.py\n  abcd1234abcd1234 1 \x1b[2J\n"),
    ],
)
def test_what_is_not_such_a_log_is_refused_as_a_whole(data: bytes) -> None:
    """Half of a record is nobody's claim."""
    with pytest.raises(InvalidValueError):
        read_authorship(data, COMMIT)


def test_many_ranges_over_many_lines_take_no_longer_than_either() -> None:
    """A hostile log claims every line a hundred thousand times."""
    rows = "a.py\n" + "  abcd1234abcd1234 1-9999999\n" * 100_000
    said = read_authorship(a_log(rows), COMMIT).of("a.py", range(1, 10_001))

    assert 10_000 == len(said)


def test_what_is_written_is_read_again() -> None:
    """With the keys that git-ai would make, sorted, and without what the format cannot hold."""
    session = AuthorshipSession(agent_id=AgentIdentity(tool="codex", id="run_1", model="gpt-6"), human_author="ana")
    lines = AttestedLines(session=session, call="call_1", lines=LineRanges.of([1, 2, 3, 7]))
    written = write_authorship(
        COMMIT, {"b c.py": [lines], "a.py": [lines], 'quo"te.py': [lines], "line\nfeed": [lines]}
    )
    assert written is not None
    head, _, tail = written.decode().partition("\n---\n")
    document = json.loads(tail)

    assert f"s_{sha256(b'codex:run_1').hexdigest()[:14]}" == session_key(session.agent_id)
    assert ["a.py", '"b c.py"'] == [row for row in head.split("\n") if not row.startswith("  ")]
    assert {"schema_version", "base_commit_sha", "prompts", "sessions"} == set(document)
    assert {"tool": "codex", "id": "run_1", "model": "gpt-6"} == document["sessions"][session_key(session.agent_id)][
        "agent_id"
    ]
    said = read_authorship(written, COMMIT).of("b c.py", range(1, 9))
    assert {1, 2, 3, 7} == set(said)
    assert {("codex", "gpt-6", "ana")} == {(one.by, one.model, one.human) for one in said.values()}


def test_nothing_is_written_where_there_is_nothing_to_say() -> None:
    """A log without lines would say that somebody looked."""
    assert write_authorship(COMMIT, {}) is None
