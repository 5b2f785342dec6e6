"""The ledger: receipts by kind, agent, time and words; one of them step by step; seals; and whether all of it holds.

The filters are those of `batonpass receipt grep`, and so is the search; it goes backwards, a part at a time.
"""

import json
from collections.abc import Iterator
from datetime import UTC
from typing import Final
from urllib.parse import urlencode

from msgspec import Struct
from msgspec.structs import replace

from batonpass.accounts.overview.receipt_steps import find_steps
from batonpass.accounts.trail.first_lines import first_line
from batonpass.audit.grep import Match, SearchPattern, agent_of, find_in_receipt
from batonpass.audit.meant_ids import get_receipt
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
from batonpass.model.base.durations import moment_before
from batonpass.model.base.ids import RUN, StreamId
from batonpass.model.ledger.receipt import Receipt, StoredReceipt
from batonpass.records.json_shapes import in_json
from batonpass.records.receipt_shape import receipt_shape
from batonpass.records.text import read_receipt, read_texts
from batonpass.server.endpoint import ADMINS, AUDITORS
from batonpass.server.page.request import PageMoved, PageRequest, Shown
from batonpass.store.port import LedgerView, ReceiptQuery
from batonpass.wire.receipt_codec import encode_envelope

PAGE: Final = 50
_WINDOW: Final = 400  # positions that are looked at together
_MOST_SCANNED: Final = 4_000  # for one page; whoever filters goes on with the next
_MOST_SEARCHED: Final = 800  # the same if their words are read, too
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


_Found = tuple[StoredReceipt, Match | None]


class LedgerRow(Struct, frozen=True, kw_only=True):
    """One receipt in the list."""

    stored: StoredReceipt
    receipt: Receipt
    agent: str  # whose stream it is in
    line: str  # the words that say best what it is about; empty if there is a match
    match: Match | None  # the first, if words are looked for


def list_receipts(asked: PageRequest) -> Shown:
    """Return receipts, the newest first, in pages by position."""
    kind, agent, words = (asked.asked(name)[:_LONGEST_FILTER] for name in ("kind", "agent", "q"))
    given, is_pattern = asked.asked("since")[:_LONGEST_FILTER], asked.asked("pattern") == "yes"
    since = moment_before("since", given, asked.now, UTC) if given else None
    pattern = _pattern(words, is_regular=is_pattern) if words else None
    with asked.looking() as view:
        last = view.last_position()
        before = asked.asked("before")
        start = (
            min(last, int(before) - 1) if before.isascii() and before.isdecimal() and len(before) <= _DIGITS else last
        )
        wanted = ReceiptQuery(kind=kind or None, since=since)
        looked_for = _Filter(view, agent, pattern)
        found, reached = _newest(view, start, wanted, looked_for)
        rows = [
            LedgerRow(
                stored=stored,
                receipt=read_receipt(stored),
                agent=looked_for.agent_of(stored),
                line="" if match is not None else _line(view, stored),
                match=match,
            )
            for stored, match in found
        ]
        seal = max((one.size for one in view.find_seals()), default=0)
    return {
        "rows": rows,
        "kind": kind,
        "agent": agent,
        "q": words,
        "since": given,
        "is_pattern": is_pattern,
        "families": FAMILIES,
        "next": f"/ledger?{urlencode({**asked.query, 'before': str(reached)})}" if reached > 1 else None,
        "is_first": not before,
        "seal_size": seal,
        "last": last,
        "check": asked.check.state,
        "may_verify": asked.visitor.may(AUDITORS),
        "may_seal": asked.visitor.may(ADMINS),
    }


def _pattern(words: str, *, is_regular: bool) -> SearchPattern:
    return SearchPattern(words, ignore_case=True) if is_regular else SearchPattern.of_words(words)


class _Filter:
    """The agent and the words that somebody looks for, besides the kind and the time.

    A store finds all receipts of an agent, by its runs. In a window of positions there are few, so each is looked at.
    """

    def __init__(self, view: LedgerView, agent: str, pattern: SearchPattern | None) -> None:
        self._view, self._agent, self._pattern = view, agent, pattern
        self._agents: dict[StreamId, str] = {}
        self.most = _MOST_SCANNED if pattern is None else _MOST_SEARCHED

    @property
    def is_empty(self) -> bool:
        return not self._agent and self._pattern is None

    def agent_of(self, stored: StoredReceipt) -> str:
        if stored.stream not in self._agents:
            self._agents[stored.stream] = agent_of(self._view, stored.stream)
        return self._agents[stored.stream]

    def find(self, stored: StoredReceipt) -> "_Found | None":
        """Return a receipt with the first match in it; None if it is not looked for."""
        if self._agent and not (stored.stream.startswith(f"{RUN}_") and self.agent_of(stored) == self._agent):
            return None
        if self._pattern is None:
            return stored, None
        match = next(find_in_receipt(self._view, self._pattern, stored, self.agent_of(stored)), None)
        return None if match is None else (stored, match)


def _newest(view: LedgerView, start: int, wanted: ReceiptQuery, looked_for: _Filter) -> tuple[list[_Found], int]:
    """Return receipts from a position backwards, and the position down to which was looked."""
    found: list[_Found] = []
    upper, window = start, PAGE if looked_for.is_empty and not wanted.kind else _WINDOW
    while upper > 0 and len(found) < PAGE and start - upper < looked_for.most:
        lower = max(1, upper - window + 1)
        query = replace(wanted, first=lower, last=upper)
        found += [one for one in map(looked_for.find, view.find_receipts(query)) if one is not None][::-1]
        upper = lower - 1
    shown = found[:PAGE]
    return shown, (shown[-1][0].position or 1) if len(found) > PAGE else upper + 1


def _line(view: LedgerView, stored: StoredReceipt) -> str:
    texts = read_texts(view, read_receipt(stored))
    for name in _TELLING:
        if (text := texts.get(name)) is not None:
            return str(text.found) if text.body is None else first_line(name, text.ref.id, text.body).bare
    return ""


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
    """Return how far the verification is, or its result."""
    with asked.looking() as view:
        return {
            "check": asked.check.state,
            "may_verify": asked.visitor.may(AUDITORS),
            "last": view.last_position(),
            "live_root": "",
        }
