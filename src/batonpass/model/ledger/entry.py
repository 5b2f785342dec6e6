"""An entry: what a store is asked to append."""

from functools import cached_property

from msgspec import Struct

from batonpass.errors import InvalidValueError
from batonpass.model.base.checks import require_text
from batonpass.model.base.ids import CONTENT, ContentId, HandoffId, RunId, require_id
from batonpass.model.grants.charge import Within
from batonpass.model.ledger.content import Content
from batonpass.model.ledger.projection import Projection, project
from batonpass.model.ledger.receipt import SignedReceipt
from batonpass.model.ledger.stream import Mark


class Touch(Struct, frozen=True, kw_only=True):
    """A path under which a change is to be found again: words, like the content that says it, and gone with it."""

    path: str
    content: ContentId  # one of the entry's own contents: the change

    def __post_init__(self) -> None:
        if "\0" in require_text("path", self.path):
            raise InvalidValueError("path", "holds a NUL, which no path can")
        require_id("content", self.content, CONTENT)


class Premise(Struct, frozen=True, kw_only=True):
    """What somebody took for granted about a tree; an entry that was made under it is not written if it is not so."""

    root: RunId
    statements: int  # that humans have made in it; there are never fewer
    refutations: int = 0  # of results in it; there are never fewer
    untouched: tuple[HandoffId, ...] = ()  # handoffs to which nobody has done anything: they have no stream


class Entry(Struct, frozen=True, kw_only=True, dict=True):
    """A receipt, the content it commits to, and what it changes: written together or not at all."""

    signed: SignedReceipt
    contents: tuple[Content, ...] = ()
    touches: tuple[Touch, ...] = ()
    within: tuple[Within, ...] = ()  # limits that hold once its charges are counted; else it is not written
    token: int | None = None  # of the lease under which a worker takes a handoff; None where no lease is asked for
    premise: Premise | None = None  # what it was made under
    after: Mark | None = None  # acknowledged before it: a store that lost that was put back in time, and takes nothing

    def __post_init__(self) -> None:
        own = {content.ref.id for content in self.contents} if self.touches else set()
        for touch in self.touches:
            if touch.content not in own:
                raise InvalidValueError("touches", f"{touch.content} is not among the entry's own contents")
        # Everybody asks for it. Worked out by the first, it would cost a lock and two more calls.
        self.__dict__["change"] = project(self.signed.receipt, self.signed.digest)

    @cached_property
    def change(self) -> Projection:
        """Return what the receipt changes, as it was worked out when the entry was made."""
        return project(self.signed.receipt, self.signed.digest)
