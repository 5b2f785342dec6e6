"""The parts that receipts have are those of the specification: in the table, in the code, and in what acts write."""

import re
from pathlib import Path

from batonpass.testing import observe
from batonpass.verify.parts import PARTS
from tests.verify.conftest import RichLedger

SPECIFICATION = Path(__file__).parents[2] / "docs" / "spec" / "content.md"


def tables() -> tuple[dict[str, tuple[set[str], set[str]]], set[str]]:
    """Return the parts of each kind, required and optional, and all parts that are explained."""
    text = SPECIFICATION.read_text(encoding="utf-8")
    kinds = re.findall(r"^\| `([a-z_.]+\.[a-z_.]+)` \|([^|]*)\|([^|]*)\|$", text, flags=re.MULTILINE)
    explained = re.findall(r"^\| `([a-z_]+)` \|", text, flags=re.MULTILINE)
    named = re.compile(r"`(\w+)`")
    parts = {kind: (set(named.findall(always)), set(named.findall(more))) for kind, always, more in kinds}
    return parts, set(explained)


def test_the_table_is_what_the_verifier_requires() -> None:
    """The page has each kind with exactly the parts that verification asks for and allows."""
    assert {kind: (set(parts.required), set(parts.optional)) for kind, parts in PARTS.items()} == tables()[0]


def test_each_part_is_explained() -> None:
    """What a part holds is said once."""
    parts, explained = tables()

    assert explained == set().union(*(required | optional for required, optional in parts.values()))


def test_acts_write_the_parts_of_the_table(ledger: RichLedger) -> None:
    """Every kind is written with every part that it may have, and never without one that it must have."""
    with ledger.open() as relay:
        seen = observe(relay).receipts
    parts = tables()[0]
    written: dict[str, set[str]] = {}
    for receipt in seen:
        written.setdefault(receipt.kind, set()).update(receipt.parts)

    assert {kind: required | optional for kind, (required, optional) in parts.items()} == written
    assert [] == [receipt for receipt in seen if not parts[receipt.kind][0] <= receipt.parts.keys()]
