"""Receipts as bytes: written one way, read with patience for what a newer version adds."""

import json
import re
from collections.abc import Iterator
from enum import Enum
from hashlib import sha256
from itertools import chain
from typing import Any

import msgspec
import pytest
import rfc8785
from hypothesis import given, reject
from hypothesis import strategies as st
from msgspec import NODEFAULT
from msgspec.structs import fields, replace

from batonpass.errors import BatonpassError, InvalidValueError, NewerVersionError
from batonpass.model.base.ids import StreamId
from batonpass.model.base.kinds import Mode
from batonpass.model.base.label import Label, SourceType
from batonpass.model.base.lifecycle import Carrier, State
from batonpass.model.bodies.body import HandoffInitiated, Kind, UnknownBody
from batonpass.model.ledger.receipt import Receipt
from batonpass.wire.canonical import digest
from batonpass.wire.receipt_codec import decode_receipt, encode_receipt, known_kind, signing_bytes, told_in_full
from batonpass.wire.versions import PREDICATE_TYPE, STATEMENT_TYPE
from tests.unit.model.examples import BARE, BODIES, DIGEST, PARENT, REF, a_receipt, names_of
from tests.unit.wire.oracle import written
from tests.unit.wire.signed import receipt_of

OURS = (InvalidValueError, NewerVersionError)
STARTED = receipt_of(Kind.RUN_STARTED)
PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._:/@+-]{0,127}")


def edited(**changed: Any) -> bytes:  # noqa: ANN401 - any JSON
    """Return a payload with parts of its statement replaced; a part that is None is left out."""
    statement = json.loads(encode_receipt(STARTED)) | changed
    return json.dumps({name: value for name, value in statement.items() if value is not None}).encode()


def predicate_with(**changed: Any) -> bytes:  # noqa: ANN401 - any JSON
    """Return a payload with parts of its predicate replaced, or left out."""
    predicate = json.loads(encode_receipt(STARTED))["predicate"] | changed
    return edited(predicate={name: value for name, value in predicate.items() if value is not None})


def texts_in(value: object) -> Iterator[str]:
    """Yield every text in a JSON value, keys included."""
    match value:
        case str():
            yield value
        case list():
            yield from chain.from_iterable(map(texts_in, value))
        case dict():
            yield from value
            yield from chain.from_iterable(map(texts_in, value.values()))


def nested_in(body: dict[str, Any]) -> Iterator[object]:
    """Yield what stands in the lists of a body, and the objects in its fields."""
    for value in body.values():
        yield from value if isinstance(value, list) else [value]


@pytest.mark.parametrize("kind", Kind, ids="a {} receipt".format)
def test_a_receipt_comes_back_as_it_was(kind: Kind) -> None:
    """What is encoded is decoded to the same value."""
    receipt = receipt_of(kind)

    assert receipt == decode_receipt(encode_receipt(receipt))


@pytest.mark.parametrize("kind", Kind, ids="a bare {} receipt".format)
def test_what_has_its_default_is_not_written(kind: Kind) -> None:
    """A body has exactly the fields that say something particular; what is left out comes back as its default."""
    receipt = a_receipt(BARE[kind])
    payload = encode_receipt(receipt)
    needed = {field.name for field in fields(BARE[kind]) if field.default is NODEFAULT}

    assert needed == json.loads(payload)["predicate"]["body"].keys()
    assert receipt == decode_receipt(payload)
    assert set(names_of(BODIES[kind])) == json.loads(encode_receipt(receipt_of(kind)))["predicate"]["body"].keys()


@given(st.data())
def test_every_receipt_has_the_bytes_that_its_parts_give(data: st.DataObject) -> None:
    """Whichever parts a body says, the bytes are those of a writer that goes through them one by one."""
    kind = data.draw(st.sampled_from(Kind))
    whole, bare = BODIES[kind], BARE[kind]
    chosen = data.draw(st.sets(st.sampled_from(names_of(whole))))
    try:
        body = replace(bare, **{name: getattr(whole, name) for name in chosen})
    except InvalidValueError:
        reject()  # some parts come together or not at all
    optional: dict[str, Any] = data.draw(
        st.fixed_dictionaries({}, optional={"session": st.none(), "content": st.just({})})
    )
    receipt = a_receipt(body, seq=data.draw(st.integers(1, 2**53 - 1)), **optional)

    assert written(receipt) == encode_receipt(receipt)


def exists_once(value: object) -> bool:
    """Return whether Python has no second object that equals a value: then being it and equalling it are one."""
    return value in (None, ()) or isinstance(value, bool | Enum) or (isinstance(value, int) and 0 <= value <= 256)


@pytest.mark.parametrize("kind", Kind, ids="of a {} receipt".format)
def test_a_default_exists_once(kind: Kind) -> None:
    """The encoder leaves out what *is* the default; one that can be had twice would be written or not by chance."""
    defaults = {field.name: field.default for field in fields(BARE[kind]) if field.default is not NODEFAULT}

    assert [] == [name for name, value in defaults.items() if not exists_once(value)]


@pytest.mark.parametrize("kind", Kind, ids="a {} receipt".format)
def test_a_body_told_in_full_has_every_part(kind: Kind) -> None:
    """Whoever reads a body as JSON finds defaults spelled out, in the parts of parts as well."""
    told = told_in_full(BARE[kind])

    assert names_of(BARE[kind]) == list(told)
    assert BARE[kind] == msgspec.convert(told, type(BARE[kind]), strict=False)


def test_a_part_of_a_body_told_in_full_has_every_part() -> None:
    """What is left out of signed bytes in the parts of parts is spelled out there, too."""
    body = replace(BODIES[Kind.RUN_STARTED], label=Label(SourceType.EXTERNAL))

    assert {"integrity": "external", "readers": None} == told_in_full(body)["label"]


@pytest.mark.parametrize("kind", Kind, ids="a wordy {} receipt".format)
def test_a_default_that_is_written_is_read(kind: Kind) -> None:
    """Another writer may spell defaults out: it says the same, in other bytes."""
    statement = json.loads(encode_receipt(a_receipt(BARE[kind])))
    statement["predicate"]["body"] |= {
        field.name: msgspec.to_builtins(field.default) for field in fields(BARE[kind]) if field.default is not NODEFAULT
    }

    assert a_receipt(BARE[kind]) == decode_receipt(json.dumps(statement).encode())


@pytest.mark.parametrize(
    "receipt",
    [
        pytest.param(replace(STARTED, content={}), id="no content"),
        pytest.param(replace(STARTED, session=None), id="no session"),
        pytest.param(replace(STARTED, root=None), id="no root"),
        pytest.param(replace(STARTED, mode=Mode.ENFORCED), id="an enforced run"),
        pytest.param(replace(STARTED, at=STARTED.at.replace(microsecond=0)), id="a whole second"),
        pytest.param(replace(STARTED, at=STARTED.at.replace(microsecond=100_000)), id="a tenth of a second"),
        pytest.param(replace(STARTED, at=STARTED.at.replace(year=9999)), id="the last year"),
        pytest.param(replace(STARTED, seq=2**53 - 1, epoch=2**53 - 1), id="the largest numbers"),
        pytest.param(replace(STARTED, content={"a": REF, "b.c-d_e": replace(REF, size=0)}), id="two contents"),
        pytest.param(
            a_receipt(
                HandoffInitiated(
                    handoff=STARTED.id.replace("receipt", "handoff"),  # type: ignore[arg-type]
                    run=PARENT,
                    to="a/b:c@d+e",  # type: ignore[arg-type]
                    carrier=Carrier.WORKER,
                    state=State.READY,
                ),
            ),
            id="an offer to workers",
        ),
    ],
)
def test_every_shape_comes_back_as_it_was(receipt: Receipt) -> None:
    """Parts that may be left out, and values at their limits."""
    payload = encode_receipt(receipt)

    assert receipt == decode_receipt(payload)
    assert payload == rfc8785.dumps(json.loads(payload))


@pytest.mark.parametrize("kind", Kind, ids="a {} receipt".format)
def test_the_payload_is_canonical(kind: Kind) -> None:
    """The signed bytes are those of RFC 8785, by its reference implementation."""
    payload = encode_receipt(receipt_of(kind))

    assert rfc8785.dumps(json.loads(payload)) == payload


def test_the_payload_is_a_statement_about_the_receipt_before() -> None:
    """The subject names the stream and what the receipt hangs from; the predicate says the rest."""
    statement = json.loads(encode_receipt(STARTED))

    assert {"_type", "predicateType", "subject", "predicate"} == statement.keys()
    assert (STATEMENT_TYPE, PREDICATE_TYPE) == (statement["_type"], statement["predicateType"])
    assert [{"name": STARTED.stream, "digest": {"sha256": DIGEST}}] == statement["subject"]
    assert "2026-01-02T12:00:00.123456Z" == statement["predicate"]["at"]


@pytest.mark.parametrize("kind", Kind, ids="a {} receipt".format)
def test_the_payload_has_no_room_for_words(kind: Kind) -> None:
    """Every text in signed bytes is an id, a code, a time, a digest or a name: nothing that a person or model wrote."""
    statement = json.loads(encode_receipt(receipt_of(kind)))

    assert [] == [text for text in texts_in(statement) if not PLAIN.fullmatch(text)]


NOVELTY = {"later": [1, {"nested": "é\U0001f600"}], "another": None}


@pytest.mark.parametrize("kind", Kind, ids="a {} receipt".format)
def test_fields_of_the_future_are_passed_over(kind: Kind) -> None:
    """A stored receipt with unknown fields anywhere says what it says, and keeps them in its bytes."""
    statement: dict[str, Any] = json.loads(encode_receipt(receipt_of(kind)))
    predicate = statement["predicate"]
    for part in (
        statement,
        predicate,
        predicate["recorder"],
        predicate["body"],
        predicate["content"]["task"],
        statement["subject"][0],
        *(part for part in nested_in(predicate["body"]) if isinstance(part, dict)),
    ):
        part.update(NOVELTY)

    assert receipt_of(kind) == decode_receipt(rfc8785.dumps(statement))


def test_a_kind_of_the_future_is_kept_as_unknown() -> None:
    """A kind that this version does not know is read without its body, whatever that is."""
    receipt = decode_receipt(predicate_with(kind="memory.taken", body=[1, "two", {"three": 3}]))

    assert (UnknownBody("memory.taken"), STARTED.stream, STARTED.seq) == (receipt.body, receipt.stream, receipt.seq)


def test_a_kind_of_the_future_cannot_be_written() -> None:
    """We write only what we know."""
    with pytest.raises(InvalidValueError, match="newer version") as refused:
        encode_receipt(a_receipt(UnknownBody("memory.taken"), stream=StreamId(PARENT)))

    assert "body" == refused.value.field


@pytest.mark.parametrize("version", ["v1", "v2", "v10", "v999999999"], ids="written in {}".format)
def test_a_newer_version_is_named(version: str) -> None:
    """A receipt of a later format is called that, not damaged."""
    payload = edited(predicateType=f"urn:batonpass:receipt:{version}", predicate={"all": "new"})

    with pytest.raises(NewerVersionError, match=f"version {version} .*upgrade batonpass") as refused:
        decode_receipt(payload)

    assert "predicateType" == refused.value.field


@pytest.mark.parametrize(
    "name",
    ["urn:batonpass:receipt:v", "urn:batonpass:receipt:v00", "urn:batonpass:receipt:v-1", "urn:other:v0", ""],
    ids="called {!r}".format,
)
def test_what_is_not_a_receipt_is_refused(name: str) -> None:
    """Another predicate, or another spelling of ours, is not a receipt."""
    with pytest.raises(InvalidValueError) as refused:
        decode_receipt(edited(predicateType=name))

    assert "predicateType" == refused.value.field


NO_STREAM = [{"name": "stream", "digest": {"sha256": DIGEST}}]
UNREADABLE = [
    pytest.param(b"", "payload", id="nothing"),
    pytest.param(b"null", "payload", id="JSON that is not an object"),
    pytest.param(b"\xff\xfe{}", "payload", id="not UTF-8"),
    pytest.param(encode_receipt(STARTED)[:-1], "payload", id="cut at the end"),
    pytest.param(encode_receipt(STARTED) + b"{}", "payload", id="something after the end"),
    pytest.param(edited(_type="https://in-toto.io/Statement/v2"), "_type", id="another statement"),
    pytest.param(edited(subject=None), "payload", id="no subject"),
    pytest.param(edited(subject=[]), "subject", id="an empty subject"),
    pytest.param(edited(subject=NO_STREAM * 2), "subject", id="two subjects"),
    pytest.param(edited(subject=[{"name": PARENT, "digest": {}}]), "subject", id="a subject without digest"),
    pytest.param(edited(subject=NO_STREAM), "stream", id="a subject that is no stream"),
    pytest.param(edited(predicate=None), "payload", id="no predicate"),
    pytest.param(predicate_with(seq="1"), "payload", id="a number as text"),
    pytest.param(predicate_with(seq=0), "seq", id="a seq of zero"),
    pytest.param(predicate_with(seq=None), "payload", id="no seq"),
    pytest.param(predicate_with(epoch=2**53), "epoch", id="an epoch beyond JSON's integers"),
    pytest.param(predicate_with(id=PARENT), "id", id="an id of something else"),
    pytest.param(predicate_with(at="yesterday"), "payload", id="a time that is none"),
    pytest.param(predicate_with(at="2026-01-02T12:00:00"), "at", id="a time without a zone"),
    pytest.param(predicate_with(at="2026-01-02T12:00:00+02:00"), "at", id="a time in another zone"),
    pytest.param(predicate_with(mode="lax"), "payload", id="an unknown mode"),
    pytest.param(predicate_with(recorder={"relay": "r", "key": "k"}), "relay", id="a recorder that is none"),
    pytest.param(predicate_with(cosigner=None), "cosigner", id="no cosigner"),
    pytest.param(predicate_with(body={}), "payload", id="an empty body"),
    pytest.param(predicate_with(content={"Task": {}}), "payload", id="a content without reference"),
    pytest.param(predicate_with(kind="two words"), "kind", id="a kind that is no code"),
    pytest.param(predicate_with(kind="\x1b[2J"), "kind", id="a kind that would clear the screen"),
    pytest.param(predicate_with(kind=""), "kind", id="a kind without a name"),
]


@pytest.mark.parametrize(("payload", "field"), UNREADABLE)
def test_what_cannot_be_read_is_refused_by_field(payload: bytes, field: str) -> None:
    """The error is ours and names the part."""
    with pytest.raises(InvalidValueError) as refused:
        decode_receipt(payload)

    assert field == refused.value.field


@pytest.mark.parametrize("opening", [b"[", b'{"a":'], ids=["arrays", "objects"])
def test_nesting_without_end_is_refused(opening: bytes) -> None:
    """Deep JSON in a field that we do not even know is refused like anything else that cannot be read."""
    closing = {b"[": b"]", b'{"a":': b"}"}[opening]
    payload = encode_receipt(STARTED)[:-1] + b',"zzz":' + opening * 100_000 + b"1" + closing * 100_000 + b"}"

    with pytest.raises(InvalidValueError) as refused:
        decode_receipt(payload)

    assert "payload" == refused.value.field


@pytest.mark.parametrize("kind", Kind, ids="a {} receipt".format)
def test_no_flipped_bit_goes_unnoticed(kind: Kind) -> None:
    """Flip one bit of any byte of a payload: it cannot be read, and we say so, or it has another digest.

    Which bit of a byte it is differs from kind to kind: the parts that all kinds have in common see all eight.
    """
    payload = encode_receipt(receipt_of(kind))
    before = digest(payload)
    foreign: dict[int, str] = {}
    first = list(Kind).index(kind)
    for byte in range(len(payload)):
        flipped = bytearray(payload)
        flipped[byte] ^= 1 << (first + byte) % 8
        try:
            decode_receipt(bytes(flipped))
        except OURS:
            continue
        except Exception as error:  # noqa: BLE001 - shown by the assertion
            foreign[byte] = repr(error)
        assert before != digest(bytes(flipped))

    assert {} == foreign


@given(st.binary(max_size=300))
def test_noise_is_refused_with_our_own_error(noise: bytes) -> None:
    """Whatever the bytes are, the answer is a receipt or one of our errors."""
    with pytest.raises(BatonpassError):
        decode_receipt(noise)


def test_a_signature_covers_type_and_length() -> None:
    """The signed bytes are DSSE's: version, length and type, length and payload."""
    assert b"DSSEv1 28 application/vnd.in-toto+json 5 hello" == signing_bytes(b"hello")


def test_digests_are_of_the_exact_bytes() -> None:
    """A space more is another digest, though it says the same."""
    payload = encode_receipt(STARTED)
    spaced = payload.replace(b",", b", ", 1)

    assert decode_receipt(spaced) == decode_receipt(payload)
    assert sha256(spaced).hexdigest() == digest(spaced)
    assert digest(payload) != digest(spaced)


@pytest.mark.parametrize("kind", Kind, ids="{} is known".format)
def test_known_kinds_are_known(kind: Kind) -> None:
    """Every kind of this version can be interpreted."""
    assert known_kind(kind)


def test_other_kinds_are_not_known() -> None:
    """Another kind, or no kind, cannot."""
    assert [False, False, False] == [known_kind(kind) for kind in ("memory.taken", "", "run")]
