"""A buffer is what the editor shows, and its lines are found again in the saved file."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batonpass.adapters.editor.text_buffer import TextBuffer, map_lines
from batonpass.errors import InvalidValueError

LETTERS = st.text(alphabet="ab\n\r é😀\u2028", max_size=12)


def a_change(text: str, start: tuple[int, int], end: tuple[int, int]) -> dict[str, Any]:
    ends = [{"line": line, "character": character} for line, character in (start, end)]
    return {"text": text, "range": {"start": ends[0], "end": ends[1]}}


def spliced_by_units(text: str, change: dict[str, Any]) -> str:
    """Apply a change as the protocol defines it, on the units of UTF-16 themselves."""
    units = text.encode("utf-16-le")
    places = []
    for end in ("start", "end"):
        wanted = change["range"][end]
        starts = [0]
        position = 0
        while position < len(text):
            if text[position : position + 2] == "\r\n":
                position += 2
                starts.append(position)
            elif text[position] in "\r\n":
                position += 1
                starts.append(position)
            else:
                position += 1
        if wanted["line"] >= len(starts):
            places.append(len(units))
            continue
        start = starts[wanted["line"]]
        length = next((n for n, letter in enumerate(text[start:]) if letter in "\r\n"), len(text) - start)
        line = text[start : start + length].encode("utf-16-le")
        before = len(text[:start].encode("utf-16-le"))
        places.append(before + min(2 * wanted["character"], len(line)))
    first, last = min(places), max(places)
    new = str(change["text"]).encode("utf-16-le")
    return (units[:first] + new + units[last:]).decode("utf-16-le", "replace")


@given(LETTERS, LETTERS, st.tuples(*[st.integers(0, 5)] * 4))
def test_a_change_is_what_the_protocol_says(text: str, new: str, where: tuple[int, int, int, int]) -> None:
    """For any text, any place, and beyond the ends; half a character is never asked for by an editor."""
    change = a_change(new, where[:2], where[2:])
    expected = spliced_by_units(text, change)
    if "\ufffd" not in expected:
        assert expected == TextBuffer(text=text).changed([change], 2).text


def test_changes_come_one_after_another() -> None:
    """Each counts from the text after the one before it; one without a range is the whole text."""
    buffer = TextBuffer(text="one\ntwo\n")
    insert, delete = a_change("zero\n", (0, 0), (0, 0)), a_change("", (1, 0), (2, 0))

    assert ("zero\ntwo\n", 7) == ((found := buffer.changed([insert, delete], 7)).text, found.version)
    assert "all" == buffer.changed([insert, {"text": "all"}], 1).text


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({}, id="nothing"),
        pytest.param("x", id="a text"),
        pytest.param({"text": 1}, id="no text"),
        pytest.param({"text": "", "range": 1}, id="no range"),
        pytest.param({"text": "", "range": {"start": {"line": -1, "character": 0}}}, id="before the beginning"),
        pytest.param(a_change("", (0, 0), (0, 0)) | {"range": {"start": {"line": 0}}}, id="half a place"),
    ],
)
def test_a_change_that_makes_no_sense_is_refused(change: Any) -> None:  # noqa: ANN401 - whatever a client sends
    """With our own error, whatever it is."""
    with pytest.raises(InvalidValueError):
        TextBuffer(text="a\n").changed([change], 1)


def test_lines_are_found_in_the_saved_file() -> None:
    """Inserted lines have no place there, and those below them keep theirs."""
    saved = ["def f():", "    return 1", "", "def g():", "    return 2"]
    buffer = ["# new", *saved[:2], "    # unsaved", *saved[2:], ""]

    assert {1: 0, 2: 1, 4: 2, 5: 3, 6: 4} == map_lines(saved, buffer)
    assert {0: 0, 1: 1, 2: 2, 3: 3, 4: 4} == map_lines(saved, [*saved, ""])
