"""The notes of a run: items, attachments, memories and reports, and news for it while it works."""

import json
from collections.abc import Iterable, Sequence
from typing import Any

from batonpass.errors import (
    IncompleteReportError,
    InvalidValueError,
)
from batonpass.handoff.history.baton_revision import BatonRevision
from batonpass.handoff.live.run_facts import RunFacts
from batonpass.handoff.runtime.desk import Desk
from batonpass.handoff.runtime.run_items import (
    attach,
    checkpoint,
    note_message,
    read_artifact,
    read_messages,
    record_items,
    relax,
    state_intent,
)
from batonpass.handoff.sessions.agent_memory import remember
from batonpass.handoff.sessions.revisions import acknowledge, find_unacknowledged, look_for_news
from batonpass.handoff.taint.intake import endorse, take_in
from batonpass.handoff.transfer.close import check_report
from batonpass.model.base.checks import require_codes
from batonpass.model.base.ids import ContentId, HandoffId
from batonpass.model.base.label import Label, Source
from batonpass.model.baton.items import (
    Assumption,
    Claim,
    Decision,
    Item,
    ItemValue,
    OpenQuestion,
    RejectedPath,
    Report,
    WorkItem,
)


class RunNotes(RunFacts):
    """A run that takes notes. They travel with its handoffs, and its report goes to its parent."""

    _desk: Desk

    def record(self, *items: ItemValue, by: str | None = None) -> tuple[Item, ...]:
        """Record items; they travel with every handoff of this run from now on."""
        return record_items(self._desk, self._holding, items, by=by)

    def add_intent(self, text: str, *, by: str | None = None) -> tuple[HandoffId, ...]:
        """Record a new statement of the human; return the running handoffs that do not know it."""
        return state_intent(self._desk, self._holding, text, by=by)[1]

    def relax(self, item: Item | ContentId, *, by: str, reason: str) -> None:
        """Release this run, and its later handoffs, from a constraint or an exclusion.

        Raises `NotEntitledError` unless the author of the item or the principal says so.
        """
        relax(self._desk, self._holding, item.id if isinstance(item, Item) else item, by=by, reason=reason)

    def attach(
        self,
        name: str,
        body: bytes | str,
        *,
        media_type: str | None = None,
        source: str | None = None,
        untrusted: bool = False,
    ) -> Item:
        """Attach a file or a text as an artifact. `untrusted` marks content from outside: data, never instructions."""
        return attach(
            self._desk,
            self._holding,
            name,
            body,
            media_type=media_type,
            source=source,
            untrusted=untrusted,
        )

    def read(self, name: str) -> bytes:
        """Return the bytes of an artifact, checked against its digest. Raises `NotFoundError`, `ContentErasedError`."""
        return read_artifact(self._desk, self._holding, name)

    def checkpoint(self, messages: object) -> None:
        """Save a checkpoint from which the next attempt can go on: the messages of a model, or any JSON."""
        checkpoint(self._desk, self._holding, messages)

    def note_message(self, message: object, *, number: int | None = None) -> None:
        """Remember the last message of the model; later handoffs of this run point to it.

        The message is any JSON, and `number` is its place in the conversation, from 1. Only an offer records it.
        Raises `InvalidValueError` if it is not JSON.
        """
        note_message(self._holding, message, number)

    def messages(self) -> object | None:
        """Return the messages of the last checkpoint of an earlier attempt; None if there is none."""
        return read_messages(self._desk, self._holding)

    def revisions(self) -> tuple[BatonRevision, ...]:
        """Return the revisions of its baton that were made while it works and that it has not acknowledged.

        Each names the given results that no longer stand, and the results in their place.
        """
        return find_unacknowledged(self._desk, self._holding)

    def news(self) -> tuple[BatonRevision, ...]:
        """Return the same as `revisions`, but look at most every few seconds: for doors, after each of their steps."""
        return look_for_news(self._desk, self._holding)

    def acknowledge(self, revision: BatonRevision | int | None = None) -> None:
        """Acknowledge a revision and those before it, by default all. From now on `read` returns the replacements.

        A result that is delivered without this is stale. Raises `NotFoundError` if there is no such revision.
        """
        number = revision.number if isinstance(revision, BatonRevision) else revision
        acknowledge(self._desk, self._holding, number)

    def remember(self, text: str) -> Item:
        """Keep a text for later runs of this agent, with its label. It travels with no handoff."""
        return remember(self._desk, self._holding, text)

    @property
    def label(self) -> Label:
        """Return the label of everything that it knows: how far it is trusted, and who may read it."""
        return self._holding.taint.label

    @property
    def taint(self) -> tuple[Source, ...]:
        """Return the sources that taint it: content from outside that nobody endorsed."""
        return tuple(self._holding.taint.entered)

    def note_untrusted(self, *sources: Source) -> None:
        """Taint this run with sources that reached it by another way than a call, a baton or a result."""
        take_in(self._desk, self._holding, sources)

    def endorse(self, source: Item | Source, *, by: str, reason: str) -> None:
        """Endorse content from outside as a person: from now on, it no longer taints this run.

        Raises `NotPersonError` if `by` is not a person, and `NotFoundError` if the source does not taint this run.
        """
        named = source.id if isinstance(source, Item) else source
        endorse(self._desk, self._holding, named, by=by, reason=reason)

    def report(
        self,
        result: str | Report = "",
        *,
        value: str | None = None,
        completed: Iterable[WorkItem | str] = (),
        open_questions: Iterable[OpenQuestion | str] = (),
        rejected_paths: Iterable[RejectedPath | str] = (),
        decisions: Iterable[Decision | str] = (),
        assumptions: Iterable[Assumption | str] = (),
        claims: Iterable[Claim | str] = (),
        confidence: int | None = None,
        none: Sequence[str] = (),
        flags: Sequence[str] = (),
    ) -> None:
        """Report the result of the task, with open questions, rejected paths, decisions and confidence.

        Instead of the parts, `result` can be a complete `Report`. `flags` are codes of known problems. Raises
        `InvalidValueError` for an invalid part, for a `value` that is not JSON, and for parts beside a `Report`, and
        `IncompleteReportError` if it lacks a part that the policy requires.
        """
        parts: dict[str, Any] = {
            "value": value,
            "completed": completed,
            "open_questions": open_questions,
            "rejected_paths": rejected_paths,
            "decisions": decisions,
            "assumptions": assumptions,
            "claims": claims,
            "confidence": confidence,
            "none": none,
        }
        if not isinstance(result, Report):
            made = Report(result=result, **parts)
        elif given := [name for name, part in parts.items() if part not in (None, ())]:
            raise InvalidValueError("report", f"has its parts already; {', '.join(given)} cannot be said beside it")
        else:
            made = result
        if made.value is not None:
            try:
                json.loads(made.value)
            except ValueError as error:
                raise InvalidValueError("value", f"is not JSON: {error}") from None
        found = tuple(flags)
        require_codes("flags", found)
        holding = self._holding
        before = holding.report, holding.flags
        holding.report, holding.flags = made, found
        if holding.baton is not None:
            try:
                check_report(self._desk, holding)  # at once, so that whoever reports can report again
            except IncompleteReportError:
                holding.report, holding.flags = before
                raise

    @property
    def reported(self) -> Report | None:
        """Return the report so far; None if there is none."""
        return self._holding.report
