"""The fields that the receipts of each act must have: the program's own words, and nobody else's."""

import json
from collections.abc import Sequence
from typing import Any, Final

from batonpass.client.asked_act import AskedAct, Words, same_bytes, same_json, same_text
from batonpass.errors import BatonpassError
from batonpass.handoff.tools.json_values import describe_call, keep_result
from batonpass.model.base.content_names import ARGUMENTS, BODY, MESSAGES, REPORT, RESULT
from batonpass.model.base.ids import CallId, HandoffId, PublicKey, RunId
from batonpass.model.base.kinds import Kind, Mode, Part
from batonpass.model.baton.items import Artifact, ItemValue, Report, WorkItem
from batonpass.model.bodies.body import (
    HandoffAccepted,
    HandoffCompleted,
    HandoffFailed,
    Outcome,
    RunClosed,
    RunRecorded,
    RunRekeyed,
    RunStarted,
    ToolCached,
    ToolCompleted,
    ToolDenied,
    ToolFailed,
    ToolHeld,
    ToolRequested,
)
from batonpass.model.ledger.receipt import Receipt
from batonpass.wire.documents import decode_item, decode_work, encode_item, encode_report

_CALLS: Final = (ToolRequested, ToolDenied, ToolHeld, ToolCached)
_ENDS: Final = frozenset({Kind.RUN_CLOSED, Kind.RUN_SUSPENDED, Kind.HANDOFF_COMPLETED, Kind.HANDOFF_FAILED})
_NOTHING: Final[frozenset[str]] = frozenset()


def any_act(run: RunId) -> AskedAct:
    """Return an act of which a run signs only facts that the relay notices by itself."""
    return AskedAct(run=run, kinds=_NOTHING, says=lambda _, __: None)


def start_act(intent: str, *, by: str, agent: str, items: Sequence[ItemValue], new_key: PublicKey) -> AskedAct:
    """Return the start of a root run: for this principal, with these words, and with our key."""

    def says(receipt: Receipt, words: Words) -> str | None:
        match receipt.body:
            case RunStarted() as body:
                wrong = {
                    "agent": body.agent != agent,
                    "principal": body.principal != by,
                    "key": body.run_key != new_key,
                    "mode": receipt.mode is not Mode.ENFORCED,
                    "intent": words.get(Part.INTENT) != intent.encode(),
                }
                return ", ".join(name for name, other in wrong.items() if other) or None
            case RunRekeyed(run_key=key):
                return None if key == new_key else "it has another key"
            case RunRecorded():
                return _wrong_items(words, items)
            case _:
                return None

    kinds = frozenset({Kind.RUN_STARTED, Kind.RUN_REKEYED, Kind.RUN_RECORDED})
    return AskedAct(run=None, kinds=kinds, says=says, new_key=new_key)


def accept_act(run: RunId | None, handoff: HandoffId, new_key: PublicKey) -> AskedAct:
    """Return the acceptance of a handoff, with our key for its next attempt."""

    def says(receipt: Receipt, _: Words) -> str | None:
        body = receipt.body
        if not isinstance(body, HandoffAccepted) or body.handoff != handoff:
            return "it is about another handoff"
        return None if body.run_key == new_key else "it has another key"

    return AskedAct(run=run, kinds=frozenset({Kind.HANDOFF_ACCEPTED}), says=says, new_key=new_key)


def offer_act(run: RunId, to: str, task: str) -> AskedAct:
    """Return an offer: only a refusal of it is signed by the run."""

    def says(receipt: Receipt, words: Words) -> str | None:
        body = receipt.body
        if not isinstance(body, HandoffFailed) or not body.is_refusal or body.to != to:
            return "it is no refusal of this offer"
        return None if same_text("task", words.get("task"), task) else "it is about another task"

    return AskedAct(run=run, kinds=frozenset({Kind.HANDOFF_FAILED}), says=says)


def verdict_act(run: RunId, handoff: HandoffId) -> AskedAct:
    """Return a verdict of the run on a result: a good one is written down as verified work."""

    def says(_: Receipt, words: Words) -> str | None:
        found = _items(words)
        right = [isinstance(one, WorkItem) and one.evidence == handoff for one in found]
        return None if found and all(right) else "it is no verdict on this handoff"

    return AskedAct(run=run, kinds=frozenset({Kind.RUN_RECORDED}), says=says)


def record_act(run: RunId, items: Sequence[ItemValue]) -> AskedAct:
    """Return items that a run writes down."""
    return AskedAct(run=run, kinds=frozenset({Kind.RUN_RECORDED}), says=lambda _, words: _wrong_items(words, items))


def attach_act(run: RunId, name: str, body: bytes, *, untrusted: bool) -> AskedAct:
    """Return an artifact that a run attaches."""

    def says(_: Receipt, words: Words) -> str | None:
        if not (same_bytes(BODY, words.get(BODY), body) or same_text(BODY, words.get(BODY), _decoded(body))):
            return "it has another body"
        found = [value for value in _items(words) if isinstance(value, Artifact)]
        if [(one.name, one.untrusted) for one in found] != [(name, untrusted)]:
            return "it is another artifact"
        return None

    return AskedAct(run=run, kinds=frozenset({Kind.RUN_RECORDED, Kind.RUN_TAINTED}), says=says)


def checkpoint_act(run: RunId, messages: object) -> AskedAct:
    """Return a checkpoint with the state that the next attempt needs."""
    said = json.dumps(messages, ensure_ascii=False).encode()
    return AskedAct(
        run=run,
        kinds=frozenset({Kind.CHECKPOINT_SAVED}),
        says=lambda _, words: None if same_json(MESSAGES, words.get(MESSAGES), said) else "it has other messages",
    )


def begin_act(run: RunId, tool: str, arguments: dict[str, Any]) -> AskedAct:
    """Return a call that a run wants to make."""
    said = describe_call(tool, arguments)

    def says(receipt: Receipt, words: Words) -> str | None:
        body = receipt.body
        if not isinstance(body, _CALLS) or body.tool != tool:
            return "it is a call of another tool"
        return None if same_json(ARGUMENTS, words.get(ARGUMENTS), said) else "it has other arguments"

    kinds = frozenset({Kind.TOOL_REQUESTED, Kind.TOOL_DENIED, Kind.TOOL_HELD, Kind.TOOL_CACHED})
    return AskedAct(run=run, kinds=kinds, says=says)


def finish_act(run: RunId, call: CallId, result: object, error: str | None) -> AskedAct:
    """Return the outcome of a call."""

    def says(receipt: Receipt, words: Words) -> str | None:
        match receipt.body:
            case ToolCompleted(call=about) if error is None and about == call:
                said, _ = keep_result(result)
                found = words.get(RESULT)
                same = same_json(RESULT, found, said) or same_bytes(RESULT, found, said)
                return None if same else "it has another result"
            case ToolFailed(call=about, error=code) if error is not None and about == call:
                return None if code == error else f"it failed with {code}"
            case _:
                return "it is another outcome, or of another call"

    return AskedAct(run=run, kinds=frozenset({Kind.TOOL_COMPLETED, Kind.TOOL_FAILED}), says=says)


def close_act(run: RunId, outcome: Outcome, report: Report | None) -> AskedAct:
    """Return the end of a run, with its report."""

    def says(receipt: Receipt, words: Words) -> str | None:
        match receipt.body:
            case RunClosed(outcome=ended):
                pass
            case HandoffCompleted():
                ended = Outcome.COMPLETED
            case _:
                ended = Outcome.FAILED
        if ended is not outcome and not (outcome is Outcome.CANCELLED and ended is Outcome.FAILED):
            return f"it ended as {ended}, not as {outcome}"
        return _wrong_report(words.get(REPORT), report)

    return AskedAct(run=run, kinds=_ENDS, says=says)


def _wrong_report(found: bytes | None, report: Report | None) -> str | None:
    if found is None:
        return None if report is None else "its report is missing"
    if report is None:
        return "it has a report"
    told = json.loads(found)
    told.pop("work", None)  # role and phase, as whoever handed it off gave them
    return None if same_json(REPORT, json.dumps(told).encode(), encode_report(report)) else "it has another report"


def _wrong_items(words: Words, items: Sequence[ItemValue]) -> str | None:
    """Return the problem with an item that is not ours; None if there is none."""
    for name, body in words.items():
        if not _is_item(name):
            continue
        try:
            _, by, at = decode_item(body)
            role, phase = decode_work(body)
        except BatonpassError as error:
            return str(error)
        if not any(same_json(name, body, encode_item(one, by, at, role=role, phase=phase)) for one in items):
            return "it has an item that nobody wrote down"
    return None


def _items(words: Words) -> list[ItemValue]:
    return [decode_item(body)[0] for name, body in words.items() if _is_item(name)]


def _is_item(name: str) -> bool:
    part, _, number = name.partition(".")
    return number.isdecimal() and part in set(Part)


def _decoded(body: bytes) -> str:
    return body.decode("utf-8", "replace")
