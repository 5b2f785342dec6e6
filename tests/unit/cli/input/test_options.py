"""Options as people write them become values, or wrong usage."""

import io
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import click
import pytest

from batonpass.cli.input.options import checked, read_lines, read_moment, written
from batonpass.errors import InvalidValueError

CONTEXT = click.Context(click.Command("x"))
OPTION = click.Option(["--x"])


@pytest.mark.parametrize(
    ("expected", "given"),
    [
        pytest.param(timedelta(seconds=90), "90s", id="seconds"),
        pytest.param(timedelta(minutes=30), "30m", id="minutes"),
        pytest.param(timedelta(hours=12), "12h", id="hours"),
        pytest.param(timedelta(days=2), "2d", id="days"),
        pytest.param(timedelta(weeks=1), "1w", id="weeks"),
    ],
)
def test_so_long_ago(expected: timedelta, given: str) -> None:
    """A number and a letter count back from now."""
    before = datetime.now(UTC)
    found = read_moment(CONTEXT, OPTION, given)

    assert found is not None
    assert before - expected <= found <= datetime.now(UTC) - expected


def test_a_date_is_local_and_a_zone_is_respected() -> None:
    """A date is midnight here; a time with a zone is that time."""
    midnight = datetime(2026, 11, 15).astimezone(UTC)

    assert [midnight, datetime(2026, 11, 15, 6, tzinfo=UTC), None] == [
        read_moment(CONTEXT, OPTION, "2026-11-15"),
        read_moment(CONTEXT, OPTION, "2026-11-15T08:00+02:00"),
        read_moment(CONTEXT, OPTION, None),
    ]


@pytest.mark.parametrize("given", ["", "d", "2y", "tomorrow", "999999w", "2026-13-01", "-2d"])
def test_no_time_is_wrong_usage(given: str) -> None:
    """What is no time is refused with examples of what is."""
    with pytest.raises(click.BadParameter, match="30m, 12h, 2d or 1w"):
        read_moment(CONTEXT, OPTION, given)


def test_what_our_checks_refuse_is_wrong_usage() -> None:
    """A check of ours decides about an argument, in its own words."""

    def refuse(_: str) -> str:
        raise InvalidValueError("x", "is not one")

    with pytest.raises(click.BadParameter, match="is not one"):
        checked(refuse)(CONTEXT, OPTION, "y")
    assert (None, "Y") == (checked(refuse)(CONTEXT, OPTION, None), checked(str.upper)(CONTEXT, OPTION, "y"))


def test_a_file_appears_when_it_is_whole(tmp_path: Path) -> None:
    """A failure in the middle leaves what was there before, and nothing else."""
    path = tmp_path / "out"
    path.write_text("before", encoding="utf-8")
    with pytest.raises(UnicodeEncodeError), written(path) as file:
        file.write("half \ud800")
    after_failure = path.read_text(encoding="utf-8")
    with written(path) as file:
        file.write("all")

    assert ("before", "all", [path]) == (after_failure, path.read_text(encoding="utf-8"), [*tmp_path.iterdir()])


def test_a_device_is_written_to_directly() -> None:
    """What is not a regular file is not replaced by one."""
    with written(Path("/dev/null")) as file:
        file.write("x")

    assert Path("/dev/null").is_char_device()


def test_stdout_is_a_dash_or_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    """Without a file, and with `-`, the output goes to stdout."""
    for path in (None, Path("-")):
        with written(path) as file:
            file.write("x")

    assert "xx" == capsys.readouterr().out


def test_a_file_that_cannot_be_opened_is_wrong_usage(tmp_path: Path) -> None:
    """Whoever names a file that is not there, or a place that takes none, learns which."""
    with pytest.raises(click.UsageError, match="cannot read"):
        list(read_lines(tmp_path / "none"))
    with pytest.raises(click.UsageError, match="cannot write"), written(tmp_path / "none" / "x"):
        pass


def test_lines_come_from_a_file_or_from_stdin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines end where they ended, and bytes that are no text do not stop us."""
    (tmp_path / "in").write_bytes(b"a\r\n\xffb\n")
    monkeypatch.setattr(sys, "stdin", io.StringIO("c\nd\n"))

    assert (["a\r\n", "\ufffdb\n"], ["c\n", "d\n"]) == (list(read_lines(tmp_path / "in")), list(read_lines(Path("-"))))
