"""The memory of an agent for its later runs. Each entry keeps the label of its source; reading never raises trust.

Memory belongs to the agent. It is recorded in the run that wrote it, and travels with no handoff.
"""

from collections.abc import Iterator
from datetime import datetime
from hashlib import sha256
from typing import Final

from msgspec import Struct

from batonpass.handoff.history.offers import author_of, read_items
from batonpass.handoff.runtime.desk import Desk
from batonpass.handoff.runtime.run_items import write_items
from batonpass.handoff.runtime.run_state import Holding
from batonpass.model.base.checks import require_text
from batonpass.model.base.ids import AgentId, ContentId, Digest, RunId
from batonpass.model.base.kinds import Part
from batonpass.model.base.label import SourceType
from batonpass.model.baton.items import Artifact, Item, label_of
from batonpass.model.bodies.body import Kind, RunRecorded
from batonpass.store.port import LedgerView, ReceiptQuery
from batonpass.wire.receipt_codec import decode_receipt

MEMORY: Final = "memory"
_FILES: Final = frozenset({Part.ARTIFACT, Part.UNTRUSTED})


class Memory(Struct, frozen=True, kw_only=True):
    """A text that an agent remembers: its source, when, and in which run."""

    item: ContentId
    text: str
    source_type: SourceType
    at: datetime
    run: RunId

    @property
    def trust_level(self) -> float:
        """Return how far it is trusted, between 0 and 1."""
        return self.source_type.trust_level


def remember(desk: Desk, holding: Holding, text: str) -> Item:
    """Remember a text for later runs of this agent."""
    require_text("text", text)
    kept = desk.body(text, "text/plain")
    with desk.store.view() as view:
        label = _label(view, holding, text)
    value = Artifact(
        MEMORY,
        body=kept.ref.id,
        sha256=Digest(sha256(kept.body).hexdigest()),
        size=len(kept.body),
        media_type=kept.ref.media_type,
        source=author_of(holding.agent),
        untrusted=label is SourceType.EXTERNAL,
        label=label,
    )
    item, content = desk.item(value, author_of(holding.agent), 1)
    if not holding.replaying:
        write_items(desk, holding, (item,), (content, kept), by=author_of(holding.agent))
    return item


def find_memories(view: LedgerView, agent: AgentId) -> Iterator[Memory]:
    """Yield the memories of an agent, the oldest first. Erased texts are missing."""
    for stored in view.find_receipts(ReceiptQuery(agent=agent, kind=Kind.RUN_RECORDED)):
        receipt = decode_receipt(stored.payload)
        refs = (
            [ref for ref in receipt.body.items if ref.part in _FILES] if isinstance(receipt.body, RunRecorded) else []
        )
        if not refs:
            continue
        contents = {content.id: content for content in view.find_contents([ref.item for ref in refs])}
        for item in read_items(view, refs, contents)[0]:
            if is_memory(item) and isinstance(item.value, Artifact):
                body = view.get_content(item.value.body).body
                if body is not None:
                    run = RunId(receipt.stream)
                    yield Memory(item=item.id, text=body.decode(), source_type=label_of(item), at=item.at, run=run)


def is_memory(item: Item) -> bool:
    """Return whether an item is a memory of an agent."""
    return isinstance(item.value, Artifact) and item.value.name == MEMORY


def _label(view: LedgerView, holding: Holding, text: str) -> SourceType:
    """Return the label of a remembered text: the human's words if a root run heard them, else a model's, or worse."""
    if holding.baton is None and any(text.strip() in words for words in _said(view, holding)):
        return SourceType.USER_INPUT
    # A model that has read content from outside may repeat it in other words. A summary cleans nothing.
    return SourceType.EXTERNAL if holding.taint else SourceType.LLM_GENERATED


def _said(view: LedgerView, holding: Holding) -> Iterator[str]:
    contents = view.find_contents([statement.item for statement in view.find_statements(holding.root)])
    return (content.body.decode("utf-8", "replace") for content in contents if content.body is not None)
