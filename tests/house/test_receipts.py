"""The specification of receipts lists every kind with every field, and says which of them have a default."""

import re
from typing import Final, TypeAlias, get_args

from msgspec import NODEFAULT
from msgspec.structs import fields

from tests.house.tree import document, module

Fields: TypeAlias = dict[str, bool]  # by name: whether it may be left out

ROW: Final = re.compile(r"^\| `([a-z]+\.[a-z_]+)` \| [^|]* \| ([^|]*) \| [^|]* \|$", re.MULTILINE)
FIELD: Final = re.compile(r"(\[?)`([a-z_]+)`")
LIKE: Final = re.compile(r"as `([a-z]+\.[a-z]+)`")


def rows() -> dict[str, Fields]:
    """Return the fields that the tables give each kind; `as KIND` stands for those of a kind further up."""
    found: dict[str, Fields] = {}
    _, _, kinds = document("spec/receipt.md").partition("\n## 4. ")
    for kind, cell in ROW.findall(kinds.partition("\n## 5. ")[0]):
        like = LIKE.search(cell)
        known = found[like[1]] if like else {}
        found[kind] = known | {name: bool(bracket) for bracket, name in FIELD.findall(LIKE.sub("", cell))}
    return found


def bodies() -> dict[str, Fields]:
    """Return the fields that the code gives each kind."""
    of_code = module("batonpass.model.bodies.body")
    return {
        str(body.kind): {field.name: field.default is not NODEFAULT for field in fields(body)}
        for body in get_args(of_code.Body)
        if body is not of_code.UnknownBody
    }


def values_of(name: str) -> list[str]:
    """Return the texts of an enumeration that stands in receipts."""
    return [str(member) for member in getattr(module("batonpass.model.bodies.body"), name)]


def test_the_tables_have_every_kind_and_every_field() -> None:
    """docs/spec/receipt.md gives each kind exactly the fields of its body, in brackets those with a default."""
    assert bodies() == rows()


def test_every_field_has_its_meaning() -> None:
    """Each field of a body stands in the first column of one of the tables of fields."""
    first = re.findall(r"^\| ([^|]*) \|", document("spec/receipt.md"), re.MULTILINE)
    explained = {name for cell in first for name in re.findall(r"`([a-z_]+)`", cell)}

    assert set() == {name for known in bodies().values() for name in known} - explained


def test_every_value_of_an_enumeration_is_listed() -> None:
    """What may stand in a field is written out."""
    text = document("spec/receipt.md")
    enums = ("EffectKind", "ErrorType", "Method", "Outcome", "Part", "Relation", "Sanitising", "Settlement")

    assert [] == [value for name in enums for value in values_of(name) if f"`{value}`" not in text]
