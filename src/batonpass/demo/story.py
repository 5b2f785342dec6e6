"""The main story of the demonstration, and parts that all stories share. Each step has happened when it is yielded."""

from collections.abc import Iterator
from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from typing import Final

from msgspec import Struct

from batonpass.audit.short_ids import ending
from batonpass.demo.examples import Analysis, load_analysis
from batonpass.demo.tampered_copy import change_byte, copy_ledger, delete_tree
from batonpass.errors import ContentMismatchError, SealError, VerificationError
from batonpass.handoff.history.past_calls import Resumption, read_resumption
from batonpass.model.base.ids import HandoffId, RunId, StreamId
from batonpass.model.bodies.body import HandoffCompleted
from batonpass.model.ledger.receipt import Receipt
from batonpass.model.ledger.run import Run
from batonpass.records.call import CallRecord, find_calls
from batonpass.records.lineage import Tasks
from batonpass.records.text import read_receipt
from batonpass.relay import Relay
from batonpass.store.home import HOME_NAME
from batonpass.store.port import LedgerView, ReceiptQuery

FLIPPED: Final = "flipped"
SHORTENED: Final = "shortened"
SEAL: Final = "seal.txt"

_BOB: Final = "user:bob"
_TASK: Final = "Draft the summary for Ana"
_NAME_AT: Final = len("Draft the summary for ")
_LONGEST_WAIT: Final = timedelta(seconds=60)


class StoryTone(StrEnum):
    """The tone of a line, which decides its colour."""

    PLAIN = "plain"
    QUIET = "quiet"
    GOOD = "good"
    BAD = "bad"


class StoryLine(Struct, frozen=True):
    """One line to print."""

    text: str
    tone: StoryTone = StoryTone.PLAIN


class Step(Struct, frozen=True):
    """One step of a story: its title, and lines about the events."""

    title: str
    lines: tuple[StoryLine, ...]


def play(directory: Path) -> Iterator[Step]:
    """Play the story in a directory, step by step. Raises `VerificationError` if an answer is not true."""
    analysis = load_analysis()
    ledger = directory / HOME_NAME / "ledger.db"
    with analysis.opened(directory) as relay:
        lead, drafting = analysis.lead(relay)
        yield Step("Ana asks a question; a lead delegates it, with everything it knows", tuple(_tree(relay, lead.id)))
        pid = analysis.kill_in_second_call(directory)
        yield Step(
            "The drafter works in its own process and is killed during its second call", _killed(relay, drafting, pid)
        )
        analysis.worker_process(directory).wait()
        handoff = relay.handoff(drafting)
        result = handoff.wait(_LONGEST_WAIT)
        handoff.verify(by="user:ana", check=(directory / "summary.md").is_file)
        lead.report("the summary is in summary.md")
        lead.close()
        yield Step(
            "Another worker takes over when the lease has expired", tuple(_resumed(analysis, directory, result.attempt))
        )
        yield Step("The trail: who did what, and for whom", tuple(_tree(relay, lead.id)))
        hidden = _hide_something(relay)
        yield verified_step(relay)
        seal = relay.admin.seal()
    (directory / SEAL).write_text(seal.note, encoding="utf-8")
    yield _flip(copy_ledger(ledger, directory / FLIPPED))
    yield _shorten(copy_ledger(ledger, directory / SHORTENED), hidden, seal.note)


def _opened(ledger: Path) -> Relay:
    return Relay.open(f"sqlite:///{ledger}", home=ledger.parent)


def _hide_something(relay: Relay) -> RunId:
    """Record another tree, which somebody might like to hide."""
    with relay.start("Send the customer list to a partner", by=_BOB) as lead:
        with lead.hand_off("exporter", "Upload all customers as CSV") as exporter:
            exporter.call(upload, "customers.csv")
            exporter.report("uploaded")
        lead.report("sent")
    return lead.id


def upload(file: str) -> str:
    """Pretend to send a file away."""
    return f"uploaded 48,112 rows of {file}"


def _killed(relay: Relay, drafting: HandoffId, pid: int) -> tuple[StoryLine, ...]:
    past = _past(relay, drafting)
    return (
        StoryLine(f"process {pid} got SIGKILL; the ledger knows how far it got", StoryTone.BAD),
        *(StoryLine(f"finished: {call.tool}", StoryTone.GOOD) for call in past.finished),
        *(
            StoryLine(f"in doubt: {call.tool}: requested, and its outcome is unknown", StoryTone.BAD)
            for call in past.in_doubt
        ),
    )


def _resumed(analysis: Analysis, directory: Path, attempt: int) -> Iterator[StoryLine]:
    yield StoryLine(
        f"attempt {attempt}: finished calls are not made again; publish is repeated, because it declares that it may be"
    )
    for line in (directory / "world.txt").read_text(encoding="utf-8").splitlines():
        yield StoryLine(f"done exactly once: {line}", StoryTone.GOOD)
    undisturbed = directory / "undisturbed"
    undisturbed.mkdir()
    with analysis.opened(undisturbed) as relay:
        lead, drafting = analysis.lead(relay)
        relay.handoff(drafting).run(lease=relay.claim(holder="demo", lease_for=_LONGEST_WAIT))
        lead.close()
    same = (directory / "summary.md").read_bytes() == (undisturbed / "summary.md").read_bytes()
    if not same:
        raise VerificationError("the summary differs from that of an undisturbed run; please report this")
    yield StoryLine("the summary equals that of an undisturbed run, byte for byte", StoryTone.GOOD)


def _past(relay: Relay, handoff: HandoffId) -> Resumption:
    with relay.store.view() as view:
        return read_resumption(view, view.get_handoff(handoff))


def _flip(ledger: Path) -> Step:
    offset = change_byte(ledger, _TASK.encode(), _NAME_AT, b"E")
    with _opened(ledger) as relay:
        finding = _finding(relay, ContentMismatchError)
    return Step(
        "Change one byte in a copy: the summary for Ana becomes one for Ena",
        (
            StoryLine(f"byte {offset:,} of the file: 'A' is now 'E'", StoryTone.QUIET),
            StoryLine(f"found: {finding.problem}", StoryTone.BAD),
            StoryLine(
                f"       stream {finding.stream}, seq {finding.seq}, field {finding.field}  [{finding.code}]",
                StoryTone.BAD,
            ),
        ),
    )


def _shorten(ledger: Path, root: RunId, note: str) -> Step:
    delete_tree(ledger, root)
    with _opened(ledger) as relay:
        left = relay.verify()
        finding = _finding(relay, SealError, note)
    return Step(
        "Delete bob's whole tree from another copy, and the seal that is kept beside it",
        (
            StoryLine(
                f"without the seal: whole, {left.receipts} receipts; nothing shows that others are gone", StoryTone.GOOD
            ),
            StoryLine(f"with the seal:    {finding.problem}", StoryTone.BAD),
            StoryLine(f"                  {finding.stream}, field {finding.field}  [{finding.code}]", StoryTone.BAD),
        ),
    )


def _finding(relay: Relay, expected: type[VerificationError], *notes: str) -> VerificationError:
    try:
        relay.verify(seals=notes)
    except expected as finding:
        return finding
    raise VerificationError("the demonstration changed a ledger and it was not found; please report this")


def _tree(relay: Relay, root: RunId) -> Iterator[StoryLine]:
    with relay.store.view() as view:
        run = view.get_run(root)
        tasks = Tasks(view)
        yield StoryLine(f"{run.principal}: {tasks.first_line(run)}")
        yield from _branch(view, tasks, run, "", last=True)


def _branch(view: LedgerView, tasks: Tasks, run: Run, indent: str, *, last: bool) -> Iterator[StoryLine]:
    task = "" if run.parent is None else f"  {tasks.first_line(run)}"
    yield StoryLine(f"{indent}{'└─ ' if last else '├─ '}{run.agent} {ending(run.id)}  {run.state}{task}")
    deeper = indent + ("   " if last else "│  ")
    receipts = [*map(read_receipt, view.find_receipts(ReceiptQuery(stream=StreamId(run.id))))]
    children = sorted(view.find_runs(parent=run.id), key=lambda child: child.id)
    inside = deeper + ("│  " if children else "   ")
    yield from _kept_lines(receipts[-1], inside)
    for call in find_calls(receipts).values():
        yield _call_line(call, inside)
    for child in children:
        yield from _branch(view, tasks, child, deeper, last=child is children[-1])


def _call_line(call: CallRecord, indent: str) -> StoryLine:
    if call.error is not None:
        return StoryLine(f"{indent}{call.tool} failed: {call.error}", StoryTone.BAD)
    if call.outcome is None:
        return StoryLine(f"{indent}{call.tool} requested, no outcome: in doubt", StoryTone.BAD)
    return StoryLine(f"{indent}{call.tool} completed", StoryTone.QUIET)


def _kept_lines(receipt: Receipt, indent: str) -> Iterator[StoryLine]:
    if isinstance(receipt.body, HandoffCompleted) and receipt.body.kept:
        yield StoryLine(
            f"{indent}{receipt.body.kept} finished call of the attempt before it, not made again", StoryTone.QUIET
        )


def verified_step(relay: Relay, title: str = "Verify everything: every byte, signature, link and text") -> Step:
    """Verify the ledger and return the counts of the checks, as a step. Raises `VerificationError`."""
    evidence = relay.verify()
    whole = (
        f"whole: {evidence.receipts} receipts in {evidence.streams} streams, {evidence.signatures} signatures, "
        f"{evidence.contents} texts"
    )
    return Step(title, (StoryLine(whole, StoryTone.GOOD),))


def require_answer(true: bool, what: str) -> None:  # noqa: FBT001 - the result of a comparison
    """Raise `VerificationError` if the ledger's answer differs from the events."""
    if not true:
        raise VerificationError(f"the ledger's answer differs from what happened: {what}; please report this")


def confirmed(text: str) -> StoryLine:
    """Return a line about an answer that was compared with the events."""
    return StoryLine(f"✓ confirmed: {text}", StoryTone.GOOD)
