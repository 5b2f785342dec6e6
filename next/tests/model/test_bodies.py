"""The kinds of receipts, and the fields of their bodies, are those of the specification."""

import re
from pathlib import Path

from msgspec import NODEFAULT
from msgspec.structs import fields

from batonpass.model.bodies import KINDS

PAGE = (Path(__file__).parents[2] / "docs" / "spec" / "receipts.md").read_text(encoding="utf-8")


def test_each_kind_has_the_fields_of_the_page() -> None:
    """The table of bodies names every field, in its order, and marks what may be left out."""
    rows = re.findall(r"^\| `(\w+\.\w+)` \| (.*) \|$", PAGE, flags=re.MULTILINE)

    assert {
        kind: [(field.name, field.default is not NODEFAULT) for field in fields(body)] for kind, body in KINDS.items()
    } == {kind: [(name, bool(mark)) for name, mark in re.findall(r"`(\w+)`(\??)", names)] for kind, names in rows}
