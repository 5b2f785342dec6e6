"""A review as Markdown, in which nothing that an agent wrote is live."""

import re
from collections.abc import Iterator
from typing import Final

from batonpass.model.base.visible import visible
from batonpass.review.checklist import ChecklistRow
from batonpass.review.finding import Finding
from batonpass.review.review import Review, ReviewedRoot

# Every character that can begin a construct of Markdown or HTML.
_LIVE: Final = str.maketrans({mark: f"\\{mark}" for mark in "\\`*_{}[]()<>+-.!|~:&"})
# GitHub looks for people and issues in what was rendered, where no backslash is left. It does not look into code.
_CALLING: Final = re.compile(r"[@#]+")


def render_markdown(review: Review) -> Iterator[str]:
    """Yield the lines of a review."""
    counts = ", ".join(f"{count} {severity}" for severity, count in review.counts.items() if count)
    yield "## Review"
    yield ""
    yield counts or "Nothing was found."
    for root in review.roots:
        yield from _root(root)


def _root(root: ReviewedRoot) -> Iterator[str]:
    yield ""
    yield f"### {inert(root.intent) or 'erased'}"
    yield ""
    about = [str(root.root.principal), f"{root.root.agent}", f"{root.receipts} receipts", str(root.root.id)]
    yield inert(" · ".join([*about, *([root.mark] if root.mark else [])]))
    for finding in root.findings:
        yield from finding_lines(finding)
    if root.rows:
        yield ""
        yield "| sub-agent | task | granted | used | decided | effects | open |"
        yield "|---|---|---|---|---|---|---|"
        yield from (_row(row) for row in root.rows)


def finding_lines(finding: Finding) -> Iterator[str]:
    """Yield a finding as an item of a list."""
    numbers = [f"MAST {finding.kind.mast}"] if finding.kind.mast else []
    numbers += [f"OWASP {finding.kind.owasp}"] if finding.kind.owasp else []
    yield ""
    yield f"- **{finding.severity} · {finding.kind.title}**: {inert(finding.sentence)}"
    yield f"  {inert(finding.kind.matters)} {inert(', '.join(numbers))}".rstrip()
    yield f"  Evidence: {', '.join(f'`{receipt}`' for receipt in finding.receipts[:5])}"
    yield from (f"  Next: `{command}`" for command in finding.go_on)


def _row(row: ChecklistRow) -> str:
    granted = "no grant" if row.granted is None else ", ".join(row.granted) or "nothing"
    decided = [*row.decisions, *row.approvals]
    cells = (
        f"{row.agent} ({row.state})",
        row.task or "erased",
        granted,
        ", ".join(row.used) or "nothing",
        ", ".join(decided) or "nothing",
        ", ".join(row.effects) or "none",
        ", ".join(row.open_ends) or "nothing",
    )
    return f"| {' | '.join(inert(cell) for cell in cells)} |"


def inert(text: str) -> str:
    """Return text as one line of Markdown that shows exactly these characters."""
    return _CALLING.sub(r"`\g<0>`", visible(" ".join(text.split())).translate(_LIVE))
