"""Free text of a sender or a reporter: labelled, scanned, and put in quarantine if it looks injected.

Nothing is deleted. The scan is a signal, not the protection: suspect words are only ever quoted, and that protects.
"""

from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import Final

from msgspec import Struct

from batonpass.handoff.history.offers import author_of
from batonpass.handoff.runtime.desk import Desk
from batonpass.handoff.runtime.run_state import Holding
from batonpass.handoff.transfer.offer_request import OfferRequest
from batonpass.model.base.content_names import REPORT
from batonpass.model.base.ids import Digest, HandoffId, RunId, quotes_models
from batonpass.model.base.label import SourceType
from batonpass.model.baton.baton import BRIEF_TEXTS, place_of
from batonpass.model.baton.items import Artifact, Item, ItemValue, Report, Statement, part_of
from batonpass.model.bodies.body import HandoffContextSanitized, Sanitising, ScanFound
from batonpass.model.ledger.content import Content, new_content
from batonpass.model.policy.handoff_policy import HandoffPolicy
from batonpass.wire.documents import encode_item

CONTEXT: Final = "context"
TASK_PLACE: Final = "task"

# Below this score, one match is too little to call a text injected. It is recorded all the same.
SUSPECT: Final = 500


class Context(Struct, frozen=True, kw_only=True):
    """The free context of a sender as an item of the baton, and the findings of the scan in all its texts."""

    item: Item | None
    contents: tuple[Content, ...]
    label: SourceType
    found: tuple[ScanFound, ...]
    scanned: int  # how many texts were scanned

    @property
    def suspect(self) -> tuple[str, ...]:
        """Return the places whose words look injected, besides the context, which is quarantined as an artifact."""
        places = {one.place for one in self.found if one.score >= SUSPECT and one.place != CONTEXT}
        return tuple(sorted(places)) if places else ()

    @property
    def action(self) -> Sanitising:
        """Return how the words were treated: quarantined, reported or passed."""
        if self.item is not None and isinstance(self.item.value, Artifact) and self.item.value.untrusted:
            return Sanitising.QUARANTINED
        if self.suspect:
            return Sanitising.QUARANTINED
        return Sanitising.REPORTED if self.found else Sanitising.PASSED

    def body(self, handoff: HandoffId, run: RunId) -> HandoffContextSanitized:
        """Return the receipt body about the scan."""
        return HandoffContextSanitized(
            handoff=handoff,
            run=run,
            action=self.action,
            label=self.label,
            scanned=self.scanned,
            found=self.found,
            context=None if self.item is None else self.item.id,
        )


def take_context(
    desk: Desk,
    holding: Holding,
    asked: OfferRequest,
    *,
    policy: HandoffPolicy,
    statements: Sequence[Item] = (),
    items: Sequence[Item] = (),
    number: int = 1,
) -> Context:
    """Return the free context of a sender as a labelled item, and scan everything that its model wrote."""
    scanned = 0
    found: tuple[ScanFound, ...] = ()
    if policy.sanitize_context:
        texts = dict(_written(asked))
        found = (*_scan(desk, texts), *_scan_items(desk, holding, items))
        scanned = len(texts) + len(items)
    context = asked.context
    if context is None:
        return Context(item=None, contents=(), label=SourceType.LLM_GENERATED, found=found, scanned=scanned)
    label = _label(context, statements, degrades=policy.trust_degradation)
    suspect = any(one.place == CONTEXT and one.score >= SUSPECT for one in found)
    item, contents = _attached(desk, holding, context, label=label, untrusted=suspect, number=number)
    return Context(item=item, contents=contents, label=label, found=found, scanned=scanned)


def scan_report(desk: Desk, report: Report) -> Context:
    """Return the findings of the scan in a report."""
    texts = {REPORT: "\n".join(words_of(report))}
    return Context(
        item=None, contents=(), label=SourceType.LLM_GENERATED, found=tuple(_scan(desk, texts)), scanned=len(texts)
    )


def _written(asked: OfferRequest) -> Iterator[tuple[str, str]]:
    yield TASK_PLACE, asked.task
    if asked.context is not None:
        yield CONTEXT, asked.context
    for name in BRIEF_TEXTS:
        if said := getattr(asked.brief, name):
            yield name, said if isinstance(said, str) else "\n".join(said)


def _scan_items(desk: Desk, holding: Holding, items: Sequence[Item]) -> Iterator[ScanFound]:
    """Yield the findings of the scan in items with words of agents. Each is scanned only once."""
    for item in items:
        if item.value is None or not quotes_models(item.by):
            continue
        if (found := holding.scans.get(item.id)) is None:
            found = holding.scans[item.id] = tuple(_scan(desk, {place_of(item): words_in(item)}))
        yield from found


def words_in(item: Item) -> str:
    """Return every text of an item as one; of an erased one, nothing."""
    return "" if item.value is None else "\n".join(words_of(item.value))


def find_suspect(desk: Desk, texts: dict[str, str]) -> tuple[str, ...]:
    """Return the places whose words look injected."""
    return tuple(sorted({one.place for one in _scan(desk, texts) if one.score >= SUSPECT}))


def without_suspect(desk: Desk, holding: Holding, items: Sequence[Item]) -> Sequence[Item]:
    """Return the items of a run that do not look injected, where the policy says that words of models are scanned."""
    if not desk.policy_with(holding.own_policy).sanitize_context:
        return items
    places = {one.place for one in _scan_items(desk, holding, items) if one.score >= SUSPECT}
    return [item for item in items if place_of(item) not in places]


def words_of(value: ItemValue) -> Iterator[str]:
    """Yield every text of an item, those of a report and of lists included; of a file, its name and its source."""
    for name in value.__struct_fields__:
        said = getattr(value, name)
        if isinstance(said, str) and name not in _NO_WORDS:
            yield said
        elif isinstance(said, tuple):
            for one in said:
                if isinstance(one, str):
                    yield one
                else:
                    yield from words_of(one)


_NO_WORDS: Final = frozenset({"body", "sha256", "media_type", "label", "none"})


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
    role, phase = holding.work
    told = desk.json(f"{part}.{number}", encode_item(value, by, at, role=role, phase=phase))
    item = Item(id=told.ref.id, digest=told.ref.digest, part=part, by=by, at=at, value=value, role=role, phase=phase)
    return item, (told, kept)
