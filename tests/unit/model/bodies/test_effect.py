"""Effects as receipts name them."""

from typing import Any

import pytest
from msgspec.structs import replace

from batonpass.errors import InvalidValueError
from tests.unit.model.examples import SENT
from tests.unit.model.wrongs import NOT_DIGESTS, NOT_IDS, NOT_MEMBERS, NOT_OPTIONAL_NUMBERS

WRONG = {"effect": NOT_IDS, "kind": NOT_MEMBERS, "target": NOT_DIGESTS, "count": NOT_OPTIONAL_NUMBERS}


@pytest.mark.parametrize(("field", "value"), [(field, value) for field, values in WRONG.items() for value in values])
def test_what_cannot_be_is_refused(field: str, value: Any) -> None:  # noqa: ANN401 - what is no effect
    """The error names the field."""
    with pytest.raises(InvalidValueError, match=rf"^effects\.{field}: "):
        replace(SENT, **{field: value})
