"""Who revoked the grant behind a call."""

from collections.abc import Iterator
from datetime import datetime

from batonpass.accounts.handoff.grant_chain import Revocation, find_revocation
from batonpass.accounts.why.why_hops import name_of, quoted
from batonpass.accounts.why.why_values import Fact
from batonpass.model.base.ids import StreamId
from batonpass.model.ledger.run import Run
from batonpass.records.lineage import find_ancestors
from batonpass.store.port import LedgerView


def revoked_facts(view: LedgerView, run: Run, until: datetime) -> Iterator[Fact]:
    """Yield the revocations of a run's grant, and of those above that it depends on."""
    for one in (run, *find_ancestors(view, run)):
        revoked = find_revocation(view, StreamId(one.handoff or one.id))
        if revoked is not None and revoked.at <= until:
            told = f"what {name_of(one)} was granted · {revoked_words(revoked)}"
            yield Fact(label="revoked", text=told, receipt=revoked.receipt, at=revoked.at)


def revoked_words(revoked: Revocation) -> str:
    """Return who revoked a grant, and why."""
    return f"by {revoked.by}{'' if revoked.reason is None else f': {quoted(revoked.reason)}'}"
