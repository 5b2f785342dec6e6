"""The review of a pull request as one HTML page: whose work each part is, what nothing explains, and the findings."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from msgspec import Struct

from batonpass.accounts.blame.blame_sheet import BlameSheet
from batonpass.accounts.blame.blame_words import BlameRow
from batonpass.accounts.blamed_lines.span_summary import SpanSummary, cells_of, tell_doubts, tell_sum
from batonpass.accounts.inert_page import CLOSING, inert_text, opening
from batonpass.accounts.trail.receipt_lines import Tone, TrailNote
from batonpass.review.kinds.phrases import times
from batonpass.review.report.review_html import REVIEW_STYLE, finding_article, found_facts
from batonpass.review.review import Review
from batonpass.review.reviewed_diff import DiffWork, ReviewedDiff

_HEADS = ("author", "for", "lines", "verified", "approved")


class DiffPage(Struct, frozen=True, kw_only=True):
    """The page of one diff."""

    diff: ReviewedDiff
    review: Review  # with the findings that are asked for
    title: str  # the ends of the diff
    heard: bool  # from transcripts
    now: datetime

    def render(self) -> Iterator[str]:
        """Yield one self-contained page, piece by piece."""
        yield opening("Review", REVIEW_STYLE)
        yield f"<header>\n<h1>Review of <bdi>{inert_text(self.title)}</bdi></h1>\n<ul class=facts>\n"
        yield from found_facts(self.review)
        yield f"<li>{inert_text(tell_sum(self.diff.summary))}</li>\n<li>{times(self.diff.summary.files, 'file')}</li>\n"
        yield "</ul>\n</header>\n<main>\n"
        yield from _authors(self.diff.summary)
        for work in self.diff.works:
            yield from self._work(work)
        yield from _places("Perhaps by an agent", self.diff.perhaps)
        yield from _places("Unexplained", self.diff.unexplained)
        yield "<section>\n<h2>Findings of the runs behind it</h2>\n"
        for finding in self.review.findings:
            yield from finding_article(finding)
        yield "" if self.review.findings else '<p class="quiet">nothing found</p>\n'
        yield f"</section>\n</main>\n{CLOSING}"

    def _work(self, work: DiffWork) -> Iterator[str]:
        sheet = BlameSheet(maker=work.maker, ways=work.ways, group=(), heard=self.heard, now=self.now)
        rows = [*sheet.rows()]
        about = f"{times(work.lines, 'line')} · {', '.join(work.places)}"
        yield f"<section>\n<h2><bdi>{inert_text(work.maker.run.agent)}</bdi></h2>\n"
        yield f'<p class="quiet"><bdi>{inert_text(about)}</bdi></p>\n<dl>\n'
        for label, lines in _by_label(rows):
            told = "".join(f"<div><bdi>{_line(line)}</bdi></div>" for line in lines)
            yield f"<dt>{inert_text(label)}</dt><dd>{told}</dd>\n"
        yield "</dl>\n"
        task = None if work.maker.task is None else work.maker.task.words
        # The sheet has room for the beginning of a long task only.
        if task is not None and f"│ {task.strip()}" not in {_text(row.parts[1:]) for row in rows}:
            whole = "\n".join(inert_text(line) for line in task.split("\n"))
            yield f"<details>\n<summary>the exact task</summary>\n<pre>{whole}</pre>\n</details>\n"
        yield "</section>\n"


def _authors(summary: SpanSummary) -> Iterator[str]:
    for doubt in tell_doubts(summary):
        yield f'<p class="quiet">{inert_text(doubt)}</p>\n'
    if summary.authors:
        heads = "".join(f"<th scope=col>{head}</th>" for head in _HEADS)
        yield f'<div class="scroll" tabindex="0"><table>\n<thead><tr>{heads}</tr></thead>\n<tbody>\n'
        for author in summary.authors:
            cells = "".join(f"<td><bdi>{inert_text(cell)}</bdi></td>" for cell in cells_of(author))
            yield f"<tr>{cells}</tr>\n"
        yield "</tbody>\n</table></div>\n"


def _places(title: str, places: Sequence[str]) -> Iterator[str]:
    if places:
        listed = "".join(f"<li><bdi>{inert_text(place)}</bdi></li>\n" for place in places)
        yield f"<section>\n<h2>{title}</h2>\n<ul>\n{listed}</ul>\n</section>\n"


def _by_label(rows: Sequence[BlameRow]) -> Iterator[tuple[str, list[Sequence[TrailNote]]]]:
    """Yield each label of a sheet with its lines. A line without a label belongs to the one above it."""
    held: tuple[str, list[Sequence[TrailNote]]] | None = None
    for row in rows:
        label = row.parts[0].text.strip()
        if label or held is None:
            if held is not None:
                yield held
            held = (label, [])
        held[1].append(row.parts[1:])
    if held is not None:
        yield held


def _line(parts: Sequence[TrailNote]) -> str:
    plain = {Tone.PLAIN, Tone.QUIET}
    told = ((part.tone, inert_text(part.text)) for part in parts)
    return "".join(text if tone in plain else f'<span class="{tone}">{text}</span>' for tone, text in told)


def _text(parts: Sequence[TrailNote]) -> str:
    return "".join(part.text for part in parts)
