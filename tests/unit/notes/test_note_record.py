"""One record of a note: what it says, what it is signed by, and what is refused."""

import json
from base64 import urlsafe_b64encode

import pytest
from msgspec.structs import replace

from batonpass.errors import InvalidValueError
from batonpass.notes.note_record import (
    LONGEST_RECORD,
    LineEdits,
    NoteRecord,
    Perhaps,
    read_record,
    signing_bytes,
    write_record,
)
from batonpass.signing.ed25519 import Ed25519Signer
from tests.unit.notes.records import AT, BLOB, a_call, a_record, a_run

SIGNER = Ed25519Signer.generate()


CALL = "call_01m7njynndfm78hw2sdqwve9bw"
RUN = "run_01m7njynkff55v476tr3btv11h"


def by(**more: object) -> dict[str, object]:
    """Return a document with one run."""
    return {"by": [{"run": RUN, "agent": "a", "human": "user:a", "calls": [], **more}]}


def signed(document: dict[str, object]) -> str:
    """Return any document, correctly signed."""
    key = urlsafe_b64encode(bytes.fromhex(SIGNER.public_key)).rstrip(b"=").decode()
    data = json.dumps({"v": 0, "path": "a.py", "blob": BLOB, "at": 1, "key": key, **document}).encode()
    return f"{urlsafe_b64encode(SIGNER.sign(signing_bytes(data))).rstrip(b'=').decode()} {data.decode()}"


def test_a_record_is_read_as_it_was_written() -> None:
    """One line holds all of it, and its signature is checked."""
    one, other = a_call("1-2,9"), a_call("", matched=True)
    run = replace(
        a_run(one, other), via=("lead",), above=(a_run().run,), program="claude-code", model="m", task="t" * 8
    )
    doubts = (Perhaps(lines="4", calls=(one.call, other.call), nobody=True),)
    record = a_record(
        SIGNER, run, was="b" * 40, edits=(LineEdits(0, 0, 2), LineEdits(5, 2, 1)), perhaps=doubts, commit="abc"
    )

    line = write_record(record, SIGNER)

    assert "\n" not in line
    assert record == read_record(line)
    assert [(run, one)] == list(record.claims(9))
    assert [] == list(record.claims(3))
    assert [(doubts[0], ((run, one), (run, other)))] == list(record.doubts(4))
    assert "1-2,4,9" == str(record.claimed)
    assert one.moment == AT


def test_a_line_is_followed_to_the_parents_file() -> None:
    """Lines that the commit brought have no number there; the others are shifted."""
    record = a_record(SIGNER, edits=(LineEdits(0, 0, 2), LineEdits(3, 2, 1), LineEdits(6, 1, 0)))

    assert [None, None, 1, 2, 3, None, 6, 8, 9] == [record.old_line(number) for number in range(1, 10)]


def test_a_record_with_another_word_is_refused() -> None:
    """Whoever changes a letter needs the key."""
    line = write_record(a_record(SIGNER, a_run(a_call("1"))), SIGNER)

    for forged in (line.replace("editor", "evitor"), line.replace(" ", "  ", 1), line[1:], line.replace("A", "B", 1)):
        with pytest.raises(InvalidValueError):
            read_record(forged if forged != line else f"x{line}")


@pytest.mark.parametrize(
    "document",
    [
        {"v": 1},
        {"blob": "xyz"},
        {"was": "../x"},
        {"path": ""},
        {"path": "/etc/passwd"},
        {"path": "a" * 5000},
        {"renamed": "a\0b"},
        {"at": -1},
        {"at": 10**15},
        {"edits": "1-1"},
        {"edits": "5-3+1,6-0+1"},
        by(run="run_x"),
        by(agent="a b\x1b[2J"),
        by(human="\x1b[2J"),
        by(model="\x1b[2Jx"),
        by(via=["b"]),
        by(handoff="h"),
        by(calls=[{"call": "c", "tool": "t", "at": 1}]),
        by(calls=[{"call": CALL, "tool": "t", "at": -1}]),
        by(calls=[{"call": CALL, "tool": "t", "at": 1, "lines": "9-1"}]),
        by(calls=[{"call": CALL, "tool": "t", "at": 1, "approved_by": ["\n"]}]),
        {"perhaps": [{"lines": "x", "calls": []}]},
        {"by": "[" * 1000},
    ],
)
def test_a_signed_record_that_is_none_is_refused(document: dict[str, object]) -> None:
    """A signature does not make nonsense readable: values are checked where they enter."""
    with pytest.raises(InvalidValueError):
        read_record(signed(document))


def test_an_endless_record_is_refused_before_it_is_parsed() -> None:
    """Whoever pushes notes does not choose how much we parse."""
    with pytest.raises(InvalidValueError, match="bytes"):
        read_record(signed({"path": "a" * LONGEST_RECORD}))
    with pytest.raises(InvalidValueError):
        read_record("x " + "[" * 60_000)


def test_unknown_fields_are_left_alone() -> None:
    """A later version may say more, and its signature still holds."""
    assert "a.py" == read_record(signed({"later": {"more": [1]}})).path


def test_prints_that_do_not_fit_are_none() -> None:
    """The record stands; only nothing is recognised by it."""
    record = NoteRecord(path="a.py", blob=BLOB, key=SIGNER.public_key, at=AT, by=(a_run(a_call("1-2")),), prints="AAAA")

    assert {} == record.line_prints
