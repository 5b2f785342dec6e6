"""`batonpass git summary`: who wrote the lines of a commit or a pull request, in sum."""

from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager

import click
from msgspec.structs import replace

from batonpass.accounts.blame.hunk_blame import BlamedHunk
from batonpass.accounts.blamed_lines.span_summary import (
    cells_of,
    sum_up,
    summary_facts,
    summary_markdown,
    tell_doubts,
    tell_sum,
)
from batonpass.adapters.line_blame import blame_span, find_span, heard, nothing_recorded, own_ledger
from batonpass.attribution.git.commit_span import CommitSpan
from batonpass.cli.input.ledger_access import viewed
from batonpass.cli.input.options import given_ledger
from batonpass.cli.output.exits import NO
from batonpass.cli.output.terminal import paint, say, say_json, table, tell
from batonpass.cli.output.units import counted
from batonpass.errors import StoreUnavailableError
from batonpass.store.factory import open_store
from batonpass.store.port import LedgerStore, LedgerView


def summarise(asked: str, *, as_markdown: bool, as_json: bool) -> None:
    """Print the summary of a commit or a span of commits."""
    span = get_span(asked)
    with asked_ledger() as (store, sessions), viewed(store) as view:
        summary = sum_up(find_hunks(view, span, sessions))
    if as_json:
        ends = {"base": span.base, "head": span.head}
        say_json({**ends, "from": "ledger" if sessions is None else "transcripts", **summary_facts(summary)})
    elif as_markdown:
        click.echo(summary_markdown(summary, title_of(span)), nl=False)
    else:
        say(f"{tell_sum(summary)} · {summary.removed:,} removed · {counted(summary.files, 'file')}")
        rows = [[*map(str, cells_of(author))] for author in summary.authors]
        if rows:
            table(rows, header=["author", "for", "lines", "verified", "approved"])
        for doubt in tell_doubts(summary):
            tell(paint(doubt, dim=True))
    if not summary.holds:
        click.get_current_context().exit(NO)


def get_span(asked: str) -> CommitSpan:
    """Return the commit or the span of commits that is meant. A usage error if it is neither."""
    span = find_span(asked)
    if span is None or span.head is None:
        raise click.UsageError(f"{asked} is neither a commit nor BASE..HEAD")
    return span


def find_hunks(view: LedgerView, span: CommitSpan, sessions: int | None) -> Iterator[BlamedHunk]:
    """Yield the hunks of a span with their authors, from a ledger or from this many sessions."""
    for hunk in blame_span(view, span):
        yield hunk if hunk.blame is None else replace(hunk, blame=replace(hunk.blame, transcripts=sessions))


def title_of(span: CommitSpan) -> str:
    """Return the ends of a span, short."""
    return f"{span.base[:8]}..{(span.head or '')[:8]}"


@contextmanager
def asked_ledger() -> Iterator[tuple[LedgerStore, int | None]]:
    """Open the chosen ledger, or one made from sessions, or an empty one: then only git and its notes tell."""
    settings = own_ledger(None, given_ledger())
    if settings is not None:
        with closing(open_store(settings.ledger, create=False)) as store:
            yield store, None
        return
    with ExitStack() as stack:
        try:
            read = stack.enter_context(heard(None))
        except StoreUnavailableError:
            yield stack.enter_context(nothing_recorded()), None
            return
        tell(paint(f"no ledger here: read {counted(read.read, 'session')}, which nobody signed", dim=True))
        yield read.relay.store, read.read
