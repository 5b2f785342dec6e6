"""What is usually read of a handoff before it is taken, brought along in one row and of one moment."""

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from batonpass.errors import StaleHeadError
from batonpass.model.ids import HandoffId
from batonpass.store.postgres.connections import STATEMENTS, Snapshot
from batonpass.store.postgres.statements import Asked, Row, Statement

SMALL: Final = 65_536  # bytes; a content that is larger is read by itself, when it is its turn
_BRIEF: Final[Statement] = STATEMENTS["brief"]
_FRESH_SECONDS: Final = 1.0

Question: TypeAlias = tuple[str, tuple[object, ...]]  # the name of a statement, and its values


def ask_about(handoff: HandoffId) -> Asked:
    """Return the question for what is known of one handoff."""
    return _BRIEF, {"handoff": handoff, "token": None, "holder": None, "most": SMALL}


def ask_about_claimed(token: object, holder: object) -> tuple[Asked]:
    """Return the question for what is known of the handoff that is held with a token."""
    return ((_BRIEF, {"handoff": None, "token": token, "holder": holder, "most": SMALL}),)


class Brief:
    """Answers to the questions that a view gets about one handoff, as of one moment."""

    def __init__(self, found: Sequence[Row]) -> None:
        self._found = found
        self._answers = dict(_answers(found[0])) if found else {}
        self._read_at = time.monotonic()

    @property
    def is_fresh(self) -> bool:
        """Return whether it was read a moment ago, which is as good as now."""
        return time.monotonic() - self._read_at < _FRESH_SECONDS

    def answer(self, name: str, values: Mapping[str, object]) -> list[Row] | None:
        """Return the rows that a statement would find; None if that is not known here."""
        return self._answers.get((name, tuple(values.values())))

    def is_still_so(self, found: Sequence[Row]) -> bool:
        """Return whether what is found now is the same. A position that was given meanwhile changes nothing."""
        return [_without_positions(row) for row in found] == [_without_positions(row) for row in self._found]


class Briefing:
    """What a view was told of a handoff before its moment was begun, which most views never have to begin then."""

    def __init__(self, handoff: HandoffId, brief: Brief | None = None) -> None:
        self._handoff = handoff
        self._brief = brief
        self._confirmed = False

    def answer(self, snapshot: Snapshot, name: str, values: Mapping[str, object]) -> list[Row] | None:
        """Return the rows that a statement finds, if they came along; else None. The first question brings them."""
        if self._brief is None:
            self._brief = Brief(snapshot.ask_once(*ask_about(self._handoff)))
        return self._brief.answer(name, values)

    def confirm(self, snapshot: Snapshot) -> None:
        """Begin the moment. Raises `StaleHeadError` if what was told before is not so in it."""
        if self._brief is not None and not self._confirmed:
            if not self._brief.is_still_so(snapshot.ask(*ask_about(self._handoff))):
                raise StaleHeadError(self._handoff, 0)
            self._confirmed = True


class Briefs:
    """What came along with claims, until the claimed handoff is looked at. Safe to use from many threads."""

    def __init__(self) -> None:
        self._kept: dict[HandoffId, Brief] = {}
        self._lock = threading.Lock()

    def keep(self, handoff: HandoffId, brief: Brief) -> None:
        """Keep what came along with a claim, and nothing that is no longer fresh."""
        with self._lock:
            self._kept = {known: kept for known, kept in self._kept.items() if kept.is_fresh}
            self._kept[handoff] = brief

    def take(self, handoff: HandoffId) -> Brief | None:
        """Return what came along, once: whoever looks again wants to know what has happened since."""
        with self._lock:
            brief = self._kept.pop(handoff, None)
        return brief if brief is not None and brief.is_fresh else None


def _answers(row: Row) -> Iterator[tuple[Question, list[Row]]]:
    handoff, stream, run, offer, beginning = row[:13], row[13:19], row[19:31], row[31:39], row[39:47]
    statements, keys, ids, salts, bodies = row[47:]
    identifier, root = handoff[:2]
    yield ("get_handoff", (identifier,)), [handoff]
    yield ("get_stream", (identifier,)), [] if stream[0] is None else [stream]
    if run[0] is not None:
        yield ("get_run", (run[0],)), [run]
    for receipt in (offer, beginning):
        if receipt[1] is not None:
            yield ("get_receipt_at", (receipt[2], receipt[3])), [receipt]
    yield ("find_statements", (root,)), [(*said, int(at)) for *said, at in statements or ()]
    yield ("find_keys", ()), [tuple(key) for key in keys or ()]
    for (content, receipt_id, place), salt, body in zip(ids or (), salts or (), bodies or (), strict=True):
        yield ("get_content", (content,)), [(content, receipt_id, place, salt, body)]


def _without_positions(row: Row) -> Row:
    return (*row[:31], *row[32:39], *row[40:])
