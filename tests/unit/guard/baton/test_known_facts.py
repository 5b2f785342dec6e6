"""What is known at receipt is checked where it is made."""

from datetime import datetime
from typing import Any

import pytest

from batonpass.errors import InvalidValueError
from batonpass.guard.baton.known_facts import KnownFacts
from tests.unit.guard.batons import NOON, kept


@pytest.mark.parametrize(
    ("change", "field"),
    [
        pytest.param({"now": datetime(2026, 1, 2)}, "now", id="a moment without a zone"),  # noqa: DTZ001 - the example
        pytest.param({"now": NOON, "depth": -1}, "depth", id="less than no hops"),
        pytest.param({"now": NOON, "contents": []}, "contents", id="contents without their ids"),
        pytest.param({"now": NOON, "resolves": "run:7f3a"}, "resolves", id="one reference instead of a set"),
    ],
)
def test_what_cannot_be_known_is_refused(change: dict[str, Any], field: str) -> None:
    """A check relies on what is known without looking at it again."""
    with pytest.raises(InvalidValueError) as error:
        KnownFacts(**change)

    assert field == error.value.field


def test_a_kept_content_has_a_media_type_or_none() -> None:
    """A media type is one, or is not known."""
    with pytest.raises(InvalidValueError, match="media_type"):
        kept(media_type="CSV")

    assert kept(media_type="text/csv").media_type == "text/csv"
