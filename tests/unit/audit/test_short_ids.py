"""What people mean by an id, and what was said where it leads."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

import pytest
from msgspec.structs import replace

from batonpass.audit.meant_ids import get_receipt
from batonpass.audit.short_ids import telling_length
from batonpass.errors import EditedError, NotFoundError
from batonpass.ledger.position import Working
from batonpass.model.base.ids import (
    ContentId,
    Digest,
    ReceiptId,
    RunId,
    StreamId,
    new_content_id,
    new_handoff_id,
    new_run_id,
)
from batonpass.model.ledger.content import ContentRef, Place, StoredContent
from batonpass.model.ledger.receipt import StoredReceipt
from batonpass.records.lineage import Tasks, find_ancestors
from batonpass.records.text import Found, Text, read_receipt, read_texts
from batonpass.store.memory import MemoryStore
from batonpass.store.port import LedgerView, ReceiptQuery
from batonpass.testing import Scribe, a_scribe

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
        orphan = replace(editor.run, handoff=new_handoff_id(NOON))
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


def test_a_receipt_id_is_never_an_agents_name(scribe: Scribe) -> None:
    """A whole id of something that is not there leads nowhere, whatever agents there are."""
    with tree(scribe) as (view, _, _), pytest.raises(NotFoundError):
        get_receipt(view, ReceiptId("receipt_01m7ggp9d5esn9rcpxbg36fkjp"))
