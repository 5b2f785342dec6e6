"""Approvals and questions: everything that waits for a decision, and the sheet to read before deciding.

The sheet is the text that the ruling names by its digest. It is shown line by line as it is, so that the script of the
page can make the same digest of the text on the screen.
"""

from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from batonpass.accounts.overview.open_needs import NeedKind, find_needs, read_question
from batonpass.audit.meant_ids import find_ended, get_handoff
from batonpass.briefing.decision_sheet import LABEL_WIDTH
from batonpass.errors import HandoffEndedError, NotFoundError
from batonpass.handoff.approvals.decision_sheet import LINE_OF_TEXT, Material, material_of_call, material_of_handoff
from batonpass.handoff.approvals.passkey_request import find_own_passkey
from batonpass.handoff.history.holds import approvers_of
from batonpass.model.base.content_names import TARGET
from batonpass.model.base.ids import CALL, CONTENT, HANDOFF, CallId, ContentId, HandoffId
from batonpass.model.base.label import SourceType
from batonpass.model.base.lifecycle import State
from batonpass.model.baton.items import Artifact
from batonpass.model.ledger.key import KeyStatus
from batonpass.records.call import CallRecord, call_asked, find_call
from batonpass.records.hold import HoldRecord, find_call_hold, find_handoff_holds, find_held_receipt
from batonpass.records.item import find_value, name_of_item
from batonpass.records.lineage import read_task
from batonpass.records.text import read_texts
from batonpass.relay import desk_of
from batonpass.server.endpoint import DECIDERS
from batonpass.server.page.passkey import site_of
from batonpass.server.page.request import PageMoved, PageRequest, Shown
from batonpass.store.port import LedgerView

_SECTIONS: Final = (
    ("Who wants it", frozenset({"task", "to", "asked by", "who wants"})),
    ("What will happen", frozenset({"tool", "on", "with", "diff"})),
    ("Why it waits", frozenset({"because", "gate", "written", "approved", "until"})),
    ("What follows", frozenset({"if yes", "if no", "undo"})),
    ("What was agreed", frozenset({"bound by", "excluded", "may", "changes", "budget", "rationale", "outside"})),
)
_DIFFERENCE: Final = {"+": "plus", "-": "minus", "@": "mark"}
_EXACT: Final = frozenset({"with", "on", "may"})  # as they are given to a tool or a grant


class SheetRow(Struct, frozen=True, kw_only=True):
    """One line of a sheet."""

    label: str  # empty if it goes on
    text: str
    look: str  # how it is drawn: `plus` and `minus` for lines of a difference, `same` for the others; `code` or nothing


class SheetPart(Struct, frozen=True, kw_only=True):
    """Some lines of a sheet under one heading. The headings are no part of it."""

    title: str
    rows: tuple[SheetRow, ...]


def list_approvals(asked: PageRequest) -> Shown:
    """Return everything that waits for somebody."""
    with asked.looking() as view:
        needs = find_needs(view)
    return {
        "held": [need for need in needs if need.kind is NeedKind.HELD],
        "asked_for": [need for need in needs if need.kind is NeedKind.ASKED],
        "doubts": [need for need in needs if need.kind is NeedKind.DOUBT],
    }


def decide(asked: PageRequest) -> Shown:
    """Return the sheet of something that is held, or the decision about it."""
    given = asked.names["held"]
    desk = desk_of(asked.plane.relay)
    with asked.looking() as view:
        held = _meant(view, given)
        if held != given:
            raise PageMoved(f"/approvals/{held}")
        record = _record(view, held)
        hold = None if record is None else record.hold
        receipt = None if hold is None else find_held_receipt(view, hold)
        call = None if receipt is None else call_asked(receipt)
        sheet: Material | None
        try:
            if held.startswith(f"{HANDOFF}_"):
                sheet = material_of_handoff(view, HandoffId(held), desk.gates)
            else:
                sheet = material_of_call(view, CallId(held), desk.gates) if record and record.is_open else None
        except HandoffEndedError:
            sheet = None
        # The time for which somebody looked begins when they come, and not whenever the page is refreshed.
        if sheet is not None and not asked.is_refresh:
            desk.showings.show(sheet.hold, sheet.digest)
        queue = [str(need.id) for need in find_needs(view) if need.kind is NeedKind.HELD]
        root = _root(view, held, call)
        title = _title(view, held, call)
        return {
            "held": held,
            "record": record,
            "sheet": sheet,
            "parts": [] if sheet is None else [*_parts(sheet)],
            "heading": title,
            "footer": "" if sheet is None else sheet.text.rstrip("\n").rpartition("\n")[2],
            "first": "" if sheet is None else sheet.text.partition("\n")[0],
            "call": call,
            "danger": None if call is None else _danger(call),
            "is_tainted": call is not None and _has_read(call),
            "sources": [] if call is None else [*_sources(view, call)],
            "place": queue.index(held) + 1 if held in queue else None,
            "queue": len(queue),
            "next": next((one for one in queue if one != held), None),
            "may_decide": asked.visitor.may(DECIDERS),
            "own_key": _own_key(view, asked),
            "until": None if hold is None else hold.until,
            "live_root": root,
            "handoff": held if held.startswith(f"{HANDOFF}_") else None,
        }


def _own_key(view: LedgerView, asked: PageRequest) -> str:
    """Return how the visitor can prove a decision: `here` by a passkey, `elsewhere`, in a `file`, or `none`."""
    principal = asked.visitor.caller.principal
    own = find_own_passkey(view, principal)
    if own is not None:
        return "here" if own[1].site == site_of(asked.origin) else own[1].site
    has_file = any(key.status is KeyStatus.ACTIVE for key in approvers_of(view, principal))
    return "file" if has_file else "none"


def show_question(asked: PageRequest) -> Shown:
    """Return one closed question of a receiver, or its answer."""
    with asked.looking() as view:
        handoff = get_handoff(view, asked.names["handoff"])
        if handoff.id != asked.names["handoff"]:
            raise PageMoved(f"/questions/{handoff.id}")
        if handoff.state is not State.ASKED:
            raise PageMoved(f"/handoffs/{handoff.id}")
        question, at = read_question(view, handoff)
        task = read_task(view, handoff)
        return {
            "handoff": handoff,
            "question": question,
            "since": at,
            "task": "" if task is None else task.words or str(task.found),
            "sender": view.get_run(handoff.parent),
            "may_decide": asked.visitor.may(DECIDERS),
            "live_root": handoff.root,
        }


def _meant(view: LedgerView, given: str) -> str:
    """Return the held handoff or call that an id means; it may be cut to its last letters."""
    if given.startswith((f"{HANDOFF}_", f"{CALL}_")):
        return given
    found = sorted({str(one.id) for one in find_ended(view, given, (HANDOFF, CALL))})
    if len(found) != 1:
        raise NotFoundError("held handoff or call", given)
    return found[0]


def _record(view: LedgerView, held: str) -> HoldRecord | None:
    if held.startswith(f"{CALL}_"):
        found = find_call_hold(view, CallId(held))
        if found is None:
            raise NotFoundError("held call", held)
        return found
    holds = [*find_handoff_holds(view, view.get_handoff(HandoffId(held)))]
    return holds[-1] if holds else None


def _root(view: LedgerView, held: str, call: CallRecord | None) -> str:
    if held.startswith(f"{HANDOFF}_"):
        return view.get_handoff(HandoffId(held)).root
    return "" if call is None else view.get_run(call.run).root


def _title(view: LedgerView, held: str, call: CallRecord | None) -> str:
    """Return the agent and its wish, by declared fields alone: no word of a model stands in a title."""
    if call is not None:
        return f"{view.get_run(call.run).agent} wants to call {call.tool}"
    return f"{view.get_handoff(HandoffId(held)).to} wants to begin"


def _danger(call: CallRecord) -> str | None:
    if call.reads:
        return None
    if "irreversible" in call.tiers:
        return "cannot be undone"
    return None if call.reversible else "nobody says that it can be undone"


def _has_read(call: CallRecord) -> bool:
    return bool(call.untrusted) or (call.label is not None and call.label.integrity is SourceType.EXTERNAL)


def _sources(view: LedgerView, call: CallRecord) -> Iterator[tuple[str, str]]:
    """Yield where the words from outside in a call came from, each with the id by which `batonpass taint` knows it."""
    for source in call.untrusted:
        told = str(source)
        if source.startswith(f"{CALL}_"):
            made = find_call(view, CallId(source))
            target = None if made is None else read_texts(view, made.receipt).get(TARGET)
            words = "" if target is None else target.words or str(target.found)
            told = "a call" if made is None else f"{made.tool} {words}".strip()
        elif source.startswith(f"{CONTENT}_"):
            item = ContentId(source)
            value = find_value(view, item)
            told = f"{value.name} from {value.source}" if isinstance(value, Artifact) else name_of_item(view, item)
        yield told, source


def _rows(sheet: Material) -> Iterator[SheetRow]:
    label = ""
    for line in sheet.text.split("\n")[1:-2]:
        own, text = line[2 : 2 + LABEL_WIDTH].rstrip(), line[2 + LABEL_WIDTH :]
        label = own or label
        look = _DIFFERENCE.get(text[:1], "same") if label == "diff" else "code" if label in _EXACT else ""
        look = "code line" if look == "code" and text.startswith(LINE_OF_TEXT) else look
        yield SheetRow(label=own, text=text, look=look)


def _parts(sheet: Material) -> Iterator[SheetPart]:
    """Yield the lines between the first and the last of a sheet, under headings, in their order."""
    rows = [*_rows(sheet)]
    title, found = "", list[SheetRow]()
    for row in rows:
        here = title if not row.label else next((name for name, labels in _SECTIONS if row.label in labels), "Also")
        if here != title and found:
            yield SheetPart(title=title, rows=tuple(found))
            found = []
        title = here
        found.append(row)
    if found:
        yield SheetPart(title=title, rows=tuple(found))
