"""Answers of a control plane as the values that a relay in this process returns."""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from batonpass.handoff.transfer.result import Result
from batonpass.model.base.ids import AgentId, ContentId, Digest, HandoffId, PrincipalId, RunId
from batonpass.model.base.lifecycle import Carrier, State
from batonpass.model.baton.items import Item, ItemValue, Report, part_of
from batonpass.model.ledger.run import Handoff, Run, RunState
from batonpass.wire.documents import DocumentReader

_REPORTS: Final = DocumentReader(Report)
_UNTOLD: Final = Digest("0" * 64)  # where a value has the digest of a receipt that nobody told


def told_run(told: Mapping[str, Any]) -> Run:
    """Return a run."""
    return Run(
        id=RunId(told["id"]),
        root=RunId(told["root"]),
        parent=None if told["parent"] is None else RunId(told["parent"]),
        handoff=None if told["handoff"] is None else HandoffId(told["handoff"]),
        attempt=told["attempt"],
        agent=AgentId(told["agent"]),
        principal=PrincipalId(told["principal"]),
        state=RunState(told["state"]),
        started_at=datetime.fromisoformat(told["started_at"]),
        ended_at=None if told["ended_at"] is None else datetime.fromisoformat(told["ended_at"]),
    )


def told_handoff(told: Mapping[str, Any]) -> Handoff:
    """Return a handoff. The position of its offer in the ledger is not told."""
    return Handoff(
        id=HandoffId(told["id"]),
        root=RunId(told["root"]),
        parent=RunId(told["parent"]),
        to=AgentId(told["to"]),
        carrier=Carrier(told["carrier"]),
        state=State(told["state"]),
        attempt=told["attempt"],
        run=None if told["run"] is None else RunId(told["run"]),
        initiated=_UNTOLD,
        seq=1,
        deadline=None if told["deadline"] is None else datetime.fromisoformat(told["deadline"]),
    )


def told_result(told: Mapping[str, Any], *, reused: bool) -> Result:
    """Return the result of a handoff."""
    return Result(
        handoff=HandoffId(told["handoff"]),
        run=None if told["run"] is None else RunId(told["run"]),
        state=State(told["state"]),
        attempt=told["attempt"],
        reused=reused,
        report=None if told["report"] is None else told_report(told["report"]),
        reason=told["reason"],
        error=told["error"],
        question=told["question"],
        blocked_by=None if told["blocked_by"] is None else HandoffId(told["blocked_by"]),
    )


def told_report(told: Mapping[str, Any]) -> Report:
    """Return a report."""
    value = {} if told.get("value") is None else {"value": json.dumps(told["value"], ensure_ascii=False)}
    return _REPORTS.read({**told, **value}, "report")


def told_item(told: Mapping[str, Any], value: ItemValue) -> Item:
    """Return an item that was written down."""
    return Item(
        id=ContentId(told["item"]),
        digest=Digest(told["digest"]),
        part=part_of(value),
        by=PrincipalId(told["by"]),
        at=datetime.fromisoformat(told["at"]),
        value=value,
    )
