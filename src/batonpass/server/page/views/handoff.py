"""A handoff: its baton as a document, the changes since the hop before, its attempts, calls and receipts."""

from collections.abc import Mapping
from datetime import datetime
from difflib import SequenceMatcher
from typing import Final

from msgspec import Struct

from batonpass.accounts.handoff.account import Account, Attempt, CallInWords, read_account
from batonpass.accounts.trail.first_lines import first_line
from batonpass.accounts.unknown_outcome import unknown_outcome
from batonpass.audit.meant_ids import get_handoff
from batonpass.briefing.baton_difference import compare
from batonpass.briefing.render import LIMIT, brief
from batonpass.errors import BatonpassError, GrantError, InvalidValueError, NotFoundError
from batonpass.handoff.grants.effective_grant import read_grant_of
from batonpass.handoff.history.offers import read_offer
from batonpass.model.base.content_names import ARGUMENTS, MESSAGE
from batonpass.model.base.ids import CallId, ContentId, StreamId
from batonpass.model.base.lifecycle import State
from batonpass.model.baton.baton import Baton
from batonpass.model.baton.contradiction import find_in_baton
from batonpass.model.ledger.run import Handoff
from batonpass.records.call import arguments_in
from batonpass.records.handoff import attempt_state
from batonpass.records.hold import find_leave
from batonpass.records.text import read_receipt
from batonpass.server.endpoint import AUDITORS, DECIDERS
from batonpass.server.page.act_words import tell_acts
from batonpass.server.page.frame import as_json
from batonpass.server.page.request import PageMoved, PageRequest, Shown
from batonpass.store.port import LedgerView, ReceiptQuery

PARTS: Final = ("baton", "changed", "attempts", "briefing", "calls", "receipts")
_SHOWN_BYTES: Final = 4096
_RECEIPTS: Final = 100
_RETRYABLE: Final = frozenset({State.FAILED, State.DECLINED, State.REFUTED})
_CANCELLABLE: Final = frozenset({State.HELD, State.OFFERED, State.READY, State.CLAIMED, State.ASKED, State.RUNNING})
ACTIONS: Final = ("retry", "replace", "cancel", "judge", "revoke")


class OutsideText(Struct, frozen=True, kw_only=True):
    """Something from outside, as far as it is shown."""

    name: str
    size: int
    source: str
    text: str | None  # None if it is no text, or is gone
    is_whole: bool
    content: str


def show_handoff(asked: PageRequest) -> Shown:
    """Return one handoff."""
    part = asked.asked("part") or "baton"
    if part not in PARTS:
        raise InvalidValueError("part", f"is one of {', '.join(PARTS)}")
    with asked.looking() as view:
        handoff = _meant(view, asked)
        account = read_account(view, handoff)
        baton = account.offer.baton
        before = _before(view, account)
        shown: Shown = {
            "account": account,
            "handoff": handoff,
            "baton": baton,
            "part": part,
            "parts": PARTS,
            "difference": None if before is None else compare(before, baton),
            "before": before,
            "problems": _problems(account),
            "contradictions": find_in_baton(baton),
            "children": account.children,
            "calls": account.calls,
            "acts": _acts(asked, account),
            "decided": [*tell_acts(account)],
            "may_export": asked.visitor.may(AUDITORS),
            "live_root": handoff.root,
            "hop": _neighbours(account),
            "state": "in doubt" if account.doubts else str(handoff.state),
            "reasons": {one.run.id: reason for one in account.attempts if (reason := _reason(one))},
            "kept": None if account.latest is None or account.latest.closed is None else account.latest.closed.kept,
        }
        shown |= _of_part(view, asked, part, account)
    return shown


def _of_part(view: LedgerView, asked: PageRequest, part: str, account: Account) -> Shown:
    match part:
        case "baton":
            return {"outside": _outside(view, account.offer.baton)}
        case "briefing":
            return {"briefing": _briefing(view, account.handoff, account.offer.baton, asked.now)}
        case "attempts":
            return {
                "aligned": _aligned(account),
                "states": {one.run.id: attempt_state(account.handoff, one.run) for one in account.attempts},
                "doubts": {one.run.id: sum(call.record.in_doubt for call in one.calls) for one in account.attempts},
            }
        case "calls":
            return {
                "abouts": {call.record.id: _about(call) for call in account.calls},
                "outcomes": {call.record.id: _outcome(call) for call in account.calls},
                "leaves": {call.record.id: find_leave(view, call.record) for call in account.calls[:_RECEIPTS]},
            }
        case "receipts":
            return _receipts(view, asked, account)
        case _:
            return {"words": _task_difference(account, _before(view, account))}


def _meant(view: LedgerView, asked: PageRequest) -> Handoff:
    handoff = get_handoff(view, asked.names["handoff"])
    if handoff.id != asked.names["handoff"]:
        raise PageMoved(asked.path.replace(asked.names["handoff"], handoff.id, 1))
    return handoff


def _before(view: LedgerView, account: Account) -> Baton | None:
    """Return the baton that the sender had itself; None for a root, which was given none."""
    above = account.parent.handoff
    if above is None:
        return None
    try:
        return read_offer(view, view.get_handoff(above)).baton
    except BatonpassError:
        return None


def _neighbours(account: Account) -> Mapping[str, str | None]:
    return {
        "before": account.parent.handoff,
        "next": account.children[0].handoff.id if account.children else None,
    }


def _reason(attempt: Attempt) -> str:
    """Return why an attempt failed, in the line of its message that says so: of a traceback the last."""
    text = attempt.texts.get(MESSAGE)
    return "" if text is None or text.body is None else first_line(MESSAGE, text.ref.id, text.body).bare


def _problems(account: Account) -> tuple[str, ...]:
    accepted = None if account.latest is None else account.latest.acceptance
    return () if accepted is None else accepted.problems


def _acts(asked: PageRequest, account: Account) -> list[tuple[str, str]]:
    """Return the actions that are open to somebody in this role now."""
    if not asked.visitor.may(DECIDERS):
        return []
    state, found = account.handoff.state, list[tuple[str, str]]()
    if state in _RETRYABLE:
        found += [("retry", "Try again…"), ("replace", "Give to another agent…")]
    if state is State.COMPLETED:
        found.append(("judge", "Verify or refute…"))
    if state in _CANCELLABLE:
        found.append(("cancel", "Cancel…"))
    if account.granted and account.revoked is None and account.offer.initiated.terms is not None:
        found.append(("revoke", "Revoke its grant…"))
    return found


def _outside(view: LedgerView, baton: Baton) -> list[OutsideText]:
    bodies = {content.id: content.body for content in view.find_contents([one.body for one in baton.untrusted])}
    found = []
    for one in baton.untrusted:
        body = bodies.get(one.body)
        # A cut in the middle of a character loses that character; anything else that cannot be read is no text.
        cut = body is not None and len(body) > _SHOWN_BYTES
        try:
            text = None if body is None else body[:_SHOWN_BYTES].decode(errors="ignore" if cut else "strict")
        except UnicodeDecodeError:
            text = None
        found.append(
            OutsideText(
                name=one.name,
                size=one.size,
                source=one.source,
                text=text,
                is_whole=body is not None and len(body) <= _SHOWN_BYTES,
                content=one.body,
            )
        )
    return found


def _briefing(view: LedgerView, handoff: Handoff, baton: Baton, now: datetime) -> list[tuple[str, str]]:
    """Return the parts of the briefing as its model gets them; the marker around quoted data is a new one each time."""
    try:
        grant = read_grant_of(view, handoff, now)
    except GrantError:
        grant = None

    def read(content: ContentId) -> bytes | None:
        try:
            return view.get_content(content).body
        except NotFoundError:
            return None

    made = brief(baton, read=read, limit=LIMIT, grant=grant, can_ask=True)
    return [("What it is told to do", made.instructions), ("Data, between marks", made.data)]


def _aligned(account: Account) -> list[tuple[str, str, list[str]]]:
    """Return the calls of all attempts side by side, by tool and key, with the outcome of each in each attempt."""
    rows: dict[str, tuple[str, str, list[str]]] = {}
    for column, attempt in enumerate(account.attempts):
        for call in attempt.calls:
            record = call.record
            name = str(record.key or record.id)
            row = rows.setdefault(name, (record.tool, _about(call), [""] * len(account.attempts)))
            row[2][column] = _outcome(call)
        closed = attempt.closed
        for kept in () if closed is None else closed.keeps:
            for row_name, row in rows.items():
                if _has_id(account, kept, row_name) and not row[2][column]:
                    row[2][column] = "kept"
    return [*rows.values()]


def _has_id(account: Account, call: CallId, name: str) -> bool:
    return any(one.record.id == call and str(one.record.key or one.record.id) == name for one in account.calls)


def _about(call: CallInWords) -> str:
    """Return the target of a call, else its arguments: the same tool may be called many times."""
    if call.target is not None:
        return call.target.words or str(call.target.found)
    given = call.arguments
    return "" if given is None or given.body is None else first_line(ARGUMENTS, given.ref.id, given.body).bare


def _outcome(call: CallInWords) -> str:
    record = call.record
    return unknown_outcome(record) if record.outcome is None else str(record.outcome)


def _given(call: CallInWords) -> list[tuple[str, str]]:
    """Return the arguments of a call by name; all of them under no name if they cannot be read."""
    text = call.arguments
    if text is None or text.words is None:
        return []
    given = arguments_in(text.body)
    return [("", text.words)] if given is None else [(name, as_json(value)) for name, value in given.items()]


def _receipts(view: LedgerView, asked: PageRequest, account: Account) -> Shown:
    streams = [StreamId(account.handoff.id), *(StreamId(attempt.run.id) for attempt in account.attempts)]
    after = int(asked.asked("after")) if asked.asked("after").isdecimal() else 0
    found = [account.offered]
    for stream in streams:
        try:
            found += [read_receipt(stored) for stored in view.find_receipts(ReceiptQuery(stream=stream))]
        except NotFoundError:
            continue
    return {
        "receipts": found[after : after + _RECEIPTS],
        "after": after + _RECEIPTS if len(found) > after + _RECEIPTS else None,
        "receipts_total": len(found),
        "signatures": sum(1 + (one.cosigner is not None) for one in found),
    }


def _task_difference(account: Account, before: Baton | None) -> list[tuple[str, str]]:
    """Return the task of this hop against that of the hop before, word by word: kept, added, taken out."""
    if before is None:
        return []
    old, new = before.task.split(), account.offer.baton.task.split()
    found: list[tuple[str, str]] = []
    for what, begin, end, begins, ends in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if what in {"replace", "delete"}:
            found.append(("minus", " ".join(old[begin:end])))
        if what in {"replace", "insert"}:
            found.append(("plus", " ".join(new[begins:ends])))
        if what == "equal":
            found.append(("", " ".join(old[begin:end])))
    return found


def show_action(asked: PageRequest) -> Shown:
    """Return the consequences of an action, and the form for it."""
    action = asked.path.rpartition("/")[2]
    with asked.looking() as view:
        handoff = _meant(view, asked)
        account = read_account(view, handoff)
        if action not in {name for name, _ in _acts(asked, account)}:
            raise PageMoved(f"/handoffs/{handoff.id}")
        return {
            "action": action,
            "account": account,
            "handoff": handoff,
            "doubts": account.doubts,
            "running": sum(1 for one in account.children if one.handoff.state in _CANCELLABLE),
            "finished": sum(one.record.is_finished for one in account.calls),
            "agents": sorted({one.to for one in view.find_handoffs(limit=200)} - {handoff.to}),
        }


def show_doubt(asked: PageRequest) -> Shown:
    """Return a call in doubt, and the form to settle it."""
    with asked.looking() as view:
        handoff = _meant(view, asked)
        account = read_account(view, handoff)
        call = next((one for one in account.calls if one.record.id == asked.names["call"]), None)
        if call is None:
            raise NotFoundError("call", asked.names["call"])
        return {
            "account": account,
            "handoff": handoff,
            "call": call,
            "is_in_doubt": call.record.in_doubt,
            "outcome": _outcome(call),
            "given": _given(call),
            "may_decide": asked.visitor.may(DECIDERS),
            "live_root": handoff.root,
        }
