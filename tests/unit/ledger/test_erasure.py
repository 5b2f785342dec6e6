"""Erasing: the words are nowhere any more, and everything else is as it was."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from batonpass.audit.bundle import export_bundle, verify_bundle
from batonpass.audit.verification.verify import verify_ledger
from batonpass.errors import NotFoundError
from batonpass.model.base.ids import ContentId, StreamId
from batonpass.model.bodies.body import ContentErased
from batonpass.model.ledger.content import Place
from batonpass.store.port import LedgerStore, ReceiptQuery
from batonpass.store.sqlite.store import SqliteStore
from batonpass.testing.builders import ANA, Scribe, a_scribe, a_small_tree
from batonpass.wire.receipt_codec import decode_receipt

SECRET = "the-words-that-must-go"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    opened = SqliteStore(tmp_path / ".batonpass" / "ledger.db")
    yield opened
    opened.close()


@pytest.fixture
def scribe(store: SqliteStore) -> Scribe:
    return a_scribe(store)


def contents_of(store: LedgerStore, stream: str) -> list[ContentId]:
    with store.view() as view:
        found = view.find_receipts(ReceiptQuery(stream=StreamId(stream)))
        return [ref.id for stored in found for ref in decode_receipt(stored.payload).content.values()]


def places_of(secret: str, directory: Path) -> list[str]:
    """Return the files below a directory in whose bytes a text stands."""
    return sorted(
        path.relative_to(directory).as_posix()
        for path in directory.rglob("*")
        if path.is_file() and secret.encode() in path.read_bytes()
    )


SIZES = [
    pytest.param(1, id="a few words, in the row"),
    pytest.param(60_000 // len(SECRET), id="many words, in the row"),
    pytest.param(200_000 // len(SECRET), id="too many for a row, in a file"),
]


@pytest.mark.parametrize("times", SIZES)
def test_erased_words_are_nowhere(store: SqliteStore, scribe: Scribe, tmp_path: Path, times: int) -> None:
    """Neither the ledger's file, nor its log, nor a file beside it has a trace of what was erased."""
    lead = scribe.start(SECRET * times)
    for _ in range(3):
        a_small_tree(scribe)
    assert [] != places_of(SECRET, tmp_path)
    scribe.erasure.erase(contents_of(store, lead.run.id), by=ANA, reason="asked to")

    assert [] == places_of(SECRET, tmp_path)


def test_words_that_were_rewritten_in_pages_are_nowhere(store: SqliteStore, scribe: Scribe, tmp_path: Path) -> None:
    """Bodies that were moved, split and freed as the file grew leave nothing in a free page."""
    leads = [scribe.start(SECRET * times) for times in (1, 50, 500, 2500)]
    store._writer.checkpoint()  # type: ignore[union-attr]
    assert "ledger.db" in {Path(place).name for place in places_of(SECRET, tmp_path)}
    for lead in leads:
        scribe.erasure.erase(contents_of(store, lead.run.id), by=ANA, reason="asked to")

    assert [] == places_of(SECRET, tmp_path)
    store.close()
    assert [] == places_of(SECRET, tmp_path)


def test_words_that_somebody_is_reading_go_when_the_reader_goes(
    store: SqliteStore,
    scribe: Scribe,
    tmp_path: Path,
) -> None:
    """An open view may still see what was erased; after it is closed and one more receipt was written, nobody can."""
    lead = scribe.start(SECRET)
    (content,) = contents_of(store, lead.run.id)
    with store.view() as view:
        assert SECRET.encode() == view.get_content(content).body
        scribe.erasure.erase([content], by=ANA, reason="asked to")
        assert SECRET.encode() == view.get_content(content).body
    scribe.call(lead)

    assert [] == places_of(SECRET, tmp_path)


def test_the_chain_still_verifies_and_shows_what_was_erased(store: SqliteStore, scribe: Scribe) -> None:
    """Erasing changes no receipt: evidence counts it as erased, and everything else as before."""
    lead = a_small_tree(scribe)
    before = verify_ledger(store)
    contents = contents_of(store, lead.run.id)
    scribe.erasure.erase(contents, by=ANA, reason="asked to")
    after = verify_ledger(store)

    assert (4, 0, len(contents)) == (len(contents), before.erased, after.erased)
    assert before.contents - len(contents) + 1 == after.contents
    assert before.receipts + 1 == after.receipts


def test_an_erasure_is_a_receipt(store: SqliteStore, scribe: Scribe) -> None:
    """What was erased, by whom and why is recorded in the relay's own stream."""
    lead = scribe.start(SECRET)
    (content,) = contents_of(store, lead.run.id)
    scribe.erasure.erase([content], by=ANA, reason="asked to")
    with store.view() as view:
        *_, last = view.find_receipts(ReceiptQuery(stream=StreamId(scribe.identity.id)))
        receipt = decode_receipt(last.payload)
        reason = view.get_content(receipt.content["reason"].id).body

    assert (ContentErased(contents=(content,), by=ANA), b"asked to") == (receipt.body, reason)


def test_erased_content_reads_as_erased(store: SqliteStore, scribe: Scribe) -> None:
    """A reader finds the content's place empty, with a mark."""
    lead = scribe.start(SECRET)
    (content,) = contents_of(store, lead.run.id)
    scribe.erasure.erase([content], by=ANA, reason="asked to")
    with store.view() as view:
        found = view.get_content(content)

    assert (Place.ERASED, None, None) == (found.place, found.salt, found.body)


def test_erasing_again_changes_nothing_but_is_recorded(store: SqliteStore, scribe: Scribe) -> None:
    """Erasing what is gone is harmless."""
    lead = scribe.start(SECRET)
    contents = contents_of(store, lead.run.id)
    for reason in ("asked to", "asked again"):
        scribe.erasure.erase(contents, by=ANA, reason=reason)

    assert (1, 4) == (verify_ledger(store).erased, verify_ledger(store).receipts)


def test_an_erasure_of_something_unknown_erases_nothing(store: SqliteStore, scribe: Scribe) -> None:
    """One unknown content, and none of the others is touched."""
    lead = scribe.start(SECRET)
    (content,) = contents_of(store, lead.run.id)
    unknown = ContentId("content_" + "0" * 26)

    with pytest.raises(NotFoundError, match=unknown):
        scribe.erasure.erase([content, unknown], by=ANA, reason="asked to")

    assert 0 == verify_ledger(store).erased


def test_even_the_reason_of_an_erasure_can_be_erased(store: SqliteStore, scribe: Scribe, tmp_path: Path) -> None:
    """A reason that repeats the words is content like any other."""
    lead = scribe.start("something")
    scribe.erasure.erase(contents_of(store, lead.run.id), by=ANA, reason=f"because of {SECRET}")
    scribe.erasure.erase(contents_of(store, scribe.identity.id), by=ANA, reason="asked to")

    assert [] == places_of(SECRET, tmp_path)
    assert 2 == verify_ledger(store).erased


def test_a_bundle_of_an_erased_tree_verifies(store: SqliteStore, scribe: Scribe) -> None:
    """What was erased is not exported, and the bundle proves that it was erased."""
    lead = a_small_tree(scribe)
    scribe.erasure.erase(contents_of(store, lead.run.id), by=ANA, reason="asked to")
    lines = list(export_bundle(store, lead.run.id))

    assert 4 == verify_bundle(lines).erased
    assert os.linesep not in "".join(lines)
