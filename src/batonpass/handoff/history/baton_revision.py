"""The message to a running attempt about items of its baton that no longer stand."""

from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct

from batonpass.model.base.ids import PrincipalId

# How often an agent at work looks for revisions of other processes. Those of this process are seen at once.
LOOK_EVERY: Final = timedelta(seconds=5)


class BatonRevision(Struct, frozen=True, kw_only=True):
    """A revision of the baton of a running attempt: items that no longer stand, and their replacements."""

    number: int  # from 1
    by: PrincipalId  # who refuted or redid it
    at: datetime
    fallen: tuple[str, ...]  # each item that no longer stands and why, as a sentence
    replaced_by: tuple[str, ...]  # names of the results in their place

    @property
    def text(self) -> str:
        """Return the revision in words, for the agent at work."""
        lines = [f"Revision {self.number} of your baton. No longer true, do not build on it:"]
        lines += [f"- {one}" for one in self.fallen]
        if self.replaced_by:
            lines.append(f"Delivered in its place: {', '.join(self.replaced_by)}. Read it again.")
        return "\n".join(lines)
