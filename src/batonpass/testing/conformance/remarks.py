"""Remarks: receipts about files and sources, found by the names of those."""

from batonpass.audit.verification.verify import verify_ledger
from batonpass.ledger.position import Working
from batonpass.model.base.ids import AgentId, Digest, ReceiptId, new_call_id, new_token_id
from batonpass.model.base.kinds import AccessRole
from batonpass.model.bodies.body import (
    AlarmAcknowledged,
    AlarmCleared,
    AlarmRaised,
    Body,
    Changed,
    FileEndorsed,
    FindingAcknowledged,
    RunEndorsed,
    RunTainted,
    SessionPruned,
    TokenAdded,
    TokenRevoked,
    ToolCompleted,
    ToolRequested,
)
from batonpass.model.ledger.content import new_content
from batonpass.model.ledger.entry import Touch
from batonpass.model.ledger.remark import Remark, RemarkKind
from batonpass.store.port import LedgerStore
from batonpass.testing.builders import ANA, Scribe, an_alarm
from batonpass.testing.conformance.support import NOW, WithScribe

ONE, OTHER = Digest("ab" * 32), Digest("cd" * 32)
_OF_RELAY = (
    AlarmRaised,
    AlarmAcknowledged,
    AlarmCleared,
    FileEndorsed,
    FindingAcknowledged,
    SessionPruned,
    TokenAdded,
    TokenRevoked,
)
COMMIT = "0123456789abcdef0123456789abcdef01234567"


def remarks(store: LedgerStore, said: RemarkKind | None = None, name: str | None = None) -> list[Remark]:
    """Return the remarks."""
    with store.view() as view:
        return [*view.find_remarks(said, name)]


def left(scribe: Scribe, working: Working, after: Digest, *, tainted: bool = True, commit: str | None = None) -> Remark:
    """Record that a call left a file, and return the remark."""
    source, call = new_call_id(NOW), new_call_id(NOW)
    if tainted:
        scribe.recording.record(working, RunTainted(run=working.run.id, sources=(source,)))
    scribe.recording.record(working, ToolRequested(run=working.run.id, call=call, tool="write"))
    change = new_content("change.1", b'{"path": "notes.md"}', NOW, media_type="application/json")
    done = ToolCompleted(
        run=working.run.id,
        call=call,
        changes=(Changed(change=change.ref.id, after=after),),
        taint=(source,) if tainted else (),
        commits=() if commit is None else (commit,),
    )
    touch = Touch(path="notes.md", content=change.ref.id)
    written = scribe.recording.record(working, done, (change,), touches=(touch,))
    return Remark(said=RemarkKind.TAINTED, name=after, receipt=written.receipt.id)


def recorded(scribe: Scribe, working: Working, body: Body) -> ReceiptId:
    """Record something in a run's stream, or in the relay's own, and return its receipt."""
    if isinstance(body, _OF_RELAY):
        return scribe.recording.note(body).receipt.id
    return scribe.recording.record(working, body).receipt.id


def endorsed(scribe: Scribe) -> Remark:
    """Record that a person endorsed content from outside, and return the remark."""
    root = scribe.start()
    source = new_call_id(NOW)
    recorded(scribe, root, RunTainted(run=root.run.id, sources=(source,)))
    lifted = recorded(scribe, root, RunEndorsed(run=root.run.id, source=source, by=ANA))
    return Remark(said=RemarkKind.ENDORSED, name=source, receipt=lifted)


class Remarks(WithScribe):
    """Remarks are found by their subject, the latest first, however much else is recorded."""

    def test_a_file_of_a_tainted_run_is_found_by_its_bytes(self, scribe: Scribe) -> None:
        """A file is found by its bytes, the latest first; other bytes are not found."""
        root = scribe.start()
        first, other, last = (left(scribe, root, digest) for digest in (ONE, OTHER, ONE))

        assert [last, first] == remarks(scribe.store, RemarkKind.TAINTED, ONE)
        assert [last, other, first] == remarks(scribe.store, RemarkKind.TAINTED)
        assert 3 == len(remarks(scribe.store, name=ONE))  # a name is used only together with a kind
        verify_ledger(scribe.store)

    def test_a_file_of_a_clean_run_is_not(self, scribe: Scribe) -> None:
        """Files of clean runs leave no remark."""
        left(scribe, scribe.start(), ONE, tainted=False)

        assert [] == remarks(scribe.store)

    def test_what_a_person_answers_for_is_found_by_its_name(self, scribe: Scribe) -> None:
        """An endorsed source is found by its id, a file by its digest."""
        source = endorsed(scribe)
        answered = recorded(scribe, scribe.start(), FileEndorsed(holds=(ONE, OTHER), by=ANA))

        assert [source] == remarks(scribe.store, RemarkKind.ENDORSED, source.name)
        assert [Remark(said=RemarkKind.ENDORSED, name=ONE, receipt=answered)] == remarks(
            scribe.store, RemarkKind.ENDORSED, ONE
        )
        assert 3 == len(remarks(scribe.store, RemarkKind.ENDORSED))
        verify_ledger(scribe.store)

    def test_a_commit_is_found_by_its_name(self, scribe: Scribe) -> None:
        """Commits are found whether their run is tainted or not."""
        made = left(scribe, scribe.start(), ONE, tainted=False, commit=COMMIT)

        assert [Remark(said=RemarkKind.COMMITTED, name=COMMIT, receipt=made.receipt)] == remarks(scribe.store)
        verify_ledger(scribe.store)

    def test_an_acknowledged_finding_is_found_by_its_root(self, scribe: Scribe) -> None:
        """Findings of other trees are not read."""
        root, other = scribe.start(), scribe.start()
        seen = [
            recorded(scribe, tree, FindingAcknowledged(root=tree.run.id, finding=12 * "0", code="loop", by=ANA))
            for tree in (root, other)
        ]

        assert [Remark(said=RemarkKind.ACKNOWLEDGED, name=root.run.id, receipt=seen[0])] == remarks(
            scribe.store, RemarkKind.ACKNOWLEDGED, root.run.id
        )
        verify_ledger(scribe.store)

    def test_an_alarm_is_found_by_its_agent(self, scribe: Scribe) -> None:
        """Alarms come with their later state, the latest first; alarms about others are not read."""
        root, key = scribe.start(), 12 * "0"
        one, other = AgentId("editor"), AgentId("drafter")
        raised = [recorded(scribe, root, an_alarm(agent, key)) for agent in (one, other)]
        seen = recorded(scribe, root, AlarmAcknowledged(agent=one, alarm=key, by=ANA))
        over = recorded(scribe, root, AlarmCleared(agent=one, alarm=key))

        found = [remark.receipt for remark in remarks(scribe.store, RemarkKind.ALARM, one)]
        assert [over, seen, raised[0]] == found
        assert 4 == len(remarks(scribe.store, RemarkKind.ALARM))
        verify_ledger(scribe.store)

    def test_what_a_person_took_out_is_found_by_its_root(self, scribe: Scribe) -> None:
        """Items that were taken out of other roots are not read."""
        root, other = scribe.start(), scribe.start()
        taken = recorded(scribe, root, SessionPruned(root=root.run.id, by=ANA, count=1))
        recorded(scribe, other, SessionPruned(root=other.run.id, by=ANA, count=2))

        assert [Remark(said=RemarkKind.PRUNED, name=root.run.id, receipt=taken)] == remarks(
            scribe.store, RemarkKind.PRUNED, root.run.id
        )
        assert 2 == len(remarks(scribe.store, RemarkKind.PRUNED))
        verify_ledger(scribe.store)

    def test_a_token_is_found_by_its_id(self, scribe: Scribe) -> None:
        """With its revocation, the latest first; other tokens are not read."""
        root = scribe.start()
        one, other = new_token_id(NOW), new_token_id(NOW)
        added = [
            recorded(
                scribe,
                root,
                TokenAdded(token=token, secret=ONE, principal=ANA, role=AccessRole.ADMIN, until=NOW, by=ANA),
            )
            for token in (one, other)
        ]
        revoked = recorded(scribe, root, TokenRevoked(token=one, by=ANA))

        assert [revoked, added[0]] == [remark.receipt for remark in remarks(scribe.store, RemarkKind.TOKEN, one)]
        assert 3 == len(remarks(scribe.store, RemarkKind.TOKEN))
        verify_ledger(scribe.store)
