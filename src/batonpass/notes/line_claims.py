"""Which recorded calls notes claim for the lines of a file, in a clone that may have none of the original commits.

A line is looked up by the commit that git blames for it, then by what that commit contains. A squash or a rebase on a
server, a cherry-pick, a file checked out from another branch and a shallow clone all leave commits that have no note of
their own. Where such a commit has a file that some note describes byte by byte, the records lead back from blob to blob
and no doubt is left. Otherwise lines are recognised by their text and their neighbours, in notes of commits that do not
lead here. Weak evidence gives candidates: a brace between two lines may be anybody's.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from batonpass.attribution.changes.change import lines_of
from batonpass.attribution.changes.mark import Weight, is_anybodys, weight
from batonpass.attribution.changes.sides import printable
from batonpass.attribution.git.file_git import line_origin
from batonpass.attribution.git.git_history import CommittedLine
from batonpass.errors import InvalidValueError
from batonpass.model.base.ids import PublicKey
from batonpass.notes.line_prints import prints_of
from batonpass.notes.line_slides import twins
from batonpass.notes.note_record import NotedCall, NotedRun, NoteRecord, read_record
from batonpass.notes.note_store import NoteKind, NoteRepository
from batonpass.notes.trusted_keys import EnrolledKeys, KeyVerdict, TrustedKeys, judge_key, read_enrolment
from batonpass.wire.canonical import encode_typed

MOST_POINTERS: Final = 4_096  # commits of one file whose notes are read because they may have been repeated
_MOST_STEPS: Final = 4_096  # from blob to blob
_MOST_OVERRIDES: Final = 64  # commits of one file that know better than git which of two equal lines is new
_MOST_NAMES: Final = 8  # of one file, where git does not know that it was renamed
_MOST_FILES: Final = 32  # of a commit that are compared with another's
_MOST_RECORDS: Final = 20_000  # signatures that are checked for one answer
_MOST_STRANGE: Final = 1_024  # records of one file by keys for which nobody vouches
_MOST_LIKE_IT: Final = 64  # lines of records that look like one line: more of them tell nothing
_MOST_PRINTED: Final = 200_000  # lines of records that are looked at for likeness


class LineClaim(Struct, frozen=True, kw_only=True):
    """What one record says: this call wrote the line."""

    run: NotedRun
    call: NotedCall
    record: NoteRecord
    verdict: KeyVerdict
    commit: str  # that the record was written about
    matched: bool  # the line was recognised by its text and its neighbours
    doubtful: bool = False  # it may have
    or_nobody: bool = False  # or somebody who is not recorded

    @property
    def key(self) -> tuple[str, str]:
        """Return the call, for whoever has several claims of it."""
        return self.run.run, self.call.call


class ClaimedLine(Struct, frozen=True, kw_only=True):
    """All that notes say about one line: one call for certain, or candidates."""

    claims: tuple[LineClaim, ...]
    or_nobody: bool = False
    reformatted: bool = False  # somebody changed its white space since

    @property
    def is_certain(self) -> bool:
        """Return whether one call wrote it, and nothing says otherwise."""
        return len({claim.key for claim in self.claims}) == 1 and not self.claims[0].doubtful and not self.or_nobody


class FileClaims(Struct, frozen=True, kw_only=True):
    """The claims about lines of a file, by number, and remarks on notes that were left out."""

    lines: Mapping[int, ClaimedLine]
    records: int  # how many records speak of the file
    remarks: tuple[str, ...] = ()


class _Found(Struct, frozen=True):
    """A record, and the commit whose note it is in."""

    commit: str
    record: NoteRecord
    leads_here: bool = False  # it is in the history of the commit that is asked about


class _Asked(Struct, frozen=True, kw_only=True):
    """Lines of a file, where git says that they came from, and which commits have records about the file."""

    origins: Mapping[int, CommittedLine]
    at: str
    texts: Sequence[str]
    blobs: Mapping[tuple[str, str], str]
    pointers: Mapping[str, bool]


class _Later:
    """Records that are found only if somebody asks for them, and once."""

    def __init__(self, find: Callable[[], list[_Found]]) -> None:
        self._find = find
        self.known: list[_Found] | None = None

    def __call__(self) -> list[_Found]:
        if self.known is None:
            self.known = self._find()
        return self.known


class ClaimReader:
    """Reads the notes of one repository for one answer; what they share is read once."""

    def __init__(self, repository: NoteRepository, trusted: TrustedKeys) -> None:
        self.repository = repository
        self.trusted = trusted
        self._records: dict[str, NoteRecord | None] = {}
        self._enrolments: dict[PublicKey, EnrolledKeys] = {}
        self._refused = 0
        self._too_large = 0

    def read(
        self,
        names: Sequence[str],
        origins: Mapping[int, CommittedLine],
        at: str,
        *,
        texts: Sequence[str],
        by_words: Callable[[Collection[int]], Mapping[int, CommittedLine]],
    ) -> FileClaims:
        """Return what is claimed about lines, given where git says that they came from. Raises `GitSilentError`.

        Lines are asked for together, because equal lines beside each other may have been taken for one another. `texts`
        is the file. `by_words` says where the words of lines came from, whoever changed their white space since.
        """
        self._refused = self._too_large = 0
        found = self._read(names, origins, at, texts)
        left = [number for number in origins if number not in found.lines]
        alive = {_key(origin) for origin in origins.values()}
        words = by_words(left) if left else {}
        times = Counter(_key(origin) for number, origin in words.items() if number in origins)
        # A line whose original is still there is a copy, and belongs to whoever copied it.
        moved = {
            number: origin
            for number, origin in words.items()
            if number in left and _key(origin) not in alive and times[_key(origin)] == 1
        }
        if moved:
            more = self._read(names, moved, at, texts)
            lines = {number: replace(line, reformatted=True) for number, line in more.lines.items()}
            found = replace(found, lines={**found.lines, **lines}, records=max(found.records, more.records))
        remarks = []
        if self._refused:
            remarks.append(f"{self._refused} records in notes were refused: not signed as they say, or not readable")
        if self._too_large:
            remarks.append(f"{self._too_large} notes were left out: they are too large")
        return replace(found, remarks=(*self.trusted.problems, *remarks))

    def _read(
        self, names: Sequence[str], origins: Mapping[int, CommittedLine], at: str, texts: Sequence[str]
    ) -> FileClaims:
        spelled = {printable(name) for name in (*names, *(origin.path for origin in origins.values()))}
        places = dict.fromkeys((origin.commit.id, origin.path) for origin in origins.values())
        blobs = self.repository.blobs(places)
        direct = self._of_commits({commit for commit, _ in places}, spelled)
        asked = _Asked(origins=origins, at=at, texts=texts, blobs=blobs, pointers=self._pointers(spelled))
        aside = _Later(lambda: self._aside(asked.pointers, spelled, set(direct), at))
        told = self._told(asked, _by_trust(direct, self._counts), _Later(lambda: list(filter(self._counts, aside()))))
        # Strangers are heard where nobody says anything whom the reader trusts, so they can take nothing away.
        open_lines = {number: origin for number, origin in origins.items() if number not in told}
        strange = _by_trust(direct, self._is_strange)
        if open_lines and (strange or any(map(self._is_strange, aside()))):
            heard = _Later(lambda: list(filter(self._is_strange, aside()))[:_MOST_STRANGE])
            told = {**self._told(replace(asked, origins=open_lines), strange, heard), **told}
        count = len({id(one.record) for found in (*direct.values(), aside.known or []) for one in found})
        return FileClaims(lines=told, records=count)

    def _told(self, asked: _Asked, direct: Mapping[str, Sequence[_Found]], aside: _Later) -> dict[int, ClaimedLine]:
        """Return what these records say about lines."""
        told: dict[int, list[LineClaim]] = {}
        for number, origin in asked.origins.items():
            place = origin.commit.id, origin.path
            own = [one for one in direct.get(place[0], ()) if one.record.blob == asked.blobs.get(place)]
            told[number] = list(self._claims(own, origin.line, matched=False))
        # Most often every line has its note. Only then is it worth asking which commits lead here.
        if any(asked.pointers.values()) or not all(told.values()):
            overrides = self._overrides(asked, direct, aside())
            better = {
                number: overrides[_key(origin)] for number, origin in asked.origins.items() if _key(origin) in overrides
            }
            told |= better
            missing = {number: asked.origins[number] for number in told if not told[number] and number not in better}
            repeats = _Repeats(self, aside(), direct, asked.blobs)
            told |= repeats.find(missing)
            _settle_twins(told, better, asked.origins, asked.texts, repeats)
        return {number: joined for number, claims in told.items() if (joined := _joined(claims)) is not None}

    def _counts(self, found: _Found) -> bool:
        return self.verdict(found.record).counts

    def _is_strange(self, found: _Found) -> bool:
        return not self.verdict(found.record).counts

    def files_in(self, commit: str, others: Collection[str]) -> set[str]:
        """Return those commits of which a commit has a file as their note describes it, which its parent has not."""
        notes = self.repository.read_notes(NoteKind.LINES, others)
        records: dict[str, list[NoteRecord]] = {}
        for other, lines in notes.lines.items():
            found = (self._read_any(line) for line in lines[:_MOST_FILES])
            records[other] = [one for one in found if one is not None and self.verdict(one).counts]
        parent = self.repository.parent_of(commit)
        paths = {record.path for found in records.values() for record in found}
        blobs = self.repository.blobs((where, path) for where in (commit, parent) for path in paths)
        return {
            other
            for other, found in records.items()
            for record in found
            if blobs.get((commit, record.path)) == record.blob != blobs.get((parent, record.path))
        }

    def verdict(self, record: NoteRecord) -> KeyVerdict:
        """Return whether the word of the record's key counts."""
        if record.key not in self._enrolments:
            like = self.repository.object_format()
            lines = self.repository.read_notes(NoteKind.PROOFS, [proof_key(self.repository, record.key, like)])
            every = [line for found in lines.lines.values() for line in found]
            roots = [one.key for one in self.trusted.relays]
            self._enrolments[record.key] = read_enrolment(every, roots)
        return judge_key(self.trusted, record.key, record.at, self._enrolments[record.key])

    def enrolment(self, key: PublicKey) -> EnrolledKeys:
        """Return what trusted root keys say about the relays of the ledger that this key writes to."""
        return self._enrolments.get(key, EnrolledKeys())

    def _of_commits(self, commits: Iterable[str], paths: set[str]) -> dict[str, list[_Found]]:
        notes = self.repository.read_notes(NoteKind.LINES, commits)
        self._too_large += notes.too_large
        found: dict[str, list[_Found]] = {}
        for commit, lines in notes.lines.items():
            records = (self._record(line, paths) for line in lines)
            found[commit] = [_Found(commit, one) for one in records if one is not None and one.path in paths]
        return {commit: records for commit, records in found.items() if records}

    def _record(self, line: str, paths: set[str]) -> NoteRecord | None:
        # A commit may have a thousand files. Only what names this one is worth a signature check.
        return self._read_any(line) if any(spelled in line for spelled in map(_in_json, paths)) else None

    def _read_any(self, line: str) -> NoteRecord | None:
        if line not in self._records:
            if len(self._records) >= _MOST_RECORDS:
                return None
            try:
                self._records[line] = read_record(line)
            except InvalidValueError:
                self._records[line] = None
                self._refused += 1
        return self._records[line]

    def _pointers(self, names: set[str]) -> dict[str, bool]:
        """Return the commits with records about a file, the latest first, and whether one knows better than git."""
        like = self.repository.object_format()
        notes = self.repository.read_notes(NoteKind.LINES, [path_key(self.repository, name, like) for name in names])
        lines = sorted({line for lines in notes.lines.values() for line in lines}, reverse=True)
        found: dict[str, bool] = {}
        for line in lines[:MOST_POINTERS]:
            if (pointed := _pointed(line, like)) is not None:
                found[pointed[0]] = found.get(pointed[0], False) or pointed[1]
        return found

    def _overrides(
        self, asked: _Asked, direct: Mapping[str, Sequence[_Found]], aside: Sequence[_Found]
    ) -> dict[tuple[str, str, int], list[LineClaim]]:
        """Return by origin the claims about lines that git takes for older ones; nothing is an answer as well."""
        origins, at, blobs = asked.origins, asked.at, asked.blobs
        marked = [commit for commit, knows in asked.pointers.items() if knows]
        if not marked:
            return {}
        wanted = {(origin.commit.id, origin.path, origin.line) for origin in origins.values()}
        aside = [one for one in aside if not one.leads_here]
        gone = {one.commit for one in aside}
        here = [commit for commit in marked if commit not in gone][:_MOST_OVERRIDES]
        away = self.repository.not_leading_to(here, at) if here else set()
        paths = {origin.path for origin in origins.values()}
        more = self._of_commits(
            [one for one in here if one not in direct and one not in away], set(map(printable, paths))
        )
        told = [(one.commit, one) for commit in here for one in (*direct.get(commit, ()), *more.get(commit, ()))]
        # A commit that repeats another byte by byte has its equal lines where that has them.
        told += [(commit, one) for one in aside for (commit, _), blob in blobs.items() if blob == one.record.blob]
        found: dict[tuple[str, str, int], list[LineClaim]] = {}
        for commit, one in reversed(told[: 2 * _MOST_OVERRIDES]):  # the latest has the last word
            # Whom nobody trusts does not choose what is looked up.
            if not self._counts(one) or not (lines := one.record.overridden):
                continue
            before = self.repository.origins(commit, one.record.path, [(min(lines), max(lines))])
            for line in (line for line in lines if line in before):
                origin = line_origin(before[line], one.record.path)
                key = origin.commit.id, origin.path, origin.line
                if key in wanted:
                    found[key] = list(self._claims([one], line, matched=False))
        return found

    def _aside(self, pointers: Iterable[str], names: set[str], known: set[str], at: str) -> list[_Found]:
        """Return the records about a file from commits that do not lead here, the latest commits first.

        If such a commit renamed the file, git may not know the earlier name. Then all records about that name come
        last, because the way from blob to blob may end in the history of the commit that is asked about.
        """
        wanted = [commit for commit in pointers if commit not in known]
        away = self.repository.not_leading_to(wanted, at) if wanted else set()
        found = self._of_commits([commit for commit in wanted if commit in away], names)
        aside = [one for commit in wanted for one in found.get(commit, ())]
        earlier, every = self._earlier(aside, names), set(names)
        while earlier and len(every) < _MOST_NAMES:
            every |= earlier
            commits = list(self._pointers(earlier))
            away = self.repository.not_leading_to(commits, at) if commits else set()
            found = self._of_commits(commits, earlier)
            more = [
                replace(one, leads_here=one.commit not in away) for commit in commits for one in found.get(commit, ())
            ]
            aside += more
            earlier = self._earlier(more, every)
        return aside

    def _earlier(self, found: Iterable[_Found], names: Collection[str]) -> set[str]:
        """Return names that trusted records say a file had before, and that are not known yet."""
        told = {one.record.renamed for one in found if one.record.renamed is not None and self._counts(one)}
        return set(islice(told.difference(names), _MOST_NAMES))

    def _claims(self, found: Iterable[_Found], line: int, *, matched: bool) -> Iterator[LineClaim]:
        for one in found:
            verdict = None
            for run, call in one.record.claims(line):
                verdict = verdict or self.verdict(one.record)
                known = matched or call.matched
                yield LineClaim(
                    run=run, call=call, record=one.record, verdict=verdict, commit=one.commit, matched=known
                )
            for perhaps, calls in one.record.doubts(line):
                verdict = verdict or self.verdict(one.record)
                for run, call in calls:
                    yield LineClaim(
                        run=run,
                        call=call,
                        record=one.record,
                        verdict=verdict,
                        commit=one.commit,
                        matched=True,
                        doubtful=True,
                        or_nobody=perhaps.nobody,
                    )


class _Match(Struct, frozen=True):
    """A line of a record that a line of a commit resembles: how many neighbours are the same."""

    found: _Found
    line: int
    neighbours: int

    @property
    def key(self) -> tuple[int, int]:
        return id(self.found.record), self.line


class _Repeats:
    """Finds the claims about lines of commits that repeat others."""

    def __init__(
        self,
        reader: ClaimReader,
        aside: Sequence[_Found],
        direct: Mapping[str, Sequence[_Found]],
        blobs: Mapping[tuple[str, str], str],
    ) -> None:
        self._reader = reader
        self._direct = direct
        self._blobs = blobs
        self._by_blob: dict[str, list[_Found]] = defaultdict(list)
        self._after: dict[str, list[_Found]] = defaultdict(list)
        self._held: dict[str, set[str]] = {}
        # By print, the lines of records that have it, as `_Match.key` names them.
        self._above: dict[bytes, dict[tuple[int, int], _Found]] = defaultdict(dict)
        self._below: dict[bytes, dict[tuple[int, int], _Found]] = defaultdict(dict)
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
                own = list(self._reader._claims([one], number, matched=False))  # noqa: SLF001 - one module, two classes
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
                for claim in self._reader._claims([one.found], one.line, matched=True)  # noqa: SLF001 - as above
            ]
            if claims:
                yield number, claims if alone else [_doubted(claim) for claim in claims]

    def _contained(self, commit: str, matches: Mapping[int, list[_Match]]) -> set[str]:
        """Return the commits of which a commit has another file byte by byte, and its parent has not."""
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


_BOTH: Final = 2


def _settle_twins(
    told: dict[int, list[LineClaim]],
    settled: Collection[int],
    origins: Mapping[int, CommittedLine],
    texts: Sequence[str],
    repeats: _Repeats,
) -> None:
    """Leave open whose a line is that git may have taken for an equal one beside what a commit brought.

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
                told[older] = [_doubted(claim) for claim in claims]


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


def _by_trust(direct: Mapping[str, Sequence[_Found]], counts: Callable[[_Found], bool]) -> dict[str, list[_Found]]:
    """Return by commit the records that count; commits without one are left out."""
    found = {commit: list(filter(counts, records)) for commit, records in direct.items()}
    return {commit: records for commit, records in found.items() if records}


def _doubted(claim: LineClaim) -> LineClaim:
    return replace(claim, matched=True, doubtful=True, or_nobody=True)


def _key(origin: CommittedLine) -> tuple[str, str, int]:
    return origin.commit.id, origin.path, origin.line


def _joined(claims: Sequence[LineClaim]) -> ClaimedLine | None:
    """Return what counts of the claims about one line: those of trusted keys, else all of them."""
    trusted = [claim for claim in claims if claim.verdict.counts]
    known: dict[tuple[str, str, str], LineClaim] = {}
    for claim in trusted or claims:
        key = (*claim.key, claim.record.key)
        if key not in known or (known[key].doubtful and not claim.doubtful) or known[key].matched > claim.matched:
            known[key] = claim
    if not known:
        return None
    found = tuple(known.values())
    sure = tuple(claim for claim in found if not claim.doubtful)
    if sure:
        return ClaimedLine(claims=sure)
    return ClaimedLine(claims=found, or_nobody=any(claim.or_nobody for claim in found))


def _pointed(line: str, like: str) -> tuple[str, bool] | None:
    _, commit, *flags = (*line.split(" "), "")
    is_one = len(commit) == len(like) and all(letter in "0123456789abcdef" for letter in commit)
    return (commit, "!" in flags) if is_one else None


def _in_json(path: str) -> str:
    return f'"path":{encode_typed(path).decode()}'


def pointer(seconds: int, commit: str) -> str:
    """Return the line that says, in the note of a path, that a commit has a record about it."""
    return f"{max(seconds, 0):010d} {commit}"


def path_key(repository: NoteRepository, path: str, like: str) -> str:
    """Return the key of the note that lists the commits with records about a path."""
    return repository.key(f"path {printable(path)}", like)


def proof_key(repository: NoteRepository, name: str, like: str) -> str:
    """Return the key of the proof of a call, a run or a relay's key."""
    return repository.key(f"proof {name}", like)


def words_key(repository: NoteRepository, run: str, like: str) -> str:
    """Return the key of the words of a run's task."""
    return repository.key(f"words {run}", like)
