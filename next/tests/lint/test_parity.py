"""What the table of parity refuses, and which claims of tests it sees."""

from pathlib import Path

import pytest

from tools.parity import find_claims, main, report

TABLE = """
[done]
parts = ["record", "nowhere"]

[[row]]
id = "append-is-durable"
what = "An append is durable."
from = "L1.1"
part = "slice"

[[row]]
id = "receipts-are-signed"
what = "A receipt is signed."
from = "L1.2"
part = "slice"

[[row]]
id = "columns-are-strict"
what = "A column has one type."
from = "L2.1"
part = "record"
design = "schema.sql: STRICT tables"

[[row]]
id = "memory-store"
what = "The ledger may be Python objects."
from = "L1.3"
part = "record"
dropped = "SQLite in memory does it."
"""


def a_tree(root: Path, *, rows: str = "", test: str = "", done: str = "[]") -> Path:
    (root / "tests" / "deep").mkdir(parents=True)
    (root / "tests" / "deep" / "test_it.py").write_text(test, encoding="utf-8")
    (root / "schema.sql").touch()
    table = TABLE.replace('["record", "nowhere"]', done) + rows
    (root / "parity.toml").write_text(table, encoding="utf-8")
    return root


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        pytest.param('@pytest.mark.parity("a", "b")\ndef test_it(): ...', ["a", "b"], id="a decorator"),
        pytest.param('@mark.parity("a")\nasync def test_it(): ...', ["a"], id="mark imported by its name"),
        pytest.param('class TestIt:\n    @pytest.mark.parity("a")\n    def test_it(self): ...', ["a"], id="a method"),
        pytest.param('pytestmark = [pytest.mark.slow, pytest.mark.parity("a")]', ["a"], id="pytestmark"),
        pytest.param('pytest.param(1, marks=pytest.mark.parity("a"))', ["a"], id="a parameter"),
        pytest.param('pytest.param(1, marks=[pytest.mark.parity("a")])', ["a"], id="a parameter with several marks"),
        pytest.param(
            "@pytest.mark.parity(ROW, *ROWS, f'a{b}', id='a')\ndef test_it(): ...", [None] * 3 + ["a"], id="names"
        ),
        pytest.param('TEXT = \'@pytest.mark.parity("a")\'\nother.parity("a")', [], id="a text and another function"),
    ],
)
def test_claims_are_found(source: str, expected: list[str | None]) -> None:
    """Every literal id in a parity mark is a claim, wherever the mark stands; an id by a name is seen as no literal."""
    assert expected == [claim.id for claim in find_claims(source, "tests/test_it.py")]


def test_each_row_is_counted_once_by_its_part(tmp_path: Path) -> None:
    """A row is dropped, impossible by design, claimed by tests, or open."""
    a_tree(tmp_path, test='@pytest.mark.parity("receipts-are-signed")\ndef test_it(): ...\n')

    table, faults = report(tmp_path)

    assert [] == faults
    assert ["part", "rows", "dropped", "design", "tests", "open"] == table[0].split()
    assert ["slice", "2", "0", "0", "1", "1"] == table[1].split()
    assert ["record", "2", "1", "1", "0", "0"] == table[2].split()
    assert ["total", "4", "1", "1", "1", "1"] == table[-1].split()


def test_open_rows_of_a_part_are_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What is open does not fail as long as its part is not declared done."""
    a_tree(tmp_path, test='@pytest.mark.parity("receipts-are-signed")\ndef test_it(): ...\n')

    assert 0 == main(["--part", "slice"], root=tmp_path)
    assert "append-is-durable: An append is durable.\n" == capsys.readouterr().out


def test_a_done_part_with_an_open_row_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Declaring a part done holds it to its rows."""
    a_tree(tmp_path, done='["slice"]', test='@pytest.mark.parity("receipts-are-signed")\ndef test_it(): ...\n')

    assert 1 == main([], root=tmp_path)
    assert "append-is-durable: is open, and slice is declared done\n" == capsys.readouterr().err


def row(**changes: str) -> str:
    """Return a row that is right but for its changes; an empty value leaves the key out."""
    values = {"id": "x", "what": "It works.", "from": "L9.9", "part": "slice"} | changes
    return "\n[[row]]\n" + "".join(f'{key} = "{value}"\n' for key, value in values.items() if value)


@pytest.mark.parametrize(
    ("rows", "test", "expected"),
    [
        pytest.param(row() + row(), "", "x: 2 rows have this id", id="one id twice"),
        pytest.param(row(id=""), "", "a row without an id: has no id", id="no id"),
        pytest.param(row(what="", part=""), "", "x: has no part, what", id="missing keys"),
        pytest.param(row(what=" "), "", "x: has no text as what", id="an empty line"),
        pytest.param(row(test="t"), "", "x: has unknown keys: test", id="an unknown key"),
        pytest.param(row(part="attic"), "", "x: is of no known part: attic", id="an unknown part"),
        pytest.param(
            row(dropped="nobody used it", design="schema.sql: STRICT"),
            "",
            "x: is dropped, so it needs no design",
            id="dropped and by design",
        ),
        pytest.param(
            row(design="gone.sql: STRICT"),
            "",
            'x: its design is not "file: constraint" of a file that exists: gone.sql: STRICT',
            id="a design in a file that does not exist",
        ),
        pytest.param(
            row(design="schema.sql"),
            "",
            'x: its design is not "file: constraint" of a file that exists: schema.sql',
            id="a design without its constraint",
        ),
        pytest.param(
            "",
            'pytestmark = pytest.mark.parity("no-such-row")',
            "tests/deep/test_it.py:1: claims no-such-row, which no row has",
            id="a claim of no row",
        ),
        pytest.param(
            "",
            'pytestmark = pytest.mark.parity("memory-store")',
            "tests/deep/test_it.py:1: claims memory-store, which is dropped",
            id="a claim of a dropped row",
        ),
        pytest.param(
            "",
            "pytestmark = pytest.mark.parity(ROW)",
            "tests/deep/test_it.py:1: an id of a parity mark is a literal string",
            id="a claim by a name",
        ),
    ],
)
def test_a_wrong_table_or_claim_is_a_fault(tmp_path: Path, rows: str, test: str, expected: str) -> None:
    """Each contradiction is named with its row, or with the line of its test."""
    assert [expected] == report(a_tree(tmp_path, rows=rows, test=test))[1]


def test_only_known_parts_are_done(tmp_path: Path) -> None:
    """A misspelt part would hold nothing to its rows."""
    assert ["done: no part is called nowhere"] == report(a_tree(tmp_path, done='["record", "nowhere"]'))[1]
