"""The pictures in the documents show what the product prints today."""

import re
from html import unescape
from pathlib import Path
from typing import Final

import pytest

from tests.acceptance.transcript import shows
from website.pictures import COLUMNS, FOLDER, PICTURES, spans, told

LINE: Final = re.compile(r"<text [^>]*>(.*?)</text>")
TAG: Final = re.compile(r"<[^>]+>")
COLOUR: Final = re.compile(r"\x1b\[[\d;]*m")

# The short ids, by the word before them; and what is left of a word where a line is cut.
SHORT: Final = re.compile(r"\b(planner|fixer|tidier|read_ticket|write_file|ticket-118|outside:) \w{4}\b")
CUT: Final = re.compile(r"\S*…$", re.MULTILINE)


def text_of(picture: Path) -> str:
    """Return the words of a picture, as somebody copies them, without the command that they belong to."""
    _, *lines = LINE.findall(picture.read_text(encoding="utf-8"))
    return CUT.sub("…", "\n".join(unescape(TAG.sub("", line)) for line in lines))


@pytest.mark.slow
def test_pictures_show_what_is_printed_today() -> None:
    """Played again, the story is told in the same words but for ids and times: else `make pictures` was forgotten."""
    today = {name: COLOUR.sub("", shown) for name, shown in told().items()}
    drawn = {name: SHORT.sub(r"\1 …", text_of(FOLDER / f"{name}.svg")) for name in today}

    assert {} == {name: (drawn[name], shown) for name, shown in today.items() if not shows(drawn[name], shown)}


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_readable_in_the_dark(name: str) -> None:
    """It has colours for a dark page, and needs nothing from elsewhere."""
    text = (FOLDER / f"{name}.svg").read_text(encoding="utf-8")

    assert "prefers-color-scheme: dark" in text
    assert ["http://www.w3.org/2000/svg"] == re.findall(r"https?://[^\"'\s)]+", text)


def test_no_picture_is_left_over() -> None:
    """Each drawing beside them is made by the program; pictures of the page are made by `make screenshots`."""
    assert sorted(f"{name}.svg" for name in PICTURES) == sorted(path.name for path in FOLDER.glob("*.svg"))


def test_colours_become_classes() -> None:
    """What a terminal shows dim or green has a class; the rest has none."""
    assert [("a", "dim"), ("b", ""), ("c", "green")] == list(spans("\x1b[2ma\x1b[0mb\x1b[32mc\x1b[0m"))


def test_a_long_line_is_cut() -> None:
    """A line that is too long ends with an ellipsis at the edge, whatever its colours."""
    pieces = list(spans("x" * 60 + "\x1b[2m" + "y" * 60 + "\x1b[0mz"))

    assert COLUMNS == sum(len(text) for text, _ in pieces)
    assert "…" == pieces[-1][0][-1]
