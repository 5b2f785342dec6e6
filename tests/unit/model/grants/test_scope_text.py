"""Permits on one line, and grants in TOML: whatever is written is read as the same, and what is wrong is named."""

import tomllib
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from batonpass.errors import InvalidValueError, UnknownFieldError
from batonpass.model.base.ids import AgentId
from batonpass.model.grants.grant import Grant
from batonpass.model.grants.grant_toml import read_grant, write_grants
from batonpass.model.grants.limits import Limits
from batonpass.model.grants.permit import Permit
from batonpass.model.grants.scope_text import read_limits, read_permit, read_scope
from batonpass.policy.document import parse_document
from batonpass.policy.grant_tables import grants_of
from tests.unit.model.scopes import any_limits, any_permits, any_scopes, any_times

grants = st.builds(
    Grant,
    may=any_scopes,
    may_delegate=any_scopes,
    limits=any_limits,
    until=any_times,
    max_depth=st.none() | st.integers(0, 9),
)


@given(any_permits())
def test_a_permit_comes_back_from_its_line(permit: Permit) -> None:
    """Whatever a permit holds, its line is read as the same permit, and has nothing in it that cannot be seen."""
    assert permit == read_permit(permit.text)
    assert permit.text == read_permit(permit.text).text
    assert permit.text.isprintable()


@given(any_limits)
def test_limits_come_back_from_their_text(limits: Limits) -> None:
    """Limits alone are spelled like those of a permit."""
    assert limits == read_limits(str(limits))


@settings(max_examples=30)
@given(st.dictionaries(st.sampled_from(["editor", "team/lead", "a.b:c@1"]).map(AgentId), grants, max_size=3))
def test_grants_come_back_from_toml(written: dict[AgentId, Grant]) -> None:
    """Whatever a grant holds, its table is read as the same grant."""
    assert written == grants_of(parse_document(write_grants(written).encode()))


def test_a_line_reads_as_it_is_meant() -> None:
    """Every kind of condition, limits and an end, on one line, in the one order."""
    line = (
        'write:src/** where amount from 0.5 to 100, kind in ["a", 2, null, true], mail matches "*@example.org", '
        'path under src, who is "ana"; at most 20 calls, 5.5 spend, 60 seconds; until 2026-12-01T00:00:00Z'
    )

    loosely = (
        'write:./src//**   where who is "ana",path under ./src/ ,  mail matches "*@example.org", '
        'kind in [ 2,"a",true,null ], amount >= 0.50, amount <= 100.0 '
        ";at most 60 seconds, 5.50 spend, 20 calls; until 2026-12-01T00:00:00+00:00"
    )

    assert [line, line] == [read_permit(line).text, read_permit(loosely).text]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        pytest.param("", "is empty|lacks a pattern", id="nothing"),
        pytest.param("write", "has no ':'", id="no resource"),
        pytest.param("write:a where", "lacks the name of an argument", id="no condition"),
        pytest.param("write:a where p", "lacks what it has to be", id="no operator"),
        pytest.param("write:a where p like x", "where one of is, in, under", id="an unknown operator"),
        pytest.param("write:a where p is", "lacks a value", id="no value"),
        pytest.param("write:a where p is x", "a text in quotation marks", id="a bare text"),
        pytest.param("write:a where p is 1.5", "a text in quotation marks", id="a decimal is a range"),
        pytest.param("write:a where p is 01", "a text in quotation marks", id="a zero in front"),
        pytest.param("write:a where p in []", "lacks a value", id="no values"),
        pytest.param("write:a where p in [1", "lacks ']'", id="an open bracket"),
        pytest.param("write:a where p under ../x", "has '..'", id="a place that leads up"),
        pytest.param('write:a where p matches "abc"', "has no", id="a form without a star"),
        pytest.param("write:a where p <= 1e3", "is not a decimal", id="an exponent"),
        pytest.param("write:a where p <= NaN", "is not a decimal", id="no number"),
        pytest.param("write:a where p from 2 to 1", "no number is at least", id="an empty range"),
        pytest.param('write:a where p is "\\ud800"', "cannot be seen", id="half a character"),
        pytest.param('write:a where p is "\u202e"', "cannot be seen", id="a mark of direction"),
        pytest.param('write:a where p is "x', "not closed", id="an open quotation mark"),
        pytest.param('write:a where p is "\\x"', "as JSON spells it", id="an unknown escape"),
        pytest.param("write:a where 1p is 1", "the name of an argument", id="no name"),
        pytest.param("write:a; at most", "lacks an amount", id="no amount"),
        pytest.param("write:a; at most 5 apples", "where one of calls, spend", id="an unknown unit"),
        pytest.param("write:a; at most 5 calls, 6 calls", "each once", id="a unit twice"),
        pytest.param("write:a; at most -1 calls", "whole number from 0", id="less than nothing"),
        pytest.param("write:a; at most -1 spend", "less than nothing", id="less money than none"),
        pytest.param("write:a; until now", "is not a time", id="no time"),
        pytest.param("write:a; until 2026-12-01T00:00:00+01:00", "is not a time in UTC", id="another zone"),
        pytest.param("write:a; until 2026-12-01T00:00:00Z; at most 1 calls", "nothing more", id="another order"),
        pytest.param("write:a write:b", "nothing more", id="two patterns"),
    ],
)
def test_what_is_wrong_with_a_line_is_named(line: str, problem: str) -> None:
    """A line that is not understood is refused with what was expected, and never half read."""
    with pytest.raises(InvalidValueError, match=problem):
        read_permit(line)


@pytest.mark.parametrize(
    ("table", "field"),
    [
        pytest.param("might = []", "grant.editor.might", id="another field"),
        pytest.param('may = "write:a"', "grant.editor.may", id="one text for a list"),
        pytest.param("may = [1]", "grant.editor.permits", id="a number for a permit"),
        pytest.param("limits = 5", "grant.editor.limits", id="a number for limits"),
        pytest.param('until = "soon"', "grant.editor.until", id="a text for a time"),
        pytest.param("until = 2026-12-01T00:00:00", "grant.editor.until", id="a time of nowhere"),
        pytest.param("max_depth = -1", "grant.editor.max_depth", id="less than no depth"),
    ],
)
def test_what_is_wrong_with_a_table_is_named(table: str, field: str) -> None:
    """A grant that is passed over protects nobody: the first thing that is not understood is named."""
    with pytest.raises(InvalidValueError) as caught:
        read_grant(tomllib.loads(table), "grant.editor")

    assert field == caught.value.field


def test_a_grant_that_is_no_table_is_named() -> None:
    """A number where a table is wanted is not passed over."""
    with pytest.raises(InvalidValueError) as caught:
        read_grant(1, "grant.editor")

    assert "grant.editor" == caught.value.field


def test_an_unknown_field_is_called_unknown() -> None:
    """Inputs are closed, and say so."""
    with pytest.raises(UnknownFieldError):
        read_grant({"mai": []}, "grant.editor")


def test_notes_stand_behind_permits() -> None:
    """A comment tells a person why a permit is there, and changes nothing."""
    grant = Grant(may=read_scope(["write:a", 'write:b where p is "it\'s"']), until=datetime(2026, 12, 1, tzinfo=UTC))
    text = write_grants({AgentId("editor"): grant}, notes={"write:a": "14 calls"})

    assert '    "write:a",  # 14 calls\n' in text
    assert {"editor": grant} == grants_of(parse_document(text.encode()))
