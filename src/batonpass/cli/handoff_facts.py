"""A handoff for programs: everything that the screen shows, whole."""

from collections import Counter
from collections.abc import Mapping
from datetime import datetime

import msgspec

from batonpass.accounts.account import OPEN, Account, Act, Attempt, CallSeen, Child
from batonpass.audit.lookup import Text
from batonpass.cli.handoff_use import scope_used_facts, use_of
from batonpass.cli.showing import run_facts, text_facts
from batonpass.cli.words import exact
from batonpass.model.bodies import HandoffApproved, HandoffBacked, HandoffDenied, HandoffHeld
from batonpass.model.ids import time_of
from batonpass.model.label import Label
from batonpass.model.lifecycle import State
from batonpass.model.run import Handoff
from batonpass.wire.documents import to_document


def handoff_facts(handoff: Handoff, task: Text | None, offered_at: datetime | None = None) -> dict[str, object]:
    """Return a handoff as lists have it; `offered_at` if that is not when it was recorded."""
    return {
        "id": handoff.id,
        "to": handoff.to,
        "state": handoff.state,
        "attempt": handoff.attempt,
        "task": None if task is None else text_facts(task),
        "root": handoff.root,
        "parent": handoff.parent,
        "run": handoff.run,
        "carrier": handoff.carrier,
        "deadline": exact(handoff.deadline),
        "offered_at": exact(offered_at or time_of(handoff.id)),
    }


def account_facts(account: Account) -> dict[str, object]:
    """Return all that the ledger tells of a handoff."""
    baton, body = account.offer.baton, account.offer.initiated
    return {
        **handoff_facts(account.handoff, account.task),
        "offered_at": exact(account.offered.at),
        "imported": account.mark,
        "offer": account.offered.id,
        "relation": body.relation,
        "mode": account.offered.mode,
        "session": account.offered.session,
        "principal": baton.principal,
        "intent": None if account.intent is None else text_facts(account.intent),
        "lineage": [run_facts(run, None) for run in account.lineage],
        "attempts": [_attempt(attempt) for attempt in account.attempts],
        "scope": {
            "inherited": None if account.inherited is None else list(account.inherited),
            "granted": None if account.granted is None else list(account.granted),
            "used": [_call(call) for call in account.calls if call.outcome != "denied"],
            "use": use_of(account),
            "enough": scope_used_facts(account.used),
        },
        "credentials": [
            {
                "name": acted.name,
                "identity": acted.identity,
                "shared": acted.is_shared,
                "calls": acted.calls,
            }
            for acted in account.acted
        ],
        "reasoning": {"content": baton.brief.reasoning, "rationale": baton.brief.rationale},
        "brief": to_document(baton.brief),
        "policy": _policy(account),
        "approval": _approval(account),
        "questions": [
            {"question": answer.question, "answer": answer.answer, "by": answer.by, "at": exact(answer.at)}
            for answer in baton.answers
        ],
        "revision": baton.revision,
        "carries": {
            "parts": dict(Counter(str(item.part) for item in body.carries)),
            "items": [{"id": item.item, "digest": item.digest, "part": item.part} for item in body.carries],
            "missing": list(body.missing),
        },
        "label": _label(body.label),
        "taint": list(account.offer.taint),
        "earlier": {
            "attempts": len(account.earlier.attempts),
            "kept": len(account.earlier.finished),
            "kept_ms": round(account.earlier.kept_for.total_seconds() * 1000),
            "cost_millionths": account.earlier.cost,
        },
        "children": [_child(child) for child in account.children],
        "acts": [_act(act) for act in account.acts],
        "report": None if account.report is None else to_document(account.report),
        "verification": [_act(act) for act in account.verdicts],
        "late": [_act_body(act) for act in account.acts if act.receipt.kind == "handoff.late"],
        "open": _open(account),
    }


def _label(label: Label | None) -> dict[str, object] | None:
    if label is None:
        return None
    return {"integrity": label.integrity, "readers": None if label.readers is None else list(label.readers)}


def _attempt(attempt: Attempt) -> dict[str, object]:
    closed = attempt.closed
    return {
        **run_facts(attempt.run, None),
        "accepted": attempt.accepted.id,
        "receipts": attempt.receipts,
        "run_keys": list(attempt.keys),
        "recorded_by": [{"relay": relay, "relay_key": key} for relay, key in attempt.recorders],
        "problems": [] if attempt.acceptance is None else list(attempt.acceptance.problems),
        "would_ask": attempt.acceptance is not None and attempt.acceptance.would_ask,
        "label": None if attempt.acceptance is None else _label(attempt.acceptance.label),
        "calls": [_call(call) for call in attempt.calls],
        "kept": 0 if closed is None else closed.kept,
        "effects": [] if closed is None else list(closed.effects),
        "gives": [] if closed is None else [item.item for item in closed.gives],
        "flags": [] if closed is None else list(closed.flags),
        "taint": [] if closed is None else list(closed.taint),
        "error": getattr(closed, "error", None),
        **{name: text_facts(text) for name, text in attempt.texts.items()},
    }


def _call(call: CallSeen) -> dict[str, object]:
    return {
        "id": call.id,
        "run": call.run,
        "tool": call.tool,
        "target": None if call.target is None else text_facts(call.target),
        "arguments": None if call.arguments is None else text_facts(call.arguments),
        "outcome": call.outcome,
        "why": call.why,
        "reads": call.reads,
        "reversible": call.reversible,
        "flags": list(call.flags),
        "scope": None if call.scope is None else text_facts(call.scope),
        "permit": call.permit,
        "beyond": call.is_beyond,
        "cost_millionths": call.cost,
        "took_us": call.took_us,
        "exit_code": call.exit_code,
        "files_changed": call.changed,
        "effects": [
            {"kind": one.kind, "target": one.target, "how": one.how, "count": one.count} for one in call.effects
        ],
        "requested_at": exact(call.at),
        "ended_at": exact(call.ended_at),
    }


def _policy(account: Account) -> dict[str, object]:
    acceptance = None if account.latest is None else account.latest.acceptance
    return {
        "problems": [] if acceptance is None else list(acceptance.problems),
        "would_ask": acceptance is not None and acceptance.would_ask,
        "offer": {
            "flags": list(account.offer.initiated.flags),
            "reason": None if account.refusal is None else text_facts(account.refusal),
        },
        "flagged": [
            {"call": call.id, "tool": call.tool, "flags": list(call.flags)} for call in account.calls if call.flags
        ],
        "denied": [
            {"call": call.id, "tool": call.tool, "rule": call.why} for call in account.calls if call.outcome == "denied"
        ],
    }


def _approval(account: Account) -> dict[str, object]:
    decisions = HandoffHeld | HandoffBacked | HandoffApproved | HandoffDenied
    acts = [act for act in account.acts if isinstance(act.receipt.body, decisions)]
    return {
        "needed": account.offer.initiated.state is State.HELD or bool(acts),
        "acts": [_act(act) for act in acts],
    }


def _child(child: Child) -> dict[str, object]:
    return handoff_facts(child.handoff, child.task)


def _act(act: Act) -> dict[str, object]:
    return {**_act_body(act), **({"words": words} if (words := _words(act.texts)) else {})}


def _act_body(act: Act) -> dict[str, object]:
    body: dict[str, object] = msgspec.to_builtins(act.receipt.body)
    return {"receipt": act.receipt.id, "kind": act.receipt.kind, "at": exact(act.receipt.at), **body}


def _words(texts: Mapping[str, Text]) -> dict[str, object]:
    return {name: text_facts(text) for name, text in texts.items()}


def _open(account: Account) -> dict[str, object]:
    return {
        "asked": account.offer.open_question,
        "questions": [
            {"text": question.text, "blocking": question.blocking, "carried": carried}
            for question, carried in account.questions
        ],
        "in_doubt": [_call(call) for call in account.doubts],
        "unverified": account.is_unverified,
        "built_on_unverified": [known.id for known in account.unverified],
        "children": [child.handoff.id for child in account.children if child.handoff.state in OPEN],
        "missing": list(account.offer.initiated.missing),
    }
