"""Searching finds what was signed and what was written, and not what chance wrote."""

from datetime import UTC, datetime

import pytest

from batonpass.audit.grep import Match, SearchPattern, find_matches
from batonpass.audit.meant_ids import find_erasable
from batonpass.errors import InvalidValueError
from batonpass.model.base.ids import AgentId
from batonpass.store.memory import MemoryStore
from batonpass.store.port import ReceiptQuery
from batonpass.testing import Scribe, a_scribe
from batonpass.testing.builders import ANA


@pytest.fixture
def scribe() -> Scribe:
    scribe = a_scribe(MemoryStore())
    lead = scribe.start("Fix invoice rounding\nthen the second round")
    editor = scribe.delegate(lead)
    scribe.call(editor, "write_file", '{"path":"src/invoice.py"}', "wrote it")
    scribe.recording.close(editor)
    handoff = scribe.offer(lead, "scout", "Look around")
    scribe.recording.cancel(handoff, by=ANA, reason="no need")
    return scribe


def search(
    scribe: Scribe, pattern: str, query: ReceiptQuery | None = None, *, ignore_case: bool = False
) -> list[Match]:
    with scribe.store.view() as view:
        return list(find_matches(view, SearchPattern(pattern, ignore_case=ignore_case), query or ReceiptQuery()))


def places(matches: list[Match]) -> list[tuple[str, str, str]]:
    return [(match.kind, match.agent, match.field) for match in matches]


@pytest.mark.parametrize(
    ("expected", "pattern"),
    [
        pytest.param([("tool.requested", "editor", "body.tool")], "write_file", id="a signed code"),
        pytest.param([("handoff.cancelled", "scout", "kind")], r"^handoff\.cancelled$", id="a kind, anchored"),
        pytest.param([("tool.requested", "editor", "content.arguments")], r"src/\w+\.py", id="a content"),
        pytest.param(
            [("handoff.cancelled", "scout", "content.reason")], "no need", id="a reason in a handoff's stream"
        ),
        pytest.param([("relay.enrolled", "relay", "kind")], "enrolled", id="what a relay recorded about itself"),
        pytest.param([], "nothing like that", id="nothing"),
    ],
)
def test_matches_say_where_they_are(scribe: Scribe, expected: list[tuple[str, str, str]], pattern: str) -> None:
    """Every match names the kind, whose receipt it is, and the field."""
    assert expected == places(search(scribe, pattern))


def test_each_line_of_a_text_matches_by_itself(scribe: Scribe) -> None:
    """A text of several lines gives one match for each line that has one, with what stands around it."""
    matches = [match for match in search(scribe, "round") if match.field == "content.intent"]

    assert [(1, "Fix invoice ", "round", "ing"), (2, "then the second ", "round", "")] == [
        (match.line, match.before, match.found, match.after) for match in matches
    ]


def test_case_can_be_ignored(scribe: Scribe) -> None:
    """`-i` does not tell a from A."""
    assert ([], 1) == (search(scribe, "WROTE"), len(search(scribe, "WROTE", ignore_case=True)))


def test_a_query_narrows(scribe: Scribe) -> None:
    """Kind, agent and time leave out what nobody asked for."""
    future = datetime(2100, 1, 1, tzinfo=UTC)

    assert [set(), {"editor"}, {"tool.requested", "tool.completed"}] == [
        {match.kind for match in search(scribe, ".", ReceiptQuery(since=future))},
        {match.agent for match in search(scribe, ".", ReceiptQuery(agent=AgentId("editor")))},
        {match.kind for match in search(scribe, ".", ReceiptQuery(kind="tool"))},
    ]


def test_ids_match_at_their_edges_only(scribe: Scribe) -> None:
    """Random characters spell short words by accident; nobody who searches for words wants those."""
    with scribe.store.view() as view:
        run = next(view.find_runs(agent=AgentId("editor"))).id
    fields = [
        {match.field for match in search(scribe, pattern) if not match.field.startswith("content.")}
        for pattern in (run[-6:], run[:12], run[-6:-2], run[-2:] + "$")
    ]

    assert ["stream" in found for found in fields] == [True, True, False, False]


def test_erased_words_are_not_found(scribe: Scribe) -> None:
    """What was erased cannot be searched."""
    with scribe.store.view() as view:
        _, contents = find_erasable(view, "editor")
    scribe.erasure.erase(contents, by=ANA, reason="privacy")

    assert [] == [match for match in search(scribe, "wrote it") if match.field.startswith("content.")]


def test_bytes_that_are_not_text_can_be_searched(scribe: Scribe) -> None:
    """A result in bytes is searched as far as it is text."""
    lead = scribe.start()
    scribe.recording.finish(lead, scribe.recording.request(lead, "read", "{}"), b"\xff\xfeneedle\x00")

    assert ["needle"] == [match.found for match in search(scribe, "needle")]


def test_a_pattern_that_is_none_is_refused() -> None:
    """What RE2 cannot read is said in its words."""
    with pytest.raises(InvalidValueError, match=r"^pattern: .*missing \)"):
        SearchPattern("(a")
