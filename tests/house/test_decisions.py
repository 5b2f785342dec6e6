"""Decisions are numbered without gaps and argued in the same four parts."""

import re

from tests.house.tree import DOCS

PARTS = ["Context", "Options", "Decision", "Cost"]
NAME = re.compile(r"(\d{4})-[a-z0-9]+(-[a-z0-9]+)*\.md")
HEADING = re.compile(r"^## (\w+)", re.MULTILINE)

ADRS = sorted(path for path in (DOCS / "adr").iterdir() if path.name != "README.md")


def test_decisions_are_named_by_number_and_title() -> None:
    """A decision is a file like `0007-title.md`."""
    assert [] == [path.name for path in ADRS if not NAME.fullmatch(path.name)]


def test_decisions_are_numbered_without_gaps() -> None:
    """Numbers begin at 1 and leave none out, so a missing decision is seen."""
    assert list(range(1, len(ADRS) + 1)) == [int(path.name[:4]) for path in ADRS]


def test_decisions_have_their_four_parts() -> None:
    """Context, options, decision and cost, in this order, and no decision leaves one out."""
    headings = {path.name: HEADING.findall(path.read_text(encoding="utf-8")) for path in ADRS}

    assert {} == {name: found for name, found in headings.items() if [part for part in found if part in PARTS] != PARTS}
