"""The evidence of a change: the first handoff that shows it, and the words that tasks gained and lost."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, time, timedelta
from typing import Final

from batonpass.drift.change import ChangeTopic, DriftChange
from batonpass.drift.closed_handoff import WORD_SLOTS, decode_outcome
from batonpass.drift.counts import NOTHING, Counts
from batonpass.drift.drift import AgentDrift, DaySpan, DriftReport, DriftWindow
from batonpass.drift.rollup import RolledWeeks
from batonpass.drift.shape_of_text import slot, words_in
from batonpass.model.base.ids import ContentId
from batonpass.model.ledger.rollup import RolledHandoff, RolledQuery
from batonpass.records.text import find_in_chunks
from batonpass.store.port import LedgerView

_LOOKED_AT: Final = 50  # handoffs whose roll-up or task is looked at for one change
_SOUGHT: Final = 2_000  # if none of those is the first one that shows it
_WORDS: Final = 5  # that are named
_ONE_DAY: Final = timedelta(days=1)


def find_evidence(view: LedgerView, report: DriftReport, weeks: RolledWeeks | None = None) -> DriftReport:
    """Return the report with the first handoff of each change, and with the words of those about wording.

    The handoffs come from where the days of the report came from: from the roll-ups that are kept, or from the receipts
    alone. Without `weeks`, they come from the roll-ups.
    """
    known = _Handoffs(view, weeks or RolledWeeks([]))
    return replace(report, agents=tuple(_told(known, one) for one in report.agents))


@dataclass(frozen=True, slots=True)
class _Handoffs:
    view: LedgerView
    weeks: RolledWeeks

    def find(self, query: RolledQuery) -> Iterator[RolledHandoff]:
        return self.weeks.find(self.view, query)


def _told(known: _Handoffs, drift: AgentDrift) -> AgentDrift:
    seen: dict[tuple[str, str, tuple[str, ...]], DriftChange] = {}
    windows = []
    for window in drift.windows:
        changes = []
        for change in window.changes:
            if change.id not in seen:  # it began here; later windows show the same
                seen[change.id] = _located(known, drift, window, change)
            changes.append(replace(change, first=seen[change.id].first, sentence=_sentence(change, seen[change.id])))
        windows.append(replace(window, changes=tuple(changes)))
    replaces = drift.replaces
    if replaces is not None:
        replaces = replace(replaces, first=_first(known, drift, drift.baseline, replaces))
    return replace(drift, windows=tuple(windows), replaces=replaces)


def _sentence(change: DriftChange, first: DriftChange) -> str:
    return first.sentence if change.topic is ChangeTopic.WORDING else change.sentence


def _located(known: _Handoffs, drift: AgentDrift, window: DriftWindow, change: DriftChange) -> DriftChange:
    if change.topic is ChangeTopic.WORDING:
        change = replace(change, sentence=_wording(known, drift, window, change))
    return replace(change, first=_first(known, drift, _seen_since(drift, window, change), change))


def _seen_since(drift: AgentDrift, window: DriftWindow, change: DriftChange) -> DaySpan:
    """Return the days in which the first handoff is sought that shows a change.

    A window is named once enough of its handoffs show the change. A new kind of change may have begun in an earlier
    one, with too few of them to tell. One that was there before, and is only more frequent, begins with its window.
    """
    if _shows(change, drift.counts):
        return window.span
    return next((one.span for one in drift.windows if _shows(change, one.counts)), window.span)


def _shows(change: DriftChange, held: Counts) -> bool:
    return any(key in held.get(change.aspect, NOTHING) for key in change.gained)


def _first(known: _Handoffs, drift: AgentDrift, span: DaySpan, change: DriftChange) -> str | None:
    """Return the first handoff since a day that shows a change; None if no single one does."""
    if not change.gained and change.aspect not in _COMPARED:
        return None
    sought = json.dumps(change.gained[0]).encode() if change.gained else b""
    # The key may stand there for something else: a permit that was granted, and is used for the first time later. So
    # many are looked at if need be; nearly always one of the first few shows it.
    for most in (_LOOKED_AT, _SOUGHT):
        query = RolledQuery(
            agent=drift.agent,
            task_kind=drift.task_kind,
            since=moment_of(span),
            holding=sought,
            oldest_first=True,
            limit=most,
        )
        for rolled in known.find(query):
            if rolled.config == drift.config and _shows(change, decode_outcome(rolled.body)[0]):
                return rolled.handoff
    return None


_COMPARED: Final = frozenset({"config"})


def moment_of(span: DaySpan) -> datetime:
    """Return when the first day of a span begins."""
    return datetime.combine(span.first, time(), tzinfo=UTC)


def _end_of(span: DaySpan) -> datetime:
    return moment_of(DaySpan(first=span.last + _ONE_DAY, last=span.last + _ONE_DAY))


def _wording(known: _Handoffs, drift: AgentDrift, window: DriftWindow, change: DriftChange) -> str:
    """Return which words tasks gained and lost, as far as the tasks are still there."""
    before, after = (_frequent(known, drift, span) for span in (drift.baseline, window.span))
    gained, lost = set(change.gained), set(change.keys) - set(change.gained)
    more = [word for word in after if str(slot(word, WORD_SLOTS)) in gained and after[word] > before.get(word, 0)]
    less = [word for word in before if str(slot(word, WORD_SLOTS)) in lost and before[word] > after.get(word, 0)]
    parts = [
        f"{often} {', '.join(repr(word) for word in words[:_WORDS])}"
        for often, words in (("more often", more), ("less often", less))
        if words
    ]
    return f"tasks are worded differently: {'; '.join(parts)}" if parts else change.sentence


def _frequent(known: _Handoffs, drift: AgentDrift, span: DaySpan) -> dict[str, float]:
    """Return the words of the tasks of some days, the most frequent first, each with its share of tasks."""
    query = RolledQuery(
        agent=drift.agent,
        task_kind=drift.task_kind,
        since=moment_of(span),
        until=_end_of(span),
        limit=_LOOKED_AT,
    )
    rolled = [one for one in known.find(query) if one.config == drift.config]
    seen: dict[str, int] = {}
    texts = [*tasks_of(known.view, rolled).values()]
    for text in texts:
        for word in words_in(text):
            seen[word] = seen.get(word, 0) + 1
    return {word: seen[word] / len(texts) for word in sorted(seen, key=lambda one: (-seen[one], one))}


def tasks_of(view: LedgerView, rolled: Sequence[RolledHandoff]) -> dict[ContentId, bytes]:
    """Return the tasks of closed handoffs by the contents that hold them; erased ones are left out."""
    wanted = [outcome.task for one in rolled if (outcome := decode_outcome(one.body)[1]).task is not None]
    return {content.id: content.body for content in find_in_chunks(view, wanted) if content.body is not None}
