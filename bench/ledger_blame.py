"""Blame for one line of a file in a ledger of a million receipts: the ledger's part, without asking git."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Final

from batonpass.accounts.blame.file_blame import AskedFile, Lines, blame_file
from batonpass.accounts.blame.file_changes import FilePlace
from batonpass.attribution.changes.change import FileChange, Hunk, digest_of
from batonpass.attribution.changes.change_document import encode_change
from batonpass.ledger.draft import Draft
from batonpass.model.base.ids import AgentId, RunId, StreamId, new_call_id, new_handoff_id, new_run_id
from batonpass.model.base.lifecycle import Carrier, State
from batonpass.model.bodies.body import (
    Changed,
    HandoffAccepted,
    HandoffCompleted,
    HandoffInitiated,
    RunStarted,
    ToolCompleted,
    ToolRequested,
)
from batonpass.model.ledger.content import new_content
from batonpass.model.ledger.entry import Touch
from batonpass.model.ledger.key import Signer
from batonpass.model.ledger.receipt import SignedReceipt
from batonpass.signing.ed25519 import Ed25519Signer
from batonpass.testing.builders import ANA, Scribe
from bench.effort import Effort
from bench.ledgers import ARGUMENTS, TOOL, count_receipts, sqlite_ledger
from bench.measure import Act, Samples, time_act
from bench.table import Row, p99, within

_EDITORS: Final = 10  # of one lead
_CALLS: Final = 20  # of one editor
_LINES: Final = 50  # of one file
_CHANGES: Final = 25  # of one file, on average
_RECEIPTS_OF_A_CHANGE: Final = 2.2
_ASKED: Final = 500
_GOAL: Final = 0.020


def measure(scratch: Path, effort: Effort) -> Sequence[Row]:
    """Measure blame for random lines in a small ledger and in a large one."""
    rows = []
    for receipts in (effort.grown[0], effort.grown[-1]):
        with sqlite_ledger(scratch / str(receipts)) as scribe:
            ask = asks(scribe, receipts)
            samples = Samples(tuple(time_act(ask, _ASKED)))
        rows.append(
            Row(
                what=f"blame one line, {receipts:,} receipts, p99",
                ours=p99(samples),
                against="",
                theirs=None,
                goal=within(_GOAL),
            )
        )
    return rows


class _Files:
    """Files as they are now, and how one line of one of them changes."""

    def __init__(self, count: int) -> None:
        self.random = Random(7)
        self.texts = [[f"value_{number}_{line} = 0" for line in range(_LINES)] for number in range(count)]
        self._changes = 0

    def path(self, number: int) -> str:
        return f"src/package_{number % 97}/module_{number}.py"

    def data(self, number: int) -> bytes:
        return "".join(f"{line}\n" for line in self.texts[number]).encode()

    def change(self, run: RunId, at: datetime) -> FileChange:
        """Return the next change of some file, which is made here and now."""
        number, line = self.random.randrange(len(self.texts)), self.random.randrange(_LINES)
        self._changes += 1
        before, old = digest_of(self.data(number)), self.texts[number][line]
        new = self.texts[number][line] = f"value_{number}_{line} = total_of({self._changes})"
        hunk = Hunk(old_start=line + 1, old_count=1, new_start=line + 1, new_count=1, removed=(old,), added=(new,))
        return FileChange(
            call=new_call_id(at),
            run=run,
            at=at,
            path=self.path(number),
            before=before,
            after=digest_of(self.data(number)),
            hunks=(hunk,),
        )


def asks(scribe: Scribe, receipts: int) -> Act:
    """Fill a ledger, and return a question about a random line; each opens its own view, as a command does."""
    files = _Files(max(4, int(receipts / _RECEIPTS_OF_A_CHANGE / _CHANGES)))
    while count_receipts(scribe) < receipts:
        _work(scribe, files)

    def ask() -> None:
        number, line = files.random.randrange(len(files.texts)), files.random.randrange(1, _LINES + 1)
        place = FilePlace(root=Path("/nowhere"), path=files.path(number))
        asked = AskedFile(place=place, data=files.data(number), environment={})
        with scribe.store.view() as view:
            blame_file(view, asked, Lines(first=line, last=line))

    return ask


def _work(scribe: Scribe, files: _Files) -> None:
    """Record a lead with ten editors, each of whom changes files, in two commits."""
    with scribe.store.view() as view:
        genesis = view.info().genesis
    at = datetime.now(UTC)
    lead, signer = new_run_id(at), Ed25519Signer.generate()
    started = RunStarted(run=lead, agent=AgentId("lead"), principal=ANA, run_key=signer.public_key)
    intent = (new_content("intent", "Fix invoice rounding", at),)
    stream = StreamId(lead)
    opening = Draft(stream=stream, body=started, root=lead, anchor=genesis, new=True, cosigner=signer, contents=intent)
    offered = scribe.ledger.append(opening, *(_offer(lead, at) for _ in range(_EDITORS)))
    scribe.ledger.append(*(draft for offer in offered[1:] for draft in _edit(offer, lead, files)))


def _offer(lead: RunId, at: datetime) -> Draft:
    body = HandoffInitiated(
        handoff=new_handoff_id(at),
        run=lead,
        to=AgentId("editor"),
        carrier=Carrier.CALLER,
        state=State.OFFERED,
    )
    return Draft(stream=StreamId(lead), body=body, root=lead, contents=(new_content("task", ARGUMENTS, at),))


def _edit(offer: SignedReceipt, lead: RunId, files: _Files) -> Iterator[Draft]:
    body = offer.receipt.body
    if not isinstance(body, HandoffInitiated):
        return
    at = datetime.now(UTC)
    run, signer = new_run_id(at), Ed25519Signer.generate()
    stream = StreamId(run)
    accepted = HandoffAccepted(
        handoff=body.handoff,
        parent=lead,
        run=run,
        attempt=1,
        agent=body.to,
        principal=ANA,
        run_key=signer.public_key,
        baton=offer.digest,
    )
    yield Draft(stream=stream, body=accepted, root=lead, anchor=offer.digest, new=True, cosigner=signer)
    for _ in range(_CALLS):
        yield from _call(run, lead, signer, files)
    completed = HandoffCompleted(handoff=body.handoff, parent=lead, run=run, attempt=1, children=())
    yield Draft(stream=stream, body=completed, root=lead, cosigner=signer)


def _call(run: RunId, lead: RunId, signer: Signer, files: _Files) -> Iterator[Draft]:
    at = datetime.now(UTC)
    stream = StreamId(run)
    change = files.change(run, at)
    call = new_call_id(at)
    arguments = new_content("arguments", ARGUMENTS, at, media_type="application/json")
    requested = ToolRequested(run=run, call=call, tool=TOOL)
    yield Draft(stream=stream, body=requested, root=lead, cosigner=signer, contents=(arguments,))
    kept = new_content("change.1", encode_change(change), at, media_type="application/json")
    changed = Changed(change=kept.ref.id, before=change.before, after=change.after)
    yield Draft(
        stream=stream,
        body=ToolCompleted(run=run, call=call, changes=(changed,)),
        root=lead,
        cosigner=signer,
        contents=(kept,),
        touches=(Touch(path=change.path, content=kept.ref.id),),
    )
