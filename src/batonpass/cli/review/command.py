"""`batonpass review`: findings that a person should look at after a run, with the receipts that prove them."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any, Final

import click

from batonpass import __version__
from batonpass.audit.meant_ids import get_meant
from batonpass.audit.short_ids import LAST
from batonpass.cli.input.id_types import REVIEWED_ID
from batonpass.cli.input.ledger_access import opened_store, opened_view
from batonpass.cli.input.options import ledger_and_json, read_moment, written
from batonpass.cli.output.terminal import say, say_json, table, tell
from batonpass.cli.output.units import counted
from batonpass.cli.review.review_lines import review_facts, say_review, say_suspects, suspect_facts
from batonpass.errors import NotFoundError
from batonpass.model.base.ids import HANDOFF, RUN, SESSION, HandoffId, RunId, SessionId
from batonpass.review.finding import Severity
from batonpass.review.review import (
    Review,
    find_reviewed,
    review_below,
    review_roots,
    review_session,
)
from batonpass.review.reviewed_tree import ReviewedTree
from batonpass.review.story import tell_story
from batonpass.review.suspects import find_suspects
from batonpass.store.port import LedgerView

_FORMS: Final = ("md", "html", "sarif")


@click.command()
@click.argument("given", metavar="RUN|HANDOFF|SESSION|last", required=False, type=REVIEWED_ID)
@click.option("--since", metavar="WHEN", callback=read_moment, help="Review all trees since then: 12h, 1d, 2026-11-15.")
@click.option("--diff", "span", metavar="BASE..HEAD", help="Review a pull request: whose work each hunk is.")
@click.option("--watch", "watches", is_flag=True, help="Keep running and print each finding as it comes, until Ctrl-C.")
@click.option(
    "--severity",
    type=click.Choice([str(severity) for severity in Severity]),
    default=str(Severity.LOW),
    show_default=True,
    help="List only findings that are at least this bad.",
)
@click.option("--suspects", "part", flag_value="suspects", help="Of a failed tree: who may have caused it, and why.")
@click.option("--story", "part", flag_value="story", help="Tell the tree as prose.")
@click.option("--md", "form", flag_value="md", help="Print Markdown.")
@click.option("--html", "form", flag_value="html", help="Print one self-contained HTML page.")
@click.option("--sarif", "form", flag_value="sarif", help="Print SARIF, for GitHub and editors.")
@click.option("-o", "--output", metavar="FILE", type=click.Path(path_type=Path), help="Write to FILE, not to stdout.")
@ledger_and_json
def command(
    given: str | None,
    *,
    since: datetime | None,
    span: str | None,
    watches: bool,
    severity: str,
    part: str | None,
    form: str | None,
    output: Path | None,
    as_json: bool,
) -> None:
    """List the findings that a person should look at after a run, the worst first.

    Reviews the latest tree, or the one that you name. Each finding says why it matters, which receipts prove it, and
    how to go on. Exits with 1 if there are findings.
    """
    _refuse([given, since, span, watches or None], part=part, form=form, as_json=as_json, output=output)
    now = datetime.now(UTC)
    if watches:
        if form is not None:
            raise click.UsageError(f"--watch prints findings as they come: leave --{form} out")
        from batonpass.cli.review.watch import watch  # noqa: PLC0415 - only for --watch

        with opened_store() as store:
            watch(store, Severity(severity), now, as_json=as_json)
        return
    if span is not None:
        from batonpass.cli.review.diff import review_pull_request  # noqa: PLC0415 - loads all of blame

        review_pull_request(span, severity=Severity(severity), form=form, output=output, as_json=as_json, now=now)
        return
    with opened_view() as view:
        if part is not None:
            _say_part(view, _root_of(view, given), part, now, as_json=as_json)
            return
        review = read_review(view, given, since, now).at_least(Severity(severity))
        document = _sarif(view, review) if form == "sarif" else None
    if as_json:
        say_json(review_facts(review))
    elif form is not None:
        with written(output) as file:
            file.writelines(_drawn(review, form, document))
        if output is not None:
            tell(f"wrote {output}: {counted(len(review.findings), 'finding')}")
    else:
        say_review(review)
    if review.findings:
        click.get_current_context().exit(1)


def _refuse(named: list[object], *, part: str | None, form: str | None, as_json: bool, output: Path | None) -> None:
    """Refuse combinations that mean nothing. `named` are the ways to name the reviewed tree."""
    _, *several = named
    if len(named) - named.count(None) > 1:
        raise click.UsageError("give one of them: an id, --since, --diff or --watch")
    if as_json and form is not None:
        raise click.UsageError(f"give either --json or --{form}")
    if part is not None and (form is not None or output is not None or any(several)):
        raise click.UsageError(f"--{part} is about one tree, as text or --json")
    if output is not None and form is None:
        raise click.UsageError(f"-o needs one of {', '.join(f'--{one}' for one in _FORMS)}")


def read_review(view: LedgerView, given: str | None, since: datetime | None, now: datetime) -> Review:
    """Return the review of the named tree; without a name, of the latest."""
    if since is not None:
        return review_roots(view, find_reviewed(view, since), now)
    if given is None or given.strip() == LAST:
        return review_below(view, _root_of(view, given), now)
    meant = get_meant(view, given, (RUN, HANDOFF, SESSION))
    if meant.kind == SESSION:
        return review_session(view, SessionId(meant.id), now)
    return review_below(view, RunId(meant.id) if meant.kind == RUN else HandoffId(meant.id), now)


def _root_of(view: LedgerView, given: str | None) -> RunId:
    """Return the root of the tree that is meant; without a name, the latest one."""
    if given is None or given.strip() == LAST:
        latest = next(islice(view.find_runs(), 1), None)
        if latest is None:
            raise NotFoundError("run", LAST)
        return latest.root
    meant = get_meant(view, given, (RUN, HANDOFF))
    return view.get_run(RunId(meant.id)).root if meant.kind == RUN else view.get_handoff(HandoffId(meant.id)).root


def _drawn(review: Review, form: str, document: dict[str, Any] | None) -> Iterator[str]:
    # Loaded on demand: most people want text.
    if form == "html":
        from batonpass.review.report.review_html import render_html_review  # noqa: PLC0415 - as above

        return render_html_review(review)
    if form == "md":
        from batonpass.review.report.review_markdown import render_markdown  # noqa: PLC0415 - as above

        return (f"{line}\n" for line in render_markdown(review))
    return iter([json.dumps(document, indent=2), "\n"])


def _sarif(view: LedgerView, review: Review) -> dict[str, Any]:
    from batonpass.review.report.review_sarif import render_sarif  # noqa: PLC0415 - few people want this form

    return render_sarif(view, review, __version__)


def _say_part(view: LedgerView, root: RunId, part: str, now: datetime, *, as_json: bool) -> None:
    tree = ReviewedTree(view, root)
    findings = review_below(view, root, now).findings
    if part == "story":
        paragraphs = [*tell_story(tree, findings)]
        if as_json:
            say_json({"root": root, "story": paragraphs})
            return
        for number, paragraph in enumerate(paragraphs):
            if number:
                say()
            table([[paragraph]], fold=True)
        return
    suspects = find_suspects(tree, findings)
    if as_json:
        say_json({"root": root, "suspects": [suspect_facts(suspect) for suspect in suspects]})
        return
    say_suspects(suspects)
