"""A review as lines of a terminal, and as facts for programs."""

from typing import Final

from batonpass.audit.short_ids import ending
from batonpass.cli.output.terminal import paint, say, table, text_rows
from batonpass.cli.output.units import counted, moment
from batonpass.records.json_shapes import exact
from batonpass.review.checklist import ChecklistRow
from batonpass.review.finding import Finding, Severity, finding_shape
from batonpass.review.review import Review, ReviewedRoot
from batonpass.review.suspects import Suspect

_COLOURS: Final = {Severity.HIGH: "red", Severity.MEDIUM: "yellow", Severity.LOW: None}
_SHOWN: Final = 3  # receipts of a finding


def say_review(review: Review) -> None:
    """Print the trees of a review, the worst first, the checklist of each before its findings."""
    for root in review.shown:
        _say_root(root)
    counts = ", ".join(f"{count} {severity}" for severity, count in review.counts.items() if count)
    trees = f"{counted(len(review.roots), 'tree')}, " if len(review.roots) != 1 else ""
    say(paint(f"{trees}{counts or 'nothing to look at'}", bold=True))


def _say_root(root: ReviewedRoot) -> None:
    say(paint(f"{root.root.principal}: ", bold=True), root.intent.partition("\n")[0] or "erased")
    mark = "" if root.mark is None else f" · {root.mark}"
    say(paint(f"{root.root.id} · {counted(root.receipts, 'receipt')} · {moment(root.root.started_at)}{mark}", dim=True))
    for row in root.rows:
        say()
        _say_row(row)
    for finding in root.findings:
        say()
        say_finding(finding)
    for finding, seen in root.acknowledged:
        say()
        table([[paint(f"{finding.kind.title} · {seen.sentence}", dim=True)]], fold=True)
    say()


def _say_row(row: ChecklistRow) -> None:
    attempts = f" · {counted(row.attempts, 'attempt')}" if row.attempts > 1 else ""
    say(
        paint(f"{row.agent} {ending(row.handoff or row.run or '')}", bold=True),
        paint(f" · {row.about} · {row.mode}{attempts}", dim=True),
    )
    granted = "no grant" if row.granted is None else ", ".join(row.granted) or "nothing"
    lines = (
        ("task", row.task or "erased"),
        ("granted", granted),
        ("used", ", ".join(row.used) or "nothing"),
        ("credential", ", ".join(row.credentials)),
        ("decided", ", ".join((*row.decisions, *row.approvals))),
        ("effects", ", ".join(row.effects)),
        ("open", ", ".join(row.open_ends)),
    )
    table([told for name, words in lines if words for told in text_rows(name, words)], indent="  ", fold=True)


def say_finding(finding: Finding) -> None:
    """Print one finding: the event, why it matters, how to go on, and the evidence."""
    head = paint(f"{finding.severity} · {finding.kind.title}", _COLOURS[finding.severity], bold=True)
    table([[head, finding.sentence]], gap=": ", fold=True)
    more = f" and {len(finding.receipts) - _SHOWN} more" if len(finding.receipts) > _SHOWN else ""
    receipts = ", ".join(ending(receipt, 6) for receipt in finding.receipts[:_SHOWN])
    about = " · ".join([finding.kind.matters, *finding.numbers])
    table([["", paint(about, dim=True)]], fold=True)
    for line in finding.details:
        table([["", line]], fold=True)
    for go_on in finding.go_on:
        table([["", f"$ {go_on}"]], fold=True)
    table([["", paint(f"receipt {receipts}{more} · finding {finding.key}", dim=True)]], fold=True)


def say_suspects(suspects: list[Suspect]) -> None:
    """Print who may have caused a failure, and why."""
    for suspect in suspects:
        say(paint(f"{suspect.agent} {ending(suspect.step)}", bold=True), paint(f" · weight {suspect.weight}", dim=True))
        table([["", reason.words] for reason in suspect.reasons], fold=True)
    say(paint("candidates, not verdicts" if suspects else "nothing points at anybody", dim=True))


def suspect_facts(suspect: Suspect) -> dict[str, object]:
    """Return a suspect for programs."""
    return {
        "agent": suspect.agent,
        "step": suspect.step,
        "weight": suspect.weight,
        "reasons": [
            {"words": reason.words, "weight": reason.weight, "receipts": reason.receipts} for reason in suspect.reasons
        ],
    }


def review_facts(review: Review) -> dict[str, object]:
    """Return a review for programs."""
    return {
        "at": exact(review.at),
        "counts": {str(severity): count for severity, count in review.counts.items()},
        "trees": [
            {
                "root": root.root.id,
                "agent": root.root.agent,
                "principal": root.root.principal,
                "state": root.root.state,
                "started_at": exact(root.root.started_at),
                "intent": root.intent,
                "receipts": root.receipts,
                "imported": root.mark,
                "checklist": root.rows,
            }
            for root in review.roots
        ],
        "findings": [finding_shape(finding) for finding in review.findings],
        "acknowledged": [
            {**finding_shape(finding), "acknowledged": {"by": seen.by, "at": exact(seen.at), "reason": seen.reason}}
            for root in review.roots
            for finding, seen in root.acknowledged
        ],
    }
