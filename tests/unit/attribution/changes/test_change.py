"""What changed in a file: found between two texts, applied, taken back, kept and read again."""

from datetime import UTC, datetime
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batonpass.attribution.changes.change import (
    FileChange,
    Hunk,
    apply_hunks,
    digest_of,
    lines_of,
    revert_hunks,
)
from batonpass.attribution.changes.change_document import decode_change, encode_change
from batonpass.attribution.changes.line_diff import hunks_between
from batonpass.errors import InvalidValueError
from batonpass.model.base.ids import CallId, RunId

AT: Final = datetime(2026, 1, 2, 12, tzinfo=UTC)
CALL: Final = CallId("call_01kdzgqm800000000000000001")
RUN: Final = RunId("run_01kdzgqm800000000000000001")

TEXTS: Final = st.lists(st.sampled_from(["", "a", "b", "c", "return", "x = 1"]), max_size=30)


@given(old=TEXTS, new=TEXTS)
def test_what_changed_leads_from_one_text_to_the_other_and_back(old: list[str], new: list[str]) -> None:
    """Hunks are exact: applied they give the new text, taken back the old one."""
    hunks = hunks_between(old, new)

    assert (new, old) == (apply_hunks(hunks, old), revert_hunks(hunks, new))


@given(old=TEXTS, new=TEXTS)
def test_a_change_comes_back_as_it_was(old: list[str], new: list[str]) -> None:
    """What is kept says all of it, but who made it and when: the receipt says that."""
    before, after = "\n".join(old).encode(), "\n".join(new).encode()
    change = FileChange(
        call=CALL,
        run=RUN,
        at=AT,
        path="src/invoice.py",
        before=digest_of(before),
        after=digest_of(after),
        hunks=hunks_between(lines_of(before.decode()), lines_of(after.decode())),
        overlapping=("call_other",),
    )

    assert lines_of(after.decode()) == apply_hunks(change.hunks or (), lines_of(before.decode()))
    assert change == decode_change(encode_change(change), call=CALL, run=RUN, at=AT)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b'{"v":1,"path":"a"}', id="a later version"),
        pytest.param(b'{"v":0}', id="no path"),
        pytest.param(b'{"v":0,"path":"a","more":1}', id="an unknown field"),
        pytest.param(b'{"v":0,"path":"a","before":"no digest"}', id="no digest"),
    ],
)
def test_what_is_no_change_is_refused(data: bytes) -> None:
    """A kept document is closed: whatever it does not know, it does not pass on."""
    with pytest.raises(InvalidValueError):
        decode_change(data, call=CALL, run=RUN, at=AT)


def test_a_hunk_has_as_many_lines_as_it_says() -> None:
    """A count that is not that of its lines is refused, before anything is built on it."""
    with pytest.raises(InvalidValueError, match="is 2, but there are 1 lines"):
        Hunk(1, 2, 1, 0, ("a",), ())
