"""Blame and review for clients that are not a terminal: the same answers, about this directory alone."""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Final

import click

from batonpass.accounts.blame.blame_text import render_blame
from batonpass.accounts.blame.blame_words import BlameRow
from batonpass.accounts.blame.hunk_blame import hunk_row
from batonpass.accounts.blame.known_files import KnownFiles
from batonpass.adapters.line_blame import find_span
from batonpass.attribution.changes.sides import find_repository
from batonpass.attribution.git.commit_span import CommitSpan
from batonpass.cli.blame.blame_facts import blame_facts, hunk_facts
from batonpass.cli.blame.command import blame_of_file, parse_place
from batonpass.cli.git.summary import asked_ledger, find_hunks
from batonpass.cli.input.ledger_access import opened_view, settings, viewed
from batonpass.cli.review.command import read_review
from batonpass.cli.review.diff import diff_facts, diff_markdown
from batonpass.cli.review.review_lines import review_facts
from batonpass.errors import NotFoundError
from batonpass.model.base.checks import shorten
from batonpass.review.report.review_markdown import render_markdown
from batonpass.review.reviewed_diff import review_diff
from batonpass.server.mcp.directory_answers import DirectoryAnswer

_MOST_HUNKS: Final = 500


class WorkTreeAnswers:
    """Answers about the files of the current directory and its repository. Safe to use from many threads."""

    def __init__(self, *, only_known: bool) -> None:
        """`only_known` leaves out files that neither git nor the ledger knows: their text is nobody else's business."""
        self._only_known = only_known
        self._context = click.get_current_context()  # the chosen ledger; a thread has no context of its own
        here = Path.cwd().resolve()
        self._root = find_repository(here) or here

    def blame(self, where: str) -> DirectoryAnswer:
        """Return who wrote a file, lines of it, or the hunks of a diff. Raises `InvalidValueError`, `NotFoundError`."""
        with self._asked():
            path, lines = parse_place(where)
            if lines is not None or path.is_file():
                self._require_within(path)
                blame = blame_of_file(where, full=True)
                return DirectoryAnswer(facts=blame_facts(blame), lines=_plain(render_blame(blame, full=True)))
            span = self._span(where)
            with asked_ledger() as (store, sessions), viewed(store) as view:
                hunks = list(find_hunks(view, span, sessions))[:_MOST_HUNKS]
            facts: dict[str, object] = {
                "base": span.base,
                "head": span.head,
                "hunks": [hunk_facts(hunk) for hunk in hunks],
            }
            return DirectoryAnswer(facts=facts, lines=_plain(hunk_row(hunk) for hunk in hunks))

    def review(self, of: str | None) -> DirectoryAnswer:
        """Return the findings of a run, a handoff or a session; by default of the latest tree."""
        with self._asked(), opened_view() as view:
            review = read_review(view, of, None, datetime.now(UTC))
        return DirectoryAnswer(facts=review_facts(review), lines=tuple(render_markdown(review)))

    def review_diff(self, span: str) -> DirectoryAnswer:
        """Return whose work each hunk of a pull request is, and the findings of the runs behind it."""
        with self._asked():
            found = self._span(span)
            with asked_ledger() as (store, sessions), viewed(store) as view:
                now = datetime.now(UTC)
                diff = review_diff(view, find_hunks(view, found, sessions), now)
            findings = diff.review.findings
            lines = tuple(diff_markdown(diff, found, findings, heard=sessions is not None, now=now))
            return DirectoryAnswer(facts=diff_facts(diff, found, findings), lines=lines)

    @contextmanager
    def _asked(self) -> Iterator[None]:
        with self._context.scope(cleanup=False):
            yield

    def _span(self, where: str) -> CommitSpan:
        # A name with a slash at its beginning or dots in it may be a directory elsewhere: only commits are meant here.
        span = None if Path(where).exists() else find_span(where)
        if span is None or span.head is None:
            raise NotFoundError("file, commit or BASE..HEAD", shorten(where))
        return span

    def _require_within(self, path: Path) -> None:
        """Refuse a file outside of the directory, one of the ledger's own, and one that is not known."""
        known = KnownFiles(root=self._root, home=settings().home, environment=os.environ)
        known.require_within(path)
        if self._only_known:
            known.require_known(path, is_recorded=partial(_is_recorded, known))


def _is_recorded(known: KnownFiles, name: str) -> bool:
    with opened_view() as view:
        return known.count_changes(view, name) > 0


def _plain(rows: Iterable[BlameRow]) -> tuple[str, ...]:
    return tuple(row.indent + "".join(part.text for part in row.parts) for row in rows)
