"""Lines of every sort, also those that nobody should have written."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batonpass.adapters.claude_code.transcripts.transcript_lines import (
    TranscriptLine,
    began_at,
    find_lines,
    find_uuids,
)
from batonpass.adapters.session_files import json_lines
from batonpass.adapters.session_files.json_lines import read_time
from batonpass.adapters.session_files.session_values import SkippedLine

USED = b'{"type":"user","uuid":"u1","message":{"role":"user","content":"hi"}}\n'


def read(path: Path, data: bytes) -> list[tuple[int, TranscriptLine] | SkippedLine]:
    path.write_bytes(data)
    return list(find_lines(path))


def told(path: Path, data: bytes) -> list[str]:
    return [str(found).removeprefix(f"{path}:") for found in read(path, data) if isinstance(found, SkippedLine)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return where a transcript is to be."""
    return tmp_path / "session.jsonl"


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b'{"type":"file-history-snapshot","snapshot":{}}\n', id="a kind that we do not use"),
        pytest.param(b'{"type":"of-tomorrow","message":7}\n', id="a kind that we do not know, in another shape"),
        pytest.param(b'{"type":7}\n', id="a kind that is no text"),
        pytest.param(b'{"summary":"x"}\n', id="no kind"),
        pytest.param(b"[1,2]\n", id="no object"),
        pytest.param(b"\n  \n", id="empty lines"),
        pytest.param(b"", id="nothing"),
    ],
)
def test_what_we_do_not_use_is_no_problem(path: Path, data: bytes) -> None:
    """Other versions write other lines."""
    assert [] == read(path, data)


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        pytest.param(b"{nonsense\n", "1: is not JSON", id="no JSON"),
        pytest.param(b'{"type":"user","uuid":"\xff"}\n', "1: is not JSON", id="no UTF-8"),
        pytest.param(b"\x00\x00\x00\n", "1: is not JSON", id="zeros, as a lost write leaves them"),
        pytest.param(b'{"type":"user","x":' + b"[" * 100_000 + b"\n", "1: is nested too deep", id="a bottomless list"),
        pytest.param(
            b'{"type":"user","uuid":7}\n',
            "1: is not as expected: Expected `str | null`, got `int` - at `$.uuid`",
            id="another shape",
        ),
    ],
)
def test_damage_is_told_with_its_line(path: Path, data: bytes, problem: str) -> None:
    """And the next line is read."""
    assert [problem] == told(path, data + USED)
    assert [2] == [found[0] for found in read(path, data + USED) if not isinstance(found, SkippedLine)]


def test_half_a_line_at_the_end_waits(path: Path) -> None:
    """Somebody is writing it."""
    assert [1] == [found[0] for found in read(path, USED + USED[:30]) if not isinstance(found, SkippedLine)]
    assert [] == told(path, USED + USED[:30])


def test_a_whole_line_without_its_end_is_read(path: Path) -> None:
    """Nothing is missing but the newline."""
    assert [1, 2] == [found[0] for found in read(path, USED + USED.rstrip()) if not isinstance(found, SkippedLine)]


def test_half_a_character_is_replaced(path: Path) -> None:
    """JavaScript cuts texts between the two halves of a character."""
    (found,) = read(path, rb'{"type":"user","message":{"content":"cut \ud83d"}}' + b"\n")

    assert not isinstance(found, SkippedLine)
    assert found[1].message is not None
    assert "cut \ufffd" == found[1].message.content


def test_a_line_without_end_does_not_take_all_memory(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is told, skipped, and the next one is read."""
    monkeypatch.setattr(json_lines, "LONGEST", 1000)

    found = read(path, b'{"type":"user","x":"' + b"x" * 5000 + b'"}\n' + USED)

    assert [1, 2] == [one.line if isinstance(one, SkippedLine) else one[0] for one in found]


@given(st.binary(max_size=300))
def test_no_bytes_stop_the_reader(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    """Whatever stands in a file, it is read to its end."""
    path = tmp_path_factory.mktemp("any") / "session.jsonl"

    assert [] != [*read(path, data + b"\n" + USED)]


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_no_json_stops_the_reader(tmp_path_factory: pytest.TempPathFactory, value: object) -> None:
    """Whatever its fields hold."""
    path = tmp_path_factory.mktemp("any") / "session.jsonl"
    line = json.dumps({"type": "user", "message": value, "toolUseResult": value, "timestamp": value}).encode()

    assert 1 <= len(read(path, line + b"\n" + USED))


@pytest.mark.parametrize(
    ("text", "at"),
    [
        pytest.param("2026-03-01T09:00:00.5Z", datetime(2026, 3, 1, 9, 0, 0, 500_000, UTC), id="as the program writes"),
        pytest.param("2026-03-01T10:00:00+01:00", datetime(2026, 3, 1, 9, tzinfo=UTC), id="another zone"),
        pytest.param("2026-03-01T09:00:00", datetime(2026, 3, 1, 9, tzinfo=UTC), id="no zone"),
        pytest.param("yesterday", None, id="words"),
        pytest.param("0001-01-01T00:00:00+14:00", None, id="before all time"),
        pytest.param("1969-12-31T00:00:00Z", None, id="before the epoch"),
        pytest.param(None, None, id="nothing"),
    ],
)
def test_times_are_in_utc(text: str | None, at: datetime | None) -> None:
    """What is no time is none."""
    assert at == read_time(text)


def test_a_transcript_begins_with_its_first_time(path: Path) -> None:
    """On whatever line that is: a fork's copies are older than the fork."""
    path.write_bytes(
        b'{"type":"mode"}\n{broken\n{"type":"queue-operation","timestamp":"2026-03-01T09:00:00Z"}\n' + USED
    )

    assert datetime(2026, 3, 1, 9, tzinfo=UTC) == began_at(path)


def test_a_transcript_without_times_begins_with_the_epoch(path: Path) -> None:
    """As does one that cannot be read."""
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    absent = began_at(path)
    path.write_bytes(USED)

    assert [epoch, epoch] == [absent, began_at(path)]


def test_ids_are_those_of_lines_that_we_use(path: Path) -> None:
    """A file that is gone has none."""
    absent = list(find_uuids(path))
    path.write_bytes(USED + b"{broken\n" + b'{"type":"summary","uuid":"u2"}\n{"type":"user"}\n')

    assert ([], ["u1"]) == (absent, list(find_uuids(path)))
