"""Checks: what was good before passes at once, and nothing passes for it."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from batonpass.errors import InvalidValueError
from batonpass.model.base.checks import Form, require_codes, require_text, require_utc
from batonpass.model.base.ids import RUN, require_id
from tests.unit.model.examples import AT, PARENT


class Impostor(str):
    """A text that says it equals whatever it is compared with."""

    __slots__ = ("other",)
    other: str

    def __eq__(self, _: object) -> bool:
        return True

    def __hash__(self) -> int:
        return hash(self.other)


class Agreeable:
    """Equals everything, and holds nothing."""

    def __eq__(self, _: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 0

    def __bool__(self) -> bool:
        return False


def impostor(text: str, other: str) -> Impostor:
    """Return a text that is taken for another one by sets and dicts."""
    made = Impostor(text)
    made.other = other
    return made


def test_what_matched_once_matches_again() -> None:
    """Both times the value itself comes back."""
    form = Form("[a-z]+", "letters")

    assert ["abc", "abc"] == [form.require("name", "abc") for _ in range(2)]


def test_nothing_passes_for_what_matched_before() -> None:
    """A text of a class of its own is looked at, whatever it says that it equals."""
    form = Form("[a-z]+", "letters")
    form.require("name", "abc")
    require_id("run", PARENT, RUN)

    with pytest.raises(InvalidValueError, match="is not letters"):
        form.require("name", impostor("1; DROP", "abc"))
    with pytest.raises(InvalidValueError, match="is not a run id"):
        require_id("run", impostor("../../etc", PARENT), RUN)


def test_an_impostor_that_matches_is_not_remembered() -> None:
    """Else the next text that it claims to equal would pass."""
    form = Form("[a-z]+", "letters")
    form.require("name", impostor("abc", "1; DROP"))

    assert set() == form.known


def test_what_one_form_knows_another_does_not() -> None:
    """Each remembers for itself: a name that is good here may be bad there."""
    Form("[a-z]+", "letters").require("name", "abc")

    with pytest.raises(InvalidValueError, match="is not digits"):
        Form("[0-9]+", "digits").require("name", "abc")


def test_a_form_remembers_only_so_much() -> None:
    """Neither too many texts nor long ones: whoever sends ever new names fills no memory."""
    form = Form("[a-z0-9]+", "letters or digits")
    for number in range(25_000):
        form.require("name", f"a{number}")
    form.require("name", "b" * 1000)

    assert len(form.known) <= 10_000
    assert "b" * 1000 not in form.known


@pytest.mark.parametrize("given", [Agreeable(), [], "", {}, None], ids=["agreeable", "list", "text", "dict", "none"])
def test_only_a_tuple_is_an_empty_tuple(given: Any) -> None:  # noqa: ANN401 - any of these
    """What is empty passes at once, and what only looks like it is refused."""
    require_codes("flags", ())

    with pytest.raises(InvalidValueError, match="is not tuple"):
        require_codes("flags", given)


@pytest.mark.parametrize(
    "given",
    [AT, AT.astimezone(timezone(timedelta(0), "Zulu")), AT.astimezone(ZoneInfo("Etc/UTC"))],
    ids=["ours", "another name", "another library"],
)
def test_a_moment_in_utc_passes_however_it_is_named(given: datetime) -> None:
    """What counts is the distance from UTC."""
    assert given is require_utc("at", given)


@pytest.mark.parametrize(
    "given",
    [AT.replace(tzinfo=None), AT.astimezone(timezone(timedelta(hours=1))), AT.isoformat(), None],
    ids=["naive", "elsewhere", "text", "none"],
)
def test_any_other_moment_is_refused(given: Any) -> None:  # noqa: ANN401 - what is wrong
    """A time without a zone, or of another one, is not the time that was meant."""
    with pytest.raises(InvalidValueError, match="is not a time in UTC"):
        require_utc("at", given)


def test_a_class_of_its_own_is_asked_for_its_offset() -> None:
    """A moment that carries our zone and shifts it all the same is not taken for ours."""

    class Shifted(datetime):
        def utcoffset(self) -> timedelta:
            return timedelta(hours=5)

    with pytest.raises(InvalidValueError, match="is not a time in UTC"):
        require_utc("at", Shifted(2026, 1, 2, tzinfo=UTC))


@pytest.mark.parametrize("given", ["", " ", "\n\t", "\u2003\u00a0"], ids=["nothing", "space", "lines", "wide"])
def test_text_of_blanks_is_empty(given: str) -> None:
    """Whatever kind of blank."""
    with pytest.raises(InvalidValueError, match="is empty"):
        require_text("task", given)

    assert given == require_text("task", given, empty=True)


def test_text_that_is_no_unicode_is_refused() -> None:
    """Half a character cannot be signed."""
    with pytest.raises(InvalidValueError, match="is not Unicode text"):
        require_text("task", "half \ud800")


def test_ids_that_come_once_are_not_remembered() -> None:
    """A receipt's id is in one receipt: keeping the last ten thousand of them would only take room."""
    form = Form("[a-z]+", "letters", once=True)
    form.require("name", "abc")

    assert set() == form.known
    with pytest.raises(InvalidValueError, match="is not letters"):
        form.require("name", "123")
