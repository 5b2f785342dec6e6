"""What became of a baton at one hop: what came along, what is new, and what was not passed on."""

from collections.abc import Iterator, Sequence

from msgspec import Struct

from batonpass.briefing.first_line import counted
from batonpass.briefing.person import escaped
from batonpass.briefing.sections import HEADINGS, words_of
from batonpass.model.baton.baton import INHERITED, Baton
from batonpass.model.baton.items import Item


class BatonDifference(Struct, frozen=True, kw_only=True):
    """One baton against the one that its sender had been given."""

    carried: tuple[Item, ...]
    added: tuple[Item, ...]
    dropped: tuple[Item, ...]  # the sender had these, and did not pass them on
    lost: tuple[Item, ...]  # of these, what everybody further down should have had

    @property
    def is_whole(self) -> bool:
        """Return whether everything that is inherited arrived."""
        return not self.lost


def compare(before: Baton, after: Baton) -> BatonDifference:
    """Return what a hop made of the items that its sender held. The same item has the same id and digest."""
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
    """Return the difference as Markdown, for a person who asks what got lost."""
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
