"""Every kind of receipt can be said in words."""

import tomllib
from pathlib import Path
from string import Formatter
from typing import Final

from batonpass.model.bodies import KINDS
from batonpass.narrate.receipts import SENTENCES

CLOSED: Final = Path(__file__).parents[2] / "closed.toml"
_COUNTED: Final = {"acts", "items"}


def test_each_kind_has_a_sentence_of_its_own_fields() -> None:
    """A kind that is added needs its words, and they may name only what its body has."""
    assert sorted(SENTENCES) == tomllib.loads(CLOSED.read_text(encoding="utf-8"))["kinds"]["names"]
    for kind, sentence in SENTENCES.items():
        body = KINDS.get(kind) or KINDS[kind.rpartition(".")[0]]
        fields = {field for _, field, _, _ in Formatter().parse(sentence.words) if field}
        assert set() == fields - {*body.__struct_fields__, *_COUNTED}, kind
