"""A review as one HTML page for printing and passing on."""

from collections.abc import Iterable, Iterator
from importlib.resources import files
from typing import Final

from batonpass.accounts.inert_page import CLOSING, PAGE_STYLE, inert_text, opening
from batonpass.review.checklist import ChecklistRow
from batonpass.review.finding import Finding
from batonpass.review.kinds.phrases import times
from batonpass.review.review import Review, ReviewedRoot

REVIEW_STYLE: Final = PAGE_STYLE + files(__package__).joinpath("review.css").read_text(encoding="utf-8")
_HEADS: Final = ("sub-agent", "task", "granted", "used", "credential", "decided", "approved", "effects", "open")


def render_html_review(review: Review) -> Iterator[str]:
    """Yield one self-contained page, piece by piece."""
    yield opening("Review", REVIEW_STYLE)
    yield "<header>\n<h1>Review</h1>\n<ul class=facts>\n"
    yield from found_facts(review)
    yield "</ul>\n</header>\n<main>\n"
    for root in review.shown:
        yield from _root(root)
    yield from _clean(review)
    yield f"</main>\n{CLOSING}"


def found_facts(review: Review) -> Iterator[str]:
    """Yield how many findings there are and when somebody looked, as items of a list."""
    tones = {"high": "bad", "medium": "warn", "low": "plain"}
    for severity, count in review.counts.items():
        if count:
            yield f'<li class="{tones[severity]}">{count} {severity}</li>\n'
    if not review.findings:
        yield "<li>nothing found</li>\n"
    yield f"<li>{review.at.astimezone():%Y-%m-%d %H:%M %Z}</li>\n"


def _clean(review: Review) -> Iterator[str]:
    """Yield the trees in which nothing was found, a line each."""
    shown = {root.root.id for root in review.shown}
    clean = [root for root in review.roots if root.root.id not in shown]
    if clean:
        yield f'<section>\n<h2>Nothing to look at: {times(len(clean), "tree")}</h2>\n<ul class="quiet">\n'
        for root in clean:
            about = f" · {root.root.principal} · {root.root.id}"
            yield f"<li><bdi>{inert_text(root.intent) or 'erased'}</bdi>{inert_text(about)}</li>\n"
        yield "</ul>\n</section>\n"


def _root(root: ReviewedRoot) -> Iterator[str]:
    yield f"<section>\n<h2><bdi>{inert_text(root.intent) or 'erased'}</bdi></h2>\n"
    about = [root.root.principal, root.root.agent, f"{root.receipts} receipts", root.root.id]
    yield f'<p class="quiet">{inert_text(" · ".join([*about, *([root.mark] if root.mark else [])]))}</p>\n'
    for finding in root.findings:
        yield from finding_article(finding)
    for finding, seen in root.acknowledged:
        yield f'<p class="quiet"><bdi>{inert_text(f"{finding.kind.title} · {seen.sentence}")}</bdi></p>\n'
    if root.rows:
        heads = "".join(f"<th scope=col>{head}</th>" for head in _HEADS)
        yield f'<div class="scroll" tabindex="0"><table>\n<thead><tr>{heads}</tr></thead>\n<tbody>\n'
        yield from (_row(row) for row in root.rows)
        yield "</tbody>\n</table></div>\n"
    yield "</section>\n"


def finding_article(finding: Finding) -> Iterator[str]:
    """Yield a finding: what happened, why it matters, how to go on, and the evidence."""
    yield (
        f'<article class="finding {finding.severity}">\n<h3>{finding.kind.title}</h3>'
        f'<span class="pill {finding.severity}">{finding.severity}</span>\n'
        f"<p><bdi>{inert_text(finding.sentence)}</bdi></p>\n"
        f'<p class="quiet">{" · ".join([inert_text(finding.kind.matters), *finding.numbers])}</p>\n'
    )
    lines = [*finding.details, *(f"$ {command}" for command in finding.go_on)]
    yield f"<pre>{inert_lines(lines)}</pre>\n" if lines else ""
    receipts = ", ".join(inert_text(receipt) for receipt in finding.receipts)
    yield f'<p class="quiet">evidence: <code>{receipts}</code></p>\n</article>\n'


def inert_lines(lines: Iterable[str]) -> str:
    """Return lines of text that show exactly these characters."""
    return "\n".join(inert_text(line) for line in lines)


def _row(row: ChecklistRow) -> str:
    granted = ("no grant",) if row.granted is None else row.granted
    who = (f"{row.agent} · {row.about}", *((f"{row.attempts} attempts",) if row.attempts > 1 else ()))
    task = "<br>".join(inert_text(line) for line in (row.task.strip() or "erased").split("\n"))
    others = (granted, row.used, row.credentials, row.decisions, row.approvals, row.effects, row.open_ends)
    cells = (_cell(who), f"<bdi>{task}</bdi>", *map(_cell, others))
    return f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>\n"


def _cell(lines: tuple[str, ...]) -> str:
    if len(lines) <= 1:
        return f"<bdi>{inert_lines(lines) or '–'}</bdi>"
    return f"<ul>{''.join(f'<li><bdi>{inert_text(line)}</bdi></li>' for line in lines)}</ul>"
