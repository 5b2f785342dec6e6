"""Identifiers: UUIDv7 inside, TypeID outside."""

import re
import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batonpass.errors import InvalidValueError
from batonpass.model.base.ids import (
    CALL,
    CONTENT,
    HANDOFF,
    LEDGER,
    RECEIPT,
    RELAY,
    RUN,
    SESSION,
    first_id,
    new_call_id,
    new_content_id,
    new_handoff_id,
    new_id,
    new_ledger_id,
    new_relay_id,
    new_run_id,
    require_agent,
    require_id,
    require_principal,
    require_stream,
    time_of,
)
from tests.unit.model.examples import AT

CROCKFORD = "0123456789abcdefghjkmnpqrstvwxyz"
PREFIXES = (RUN, HANDOFF, RELAY, RECEIPT, CONTENT, CALL, LEDGER, SESSION)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

moments = st.datetimes(min_value=EPOCH.replace(tzinfo=None), timezones=st.just(UTC))


def number_in(identifier: str) -> int:
    """Return the 128 bits of an id, decoded independently of our code."""
    number = 0
    for character in identifier.rpartition("_")[2]:
        number = number * 32 + CROCKFORD.index(character)
    return number


@given(moments)
def test_an_id_is_a_uuid_of_version_7(at: datetime) -> None:
    """The bits of an id are those of RFC 9562: version 7, variant 10, milliseconds first."""
    inside = uuid.UUID(int=number_in(new_id(RUN, at)))

    assert (7, uuid.RFC_4122) == (inside.version, inside.variant)
    assert (at - EPOCH) // timedelta(milliseconds=1) == inside.int >> 80


@given(moments)
def test_the_time_comes_back_to_the_millisecond(at: datetime) -> None:
    """An id tells when it was made."""
    assert at - timedelta(microseconds=at.microsecond % 1000) == time_of(new_id(RECEIPT, at))


@given(moments, st.integers(min_value=1, max_value=10**9))
def test_a_later_id_sorts_later(at: datetime, micros: int) -> None:
    """Ids sort by their time, even within one millisecond, as far as 12 bits tell."""
    try:
        later = at + timedelta(microseconds=micros)
    except OverflowError:
        return
    first, second = (new_id(RUN, moment)[:-13] for moment in (at, later))

    assert first <= second


def test_ids_within_a_millisecond_sort_by_the_microsecond() -> None:
    """A thousand ids, one for each microsecond, are in order as they are made."""
    made = [new_id(RUN, EPOCH + timedelta(days=20_000, microseconds=micro)) for micro in range(1000)]

    assert sorted(made) == made


def test_ids_of_one_moment_are_different() -> None:
    """Two ids of the same moment are never the same."""
    assert 10_000 == len({new_id(RUN, AT) for _ in range(10_000)})


@given(moments)
def test_the_first_id_of_a_millisecond_sorts_before_the_others(at: datetime) -> None:
    """No id that is made in a millisecond sorts before its first one, which tells that millisecond."""
    assert first_id(RUN, at) <= new_id(RUN, at)
    assert at - timedelta(microseconds=at.microsecond % 1000) == time_of(first_id(RUN, at))


def test_a_search_from_before_1970_finds_everything() -> None:
    """The first id of a time before all ids is the smallest."""
    assert f"run_{'0' * 26}" == first_id(RUN, EPOCH - timedelta(days=1))


@pytest.mark.parametrize(
    ("make", "prefix"),
    [
        pytest.param(new_run_id, RUN, id="a run id begins with run"),
        pytest.param(new_handoff_id, HANDOFF, id="a handoff id begins with handoff"),
        pytest.param(new_relay_id, RELAY, id="a relay id begins with relay"),
        pytest.param(new_content_id, CONTENT, id="a content id begins with content"),
        pytest.param(new_call_id, CALL, id="a call id begins with call"),
        pytest.param(new_ledger_id, LEDGER, id="a ledger id begins with ledger"),
    ],
)
def test_a_fresh_id_says_what_it_is_of(make: Callable[[datetime], str], prefix: str) -> None:
    """Each maker gives its prefix and 26 characters, which its own check accepts."""
    made = make(AT)

    assert re.fullmatch(rf"{prefix}_[{CROCKFORD}]{{26}}", made)
    assert made == require_id("field", made, prefix)


@pytest.mark.parametrize(
    "at",
    [
        pytest.param(EPOCH - timedelta(microseconds=1), id="just before 1970"),
        pytest.param(datetime.min.replace(tzinfo=UTC), id="the year 1"),
    ],
)
def test_a_time_that_does_not_fit_is_refused(at: datetime) -> None:
    """A moment before the epoch has no id, and the error names it."""
    with pytest.raises(InvalidValueError, match=r"^at: ") as refused:
        new_id(RUN, at)

    assert "at" == refused.value.field


def test_the_first_id_wants_utc() -> None:
    """A time in another zone is refused where ids are compared, not converted silently."""
    with pytest.raises(InvalidValueError, match=r"^at: ") as refused:
        first_id(RUN, datetime(2026, 1, 1, tzinfo=timezone(timedelta(hours=1))))

    assert "at" == refused.value.field


GOOD = new_id(RUN, AT)
NOT_RUN_IDS = [
    pytest.param("", id="nothing"),
    pytest.param("run_", id="a prefix alone"),
    pytest.param(GOOD[:-1], id="one character short"),
    pytest.param(f"{GOOD}0", id="one character long"),
    pytest.param(f"{GOOD}\n", id="a newline at the end"),
    pytest.param(f" {GOOD}", id="a space before it"),
    pytest.param(GOOD.upper(), id="upper case"),
    pytest.param(f"{GOOD[:-1]}u", id="a letter that is not in the alphabet"),
    pytest.param(f"{GOOD[:-1]}٣", id="a digit of another script"),
    pytest.param(f"run_8{GOOD[5:]}", id="more than 128 bits"),
    pytest.param(new_id(HANDOFF, AT), id="an id of something else"),
    pytest.param(GOOD.replace("_", "-"), id="another separator"),
    pytest.param(7, id="a number"),
    pytest.param(None, id="nothing at all"),
    pytest.param(GOOD.encode(), id="bytes"),
]


@pytest.mark.parametrize("wrong", NOT_RUN_IDS)
def test_what_is_not_an_id_is_refused_by_name(wrong: str) -> None:
    """Only the one spelling of an id is an id; the error names the field."""
    with pytest.raises(InvalidValueError, match=r"^parent: .* is not a run id$") as refused:
        require_id("parent", wrong, RUN)

    assert "parent" == refused.value.field


@pytest.mark.parametrize("prefix", [RUN, HANDOFF, RELAY], ids="a {} has a stream".format)
def test_streams_are_those_of_runs_handoffs_and_relays(prefix: str) -> None:
    """Three kinds of id name a stream."""
    identifier = new_id(prefix, AT)

    assert identifier == require_stream("stream", identifier)


@pytest.mark.parametrize(
    "prefix",
    sorted({*PREFIXES} - {RUN, HANDOFF, RELAY}),
    ids="a {} has no stream".format,
)
def test_nothing_else_is_a_stream(prefix: str) -> None:
    """Other ids do not name one."""
    with pytest.raises(InvalidValueError, match=r"^stream: ") as refused:
        require_stream("stream", new_id(prefix, AT))

    assert "stream" == refused.value.field


@pytest.mark.parametrize("name", ["editor", "a", "team/editor:2", "x@y.z", "A+b-c_d", "e" * 128], ids="{:.20}".format)
def test_agents_have_plain_names(name: str) -> None:
    """Letters, digits and a little punctuation, at most 128."""
    assert name == require_agent("agent", name)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("", id="nothing"),
        pytest.param("the editor", id="a space"),
        pytest.param("-editor", id="punctuation first"),
        pytest.param("editor\n", id="a newline"),
        pytest.param("\x1b[2Jeditor", id="an escape sequence"),
        pytest.param("éditor", id="a letter outside ASCII"),
        pytest.param("e" * 129, id="129 characters"),
        pytest.param("${jndi:ldap}", id="something to expand"),
    ],
)
def test_a_hostile_agent_name_is_refused(name: str) -> None:
    """A name that could do something where it is shown is not a name."""
    with pytest.raises(InvalidValueError, match=r"^agent: ") as refused:
        require_agent("agent", name)

    assert "agent" == refused.value.field
    assert "\x1b" not in str(refused.value)
    assert len(str(refused.value)) < 200


@pytest.mark.parametrize("name", ["user:ana", "service:nightly", "user:ana@example.org"], ids=str)
def test_principals_say_what_they_are(name: str) -> None:
    """A principal is a kind, a colon and a name."""
    assert name == require_principal("by", name)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("ana", id="no kind"),
        pytest.param("user:", id="no name"),
        pytest.param(":ana", id="an empty kind"),
        pytest.param("User:ana", id="a kind in upper case"),
        pytest.param("user:ana smith", id="a space"),
        pytest.param("user:ana:root", id="a second colon"),
    ],
)
def test_what_is_not_a_principal_is_refused(name: str) -> None:
    """Anything else is refused by name."""
    with pytest.raises(InvalidValueError, match=r"^by: ") as refused:
        require_principal("by", name)

    assert "by" == refused.value.field
