"""Remarks: facts from receipts about things with names of their own, which are looked up by name.

A file's bytes, a source and a commit are named by others: by a digest, or by an id. Before a call, the relay asks
whether a tainted run wrote them, whether a person endorsed them, and whether a recorded call made them. Before an
offer, it asks for refuted results of the tree, and before a session for items that people took out of the last one. A
review asks for acknowledged findings of a tree, and a rule of the policy for agents in alarm. A caller of a server
sends a token, which is looked up. Remarks are rows that are found by name, so the answer is fast however long the
ledger is.
"""

from enum import StrEnum

from msgspec import Struct

from batonpass.model.base.ids import ReceiptId


class RemarkKind(StrEnum):
    """The kind of a remark. The text is stored, so it is forever."""

    TAINTED = "tainted"  # a tainted run left a file with these bytes; the name is their sha256
    ENDORSED = "endorsed"  # a person endorsed a source (the name is its id) or a file (the name is its sha256)
    COMMITTED = "committed"  # a recorded call made this commit, or brought it in; the name is git's
    REFUTED = "refuted"  # a result in this tree was refuted; the name is the root run
    ACKNOWLEDGED = "acknowledged"  # a person acknowledged a finding in this tree; the name is the root run
    PRUNED = "pruned"  # a person took items out of the remains of a root; the name is the root run
    RULED = "ruled"  # somebody ruled on a hold; the name is theirs
    ALARM = "alarm"  # an alarm about an agent was raised, acknowledged or cleared; the name is the agent
    TOKEN = "token"  # noqa: S105 - a token was added or revoked; the name is its id


class Remark(Struct, frozen=True, kw_only=True):
    """One receipt's statement about one thing."""

    said: RemarkKind
    name: str
    receipt: ReceiptId

    @property
    def id(self) -> str:
        """Return the name of its row. One thing may have many remarks."""
        return f"{self.said} {self.name} {self.receipt}"
