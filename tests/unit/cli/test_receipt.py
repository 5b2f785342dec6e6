"""`batonpass receipt`: what was signed, what was written, and where it stands."""

import json
import re
import shutil
from pathlib import Path

import pytest
from click.testing import Result

from batonpass.ledger.seal_proof import parse_proof, verify_proof
from batonpass.model.base.ids import AgentId
from batonpass.relay import recording_of
from batonpass.testing.plain_acts import plainly
from batonpass.wire.receipt_codec import decode_envelope
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


class Proven:
    """A receipt, its proof, and the key of the relay, as somebody has them who has no ledger."""

    def __init__(self, desk: Desk, folder: Path) -> None:
        self.receipt, self.proof = folder / "receipt.json", folder / "receipt.tlog-proof"
        self.receipt.write_text(desk.words("receipt", "show", "--dsse", "last"), encoding="utf-8")
        self.proof.write_text(desk.words("receipt", "proof", "last"), encoding="utf-8")
        here = desk.answer("key", "list")["here"]
        self.key, self.seal_key = here["public_key"], here["seal_key"]
        self._desk = desk

    def verify(self, *options: str) -> Result:
        """Verify it where there is no ledger."""
        return self._desk.run("receipt", "verify", str(self.receipt), str(self.proof), *options)


@pytest.fixture
def proven(desk: Desk, tmp_path: Path) -> Proven:
    """Return the files that somebody was given."""
    return Proven(desk, tmp_path)


def test_a_proof_is_verified_without_a_ledger(desk: Desk, proven: Proven) -> None:
    """Two files and a key are enough; the key may have either of its forms, and others beside it."""
    shutil.rmtree(desk.ledger.parent)
    ways = [("--key", proven.key), ("--key", proven.seal_key), ("--key", "0" * 64, "--key", proven.key)]
    done = [proven.verify(*keys) for keys in ways]
    told = json.loads(proven.verify("--key", proven.key, "--json").stdout)

    assert [0] * 3 == [one.exit_code for one in done]
    assert all(one.stdout.startswith("proven: run.closed ") for one in done)
    assert "is receipt 10 of the 10 under the seal of batonpass/ledger_" in done[0].stdout
    assert ("run.closed", 10, 10) == (told["kind"], told["position"], told["seal"]["size"])
    assert told["unchecked_key"][:16] in done[0].stderr


def changed(path: Path, old: str, new: str) -> None:
    """Change a file in one place."""
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


def code_of(done: Result) -> str:
    """Return the code of the error that a command ended with."""
    assert done.exit_code, done.output
    return str(done.stderr).strip().rpartition("[")[2].partition("]")[0]


def other_letter(text: str) -> str:
    """Return a text of base64 with another first letter."""
    return ("B" if text.startswith("A") else "A") + text[1:]


def test_what_is_not_proven_is_refused_with_its_code(proven: Proven) -> None:
    """Each file is changed in each of its parts, one at a time; the first that is wrong is named."""
    envelope = json.loads(proven.receipt.read_text(encoding="utf-8"))
    signed = envelope["signatures"][0]["sig"]
    index, *hashes = proven.proof.read_text(encoding="utf-8").split("\n\n")[0].split("\n")[1:]
    note = proven.proof.read_text(encoding="utf-8").split("\n\n", 1)[1]
    root, signature = note.split("\n")[2], note.rsplit(" ", 1)[1].strip()
    cases = {
        ("receipt", signed, other_letter(signed)): "verify.signature",
        ("receipt", envelope["payload"][40:80], envelope["payload"][80:120]): "value.invalid",
        ("proof", index, "index 3"): "value.invalid",
        ("proof", hashes[0], other_letter(hashes[0])): "verify.seal",
        ("proof", root, other_letter(root)): "verify.seal",
        ("proof", signature, signature[:20] + other_letter(signature[20:])): "verify.untrusted_key",
        ("proof", "c2sp.org/tlog-proof@v1", "c2sp.org/tlog-proof@v2"): "value.invalid",
    }
    found = {}
    for which, old, new in cases:
        path = proven.receipt if which == "receipt" else proven.proof
        kept = path.read_bytes()
        changed(path, old, new)
        done = proven.verify("--key", proven.key)
        path.write_bytes(kept)
        found[which, old, new] = code_of(done)

    assert cases == found


def test_a_key_that_nobody_gave_proves_nothing(desk: Desk, proven: Proven) -> None:
    """Another key, a seal key of another ledger, a key that is none, and none at all."""
    other = proven.seal_key.replace("batonpass/ledger_", "batonpass/other_")
    answers = [proven.verify("--key", key) for key in ("0" * 64, other, "word")]

    assert ["verify.untrusted_key", "value.invalid", "value.invalid"] == [code_of(one) for one in answers]
    assert 2 == proven.verify().exit_code
    assert 2 == desk.run("receipt", "verify", "nowhere", "nowhere", "--key", proven.key).exit_code
