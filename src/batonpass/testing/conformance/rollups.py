"""Roll-ups: kept beside the receipts, moved on by one process at a time, and found without reading receipts."""

from datetime import timedelta

from msgspec.structs import replace

from batonpass.model.base.ids import AgentId, ContentId, new_content_id, new_handoff_id
from batonpass.model.ledger.rollup import RolledDay, RolledHandoff, RolledQuery, RollupMark
from batonpass.store.port import LedgerStore
from batonpass.testing.builders import Scribe
from batonpass.testing.conformance.support import NOW, WithScribe

START, FIRST, SECOND = RollupMark(), RollupMark(version=1, position=3), RollupMark(version=1, position=9)


def a_closed_handoff(
    agent: str = "editor", *, after: int = 0, kind: str = "edit", body: bytes = b"{}"
) -> RolledHandoff:
    """Return the roll-up of a handoff that was closed some hours after the beginning."""
    at = NOW + timedelta(hours=after)
    return RolledHandoff(
        handoff=new_handoff_id(at),
        agent=AgentId(agent),
        task_kind=kind,
        config="",
        closed_at=at,
        contents=(new_content_id(at),),
        body=body,
    )


def a_day(day: str, body: bytes = b"{}", *, agent: str = "editor") -> RolledDay:
    """Return the sum of a day."""
    return RolledDay(agent=AgentId(agent), task_kind="edit", config="", day=day, body=body)


def found(store: LedgerStore, query: RolledQuery) -> list[RolledHandoff]:
    """Return the closed handoffs that a query selects."""
    with store.view() as view:
        return [*view.find_rolled(query)]


class RollingUp(WithScribe):
    """A store keeps roll-ups as they are given, and lets only one of two processes move them on."""

    def test_the_mark_is_moved_by_one_of_two(self, scribe: Scribe) -> None:
        """Of two that begin at the same mark only the first writes; the other leaves no row."""
        one, other = a_closed_handoff(), a_closed_handoff()

        first = scribe.store.roll(START, FIRST, [one], [])
        second = scribe.store.roll(START, SECOND, [other], [a_day("2026-01-02")])

        with scribe.store.view() as view:
            days = [*view.find_rolled_days("2026-01-01", "2026-01-31")]
            assert (True, False, FIRST, [one], []) == (
                first,
                second,
                view.rolled(),
                [*view.find_rolled(RolledQuery())],
                days,
            )

    def test_closed_handoffs_are_found_by_agent_kind_time_and_bytes(self, scribe: Scribe) -> None:
        """Each part of a query narrows it; the latest come first, unless the oldest are asked for."""
        early, late = a_closed_handoff(after=1, body=b'{"a": 3}'), a_closed_handoff(after=5, body=b'{"b": 3}')
        other = a_closed_handoff("drafter", after=3, kind="draft")
        scribe.store.roll(START, FIRST, [early, late, other], [])

        answers = {
            "all": found(scribe.store, RolledQuery()),
            "agent": found(scribe.store, RolledQuery(agent=AgentId("editor"))),
            "oldest": found(scribe.store, RolledQuery(agent=AgentId("editor"), oldest_first=True, limit=1)),
            "kind": found(scribe.store, RolledQuery(task_kind="draft")),
            "both": found(scribe.store, RolledQuery(agent=AgentId("editor"), task_kind="draft")),
            "since": found(scribe.store, RolledQuery(since=late.closed_at)),
            "until": found(scribe.store, RolledQuery(until=late.closed_at, oldest_first=True)),
            "bytes": found(scribe.store, RolledQuery(holding=b'"a"')),
        }

        assert answers == {
            "all": [late, other, early],
            "agent": [late, early],
            "oldest": [early],
            "kind": [other],
            "both": [],
            "since": [late],
            "until": [early, other],
            "bytes": [early],
        }

    def test_what_has_words_of_a_content_is_found_and_made_again(self, scribe: Scribe) -> None:
        """A handoff is found by a content that it read. Another roll-up of it takes its place."""
        one, other = a_closed_handoff(body=b"secret"), a_closed_handoff()
        scribe.store.roll(START, FIRST, [one, other], [])
        with scribe.store.view() as view:
            told = [*view.find_rolled_with([one.contents[0], ContentId("content_unknown")])]
        again = replace(one, body=b"erased", agent=AgentId("drafter"))

        scribe.store.roll(FIRST, SECOND, [again], [])

        with scribe.store.view() as view:
            left = {*view.find_rolled_handoffs([one.handoff, other.handoff])}
        assert ([one], {again, other}) == (told, left)

    def test_days_are_replaced_and_removed(self, scribe: Scribe) -> None:
        """A day is found between two days, replaced by a later sum, and gone without a body."""
        store = scribe.store
        other = a_day("2026-01-02", agent="z")
        store.roll(START, FIRST, [], [a_day("2026-01-02", b"1"), a_day("2026-01-03", b"1"), other])
        store.roll(FIRST, SECOND, [], [a_day("2026-01-02", b"2"), a_day("2026-01-03", b"")])

        with store.view() as view:
            days = [*view.find_rolled_days("2026-01-02", "2026-01-03")]
            of_one = [*view.find_rolled_days("2026-01-01", "2026-01-02", agent=AgentId("z"))]
            got, none = view.get_rolled_day(a_day("2026-01-02")), view.get_rolled_day(a_day("2026-01-03"))

        assert ([a_day("2026-01-02", b"2"), other], [other]) == (days, of_one)
        assert (a_day("2026-01-02", b"2"), a_day("2026-01-03", b"")) == (got, none)

    def test_another_version_begins_anew(self, scribe: Scribe) -> None:
        """If the computation changes, nothing of the earlier one is left."""
        scribe.store.roll(START, FIRST, [a_closed_handoff()], [a_day("2026-01-02")])
        newer = RollupMark(version=2, position=1)

        scribe.store.roll(FIRST, newer, [], [])

        with scribe.store.view() as view:
            left = ([*view.find_rolled(RolledQuery())], [*view.find_rolled_days("2026-01-01", "2026-12-31")])
            assert (newer, ([], [])) == (view.rolled(), left)

    def test_a_ledger_begins_without_roll_ups(self, scribe: Scribe) -> None:
        """Nothing is rolled up by recording."""
        scribe.start()

        with scribe.store.view() as view:
            assert (START, []) == (view.rolled(), [*view.find_rolled(RolledQuery())])
