"""Bodies in files of their own: durable before their receipt, gone if it is refused, missed if they are lost."""

import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from batonpass.audit.verification.verify import verify_ledger
from batonpass.errors import ContentMismatchError, DuplicateReceiptError, StaleHeadError
from batonpass.ledger.position import Working
from batonpass.model.base.ids import ContentId
from batonpass.model.ledger.content import Content, Place, new_content
from batonpass.model.ledger.entry import Entry
from batonpass.store.sqlite.store import SqliteStore
from batonpass.testing.builders import Scribe, a_scribe
from batonpass.testing.clock import NOON
from batonpass.testing.conformance.support import an_entry, head_of

LARGE = b"kept" * 50_000
OTHER = b"other" * 50_000


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    opened = SqliteStore(tmp_path / ".batonpass" / "ledger.db")
    yield opened
    opened.close()


@pytest.fixture
def scribe(store: SqliteStore) -> Scribe:
    return a_scribe(store)


def files_of(store: SqliteStore) -> list[Path]:
    """Return the files in which bodies are kept."""
    return sorted(store.home.glob("blobs/*/content_*"))


def a_large_content(scribe: Scribe, lead: Working) -> Path:
    """Record a call with a large argument, and return the file in which it is."""
    scribe.recording.request(lead, "write_file", LARGE.decode())
    (file,) = files_of(scribe.store)  # type: ignore[arg-type]
    return file


def an_entry_with(scribe: Scribe, working: Working, content: Content) -> Entry:
    """Return a signed call that brings a content."""
    return replace(an_entry(scribe, working, head_of(scribe.store, working)), contents=(content,))


def test_a_large_body_has_a_private_file(store: SqliteStore, scribe: Scribe) -> None:
    """What does not fit into a row is in a file that only its owner can read, named by its content."""
    file = a_large_content(scribe, scribe.start())
    with store.view() as view:
        content = view.get_content(ContentId(file.name))

    assert (Place.FILE, True) == (content.place, content.body == LARGE == file.read_bytes())
    assert (0o600, 0o700) == (stat.S_IMODE(file.stat().st_mode), stat.S_IMODE(file.parent.stat().st_mode))
    assert 3 == verify_ledger(store).receipts


def test_a_refused_body_leaves_no_file(store: SqliteStore, scribe: Scribe) -> None:
    """If the receipt is refused, the file that was written for it is gone."""
    lead = scribe.start()
    late = an_entry_with(scribe, lead, new_content("arguments", LARGE, NOON))
    scribe.call(lead)

    with pytest.raises(StaleHeadError):
        store.append([late])

    assert ([], set()) == (files_of(store), store.lost_files())


def test_a_refused_body_does_not_replace_the_one_that_is_there(store: SqliteStore, scribe: Scribe) -> None:
    """Somebody brings other words under an id that is taken: they are refused, and the first are as they were."""
    first, second = scribe.start(), scribe.start()
    kept = new_content("arguments", LARGE, NOON)
    clash = replace(new_content("arguments", OTHER, NOON), ref=kept.ref)
    store.append([an_entry_with(scribe, first, kept)])

    with pytest.raises(DuplicateReceiptError):
        store.append([an_entry_with(scribe, second, clash)])

    (file,) = files_of(store)
    assert (len(LARGE), LARGE[:8]) == (file.stat().st_size, file.read_bytes()[:8])


def test_a_repeated_append_keeps_the_file(store: SqliteStore, scribe: Scribe) -> None:
    """A writer that never heard the answer asks again with the same bytes: it is there once, and whole."""
    entry = an_entry_with(scribe, scribe.start(), new_content("arguments", LARGE, NOON))
    store.append([entry])
    store.append([entry])

    assert [LARGE[:8]] == [file.read_bytes()[:8] for file in files_of(store)]


@pytest.mark.parametrize("body", [None, b"", OTHER, LARGE[:-1]], ids=["lost", "emptied", "replaced", "cut"])
def test_a_file_that_is_not_what_it_was_is_found(store: SqliteStore, scribe: Scribe, body: bytes | None) -> None:
    """Whatever happens to a file, verification names the receipt whose words they were."""
    lead = scribe.start()
    file = a_large_content(scribe, lead)
    file.unlink() if body is None else file.write_bytes(body)

    with pytest.raises(ContentMismatchError) as found:
        verify_ledger(store)

    assert (lead.run.id, 2, "content.arguments") == (found.value.stream, found.value.seq, found.value.field)


def test_a_file_that_no_receipt_names_is_listed(store: SqliteStore, scribe: Scribe) -> None:
    """A crash between the file and its commit leaves a file that can be found and is in nobody's way."""
    file = a_large_content(scribe, scribe.start())
    orphan = file.with_name(new_content("x", "", NOON).ref.id)
    orphan.write_bytes(b"half a bo")

    assert {orphan.name} == store.lost_files()
    assert 3 == verify_ledger(store).receipts
