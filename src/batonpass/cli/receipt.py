"""`batonpass receipt`: show, search and prove receipts."""

from datetime import datetime
from pathlib import Path

import click
import msgspec

from batonpass.audit.grep import Match, SearchPattern, find_matches
from batonpass.audit.meant_ids import get_receipt
from batonpass.audit.short_ids import ending
from batonpass.cli.input.id_types import AGENT_NAME, RECEIPT_ID
from batonpass.cli.input.ledger_access import opened_relay, opened_view, viewed
from batonpass.cli.input.options import (
    json_option,
    key_option,
    ledger_and_json,
    ledger_option,
    output_option,
    read_moment,
    read_text,
    written,
)
from batonpass.cli.output.exits import NO
from batonpass.cli.output.list_rows import name_of, say_content
from batonpass.cli.output.terminal import paint, say, say_json, table, tell
from batonpass.cli.output.units import counted, moment
from batonpass.errors import InvalidValueError, NotFoundError
from batonpass.ledger.merkle import inclusion_proof
from batonpass.ledger.seal_proof import SealProof, format_proof
from batonpass.model.base.ids import AgentId, RunId
from batonpass.model.ledger.receipt import Receipt, StoredReceipt
from batonpass.model.ledger.seal import Seal
from batonpass.records.lineage import Tasks
from batonpass.records.receipt_shape import receipt_shape, signed_body
from batonpass.records.text import read_receipt, read_texts
from batonpass.store.port import LedgerView, ReceiptQuery
from batonpass.wire.canonical import digest
from batonpass.wire.receipt_codec import encode_envelope, known_kind

_LINES = 40


@click.group()
def command() -> None:
    """Show, search and prove receipts. A receipt is one signed, chained record."""


@command.command()
@click.argument("receipt", metavar="ID", type=RECEIPT_ID)
@click.option("--dsse", is_flag=True, help="Print the DSSE envelope, which in-toto tools verify.")
@ledger_and_json
def show(receipt: str, *, dsse: bool, as_json: bool) -> None:
    """Show a receipt: its signed fields, its signers and its contents."""
    with opened_view() as view:
        stored = get_receipt(view, receipt)
        read = read_receipt(stored)
        if dsse:
            say_json(encode_envelope(stored, read), line=True)
        elif as_json:
            say_json(receipt_shape(view, stored, read))
        else:
            _say_receipt(view, stored, read)


@command.command()
@click.argument("pattern")
@click.option("--kind", metavar="KIND", help="Only this kind, such as tool.failed, or this family, such as handoff.")
@click.option("--agent", metavar="NAME", type=AGENT_NAME, help="Only receipts of this agent's runs.")
@click.option("--since", metavar="WHEN", callback=read_moment, help="Only since: 30m, 12h, 2d, 1w, or a date.")
@click.option("-i", "--ignore-case", is_flag=True, help="Ignore upper and lower case.")
@ledger_and_json
def grep(
    pattern: str,
    *,
    kind: str | None,
    agent: str | None,
    since: datetime | None,
    ignore_case: bool,
    as_json: bool,
) -> None:
    """Search receipts and their contents.

    PATTERN is an RE2 regular expression. Each match is one line, printed as it is found; with --json all matches are
    one array. Exits with 1 if there is no match.
    """
    try:
        compiled = SearchPattern(pattern, ignore_case=ignore_case)
    except InvalidValueError as error:
        raise click.BadParameter(error.problem, param_hint="PATTERN") from None
    query = ReceiptQuery(kind=kind, agent=None if agent is None else AgentId(agent), since=since)
    found = []
    with opened_view() as view:
        for match in find_matches(view, compiled, query):
            found.append(match)
            if not as_json:
                _say_match(match)
    if as_json:
        say_json(found)
    if not found:
        if kind is not None and "." in kind and not known_kind(kind):
            tell(f"no receipt matches, and {kind} is not a kind that this version knows")
        elif not as_json:
            tell("no receipt matches")
        click.get_current_context().exit(NO)


@command.command()
@click.argument("receipt", metavar="ID", type=RECEIPT_ID)
@output_option
@ledger_option
def proof(receipt: str, output: Path | None) -> None:
    """Prove that a seal covers a receipt.

    Prints a c2sp.org/tlog-proof, which can be checked offline, for the newest seal that covers the receipt. If there
    is no such seal, the ledger is sealed first.
    """
    with opened_relay() as relay:
        with viewed(relay.store) as view:
            wanted = get_receipt(view, receipt).id
            seal = _covering_seal(view, get_receipt(view, wanted))
        seal = seal or relay.admin.seal()
        with viewed(relay.store) as view:
            text = _proof_text(view, get_receipt(view, wanted), seal)
    with written(output) as file:
        file.write(text)
    if output is not None:
        tell(f"wrote {output}: receipt {ending(wanted, 6)} is covered by the seal of {counted(seal.size, 'receipt')}")


@command.command()
@click.argument("receipt", metavar="RECEIPT", type=click.Path(path_type=Path))
@click.argument("proof_file", metavar="PROOF", type=click.Path(path_type=Path))
@key_option
@json_option
def verify(receipt: Path, proof_file: Path, keys: tuple[str, ...], *, as_json: bool) -> None:
    """Verify one receipt and its proof. Needs no ledger.

    RECEIPT is the output of `receipt show --dsse`, PROOF that of `receipt proof`. The key is that of the relay; get it
    from somebody whom you trust, not from the giver of the files. `batonpass key list` prints it.
    """
    from batonpass.audit.proof_check import read_keys, verify_receipt  # noqa: PLC0415 - lists do not need it

    proven = verify_receipt(read_text(receipt).encode(), read_text(proof_file), read_keys(keys))
    told = proven.receipt
    if as_json:
        say_json(
            {
                "receipt": told.id,
                "kind": told.kind,
                "at": told.at,
                "digest": proven.digest,
                "position": proven.position,
                "relay_key": told.relay_key,
                "unchecked_key": told.cosigner,
                "seal": {"origin": proven.seal.origin, "size": proven.seal.size, "root": proven.seal.root.hex()},
            }
        )
        return
    say(
        paint("proven", colour="green"),
        f": {told.kind} {ending(told.id, 6)} of {moment(told.at)} is receipt {proven.position:,} of "
        f"the {proven.seal.size:,} under the seal of {proven.seal.origin}",
    )
    say(f"  signed by relay key {told.relay_key[:16]}, and the seal by a given key")
    if told.cosigner is not None:
        tell(f"not checked: the signature by key {told.cosigner[:16]} of its run, which is in another receipt")


def _covering_seal(view: LedgerView, stored: StoredReceipt) -> Seal | None:
    if stored.position is None:
        return None
    covering = [seal for seal in view.find_seals() if seal.size >= stored.position]
    return max(covering, key=lambda seal: seal.size, default=None)


def _proof_text(view: LedgerView, stored: StoredReceipt, seal: Seal) -> str:
    if stored.position is None:
        raise NotFoundError("position of receipt", stored.id)
    from batonpass.ledger.seals import leaves_of  # noqa: PLC0415 - lists do not need it

    index = stored.position - 1
    return format_proof(SealProof(index, tuple(inclusion_proof(leaves_of(view, seal), index)), seal.note))


def _say_receipt(view: LedgerView, stored: StoredReceipt, receipt: Receipt) -> None:
    say(
        paint(f"{receipt.kind} {ending(receipt.id, 6)}", bold=True),
        f" · {moment(receipt.at)} · {_whose(view, receipt)}",
    )
    rows = [[name, _inline(value)] for name, value in signed_body(stored).items()]
    rows += [
        ["mode", receipt.mode],
        ["stream", f"{receipt.stream} · seq {receipt.seq} · epoch {receipt.epoch}"],
        ["position", "not sequenced yet" if stored.position is None else f"{stored.position:,}"],
        ["digest", digest(stored.payload)],
        ["previous", receipt.previous],
        ["recorded by", f"{receipt.relay} · key {receipt.relay_key[:16]}"],
    ]
    if receipt.cosigner is not None:
        rows.append(["signed by", f"key {receipt.cosigner[:16]} as well"])
    rows += [
        [name, value] for name, value in (("root", receipt.root), ("session", receipt.session)) if value is not None
    ]
    table([[paint(name, dim=True), value] for name, value in rows], indent="  ")
    for text in read_texts(view, receipt).values():
        say()
        say_content(text, at_most=_LINES)
    say()
    say(paint(receipt.id, dim=True))


def _inline(value: object) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _whose(view: LedgerView, receipt: Receipt) -> str:
    try:
        run = view.get_run(RunId(receipt.stream))
    except NotFoundError:
        return f"{receipt.stream.partition('_')[0]} {ending(receipt.stream)}"
    return f"{name_of(run)} · {Tasks(view).first_line(run)}"


def _say_match(match: Match) -> None:
    place = match.field if match.line is None or match.line == 1 else f"{match.field}:{match.line}"
    say(
        paint(f"{moment(match.at)}  ", dim=True),
        f"{match.kind:<17}  {match.agent} ",
        f"{ending(match.receipt, 6)}  ",
        paint(f"{place}: ", dim=True),
        match.before.lstrip(),
        paint(match.found, "red", bold=True),
        match.after.rstrip(),
    )
