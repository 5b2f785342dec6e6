"""The outbox: notices about work that waits for people, read by position and delivered at least once.

The receipts are the outbox: every hold and every question is there, whichever process recorded it, and survives every
crash. A file beside the keys remembers how far each outbox has read, and its undelivered notices. It is written after
the delivery, so a crash in between repeats a notice, and its id tells that it is the same.
"""

from collections.abc import Callable
from datetime import datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct, field

from batonpass.audit.short_ids import ending
from batonpass.clock import Clock
from batonpass.dispatch.delivery_pace import OUTBOX_FOLDER, pause_after
from batonpass.ledger.progress_file import ProgressFile
from batonpass.model.base.ids import AgentId, CallId, HandoffId, ReceiptId, RunId
from batonpass.model.base.lifecycle import State
from batonpass.model.bodies.body import HandoffAsked, HandoffHeld, HandoffInitiated, Kind
from batonpass.model.ledger.receipt import Receipt
from batonpass.records.hold import find_undecided
from batonpass.records.text import read_receipt
from batonpass.store.port import LedgerStore, LedgerView, ReceiptQuery

_LAST_PAUSE: Final = timedelta(minutes=10)
_KINDS: Final = (Kind.HANDOFF_INITIATED, Kind.HANDOFF_HELD, Kind.HANDOFF_ASKED, Kind.TOOL_HELD)


class WaitKind(StrEnum):
    """The task for a person: approve something, or answer a question."""

    HELD = "held"
    ASKED = "asked"


class Notice(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Something waits for a person. It has ids and codes, and none of the words that people or models wrote."""

    id: ReceiptId  # the same notice has the same id, however often it is delivered
    waits: WaitKind
    at: datetime
    root: RunId | None
    handoff: HandoffId | None = None
    call: CallId | None = None
    agent: AgentId | None = None  # the agent whose work waits
    tool: str | None = None
    rule: str | None = None
    until: datetime | None = None  # it is denied then
    command: str  # how to answer it


class _Undelivered(Struct, kw_only=True):
    tries: int
    again_at: datetime


class _Progress(Struct, kw_only=True):
    position: int = 0  # everything up to here was delivered, or stands below
    undelivered: dict[ReceiptId, _Undelivered] = field(default_factory=dict)


_PROGRESS: Final = msgspec.json.Decoder(_Progress)


class Outbox:
    """Delivers each notice at least once, in order. One that cannot be delivered is tried again and blocks nobody."""

    def __init__(
        self, store: LedgerStore, home: Path, name: str, deliver: Callable[[Notice], None], clock: Clock
    ) -> None:
        self._store = store
        self._file = ProgressFile(home / OUTBOX_FOLDER, name, _PROGRESS)
        self._deliver = deliver
        self._clock = clock

    def deliver_all(self) -> tuple[int, int]:
        """Deliver new notices, and those due again. Return how many were delivered, and how many failed.

        If another process is at it, nothing happens here.
        """
        self._store.sequence()
        with self._file.turn() as ours:
            if not ours:
                return 0, 0
            progress = self._file.read()
            delivered = failed = 0
            now = self._clock.now()
            due = [id_ for id_, late in progress.undelivered.items() if late.again_at <= now]
            for id_, notice in self._due(due):
                if notice is None or self._try(progress, notice):
                    progress.undelivered.pop(id_, None)
                    delivered += notice is not None
                else:
                    failed += 1
                self._file.write(progress)
            for position, notice in self._new(progress.position):
                if notice is not None:
                    done = self._try(progress, notice)
                    delivered, failed = delivered + done, failed + (not done)
                progress.position = position
                if notice is not None:
                    self._file.write(progress)
            self._file.write(progress)
            return delivered, failed

    def _try(self, progress: _Progress, notice: Notice) -> bool:
        try:
            self._deliver(notice)
        except Exception:  # noqa: BLE001 - whatever a command or a network does, the notice is kept
            late = progress.undelivered.get(notice.id)
            tries = 1 if late is None else late.tries + 1
            again_at = self._clock.now() + pause_after(tries, _LAST_PAUSE)
            progress.undelivered[notice.id] = _Undelivered(tries=tries, again_at=again_at)
            return False
        return True

    def _due(self, ids: list[ReceiptId]) -> list[tuple[ReceiptId, Notice | None]]:
        with self._store.view() as view:
            return [(id_, notice_of(view, read_receipt(view.get_receipt(id_)))) for id_ in ids]

    def _new(self, after: int) -> list[tuple[int, Notice | None]]:
        with self._store.view() as view:
            last = view.last_position()
            found: list[tuple[int, Notice | None]] = [
                (stored.position or 0, notice_of(view, read_receipt(stored)))
                for kind in _KINDS
                for stored in view.find_receipts(ReceiptQuery(kind=kind, first=after + 1, last=last))
            ]
        return [*sorted(found, key=lambda one: one[0]), (last, None)]


def notice_of(view: LedgerView, receipt: Receipt) -> Notice | None:
    """Return the notice that a receipt is a reason for; None if nobody has to act, or somebody has already."""
    match receipt.body:
        case HandoffInitiated() as body if body.state is State.HELD:
            return _of_handoff(view, receipt, body.handoff, rule=body.rule, until=body.until)
        case HandoffHeld() as body if body.awaits is None:
            return _of_handoff(view, receipt, body.handoff, rule=body.reason, until=body.until)
        case HandoffAsked() as body:
            return _of_handoff(view, receipt, body.handoff, rule=body.check)
        case _:
            return _of_call(view, receipt)


def _of_handoff(
    view: LedgerView, receipt: Receipt, handoff: HandoffId, *, rule: str | None, until: datetime | None = None
) -> Notice | None:
    known = view.get_handoff(handoff)
    waits = WaitKind.ASKED if isinstance(receipt.body, HandoffAsked) else WaitKind.HELD
    if known.state != waits.value:
        return None
    verb = "answer" if waits is WaitKind.ASKED else "approve"
    return Notice(
        id=receipt.id,
        waits=waits,
        at=receipt.at,
        root=receipt.root,
        handoff=handoff,
        call=receipt.body.call if isinstance(receipt.body, HandoffHeld) else None,
        agent=known.to,
        rule=rule,
        until=until,
        command=f"batonpass handoff {verb} {ending(handoff, 6)}",
    )


def _of_call(view: LedgerView, receipt: Receipt) -> Notice | None:
    held = find_undecided(view, receipt)
    if held is None:
        return None
    return Notice(
        id=receipt.id,
        waits=WaitKind.HELD,
        at=receipt.at,
        root=receipt.root,
        call=held.call,
        agent=view.get_run(held.run).agent,
        tool=held.tool,
        rule=held.rule,
        until=held.until,
        command=f"batonpass handoff approve {ending(held.call, 6)}",
    )
