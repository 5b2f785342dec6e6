"""Bundles: one tree with all that it takes to verify it, on a machine that has nothing else."""

import json
from base64 import b64decode, b64encode
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from batonpass.audit.bundle import export_bundle, import_bundle, read_bundle, verify_bundle
from batonpass.audit.verification.evidence import Evidence
from batonpass.audit.verification.verify import verify_ledger
from batonpass.errors import (
    BatonpassError,
    ChainError,
    ContentMismatchError,
    EditedError,
    InvalidValueError,
    LedgerExistsError,
    NewerVersionError,
    NotFoundError,
    PositionError,
    SignatureError,
    UnknownKeyError,
    UnlinkedError,
    VerificationError,
)
from batonpass.model.base.ids import RunId
from batonpass.relay import Relay
from batonpass.signing.ed25519 import Ed25519Signer
from batonpass.store.memory import MemoryStore
from batonpass.testing.builders import ANA, Scribe, a_scribe, a_small_tree
from tests.unit.model.examples import an_id

Lines = list[str]


class Exported:
    """A ledger with two trees, and the bundle of one."""

    def __init__(self, *, with_content: bool = True) -> None:
        self.store = MemoryStore()
        self.scribe: Scribe = a_scribe(self.store)
        self.lead = a_small_tree(self.scribe, calls=1)
        self.other = a_small_tree(self.scribe, calls=1)
        self.lines: Lines = list(export_bundle(self.store, self.lead.run.id, with_content=with_content))

    def index(self, key: str, number: int = 0) -> int:
        """Return the line of a sort: a header, a receipt or a content, by the key that only it has."""
        return [index for index, line in enumerate(self.lines) if key in json.loads(line)][number]

    def edit(self, key: str, number: int, change: Callable[[dict[str, Any]], object]) -> None:
        """Change a line of a sort, and write it as we would."""
        index = self.index(key, number)
        line = json.loads(self.lines[index])
        change(line)
        self.lines[index] = json.dumps(line, sort_keys=True, separators=(",", ":"))

    def edit_payload(self, number: int, old: bytes, new: bytes) -> None:
        """Change the signed bytes of a receipt."""

        def change(line: dict[str, Any]) -> None:
            payload = b64decode(line["dsse"]["payload"])
            assert old in payload
            line["dsse"]["payload"] = b64encode(payload.replace(old, new)).decode()

        self.edit("dsse", number, change)


def test_a_bundle_verifies_by_itself() -> None:
    """The lines alone prove the tree: its runs, handoffs, contents and the relay that recorded them."""
    exported = Exported()
    whole = verify_ledger(exported.store)
    evidence = verify_bundle(exported.lines)

    assert (whole.ledger, whole.root_key) == (evidence.ledger, evidence.root_key)
    assert (13, 3, 2, 10, 0, 1) == (
        evidence.receipts,
        evidence.runs,
        evidence.handoffs,
        evidence.contents,
        evidence.withheld,
        evidence.relays,
    )


def test_a_bundle_holds_one_tree_and_the_relays() -> None:
    """Nothing of another tree is given away."""
    exported = Exported()
    streams = {signed.receipt.stream for _, signed in read_bundle(exported.lines).receipts}

    assert exported.other.run.id not in "".join(exported.lines)
    assert {exported.scribe.identity.id, exported.lead.run.id} <= streams
    assert 4 == len(streams)


def test_any_run_of_a_tree_names_the_tree() -> None:
    """A bundle of a child is the bundle of the whole tree it belongs to."""
    exported = Exported()
    with exported.store.view() as view:
        child = next(view.find_runs(parent=exported.lead.run.id))

    assert exported.lines == list(export_bundle(exported.store, child.id))


def test_an_unknown_run_cannot_be_exported() -> None:
    """A run that is not there is named."""
    unknown = RunId(an_id("run", 9))

    with pytest.raises(NotFoundError, match=unknown):
        list(export_bundle(Exported().store, unknown))


def test_a_bundle_of_digests_proves_without_words() -> None:
    """Without content everything but the words is proven, and the words are counted as withheld."""
    exported = Exported(with_content=False)
    evidence = verify_bundle(exported.lines)

    assert (13, 0, 10) == (evidence.receipts, evidence.contents, evidence.withheld)
    assert b64encode(b"Fix invoice").decode()[:-1] not in "".join(exported.lines)


def test_lines_may_end_like_lines() -> None:
    """A bundle read from a file, with its newlines, is the same bundle."""
    exported = Exported()

    assert verify_bundle(exported.lines) == verify_bundle(f"{line}\n" for line in exported.lines)


def test_a_pinned_root_key_must_be_the_bundles() -> None:
    """Whoever knows the root key from elsewhere is not satisfied by a bundle of another."""
    exported = Exported()

    assert 13 == verify_bundle(exported.lines, root_key=exported.scribe.root.public_key).receipts
    with pytest.raises(UnknownKeyError) as found:
        verify_bundle(exported.lines, root_key=Ed25519Signer.generate().public_key)
    assert "root_key" == found.value.field


def swap_lines(exported: Exported, first: int, second: int) -> None:
    """Exchange two receipts, each with the content that follows it."""
    one, other = (exported.index("dsse", number) for number in (first, second))
    lines = exported.lines
    lines[one : one + 2], lines[other : other + 2] = lines[other : other + 2], lines[one : one + 2]


def header(**changed: object) -> Callable[[Exported], None]:
    return lambda exported: exported.edit("bundle", 0, lambda line: line.update(changed))


TAMPERED: dict[str, tuple[Callable[[Exported], object], type[VerificationError]]] = {
    "a header of another format": (header(bundle="urn:batonpass:bundle:v1"), EditedError),
    "a header with another ledger": (header(ledger=an_id("ledger", 9)), UnlinkedError),
    "a header with another root key": (header(root_key=Ed25519Signer(b"z" * 32).public_key), UnlinkedError),
    "a header with a root key that is none": (header(root_key="zz"), EditedError),
    "a header with another run": (header(run=an_id("run", 9)), EditedError),
    "a header with an unknown field": (header(extra=1), EditedError),
    "a header that says no contents": (header(contents="no"), EditedError),
    "no header": (lambda e: e.lines.pop(0), EditedError),
    "no lines": (lambda e: e.lines.clear(), EditedError),
    "a line that is not JSON": (lambda e: e.lines.insert(3, "rubbish"), EditedError),
    "an empty line": (lambda e: e.lines.insert(3, ""), EditedError),
    "a lone surrogate": (lambda e: e.lines.insert(3, '{"body":"\ud800"}'), EditedError),
    "a receipt with an unknown field": (lambda e: e.edit("dsse", 2, lambda line: line.update(x=1)), EditedError),
    "a receipt without an envelope": (lambda e: e.edit("dsse", 2, lambda line: line.update(dsse=1)), EditedError),
    "a flipped bit in a payload": (lambda e: e.edit_payload(4, b"write_file", b"write_filf"), SignatureError),
    "a payload that says other things": (lambda e: e.edit_payload(3, b'"attempt":1', b'"attempt":7'), UnlinkedError),
    "a payload of a newer version": (lambda e: e.edit_payload(3, b"receipt:v0", b"receipt:v1"), NewerVersionError),
    "a flipped bit in a signature": (
        lambda e: e.edit(
            "dsse", 4, lambda line: line["dsse"]["signatures"][0].update(sig=b64encode(bytes(64)).decode())
        ),
        SignatureError,
    ),
    "a receipt that was removed": (lambda e: e.lines.pop(e.index("dsse", 4)), VerificationError),
    "a receipt that was doubled": (
        lambda e: e.lines.insert(e.index("dsse", 5), e.lines[e.index("dsse", 4)]),
        PositionError,
    ),
    "two receipts that changed places": (lambda e: swap_lines(e, 4, 5), VerificationError),
    "another position": (lambda e: e.edit("dsse", 4, lambda line: line.update(position=1)), PositionError),
    "the enrolment removed": (lambda e: e.lines.pop(e.index("dsse", 0)), UnknownKeyError),
    "a content with other words": (
        lambda e: e.edit("content", 1, lambda line: line.update(body=b64encode(b"other").decode())),
        ContentMismatchError,
    ),
    "a content with another salt": (
        lambda e: e.edit("content", 1, lambda line: line.update(salt=b64encode(bytes(16)).decode())),
        ContentMismatchError,
    ),
    "a content that is not base64": (lambda e: e.edit("content", 1, lambda line: line.update(body="!")), EditedError),
    "a content of another name": (
        lambda e: e.edit("content", 1, lambda line: line.update(content=an_id("content", 9))),
        EditedError,
    ),
    "a content that was removed": (lambda e: e.lines.pop(e.index("content", 1)), ContentMismatchError),
    "a content that was doubled": (
        lambda e: e.lines.insert(e.index("content", 1), e.lines[e.index("content", 1)]),
        EditedError,
    ),
    "a content before any receipt": (
        lambda e: e.lines.insert(1, e.lines.pop(e.index("content", 0))),
        EditedError,
    ),
    "the tree removed": (lambda e: e.lines.__delitem__(slice(2, None)), EditedError),
    "a child's tail cut": (lambda e: e.lines.__delitem__(slice(e.index("dsse", 6), e.index("dsse", 7))), UnlinkedError),
}


@pytest.mark.parametrize(("act", "error"), TAMPERED.values(), ids=TAMPERED.keys())
def test_a_bundle_that_was_tampered_with_is_found(
    act: Callable[[Exported], object],
    error: type[VerificationError],
) -> None:
    """Whatever line of whatever sort was changed, moved, removed or added, it is found; no other error comes out."""
    exported = Exported()
    act(exported)

    with pytest.raises(error):
        verify_bundle(exported.lines)


def test_a_line_that_cannot_be_read_is_named_by_its_number() -> None:
    """Whoever looks for the damage knows where to look."""
    exported = Exported()
    exported.lines.insert(3, "rubbish")

    with pytest.raises(EditedError, match=r"^line 4: the line cannot be read") as found:
        verify_bundle(exported.lines)

    assert "line 4" == found.value.stream


def test_every_bit_of_a_bundle_counts() -> None:
    """Flip one bit anywhere in the text of a bundle: it is found, or the text means the same as before."""
    exported = Exported()
    text = "\n".join(exported.lines).encode()
    before = evidence_or_error(exported.lines)
    unnoticed = []
    for place in range(0, len(text), 41):
        changed = bytearray(text)
        changed[place] ^= 1 << place % 7
        lines = bytes(changed).decode(errors="replace").split("\n")
        after = evidence_or_error(lines)
        if after == before and read_bundle(lines) != read_bundle(exported.lines):
            unnoticed.append(place)

    assert isinstance(before, Evidence)
    assert [] == unnoticed


def evidence_or_error(lines: Lines) -> Evidence | str:
    """Return what a verification says; only our own errors are an answer."""
    try:
        return verify_bundle(lines)
    except BatonpassError as error:
        return error.code


def test_a_bundle_can_be_kept_and_verified_again() -> None:
    """Imported into an empty store, the tree is a ledger of its own, which verifies and exports the same proof."""
    exported = Exported()
    store = MemoryStore()
    evidence = import_bundle(store, exported.lines)
    kept = verify_ledger(store, root_key=exported.scribe.root.public_key)

    assert evidence == kept == verify_bundle(exported.lines)
    assert verify_bundle(export_bundle(store, exported.lead.run.id)) == evidence


def test_an_imported_ledger_takes_nothing_from_strangers() -> None:
    """A copy is for reading: whoever has not the relay's key cannot go on with it."""
    exported = Exported()
    store = MemoryStore()
    import_bundle(store, exported.lines)
    with store.view() as view:
        assert exported.scribe.identity.signer.key in {key.id for key in view.find_keys()}

    with pytest.raises(BatonpassError, match="not enrolled"):
        a_scribe(store).start()


def test_an_erased_tree_can_be_kept() -> None:
    """What was erased before the export is erased in the copy."""
    exported = Exported()
    with exported.store.view() as view:
        contents = list(view.find_content_ids())[:2]
    exported.scribe.erasure.erase(contents, by=ANA, reason="asked to")
    store = MemoryStore()
    lines = list(export_bundle(exported.store, exported.lead.run.id))

    assert 2 == import_bundle(store, lines).erased == verify_ledger(store).erased


def test_a_ledger_is_not_overwritten_by_a_bundle() -> None:
    """A store that holds a ledger refuses, and is as it was."""
    exported = Exported()
    scribe = a_scribe(store := MemoryStore())
    scribe.start()

    with pytest.raises(LedgerExistsError, match="memory:"):
        import_bundle(store, exported.lines)

    assert 2 == verify_ledger(store).receipts


def test_a_bundle_of_digests_cannot_be_kept() -> None:
    """Without words a copy would look as if they had been lost; it is refused before anything is written."""
    store = MemoryStore()

    with pytest.raises(InvalidValueError, match="digests only"):
        import_bundle(store, Exported(with_content=False).lines)

    assert not store.founded()


def test_a_tampered_bundle_is_not_kept() -> None:
    """What does not verify is not written."""
    exported = Exported()
    exported.edit_payload(4, b"write_file", b"write_filf")
    store = MemoryStore()

    with pytest.raises((SignatureError, ChainError)):
        import_bundle(store, exported.lines)

    assert not store.founded()


def test_what_was_found_by_its_path_is_found_in_the_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An imported tree answers for files as the original does, and verifies."""
    monkeypatch.chdir(tmp_path)
    original, copy = Relay.open("memory:"), Relay.open("memory:")
    with original.start("Write a file", by="user:ana") as lead:
        lead.call(lambda name: Path(name).write_text("one\n", encoding="utf-8"), "notes.txt")
    copy.admin.import_(original.admin.export(lead.id))
    with copy.store.view() as view:
        found = [touched.path for touched in view.find_touches("notes.txt")]

    assert (["notes.txt"], original.verify().receipts) == (found, copy.verify().receipts)
