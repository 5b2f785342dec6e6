"""The first message to a program: the task, the whole baton, and the calls of earlier attempts. All of it is JSON."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from batonpass.handoff.history.offers import read_offer
from batonpass.handoff.history.past_calls import Resumption
from batonpass.handoff.transfer.result import read_sent_back
from batonpass.model.base.content_names import TASK
from batonpass.model.base.ids import ContentId
from batonpass.model.base.kinds import Part
from batonpass.model.baton.baton import SUSPECT_WORDS, Baton, within
from batonpass.model.baton.items import Artifact, Item, ItemValue, Report, part_of
from batonpass.model.grants.effective_grant import EffectiveGrant, LimitLeft
from batonpass.model.ledger.run import Handoff
from batonpass.records.call import CallRecord
from batonpass.store.port import LedgerStore, LedgerView
from batonpass.wire.documents import to_document

if TYPE_CHECKING:
    from batonpass.handoff.history.baton_revision import BatonRevision
    from batonpass.handoff.programs.run_port import WorkingRun

VERSION: Final = 0
REPORTS: Final = "reports"

# The same names as in Python, so that nobody has to learn two sets.
LISTS: Final[Mapping[Part, str]] = {
    Part.INTENT: "intent",
    Part.CONSTRAINT: "constraints",
    Part.EXCLUSION: "exclusions",
    Part.COMPLETED: "completed",
    Part.QUESTION: "open_questions",
    Part.REJECTED: "rejected_paths",
    Part.DECISION: "decisions",
    Part.ASSUMPTION: "assumptions",
    Part.CLAIM: "claims",
    Part.ARTIFACT: "artifacts",
    Part.UNTRUSTED: "untrusted",
}


def tell_task(run: "WorkingRun") -> dict[str, Any]:
    """Return the first message to a program."""
    return {
        "type": "task",
        "v": VERSION,
        "run": run.id,
        "agent": run.agent,
        "attempt": run.attempt,
        "task": run.task if run.parent is None or TASK not in run.baton.suspect else SUSPECT_WORDS.format(TASK),
        "baton": None if run.parent is None else tell_baton(run.baton),
        "earlier": tell_earlier(run),
        "grant": tell_grant(run.grant()),
        "traceparent": run.traceparent(),
    }


def tell_revision(revision: "BatonRevision") -> dict[str, Any]:
    """Return a revision of the baton that the program has not acknowledged."""
    return {
        "revision": revision.number,
        "by": revision.by,
        "at": revision.at.isoformat(),
        "fallen": list(revision.fallen),
        "replaced_by": list(revision.replaced_by),
        "text": revision.text,
    }


def tell_grant(grant: EffectiveGrant) -> dict[str, Any]:
    """Return the present rights of a run. Without a grant, only the mode and the limits."""
    return {
        "mode": grant.mode,
        "blocked": not grant.is_observed,
        "policy_stops": grant.policy_stops or not grant.is_observed,
        "standing": grant.standing if grant.may is not None else None,
        "at": grant.at.isoformat(),
        "may": None
        if grant.may is None
        else [{"permit": permit.text, "left": _limits(permit.left)} for permit in grant.may],
        "may_delegate": None if grant.may_delegate is None else list(grant.may_delegate),
        "limits": _limits(grant.limits),
        "until": None if grant.until is None else grant.until.isoformat(),
        "depth_left": grant.depth_left,
        "chain": [
            {
                "by": step.by,
                "to": step.to,
                "at": step.at.isoformat(),
                "may": list(step.may),
                "may_delegate": list(step.may_delegate),
                "limits": step.limits or None,
                "until": None if step.until is None else step.until.isoformat(),
                "standing": step.standing,
            }
            for step in grant.chain
        ],
    }


def _limits(found: Iterable[LimitLeft]) -> list[dict[str, Any]]:
    return [
        {
            "unit": one.unit,
            "most": one.most,
            "used": one.used,
            "left": one.left,
            **({} if one.shared_with is None else {"shared_with": one.shared_with, "budget": one.budget}),
        }
        for one in found
    ]


def tell_baton(baton: Baton) -> dict[str, Any]:
    """Return a baton as JSON: who hands off to whom, and a list for each part. Untrusted items have their own list.

    Words of agents that look injected stand only under `quarantined`, so that no program takes them for orders.
    """
    told: dict[str, Any] = {
        "handoff": baton.handoff,
        "root": baton.root,
        "parent": baton.parent,
        "sender": baton.sender,
        "principal": baton.principal,
        "to": baton.to,
        "relation": baton.relation,
        "revision": baton.revision,
        "deadline": None if baton.deadline is None else baton.deadline.isoformat(),
        "brief": {name: said for name, said in to_document(baton.brief).items() if name not in baton.suspect},
        "answers": [
            {
                "question": answer.question,
                "answer": SUSPECT_WORDS.format("answer") if answer.suspect else answer.answer,
                "by": answer.by,
                "at": answer.at.isoformat(),
            }
            for answer in baton.answers
        ],
        "missing": list(baton.missing),
        "quarantined": list(_quarantined(baton)) if baton.suspect else [],
    }
    told |= {name: [] for name in (*LISTS.values(), REPORTS)}
    for item in baton.items:
        if baton.is_suspect(item):
            continue
        if item.value is None:
            told[LISTS[item.part]].append({**_known(item), "erased": True})
        for value in within(item.value):
            name = REPORTS if isinstance(value, Report) else LISTS[part_of(value)]
            told[name].append({**_known(item), **tell_value(value)})
    return told


def _quarantined(baton: Baton) -> Iterator[dict[str, Any]]:
    """Yield everything that an agent wrote and that looks like an injection, with where it would have stood."""
    sender, said = f"agent:{baton.sender}", {TASK: baton.task, **to_document(baton.brief)}
    for name in sorted(baton.suspect & said.keys()):
        yield {"place": name, "by": sender, "words": said[name]}
    for answer in baton.answers:
        if answer.suspect:
            yield {"place": "answer", "by": answer.by, "words": answer.answer}
    for item in baton.items:
        if baton.is_suspect(item) and item.value is not None:
            yield {"place": item.part, **_known(item), "words": tell_value(item.value)}


def _known(item: Item) -> dict[str, Any]:
    return {"id": item.id, "by": item.by, "at": item.at.isoformat()}


def tell_value(value: ItemValue) -> dict[str, Any]:
    """Return an item as JSON. An artifact has its name and digest; other items leave out default values."""
    if isinstance(value, Artifact):
        return {name: getattr(value, name) for name in ("name", "media_type", "size", "sha256", "source")}
    document: dict[str, Any] = to_document(value)
    if isinstance(value, Report) and value.value is not None:
        document["value"] = json.loads(value.value)
    return document


def tell_earlier(run: "WorkingRun") -> dict[str, Any]:
    """Return the remains of earlier attempts at this handoff."""
    store = run._desk.store  # noqa: SLF001 - we speak for the run
    told = tell_past(store, run.earlier)
    if run.parent is not None and run.attempt > 1:
        with store.view() as view:
            told["sent_back"] = read_sent_back(view, view.get_handoff(run.baton.handoff)) or None
    return {**told, "messages": run.messages()}


def tell_past(store: LedgerStore, past: Resumption) -> dict[str, Any]:
    """Return calls that are finished or in doubt, and handoffs, as JSON."""
    calls = (*past.finished, *past.in_doubt)
    arguments: dict[ContentId, Any] = {}
    children: list[dict[str, Any]] = []
    if calls or past.children:
        with store.view() as view:
            refs = [call.arguments.id for call in calls if call.arguments is not None]
            for stored in view.find_contents(refs):
                if stored.body is not None:
                    arguments[stored.id] = json.loads(stored.body).get("arguments")
            children = [_child(view, child) for child in past.children]
    return {
        "finished": [_call(call, arguments) for call in past.finished],
        "in_doubt": [_call(call, arguments) for call in past.in_doubt],
        "children": children,
    }


def _call(call: CallRecord, arguments: Mapping[ContentId, Any]) -> dict[str, Any]:
    return {
        "call": call.id,
        "tool": call.tool,
        "arguments": None if call.arguments is None else arguments.get(call.arguments.id),
        "requested_at": call.at.isoformat(),
        "ended_at": None if call.ended_at is None else call.ended_at.isoformat(),
    }


def _child(view: LedgerView, child: Handoff) -> dict[str, Any]:
    task = read_offer(view, child).baton.task
    return {"handoff": child.id, "to": child.to, "state": child.state, "attempt": child.attempt, "task": task}
