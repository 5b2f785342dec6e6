"""Values of a file, whether they are lines or parts of one document, with the memory of a few of them."""

import json
import tracemalloc
from pathlib import Path

import pytest

from batonpass.adapters.session_files.session_values import SkippedLine
from batonpass.adapters.trace_files import json_items
from batonpass.adapters.trace_files.json_items import JsonItem, find_items

WAYS = frozenset({"resourceSpans", "scopeSpans"})
UNITS = frozenset({"spans", "data"})
TRICKY = {"a": 'he said "}]" \\', "spans": [{"not": "a value"}], "b": [[{}], "[{"], "é": "\N{GRINNING FACE}"}


def read(path: Path) -> tuple[list[object], list[SkippedLine]]:
    """Return the values of a file, and what was skipped."""
    found = list(find_items(path, ways=WAYS, units=UNITS))
    items = [json.loads(one.data) for one in found if isinstance(one, JsonItem)]
    return items, [one for one in found if isinstance(one, SkippedLine)]


@pytest.mark.parametrize("indent", [None, 2], ids=["in one line", "over many lines"])
@pytest.mark.parametrize(
    "told",
    [
        pytest.param([TRICKY, TRICKY], id="a list"),
        pytest.param({"ignored": [{"x": 1}], "data": [TRICKY, TRICKY]}, id="a list with a name"),
        pytest.param(
            {"resourceSpans": [{"resource": {"spans": []}, "scopeSpans": [{"spans": [TRICKY]}, {"spans": [TRICKY]}]}]},
            id="lists in lists",
        ),
    ],
)
@pytest.mark.parametrize("chunk", [1, 7, 1 << 20])
def test_a_document_is_taken_apart(
    told: object, indent: int | None, chunk: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its values come out whole, wherever a read ends."""
    monkeypatch.setattr(json_items, "_CHUNK", chunk)
    monkeypatch.setattr(json_items, "_is_lines", lambda _: False)
    path = tmp_path / "file.json"
    path.write_text(json.dumps(told, indent=indent, ensure_ascii=False), encoding="utf-8")

    assert ([TRICKY, TRICKY], []) == read(path)


def test_lines_are_lines_also_if_one_is_broken(tmp_path: Path) -> None:
    """A line that is not JSON is left to whoever reads it, and an unfinished last one to the next time."""
    path = tmp_path / "file.jsonl"
    path.write_text('{"a": 1\n{"a": 2}\n\n{"a": 3}\n{"a": 4', encoding="utf-8")

    found = [one for one in find_items(path, ways=WAYS, units=UNITS) if isinstance(one, JsonItem)]

    assert [1, 2, 4] == [one.line for one in found]


def test_a_document_that_ends_in_the_middle_says_so(tmp_path: Path) -> None:
    """What came before the end is read."""
    path = tmp_path / "file.json"
    path.write_text(json.dumps([{"a": 1}, {"b": 2}], indent=1)[:-6], encoding="utf-8")

    items, skipped = read(path)

    assert [{"a": 1}] == items
    assert ["the document ends" in one.what for one in skipped] == [True]


def test_a_value_that_is_too_long_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is named by its place, and those after it are read."""
    monkeypatch.setattr(json_items, "LONGEST", 2000)
    monkeypatch.setattr(json_items, "_CHUNK", 64)
    path = tmp_path / "file.json"
    path.write_text(json.dumps([{"a": ["x" * 100] * 100}, {"b": 2}], indent=1), encoding="utf-8")

    items, skipped = read(path)

    assert [{"b": 2}] == items
    assert ["is longer than" in one.what for one in skipped] == [True]


def test_lists_without_end_cost_nothing(tmp_path: Path) -> None:
    """Brackets are counted, and not remembered."""
    path = tmp_path / "file.json"
    path.write_bytes(b"[\n" + b'{"data":[' * 100_000)

    items, skipped = read(path)

    assert ([], 1) == (items, len(skipped))


def test_a_long_document_is_streamed(tmp_path: Path) -> None:
    """It takes the memory of some values, however many there are."""
    path = tmp_path / "file.json"
    with path.open("w") as file:
        file.write("[\n")
        for _ in range(150):
            file.write(json.dumps({"text": "x" * 100_000}) + ",\n")
        file.write("{}]")
    tracemalloc.start()
    try:
        for _ in find_items(path, ways=WAYS, units=UNITS):
            pass
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert most < 8 * 1024 * 1024  # of fifteen million characters
