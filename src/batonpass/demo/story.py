"""The story that the demonstration tells, step by step; each step has happened when it is yielded."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

from batonpass.audit.evidence import Evidence
from batonpass.audit.lookup import Call, Tasks, ending, find_calls, read_receipt
from batonpass.demo.tampering import change_byte, copy_ledger, delete_tree
from batonpass.errors import ContentMismatchError, SealError, VerificationError
from batonpass.ledger.recording import Recording, Working
from batonpass.model.ids import AgentId, PrincipalId, RunId, StreamId
from batonpass.model.run import Run
from batonpass.relay import Relay
from batonpass.store.home import HOME_NAME
from batonpass.store.port import LedgerView, ReceiptQuery

FLIPPED: Final = "flipped"
SHORTENED: Final = "shortened"
SEAL: Final = "seal.txt"

_ANA: Final = PrincipalId("user:ana")
_BOB: Final = PrincipalId("user:bob")
_REFUND: Final = "Refund 100.00 EUR for order 1042"
_AMOUNT_AT: Final = len("Refund ")


class Tone(StrEnum):
    """How a line is meant."""

    PLAIN = "plain"
    QUIET = "quiet"
    GOOD = "good"
    BAD = "bad"


@dataclass(frozen=True, slots=True)
class Line:
    """One line to print."""

    text: str
    tone: Tone = Tone.PLAIN


@dataclass(frozen=True, slots=True)
class Step:
    """Something that was done, and what came of it."""

    title: str
    lines: tuple[Line, ...]


def play(directory: Path) -> Iterator[Step]:
    """Do everything in a directory, step by step. Raises `VerificationError` if something is not found as told."""
    ledger = directory / HOME_NAME / "ledger.db"
    with _opened(ledger) as relay:
        kept, hidden = _record(relay.recording)
        with relay.store.view() as view:
            lines = tuple(line for root in (kept, hidden) for line in _tree(view, view.get_run(root)))
        yield Step("Record two trees of runs; each line is signed and hangs from the one before", lines)
        evidence = relay.verify()
        yield Step("Verify everything: every byte, signature, link and word", _evidence_lines(evidence))
        seal = relay.seal()
    (directory / SEAL).write_text(seal.note, encoding="utf-8")
    lines = tuple(Line(line, Tone.QUIET) for line in seal.note.splitlines() if line)
    yield Step(f"Seal it, and keep the seal elsewhere: one signature over {seal.size} receipts", lines)
    yield _flip(copy_ledger(ledger, directory / FLIPPED))
    yield _shorten(copy_ledger(ledger, directory / SHORTENED), hidden, seal.note)


def _opened(ledger: Path) -> Relay:
    return Relay.open(f"sqlite:///{ledger}", home=ledger.parent)


def _record(recording: Recording) -> tuple[RunId, RunId]:
    """Record a lead with two workers and a call that failed; then another tree, which somebody would like to hide."""
    lead = recording.start("Refund order 1042 and tell the customer", agent=AgentId("lead"), by=_ANA)
    payments = _delegate(recording, lead, "payments", _REFUND)
    _call(recording, payments, "refund", '{"order":1042,"amount":"100.00","currency":"EUR"}', "refunded")
    recording.close(payments, report="refunded 100.00 EUR")
    mailer = _delegate(recording, lead, "mailer", "Tell the customer that the money is on its way")
    failed = recording.request(mailer, "send_mail", '{"to":"customer of order 1042"}')
    recording.fail_call(mailer, failed, "smtp.timeout", "no answer after 30 s")
    _call(recording, mailer, "send_mail", '{"to":"customer of order 1042"}', "accepted")
    recording.close(mailer, report="told at the second attempt")
    recording.close(lead, report="refunded and told")

    other = recording.start("Send the customer list to a partner", agent=AgentId("lead"), by=_BOB)
    exporter = _delegate(recording, other, "exporter", "Upload all customers as CSV")
    _call(recording, exporter, "upload", '{"file":"customers.csv"}', "uploaded 48,112 rows")
    recording.close(exporter, report="uploaded")
    recording.close(other, report="sent")
    return lead.run.id, other.run.id


def _delegate(recording: Recording, parent: Working, to: str, task: str) -> Working:
    return recording.accept(recording.offer(parent, AgentId(to), task))


def _call(recording: Recording, working: Working, tool: str, arguments: str, result: str) -> None:
    recording.finish(working, recording.request(working, tool, arguments), result)


def _flip(ledger: Path) -> Step:
    offset = change_byte(ledger, _REFUND.encode(), _AMOUNT_AT, b"9")
    with _opened(ledger) as relay:
        finding = _finding(relay, ContentMismatchError)
    return Step(
        "Change one byte in a copy: 100.00 EUR becomes 900.00 EUR",
        (
            Line(f"byte {offset:,} of the file: '1' is now '9'", Tone.QUIET),
            Line(f"found: {finding.problem}", Tone.BAD),
            Line(
                f"       stream {finding.stream}, seq {finding.seq}, field {finding.field}  [{finding.code}]", Tone.BAD
            ),
        ),
    )


def _shorten(ledger: Path, root: RunId, note: str) -> Step:
    delete_tree(ledger, root)
    with _opened(ledger) as relay:
        left = relay.verify()
        finding = _finding(relay, SealError, note)
    return Step(
        "Delete bob's whole tree from another copy, and the seal that lies beside it",
        (
            Line(f"without the seal: whole, {left.receipts} receipts; nothing left tells of the others", Tone.GOOD),
            Line(f"with the seal:    {finding.problem}", Tone.BAD),
            Line(f"                  {finding.stream}, field {finding.field}  [{finding.code}]", Tone.BAD),
        ),
    )


def _finding(relay: Relay, expected: type[VerificationError], *notes: str) -> VerificationError:
    try:
        relay.verify(seals=notes)
    except expected as finding:
        return finding
    raise VerificationError("the demonstration changed a ledger and it was not found; please report this")


def _tree(view: LedgerView, root: Run) -> Iterator[Line]:
    tasks = Tasks(view)
    yield Line(f"{root.principal}: {tasks.first_line(root)}")
    yield from _branch(view, tasks, root, "", last=True)


def _branch(view: LedgerView, tasks: Tasks, run: Run, indent: str, *, last: bool) -> Iterator[Line]:
    task = "" if run.parent is None else f"  {tasks.first_line(run)}"
    yield Line(f"{indent}{'└─ ' if last else '├─ '}{run.agent} {ending(run.id)}  {run.state}{task}")
    deeper = indent + ("   " if last else "│  ")
    receipts = map(read_receipt, view.find_receipts(ReceiptQuery(stream=StreamId(run.id))))
    children = sorted(view.find_runs(parent=run.id), key=lambda child: child.id)
    for call in find_calls(receipts):
        yield _call_line(call, deeper + ("│  " if children else "   "))
    for child in children:
        yield from _branch(view, tasks, child, deeper, last=child is children[-1])


def _call_line(call: Call, indent: str) -> Line:
    if call.error is not None:
        return Line(f"{indent}{call.tool} failed: {call.error}", Tone.BAD)
    return Line(f"{indent}{call.tool} completed", Tone.QUIET)


def _evidence_lines(evidence: Evidence) -> tuple[Line, ...]:
    return (
        Line(
            f"whole: {evidence.receipts} receipts in {evidence.streams} streams, {evidence.signatures} signatures, "
            f"{evidence.contents} texts",
            Tone.GOOD,
        ),
    )
