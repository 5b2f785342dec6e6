"""Follows the lines of one file through recorded changes and git's history, in order of time, to the present.

Every known text gets marks that say who wrote which line. A recorded change names the digest of the text it began with.
If that text has marks, the hunks are applied to them and nothing is in doubt. If it has none, an unrecorded author (a
person, a tool, git) made it from an earlier text; then only lines that certainly stayed keep their marks.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import accumulate
from typing import Final

from batonpass.attribution.changes.change import Certainty, FileChange, digest_of
from batonpass.attribution.changes.line_diff import hunks_between
from batonpass.attribution.changes.mark import Author, LineMark, MarkedText, Weight, joined, unexplained, weight
from batonpass.attribution.git.git_history import Checkout, History, Revision
from batonpass.attribution.git.revision_order import order_revisions
from batonpass.attribution.git.rewrites import Rewrites
from batonpass.attribution.lines.change_places import Splice, is_there, place_splices, splices_of
from batonpass.attribution.lines.recovered_texts import Recovery
from batonpass.attribution.lines.returned_lines import Attic, Fragment, Search
from batonpass.attribution.lines.three_way import Arrival, Merge
from batonpass.attribution.lines.untouched_lines import UntouchedMarks, carry_over, is_reformatted, reformatted
from batonpass.attribution.lines.written_marks import Written
from batonpass.model.base.ids import Digest

_CONTEXT: Final = 3
_TWINS: Final = 8  # equal blocks that are compared
_MANY: Final = 3  # distinctive lines: nobody types as many again by chance
_SHELVED: Final = 8  # uncommitted texts that are kept
_SOMEBODYS: Final = unexplained(None)
_NEVER: Final = datetime.min.replace(tzinfo=UTC)
_MEANWHILE: Final = datetime.max.replace(tzinfo=UTC)  # marks lines that came during a call; no real time


@dataclass(slots=True)
class Follower:
    """The state of one file, event by event."""

    changes: Sequence[FileChange]
    history: History
    path: str
    lines: Sequence[str]  # the present content
    present: Digest | None
    heads: dict[str, MarkedText] = field(default_factory=dict)  # the latest text by path
    by_digest: dict[Digest, MarkedText] = field(default_factory=dict)
    by_commit: dict[str, MarkedText] = field(default_factory=dict)
    attic: Attic = field(default_factory=Attic)
    shelf: list[MarkedText] = field(default_factory=list)  # uncommitted work that was replaced by another text
    recovery: Recovery = field(init=False)
    rewrites: Rewrites = field(init=False)
    _awaited: set[str] = field(default_factory=set)  # commits that were checked out before they were processed
    _made: dict[Digest, Revision] = field(init=False)  # revisions by the digest of the file
    _wanted: set[Digest] = field(init=False)
    _runs: dict[str, str] = field(init=False)
    _written: set[Digest] = field(default_factory=set)  # results of certain changes

    def __post_init__(self) -> None:
        known = dict(self.history.lines)
        if self.present is not None:
            known[self.present] = self.lines
        self.recovery = Recovery(self.changes, known)
        self.rewrites = Rewrites(self.history.revisions)
        self._runs = {change.call: change.run for change in self.changes}
        self._made = {revision.digest: revision for revision in reversed(self.history.revisions)}
        self._wanted = set(self._made)
        self._wanted |= {self.present} if self.present else set()
        last: dict[str, Digest | None] = {}
        for change in self.changes:
            if change.before is not None and last.get(change.renamed_from or change.path) != change.before:
                self._wanted.add(change.before)
            last[change.path] = change.after

    def follow(self) -> None:
        """Process all changes, revisions and checkouts."""
        events: list[tuple[datetime, FileChange | Revision | Checkout]] = [(one.at, one) for one in self.changes]
        # At equal times, changes come before revisions, and revisions before those that are based on them: `sorted` is
        # stable, and `order_revisions` yields them in that order.
        ordered = list(order_revisions(self.history, self.rewrites, self.changes))
        events += ((at, revision) for revision, at in ordered)
        made = {revision.commit: at for revision, at in ordered}
        # The log gives the order of checkouts; clocks cannot overrule it.
        times = (one.at if one.is_back else made.get(one.commit, one.at) for one in self.history.checkouts)
        events += zip(accumulate(times, max), self.history.checkouts, strict=True)
        for _, event in sorted(events, key=lambda pair: pair[0]):
            if isinstance(event, FileChange):
                self._change(event)
            elif isinstance(event, Revision):
                self._revise(event)
            else:
                self._check_out(event)

    def _check_out(self, checkout: Checkout) -> None:
        """Switch to the text of a commit; uncommitted work stays if the file is the same in both commits."""
        there = self.by_commit.get(checkout.commit) or self.by_digest.get(checkout.digest)
        head = self._head(self.path)
        if there is None:
            self._awaited.add(checkout.commit)
            return
        if head is not None and self._is_on(head, there):
            return
        path = next((path for path, text in self.heads.items() if text is head), self.path)
        if head is not None and head.lines == there.lines:
            head.commit = there.commit
            return
        self._shelve(head)
        self._leave(head, there.lines)
        self.heads[path] = there.copy()

    def finish(self) -> MarkedText:
        """Return the marks of the present text."""
        head = self._head(self.path)
        if head is not None and head.lines == self.lines:
            return head
        if self.present is not None and (known := self.by_digest.get(self.present)) and known.lines == self.lines:
            return known
        commit = self.by_commit.get(self.history.head or "")
        if commit is not None and head is not None and head.commit is not None and not self._is_on(head, commit):
            # Another commit was checked out since.
            self._shelve(head)
            head = None
        sources = [source for source in (head, commit) if source is not None]
        sources.sort(key=lambda source: source.at or _NEVER, reverse=True)
        told = [] if commit is None else self._from_shelf(commit, self.lines, head)
        return self._tell(
            told, self.lines, lambda: self._explain(self.lines, sources[:1], sources[1:] + self.shelf, at=None)
        )

    def _is_on(self, head: MarkedText, commit: MarkedText) -> bool:
        """Return whether a text is based on a commit; several commits may have the same text."""
        base = self.by_commit.get(head.commit or "")
        return head.commit == commit.commit or (base is not None and base.lines == commit.lines)

    def _head(self, *paths: str) -> MarkedText | None:
        """Return the latest text under one of these names, or under any name of the file."""
        for path in paths:
            if path in self.heads:
                return self.heads[path]
        return max(self.heads.values(), key=lambda head: head.at or _NEVER, default=None)

    def _change(self, change: FileChange) -> None:
        if change.certainty is not Certainty.CERTAIN:
            self._arrive(change)
            return
        text = self._text_before(change)
        exact = text is not None and (change.is_creation or (text.digest is not None and text.digest == change.before))
        splices = self._splices(change, text)
        mark = self._author(change)
        placed = None if splices is None or text is None else place_splices(change, splices, text.lines, exact=exact)
        if placed is None and change.before is None and (elsewhere := self._where_it_fits(change)) is not None:
            self._shelve(text)
            self._leave(text, elsewhere.lines)
            text = elsewhere
            placed = None if splices is None else place_splices(change, splices, text.lines, exact=False)
        if text is None or splices is None or placed is None:
            self._give_up(change, text, mark)
            return
        since = _NEVER if change.is_creation else text.at
        self._write(change, text, placed, mark)
        # If the change was placed by its looks, the rest of the text may differ, so the digest is not certain.
        text.digest = change.after if exact or _is_text(text.lines, change.after) else None
        if text.digest is not None:
            self._written.add(text.digest)
        self._put(change, text, since, sure=True)

    def _put(self, change: FileChange, text: MarkedText, since: datetime | None, *, sure: bool) -> None:
        """Make a text the latest one under its name."""
        if change.renamed_from is not None and change.renamed_from != change.path:
            self.heads.pop(change.renamed_from, None)
        self.heads[change.path] = text
        if text.digest is not None or not sure:
            self._settle(text, since, sure=sure)
        if text.digest in self._wanted:
            self._keep(text)

    def _settle(self, text: MarkedText, since: datetime | None, *, sure: bool) -> None:
        """Let a change explain a commit that seems older: a call that writes and commits ends after both.

        If `sure`, the change overrides the evidence of the commit's parents.
        """
        for commit, known in self.by_commit.items():
            is_same = known.digest == text.digest and known.lines == text.lines
            if is_same and since is not None and known.at is not None and known.at > since:
                pairs = zip(text.marks, known.marks, strict=True)
                text.marks[:] = [
                    mine if mine.authors and (sure or not theirs.authors) else theirs for mine, theirs in pairs
                ]
                settled = text.copy()
                settled.commit, settled.at = known.commit, known.at
                self.by_commit[commit] = settled
                self.by_digest.pop(text.digest or known.digest or Digest(""), None)

    def _where_it_fits(self, change: FileChange) -> MarkedText | None:
        """Return the latest commit in which all hunks of a change fit; None if there is none.

        Transcripts do not record that somebody checked out another branch.
        """
        if change.is_creation or not change.hunks:
            return None
        fits = (text for text in self.by_commit.values() if is_there(change.hunks, text.lines))
        latest = max(fits, key=lambda text: text.at or _NEVER, default=None)
        return None if latest is None else latest.copy()

    def _arrive(self, change: FileChange) -> None:
        """Process a change without a certain author: git brought it, or it came while a call ran.

        Known lines keep their authors, whether from a commit, from shelved work, or moved. For the other lines the call
        is a candidate if it may have written them; not for lines that git brought.
        """
        head = self._head(change.path)
        if head is not None and head.digest == change.after and change.after in self._written:
            return  # another call was told to write exactly this at the same time
        is_brought = change.certainty is Certainty.BROUGHT
        since = None if head is None else head.at
        suspects = () if is_brought else self._author(change).authors
        text = self._text_before(change)
        exact = text is not None and (change.is_creation or (text.digest is not None and text.digest == change.before))
        splices = self._splices(change, text)
        if text is None or splices is None or not exact:
            if not is_brought:
                self._give_up(change, text, LineMark(suspects, is_open=True, since=since))
            return
        lines = list(text.lines)
        for splice in reversed(splices):
            lines[splice.index : splice.index + len(splice.removed)] = splice.added
        source_at = _NEVER if change.is_creation else text.at
        found = self._find_arrived(change, text, lines)
        found.marks = [_suspected(mark, suspects, since) if mark.since == _MEANWHILE else mark for mark in found.marks]
        found.digest, found.at = change.after, change.at
        self._put(change, found, source_at, sure=False)

    def _find_arrived(self, change: FileChange, text: MarkedText, lines: Sequence[str]) -> MarkedText:
        """Return lines with their known authors; all others are marked as `_MEANWHILE`."""
        known = None if change.after is None else self.by_digest.get(change.after)
        if known is not None and known.lines == lines:
            self._shelve(text)
            self._leave(text, lines)
            return known.copy()
        # Treated like an unrecorded edit since `_MEANWHILE`: lines with that time came during this call.
        source = MarkedText(text.lines, text.marks, text.digest, _MEANWHILE, text.commit)
        revision = None if change.after is None else self._made.get(change.after)
        parents = [] if revision is None else self._parents(revision)
        told = list(self._from_shelf(text, lines, None))
        sources = [source]
        if revision is not None and parents:
            told += self._repeated(revision, lines, parents, None)
            sources = [source, *parents, *self._forgotten(revision)]
        return self._tell(told, lines, lambda: self._explain(lines, sources, self.shelf, at=change.at))

    def _author(self, change: FileChange) -> LineMark:
        others = (Author(call, self._runs.get(call)) for call in change.overlapping)
        return LineMark(tuple(dict.fromkeys((Author(change.call, change.run), *others))))

    def _text_before(self, change: FileChange) -> MarkedText | None:
        """Return the text that a change began with, to be edited in place; None if it is unknown."""
        source = change.renamed_from or change.path
        head = self._head(source, change.path)
        if change.is_creation:
            self._leave(head, ())
            return MarkedText([], [], None, change.at, head.commit if head else None)
        if change.before is None:
            return head
        if head is not None and head.digest == change.before:
            return head
        known = self.by_digest.get(change.before)
        if known is not None:
            self._shelve(head)
            self._leave(head, known.lines)
            return known.copy()
        lines = self.recovery.lines_of(change.before)
        if lines is None:
            return head
        text = self._explain(lines, [head] if head else [], [], at=change.at)
        text.digest = change.before
        if change.before in self._wanted:
            self._keep(text)
        return text

    def _splices(self, change: FileChange, text: MarkedText | None) -> list[Splice] | None:
        if change.hunks is not None:
            return splices_of(change.hunks)
        if change.is_deletion and text is not None:
            return [Splice(0, tuple(text.lines), ())]
        after = self.recovery.lines_of(change.after) if change.after else None
        if after is None or text is None or (change.before is not None and text.digest != change.before):
            return None
        return splices_of(hunks_between(text.lines, after))

    def _write(self, change: FileChange, text: MarkedText, splices: Sequence[Splice], mark: LineMark) -> None:
        """Apply a change to a text in place."""
        text.at = change.at
        if not splices or self._reformat(change, text, splices):
            return
        _doubt_twins(text, splices)
        removed = [text.marks[splice.index : splice.index + len(splice.removed)] for splice in splices]
        written = Written(splices, removed, mark)
        written.settle(change.call)
        for splice, marks in zip(reversed(splices), reversed(written.added), strict=True):
            end = splice.index + len(splice.removed)
            if splice.removed:
                self._remember(text, splice.index, end)
            text.lines[splice.index : end] = splice.added
            text.marks[splice.index : end] = marks

    def _reformat(self, change: FileChange, text: MarkedText, splices: Sequence[Splice]) -> bool:
        """Apply a change that only changes white space within lines; return whether it was one."""
        lines = text.lines.copy()
        for splice in reversed(splices):
            lines[splice.index : splice.index + len(splice.removed)] = splice.added
        if not is_reformatted(text.lines, lines):
            return False
        for index, (was, now) in enumerate(zip(text.lines, lines, strict=True)):
            if was != now:
                text.marks[index] = reformatted(text.marks[index], change.call)
        text.lines[:] = lines
        return True

    def _remember(self, text: MarkedText, start: int, end: int) -> None:
        """Put removed lines into the attic, with their neighbours."""
        above, below = max(start - _CONTEXT, 0), min(end + _CONTEXT, len(text.lines))
        marks: list[LineMark | None] = [None] * (start - above)
        marks += text.marks[start:end]
        marks += [None] * (below - end)
        fragment = Fragment(text.lines[above:below], marks, held_by=2)
        self.attic.put(fragment, range(start - above, end - above))

    def _give_up(self, change: FileChange, text: MarkedText | None, mark: LineMark) -> None:
        """Keep the text of a change that cannot be placed: its lines are recognised when they appear again."""
        hunks = change.hunks or ()
        parts = [splices_of([hunk]) for hunk in hunks]
        splices = [splice for part in parts for splice in part]
        # The authors of lines that it moved or reformatted are unknown, but it did not write those.
        written = Written(splices, [[_SOMEBODYS] * len(splice.removed) for splice in splices], mark)
        written.settle(change.call)
        marks = iter(written.added)
        for hunk, part in zip(hunks, parts, strict=True):
            own: list[LineMark | None] = [None] * hunk.old_count
            for splice, added in reversed([(splice, next(marks)) for splice in part]):
                start = splice.index - hunk.old_index
                own[start : start + len(splice.removed)] = (one if one is mark else None for one in added)
            # Without commits nobody sees it arrive, and a line or two may have been typed again since.
            unseen = not self.history.revisions
            is_small = sum(weight(line) is Weight.STRONG for line in hunk.added) < _MANY
            fragment = Fragment(hunk.added, own, held_by=int(unseen), is_seen=unseen and is_small)
            self.attic.put(fragment, range(len(own)))
        if text is not None:
            text.digest = None
            if hunks and change.path in self.heads:
                text.at = change.at

    def _revise(self, revision: Revision) -> None:
        lines = self.history.lines.get(revision.digest)
        if lines is None:
            return
        head = self._head(revision.path)
        if head is not None and head.lines == lines:
            text = head
        elif (known := self.by_digest.get(revision.digest)) is not None and known.lines == lines:
            self._leave(head, lines)
            text = known.copy()
        else:
            text = self._explain_revision(revision, lines, head)
        if text is not head:
            self._shelve(head)
        if text is head or revision.commit in self._awaited or self._is_taken_for_present(revision):
            self.heads[revision.path] = text
        text.digest, text.commit = revision.digest, revision.commit
        text.at = max(filter(None, (text.at, revision.at)))
        self._keep(text)
        self.by_commit[revision.commit] = text.copy()

    def _is_taken_for_present(self, revision: Revision) -> bool:
        """Return whether a commit was in the work tree when it was made.

        Git's log of the head tells. Before the log begins, commits that lead to the present file count.
        """
        log = self.history.checkouts
        return not revision.aside and (not log or revision.at < log[0].at)

    def _explain_revision(self, revision: Revision, lines: Sequence[str], head: MarkedText | None) -> MarkedText:
        parents = self._parents(revision)
        told = self._repeated(revision, lines, parents, head)
        return self._tell(told, lines, lambda: self._explain_by_text(revision, lines, parents, head))

    def _parents(self, revision: Revision) -> list[MarkedText]:
        return [self.by_commit[parent] for parent in revision.parents if parent in self.by_commit]

    def _tell(self, told: Iterable[Merge], lines: Sequence[str], otherwise: Callable[[], MarkedText]) -> MarkedText:
        """Return the marks of the first merge that surely led to these lines; without one, those of `otherwise`."""
        maybe: MarkedText | None = None
        for one in told:
            text = one.explain(lines)
            if text is not None and (one.is_said or one.speaks):
                return text
            maybe = maybe or text
        text = otherwise()
        if maybe is not None:
            # The same change was made elsewhere, but it is so small that somebody may have made it twice.
            text.marks = [
                joined((mark, other)) if mark.is_open and other.authors else mark
                for mark, other in zip(text.marks, maybe.marks, strict=True)
            ]
        return text

    def _repeated(
        self, revision: Revision, lines: Sequence[str], parents: Sequence[MarkedText], head: MarkedText | None
    ) -> Iterator[Merge]:
        """Yield merges that may explain a commit, most certain first: of its parents, or of commits that it repeats."""
        if not parents:
            return
        onto = parents[0]
        if len(revision.parents) > 1 and len(parents) > 1:
            base = self.by_commit.get(self.rewrites.base_of(*revision.parents[:2]) or "")
            if base is not None:
                yield Merge(base, onto, parents[1], is_said=True)
        yield from self._from_shelf(onto, lines, head)
        come = Arrival(onto.lines, lines)
        for repeated in self.rewrites.of(revision):
            base, tip = self.by_commit.get(repeated.base), self.by_commit.get(repeated.tip)
            if base is not None and tip is not None and come.may_be_of(tip, is_said=repeated.is_said):
                yield Merge(base, onto, tip, is_said=repeated.is_said)

    def _shelve(self, head: MarkedText | None) -> None:
        """Keep uncommitted work: a stash or a checkout may bring it back on top of another text."""
        base = None if head is None else self.by_commit.get(head.commit or "")
        if head is not None and base is not None and base.lines != head.lines:
            self.shelf = [head.copy(), *self.shelf][:_SHELVED]

    def _from_shelf(self, onto: MarkedText, lines: Sequence[str], head: MarkedText | None) -> Iterator[Merge]:
        """Yield merges of shelved work with the present text."""
        come = Arrival(onto.lines, lines)
        for tip in self.shelf if head is None else (head, *self.shelf):
            base = self.by_commit.get(tip.commit or "")
            if base is not None and base.commit != onto.commit and come.may_be_of(tip, is_said=False):
                yield Merge(base, onto, tip, is_said=False)

    def _forgotten(self, revision: Revision) -> list[MarkedText]:
        """Return the commit that a commit rewrites, if git's traces say so: it was changed on the way."""
        said = self.rewrites.said(revision)
        others = (one for one in said if not self.rewrites.leads_to(one.tip, revision.commit))
        return [self.by_commit[one.tip] for one in others if one.tip in self.by_commit][:1]

    def _explain_by_text(
        self, revision: Revision, lines: Sequence[str], parents: Sequence[MarkedText], head: MarkedText | None
    ) -> MarkedText:
        sources, others = [*parents, *self._forgotten(revision)], [head] if head else []
        base = next((parent for parent in parents if head is not None and self._is_on(head, parent)), None)
        if head is not None and base is None and not parents:
            sources, others = [head], []
        elif head is not None and base is not None:
            # The work continued from this commit, here or on another branch.
            nearest = _nearest(head, base, lines)
            sources = [*nearest, *(source for source in sources if source is not base)]
            others = [] if head in nearest else [head]
        return self._explain(lines, sources, others, at=revision.at, runs=revision.runs)

    def _explain(
        self,
        lines: Sequence[str],
        sources: Sequence[MarkedText],
        others: Sequence[MarkedText],
        *,
        at: datetime | None,
        runs: Sequence[str] = (),
    ) -> MarkedText:
        """Return the marks of an unrecorded text: lines that certainly stayed, and lines that are recognised.

        All other lines are new and have no recorded author.
        """
        times = [source.at for source in sources if source.at is not None]
        since = max(times) if times else None
        carried = [carry_over(source.lines, source.marks, lines, since) for source in sources]
        whole = _merged(carried, len(lines))
        fresh = [index for index in whole.open_lines() if whole.marks[index] is None] if runs else []
        for source in (*sources, *others):
            self._leave(source, lines)
        texts = [Fragment(other.lines, other.marks) for other in others]
        # A diff shows a moved line as removed and added, so the sources are searched as well.
        texts += (
            Fragment(source.lines, source.marks, used=one.used) for source, one in zip(sources, carried, strict=True)
        )
        Search(lines, whole, self.attic, texts=texts, since=since).run()
        new = unexplained(since)
        marks = [new if mark is None else mark for mark in whole.marks]
        for index in fresh:
            marks[index] = _named(marks[index], runs)
        return MarkedText(list(lines), marks, None, at, sources[0].commit if sources else None)

    def _leave(self, head: MarkedText | None, lines: Sequence[str]) -> None:
        if head is not None:
            fragment = Fragment(list(head.lines), list(head.marks), held_by=1)
            self.attic.put_missing(fragment, lines)

    def _keep(self, text: MarkedText) -> None:
        """Keep the marks of a text, because a later change may begin with it."""
        if text.digest is None:
            return
        known = self.by_digest.get(text.digest)
        kept = text.copy()
        if known is not None and known.lines == kept.lines and known.marks != kept.marks:
            # Two paths led to the same text, and a later change does not say which one it continues.
            kept.marks = [joined(pair) for pair in zip(kept.marks, known.marks, strict=True)]
        self.by_digest[text.digest] = kept


def _merged(carried: Sequence[UntouchedMarks], size: int) -> UntouchedMarks:
    """Return the combined marks of several sources; a certain source overrides uncertain ones."""
    if len(carried) == 1:
        return carried[0]
    whole = UntouchedMarks([None] * size, bytearray(size))
    for index in range(size):
        sure = [one.marks[index] for one in carried if one.sure[index]]
        marks = [mark for mark in (sure or [one.marks[index] for one in carried]) if mark is not None]
        if marks:
            whole.marks[index] = joined(marks)
            whole.sure[index] = bool(sure)
    return whole


def _nearest(one: MarkedText, other: MarkedText, lines: Sequence[str]) -> list[MarkedText]:
    """Return the text that these lines were made from, judged by lines that only one has; both if unclear."""
    here, left, right = set(lines), set(one.lines), set(other.lines)
    ours = sum((line in here) == (line in left) for line in left ^ right if weight(line) is Weight.STRONG)
    theirs = sum((line in here) == (line in right) for line in left ^ right if weight(line) is Weight.STRONG)
    if left == right or ours > theirs:
        return [one]
    return [other] if ours < theirs else [one, other]


def _suspected(mark: LineMark, suspects: Sequence[Author], since: datetime | None) -> LineMark:
    """Return the mark of a line that came while calls ran: they or an unrecorded author may have written it."""
    authors = tuple(dict.fromkeys((*mark.authors, *suspects)))
    return LineMark(authors, is_open=True, since=since, is_matched=mark.is_matched, reformatted_by=mark.reformatted_by)


def _is_text(lines: Sequence[str], digest: Digest | None) -> bool:
    return (
        digest is not None
        and digest_of("".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape")) == digest
    )


def _doubt_twins(text: MarkedText, splices: Sequence[Splice]) -> None:
    """Join the marks of equal blocks where a diff says that one moved past another."""
    gone = {line for splice in splices for line in splice.removed if weight(line) is Weight.STRONG}
    moved = gone.intersection(line for splice in splices for line in splice.added)
    if not moved:
        return
    # Only lines between the first and the last splice can have been mistaken for moved ones.
    places = defaultdict(list)
    for index in range(splices[0].index, splices[-1].index + len(splices[-1].removed)):
        if text.lines[index] in moved:
            places[text.lines[index]].append(index)
    seen: set[tuple[int, int]] = set()
    for first, *others in places.values():
        for other in others[:_TWINS]:
            for one, twin in _alike(text.lines, first, other, seen):
                text.marks[one] = text.marks[twin] = joined((text.marks[one], text.marks[twin]))


def _alike(lines: Sequence[str], one: int, other: int, seen: set[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield the pairs of equal lines around two positions, each once."""
    for start, way in ((-1, -1), (0, 1)):
        at, twin = one + start, other + start
        while at >= 0 and twin < len(lines) and lines[at] == lines[twin] and (at, twin) not in seen:
            seen.add((at, twin))
            yield at, twin
            at, twin = at + way, twin + way


def _named(mark: LineMark, runs: Sequence[str]) -> LineMark:
    """Return the mark with only the candidates that the commit's trailers name, if any."""
    authors = tuple(author for author in mark.authors if author.run in runs)
    return LineMark(authors, mark.is_open, mark.since, mark.is_matched, mark.reformatted_by) if authors else mark


def follow(
    changes: Iterable[FileChange],
    history: History,
    path: str,
    lines: Sequence[str],
    digest: Digest | None,
) -> MarkedText:
    """Return the present text with its marks."""
    ordered = sorted(changes, key=lambda change: change.at)
    follower = Follower(ordered, history, path, lines, digest)
    follower.follow()
    return follower.finish()
