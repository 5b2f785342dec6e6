"""One hop of a baton: which items were carried, which are new, and which were not passed on."""

from collections.abc import Iterator, Sequence

from msgspec import Struct

from batonpass.briefing.person import escaped
from batonpass.briefing.sections import HEADINGS, counted, words_of
from batonpass.model.baton.baton import INHERITED, Baton
from batonpass.model.baton.items import Item


class BatonDifference(Struct, frozen=True, kw_only=True):
    """A baton compared with the one its sender had received."""

    carried: tuple[Item, ...]
    added: tuple[Item, ...]
    dropped: tuple[Item, ...]  # the sender had them and did not pass them on
    lost: tuple[Item, ...]  # dropped although everybody further down should have received them

    @property
    def is_whole(self) -> bool:
        """Return whether every inherited item arrived."""
        return not self.lost


def compare(before: Baton, after: Baton) -> BatonDifference:
    """Return how a hop changed the items. An item is the same if its id and digest are."""
    held = {(item.id, item.digest): item for item in before.items}
    given = {(item.id, item.digest): item for item in after.items}
    dropped = tuple(item for key, item in held.items() if key not in given)
    return BatonDifference(
        carried=tuple(item for key, item in given.items() if key in held),
        added=tuple(item for key, item in given.items() if key not in held),
        dropped=dropped,
        lost=tuple(item for item in dropped if item.part in INHERITED),
    )


def describe_difference(before: Baton, after: Baton) -> str:
    """Return the difference as Markdown, for a person who looks for lost items."""
    found = compare(before, after)
    counts = f"{counted(len(found.carried), 'item')} carried unchanged, {len(found.added)} new"
    parts = [
        f"**{escaped(before.to)} → {escaped(after.to)}**: {counts}, {len(found.dropped)} not passed on.",
        f"- task before: {escaped(before.task)}\n- task now: {escaped(after.task)}",
    ]
    for heading, items in (("New", found.added), ("Not passed on", found.dropped)):
        if items:
            parts.append("\n".join((f"## {heading}", "", *_entries(items))))
    if found.lost:
        parts.append(f"**Lost**: {counted(len(found.lost), 'item')} that everybody further down should have had.")
    return "\n\n".join(parts) + "\n"


def _entries(items: Sequence[Item]) -> Iterator[str]:
    for item in items:
        yield f"- {HEADINGS[item.part]}: {escaped('; '.join(words_of(item)))}"
