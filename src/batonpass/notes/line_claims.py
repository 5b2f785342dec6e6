"""Which recorded calls notes claim for the lines of a file, in a clone that may have none of the original commits.

A line is looked up by the commit that git blames for it, then by the content of that commit. A squash or a rebase on a
server, a cherry-pick, a file checked out from another branch and a shallow clone all leave commits that have no note of
their own. Where such a commit has a file that some note describes byte by byte, the records lead back from blob to blob
and no doubt is left. Otherwise lines are recognised by their text and their neighbours, in notes of commits that do not
lead here. Weak evidence gives candidates: a brace between two lines may be anybody's.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import islice
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from batonpass.attribution.changes.sides import printable
from batonpass.attribution.git.file_git import line_origin
from batonpass.attribution.git.git_history import CommittedLine
from batonpass.errors import InvalidValueError
from batonpass.model.base.ids import PublicKey
from batonpass.notes.claimed_line import ClaimedLine, FileClaims, FoundRecord, LineClaim, claims_in, joined
from batonpass.notes.note_keys import path_key, proof_key, read_pointer
from batonpass.notes.note_record import NoteRecord, read_record
from batonpass.notes.note_store import NoteKind, NoteRepository
from batonpass.notes.repeated_lines import RepeatedLines, settle_twins
from batonpass.notes.trusted_keys import EnrolledKeys, KeyVerdict, TrustedKeys, judge_key, read_enrolment
from batonpass.wire.canonical import encode_typed

MOST_POINTERS: Final = 4_096  # commits of one file whose notes are read because they may have been repeated
_MOST_OVERRIDES: Final = 64  # commits of one file that know better than git which of two equal lines is new
_MOST_NAMES: Final = 8  # of one file, where git does not know that it was renamed
_MOST_FILES: Final = 32  # of a commit that are compared with another's
_MOST_RECORDS: Final = 20_000  # signatures that are checked for one answer
_MOST_STRANGE: Final = 1_024  # records of one file by keys for which nobody vouches


class _Asked(Struct, frozen=True, kw_only=True):
    """Lines of a file, where git says that they came from, and which commits have records about the file."""

    origins: Mapping[int, CommittedLine]
    at: str
    texts: Sequence[str]
    blobs: Mapping[tuple[str, str], str]
    pointers: Mapping[str, bool]


class _Later:
    """Records that are found only if somebody asks for them, and once."""

    def __init__(self, find: Callable[[], list[FoundRecord]]) -> None:
        self._find = find
        self.known: list[FoundRecord] | None = None

    def __call__(self) -> list[FoundRecord]:
        if self.known is None:
            self.known = self._find()
        return self.known


class ClaimReader:
    """Reads the notes of one repository for one answer; shared parts are read once."""

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
        """Return the claims about lines, given where git says that they came from. Raises `GitSilentError`.

        Lines are asked for together, because equal lines beside each other may have been taken for one another. `texts`
        is the file. `by_words` says where the words of lines came from, also if their white space changed since.
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

    def _told(
        self, asked: _Asked, direct: Mapping[str, Sequence[FoundRecord]], aside: _Later
    ) -> dict[int, ClaimedLine]:
        """Return the claims of these records about lines."""
        told: dict[int, list[LineClaim]] = {}
        for number, origin in asked.origins.items():
            place = origin.commit.id, origin.path
            own = [one for one in direct.get(place[0], ()) if one.record.blob == asked.blobs.get(place)]
            told[number] = list(claims_in(own, origin.line, matched=False, judge=self.verdict))
        # Most often every line has its note. Only then is it worth asking which commits lead here.
        if any(asked.pointers.values()) or not all(told.values()):
            overrides = self._overrides(asked, direct, aside())
            better = {
                number: overrides[_key(origin)] for number, origin in asked.origins.items() if _key(origin) in overrides
            }
            told |= better
            missing = {number: asked.origins[number] for number in told if not told[number] and number not in better}
            repeats = RepeatedLines(self, aside(), direct, asked.blobs)
            told |= repeats.find(missing)
            settle_twins(told, better, asked.origins, asked.texts, repeats)
        return {number: one for number, claims in told.items() if (one := joined(claims)) is not None}

    def _counts(self, found: FoundRecord) -> bool:
        return self.verdict(found.record).counts

    def _is_strange(self, found: FoundRecord) -> bool:
        return not self.verdict(found.record).counts

    def files_in(self, commit: str, others: Collection[str]) -> set[str]:
        """Return the others from which a commit took a file: as their note describes it, and not in its parent."""
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
        """Return the statements of trusted root keys about the relays of the ledger that this key writes to."""
        return self._enrolments.get(key, EnrolledKeys())

    def _of_commits(self, commits: Iterable[str], paths: set[str]) -> dict[str, list[FoundRecord]]:
        notes = self.repository.read_notes(NoteKind.LINES, commits)
        self._too_large += notes.too_large
        found: dict[str, list[FoundRecord]] = {}
        for commit, lines in notes.lines.items():
            records = (self._record(line, paths) for line in lines)
            found[commit] = [FoundRecord(commit, one) for one in records if one is not None and one.path in paths]
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
            if (pointed := read_pointer(line, like)) is not None:
                found[pointed[0]] = found.get(pointed[0], False) or pointed[1]
        return found

    def _overrides(
        self, asked: _Asked, direct: Mapping[str, Sequence[FoundRecord]], aside: Sequence[FoundRecord]
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
            # A stranger does not choose which notes are looked up.
            if not self._counts(one) or not (lines := one.record.overridden):
                continue
            before = self.repository.origins(commit, one.record.path, [(min(lines), max(lines))])
            for line in (line for line in lines if line in before):
                origin = line_origin(before[line], one.record.path)
                key = origin.commit.id, origin.path, origin.line
                if key in wanted:
                    found[key] = list(claims_in([one], line, matched=False, judge=self.verdict))
        return found

    def _aside(self, pointers: Iterable[str], names: set[str], known: set[str], at: str) -> list[FoundRecord]:
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

    def _earlier(self, found: Iterable[FoundRecord], names: Collection[str]) -> set[str]:
        """Return names that trusted records say a file had before, and that are not known yet."""
        told = {one.record.renamed for one in found if one.record.renamed is not None and self._counts(one)}
        return set(islice(told.difference(names), _MOST_NAMES))


def _by_trust(
    direct: Mapping[str, Sequence[FoundRecord]], counts: Callable[[FoundRecord], bool]
) -> dict[str, list[FoundRecord]]:
    """Return by commit the records that count; commits without one are left out."""
    found = {commit: list(filter(counts, records)) for commit, records in direct.items()}
    return {commit: records for commit, records in found.items() if records}


def _key(origin: CommittedLine) -> tuple[str, str, int]:
    return origin.commit.id, origin.path, origin.line


def _in_json(path: str) -> str:
    return f'"path":{encode_typed(path).decode()}'
