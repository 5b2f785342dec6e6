"""One call, put together from every receipt about it: the request, the outcome, and later decisions."""

import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from enum import StrEnum
from itertools import chain
from typing import Any, Final, Generic, TypeAlias, TypeVar

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
from batonpass.model.ledger.receipt import Receipt
from batonpass.model.ledger.receipt_taint import is_made_of_outside
from batonpass.model.ledger.run import Run, RunState
from batonpass.records.text import read_contents, read_receipt
from batonpass.store.port import LedgerView, ReceiptQuery

# Flags of a call that was made but exceeded its grant. An enforced grant would have stopped it.
BEYOND: Final = frozenset({"would_deny.grant", "would_deny.limit", "would_deny.guard", "effect.outside-grant"})

Asked: TypeAlias = ToolRequested | ToolDenied | ToolHeld | ToolCached
Ended: TypeAlias = ToolCompleted | ToolFailed
Settled: TypeAlias = HandoffSettled | RunSettled
Value = TypeVar("Value")


class CallOutcome(StrEnum):
    """How a call ended."""

    COMPLETED = "completed"
    FAILED = "failed"
    DENIED = "denied"  # never made
    HELD = "held"  # not made: it is, or was, waiting for an approval
    CACHED = "cached"  # not made: an earlier result was still fresh


class _Field(Generic[Value]):
    """A value that only some receipts about a call have, taken from its request or its outcome."""

    def __init__(self, of: str, default: Value, *, name: str = "") -> None:
        self._of, self._default, self._name = of, default, name

    def __set_name__(self, _: type, name: str) -> None:
        self._name = self._name or name

    def __get__(self, call: object, _: type) -> Value:
        found: Value = getattr(getattr(call, self._of, None), self._name, self._default)
        return found


class CallRecord(Struct, frozen=True, kw_only=True):
    """One call: its request and, if known, its outcome."""

    receipt: Receipt  # the request, the denial, the hold, or the answer from the cache
    asked: Asked
    ending: Receipt | None = None  # the outcome
    ended: Ended | None = None
    settled: Settled | None = None  # the decision about it, if it was in doubt
    late: HandoffLate | None = None  # its outcome arrived after its attempt was over
    late_result: ContentRef | None = None  # its late result
    given: ContentRef | None = None  # the cached result, if the call was answered from the cache
    again: CallId | None = None  # another completed call with the same key: this one was repeated
    is_over: bool = True  # no outcome can arrive any more: its run, or the process that made it, has ended

    # From the request.
    rule = _Field[str | None]("asked", None)  # that denied or held it
    gate = _Field[Gate | None]("asked", None)  # who has to approve it, if it was held
    takes_proof = _Field[bool]("asked", default=False, name="proven")  # held until a signed approval
    takes_people = _Field[int]("asked", 0, name="approvals")  # how many approvals it needs; 0 if it was not held
    key = _Field[Digest | None]("asked", None)  # the same for the same tool, arguments, and number among such calls
    target = _Field[Digest | None]("asked", None)  # keyed digest of its target
    idempotent = _Field[bool]("asked", default=False)  # repeating it with the same key has a single effect
    tiers = _Field[tuple[str, ...]]("asked", ())  # as its tool declares
    label = _Field[Label | None]("asked", None)  # of everything its run knew when it was requested
    untrusted = _Field[tuple[Source, ...]]("asked", ())  # sources whose words appear in its arguments
    credential = _Field[Digest | None]("asked", None)  # keyed digest of the secret it used
    asked_flags = _Field[tuple[str, ...]]("asked", (), name="flags")
    # From the outcome.
    error = _Field[str | None]("ended", None)  # the code, if it failed
    changes = _Field[tuple[Changed, ...]]("ended", ())  # the files it changed
    effects = _Field[tuple[Effect, ...]]("ended", ())  # its other effects, as its tool reported them
    commits = _Field[tuple[str, ...]]("ended", ())  # that it created, or brought into the work tree's history
    cost = _Field[int]("ended", 0)  # in millionths
    fresh_until = _Field[datetime | None]("ended", None)  # until when its result may be reused
    took_us = _Field[int | None]("ended", None)  # microseconds
    exit_code = _Field[int | None]("ended", None)  # of a command

    @property
    def id(self) -> CallId:
        """Return the id of the call."""
        return self.asked.call

    @property
    def run(self) -> RunId:
        """Return the run that asked for it."""
        return self.asked.run

    @property
    def tool(self) -> str:
        """Return the name of its tool."""
        return self.asked.tool

    @property
    def reversible(self) -> bool:
        """Return whether its tool declares that it can be undone. The receipt of a hold says so by its tiers alone."""
        return getattr(self.asked, "reversible", False) or "reversible" in self.tiers

    @property
    def mode(self) -> Mode:
        """Return whether its run was observed or enforced."""
        return self.receipt.mode

    @property
    def at(self) -> datetime:
        """Return when it was requested."""
        return self.receipt.at

    @property
    def content(self) -> Mapping[str, ContentRef]:
        """Return the contents of its request."""
        return self.receipt.content

    @property
    def arguments(self) -> ContentRef | None:
        """Return its arguments."""
        return self.content.get(ARGUMENTS)

    @property
    def result(self) -> ContentRef | None:
        """Return its result."""
        return self.given if self.ending is None else self.ending.content.get(RESULT)

    @property
    def outcome(self) -> CallOutcome | None:
        """Return how it ended; None while that is unknown."""
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
        """Return whether its result is used again when the same call is requested."""
        return self.outcome in {CallOutcome.COMPLETED, CallOutcome.CACHED}

    @property
    def is_made(self) -> bool:
        """Return whether it was made, or may have been."""
        return isinstance(self.asked, ToolRequested)

    @property
    def ended_at(self) -> datetime | None:
        """Return when it ended. A call that was never made ended when it was requested."""
        if not self.is_made:
            return self.at
        return None if self.ending is None else self.ending.at

    @property
    def why(self) -> str | None:
        """Return the error of a failed call, or the rule that denied or held it."""
        return self.error or self.rule

    @property
    def made(self) -> CallId:
        """Return the call that produced its result: an earlier one if it came from the cache, else itself."""
        return self.asked.made if isinstance(self.asked, ToolCached) else self.id

    @property
    def reads(self) -> bool:
        """Return whether its tool is declared to change nothing."""
        return isinstance(self.asked, ToolCached) or (not isinstance(self.asked, ToolDenied) and self.asked.reads)

    @property
    def flags(self) -> tuple[str, ...]:
        """Return the flags of the request, then those of the outcome."""
        return self.asked_flags if self.ended is None else (*self.asked_flags, *self.ended.flags)

    @property
    def would(self) -> tuple[tuple[str, str], ...]:
        """Return each action that enforcement would have taken, with its rule."""
        told = (flag.partition(".") for flag in self.flags)
        return tuple((what, rule) for what, _, rule in told if what.startswith("would_"))

    @property
    def is_beyond(self) -> bool:
        """Return whether it exceeded its grant: the grant was not enforced, or a command wrote more than it may."""
        return not BEYOND.isdisjoint(self.flags)

    @property
    def is_external(self) -> bool:
        """Return whether its result came from outside."""
        return self.ending is not None and is_made_of_outside(self.ending)

    @property
    def settlement(self) -> Settlement | None:
        """Return the decision about it, if it was in doubt."""
        return None if self.settled is None else self.settled.settlement

    @property
    def in_doubt(self) -> bool:
        """Return whether its outcome is unknown, can no longer arrive, and nobody has decided what to do about it."""
        open_ended = self.outcome is None and self.is_over and not self.reads
        return open_ended and self.settled is None and self.again is None


class Calls:
    """Collects calls from receipts, in any order of the streams."""

    def __init__(self, runs: Iterable[Run] = ()) -> None:
        self._open = {run.id for run in runs if run.state is RunState.OPEN}
        self._asked: dict[CallId, tuple[Receipt, Asked]] = {}
        self._ended: dict[CallId, tuple[Receipt, Ended]] = {}
        self._settled: dict[CallId, Settled] = {}
        self._late: dict[CallId, tuple[Receipt, HandoffLate]] = {}
        self._epochs: dict[RunId, int] = {}

    def take(self, receipt: Receipt) -> None:
        """Add a receipt about a call; other receipts are ignored."""
        match receipt.body:
            case ToolRequested() | ToolDenied() | ToolHeld() | ToolCached() as body:
                self._asked[body.call] = receipt, body
            case ToolCompleted() | ToolFailed() as body:
                self._ended.setdefault(body.call, (receipt, body))
            case HandoffSettled() | RunSettled() as body:
                self._settled[body.call] = body
            case HandoffLate() as body:
                self._late[body.call] = receipt, body
            case _:
                pass
        if receipt.stream.startswith("run_"):
            self._epochs[RunId(receipt.stream)] = receipt.epoch

    def all(self) -> dict[CallId, CallRecord]:
        """Return the calls so far, in the order of their requests."""
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
        came, late = self._late.get(call, (None, None))
        key = self._key(call)
        # Once a process is lost or a run has ended, no outcome can arrive any more.
        is_over = asked.run not in self._open or receipt.epoch < self._epochs.get(asked.run, receipt.epoch)
        return CallRecord(
            receipt=receipt,
            asked=asked,
            ending=ending,
            ended=ended,
            settled=self._settled.get(call),
            late=late,
            late_result=None if came is None else came.content.get(RESULT),
            again=completed.get(key) if key is not None and ended is None else None,
            is_over=is_over,
        )


def outcome_in(receipt: Receipt) -> Ended | None:
    """Return the outcome of a call, if the receipt has one."""
    return receipt.body if isinstance(receipt.body, ToolCompleted | ToolFailed) else None


def call_of(receipt: Receipt) -> CallId | None:
    """Return the call that a receipt requests or ends; None for other receipts."""
    return receipt.body.call if isinstance(receipt.body, Asked | Ended) else None


def call_asked(receipt: Receipt) -> CallRecord | None:
    """Return a call as its first receipt describes it; None for other receipts."""
    return CallRecord(receipt=receipt, asked=receipt.body) if isinstance(receipt.body, Asked) else None


def find_calls(receipts: Iterable[Receipt], runs: Iterable[Run] = ()) -> dict[CallId, CallRecord]:
    """Return the calls in these receipts. Runs that are not given count as ended."""
    calls = Calls(runs)
    for receipt in receipts:
        calls.take(receipt)
    return calls.all()


def read_calls(view: LedgerView, run: Run, own: Iterable[Receipt] | None = None) -> dict[CallId, CallRecord]:
    """Return the calls of a run, with the decisions about those in doubt, and the attempts that made them again.

    `own` are the receipts of the run, if they were read before.
    """
    stream = StreamId(run.id)
    if own is None:
        own = map(read_receipt, view.find_receipts(ReceiptQuery(stream=stream)))
    elsewhere: Iterable[Receipt] = ()
    if run.handoff is not None:
        queries = (ReceiptQuery(attempts_at=view.get_handoff(run.handoff)), ReceiptQuery(stream=StreamId(run.handoff)))
        elsewhere = map(read_receipt, chain.from_iterable(map(view.find_receipts, queries)))
    others = (receipt for receipt in elsewhere if receipt.stream != stream)
    found = find_calls(chain(own, others), [run])
    return {call: record for call, record in found.items() if record.run == run.id}


def read_call(view: LedgerView, receipt: Receipt) -> CallRecord | None:
    """Return the call that a receipt is about; None if there is none, or its request is missing.

    The cost depends on the distance between request and outcome, not on the length of the run.
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
    # Without an outcome, later receipts of this run and of others decide whether it is in doubt.
    return read_calls(view, view.get_run(asked.body.run)).get(asked.body.call)


def find_call(view: LedgerView, call: CallId) -> CallRecord | None:
    """Return a call by its full id; None if it is not recorded."""
    for stored in view.find_call_receipts(call):
        receipt = read_receipt(stored)
        if call_of(receipt) == call:
            return read_call(view, receipt)
    return None


def read_arguments(view: LedgerView, call: CallRecord) -> dict[str, Any] | None:
    """Return the arguments of a call by name; None if they are gone or unreadable."""
    if call.arguments is None:
        return None
    return arguments_in(read_contents(view, {ARGUMENTS: call.arguments})[ARGUMENTS].body)


def arguments_in(body: bytes | None) -> dict[str, Any] | None:
    """Return the arguments in a content, which may hold more than these; None if they are gone or unreadable."""
    try:
        read = None if body is None else json.loads(body)
    except (ValueError, RecursionError):
        return None
    given = read.get(ARGUMENTS, read) if isinstance(read, dict) else None
    return given if isinstance(given, dict) else None


def _find_asked(view: LedgerView, outcome: Receipt, call: CallId) -> Receipt | None:
    """Return the request of a call; usually the receipt before the outcome."""
    for seq in range(outcome.seq - 1, 0, -1):
        try:
            before = view.get_receipt_at(outcome.stream, seq)
        except NotFoundError:
            continue  # deleted; verification reports it
        # Decode only what can be the request: a run may have made many calls at once.
        if call.encode() in before.payload and isinstance((found := read_receipt(before)).body, ToolRequested):
            return found
    return None


def _find_ended(view: LedgerView, asked: Receipt, call: CallId) -> Receipt | None:
    """Return the outcome of a call; usually the receipt after the request."""
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
