"""A review as Markdown, in which nothing that an agent wrote is live."""

from collections.abc import Iterator
from typing import Final

from batonpass.accounts.inert_markdown import inert
from batonpass.model.base.visible import visible
from batonpass.review.checklist import ChecklistRow
from batonpass.review.finding import Finding
from batonpass.review.kinds.phrases import times
from batonpass.review.review import Review, ReviewedRoot

_SHOWN: Final = 5  # receipts of a finding


def render_markdown(review: Review) -> Iterator[str]:
    """Yield the lines of a review."""
    counts = ", ".join(f"{count} {severity}" for severity, count in review.counts.items() if count)
    yield "## Review"
    yield ""
    yield counts or "Nothing was found."
    for root in review.shown:
        yield from _root(root)
    clean = len(review.roots) - len(review.shown)
    if clean and review.shown:
        yield ""
        yield f"In {times(clean, 'other tree')} there is nothing to look at."


def _root(root: ReviewedRoot) -> Iterator[str]:
    yield ""
    yield f"### {inert(root.intent) or 'erased'}"
    yield ""
    about = [str(root.root.principal), f"{root.root.agent}", f"{root.receipts} receipts", str(root.root.id)]
    yield inert(" · ".join([*about, *([root.mark] if root.mark else [])]))
    for finding in root.findings:
        yield from finding_lines(finding)
    for finding, seen in root.acknowledged:
        yield ""
        yield f"- {finding.kind.title}: {inert(seen.sentence)}"
    if root.rows:
        yield ""
        yield "| sub-agent | task | granted | used | credential | decided | effects | open |"
        yield "|---|---|---|---|---|---|---|---|"
        yield from (_row(row) for row in root.rows)


def finding_lines(finding: Finding) -> Iterator[str]:
    """Yield a finding as an item of a list."""
    more = f" and {len(finding.receipts) - _SHOWN} more" if len(finding.receipts) > _SHOWN else ""
    yield ""
    yield f"- **{finding.severity} · {finding.kind.title}**: {inert(finding.sentence)}"
    yield f"  - {inert(' · '.join([finding.kind.matters, *finding.numbers]))}"
    if finding.details:
        about, *lines = finding.details
        # Indented so far, lines are code, in which nothing is live.
        yield from (f"  - {inert(about)}", "", *(f"        {visible(line)}" for line in lines), "")
    yield from (f"  - Next: `{command}`" for command in finding.go_on)
    yield f"  - Evidence: {', '.join(f'`{receipt}`' for receipt in finding.receipts[:_SHOWN])}{more}"


def _row(row: ChecklistRow) -> str:
    granted = "no grant" if row.granted is None else ", ".join(row.granted) or "nothing"
    decided = [*row.decisions, *row.approvals]
    cells = (
        f"{row.agent} ({row.about})",
        row.task or "erased",
        granted,
        ", ".join(row.used) or "nothing",
        ", ".join(row.credentials) or "none",
        ", ".join(decided) or "nothing",
        ", ".join(row.effects) or "none",
        ", ".join(row.open_ends) or "nothing",
    )
    return f"| {' | '.join(inert(cell) for cell in cells)} |"
