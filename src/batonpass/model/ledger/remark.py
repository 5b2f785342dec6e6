"""Remarks: what receipts say about something that has a name of its own, so that it is found again by that name.

A file's bytes, content from outside and a commit are named by others, not by us: by a digest, or by an id. Whether a
tainted run wrote them, a person answered for them or a recorded call made them is asked before calls; which results of
a tree were refuted is asked before offers. So it is kept in rows that are found by name, however long the ledger is.
"""

from enum import StrEnum

from msgspec import Struct

from batonpass.model.base.ids import ReceiptId


class RemarkKind(StrEnum):
    """What is said about something. The text is stored, so it is forever."""

    TAINTED = "tainted"  # a run that knew content from outside left a file with these bytes; named by their sha256
    ENDORSED = "endorsed"  # a person answers for a source, by its id, or for a file's bytes, by their sha256
    COMMITTED = "committed"  # a recorded call made this commit, or brought it along; named as git names it
    REFUTED = "refuted"  # somebody refuted a result in this tree; named by the root run


class Remark(Struct, frozen=True, kw_only=True):
    """What one receipt says about one thing."""

    said: RemarkKind
    name: str
    receipt: ReceiptId

    @property
    def id(self) -> str:
        """Return what it is found under: a thing may be remarked upon many times."""
        return f"{self.said} {self.name} {self.receipt}"
