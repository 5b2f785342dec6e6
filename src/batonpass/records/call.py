"""A call: what was asked, what became of it, and what was decided about it, from all receipts that tell of it."""

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any, Final, TypeAlias

from msgspec import Struct

from batonpass.errors import NotFoundError
from batonpass.model.base.content_names import ARGUMENTS, RESULT
from batonpass.model.base.ids import CallId, Digest, RunId, StreamId
from batonpass.model.base.kinds import Mode
from batonpass.model.base.label import Label, Source
from batonpass.model.bodies.body import (
    Changed,
    Effect,
    Gate,
    HandoffLate,
    HandoffSettled,
    RunSettled,
    Settlement,
    ToolCached,
    ToolCompleted,
    ToolDenied,
    ToolFailed,
    ToolHeld,
    ToolRequested,
)
from batonpass.model.ledger.content import ContentRef
from batonpass.model.ledger.receipt import Receipt, StoredReceipt
from batonpass.model.ledger.receipt_taint import is_made_of_outside
from batonpass.model.ledger.run import Run, RunState
from batonpass.records.text import read_contents, read_receipt
from batonpass.store.port import LedgerView, ReceiptQuery

# What is told of a call that was made although its grant, were it enforced, would have stopped it.
BEYOND: Final = frozenset({"would_deny.grant", "would_deny.limit", "would_deny.guard", "effect.outside-grant"})

Asked: TypeAlias = ToolRequested | ToolDenied | ToolHeld | ToolCached
Ended: TypeAlias = ToolCompleted | ToolFailed
Settled: TypeAlias = HandoffSettled | RunSettled


class CallOutcome(StrEnum):
    """What became of a call."""

    COMPLETED = "completed"
    FAILED = "failed"
    DENIED = "denied"  # never made
    HELD = "held"  # not made: it waits, or waited, for somebody
    CACHED = "cached"  # not made: the result of an earlier one was fresh enough


class CallRecord(Struct, frozen=True, kw_only=True):
    """One call. It begins with what was asked, and knows how it ended, if anybody does."""

    receipt: Receipt  # of what was asked: the request, the denial, the hold, or the answer from the cache
    asked: Asked
    ending: Receipt | None = None  # of the outcome
    ended: Ended | None = None
    settled: Settled | None = None  # what somebody decided about it when it was in doubt
    late: HandoffLate | None = None  # its outcome came after its attempt was over
    given: ContentRef | None = None  # of one from the cache: the result of the call that was made
    again: CallId | None = None  # another call with its key that completed: it was repeated
    is_over: bool = True  # nobody waits for its outcome any more: its run, or the process that made it, has ended

    @property
    def id(self) -> CallId:
        """Return what names it."""
        return self.asked.call

    @property
    def run(self) -> RunId:
        """Return whose call it is."""
        return self.asked.run

    @property
    def tool(self) -> str:
        """Return what was to be called."""
        return self.asked.tool

    @property
    def mode(self) -> Mode:
        """Return whether its run was held to a grant."""
        return self.receipt.mode

    @property
    def at(self) -> datetime:
        """Return when it was asked for."""
        return self.receipt.at

    @property
    def content(self) -> Mapping[str, ContentRef]:
        """Return the contents of what was asked."""
        return self.receipt.content

    @property
    def arguments(self) -> ContentRef | None:
        """Return what it was called with."""
        return self.content.get(ARGUMENTS)

    @property
    def result(self) -> ContentRef | None:
        """Return what it gave back."""
        return self.given if self.ending is None else self.ending.content.get(RESULT)

    @property
    def outcome(self) -> CallOutcome | None:
        """Return what became of it; None while nobody knows."""
        match self.asked:
            case ToolDenied():
                return CallOutcome.DENIED
            case ToolHeld():
                return CallOutcome.HELD
            case ToolCached():
                return CallOutcome.CACHED
            case _:
                if self.ended is None:
                    return None
                return CallOutcome.COMPLETED if isinstance(self.ended, ToolCompleted) else CallOutcome.FAILED

    @property
    def is_finished(self) -> bool:
        """Return whether whoever asks for the very same call again is given its result."""
        return self.outcome in {CallOutcome.COMPLETED, CallOutcome.CACHED}

    @property
    def is_made(self) -> bool:
        """Return whether it was made, or may have been."""
        return isinstance(self.asked, ToolRequested)

    @property
    def ended_at(self) -> datetime | None:
        """Return when it was over; what was never made was over at once."""
        if not self.is_made:
            return self.at
        return None if self.ending is None else self.ending.at

    @property
    def error(self) -> str | None:
        """Return the code of what went wrong with one that failed."""
        return self.ended.error if isinstance(self.ended, ToolFailed) else None

    @property
    def rule(self) -> str | None:
        """Return by which rule it was denied or held."""
        return self.asked.rule if isinstance(self.asked, ToolDenied | ToolHeld) else None

    @property
    def gate(self) -> Gate | None:
        """Return who has to let it be made, if it was held."""
        return self.asked.gate if isinstance(self.asked, ToolHeld) else None

    @property
    def takes_proof(self) -> bool:
        """Return whether letting it be made takes a decision that an approver's key signed, if it was held."""
        return isinstance(self.asked, ToolHeld) and self.asked.proven

    @property
    def takes_people(self) -> int:
        """Return how many have to let it be made, if it was held."""
        return self.asked.approvals if isinstance(self.asked, ToolHeld) else 0

    @property
    def waits_until(self) -> datetime | None:
        """Return when it is refused if nobody has let it be made by then, if it was held."""
        return self.asked.until if isinstance(self.asked, ToolHeld) else None

    @property
    def why(self) -> str | None:
        """Return the error of a failed one, the rule of one that was denied or held."""
        return self.error or self.rule

    @property
    def made(self) -> CallId:
        """Return the call whose result it has: of one from the cache an earlier one, else itself."""
        return self.asked.made if isinstance(self.asked, ToolCached) else self.id

    @property
    def key(self) -> Digest | None:
        """Return what tells whether another is the same call: tool, arguments, and which of several such it is."""
        return None if isinstance(self.asked, ToolDenied) else self.asked.key

    @property
    def target(self) -> Digest | None:
        """Return what it changes, keyed; None if it names nothing."""
        return self.asked.target if isinstance(self.asked, ToolRequested | ToolHeld) else None

    @property
    def reads(self) -> bool:
        """Return whether it is declared to change nothing."""
        return isinstance(self.asked, ToolCached) or (not isinstance(self.asked, ToolDenied) and self.asked.reads)

    @property
    def idempotent(self) -> bool:
        """Return whether making it twice under its key has one effect."""
        return isinstance(self.asked, ToolRequested) and self.asked.idempotent

    @property
    def reversible(self) -> bool:
        """Return whether it can be undone, as its tool declares."""
        return isinstance(self.asked, ToolRequested) and self.asked.reversible

    @property
    def tiers(self) -> tuple[str, ...]:
        """Return how much depends on it, as its tool declares."""
        return self.asked.tiers if isinstance(self.asked, ToolRequested | ToolHeld) else ()

    @property
    def label(self) -> Label | None:
        """Return the label of all that its run knew when it was asked for."""
        return self.asked.label if isinstance(self.asked, ToolRequested | ToolHeld) else None

    @property
    def untrusted(self) -> tuple[Source, ...]:
        """Return whose words stand in its arguments, of those that came from outside."""
        return self.asked.untrusted if isinstance(self.asked, ToolRequested | ToolHeld) else ()

    @property
    def credential(self) -> Digest | None:
        """Return the secret that it acted with, keyed; None if it acted with none."""
        return self.asked.credential if isinstance(self.asked, ToolRequested) else None

    @property
    def asked_flags(self) -> tuple[str, ...]:
        """Return what was remarkable about it before it was made."""
        return self.asked.flags if isinstance(self.asked, ToolRequested | ToolCached) else ()

    @property
    def flags(self) -> tuple[str, ...]:
        """Return what is remarkable about the request, and then about the outcome."""
        return self.asked_flags if self.ended is None else (*self.asked_flags, *self.ended.flags)

    @property
    def would(self) -> tuple[tuple[str, str], ...]:
        """Return what a grant or a policy would have done, had it been enforced: what, and by which rule."""
        told = (flag.partition(".") for flag in self.flags)
        return tuple((what, rule) for what, _, rule in told if what.startswith("would_"))

    @property
    def is_beyond(self) -> bool:
        """Return whether it did more than its run was granted: its grant stopped nobody, or a command wrote more."""
        return not BEYOND.isdisjoint(self.flags)

    @property
    def changes(self) -> tuple[Changed, ...]:
        """Return the files that it changed."""
        return () if self.ended is None else self.ended.changes

    @property
    def effects(self) -> tuple[Effect, ...]:
        """Return what else it changed, as its tool says."""
        return () if self.ended is None else self.ended.effects

    @property
    def commits(self) -> tuple[str, ...]:
        """Return the commits that it made, or brought into the history of the work tree."""
        return () if self.ended is None else self.ended.commits

    @property
    def cost(self) -> int:
        """Return what it cost, in millionths."""
        return self.ended.cost if isinstance(self.ended, ToolCompleted) else 0

    @property
    def fresh_until(self) -> datetime | None:
        """Return until when its result may be given again instead of making it; None if it may not."""
        return self.ended.fresh_until if isinstance(self.ended, ToolCompleted) else None

    @property
    def took_us(self) -> int | None:
        """Return how long it took, in microseconds."""
        return None if self.ended is None else self.ended.took_us

    @property
    def exit_code(self) -> int | None:
        """Return how a command ended."""
        return None if self.ended is None else self.ended.exit_code

    @property
    def is_external(self) -> bool:
        """Return whether what it gave back came from outside."""
        return self.ending is not None and is_made_of_outside(self.ending)

    @property
    def settlement(self) -> Settlement | None:
        """Return what somebody decided when it was in doubt."""
        return None if self.settled is None else self.settled.settlement

    @property
    def in_doubt(self) -> bool:
        """Return whether nobody knows if it happened, nobody will say so any more, and nobody has decided about it."""
        open_ended = self.outcome is None and self.is_over and not self.reads
        return open_ended and self.settled is None and self.again is None


class Calls:
    """Calls as their receipts come, in whatever order streams are read."""

    def __init__(self, runs: Iterable[Run] = ()) -> None:
        self._open = {run.id for run in runs if run.state is RunState.OPEN}
        self._asked: dict[CallId, tuple[Receipt, Asked]] = {}
        self._ended: dict[CallId, tuple[Receipt, Ended]] = {}
        self._settled: dict[CallId, Settled] = {}
        self._late: dict[CallId, HandoffLate] = {}
        self._epochs: dict[RunId, int] = {}

    def take(self, receipt: Receipt) -> None:
        """Take in what a receipt says of a call; one that speaks of something else says nothing here."""
        match receipt.body:
            case ToolRequested() | ToolDenied() | ToolHeld() | ToolCached() as body:
                self._asked[body.call] = receipt, body
            case ToolCompleted() | ToolFailed() as body:
                self._ended.setdefault(body.call, (receipt, body))
            case HandoffSettled() | RunSettled() as body:
                self._settled[body.call] = body
            case HandoffLate() as body:
                self._late[body.call] = body
            case _:
                pass
        if receipt.stream.startswith("run_"):
            self._epochs[RunId(receipt.stream)] = receipt.epoch

    def all(self) -> dict[CallId, CallRecord]:
        """Return the calls so far, in the order in which they were asked for."""
        completed = {
            key: call
            for call, (_, body) in self._ended.items()
            if isinstance(body, ToolCompleted) and (key := self._key(call)) is not None
        }
        return {call: self._record(call, completed) for call in self._asked}

    def _key(self, call: CallId) -> Digest | None:
        asked = self._asked[call][1] if call in self._asked else None
        return asked.key if isinstance(asked, ToolRequested) else None

    def _record(self, call: CallId, completed: Mapping[Digest, CallId]) -> CallRecord:
        receipt, asked = self._asked[call]
        ending, ended = self._ended.get(call, (None, None))
        key = self._key(call)
        # In a process that is lost, as in a run that is over, nobody waits for an outcome any more.
        is_over = asked.run not in self._open or receipt.epoch < self._epochs.get(asked.run, receipt.epoch)
        return CallRecord(
            receipt=receipt,
            asked=asked,
            ending=ending,
            ended=ended,
            settled=self._settled.get(call),
            late=self._late.get(call),
            again=completed.get(key) if key is not None and ended is None else None,
            is_over=is_over,
        )


def outcome_in(receipt: Receipt) -> Ended | None:
    """Return how a call ended, if a receipt tells of that."""
    return receipt.body if isinstance(receipt.body, ToolCompleted | ToolFailed) else None


def call_of(receipt: Receipt) -> CallId | None:
    """Return the call that a receipt of a run asks for, or says the outcome of; None if it is about something else."""
    return receipt.body.call if isinstance(receipt.body, Asked | Ended) else None


def call_asked(receipt: Receipt) -> CallRecord | None:
    """Return a call as far as the receipt tells that asks for it, holds, denies or answers it; None of any other."""
    return CallRecord(receipt=receipt, asked=receipt.body) if isinstance(receipt.body, Asked) else None


def find_calls(receipts: Iterable[Receipt], runs: Iterable[Run] = ()) -> dict[CallId, CallRecord]:
    """Return the calls that receipts tell of; of runs that are not given, as if they were over."""
    calls = Calls(runs)
    for receipt in receipts:
        calls.take(receipt)
    return calls.all()


def read_calls(view: LedgerView, run: Run) -> dict[CallId, CallRecord]:
    """Return the calls of a run, with what was decided about those in doubt."""
    streams = [StreamId(run.id), *([] if run.handoff is None else [StreamId(run.handoff)])]
    found = find_calls((read_receipt(stored) for one in streams for stored in _about_calls(view, one)), [run])
    return {call: record for call, record in found.items() if record.run == run.id}


def read_call(view: LedgerView, receipt: Receipt) -> CallRecord | None:
    """Return the call that a receipt of a run is about; None if it is about none, or nothing says what was asked.

    It costs what stands between request and outcome, and not what its run did besides.
    """
    if not isinstance(receipt.body, Asked | Ended):
        return None
    asked = receipt if isinstance(receipt.body, Asked) else _find_asked(view, receipt, receipt.body.call)
    if asked is None or not isinstance(asked.body, Asked):
        return None
    ending = receipt if isinstance(receipt.body, Ended) else _find_ended(view, asked, asked.body.call)
    if ending is not None and isinstance(ending.body, Ended):
        return CallRecord(receipt=asked, asked=asked.body, ending=ending, ended=ending.body)
    if not isinstance(asked.body, ToolRequested):
        return CallRecord(receipt=asked, asked=asked.body)
    # Whether one without an outcome is in doubt depends on what its run, and others, did since.
    return read_calls(view, view.get_run(asked.body.run)).get(asked.body.call)


def get_call(view: LedgerView, stored: StoredReceipt) -> CallRecord:
    """Return the call that a stored receipt is about. Raises `NotFoundError`."""
    found = read_call(view, read_receipt(stored))
    if found is None:
        raise NotFoundError("call of receipt", stored.id)
    return found


def find_call(view: LedgerView, call: CallId) -> CallRecord | None:
    """Return a call by its whole id; None if nothing is recorded of it."""
    for stored in view.find_call_receipts(call):
        receipt = read_receipt(stored)
        if call_of(receipt) == call:
            return read_call(view, receipt)
    return None


def read_arguments(view: LedgerView, call: CallRecord) -> dict[str, Any] | None:
    """Return what a call was made with, by name; None if that is gone or cannot be read."""
    if call.arguments is None:
        return None
    return arguments_in(read_contents(view, {ARGUMENTS: call.arguments})[ARGUMENTS].body)


def arguments_in(body: bytes | None) -> dict[str, Any] | None:
    """Return what a call was made with, by the content that says so: alone, or beside how they were given."""
    try:
        read = None if body is None else json.loads(body)
    except (ValueError, RecursionError):
        return None
    given = read.get(ARGUMENTS, read) if isinstance(read, dict) else None
    return given if isinstance(given, dict) else None


def _about_calls(view: LedgerView, stream: StreamId) -> Iterator[StoredReceipt]:
    return view.find_receipts(ReceiptQuery(stream=stream))


def _find_asked(view: LedgerView, outcome: Receipt, call: CallId) -> Receipt | None:
    """Return the receipt of a call's request, most often the one before that of its outcome."""
    for seq in range(outcome.seq - 1, 0, -1):
        try:
            before = view.get_receipt_at(outcome.stream, seq)
        except NotFoundError:
            continue  # somebody deleted it; the check of the receipts says so
        # Its bytes are read only if they could be the request: a run may have made many calls at once.
        if call.encode() in before.payload and isinstance((found := read_receipt(before)).body, ToolRequested):
            return found
    return None


def _find_ended(view: LedgerView, asked: Receipt, call: CallId) -> Receipt | None:
    """Return the receipt of a call's outcome, most often the one after that of its request."""
    if not isinstance(asked.body, ToolRequested):
        return None
    last = view.get_stream(asked.stream).seq
    for seq in range(asked.seq + 1, last + 1):
        try:
            after = view.get_receipt_at(asked.stream, seq)
        except NotFoundError:
            continue
        if call.encode() in after.payload and isinstance((found := read_receipt(after)).body, Ended):
            return found
    return None
