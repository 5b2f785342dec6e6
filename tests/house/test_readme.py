"""The first page that anybody reads."""

import re
from typing import Final

from tests.house.tree import DOCS, ROOT

README: Final = (ROOT / "README.md").read_text(encoding="utf-8")
# Who comes, in the order in which most of them come; then what they ask next.
PARTS: Final = (
    "## Install",
    "## You use a coding agent",
    "## You have agents in a program",
    "## You run a fleet",
    "## What it promises",
    "## Measured",
    "## What is not there",
    "## Read on",
)


def test_three_people_find_their_part_at_the_top() -> None:
    """Somebody with a coding agent, somebody with a program and somebody with a fleet; then all that is asked next."""
    assert list(PARTS) == re.findall(r"^## .*$", README, re.MULTILINE)


def test_measured_figures_have_a_date_and_others_beside_them() -> None:
    """A comparison says when it was made, with which versions, and where all of it is."""
    measured = README.partition("## Measured")[2].partition("\n## ")[0]
    peers = re.search(r"^\| \| Batonpass \| \w+ \d[\d.]+ \| \w+ \d[\d.]+ \|$", measured, re.MULTILINE)

    assert (True, True, True) == (
        re.search(r"\b20\d\d-\d\d-\d\d\b", measured) is not None,
        peers is not None,
        "bench/README.md" in measured,
    )


def test_pictures_that_the_product_drew_are_text() -> None:
    """Whoever wants a line of a picture can copy it."""
    drawn = re.findall(r"\(docs/(pictures/\w+\.svg)\)", README)

    assert {"pictures/blame.svg", "pictures/trail.svg"} == set(drawn)
    assert [] == [name for name in drawn if "<text" not in (DOCS / name).read_text(encoding="utf-8")]
