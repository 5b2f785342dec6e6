"""`batonpass review --diff`: a whole pull request, by whose work each hunk is."""

import json
import re
from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import takewhile
from pathlib import Path
from typing import Any, Final

import click

from batonpass import __version__
from batonpass.accounts.blame.blame_sheet import BlameSheet
from batonpass.accounts.blame.blame_words import who
from batonpass.accounts.blamed_lines.span_summary import summary_facts, summary_markdown, tell_doubts, tell_sum
from batonpass.accounts.inert_markdown import inert
from batonpass.attribution.git.commit_span import CommitSpan
from batonpass.cli.git.summary import asked_ledger, find_hunks, get_span, title_of
from batonpass.cli.input.ledger_access import viewed
from batonpass.cli.input.options import written
from batonpass.cli.output.exits import NO
from batonpass.cli.output.painted_rows import paint_row
from batonpass.cli.output.terminal import paint, say, say_json, tell
from batonpass.cli.output.units import counted
from batonpass.cli.review.review_lines import say_finding
from batonpass.records.json_shapes import exact, text_shape
from batonpass.review.finding import Finding, Severity, finding_shape
from batonpass.review.report.diff_html import DiffPage
from batonpass.review.report.review_markdown import finding_lines
from batonpass.review.report.review_sarif import render_sarif
from batonpass.review.reviewed_diff import DiffWork, ReviewedDiff, review_diff

_FIRST: Final = "2 credential"
_LAST: Final = ("by ", "ids ")
_MOST: Final = 20  # places that are listed


def review_pull_request(
    asked: str, *, severity: Severity, form: str | None, output: Path | None, as_json: bool, now: datetime
) -> None:
    """Print the review of a commit or a span of commits; exit with 1 if there are findings or broken receipts."""
    span = get_span(asked)
    with asked_ledger() as (store, sessions), viewed(store) as view:
        diff = review_diff(view, find_hunks(view, span, sessions), now)
        review = diff.review.at_least(severity)
        document = render_sarif(view, review, __version__) if form == "sarif" else None
    findings = review.findings
    if document is not None:
        _write([json.dumps(document, indent=2), "\n"], output, len(findings))
    elif as_json:
        say_json(diff_facts(diff, span, findings))
    elif form == "html":
        page = DiffPage(diff=diff, review=review, title=title_of(span), heard=sessions is not None, now=now)
        _write(page.render(), output, len(findings))
    elif form == "md":
        lines = diff_markdown(diff, span, findings, heard=sessions is not None, now=now)
        _write((f"{line}\n" for line in lines), output, len(findings))
    else:
        _say(diff, heard=sessions is not None, now=now)
        for finding in findings:
            say()
            say_finding(finding)
    if findings or not diff.summary.holds:
        click.get_current_context().exit(NO)


def _write(pieces: Iterable[str], output: Path | None, findings: int) -> None:
    with written(output) as file:
        file.writelines(pieces)
    if output is not None:
        tell(f"wrote {output}: {counted(findings, 'finding')}")


def diff_facts(diff: ReviewedDiff, span: CommitSpan, findings: Iterable[Finding]) -> dict[str, Any]:
    """Return the review of a span of commits for programs."""
    ends = {"base": span.base, "head": span.head}
    return {**ends, **_facts(diff), "findings": [finding_shape(one) for one in findings]}


def diff_markdown(
    diff: ReviewedDiff, span: CommitSpan, findings: Iterable[Finding], *, heard: bool, now: datetime
) -> Iterator[str]:
    """Yield the review of a span of commits as lines of Markdown, in which nothing is live."""
    yield from summary_markdown(diff.summary, title_of(span)).splitlines()
    yield from _markdown(diff, heard=heard, now=now)
    for finding in findings:
        yield from finding_lines(finding)


def _say(diff: ReviewedDiff, *, heard: bool, now: datetime) -> None:
    say(paint(f"{tell_sum(diff.summary)} · {counted(diff.summary.files, 'file')}", bold=True))
    for doubt in tell_doubts(diff.summary):
        tell(paint(doubt, dim=True))
    for work in diff.works:
        say()
        say(paint(f"{counted(work.lines, 'line')} · ", dim=True), _listed(work.places))
        sheet = BlameSheet(maker=work.maker, ways=work.ways, group=(), heard=heard, now=now)
        for row in sheet.rows():
            say(paint_row(row, "  "))
    for title, places in (("perhaps by an agent", diff.perhaps), ("unexplained", diff.unexplained)):
        if places:
            say()
            say(paint(f"{title} · ", "yellow"), _listed(places))


def _listed(places: tuple[str, ...]) -> str:
    more = f" and {len(places) - _MOST} more" if len(places) > _MOST else ""
    return ", ".join(places[:_MOST]) + more


def _markdown(diff: ReviewedDiff, *, heard: bool, now: datetime) -> list[str]:
    lines = [""]
    for work in diff.works:
        task = work.maker.task
        words = "" if task is None or task.words is None else f": {inert(task.words)}"
        name = inert(who(work.maker, transcripts=heard))
        lines.append(f"- {name}{words} ({counted(work.lines, 'line')}: {inert(_listed(work.places))})")
        lines += [f"  - {inert(line)}" for line in _authority(work, heard=heard, now=now)]
    if diff.perhaps:
        lines.append(f"- **perhaps by an agent**: {inert(_listed(diff.perhaps))}")
    if diff.unexplained:
        lines.append(f"- **unexplained**: {inert(_listed(diff.unexplained))}")
    return lines


def _authority(work: DiffWork, *, heard: bool, now: datetime) -> Iterator[str]:
    """Yield credential, grant, approval, result and the way of content from outside, as blame tells them."""
    sheet = BlameSheet(maker=work.maker, ways=work.ways, group=(), heard=heard, now=now)
    told = [" ".join("".join(part.text for part in row.parts).split()) for row in sheet.rows()]
    first = next((index for index, line in enumerate(told) if line.startswith(_FIRST)), len(told))
    for line in takewhile(lambda line: not line.startswith(_LAST), told[first:]):
        yield re.sub(r"^\d ", "", line)


def _facts(diff: ReviewedDiff) -> dict[str, Any]:
    return {
        "summary": summary_facts(diff.summary),
        "works": [_work_facts(work) for work in diff.works],
        "perhaps": diff.perhaps,
        "unexplained": diff.unexplained,
    }


def _work_facts(work: DiffWork) -> dict[str, Any]:
    maker = work.maker
    return {
        "agent": maker.run.agent,
        "run": maker.run.id,
        "root": maker.run.root,
        "principal": maker.principal,
        "at": exact(maker.at),
        "task": text_shape(maker.task),
        "may": maker.may,
        "approval": None if maker.leave is None else maker.leave.leave,
        "credential": None if maker.credential is None else maker.credential.name,
        "standing": maker.standing,
        "from_outside": None if work.ways is None else len(work.ways),
        "lines": work.lines,
        "places": work.places,
    }
