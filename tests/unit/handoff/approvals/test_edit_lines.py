"""Edits as lines: what goes, what comes, and what stays between."""

import pytest

from batonpass.handoff.approvals.edit_lines import edit_lines


@pytest.mark.parametrize(
    ("arguments", "lines"),
    [
        pytest.param(
            {"path": "a.py", "old_string": "one\ntwo\nthree", "new_string": "one\n2\nthree"},
            ["  one", "- two", "+ 2", "  three"],
            id="an editor's",
        ),
        pytest.param({"oldString": "a", "newString": ""}, ["- a", "+ "], id="taken out"),
        pytest.param({"edits": [{"old_text": "a", "new_text": "b"}] * 2}, ["- a", "+ b"] * 2, id="several"),
        pytest.param({"old_string": 7, "new_string": "b"}, [], id="no text"),
        pytest.param({"edits": "all"}, [], id="edits that are none"),
        pytest.param(["old_string"], [], id="no names"),
        pytest.param(None, [], id="nothing"),
    ],
)
def test_an_edit_is_shown_line_by_line(arguments: object, lines: list[str]) -> None:
    """Whatever names an agent's editor has for it."""
    assert lines == [*edit_lines(arguments)]


def test_a_large_edit_is_uncut() -> None:
    """All that goes stands before all that comes."""
    found = [*edit_lines({"before": "a\n" * 3000, "after": "b\n" * 3000})]

    assert (3000, 3000) == (sum(one.startswith("-") for one in found), sum(one.startswith("+") for one in found))
