"""A bundle: one tree of runs with everything needed to verify it on another machine.

The format is JSON lines: a header, then receipts as DSSE envelopes in position order, each followed by its contents. It
also has the streams of the relays, whose receipts enrol the keys. docs/spec/bundle.md describes it.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import msgspec
from msgspec import Struct, field

from batonpass.audit.verification.evidence import Evidence
from batonpass.audit.verification.verify import Progress, Verification, read_path, require_root_key
from batonpass.errors import EditedError, InvalidValueError, LedgerExistsError, VerificationError
from batonpass.model.base.ids import ContentId, KeyId, LedgerId, PublicKey, RunId
from batonpass.model.bodies.body import RunStarted
from batonpass.model.ledger.content import Content, Place, StoredContent
from batonpass.model.ledger.entry import Entry, Touch
from batonpass.model.ledger.receipt import SignedReceipt, StoredReceipt
from batonpass.model.ledger.stream import StreamKind
from batonpass.store.port import LedgerInfo, LedgerStore, LedgerView, ReceiptQuery
from batonpass.wire.canonical import encode_typed, read_base64, write_base64
from batonpass.wire.receipt_codec import decode_envelope, decode_receipt, encode_envelope, refused
from batonpass.wire.versions import BUNDLE_TYPE

_IMPORT_BATCH: Final = 500
# Only contents are long, and they have lines of their own. The sender of a bundle must not choose how much we parse.
_LONGEST_RECEIPT: Final = 64 * 1024 * 1024
_CONTENT: Final = '{"body"'


class _Header(msgspec.Struct, forbid_unknown_fields=True):
    bundle: str
    ledger: str
    root_key: str
    run: str
    contents: bool


class _Receipt(msgspec.Struct, forbid_unknown_fields=True):
    position: int
    dsse: msgspec.Raw


class _Content(msgspec.Struct, forbid_unknown_fields=True):
    content: str
    salt: str
    body: str


_HEADERS: Final = msgspec.json.Decoder(_Header)
_RECEIPTS: Final = msgspec.json.Decoder(_Receipt)
_CONTENTS: Final = msgspec.json.Decoder(_Content)


class Bundle(Struct):
    """A bundle as it was read; nothing in it is verified yet."""

    info: LedgerInfo
    run: RunId
    with_content: bool
    receipts: list[tuple[int, SignedReceipt]] = field(default_factory=list)
    contents: dict[ContentId, StoredContent] = field(default_factory=dict)

    def stored(self) -> Iterator[StoredReceipt]:
        """Yield the receipts as a store would hold them."""
        return (StoredReceipt.of(signed, position) for position, signed in self.receipts)

    def find_contents(self, ids: Sequence[ContentId]) -> Iterator[StoredContent]:
        """Yield those of the given contents that the bundle has."""
        return (self.contents[content] for content in ids if content in self.contents)


def export_bundle(store: LedgerStore, run: RunId, *, with_content: bool = True) -> Iterator[str]:
    """Yield the lines of a bundle of the whole tree that a run belongs to."""
    with store.view() as view:
        info = view.info()
        root = view.get_run(run).root
        yield _line(
            {"bundle": BUNDLE_TYPE, "ledger": info.id, "root_key": info.root_key, "run": root, "contents": with_content}
        )
        for stored in _select(view, root):
            receipt = decode_receipt(stored.payload)
            yield _line({"position": stored.position, "dsse": encode_envelope(stored, receipt)})
            if with_content:
                for content in view.find_contents([ref.id for ref in receipt.content.values()]):
                    if content.salt is not None and content.body is not None:
                        yield _line(
                            {
                                "content": content.id,
                                "salt": write_base64(content.salt),
                                "body": write_base64(content.body),
                            }
                        )


def _select(view: LedgerView, root: RunId) -> Iterator[StoredReceipt]:
    """Yield the receipts of a tree and of all relays, by position."""
    tree = view.find_receipts(ReceiptQuery(root=root, first=1))
    relays = [
        stored
        for stream in view.find_streams()
        if stream.kind is StreamKind.RELAY
        for stored in view.find_receipts(ReceiptQuery(stream=stream.id, first=1))
    ]
    yield from sorted([*tree, *relays], key=lambda stored: stored.position or 0)


def read_bundle(lines: Iterable[str]) -> Bundle:
    """Return a bundle. Raises `VerificationError` with the line that cannot be read."""
    numbered = enumerate(lines, 1)
    bundle: Bundle | None = None
    owner: SignedReceipt | None = None
    for number, line in numbered:
        try:
            if bundle is None:
                bundle = _read_header(line)
            elif line.startswith(_CONTENT):
                _read_content(bundle, owner, line)
            else:
                owner = _read_receipt(bundle, line)
        except msgspec.DecodeError as error:
            raise EditedError(f"the line cannot be read: {refused('line', error)}", stream=f"line {number}") from None
        except (InvalidValueError, ValueError, RecursionError) as error:
            raise EditedError(f"the line cannot be read: {error}", stream=f"line {number}") from None
    if bundle is None:
        raise EditedError("it is empty", stream="bundle")
    return bundle


def verify_bundle(
    lines: Iterable[str], *, root_key: PublicKey | KeyId | None = None, progress: Progress | None = None
) -> Evidence:
    """Verify a bundle by itself. `root_key` pins the key at the root of all trust."""
    return _verify(read_bundle(lines), root_key, progress)


def import_bundle(store: LedgerStore, lines: Iterable[str], *, root_key: PublicKey | KeyId | None = None) -> Evidence:
    """Verify a bundle and import it into an empty store. Raises `LedgerExistsError` if the store has a ledger."""
    bundle = read_bundle(lines)
    evidence = _verify(bundle, root_key, None)
    if not bundle.with_content:
        raise InvalidValueError("bundle", "holds digests only; it can be verified, but not imported")
    if store.founded():
        raise LedgerExistsError(store.url)
    entries = [_entry(bundle, signed) for _, signed in bundle.receipts]
    store.found(bundle.info, entries[0])
    for start in range(1, len(entries), _IMPORT_BATCH):
        store.append(entries[start : start + _IMPORT_BATCH])
    return evidence


def _verify(bundle: Bundle, root_key: PublicKey | KeyId | None, progress: Progress | None) -> Evidence:
    require_root_key(bundle.info, root_key)
    verification = Verification(bundle.info, gapless=False, withheld=not bundle.with_content, progress=progress)
    evidence = verification.run(bundle.stored(), len(bundle.receipts), bundle.find_contents)
    if not any(
        isinstance(signed.receipt.body, RunStarted) and signed.receipt.body.run == bundle.run
        for _, signed in bundle.receipts
    ):
        raise EditedError(f"the run {bundle.run} that the bundle is about is not in it", stream="bundle")
    return evidence


def _entry(bundle: Bundle, signed: SignedReceipt) -> Entry:
    contents = tuple(
        Content(name=name, ref=ref, salt=stored.salt, body=stored.body)
        for name, ref in signed.receipt.content.items()
        if (stored := bundle.contents.get(ref.id)) is not None and stored.salt is not None and stored.body is not None
    )
    touches = tuple(
        Touch(path=path, content=content.ref.id)
        for content in contents
        if content.name.startswith("change.") and (path := read_path(content.body)) is not None
    )
    return Entry(signed=signed, contents=contents, touches=touches)


def _read_header(line: str) -> Bundle:
    header = _HEADERS.decode(_require_short(line))
    if header.bundle != BUNDLE_TYPE:
        raise InvalidValueError("bundle", f"is not {BUNDLE_TYPE}; a newer batonpass may read it")
    info = LedgerInfo(id=LedgerId(header.ledger), root_key=PublicKey(header.root_key))
    return Bundle(info=info, run=RunId(header.run), with_content=header.contents)


def _read_receipt(bundle: Bundle, line: str) -> SignedReceipt:
    read = _RECEIPTS.decode(_require_short(line))
    try:
        signed = decode_envelope(bytes(read.dsse))
    except VerificationError as error:
        raise type(error)(error.problem, stream=f"position {read.position}", field=error.field) from None
    bundle.receipts.append((read.position, signed))
    return signed


def _read_content(bundle: Bundle, owner: SignedReceipt | None, line: str) -> None:
    read = _CONTENTS.decode(line)
    if owner is None:
        raise InvalidValueError("content", "comes before any receipt")
    content = ContentId(read.content)
    if content in bundle.contents or all(content != ref.id for ref in owner.receipt.content.values()):
        raise InvalidValueError("content", f"{content} is not a content of the receipt before it")
    bundle.contents[content] = StoredContent(
        id=content,
        receipt=owner.receipt.id,
        place=Place.ROW,
        salt=read_base64("salt", read.salt),
        body=read_base64("body", read.body),
    )


def _require_short(line: str) -> str:
    if len(line) > _LONGEST_RECEIPT:
        raise InvalidValueError("line", f"has {len(line):,} characters; at most {_LONGEST_RECEIPT:,} are read")
    return line


def _line(value: dict[str, object]) -> str:
    # The first key tells lines apart; canonical order makes it bundle, dsse or body.
    return encode_typed(value).decode()
