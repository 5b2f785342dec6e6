"""What is usually read before a handoff is taken, brought along in one round trip and of one moment."""

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from msgspec import Struct

from batonpass.errors import StaleHeadError
from batonpass.model.base.ids import HandoffId
from batonpass.store.postgres.connections import STATEMENTS, Snapshot
from batonpass.store.postgres.prepared_statements import Asked, PreparedStatement, Row

SMALL: Final = 65_536  # bytes; a content that is larger is read by itself, when it is its turn
_BRIEF: Final[PreparedStatement] = STATEMENTS["brief"]
_FRESH_SECONDS: Final = 1.0

Question: TypeAlias = tuple[object, ...]  # the name of a statement, and its values
Answers: TypeAlias = Mapping[Question, Sequence[Row]]


class AboutHandoff(Struct, frozen=True):
    """All that is usually read of a handoff before it is taken."""

    handoff: HandoffId | None = None  # None: the one that was claimed just before in the same transaction

    @property
    def stream(self) -> str:
        """Return the handoff."""
        return str(self.handoff)

    @property
    def asked(self) -> Sequence[Asked]:
        """Return the question that brings all of it in one row."""
        return ((_BRIEF, {"handoff": self.handoff, "most": SMALL}),)

    def answers(self, found: Sequence[Sequence[Row]]) -> Iterator[tuple[Question, Sequence[Row]]]:
        """Yield each part of the row as what it answers."""
        return _answers(found[0][0]) if found[0] else iter(())

    def settled(self, found: Sequence[Sequence[Row]]) -> Sequence[Sequence[Row]]:
        """Return all but the positions: one that was given meanwhile changes nothing."""
        return [[_without_positions(row) for row in rows] for rows in found]


class ClaimBrief:
    """Answers to questions that a view gets, as of one moment."""

    def __init__(self, about: AboutHandoff, found: Sequence[Sequence[Row]]) -> None:
        self._about = about
        self._found = found
        self.answers: Answers = dict(about.answers(found))
        self._read_at = time.monotonic()

    @property
    def is_fresh(self) -> bool:
        """Return whether it was read a moment ago, which is as good as now."""
        return time.monotonic() - self._read_at < _FRESH_SECONDS

    def is_still_so(self, found: Sequence[Sequence[Row]]) -> bool:
        """Return whether what is found now is the same."""
        return self._about.settled(found) == self._about.settled(self._found)


class ClaimBriefing:
    """What a view was told before its moment was begun, which most views never have to begin then."""

    def __init__(self, about: AboutHandoff, brief: ClaimBrief | None = None) -> None:
        self._about = about
        self._brief = brief
        self._confirmed = False

    @property
    def is_told(self) -> bool:
        """Return whether all of it came along with a claim."""
        return self._brief is not None

    def answers(self, snapshot: Snapshot) -> Answers:
        """Return the rows that statements find, as far as they came along. The first question brings them."""
        if self._brief is None:
            self._brief = ClaimBrief(self._about, snapshot.ask_once(self._about.asked))
        return self._brief.answers

    def confirm(self, snapshot: Snapshot) -> None:
        """Begin the moment. Raises `StaleHeadError` if what was told before is not so in it."""
        if self._brief is not None and not self._confirmed:
            if not self._brief.is_still_so(snapshot.ask_all(self._about.asked)):
                raise StaleHeadError(self._about.stream, 0)
            self._confirmed = True


def briefing_of(about: HandoffId | None, kept: "Briefs") -> ClaimBriefing | None:
    """Return how a view about a handoff is told of it; None if it is about none."""
    return None if about is None else ClaimBriefing(AboutHandoff(about), kept.take(about))


class Briefs:
    """What came along with claims, until the claimed handoff is looked at. Safe to use from many threads."""

    def __init__(self) -> None:
        self._kept: dict[HandoffId, ClaimBrief] = {}
        self._lock = threading.Lock()

    def keep(self, handoff: HandoffId, brief: ClaimBrief) -> None:
        """Keep what came along with a claim, and nothing that is no longer fresh."""
        with self._lock:
            self._kept = {known: kept for known, kept in self._kept.items() if kept.is_fresh}
            self._kept[handoff] = brief

    def take(self, handoff: HandoffId) -> ClaimBrief | None:
        """Return what came along, once: whoever looks again wants to know what has happened since."""
        with self._lock:
            brief = self._kept.pop(handoff, None)
        return brief if brief is not None and brief.is_fresh else None


def _answers(row: Row) -> Iterator[tuple[Question, list[Row]]]:
    handoff, stream, run, offer, beginning = row[:13], row[13:19], row[19:31], row[31:39], row[39:47]
    statements, keys, ids, salts, bodies = row[47:]
    identifier, root = handoff[:2]
    yield ("get_handoff", identifier), [handoff]
    yield ("get_stream", identifier), [] if stream[0] is None else [stream]
    if run[0] is not None:
        yield ("get_run", run[0]), [run]
    for receipt in (offer, beginning):
        if receipt[1] is not None:
            yield ("get_receipt_at", receipt[2], receipt[3]), [receipt]
    yield ("find_statements", root), [(*said, int(at)) for *said, at in statements or ()]
    yield ("find_keys",), [tuple(key) for key in keys or ()]
    for (content, receipt_id, place), salt, body in zip(ids or (), salts or (), bodies or (), strict=True):
        yield ("get_content", content), [(content, receipt_id, place, salt, body)]


def _without_positions(row: Row) -> Row:
    return (*row[:31], *row[32:39], *row[40:])
