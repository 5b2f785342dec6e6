"""What each field of a receipt's envelope, of a row and of a smaller value refuses."""

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct

from batonpass.model.bodies.body import Kind, UnknownBody
from tests.unit.model.examples import (
    BODIES,
    CHILD,
    DECIDED,
    FOUND,
    HANDOFF,
    HEAD,
    LABEL,
    PARENT,
    PROOF,
    REF,
    RELAY,
    WORDS,
    a_receipt,
)
from tests.unit.model.row_examples import CACHED, DECIDED_CALL, HELD_CALL, KEY, LEASE, OFFER, RUN, SEAL, STATED, STREAM
from tests.unit.model.wrongs import (
    NOT_AGENTS,
    NOT_CODES,
    NOT_COUNTS,
    NOT_DIGESTS,
    NOT_FLAGS,
    NOT_IDS,
    NOT_MEMBERS,
    NOT_NUMBERS,
    NOT_OPTIONAL_CODES,
    NOT_OPTIONAL_DIGESTS,
    NOT_OPTIONAL_IDS,
    NOT_OPTIONAL_TIMES,
    NOT_PRINCIPALS,
    NOT_STREAMS,
    NOT_TIMES,
    WRONG_IN_BODIES,
    Wrong,
)

STARTED: Final = a_receipt(BODIES[Kind.RUN_STARTED])
WRONG: Final[Sequence[tuple[Struct, Wrong]]] = (
    *((BODIES[kind], wrong) for kind, wrong in WRONG_IN_BODIES.items()),
    (UnknownBody("memory.taken"), {"kind": ("", "two words", "\x1b[2J", "é", "k" * 65, 7, None)}),
    (HEAD, {"run": NOT_IDS, "seq": NOT_COUNTS, "head": NOT_DIGESTS}),
    (FOUND, {"place": NOT_CODES, "rule": NOT_CODES, "count": NOT_COUNTS, "score": NOT_NUMBERS}),
    (LABEL, {"integrity": NOT_MEMBERS, "readers": ([], ("ana",), (7,), ("user:ana", "user:ana"), "user:ana")}),
    (DECIDED, {"item": NOT_IDS, "digest": NOT_DIGESTS, "part": NOT_MEMBERS}),
    (REF, {"id": NOT_IDS, "digest": NOT_DIGESTS, "size": NOT_NUMBERS, "media_type": ("", "text", "text/plain; a", 7)}),
    (
        WORDS,
        {
            "name": NOT_CODES,
            "ref": (None, "content"),
            "salt": (b"", bytes(15), bytes(17), "s" * 16, None),
            "body": ("words", None),
        },
    ),
    (
        RUN,
        {
            "id": NOT_IDS,
            "root": NOT_IDS,
            "parent": NOT_OPTIONAL_IDS,
            "handoff": NOT_OPTIONAL_IDS,
            "attempt": NOT_COUNTS,
            "agent": NOT_AGENTS,
            "principal": NOT_PRINCIPALS,
            "state": NOT_MEMBERS,
            "started_at": NOT_TIMES,
            "ended_at": NOT_OPTIONAL_TIMES,
            "series": NOT_OPTIONAL_CODES,
            "session": NOT_OPTIONAL_IDS,
        },
    ),
    (
        PROOF,
        {
            "key": NOT_DIGESTS,
            "at": NOT_TIMES,
            "signature": ("", "ab" * 63, "ab" * 65, "AB" * 64, "g" * 128, b"ab" * 64, None),
            "passkey": ({}, "passkey", 7),
        },
    ),
    (HELD_CALL, {"call": NOT_IDS, "run": NOT_IDS, "receipt": NOT_IDS}),
    (DECIDED_CALL, {"call": NOT_IDS, "run": NOT_IDS, "receipt": NOT_IDS, "approved": NOT_FLAGS}),
    (CACHED, {"call": NOT_IDS, "key": NOT_DIGESTS, "receipt": NOT_IDS, "until": NOT_TIMES}),
    (
        OFFER,
        {
            "id": NOT_IDS,
            "root": NOT_IDS,
            "parent": NOT_IDS,
            "to": NOT_AGENTS,
            "carrier": NOT_MEMBERS,
            "state": NOT_MEMBERS,
            "attempt": NOT_NUMBERS,
            "run": NOT_OPTIONAL_IDS,
            "initiated": NOT_DIGESTS,
            "seq": NOT_COUNTS,
            "scope": NOT_STREAMS,
            "key": NOT_OPTIONAL_DIGESTS,
            "deadline": NOT_OPTIONAL_TIMES,
        },
    ),
    (STATED, {"item": NOT_IDS, "root": NOT_IDS, "digest": NOT_DIGESTS, "by": NOT_PRINCIPALS, "at": NOT_TIMES}),
    (LEASE, {"handoff": NOT_IDS, "holder": NOT_AGENTS, "token": NOT_NUMBERS, "until": NOT_TIMES}),
    (
        STREAM,
        {
            "id": (*NOT_STREAMS, None),
            "root": NOT_OPTIONAL_IDS,
            "seq": NOT_COUNTS,
            "head": NOT_DIGESTS,
            "epoch": NOT_COUNTS,
            "open": NOT_FLAGS,
        },
    ),
    (
        KEY,
        {
            "id": NOT_DIGESTS,
            "role": NOT_MEMBERS,
            "public_key": NOT_DIGESTS,
            "relay": NOT_OPTIONAL_IDS,
            "status": NOT_MEMBERS,
            "principal": NOT_PRINCIPALS[:-1],
        },
    ),
    (
        SEAL,
        {
            "size": (0, *NOT_NUMBERS),
            "previous": (5, 6, *NOT_NUMBERS),
            "root": NOT_DIGESTS,
            "note": ("", 7, None),
            "frontier": (b"", bytes(63), bytes(96), "f" * 64, None),
        },
    ),
    (
        STARTED,
        {
            "id": NOT_IDS,
            "stream": (*NOT_IDS, CHILD, RELAY, HANDOFF),
            "seq": NOT_COUNTS,
            "previous": NOT_DIGESTS,
            "epoch": NOT_COUNTS,
            "at": NOT_TIMES,
            "mode": NOT_MEMBERS,
            "relay": NOT_IDS,
            "relay_key": NOT_DIGESTS,
            "cosigner": NOT_DIGESTS,
            "root": NOT_OPTIONAL_IDS,
            "session": (*NOT_OPTIONAL_IDS, PARENT),
            "body": (None, "run.started"),
            "content": ({"The task": REF}, {"task": None}, {7: REF}, None),
        },
    ),
)
# A value that others hold says whose field it is.
NAMES: Final[Mapping[tuple[str, str], str]] = {
    **{("RulingProof", name): f"proof.{name}" for name in ("key", "at", "signature", "passkey")},
    **{("ChildHead", name): f"children.{name}" for name in ("run", "seq", "head")},
    **{("Label", name): f"label.{name}" for name in ("integrity", "readers")},
    **{("ScanFound", name): f"found.{name}" for name in ("place", "rule", "count", "score")},
    **{("Carried", name): f"carries.{name}" for name in ("item", "digest", "part")},
    **{("ContentRef", name): f"content.{name}" for name in ("id", "digest", "size", "media_type")},
    **{("Content", name): f"content.{name}" for name in ("name", "ref", "salt", "body")},
}
