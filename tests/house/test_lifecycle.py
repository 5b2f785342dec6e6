"""The lifecycle chart in the specification equals the table in the code."""

import re
from collections import defaultdict
from typing import TypeAlias

from tests.house.tree import document, fenced, module

Chart: TypeAlias = dict[str, set[str]]

_NOTE = re.compile(r"\([^)]*\)")
_COLUMN = re.compile(r"\s{3,}")


def chart_in(block: str) -> Chart:
    """Return from where one can go where, as `held | asked → offered | ready (note)` draws it."""
    drawn: Chart = defaultdict(set)
    for line in block.splitlines():
        for arrow in _COLUMN.split(_NOTE.sub("", line).strip()):
            sources, _, targets = arrow.partition("→")
            for source in sources.split("|"):
                drawn[source.strip()].update(target.strip() for target in targets.split("|"))
    return dict(drawn)


def table() -> Chart:
    """Return from where one can go where, over all events and carriers."""
    reachable: Chart = defaultdict(set)
    for (state, _, _), target in module("batonpass.model.base.lifecycle").TRANSITIONS.items():
        reachable[state.value].add(target.value)
    return dict(reachable)


def test_the_chart_equals_the_table() -> None:
    """docs/spec/lifecycle.md draws every step that TRANSITIONS has, and no other."""
    expected = table()
    charts = [
        block
        for block in fenced(document("spec/lifecycle.md"))
        if all("→" in line for line in block.split("\n") if line)
    ]

    assert [expected] == [chart_in(block) for block in charts]


def test_a_chart_is_read_in_columns_and_with_notes() -> None:
    """Several arrows may stand in one line, several sources before one arrow, and a note in brackets after a target."""
    block = "a → b | c (lapse)     b | c → a\n"

    assert {"a": {"b", "c"}, "b": {"a"}, "c": {"a"}} == chart_in(block)
