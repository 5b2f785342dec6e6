"""Reviews for tests: of a real ledger in a directory of its own."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from batonpass import Relay
from batonpass.relay import desk_of
from batonpass.review.finding import Finding
from batonpass.review.review import Review, review_roots

# Two days later, so that what was left without an end is noticed.
LATER: Final = timedelta(days=2)


@contextmanager
def ledger_in(directory: Path, policy: str | None = None) -> Iterator[Relay]:
    """Open a new ledger in a directory, under a policy."""
    if policy is not None:
        (directory / "batonpass.toml").write_text(policy, encoding="utf-8")
    with Relay.open(directory / ".batonpass" / "ledger.db", work_tree=directory) as relay:
        yield relay


def review_of(relay: Relay, later: timedelta = LATER) -> Review:
    """Review everything in a ledger."""
    with desk_of(relay).store.view() as view:
        return review_roots(view, [run.id for run in view.find_runs(roots=True)], datetime.now(UTC) + later)


def findings_of(relay: Relay, code: str) -> list[Finding]:
    """Return the findings of one kind."""
    return [finding for finding in review_of(relay).findings if finding.kind.code == code]
