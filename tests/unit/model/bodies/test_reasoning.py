"""What is signed about a sender's reasoning, and where it can be read: values that refuse what cannot be right."""

from typing import Any

import pytest

from batonpass.errors import InvalidValueError
from batonpass.model.base.ids import Digest
from batonpass.model.bodies.reasoning import ReasoningPlace, ReasoningPointer
from tests.unit.model.examples import CALL, DIGEST

SHA256 = Digest("ab" * 32)


@pytest.mark.parametrize(
    ("said", "field"),
    [
        pytest.param({}, "reasoning", id="nothing at all"),
        pytest.param({"message": 3}, "reasoning", id="a place and nothing that stands there"),
        pytest.param({"checkpoint": CALL}, "reasoning.checkpoint", id="a call where a receipt belongs"),
        pytest.param({"digest": "AB" * 32}, "reasoning.digest", id="a digest in another spelling"),
        pytest.param({"digest": DIGEST, "message": 0}, "reasoning.message", id="messages are counted from 1"),
        pytest.param({"digest": DIGEST, "line": 0}, "reasoning.line", id="lines are counted from 1"),
        pytest.param({"digest": DIGEST, "offset": -1}, "reasoning.offset", id="before the beginning"),
        pytest.param({"digest": DIGEST, "offset": True}, "reasoning.offset", id="yes, as a number"),
    ],
)
def test_a_pointer_refuses_what_cannot_be_right(said: dict[str, Any], field: str) -> None:
    """It names the field; a pointer that points to nothing is none."""
    with pytest.raises(InvalidValueError) as refused:
        ReasoningPointer(**said)

    assert field == refused.value.field


@pytest.mark.parametrize(
    ("said", "field"),
    [
        pytest.param({"sha256": "short"}, "reasoning.sha256", id="no digest"),
        pytest.param({"sha256": SHA256, "path": " "}, "reasoning.path", id="an empty path"),
        pytest.param({"sha256": SHA256, "uuid": "half \ud83d"}, "reasoning.uuid", id="half a character"),
        pytest.param({"sha256": SHA256, "line": 2**53}, "reasoning.line", id="more than JSON counts exactly"),
    ],
)
def test_a_place_refuses_what_cannot_be_right(said: dict[str, Any], field: str) -> None:
    """What a program sends is checked where it enters."""
    with pytest.raises(InvalidValueError) as refused:
        ReasoningPlace(**said)

    assert field == refused.value.field
