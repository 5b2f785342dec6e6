"""The texts to compare for taint: those of sources, and those of receipts, each with its place."""

import json
from collections.abc import Iterator
from typing import Final

from batonpass.accounts.trail.first_lines import sentence_of
from batonpass.attribution.changes.change_document import decode_change
from batonpass.errors import InvalidValueError
from batonpass.handoff.tools.json_values import strings_in
from batonpass.model.base.content_names import (
    ANSWER,
    ARGUMENTS,
    BRIEF,
    COMMAND,
    EVIDENCE,
    INTENT,
    MESSAGE,
    PATH,
    QUESTION,
    REASON,
    REPORT,
    RESULT,
    TASK,
)
from batonpass.model.base.ids import CONTENT, CallId, ContentId, RunId
from batonpass.model.base.kinds import Kind
from batonpass.model.base.label import Source
from batonpass.model.baton.items import Artifact, ItemValue, Report
from batonpass.model.bodies.body import HandoffCompleted, HandoffFailed, HandoffInitiated, Part, RunRecorded
from batonpass.model.ledger.receipt import Receipt
from batonpass.records.call import Ended
from batonpass.records.item import find_body, find_value, name_of_item
from batonpass.records.text import read_contents
from batonpass.store.port import LedgerView
from batonpass.wire.documents import decode_brief, decode_report, is_report

_SAID: Final = (INTENT, TASK, BRIEF, REPORT, MESSAGE, QUESTION, ANSWER, REASON, EVIDENCE, COMMAND, ARGUMENTS)


# The reason for a hold or denial is our own text.
_STOPPED: Final = frozenset({Kind.TOOL_HELD, Kind.TOOL_DENIED, Kind.HANDOFF_HELD})


def source_text(view: LedgerView, source: Source, entered: Receipt | None) -> str | None:
    """Return the whole text of a source; None if it is gone, or it has no text of its own."""
    if source.startswith(f"{CONTENT}_"):
        return item_text(view, ContentId(source))
    ref = None if entered is None else entered.content.get(RESULT) or entered.content.get(MESSAGE)
    if ref is None or not isinstance(getattr(entered, "body", None), Ended):
        return None
    body = find_body(view, ref.id)
    return None if body is None else _read(body, in_json=True)


def item_text(view: LedgerView, item: ContentId) -> str | None:
    """Return the whole text of an item; for a file, its content. None if it is gone."""
    value = find_value(view, item)
    if isinstance(value, Artifact):
        body = find_body(view, value.body)
        return None if body is None else _read(body, in_json=False)
    if value is None:
        # An intent is plain text, and another version may have written what we cannot decode.
        said = find_body(view, item)
        return None if said is None else _read(said, in_json=False)
    return _value_text(value)


def texts_of(view: LedgerView, receipt: Receipt) -> Iterator[tuple[str, str | None]]:
    """Yield the texts of a receipt by place; None for an erased one."""
    ours = {REASON} if receipt.kind in _STOPPED else set()
    refs = {name: receipt.content[name] for name in _SAID if name in receipt.content and name not in ours}
    for name, text in read_contents(view, refs).items():
        if text.body is None:
            yield name, None
        elif name == ARGUMENTS:
            yield from _arguments(text.body)
        else:
            yield name, _said(name, text.body)
    yield from _items(view, receipt)
    yield from _files(view, receipt)


def _said(name: str, body: bytes) -> str:
    try:
        if name == REPORT and is_report(body):
            return _value_text(decode_report(body))
        if name == BRIEF:
            brief = decode_brief(body)
            given = (*brief.criteria, *brief.inputs, *brief.expects, *brief.stop_when, *brief.verify_by, *brief.may)
            return "\n".join(text for text in (brief.serves, brief.rationale, *given) if text)
    except InvalidValueError:
        pass  # another version wrote it, or it was altered: take it as plain text
    return _read(body, in_json=False)


def _arguments(body: bytes) -> Iterator[tuple[str, str | None]]:
    try:
        read = json.loads(body)
    except (ValueError, RecursionError):
        yield ARGUMENTS, _read(body, in_json=False)
        return
    given = read.get(ARGUMENTS, read) if isinstance(read, dict) else read
    for name, value in given.items() if isinstance(given, dict) else ((ARGUMENTS, given),):
        for text in strings_in(value):
            yield f"argument {name}", text


def _items(view: LedgerView, receipt: Receipt) -> Iterator[tuple[str, str | None]]:
    """Yield the texts of the items that a receipt brings, except quarantined ones, which are sources themselves."""
    match receipt.body:
        case HandoffInitiated(carries=carries):
            given = carries
        case HandoffCompleted(gives=gives) | HandoffFailed(gives=gives):
            given = gives
        case RunRecorded(items=items):
            given = items
        case _:
            given = ()
    for item in given:
        if item.part not in {Part.UNTRUSTED, Part.INTENT}:
            yield f"item {name_of_item(view, item.item)}", item_text(view, item.item)


def _files(view: LedgerView, receipt: Receipt) -> Iterator[tuple[str, str | None]]:
    """Yield the lines that a call added to files."""
    body = receipt.body
    if not isinstance(body, Ended):
        return
    for changed in body.changes:
        stored = find_body(view, changed.change)
        if stored is None:
            yield "a file", None
            continue
        try:
            change = decode_change(stored, call=CallId(body.call), run=RunId(body.run), at=receipt.at)
        except InvalidValueError:
            continue
        added = "\n".join(line for hunk in change.hunks or () for line in hunk.added)
        if added:
            yield f"file {change.path}", added


def path_of(view: LedgerView, receipt: Receipt) -> str:
    """Return the path that a receipt names."""
    ref = receipt.content.get(PATH)
    body = None if ref is None else find_body(view, ref.id)
    return "a file" if body is None else body.decode("utf-8", "replace")


def _value_text(value: ItemValue) -> str:
    if isinstance(value, Report):
        items: tuple[ItemValue, ...] = (*value.completed, *value.open_questions, *value.decisions, *value.claims)
        return "\n".join(text for text in (value.result, value.value, *map(sentence_of, items)) if text)
    return sentence_of(value)


def _read(body: bytes, *, in_json: bool) -> str:
    text = body.decode("utf-8", "replace")
    if in_json and text[:1] in {"{", "[", '"'}:
        try:
            return "\n".join(strings_in(json.loads(text)))
        except (ValueError, RecursionError):
            return text
    return text
