"""The JSON shapes of calls, approvals, runs, handoffs and texts, the same for every command.

docs/reference/json.md describes them. Fields are added and never renamed; an unknown value is null, not absent.
"""

from base64 import b64encode
from collections.abc import Mapping
from datetime import datetime

from msgspec import Struct
from msgspec.structs import asdict

from batonpass.model.base.ids import time_of
from batonpass.model.base.label import Label
from batonpass.model.baton.contradiction import Contradiction
from batonpass.model.ledger.run import Handoff, Run
from batonpass.records.access_token import TokenRecord
from batonpass.records.call import CallRecord
from batonpass.records.handoff import ResultVerdict
from batonpass.records.hold import Approval, CallLeave, HoldRecord
from batonpass.records.recipients.webhook import WebhookRecord
from batonpass.records.text import Text

Shape = dict[str, object]


def exact(at: datetime | None) -> str | None:
    """Return a time for programs: UTC, to the microsecond."""
    return None if at is None else at.isoformat(timespec="microseconds").replace("+00:00", "Z")


def in_json(value: object) -> object:
    """Return a time or a struct as JSON can hold it, for `json.dumps(default=...)`."""
    if isinstance(value, datetime):
        return exact(value)
    if isinstance(value, Struct):
        return asdict(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")


def text_shape(text: Text | None) -> Shape | None:
    """Return a content: its text, or its bytes if it is not text."""
    if text is None:
        return None
    facts: Shape = {
        "id": text.ref.id,
        "digest": text.ref.digest,
        "size": text.ref.size,
        "media_type": text.ref.media_type,
        "state": text.found,
        "text": text.words,
        "whole": True,
    }
    if text.body is not None and text.words is None:
        facts["base64"] = b64encode(text.body).decode("ascii")
    return facts


def token_shape(token: TokenRecord, at: datetime) -> Shape:
    """Return an access token, without anything that would let somebody in."""
    return {
        "id": token.id,
        "receipt": token.receipt,
        "principal": token.principal,
        "role": token.role,
        "agents": list(token.agents),
        "may": list(token.may),
        "may_delegate": list(token.may_delegate),
        "valid": token.is_valid(at),
        "added_by": token.added_by,
        "added_at": exact(token.added_at),
        "until": exact(token.until),
        "revoked_by": token.revoked_by,
        "revoked_at": exact(token.revoked_at),
    }


def webhook_shape(webhook: WebhookRecord, place: str | None) -> Shape:
    """Return a webhook: `place` is the part of its URL that may be shown, because the rest is often a secret."""
    return {
        "id": webhook.id,
        "receipt": webhook.receipt,
        "place": place,
        "kinds": list(webhook.kinds),
        "state": webhook.state,
        "active": webhook.is_active,
        "added_by": webhook.added_by,
        "added_at": exact(webhook.added_at),
        "changed_by": webhook.changed_by,
        "changed_at": exact(webhook.changed_at),
        "reason": webhook.reason,
    }


def contradiction_shape(found: Contradiction) -> Shape:
    """Return statements that cannot all hold, the newest first."""
    sides = [{"words": one.words, "by": one.by, "at": exact(one.at), "item": one.item} for one in found.sides]
    return {"subject": found.subject, "sides": sides}


def run_shape(run: Run, task: Text | None) -> Shape:
    """Return a run with its task."""
    return {
        "id": run.id,
        "agent": run.agent,
        "state": run.state,
        "principal": run.principal,
        "task": text_shape(task),
        "root": run.root,
        "parent": run.parent,
        "handoff": run.handoff,
        "attempt": run.attempt,
        "started_at": exact(run.started_at),
        "ended_at": exact(run.ended_at),
    }


def handoff_shape(handoff: Handoff, task: Text | None, offered_at: datetime | None = None) -> Shape:
    """Return a handoff as in lists; `offered_at` if it was imported with another time."""
    return {
        "id": handoff.id,
        "to": handoff.to,
        "state": handoff.state,
        "attempt": handoff.attempt,
        "task": text_shape(task),
        "root": handoff.root,
        "parent": handoff.parent,
        "run": handoff.run,
        "carrier": handoff.carrier,
        "deadline": exact(handoff.deadline),
        "offered_at": exact(offered_at or time_of(handoff.id)),
    }


def label_shape(label: Label | None) -> Shape | None:
    """Return a label: how far it is trusted, and who may read it."""
    if label is None:
        return None
    return {"integrity": label.integrity, "readers": None if label.readers is None else list(label.readers)}


def call_shape(call: CallRecord, words: Mapping[str, object] | None = None) -> Shape:
    """Return a call; `words` are the texts that were read for it, such as its target and arguments."""
    said = words or {}
    return {
        "id": call.id,
        "run": call.run,
        "receipt": call.receipt.id,
        "tool": call.tool,
        "mode": call.mode,
        "outcome": call.outcome,
        "why": call.why,
        "target": said.get("target"),
        "arguments": said.get("arguments"),
        "message": said.get("message"),
        "scope": said.get("scope"),
        "permit": said.get("permit"),
        "approval": said.get("approval"),
        "credential": said.get("credential"),
        "reads": call.reads,
        "reversible": call.reversible,
        "flags": list(call.flags),
        "beyond": call.is_beyond,
        "external": call.is_external,
        "label": label_shape(call.label),
        "untrusted": list(call.untrusted),
        "cost_millionths": call.cost,
        "took_us": call.took_us,
        "exit_code": call.exit_code,
        "files_changed": len(call.changes),
        "effects": said.get("effects", [{"kind": one.kind, "count": one.count} for one in call.effects]),
        "commits": list(call.commits),
        "in_doubt": call.in_doubt,
        "settled": call.settlement,
        "late": None if call.late is None else call.late.completed,
        "again": call.again,
        "kept_by": said.get("kept_by"),
        "requested_at": exact(call.at),
        "ended_at": exact(call.ended_at),
    }


def approval_shape(approval: Approval) -> Shape:
    """Return one ruling on one hold."""
    return {
        "receipt": approval.receipt.id,
        "hold": approval.hold,
        "at": exact(approval.at),
        "by": approval.by,
        "approved": approval.is_for,
        "partial": approval.is_partial,
        "proven": approval.is_proven,
        "shown": approval.shown,
        "looked_ms": None if approval.looked is None else round(approval.looked.total_seconds() * 1000),
        "measured": approval.is_measured,
        "flags": list(approval.body.flags),
        "reason": text_shape(approval.reason),
    }


def hold_shape(record: HoldRecord) -> Shape:
    """Return a hold, and the rulings on it."""
    hold = record.hold
    return {
        "receipt": record.receipt.id,
        "at": exact(record.receipt.at),
        "gate": hold.gate,
        "rule": hold.rule,
        "call": hold.call,
        "key": hold.key,
        "people": hold.approvals,
        "proof": hold.proven,
        "until": exact(hold.until),
        "decisions": [approval_shape(approval) for approval in record.approvals],
    }


def leave_shape(leave: CallLeave) -> Shape:
    """Return whether a call was approved, and by whom."""
    return {
        "leave": leave.leave,
        "rules": list(leave.rules),
        "hold": None if leave.hold is None else hold_shape(leave.hold),
    }


def verdict_shape(verdict: ResultVerdict) -> Shape:
    """Return a verdict on a result."""
    return {
        "receipt": verdict.receipt.id,
        "at": exact(verdict.receipt.at),
        "standing": verdict.standing,
        "label": verdict.label,
        "by": verdict.body.by,
        "attempt": verdict.body.attempt,
    }
