"""Migrations: in order, each once, without a gap, and nothing newer than we know."""

from pathlib import Path

import pytest

from batonpass.errors import NewerSchemaError, SchemaError
from batonpass.store.migrate import Migration, find_migrations, pending

STEPS = tuple(Migration(version, f"step_{version}", "") for version in (1, 2, 3))


def a_directory(place: Path, *names: str) -> Path:
    for name in names:
        (place / name).write_text(f"-- {name}\n", encoding="utf-8")
    return place


def test_steps_come_by_their_number(tmp_path: Path) -> None:
    """Whatever order the files are listed in, the steps are in theirs, with name and text."""
    directory = a_directory(tmp_path, "0002_add_lease.sql", "0001_ledger.sql", "0003_x.sql")

    assert (
        Migration(1, "ledger", "-- 0001_ledger.sql\n"),
        Migration(2, "add_lease", "-- 0002_add_lease.sql\n"),
        Migration(3, "x", "-- 0003_x.sql\n"),
    ) == find_migrations("somewhere", directory)


def test_other_files_are_no_steps(tmp_path: Path) -> None:
    """Only a number of four digits, a name and the ending make a migration."""
    directory = a_directory(tmp_path, "0001_ledger.sql", "README.md", "2_two.sql", "0002_two.sql.bak", "0002-two.sql")

    assert [1] == [step.version for step in find_migrations("somewhere", directory)]


@pytest.mark.parametrize(
    "names",
    [
        pytest.param(("0002_b.sql",), id="the first is missing"),
        pytest.param(("0001_a.sql", "0003_c.sql"), id="one in the middle is missing"),
        pytest.param(("0001_a.sql", "0001_b.sql"), id="one number twice"),
        pytest.param(("0000_a.sql", "0001_b.sql"), id="a step zero"),
    ],
)
def test_a_gap_is_refused(tmp_path: Path, names: tuple[str, ...]) -> None:
    """Steps that do not count from one are a mistake of ours, and are named by their store."""
    with pytest.raises(SchemaError, match="somewhere are not numbered from 0001"):
        find_migrations("somewhere", a_directory(tmp_path, *names))


@pytest.mark.parametrize("store", ["sqlite", "postgres"], ids="those of {}".format)
def test_our_own_steps_are_whole(store: str) -> None:
    """The migrations that we ship count from one and say something."""
    steps = find_migrations(f"batonpass.store.{store}")

    assert list(range(1, len(steps) + 1)) == [step.version for step in steps]
    assert all("CREATE TABLE" in step.sql for step in steps[:1])


@pytest.mark.parametrize(
    ("applied", "left"),
    [
        pytest.param((), (1, 2, 3), id="a new store needs all"),
        pytest.param((1,), (2, 3), id="an old one what it lacks"),
        pytest.param((1, 2, 3), (), id="a present one nothing"),
        pytest.param((1, 3), (2,), id="one that skipped a step needs that"),
    ],
)
def test_what_is_missing_is_pending(applied: tuple[int, ...], left: tuple[int, ...]) -> None:
    """What was applied is not applied again."""
    assert left == tuple(step.version for step in pending(STEPS, applied))


def test_a_newer_schema_is_refused() -> None:
    """A store that knows more than we do is left alone, and the error says what to do."""
    with pytest.raises(NewerSchemaError, match=r"has schema 4 and this program knows up to 3; upgrade"):
        pending(STEPS, (1, 2, 3, 4))
