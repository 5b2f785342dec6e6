"""Alarms about agents: raised after weeks were compared, and their present state.

An alarm stands until a person acknowledges it or its cause is over. The order of receipts makes no difference, and the
same alarm raised by two processes is one: a key is raised or not, acknowledged or not, and cleared or not.
"""

from collections.abc import Iterator
from datetime import datetime

from msgspec import Struct

from batonpass.model.base.content_names import REASON, TASK_KIND
from batonpass.model.base.ids import AgentId, PrincipalId, ReceiptId
from batonpass.model.bodies.body import AlarmAcknowledged, AlarmCleared, AlarmRaised
from batonpass.model.ledger.receipt import Receipt
from batonpass.model.ledger.remark import RemarkKind
from batonpass.records.json_shapes import exact
from batonpass.records.text import read_receipt, read_texts
from batonpass.store.port import LedgerView


class AlarmSeen(Struct, frozen=True, kw_only=True):
    """Who acknowledged an alarm, when, and why."""

    by: PrincipalId
    at: datetime
    reason: str | None  # None once it was erased
    receipt: ReceiptId


class AlarmRecord(Struct, frozen=True, kw_only=True):
    """An alarm about an agent at a kind of task, and its present state."""

    key: str
    agent: AgentId
    task_kind: str | None  # None once it was erased
    cause: str
    sentence: str | None  # None once it was erased
    raised: AlarmRaised
    at: datetime
    receipt: ReceiptId
    seen: AlarmSeen | None = None
    cleared_at: datetime | None = None

    @property
    def subject(self) -> tuple[str, str | None, str | None, str]:
        """Return its subject: agent, kind of task, configuration and cause."""
        return self.agent, self.task_kind, self.raised.configuration, self.cause

    @property
    def stands(self) -> bool:
        """Return whether the agent is in alarm because of it."""
        return self.seen is None and self.cleared_at is None

    def stood(self, at: datetime | None) -> bool:
        """Return whether the agent was in alarm because of it at a moment; None: whether it is now."""
        if at is None:
            return self.stands
        ends = [end for end in (None if self.seen is None else self.seen.at, self.cleared_at) if end is not None]
        return self.at <= at and all(at < end for end in ends)

    @property
    def words(self) -> str:
        """Return its present state in words."""
        if self.cleared_at is not None:
            return f"cleared {exact(self.cleared_at)}"
        return "stands" if self.seen is None else f"acknowledged by {self.seen.by}"


def find_alarms(view: LedgerView, agent: AgentId | None = None) -> Iterator[AlarmRecord]:
    """Yield the alarms about an agent, or about all; those of one agent together, the latest first."""
    names = [agent] if agent is not None else dict.fromkeys(one.name for one in view.find_remarks(RemarkKind.ALARM))
    for name in names:
        receipts = [read_receipt(view.get_receipt(one.receipt)) for one in view.find_remarks(RemarkKind.ALARM, name)]
        told: dict[str, list[Receipt]] = {}
        for receipt in receipts:
            body = receipt.body
            if isinstance(body, AlarmRaised | AlarmAcknowledged | AlarmCleared) and body.agent == name:
                told.setdefault(body.alarm, []).append(receipt)
        for key, about in told.items():
            if (found := _record(view, key, about)) is not None:
                yield found


def alarmed_kinds(view: LedgerView, agent: AgentId, at: datetime | None = None) -> tuple[str | None, ...]:
    """Return the kinds of task at which an agent is in alarm, or was; None for one whose name was erased."""
    return tuple(dict.fromkeys(one.task_kind for one in find_alarms(view, agent) if one.stood(at)))


def _record(view: LedgerView, key: str, receipts: list[Receipt]) -> AlarmRecord | None:
    oldest_first = receipts[::-1]
    raised = next((one for one in oldest_first if isinstance(one.body, AlarmRaised)), None)
    if raised is None or not isinstance(raised.body, AlarmRaised):
        return None  # verification reports it
    seen = next((one for one in oldest_first if isinstance(one.body, AlarmAcknowledged)), None)
    cleared = next((one for one in oldest_first if isinstance(one.body, AlarmCleared)), None)
    return AlarmRecord(
        key=key,
        agent=raised.body.agent,
        task_kind=_words(view, raised, TASK_KIND),
        cause=raised.body.cause,
        sentence=_words(view, raised, REASON),
        raised=raised.body,
        at=raised.at,
        receipt=raised.id,
        seen=None if seen is None else _seen(view, seen),
        cleared_at=None if cleared is None else cleared.at,
    )


def _seen(view: LedgerView, receipt: Receipt) -> AlarmSeen | None:
    if not isinstance(receipt.body, AlarmAcknowledged):
        return None
    reason = _words(view, receipt, REASON)
    return AlarmSeen(by=receipt.body.by, at=receipt.at, reason=reason, receipt=receipt.id)


def _words(view: LedgerView, receipt: Receipt, name: str) -> str | None:
    text = read_texts(view, receipt).get(name)
    return None if text is None else text.words
