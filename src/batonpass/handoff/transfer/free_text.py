"""The free context of an offer: labelled, scanned, and put in quarantine if it looks injected. Nothing is deleted."""

from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import Final

from msgspec import Struct

from batonpass.handoff.history.offers import author_of
from batonpass.handoff.runtime.desk import Desk
from batonpass.handoff.runtime.run_state import Holding
from batonpass.model.base.ids import Digest, HandoffId
from batonpass.model.base.label import SourceType
from batonpass.model.baton.items import Artifact, Item, Statement, part_of
from batonpass.model.bodies.body import HandoffContextSanitized, Sanitising, ScanFound
from batonpass.model.ledger.content import Content, new_content
from batonpass.model.policy.handoff_policy import HandoffPolicy
from batonpass.wire.documents import encode_item

CONTEXT: Final = "context"
TASK_PLACE: Final = "task"

# Below this score, one match is too little to call a text injected. It is recorded all the same.
SUSPECT: Final = 500


class Context(Struct, frozen=True, kw_only=True):
    """The free context of a sender as an item of the baton, and what the scan found in it and in the task."""

    item: Item | None
    contents: tuple[Content, ...]
    label: SourceType
    found: tuple[ScanFound, ...]
    scanned: int  # how many texts were scanned

    @property
    def action(self) -> Sanitising:
        """Return how the context was treated: quarantined, reported or passed."""
        if self.item is not None and isinstance(self.item.value, Artifact) and self.item.value.untrusted:
            return Sanitising.QUARANTINED
        return Sanitising.REPORTED if self.found else Sanitising.PASSED

    def body(self, handoff: HandoffId, holding: Holding) -> HandoffContextSanitized:
        """Return the receipt body about the scan."""
        return HandoffContextSanitized(
            handoff=handoff,
            run=holding.id,
            action=self.action,
            label=self.label,
            scanned=self.scanned,
            found=self.found,
            context=None if self.item is None else self.item.id,
        )


def take_context(
    desk: Desk,
    holding: Holding,
    task: str,
    context: str | None,
    *,
    policies: Sequence[HandoffPolicy],
    statements: Sequence[Item] = (),
    number: int = 1,
) -> Context:
    """Return the free context of a sender as a labelled item, in quarantine if it looks injected."""
    sanitizes = True in [policy.sanitize_context for policy in policies]
    texts = {TASK_PLACE: task} | ({} if context is None else {CONTEXT: context})
    found = tuple(_scan(desk, texts)) if sanitizes else ()
    if context is None:
        return Context(
            item=None, contents=(), label=SourceType.LLM_GENERATED, found=found, scanned=len(texts) * sanitizes
        )
    degrades = any(policy.trust_degradation for policy in policies)
    label = _label(context, statements, degrades=degrades)
    suspect = any(one.place == CONTEXT and one.score >= SUSPECT for one in found)
    item, contents = _attached(desk, holding, context, label=label, untrusted=suspect, number=number)
    return Context(item=item, contents=contents, label=label, found=found, scanned=len(texts) * sanitizes)


def _scan(desk: Desk, texts: dict[str, str]) -> Iterator[ScanFound]:
    for place, text in texts.items():
        for finding in desk.scanner.scan(text):
            yield ScanFound(place=place, rule=finding.rule, count=finding.count, score=finding.score)


def _label(context: str, statements: Sequence[Item], *, degrades: bool) -> SourceType:
    """Return the label of a context: words of a model, unless a human said exactly this and no policy degrades it."""
    said = (item.value.text for item in statements if isinstance(item.value, Statement))
    if not degrades and any(context.strip() in text for text in said):
        return SourceType.USER_INPUT
    return SourceType.LLM_GENERATED


def _attached(
    desk: Desk, holding: Holding, text: str, *, label: SourceType, untrusted: bool, number: int
) -> tuple[Item, tuple[Content, ...]]:
    at, by = desk.clock.now(), author_of(holding.agent)
    kept = new_content("body", text, at, media_type="text/plain")
    value = Artifact(
        CONTEXT,
        body=kept.ref.id,
        sha256=Digest(sha256(kept.body).hexdigest()),
        size=len(kept.body),
        media_type=kept.ref.media_type,
        source=by,
        untrusted=untrusted,
        label=label,
    )
    part = part_of(value)
    told = desk.json(f"{part}.{number}", encode_item(value, by, at))
    return Item(id=told.ref.id, digest=told.ref.digest, part=part, by=by, at=at, value=value), (told, kept)
