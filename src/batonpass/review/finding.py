"""Findings: something that a person should see, with the receipts that prove it and a command to go on with."""

import hashlib
from datetime import datetime
from enum import StrEnum
from typing import Final

from msgspec import Struct

from batonpass.model.base.ids import AgentId, CallId, HandoffId, PrincipalId, ReceiptId, RunId
from batonpass.records.json_shapes import Shape, exact

_KEY: Final = 12  # hexadecimal digits: two of a million findings are alike by chance once in 500 ledgers


class Severity(StrEnum):
    """How much a finding matters, the worst first."""

    HIGH = "high"  # somebody did, or could have done, what nobody allowed; or the record is not what it says
    MEDIUM = "medium"  # work that should not be built on before somebody has looked
    LOW = "low"  # a habit that makes the next incident harder to see

    @property
    def rank(self) -> int:
        """Return its place in the order, 0 for the worst."""
        return _ORDER[self]

    def reaches(self, least: "Severity") -> bool:
        """Return whether it is at least as bad as another one."""
        return self.rank <= least.rank


_ORDER: Final = {severity: rank for rank, severity in enumerate(Severity)}


class FindingKind(Struct, frozen=True, kw_only=True):
    """One sort of finding: its name, why it matters, and its numbers in the lists of others."""

    code: str
    title: str
    severity: Severity
    matters: str  # why somebody should care, in a sentence
    mast: str | None = None  # number of its failure mode in MAST
    owasp: str | None = None  # its number in OWASP's Top 10 for Agentic Applications 2026


class Finding(Struct, frozen=True, kw_only=True):
    """One thing that a person should see. All of it follows from the receipts that it names."""

    kind: FindingKind
    severity: Severity
    root: RunId
    subject: RunId | HandoffId | CallId  # what it is about, as other commands take it
    agent: AgentId
    at: datetime  # of the first of its receipts
    sentence: str  # what happened; may quote what a model wrote
    receipts: tuple[ReceiptId, ...]
    go_on: tuple[str, ...] = ()  # commands to paste
    calls: tuple[CallId, ...] = ()  # whose changed lines show it
    details: tuple[str, ...] = ()  # further lines: a grant as TOML, the texts that differ
    person: PrincipalId | None = None  # whose habit it is, in several trees
    by: RunId | None = None  # the run whose act it is, if that is not the subject's: the one that handed it off

    @property
    def numbers(self) -> tuple[str, ...]:
        """Return its numbers in MAST and in OWASP's list, where it has them."""
        mast, owasp = self.kind.mast, self.kind.owasp
        return (*((f"MAST {mast}",) if mast else ()), *((f"OWASP {owasp}",) if owasp else ()))

    @property
    def key(self) -> str:
        """Return a name that stays the same as long as the evidence does; an acknowledgement names it."""
        # All of it: who acknowledged one call outside a grant has not seen the next one.
        said = "\n".join((self.kind.code, self.subject, *self.receipts))
        return hashlib.sha256(said.encode()).hexdigest()[:_KEY]


def finding_shape(finding: Finding) -> Shape:
    """Return a finding for programs."""
    return {
        "finding": finding.key,
        "kind": finding.kind.code,
        "title": finding.kind.title,
        "severity": finding.severity,
        "root": finding.root,
        "subject": finding.subject,
        "agent": finding.agent,
        "person": finding.person,
        "at": exact(finding.at),
        "sentence": finding.sentence,
        "matters": finding.kind.matters,
        "mast": finding.kind.mast,
        "owasp": finding.kind.owasp,
        "receipts": finding.receipts,
        "go_on": finding.go_on,
        "details": finding.details,
    }
