"""Lines of commits that repeat others: squashed, rebased, picked or checked out, with no note of their own.

Where a record describes such a file byte by byte, it leads from blob to blob to the call that wrote a line. Otherwise a
line is recognised by its text and its neighbours.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final, Protocol

from msgspec import Struct

from batonpass.attribution.changes.change import lines_of
from batonpass.attribution.changes.mark import Weight, is_anybodys, weight
from batonpass.attribution.git.git_history import CommittedLine
from batonpass.model.base.ids import PublicKey
from batonpass.notes.claimed_line import FoundRecord, LineClaim, claims_in, doubted
from batonpass.notes.line_prints import prints_of
from batonpass.notes.line_slides import twins
from batonpass.notes.note_record import NoteRecord
from batonpass.notes.note_store import NoteRepository
from batonpass.notes.trusted_keys import KeyVerdict

_MOST_STEPS: Final = 4_096  # from blob to blob
_MOST_LIKE_IT: Final = 64  # lines of records that look like one line: more of them tell nothing
_MOST_PRINTED: Final = 200_000  # lines of records that are looked at for likeness
_BOTH: Final = 2  # neighbours


class RecordReader(Protocol):
    """Reads the records of a repository, and knows whose word counts."""

    @property
    def repository(self) -> NoteRepository:
        """Return the repository."""

    def verdict(self, record: NoteRecord) -> KeyVerdict:
        """Return whether the word of the record's key counts."""

    def files_in(self, commit: str, others: Collection[str]) -> set[str]:
        """Return the others from which a commit took a file: as their note describes it, and not in its parent."""


class _Match(Struct, frozen=True):
    """A line of a record that a line of a commit resembles: how many neighbours are the same."""

    found: FoundRecord
    line: int
    neighbours: int

    @property
    def key(self) -> tuple[int, int]:
        return id(self.found.record), self.line


class RepeatedLines:
    """Finds the claims about lines of commits that repeat others."""

    def __init__(
        self,
        reader: RecordReader,
        aside: Sequence[FoundRecord],
        direct: Mapping[str, Sequence[FoundRecord]],
        blobs: Mapping[tuple[str, str], str],
    ) -> None:
        self._reader = reader
        self._direct = direct
        self._blobs = blobs
        self._by_blob: dict[str, list[FoundRecord]] = defaultdict(list)
        self._after: dict[str, list[FoundRecord]] = defaultdict(list)
        self._held: dict[str, set[str]] = {}
        # By print, the lines of records that have it, as `_Match.key` names them.
        self._above: dict[bytes, dict[tuple[int, int], FoundRecord]] = defaultdict(dict)
        self._below: dict[bytes, dict[tuple[int, int], FoundRecord]] = defaultdict(dict)
        room = _MOST_PRINTED
        for one in aside:
            self._by_blob[one.record.blob].append(one)
            if one.record.was is not None:
                self._after[one.record.was].append(one)
            if one.leads_here:
                continue  # git tells which of its lines are still there; by their looks they would be taken for others
            room -= len(one.record.line_prints)
            for line, (above, below) in one.record.line_prints.items() if room >= 0 else ():
                key = id(one.record), line
                self._above[above][key] = self._below[below][key] = one

    def find(self, missing: Mapping[int, CommittedLine]) -> Iterator[tuple[int, list[LineClaim]]]:
        """Yield the lines for which something is claimed, with the claims."""
        groups: dict[tuple[str, str], dict[int, CommittedLine]] = defaultdict(dict)
        for number, origin in missing.items():
            groups[origin.commit.id, origin.path][number] = origin
        for place, group in groups.items():
            blob = self._blobs.get(place)
            if blob is None:
                continue
            # Who wrote a note about this very commit has said there all that it knows.
            heard = {one.record.key for one in self._direct.get(place[0], ())}
            left: dict[int, CommittedLine] = {}
            for number, origin in group.items():
                claims = self._traced(blob, origin.line, heard)
                if claims is None:
                    left[number] = origin
                elif claims:
                    yield number, claims
            if left:
                yield from self._recognised(place[0], blob, left, heard)

    def speakers(self, commit: str, path: str) -> set[PublicKey]:
        """Return the keys that have described a file of a commit: they know which of two equal lines is which."""
        blob = self._blobs.get((commit, path), "")
        found = (*self._direct.get(commit, ()), *self._by_blob.get(blob, ()))
        return {one.record.key for one in found}

    def _traced(self, blob: str, line: int, heard: set[PublicKey]) -> list[LineClaim] | None:
        """Return the claims that records lead to, from blob to blob; None if no record describes this very file."""
        if not any(one.record.key not in heard for one in self._by_blob.get(blob, ())):
            return None
        waiting, seen = [(blob, line)], {(blob, line)}
        claims: list[LineClaim] = []
        broken = False
        while waiting and len(seen) < _MOST_STEPS:
            here, number = waiting.pop()
            records = [one for one in self._by_blob.get(here, ()) if one.record.key not in heard]
            broken = broken or not records
            for one in records:
                own = list(claims_in([one], number, matched=False, judge=self._reader.verdict))
                claims += own
                ends = bool(own) or one.record.was is None or one.record.is_unclaimed(number)
                was = None if ends else one.record.old_line(number)
                if was is not None and (step := (one.record.was or "", was)) not in seen:
                    seen.add(step)
                    waiting.append(step)
        # If the way ends at a file that no record describes, the line may still be recognised by its text.
        return None if broken and not claims else claims

    def _recognised(
        self, commit: str, blob: str, left: Mapping[int, CommittedLine], heard: set[PublicKey]
    ) -> Iterator[tuple[int, list[LineClaim]]]:
        data = next((data for _, data in self._reader.repository.contents([blob])), None)
        if data is None or b"\0" in data:
            return
        lines = lines_of(data.decode("utf-8", "surrogateescape"))
        prints = prints_of(lines)
        repeated = self._reader.repository.commit_print(commit)
        matches = {
            origin.line: self._matches(prints[origin.line - 1], prints[origin.line], heard)
            for origin in left.values()
            if origin.line <= len(lines)
        }
        places: dict[tuple[int, int], set[int]] = defaultdict(set)
        for line, found in matches.items():
            for match in found:
                places[match.key].add(line)
        anchored = self._anchored(
            {
                id(match.found)
                for line, found in matches.items()
                for match in found
                if (len(places[match.key]) == 1 and weight(lines[line - 1]) is Weight.STRONG)
                or match.found.commit in self._contained(commit, matches)
            }
        )
        for number, origin in left.items():
            found = matches.get(origin.line, [])
            strong = [
                one
                for one in found
                if (one.neighbours == _BOTH and id(one.found) in anchored and not is_anybodys(lines[origin.line - 1]))
                or self._is_strong(one, origin.line, lines, matches, repeated)
            ]
            alone = [one for one in strong if len(places[one.key]) == 1]
            chosen = alone or strong or [one for one in found if one.neighbours == _BOTH]
            claims = [
                claim
                for one in chosen
                for claim in claims_in([one.found], one.line, matched=True, judge=self._reader.verdict)
            ]
            if claims:
                yield number, claims if alone else [doubted(claim) for claim in claims]

    def _contained(self, commit: str, matches: Mapping[int, list[_Match]]) -> set[str]:
        """Return the commits from which a commit took a whole file that its parent has not, byte by byte."""
        if commit not in self._held:
            names = {match.found.commit for found in matches.values() for match in found}
            self._held[commit] = self._reader.files_in(commit, names)
        return self._held[commit]

    def _anchored(self, sure: set[int]) -> set[int]:
        """Return the records that a commit repeats: some by a line that is nobody else's, others of the same branch.

        Records belong together if one goes on with the file that the other describes.
        """
        waiting = [one for found in self._by_blob.values() for one in found if id(one) in sure]
        anchored = set(sure)
        while waiting:
            one = waiting.pop()
            before = self._by_blob.get(one.record.was or "", ())
            for other in (*before, *self._after.get(one.record.blob, ())):
                if id(other) not in anchored:
                    anchored.add(id(other))
                    waiting.append(other)
        return anchored

    def _matches(self, above: bytes, below: bytes, heard: set[PublicKey]) -> list[_Match]:
        """Return the lines of records that have these neighbours; if some have both, only those."""
        over, under = self._above.get(above, {}), self._below.get(below, {})
        few = [one for one in (over, under) if len(one) <= _MOST_LIKE_IT]
        every = {key: found for one in few for key, found in one.items()}
        counted = [_Match(found, key[1], (key in over) + (key in under)) for key, found in every.items()]
        counted = [match for match in counted if match.found.record.key not in heard]
        best = max((match.neighbours for match in counted), default=0)
        return [match for match in counted if match.neighbours == best]

    def _is_strong(
        self, match: _Match, line: int, lines: Sequence[str], matches: Mapping[int, list[_Match]], repeated: str
    ) -> bool:
        """Return whether a match is no coincidence: the commit is the same one, or the text is nobody else's."""
        if match.found.record.commit_print and match.found.record.commit_print == repeated:
            return True
        if weight(lines[line - 1]) is Weight.STRONG:
            return True
        if match.neighbours != _BOTH:
            return False
        # A weak line belongs to a strong one if it is next to it here and there, with only such lines in between. Two
        # weak lines with a strong one beside them are no coincidence either.
        row = [line]
        for step in (-1, 1):
            here, there = line + step, match.line + step
            while any(one.found is match.found and one.line == there for one in matches.get(here, ())):
                row.append(here)
                here, there = here + step, there + step
        around = {min(row) - 1, max(row) + 1} & set(range(1, len(lines) + 1))
        said = [number for number in row if not is_anybodys(lines[number - 1])]
        # A brace or a blank line at the end of the row may be the next one's.
        is_inside = min(row) < line < max(row) or not is_anybodys(lines[line - 1])
        return any(weight(lines[number - 1]) is Weight.STRONG for number in row) or (
            is_inside and len(said) >= _BOTH and any(weight(lines[number - 1]) is Weight.STRONG for number in around)
        )


def settle_twins(
    told: dict[int, list[LineClaim]],
    settled: Collection[int],
    origins: Mapping[int, CommittedLine],
    texts: Sequence[str],
    repeats: RepeatedLines,
) -> None:
    """Leave the author of a line open if git may have taken it for an equal line beside the lines of a commit.

    If a record claims the new one of both, or the relay that claims the old one has described that commit, nothing is
    open. If a record claims the old one as a line of that commit, git took them for one another.
    """
    for start, end in _blocks(origins):
        first, last = origins[start + 1], origins[end]
        for older, newer in twins(texts, start, end):
            claims = told.get(older)
            if older in settled or not claims or told.get(newer):
                continue
            if all(claim.record.key in repeats.speakers(last.commit.id, last.path) for claim in claims):
                continue
            line = last.line + older - end if older > end else first.line - (start + 1 - older)
            origin = CommittedLine(commit=last.commit, path=last.path, line=line)
            better = dict(repeats.find({older: origin})).get(older, [])
            if better and not any(claim.doubtful for claim in better):
                told[older], told[newer] = better, claims
            else:
                told[older] = [doubted(claim) for claim in claims]


def _blocks(origins: Mapping[int, CommittedLine]) -> Iterator[tuple[int, int]]:
    """Yield the lines that came together with one commit: how many stand before them, and the last."""
    found: list[tuple[int, int]] = []
    for number in sorted(origins):
        before = origins.get(number - 1)
        if found and before is not None and before.commit.id == origins[number].commit.id:
            found[-1] = found[-1][0], number
        else:
            found.append((number - 1, number))
    return iter(found)
