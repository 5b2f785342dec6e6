"""A grant that comes as JSON: when it ends is text."""

from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from batonpass import Grant
from batonpass.errors import InvalidValueError
from batonpass.testing import FrozenClock, a_relay, observe

NOW = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("expires", "expected"),
    [
        pytest.param('"24h"', NOW + timedelta(hours=24), id="a duration in short"),
        pytest.param('"2026-01-31T12:00:00Z"', datetime(2026, 1, 31, 12, 0, tzinfo=UTC), id="a moment of RFC 3339"),
        pytest.param('"2026-01-31T12:00:00+02:00"', datetime(2026, 1, 31, 10, 0, tzinfo=UTC), id="elsewhere on earth"),
        pytest.param("null", None, id="no end"),
    ],
)
def test_a_grant_from_json_ends_when_its_text_says(expires: str, expected: datetime | None) -> None:
    """What a program elsewhere writes is the same moment here."""
    grant = msgspec.json.decode(f'{{"may": ["read:a"], "expires": {expires}}}', type=Grant)
    with a_relay(system=FrozenClock(NOW)) as relay:
        relay.start("x", by="user:ana", grant=grant)
        terms = observe(relay).last("run.started").value("terms")

    assert (None if expected is None else int(expected.timestamp() * 1_000_000)) == terms.get("expires_at")


@pytest.mark.parametrize("expires", ["5", "true", '"later"', '"T"', '"2026-01-31T12:00:00"'])
def test_what_is_no_time_is_refused(expires: str) -> None:
    """A number could be seconds or microseconds, a time without zone is many: neither is repaired."""
    grant = msgspec.json.decode(f'{{"expires": {expires}}}', type=Grant)
    with a_relay() as relay, pytest.raises(InvalidValueError, match="expires="):
        relay.start("x", by="user:ana", grant=grant)
