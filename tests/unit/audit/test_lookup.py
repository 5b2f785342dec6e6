"""What people mean by an id, and what was said where it leads."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from batonpass.audit.lookup import (
    Found,
    Tasks,
    Text,
    ending,
    find_ancestors,
    find_calls,
    find_erasable,
    get_key,
    get_receipt,
    get_run,
    read_receipt,
    read_texts,
    telling_length,
)
from batonpass.errors import AmbiguousIdError, EditedError, NotFoundError
from batonpass.ledger.standing import Working
from batonpass.model.bodies import Kind
from batonpass.model.content import ContentRef, Place, StoredContent
from batonpass.model.ids import (
    ContentId,
    Digest,
    KeyId,
    PublicKey,
    ReceiptId,
    RelayId,
    RunId,
    StreamId,
    new_content_id,
    new_run_id,
)
from batonpass.model.key import Key, KeyRole, KeyStatus
from batonpass.model.receipt import StoredReceipt
from batonpass.store.memory import MemoryStore
from batonpass.store.port import LedgerView, ReceiptQuery
from batonpass.testing import Scribe, a_scribe
from batonpass.testing.builders import ANA

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)


@pytest.fixture
def scribe() -> Scribe:
    return a_scribe(MemoryStore())


@contextmanager
def tree(scribe: Scribe) -> Iterator[tuple[LedgerView, Working, Working]]:
    """Record a lead and an editor; give them, and a view of the ledger."""
    lead = scribe.start("Fix invoice rounding\nplease")
    editor = scribe.delegate(lead)
    scribe.call(editor)
    scribe.recording.close(editor, report="done")
    with scribe.store.view() as view:
        yield view, lead, editor


def receipts_of(view: LedgerView, run: RunId) -> list[StoredReceipt]:
    return list(view.find_receipts(ReceiptQuery(stream=StreamId(run))))


def test_a_run_is_found_by_what_people_type(scribe: Scribe) -> None:
    """A whole id, its last characters, what we print before them, `last`, and an agent's name all lead to a run."""
    with tree(scribe) as (view, _, editor):
        run = editor.run.id
        given = [run, run[-8:], run[-8:].upper(), f"…{run[-8:]}", f" {run[-8:]} ", "last", "editor"]

        assert [run] * len(given) == [get_run(view, each).id for each in given]


@pytest.mark.parametrize("given", ["", "…", "nobody", "zzzzzzzzzzzz", "run_01m7ggp9d5esn9rcpxbg36fkjp"])
def test_a_run_that_is_not_there_is_said(scribe: Scribe, given: str) -> None:
    """What leads nowhere is not found, and nothing else is guessed."""
    with tree(scribe) as (view, _, _), pytest.raises(NotFoundError) as caught:
        get_run(view, given)

    assert ("run", given) == (caught.value.what, caught.value.given)


def test_an_empty_ledger_has_no_last_run(scribe: Scribe) -> None:
    """`last` is not an error of ours where nothing has run yet."""
    with scribe.store.view() as view, pytest.raises(NotFoundError):
        get_run(view, "last")


def test_several_runs_of_an_agent_are_listed_with_enough_to_choose(scribe: Scribe) -> None:
    """The newest come first, each with its ending, agent, time, state and task."""
    lead = scribe.start()
    older = scribe.delegate(lead, "editor", "First\nand more")
    newer = scribe.delegate(lead, "editor", "Second")
    with scribe.store.view() as view, pytest.raises(AmbiguousIdError) as caught:
        get_run(view, "editor")

    first, second = caught.value.candidates
    assert [ending(newer.run.id), ending(older.run.id)] == [first.split(" · ")[0], second.split(" · ")[0]]
    assert ["editor", "open", '"First"'] == [second.split(" · ")[place] for place in (1, 3, 4)]


def test_more_runs_than_a_person_reads_are_not_listed(scribe: Scribe) -> None:
    """Five are shown, and that there are others."""
    for _ in range(7):
        scribe.start()
    with scribe.store.view() as view, pytest.raises(AmbiguousIdError) as caught:
        get_run(view, "lead")

    assert (6, "… and older ones") == (len(caught.value.candidates), caught.value.candidates[-1])


def test_a_name_that_is_also_an_ending_is_ambiguous(scribe: Scribe) -> None:
    """An agent may be called like the end of somebody's id; then both are meant."""
    lead = scribe.start()
    named = scribe.start(agent=lead.run.id[-5:])
    with scribe.store.view() as view, pytest.raises(AmbiguousIdError) as caught:
        get_run(view, lead.run.id[-5:])

    assert {named.run.id[-4:], lead.run.id[-4:]} == {line.split(" · ")[0] for line in caught.value.candidates}


def test_a_receipt_is_found_by_what_people_type(scribe: Scribe) -> None:
    """A whole id, its last characters and `last` lead to a receipt."""
    with tree(scribe) as (view, _, editor):
        newest = receipts_of(view, editor.run.id)[-1].id

        assert [newest] * 3 == [get_receipt(view, given).id for given in (newest, newest[-8:], "last")]


def test_an_agents_receipts_are_listed(scribe: Scribe) -> None:
    """An agent's name is never one receipt of several; the newest are shown with their kinds."""
    with tree(scribe) as (view, _, _), pytest.raises(AmbiguousIdError) as caught:
        get_receipt(view, "editor")

    kinds = [line.split(" · ")[1] for line in caught.value.candidates]
    assert ["handoff.completed", "tool.completed", "tool.requested", "handoff.accepted"] == kinds


def test_an_agent_with_one_receipt_means_that_one(scribe: Scribe) -> None:
    """Where there is nothing to choose, nothing is asked."""
    scribe.start(agent="scout")
    with scribe.store.view() as view:
        assert "run.started" == get_receipt(view, "scout").kind


def test_a_receipt_that_is_not_there_is_said(scribe: Scribe) -> None:
    """An unknown ending leads to no receipt."""
    with scribe.store.view() as view, pytest.raises(NotFoundError):
        get_receipt(view, "zzzzzzzzzzzz")


def test_receipts_of_no_run_can_be_listed(scribe: Scribe) -> None:
    """Receipts about handoffs and relays are named by their stream."""
    lead = scribe.start()
    # More receipts than there are characters to end with, so that two share one.
    for _ in range(33):
        scribe.recording.cancel(scribe.offer(lead), by=ANA, reason="no")
    with scribe.store.view() as view:
        cancelled = list(view.find_receipts(ReceiptQuery(kind=Kind.HANDOFF_CANCELLED)))
        (shared, _), *_ = Counter(stored.id[-1] for stored in cancelled).most_common(1)
        with pytest.raises(AmbiguousIdError) as caught:
            get_receipt(view, shared)

    owners = {stored.id: f"handoff {stored.stream[-4:]}" for stored in cancelled}
    listed = [line.split(" · ") for line in caught.value.candidates if "handoff.cancelled" in line]
    assert [] == [parts for parts in listed if parts[-1] not in owners.values()]


def test_what_can_be_erased_is_found_by_its_kind(scribe: Scribe) -> None:
    """A content is itself, a receipt its contents, a run the contents of its stream."""
    with tree(scribe) as (view, _, editor):
        requested = receipts_of(view, editor.run.id)[1]
        arguments = read_receipt(requested).content["arguments"].id
        everything = tuple(
            ref.id for stored in receipts_of(view, editor.run.id) for ref in read_receipt(stored).content.values()
        )

        assert (arguments, (arguments,)) == find_erasable(view, arguments[-9:])
        assert (requested.id, (arguments,)) == find_erasable(view, requested.id)
        assert (editor.run.id, everything) == find_erasable(view, "editor")
        assert (editor.run.id, everything) == find_erasable(view, "last")


def test_nothing_is_erased_by_guessing(scribe: Scribe) -> None:
    """An ending that several contents, receipts or runs share is refused; so is one that nothing has."""
    for _ in range(11):
        scribe.start()  # three ids each: more than there are characters that they could end with
    with tree(scribe) as (view, _, _):
        ids = [found for prefix in ("run", "receipt", "content") for found in view.find_ids(prefix, "")]
        shared = next(one[-1] for one in ids if sum(other.endswith(one[-1]) for other in ids) > 1)
        with pytest.raises(AmbiguousIdError):
            find_erasable(view, shared)
        with pytest.raises(NotFoundError):
            find_erasable(view, "zzzzzzzzzzzz")


A = Key(
    id=KeyId("aa" * 32),
    role=KeyRole.RELAY,
    public_key=PublicKey("11" * 32),
    relay=RelayId("relay_01m7ggp9d5esn9rcpxbg36fkjp"),
    status=KeyStatus.RETIRED,
)
B = replace(A, id=KeyId("bb" * 32), status=KeyStatus.ACTIVE)
C = replace(A, id=KeyId("cc" * 31 + "bb"), relay=RelayId("relay_01m7ggp9d5esn9rcpxbg36fkxx"), status=KeyStatus.ACTIVE)
ROOT = replace(A, id=KeyId("dd" * 32), role=KeyRole.ROOT, relay=None, status=KeyStatus.ACTIVE)


@pytest.mark.parametrize(
    ("expected", "given"),
    [
        pytest.param(A, "aaaa", id="by how it begins or ends"),
        pytest.param(B, "bbbbbb", id="by more of its end"),
        pytest.param(C, "cccc", id="by how it begins"),
        pytest.param(B, "fkjp", id="by its relay, the active one of several"),
        pytest.param(C, "fkxx", id="by its relay"),
        pytest.param(ROOT, "dd", id="the root key too"),
    ],
)
def test_a_key_is_found(expected: Key, given: str) -> None:
    """A key is known by either end of its id, or by its relay."""
    assert expected == get_key([ROOT, A, B, C], given)


def test_a_key_that_is_not_clear_is_refused() -> None:
    """Nobody's key is revoked by accident."""
    with pytest.raises(AmbiguousIdError) as caught:
        get_key([ROOT, A, B, C], "bb")
    with pytest.raises(NotFoundError):
        get_key([ROOT, A, B, C], "")

    assert ("bbbbbbbbbbbbbbbb · relay fkjp · active", 2) == (caught.value.candidates[0], len(caught.value.candidates))


def test_a_relay_whose_keys_are_all_over_is_still_found() -> None:
    """Without an active key, the only old one is meant."""
    assert A == get_key([A], "fkjp")


def test_endings_tell_ids_apart() -> None:
    """As many characters are shown as it takes, four at least."""
    assert (4, 6, 4) == (telling_length(["x1234", "y5678"]), telling_length(["a12345", "b12345"]), telling_length([]))


def test_bytes_that_cannot_be_read_are_a_finding(scribe: Scribe) -> None:
    """A damaged receipt is named by its place, and is not a mistake of who asks."""
    with tree(scribe) as (view, lead, _):
        stored = replace(receipts_of(view, lead.run.id)[0], payload=b"{}")
        with pytest.raises(EditedError) as caught:
            read_receipt(stored)

    assert (lead.run.id, 1) == (caught.value.stream, caught.value.seq)


def test_texts_are_kept_erased_or_missing(scribe: Scribe) -> None:
    """A content says what became of it."""
    with tree(scribe) as (view, lead, _):
        receipt = read_receipt(receipts_of(view, lead.run.id)[0])
        intent = receipt.content["intent"]
        body = {Found.KEPT: b"words", Found.ERASED: None, Found.MISSING: None}
        places = {Found.KEPT: Place.ROW, Found.ERASED: Place.ERASED, Found.MISSING: Place.FILE}

        for state, place in places.items():
            kept = StoredContent(id=intent.id, receipt=None, place=place, salt=None, body=body[state])
            found = read_texts(OneContent(kept), receipt)["intent"]  # type: ignore[arg-type]
            assert (state, body[state]) == (found.found, found.body)
        assert Found.MISSING == read_texts(OneContent(None), receipt)["intent"].found  # type: ignore[arg-type]


class OneContent:
    """A view in which there is at most one content."""

    def __init__(self, content: StoredContent | None) -> None:
        self._content = content

    def find_contents(self, _: list[ContentId]) -> list[StoredContent]:
        """Return it."""
        return [] if self._content is None else [self._content]


def a_text(body: bytes | None, found: Found = Found.KEPT) -> Text:
    ref = ContentRef(id=new_content_id(NOON), digest=Digest("0" * 64), size=len(body or b""), media_type="text/plain")
    return Text(name="task", ref=ref, found=found, body=body)


@pytest.mark.parametrize(
    ("expected", "text"),
    [
        pytest.param('"do it"', a_text(b"\n  do it  \nlater"), id="the first line with something in it"),
        pytest.param('""', a_text(b" \n"), id="nothing in it"),
        pytest.param(f'"{"a" * 59}…"', a_text(b"a" * 61), id="no more than fits into a list"),
        pytest.param("3 bytes of text/plain", a_text(b"\xff\xfe\x00"), id="not text"),
        pytest.param("erased", a_text(None, Found.ERASED), id="erased"),
        pytest.param("missing", a_text(None, Found.MISSING), id="missing"),
    ],
)
def test_a_text_has_a_first_line(expected: str, text: Text) -> None:
    """A list shows one line of a text, or what became of it."""
    assert expected == text.first_line


def test_a_run_knows_what_it_was_asked(scribe: Scribe) -> None:
    """A root has its principal's intent, any other run the task that it was offered."""
    with tree(scribe) as (view, lead, editor):
        tasks = Tasks(view)

        assert ['"Fix invoice rounding"', '"Make total() round half-even"'] == [
            tasks.first_line(lead.run),
            tasks.first_line(editor.run),
        ]


def test_a_run_whose_task_is_lost_is_said(scribe: Scribe) -> None:
    """A run whose opening or offer is not there has an unknown task, and does not break a list."""
    with tree(scribe) as (view, lead, editor):
        orphan = replace(editor.run, parent=new_run_id(NOON))
        nobody = replace(lead.run, id=new_run_id(NOON))

        assert ["unknown", "unknown"] == [Tasks(view).first_line(run) for run in (orphan, nobody)]


def test_ancestors_lead_to_the_root(scribe: Scribe) -> None:
    """Whoever asks for whom a run works gets every run above it, the nearest first."""
    lead = scribe.start()
    editor = scribe.delegate(lead)
    scout = scribe.delegate(editor, "scout")
    with scribe.store.view() as view:
        assert [editor.run.id, lead.run.id] == [run.id for run in find_ancestors(view, scout.run)]


def test_ancestors_in_a_circle_are_a_finding(scribe: Scribe) -> None:
    """A tampered ledger does not make us walk forever."""
    with tree(scribe) as (view, _, editor), pytest.raises(EditedError):
        list(find_ancestors(view, replace(editor.run, parent=editor.run.id)))


def test_calls_have_outcomes(scribe: Scribe) -> None:
    """A call completed, failed with a code, or nobody knows."""
    lead = scribe.start()
    recording = scribe.recording
    recording.finish(lead, recording.request(lead, "read", "{}"), "ok")
    recording.fail_call(lead, recording.request(lead, "mail", "{}"), "smtp.timeout", "no answer")
    recording.request(lead, "pay", "{}")
    with scribe.store.view() as view:
        calls = list(find_calls(map(read_receipt, receipts_of(view, lead.run.id))))

    assert [
        ("read", Kind.TOOL_COMPLETED, None, True),
        ("mail", Kind.TOOL_FAILED, "smtp.timeout", True),
        ("pay", None, None, False),
    ] == [(call.tool, call.outcome, call.error, call.ended_at is not None) for call in calls]


def test_a_receipt_id_is_never_an_agents_name(scribe: Scribe) -> None:
    """A whole id of something that is not there leads nowhere, whatever agents there are."""
    with tree(scribe) as (view, _, _), pytest.raises(NotFoundError):
        get_receipt(view, ReceiptId("receipt_01m7ggp9d5esn9rcpxbg36fkjp"))
