"""An entry: one receipt with everything that a store writes in the same commit."""

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
    """A path under which a change can be found. It is text, like the change itself, and is erased with it."""

    path: str
    content: ContentId  # the change: one of the entry's own contents

    def __post_init__(self) -> None:
        if "\0" in require_text("path", self.path):
            raise InvalidValueError("path", "holds a NUL, which no path can")
        require_id("content", self.content, CONTENT)


class Premise(Struct, frozen=True, kw_only=True):
    """The writer's knowledge of a tree. If it is out of date, the entry is not written."""

    root: RunId
    statements: int  # how many statements humans have made in the tree; this never decreases
    refutations: int = 0  # how many results in the tree were refuted; this never decreases
    untouched: tuple[HandoffId, ...] = ()  # handoffs that have no stream yet, because nothing was done to them


class Entry(Struct, frozen=True, kw_only=True, dict=True):
    """A receipt, its contents, and its changes: all are written, or nothing is."""

    signed: SignedReceipt
    contents: tuple[Content, ...] = ()
    touches: tuple[Touch, ...] = ()
    within: tuple[Within, ...] = ()  # limits that must hold after its charges are counted; else it is not written
    token: int | None = None  # of the lease under which a worker takes a handoff; None if no lease is needed
    premise: Premise | None = None  # the knowledge of its writer, which the commit checks
    after: Mark | None = None  # acknowledged before: a store without this receipt was rewound, and takes nothing

    def __post_init__(self) -> None:
        own = {content.ref.id for content in self.contents} if self.touches else set()
        for touch in self.touches:
            if touch.content not in own:
                raise InvalidValueError("touches", f"{touch.content} is not among the entry's own contents")
        # Worked out right away, since everybody needs it: `cached_property` would cost a lock and two more calls.
        self.__dict__["change"] = project(self.signed.receipt, self.signed.digest)

    @cached_property
    def change(self) -> Projection:
        """Return the changes that the receipt makes. They were worked out when the entry was made."""
        return project(self.signed.receipt, self.signed.digest)
