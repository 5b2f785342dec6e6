"""The claim brief: the rows that a worker usually reads before it accepts a handoff, fetched together with the claim.

Without it, accepting a handoff would cost a round trip for each of these reads. All rows come in one statement, so they
are of one moment.
"""

import threading
import time
from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

from msgspec import Struct

from batonpass.errors import StaleHeadError
from batonpass.model.base.ids import HandoffId
from batonpass.store.postgres.connections import STATEMENTS, Snapshot
from batonpass.store.postgres.prepared_statements import Asked, PreparedStatement, Row

SMALL: Final = 65_536  # bytes; a larger content is fetched by itself when it is needed
_BRIEF: Final[PreparedStatement] = STATEMENTS["brief"]
_FRESH_SECONDS: Final = 1.0

Question: TypeAlias = tuple[object, ...]  # the name of a statement, and its values
Answers: TypeAlias = Mapping[Question, Sequence[Row]]


class AboutHandoff(Struct, frozen=True):
    """The query for the brief of one handoff."""

    handoff: HandoffId | None = None  # None: the handoff that was claimed just before in the same transaction

    @property
    def stream(self) -> str:
        """Return the handoff as the name of its stream."""
        return str(self.handoff)

    @property
    def asked(self) -> Sequence[Asked]:
        """Return the statement that fetches the whole brief in one row."""
        return ((_BRIEF, {"handoff": self.handoff, "most": SMALL}),)

    def answers(self, found: Sequence[Sequence[Row]]) -> Answers:
        """Return each part of that row as the answer to the statement that a view would run for it."""
        return _answers(found[0][0]) if found[0] else {}


class ClaimBrief:
    """Answers to the statements that a view runs, all of one moment."""

    def __init__(self, about: AboutHandoff, found: Sequence[Sequence[Row]]) -> None:
        self._about = about
        self.answers: Answers = about.answers(found)
        self._read_at = time.monotonic()

    @property
    def is_fresh(self) -> bool:
        """Return whether it was read a moment ago, so that a view may show it as now."""
        return time.monotonic() - self._read_at < _FRESH_SECONDS

    def is_still_so(self, found: Sequence[Sequence[Row]]) -> bool:
        """Return whether these rows, read now, equal those of the brief."""
        return _without_positions(self._about.answers(found)) == _without_positions(self.answers)


class ClaimBriefing:
    """The claim brief of a view, used before the view begins a transaction. Most views need no more than that."""

    def __init__(self, about: AboutHandoff, brief: ClaimBrief | None = None) -> None:
        self._about = about
        self._brief = brief
        self._confirmed = False

    @property
    def is_told(self) -> bool:
        """Return whether the brief has come with a claim, so that nothing has to be fetched."""
        return self._brief is not None

    def answers(self, snapshot: Snapshot) -> Answers:
        """Return the answers of the brief. The first call fetches it if it has not come with a claim."""
        if self._brief is None:
            self._brief = ClaimBrief(self._about, snapshot.ask_once(self._about.asked))
        return self._brief.answers

    def confirm(self, snapshot: Snapshot) -> None:
        """Begin the transaction of the view. Raises `StaleHeadError` if the brief is no longer true in it.

        A caller must not combine rows of the brief with rows of another moment, so the brief is read again and
        compared.
        """
        if self._brief is not None and not self._confirmed:
            if not self._brief.is_still_so(snapshot.ask_all(self._about.asked)):
                raise StaleHeadError(self._about.stream, 0)
            self._confirmed = True


def briefing_of(about: HandoffId | None, kept: "Briefs") -> ClaimBriefing | None:
    """Return the briefing for a view about a handoff; None if the view is about no handoff."""
    return None if about is None else ClaimBriefing(AboutHandoff(about), kept.take(about))


class Briefs:
    """The briefs that came with claims, kept until the handoff is read. Safe to use from many threads."""

    def __init__(self) -> None:
        self._kept: dict[HandoffId, ClaimBrief] = {}
        self._lock = threading.Lock()

    def keep(self, handoff: HandoffId, brief: ClaimBrief) -> None:
        """Keep the brief of a claim, and drop those that are no longer fresh."""
        with self._lock:
            self._kept = {known: kept for known, kept in self._kept.items() if kept.is_fresh}
            self._kept[handoff] = brief

    def take(self, handoff: HandoffId) -> ClaimBrief | None:
        """Return the brief of a handoff if it is fresh. Only once: a second view must show later changes."""
        with self._lock:
            brief = self._kept.pop(handoff, None)
        return brief if brief is not None and brief.is_fresh else None


def _answers(row: Row) -> Answers:
    texts, numbers, parts, statements, keys, ids, salts, bodies = row
    identifier, root, parent, agent, carrier, state, run, initiated, scope, key = texts[:10]
    attempt, seq, deadline, stream_seq, epoch, is_open, *more = numbers
    handoff = (identifier, root, parent, agent, carrier, state, attempt, run, initiated, seq, scope, key, deadline)
    stream_id, stream_root, head = texts[10:13]
    told: dict[Question, Sequence[Row]] = {
        ("get_handoff", identifier): [handoff],
        ("get_stream", identifier): (
            [] if stream_id is None else [(stream_id, stream_root, stream_seq, head, epoch, bool(is_open))]
        ),
        ("find_statements", root): [(*said, int(at)) for *said, at in statements],
        ("find_keys",): [tuple(each) for each in keys],
    }
    run_attempt, started_at, ended_at, offer_position, beginning_position = more
    if texts[13] is not None:
        told["get_run", texts[13]] = [
            (*texts[13:17], run_attempt, *texts[17:20], started_at, ended_at, *texts[20:22]),
        ]
    if texts[22] is not None:
        told["get_receipt_at", parent, seq] = [(offer_position, texts[22], parent, seq, texts[23], *parts[:3])]
    if texts[24] is not None:
        told["get_receipt_at", root, 1] = [(beginning_position, texts[24], root, 1, texts[25], *parts[3:])]
    for (content, receipt, place), salt, body in zip(ids or (), salts or (), bodies or (), strict=True):
        told["get_content", content] = [(content, receipt, place, salt, body)]
    return told


def _without_positions(answers: Answers) -> Answers:
    """Return the answers without the positions: a receipt that got its position meanwhile has not changed."""
    return {
        asked: [row[1:] for row in found] if asked[0] == "get_receipt_at" else found for asked, found in answers.items()
    }
