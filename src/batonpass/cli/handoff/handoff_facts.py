"""A handoff for programs: everything that the screen shows, in full."""

from collections import Counter
from collections.abc import Mapping

from batonpass.accounts.handoff.account import Account, Attempt, CallInWords, Child, HandoffAct
from batonpass.accounts.handoff.grant_facts import revocation_facts
from batonpass.accounts.handoff.reasoning import Reasoning
from batonpass.cli.handoff.carriage_proof import fidelity_facts
from batonpass.cli.handoff.scope_use import scope_used_facts, use_of
from batonpass.model.base.lifecycle import State
from batonpass.model.baton.contradiction import find_in_baton
from batonpass.model.bodies.body import HandoffApproved, HandoffBacked, HandoffDenied, HandoffHeld
from batonpass.records.handoff import OPEN
from batonpass.records.json_shapes import (
    call_shape,
    contradiction_shape,
    exact,
    handoff_shape,
    label_shape,
    run_shape,
    text_shape,
)
from batonpass.records.text import Text
from batonpass.wire.documents import to_document
from batonpass.wire.receipt_codec import told_in_full


def account_facts(account: Account) -> dict[str, object]:
    """Return everything that the ledger knows about a handoff."""
    baton, body = account.offer.baton, account.offer.initiated
    return {
        **handoff_shape(account.handoff, account.task),
        "offered_at": exact(account.offered.at),
        "imported": account.mark,
        "offer": account.offered.id,
        "relation": body.relation,
        "mode": account.mode,
        "session": account.offered.session,
        "principal": baton.principal,
        "intent": text_shape(account.intent),
        "lineage": [run_shape(run, None) for run in account.lineage],
        "attempts": [_attempt(attempt) for attempt in account.attempts],
        "scope": {
            "inherited": None if account.inherited is None else list(account.inherited),
            "granted": None if account.granted is None else list(account.granted),
            "revoked": None if account.revoked is None else revocation_facts(account.revoked),
            "used": [_call(call) for call in account.calls if call.record.outcome != "denied"],
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
        "reasoning": {
            "content": baton.brief.reasoning,
            "rationale": baton.brief.rationale,
            **({} if account.reasoning is None else reasoning_facts(account.reasoning)),
        },
        "brief": to_document(baton.brief),
        "policy": _policy(account),
        "approval": _approval(account),
        "questions": [
            {"question": answer.question, "answer": answer.answer, "by": answer.by, "at": exact(answer.at)}
            for answer in baton.answers
        ],
        "revision": baton.revision,
        "revisions": [
            {
                "revision": revision.number,
                "receipt": revision.receipt,
                "by": revision.by,
                "at": exact(revision.at),
                "kind": revision.body.kind,
                "awareness": awareness,
                "attempt": None if run is None else run.attempt,
            }
            for revision, awareness, run in account.revisions
        ],
        "carries": {
            "parts": dict(Counter(str(item.part) for item in body.carries)),
            "items": [{"id": item.item, "digest": item.digest, "part": item.part} for item in body.carries],
            "missing": list(body.missing),
        },
        "contradictions": [contradiction_shape(one) for one in find_in_baton(baton)],
        "fidelity": None if account.carriage is None else fidelity_facts(account.carriage),
        "label": label_shape(body.label),
        "taint": list(account.offer.taint),
        "earlier": {
            "attempts": account.earlier.attempts,
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


def reasoning_facts(reasoning: Reasoning) -> dict[str, object]:
    """Return where the sender's reasoning can be read."""
    place, checkpoint = reasoning.place, reasoning.checkpoint
    return {
        **to_document(reasoning.pointer),
        "sha256": None if place is None else place.sha256,
        "path": None if place is None else place.path,
        "uuid": None if place is None else place.uuid,
        "checkpoint_run": None if checkpoint is None else checkpoint.run,
        "words": text_shape(reasoning.message),
    }


def _attempt(attempt: Attempt) -> dict[str, object]:
    closed = attempt.closed
    return {
        **run_shape(attempt.run, None),
        "accepted": attempt.accepted.id,
        "receipts": attempt.receipts,
        "run_keys": list(attempt.keys),
        "recorded_by": [{"relay": relay, "relay_key": key} for relay, key in attempt.recorders],
        "problems": [] if attempt.acceptance is None else list(attempt.acceptance.problems),
        "would_ask": attempt.acceptance is not None and attempt.acceptance.would_ask,
        "label": None if attempt.acceptance is None else label_shape(attempt.acceptance.label),
        "calls": [_call(call) for call in attempt.calls],
        "kept": 0 if closed is None else closed.kept,
        "effects": [] if closed is None else list(closed.effects),
        "gives": [] if closed is None else [item.item for item in closed.gives],
        "flags": [] if closed is None else list(closed.flags),
        "taint": [] if closed is None else list(closed.taint),
        "error": getattr(closed, "error", None),
        **{name: text_shape(text) for name, text in attempt.texts.items()},
    }


def _call(call: CallInWords) -> dict[str, object]:
    effects = [{"kind": one.kind, "target": one.target, "how": one.how, "count": one.count} for one in call.effects]
    words = {name: text_shape(getattr(call, name)) for name in ("target", "arguments", "scope")}
    return call_shape(call.record, {**words, "permit": call.permit, "effects": effects})


def _policy(account: Account) -> dict[str, object]:
    acceptance = None if account.latest is None else account.latest.acceptance
    return {
        "problems": [] if acceptance is None else list(acceptance.problems),
        "would_ask": acceptance is not None and acceptance.would_ask,
        "offer": {
            "flags": list(account.offer.initiated.flags),
            "reason": text_shape(account.refusal),
        },
        "flagged": [
            {"call": call.record.id, "tool": call.record.tool, "flags": list(call.record.flags)}
            for call in account.calls
            if call.record.flags
        ],
        "denied": [
            {"call": call.record.id, "tool": call.record.tool, "rule": call.record.why}
            for call in account.calls
            if call.record.outcome == "denied"
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
    return handoff_shape(child.handoff, child.task)


def _act(act: HandoffAct) -> dict[str, object]:
    return {**_act_body(act), **({"words": words} if (words := _words(act.texts)) else {})}


def _act_body(act: HandoffAct) -> dict[str, object]:
    body = told_in_full(act.receipt.body)
    return {"receipt": act.receipt.id, "kind": act.receipt.kind, "at": exact(act.receipt.at), **body}


def _words(texts: Mapping[str, Text]) -> dict[str, object]:
    return {name: text_shape(text) for name, text in texts.items()}


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
