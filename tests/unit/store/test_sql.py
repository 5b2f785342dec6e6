"""SQL by name."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from batonpass.store.sql import Queries

TEXT = """\
-- A word about the file.

-- name: first
SELECT 1;

-- This is about the second; it is not a part of the first.
-- name: second
INSERT INTO things (name)
VALUES (';')
RETURNING name;

-- name: third
-- A comment inside a statement stays.
DELETE FROM things;
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Give a package with a file of statements."""
    (tmp_path / "some_queries").mkdir()
    (tmp_path / "some_queries" / "__init__.py").touch()
    (tmp_path / "some_queries" / "queries.sql").write_text(TEXT, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    yield "some_queries"
    sys.modules.pop("some_queries", None)


def test_statements_have_names(package: str) -> None:
    """Each statement is found by its name, without its semicolon and without what is said about the next."""
    queries = Queries(package)

    assert ["first", "second", "third"] == list(queries)
    assert 3 == len(queries)
    assert "SELECT 1" == queries["first"]
    assert "INSERT INTO things (name)\nVALUES (';')\nRETURNING name" == queries["second"]
    assert "-- A comment inside a statement stays.\nDELETE FROM things" == queries["third"]


def test_an_unknown_name_is_a_mistake_of_ours(package: str) -> None:
    """A statement that is not there is not silently empty."""
    with pytest.raises(KeyError, match="fourth"):
        Queries(package)["fourth"]


@pytest.mark.parametrize("store", ["sqlite", "postgres"], ids="those of {}".format)
def test_our_own_statements_are_statements(store: str) -> None:
    """Every statement that we ship has a text, and no name is used twice."""
    queries = Queries(f"batonpass.store.{store}")
    text = Path(__file__).parents[3] / "src" / "batonpass" / "store" / store / "queries.sql"

    assert [] == [name for name, statement in queries.items() if not statement]
    assert len(queries) == sum(line.startswith("-- name: ") for line in text.read_text(encoding="utf-8").splitlines())
