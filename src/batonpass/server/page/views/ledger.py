"""The ledger: receipts by kind, agent, time and words; one of them step by step; seals; and whether all of it holds."""

import json
from collections.abc import Iterator
from datetime import datetime
from typing import Final
from urllib.parse import urlencode

from msgspec.structs import replace

from batonpass.accounts.overview.receipt_steps import find_steps
from batonpass.accounts.trail.first_lines import first_line
from batonpass.audit.meant_ids import get_receipt
from batonpass.errors import InvalidValueError
from batonpass.model.base.content_names import (
    ANSWER,
    COMMAND,
    INTENT,
    ITEM,
    MESSAGE,
    QUESTION,
    REASON,
    REPORT,
    TARGET,
    TASK,
)
from batonpass.model.base.ids import RUN, RunId
from batonpass.model.ledger.receipt import StoredReceipt
from batonpass.records.receipt_shape import receipt_shape
from batonpass.records.shape import in_json
from batonpass.records.text import read_receipt, read_texts
from batonpass.server.endpoint import ADMINS, AUDITORS
from batonpass.server.page.request import PageMoved, PageRequest, Shown
from batonpass.store.port import LedgerView, ReceiptQuery
from batonpass.wire.codec import encode_envelope

PAGE: Final = 50
_WINDOW: Final = 400  # positions that are looked at together
_MOST_SCANNED: Final = 4_000  # for one page; whoever filters goes on with the next
_LONGEST_FILTER: Final = 128
# Which of its contents says best what a receipt is about.
_TELLING: Final = (TASK, INTENT, TARGET, REASON, QUESTION, ANSWER, REPORT, MESSAGE, COMMAND, ITEM)
_DIGITS: Final = 16  # of a position
FAMILIES: Final = (
    "run",
    "handoff",
    "tool",
    "verification",
    "grant",
    "checkpoint",
    "session",
    "token",
    "relay",
    "finding",
)


def list_receipts(asked: PageRequest) -> Shown:
    """Return receipts, the newest first, in pages by position."""
    kind, agent, words = (asked.asked(name)[:_LONGEST_FILTER] for name in ("kind", "agent", "q"))
    since = _moment(asked.asked("since"))
    with asked.looking() as view:
        last = view.last_position()
        before = asked.asked("before")
        start = (
            min(last, int(before) - 1) if before.isascii() and before.isdecimal() and len(before) <= _DIGITS else last
        )
        wanted = ReceiptQuery(kind=kind or None, since=since)
        found, reached = _newest(view, start, wanted, _Filter(view, agent, words.casefold()))
        rows = [(stored, read_receipt(stored)) for stored in found]
        lines = {receipt.id: _line(view, stored) for stored, receipt in rows}
        seal = max((one.size for one in view.find_seals()), default=0)
    return {
        "rows": rows,
        "lines": lines,
        "kind": kind,
        "agent": agent,
        "q": words,
        "since": asked.asked("since"),
        "families": FAMILIES,
        "next": f"/ledger?{urlencode({**asked.query, 'before': str(reached)})}" if reached > 1 else None,
        "is_first": not before,
        "seal_size": seal,
        "last": last,
        "check": asked.check.state,
        "may_verify": asked.visitor.may(AUDITORS),
        "may_seal": asked.visitor.may(ADMINS),
    }


class _Filter:
    """What somebody looks for besides the kind and the day.

    A store finds all receipts of an agent, by its runs. In a window of positions there are few, so each is looked at.
    """

    def __init__(self, view: LedgerView, agent: str, words: str) -> None:
        self._view, self._agent, self._words = view, agent, words
        self._agents: dict[str, str] = {}

    @property
    def is_empty(self) -> bool:
        return not self._agent and not self._words

    def passes(self, stored: StoredReceipt) -> bool:
        if self._agent and self._of(stored.stream) != self._agent:
            return False
        return not self._words or self._words in _text(self._view, stored)

    def _of(self, stream: str) -> str:
        if stream not in self._agents:
            is_run = stream.startswith(f"{RUN}_")
            self._agents[stream] = self._view.get_run(RunId(stream)).agent if is_run else ""
        return self._agents[stream]


def _newest(view: LedgerView, start: int, wanted: ReceiptQuery, looked_for: _Filter) -> tuple[list[StoredReceipt], int]:
    """Return receipts from a position backwards, and the position down to which was looked."""
    found: list[StoredReceipt] = []
    upper, window = start, PAGE if looked_for.is_empty and not wanted.kind else _WINDOW
    while upper > 0 and len(found) < PAGE and start - upper < _MOST_SCANNED:
        lower = max(1, upper - window + 1)
        query = replace(wanted, first=lower, last=upper)
        found += [one for one in view.find_receipts(query) if looked_for.passes(one)][::-1]
        upper = lower - 1
    shown = found[:PAGE]
    return shown, (shown[-1].position or 1) if len(found) > PAGE else upper + 1


def _text(view: LedgerView, stored: StoredReceipt) -> str:
    texts = read_texts(view, read_receipt(stored)).values()
    return " ".join([stored.id, stored.kind, *(text.words or "" for text in texts)]).casefold()


def _line(view: LedgerView, stored: StoredReceipt) -> str:
    texts = read_texts(view, read_receipt(stored))
    for name in _TELLING:
        if (text := texts.get(name)) is not None:
            return str(text.found) if text.body is None else first_line(name, text.ref.id, text.body).bare
    return ""


def _moment(given: str) -> datetime | None:
    if not given:
        return None
    try:
        return datetime.fromisoformat(f"{given}T00:00:00+00:00")
    except ValueError:
        raise InvalidValueError("since", "is a day, such as 2026-11-18") from None


def show_receipt(asked: PageRequest) -> Shown:
    """Return one receipt: its fields, its words, its raw form and its checks."""
    with asked.looking() as view:
        stored = get_receipt(view, asked.names["receipt"])
        if stored.id != asked.names["receipt"]:
            raise PageMoved(f"/ledger/receipts/{stored.id}")
        receipt = read_receipt(stored)
        return {
            "stored": stored,
            "receipt": receipt,
            "steps": [*find_steps(view, stored)],
            "texts": read_texts(view, receipt),
            "fields": [*_fields(receipt_shape(view, stored, receipt))],
            "raw": json.dumps(encode_envelope(stored, receipt), indent=2, default=in_json),
        }


def _fields(shape: dict[str, object]) -> Iterator[tuple[str, str]]:
    for name, value in shape.items():
        if name not in {"content", "body"} and value is not None:
            yield name, str(value)
    body = shape["body"]
    for name, value in body.items() if isinstance(body, dict) else ():
        yield (
            f"body.{name}",
            value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=in_json),
        )


def show_seals(asked: PageRequest) -> Shown:
    """Return the seals, the newest first."""
    with asked.looking() as view:
        seals = sorted(view.find_seals(), key=lambda one: one.size, reverse=True)[:PAGE]
        return {"seals": seals, "last": view.last_position(), "may_seal": asked.visitor.may(ADMINS)}


def show_check(asked: PageRequest) -> Shown:
    """Return how far the verification is, or what it found."""
    with asked.looking() as view:
        return {
            "check": asked.check.state,
            "may_verify": asked.visitor.may(AUDITORS),
            "last": view.last_position(),
            "live_root": "",
        }
