"""Sessions and cached results: which trees belong together, and which result a key finds."""

from datetime import datetime, timedelta

import pytest
from msgspec.structs import replace

from batonpass.audit.verification.verify import verify_ledger
from batonpass.errors import DuplicateReceiptError, StaleHeadError
from batonpass.ledger.draft import Draft
from batonpass.ledger.ledger import sign_receipt
from batonpass.ledger.position import Working
from batonpass.model.base.ids import AgentId, Digest, SessionId, StreamId
from batonpass.model.bodies.body import ToolCompleted
from batonpass.model.ledger.content import new_content
from batonpass.model.ledger.entry import Entry
from batonpass.model.ledger.run import Cached
from batonpass.store.port import LedgerStore
from batonpass.testing.builders import ANA, Scribe
from batonpass.testing.conformance.support import NOW, WithScribe, head_of

KEY = Digest("ab" * 32)
OTHER = Digest("cd" * 32)
SESSION = SessionId("session_" + "0" * 22 + "abcd")
SOON = NOW + timedelta(hours=1)


def a_keeping_call(scribe: Scribe, working: Working, key: Digest = KEY, until: datetime = SOON) -> Entry:
    """Request a call, and return its signed outcome with a cached result, not yet appended."""
    call = scribe.recording.request(working, "pull", "{}")
    signer, _ = scribe.run_keys.get(working.run.id)
    contents = (new_content("result", "ok", NOW),)
    draft = Draft(
        stream=StreamId(working.run.id),
        body=ToolCompleted(run=working.run.id, call=call, cache=key, fresh_until=until),
        root=working.run.root,
        cosigner=signer,
        contents=contents,
    )
    return Entry(signed=sign_receipt(draft, head_of(scribe.store, working), scribe.identity, NOW), contents=contents)


def kept(scribe: Scribe, working: Working, key: Digest = KEY, until: datetime = SOON) -> Cached:
    """Record a call with a cached result, and return the row that its key must find."""
    entry = a_keeping_call(scribe, working, key, until)
    scribe.store.append([entry])
    assert entry.change.cached is not None
    return entry.change.cached


def find(store: LedgerStore, key: Digest | None = None) -> list[Cached]:
    """Return the cached results under a key."""
    with store.view() as view:
        return list(view.find_cached(key))


class Keeping(WithScribe):
    """Sessions and cached results: which trees belong together, and which result a key finds."""

    def test_a_session_comes_latest_first(self, store: LedgerStore, scribe: Scribe) -> None:
        """A session finds its trees with all their runs, the latest first, and can be filtered like any list."""
        roots = [
            scribe.recording.start("again", agent=agent, by=ANA, session=SESSION, series="nightly").run
            for agent in ("lead", "boss")
        ]
        scribe.start("another")
        with store.view() as view:
            found = list(view.find_runs(session=SESSION))
            narrowed = list(view.find_runs(session=SESSION, agent=AgentId("boss"), series="nightly", root=roots[1].id))
            nothing = list(view.find_runs(session=SESSION, parent=roots[0].id))

        assert sorted(roots, key=lambda run: run.id, reverse=True) == found
        assert ([roots[1]], []) == (narrowed, nothing)
        assert {SESSION} == {run.session for run in found}

    def test_a_session_is_found_by_its_ending_once(self, store: LedgerStore, scribe: Scribe) -> None:
        """A session is found once, however many trees it has."""
        for _ in range(2):
            scribe.recording.start("again", agent="lead", by=ANA, session=SESSION)
        with store.view() as view:
            found = [list(view.find_ids("session", ending)) for ending in ("abcd", "", "zzzz")]

        assert [[SESSION], [SESSION], []] == found

    def test_a_result_is_found_under_its_key(self, store: LedgerStore, scribe: Scribe) -> None:
        """A key finds its results, the latest first, and no others; calls without a cached result are not found."""
        lead = scribe.start()
        scribe.call(lead)
        one, other, last = (kept(scribe, lead, key) for key in (KEY, OTHER, KEY))

        assert sorted([one, last], key=lambda cached: cached.call, reverse=True) == find(store, KEY)
        assert {one, other, last} == set(find(store))

    def test_what_is_stale_is_found_as_well(self, store: LedgerStore, scribe: Scribe) -> None:
        """The store returns expired results too: the reader decides with its own clock."""
        stale = kept(scribe, scribe.start(), until=NOW - timedelta(days=400))

        assert [stale] == find(store, KEY)

    def test_a_refused_append_keeps_nothing(self, store: LedgerStore, scribe: Scribe) -> None:
        """The row is written with its receipt, or not at all."""
        lead = scribe.start()
        entry = a_keeping_call(scribe, lead)
        scribe.call(lead)

        with pytest.raises(StaleHeadError):
            store.append([entry])
        assert [] == find(store)

    def test_appending_it_again_is_a_success(self, store: LedgerStore, scribe: Scribe) -> None:
        """Appending the same entry again succeeds, as after a commit with an unknown outcome."""
        entry = a_keeping_call(scribe, scribe.start())
        for _ in range(2):
            store.append([entry])

        assert [entry.change.cached] == find(store)
        assert verify_ledger(store).receipts

    def test_a_call_keeps_one_result(self, store: LedgerStore, scribe: Scribe) -> None:
        """A second result of the same call is refused, because it would be ambiguous."""
        lead = scribe.start()
        first = kept(scribe, lead)
        entry = a_keeping_call(scribe, lead)
        signed = entry.signed
        body = signed.receipt.body
        assert isinstance(body, ToolCompleted)
        signer, _ = scribe.run_keys.get(lead.run.id)
        draft = Draft(
            stream=StreamId(lead.run.id),
            body=replace(body, call=first.call),
            root=lead.run.root,
            cosigner=signer,
        )

        with pytest.raises(DuplicateReceiptError):
            store.append([Entry(signed=sign_receipt(draft, head_of(store, lead), scribe.identity, NOW), contents=())])
        assert [first] == find(store)
