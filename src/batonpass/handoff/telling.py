"""What a program is told at its start: the task, the whole baton, and what earlier attempts did. All of it is JSON."""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from batonpass.handoff.calls.past_calls import PastCall
from batonpass.handoff.transfer.read_offer import read_offer
from batonpass.model.baton import Baton, within
from batonpass.model.ids import ContentId
from batonpass.model.items import Artifact, Item, ItemValue, Report, part_of
from batonpass.model.kinds import Part
from batonpass.model.run import Handoff
from batonpass.store.port import LedgerView
from batonpass.wire.documents import to_document

if TYPE_CHECKING:
    from batonpass.handoff.run import LiveRun

VERSION: Final = 0
REPORTS: Final = "reports"

# The same names as in Python, so that whoever knows one knows the other.
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


def tell_task(run: "LiveRun") -> dict[str, Any]:
    """Return the first message to a program."""
    return {
        "type": "task",
        "v": VERSION,
        "run": run.id,
        "agent": run.agent,
        "attempt": run.attempt,
        "task": run.task,
        "baton": None if run.baton is None else tell_baton(run.baton),
        "earlier": _earlier(run),
    }


def tell_baton(baton: Baton) -> dict[str, Any]:
    """Return a baton: who hands what to whom, and a list for each part; what came from outside has its own."""
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
        "brief": to_document(baton.brief),
        "answers": [
            {"question": answer.question, "answer": answer.answer, "by": answer.by, "at": answer.at.isoformat()}
            for answer in baton.answers
        ],
        "missing": list(baton.missing),
    }
    told |= {name: [] for name in (*LISTS.values(), REPORTS)}
    for item in baton.items:
        if item.value is None:
            told[LISTS[item.part]].append({**_known(item), "erased": True})
        for value in within(item.value):
            name = REPORTS if isinstance(value, Report) else LISTS[part_of(value)]
            told[name].append({**_known(item), **tell_value(value)})
    return told


def _known(item: Item) -> dict[str, Any]:
    return {"id": item.id, "by": item.by, "at": item.at.isoformat()}


def tell_value(value: ItemValue) -> dict[str, Any]:
    """Return an item; an artifact by its name and digest, the rest without what has its default."""
    if isinstance(value, Artifact):
        return {name: getattr(value, name) for name in ("name", "media_type", "size", "sha256", "source")}
    document: dict[str, Any] = to_document(value)
    if isinstance(value, Report) and value.value is not None:
        document["value"] = json.loads(value.value)
    return document


def _earlier(run: "LiveRun") -> dict[str, Any]:
    past = run.earlier
    calls = (*past.finished, *past.in_doubt)
    arguments: dict[ContentId, Any] = {}
    children: list[dict[str, Any]] = []
    if calls or past.children:
        with run._desk.store.view() as view:  # noqa: SLF001 - we speak for the run
            refs = [call.arguments.id for call in calls if call.arguments is not None]
            for stored in view.find_contents(refs):
                if stored.body is not None:
                    arguments[stored.id] = json.loads(stored.body).get("arguments")
            children = [_child(view, child) for child in past.children]
    return {
        "finished": [_call(call, arguments) for call in past.finished],
        "in_doubt": [_call(call, arguments) for call in past.in_doubt],
        "children": children,
        "messages": run.messages(),
    }


def _call(call: PastCall, arguments: Mapping[ContentId, Any]) -> dict[str, Any]:
    return {
        "call": call.id,
        "tool": call.tool,
        "arguments": None if call.arguments is None else arguments.get(call.arguments.id),
        "requested_at": call.requested_at.isoformat(),
        "ended_at": None if call.ended_at is None else call.ended_at.isoformat(),
    }


def _child(view: LedgerView, child: Handoff) -> dict[str, Any]:
    task = read_offer(view, child).baton.task
    return {"handoff": child.id, "to": child.to, "state": child.state, "attempt": child.attempt, "task": task}
