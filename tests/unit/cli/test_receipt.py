"""`batonpass receipt`: what was signed, what was written, and where it stands."""

import json
import re
from pathlib import Path

import pytest

from batonpass.ledger.seal_proof import parse_proof, verify_proof
from batonpass.model.base.ids import AgentId
from batonpass.relay import recording_of
from batonpass.testing.plain_acts import plainly
from batonpass.wire.codec import decode_envelope
from tests.unit.cli.desk import ANA, Desk


def test_a_receipt_is_shown(desk: Desk) -> None:
    """The kind, when, whose, the body, the place in its stream, who signed, and the words."""
    lines = desk.words("receipt", "show", "last").splitlines()

    assert re.fullmatch(r'run\.closed \w{6} · \S+ \S+ · lead \w{4} · "Fix invoice rounding"', lines[0])
    assert ["children", "outcome", "run", "mode", "stream", "position", "digest", "previous", "recorded", "signed"] == [
        line.split()[0] for line in lines[1:11]
    ]
    assert ["  │ all done", ""] == lines[-3:-1]


def test_receipts_about_relays_are_shown(desk: Desk) -> None:
    """A receipt of no run is named by its stream."""
    first = json.loads(desk.words("receipt", "grep", "^relay.enrolled$", "--json"))[0]["receipt"]

    assert re.match(r"relay\.enrolled \w{6} · \S+ \S+ · relay \w{4}\n", desk.words("receipt", "show", first))


def test_programs_get_what_was_signed(desk: Desk) -> None:
    """JSON has the body as it was signed, and the texts beside it."""
    shown = desk.answer("receipt", "show", "last")

    assert ("run.closed", "completed", "all done", "kept") == (
        shown["kind"],
        shown["body"]["outcome"],
        shown["content"]["report"]["text"],
        shown["content"]["report"]["state"],
    )


def test_bytes_that_are_not_text_are_not_printed(desk: Desk) -> None:
    """A person is told that it is no text; a program gets the bytes."""
    with desk.relay() as relay:
        recording = recording_of(relay)
        scout = recording.start("Look", agent=AgentId("scout"), by=ANA)
        plainly(recording).finish(scout, plainly(recording).request(scout, "read", "{}"), b"\xff\x00")

    assert "not text; --json prints its bytes" in desk.words("receipt", "show", "last")
    assert (None, "/wA=") == tuple(
        desk.answer("receipt", "show", "last")["content"]["result"][name] for name in ("text", "base64")
    )


def test_a_missing_text_is_said(desk: Desk) -> None:
    """A file that somebody removed shows as missing, not as erased."""
    with desk.relay() as relay:
        recording = recording_of(relay)
        scout = recording.start("Look", agent=AgentId("scout"), by=ANA)
        plainly(recording).finish(scout, plainly(recording).request(scout, "read", "{}"), b"x" * 100_000)
    for path in desk.ledger.parent.glob("blobs/*/content_*"):
        path.unlink()

    assert "missing, although nobody erased it" in desk.words("receipt", "show", "last")


def test_an_envelope_can_be_read_back(desk: Desk) -> None:
    """`--dsse` prints what in-toto tools take."""
    envelope = decode_envelope(desk.words("receipt", "show", "last", "--dsse").encode())

    assert desk.answer("receipt", "show", "last")["digest"] == envelope.digest


def test_grep_prints_a_line_for_each_match(desk: Desk) -> None:
    """A line says when, what kind, whose, which receipt, where, and the text around."""
    failed, completed = desk.words("receipt", "grep", "timeout|untested").splitlines()

    assert re.fullmatch(r"\S+ \S+  tool\.failed        editor \w{6}  body\.error: smtp\.timeout", failed)
    assert re.fullmatch(
        r"\S+ \S+  handoff\.completed  editor \w{6}  content\.report:2: negative totals untested", completed
    )


def test_grep_answers_programs_with_an_array(desk: Desk) -> None:
    """Each match is one JSON object in it, with whole ids."""
    (found,) = desk.answer("receipt", "grep", "-i", "TIMEOUT")

    assert ("tool.failed", "body.error", "smtp.", "timeout", "") == tuple(
        found[name] for name in ("kind", "field", "before", "found", "after")
    )


@pytest.mark.parametrize(
    ("expected", "arguments"),
    [
        pytest.param("no receipt matches\n", ["zzzz"], id="nothing"),
        pytest.param("no receipt matches\n", ["done", "--since", "2100-01-01"], id="nothing since then"),
        pytest.param("no receipt matches\n", ["done", "--agent", "nobody"], id="nothing by nobody"),
        pytest.param(
            "no receipt matches, and tool.fialed is not a kind that this version knows\n",
            [".", "--kind", "tool.fialed"],
            id="a kind that was mistyped",
        ),
    ],
)
def test_grep_that_finds_nothing_is_a_no(desk: Desk, expected: str, arguments: list[str]) -> None:
    """As grep does, so do we: 1 means no match."""
    done = desk.run("receipt", "grep", *arguments)

    assert (1, "", expected) == (done.exit_code, done.stdout, done.stderr)


def test_a_pattern_that_is_none_is_wrong_usage(desk: Desk) -> None:
    """A mistyped pattern is not "no match"."""
    done = desk.run("receipt", "grep", "(a")

    assert (2, True) == (done.exit_code, "missing )" in done.stderr)


def test_a_proof_proves(desk: Desk) -> None:
    """The proof of a receipt leads from its digest to the seal, which was made for it."""
    text = desk.words("receipt", "proof", "last")
    digest = bytes.fromhex(desk.answer("receipt", "show", "last")["digest"])

    assert 10 == verify_proof(parse_proof(text), digest).checkpoint.size


def test_a_proof_uses_the_newest_seal(desk: Desk, tmp_path: Path) -> None:
    """A receipt that a seal covers needs no new one; a file gets it if one is named."""
    desk.run("ledger", "seal")
    with desk.relay() as relay:
        recording_of(relay).start("Look", agent=AgentId("scout"), by=ANA)
    covered = json.loads(desk.words("receipt", "grep", "^run.closed$", "--json"))[0]["receipt"]
    done = desk.run("receipt", "proof", covered, "-o", str(tmp_path / "proof"))

    assert 10 == int((tmp_path / "proof").read_text(encoding="utf-8").split("\n\n")[1].split("\n")[1])
    assert ("", True) == (done.stdout, done.stderr.endswith("is covered by the seal of 10 receipts\n"))
