"""Whoever writes a file or a row chooses how deep it is nested and how long it is; we refuse it in our own words."""

import json
from base64 import b64encode
from pathlib import Path

import apsw
import pytest
from click.testing import CliRunner

from batonpass.audit.bundle import export_bundle, read_bundle, verify_bundle
from batonpass.cli.nouns import cli
from batonpass.errors import BatonpassError, EditedError, GrantMalformedError, InvalidValueError
from batonpass.model.grants.grant import Terms
from batonpass.store.memory import MemoryStore
from batonpass.testing.builders import a_scribe, a_small_tree
from batonpass.wire.documents import decode_brief, decode_item, decode_report
from batonpass.wire.grant_statements import decode_statement
from batonpass.wire.receipt_codec import decode_envelope, decode_receipt
from batonpass.wire.token import decode_part
from tests.unit.cli.desk import record_in

DEEP = "[" * 100_000
WHOLE = DEEP + "]" * 100_000
NESTED = {
    "lists that do not end": DEEP,
    "lists that end": WHOLE,
    "objects": '{"a":' * 100_000,
    "lists in a field": f'{{"a":{WHOLE}}}',
}


@pytest.fixture
def lines() -> list[str]:
    """Return the lines of an honest bundle."""
    store = MemoryStore()
    lead = a_small_tree(a_scribe(store), calls=1)
    return list(export_bundle(store, lead.run.id))


@pytest.mark.parametrize("nested", NESTED.values(), ids=NESTED)
@pytest.mark.parametrize("at", [0, 1, 2, 3])
def test_a_deeply_nested_line_of_a_bundle_is_refused(lines: list[str], at: int, nested: str) -> None:
    """In place of a header, a receipt or a content, it is named by its line."""
    lines[at] = nested

    with pytest.raises(EditedError, match=f"line {at + 1}"):
        read_bundle(lines)


@pytest.mark.parametrize("nested", NESTED.values(), ids=NESTED)
@pytest.mark.parametrize("field", ["dsse", "payload", "signatures", "content", "body"])
def test_a_deeply_nested_field_of_a_bundle_is_refused(lines: list[str], field: str, nested: str) -> None:
    """Deep inside of a line it is refused as well."""
    deep = "@@"
    at = (
        1 if field in {"dsse", "payload", "signatures"} else next(i for i, line in enumerate(lines) if '"salt"' in line)
    )
    line = json.loads(lines[at])
    (line["dsse"] if field in {"payload", "signatures"} else line)[field] = deep
    lines[at] = json.dumps(line, separators=(",", ":"), sort_keys=True).replace(f'"{deep}"', nested)

    with pytest.raises(EditedError, match=f"line {at + 1}"):
        read_bundle(lines)


@pytest.mark.parametrize("nested", NESTED.values(), ids=NESTED)
def test_a_deeply_nested_receipt_is_refused(nested: str) -> None:
    """As stored bytes, and in an envelope."""
    payload = nested.encode()
    envelope = json.dumps(
        {
            "payload": b64encode(payload).decode(),
            "payloadType": "application/vnd.in-toto+json",
            "signatures": [],
        }
    )
    for read in (lambda: decode_receipt(payload), lambda: decode_envelope(envelope.encode())):
        with pytest.raises(InvalidValueError):
            read()


@pytest.mark.parametrize("nested", NESTED.values(), ids=NESTED)
@pytest.mark.parametrize("place", ["type", "by", "at", "value", "brief", "report"])
def test_a_deeply_nested_document_is_refused(nested: str, place: str) -> None:
    """Items, briefs and reports, wherever the nest is."""
    for whole in (
        nested,
        f'{{"v":0,"{place}":{nested}}}',
        f'{{"at":"","by":"","type":"Decision","v":0,"value":{nested}}}',
    ):
        for read in (decode_item, decode_brief, decode_report):
            with pytest.raises(InvalidValueError):
                read(whole.encode())


@pytest.mark.parametrize("nested", NESTED.values(), ids=NESTED)
def test_a_deeply_nested_statement_is_refused(nested: str) -> None:
    """In a token, and as what is kept beside a receipt."""
    for payload in (
        nested,
        f'{{"_type":"urn:batonpass:terms:v0","agent":{nested}}}',
        f'{{"_type":"urn:batonpass:terms:v0","may":{nested}}}',
    ):
        data = payload.encode()
        with pytest.raises(GrantMalformedError):
            decode_statement(data, Terms)
        with pytest.raises(GrantMalformedError):
            decode_part(len(data).to_bytes(4) + data + bytes(64), Terms)


HUGE = 100 * 1024 * 1024


@pytest.mark.parametrize("at", [0, 1])
def test_a_line_of_a_hundred_megabytes_is_refused(lines: list[str], at: int) -> None:
    """No header and no receipt is that long: only words are, and those stand in lines of their own."""
    lines[at] = lines[at][:-1] + f',"more":"{"x" * HUGE}"}}'

    with pytest.raises(EditedError, match=f"line {at + 1}.*characters"):
        read_bundle(lines)


@pytest.mark.slow
def test_words_of_a_hundred_megabytes_are_not_those_that_were_recorded(lines: list[str]) -> None:
    """A content may be as large as it likes; it is still compared with its digest."""
    at = next(number for number, line in enumerate(lines) if '"salt"' in line)
    line = json.loads(lines[at])
    lines[at] = json.dumps(line | {"body": "A" * HUGE}, sort_keys=True, separators=(",", ":"))

    with pytest.raises(BatonpassError, match="not what the receipt committed to"):
        verify_bundle(lines)


@pytest.mark.parametrize(
    "data",
    [b"\xff\xfe{}\n", b'{"bundle":"\xc3\x28"}\n', b"\x00" * 100, b"\x80" * 10_000, DEEP.encode(), b"[\n" * 1_000],
    ids=["another encoding", "half a character", "zeros", "no text at all", "a deep nest", "many short lines"],
)
@pytest.mark.parametrize("command", [["ledger", "verify", "--bundle"], ["ledger", "import"]])
@pytest.mark.parametrize("pinned", [[], ["--root-key", "ab" * 32]])
def test_a_file_that_is_no_bundle_is_answered_with_a_sentence(
    tmp_path: Path, command: list[str], data: bytes, pinned: list[str]
) -> None:
    """Whatever somebody gives as a bundle, the answer is that it cannot be read, and exit code 1."""
    file = tmp_path / "bundle.jsonl"
    file.write_bytes(data)
    words = ["--ledger", str(tmp_path / "new.db"), *command, str(file), *pinned]
    done = CliRunner().invoke(cli, words, prog_name="batonpass")

    assert 1 == done.exit_code, done.output
    assert "verify.edited" in done.output


COMMANDS = (
    ("ledger", "verify"),
    ("ledger", "export", "last"),
    ("trail",),
    ("why", "last"),
    ("blame", "src/invoice.py:1"),
    ("blame", "--text", "wrote"),
    ("run", "list"),
    ("run", "show", "last"),
    ("handoff", "list"),
    ("handoff", "show", "last"),
    ("receipt", "grep", "."),
    ("receipt", "show", "last"),
    ("session", "list"),
    ("taint", "last"),
    ("grant", "show"),
    ("grant", "suggest"),
    ("doctor",),
)


@pytest.mark.slow
@pytest.mark.parametrize("nested", NESTED.values(), ids=NESTED)
@pytest.mark.parametrize("column", ["contents.body", "receipts.payload"])
def test_commands_meet_deep_nests_with_a_sentence(tmp_path: Path, column: str, nested: str) -> None:
    """No command dies of words or receipts that are nested deeper than anybody reads."""
    desk = record_in(tmp_path)
    table, _, name = column.partition(".")
    connection = apsw.Connection(str(desk.ledger))
    connection.execute(f"UPDATE {table} SET {name} = ? WHERE {name} IS NOT NULL", (nested.encode(),))
    connection.close()

    for command in COMMANDS:
        done = desk.run(*command)
        assert "internal error" not in done.output, (command, done.output)
        assert done.exception is None or isinstance(done.exception, SystemExit), command
