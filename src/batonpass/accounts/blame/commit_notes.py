"""The notes of a commit: whose lines it brought, as this ledger knows it, and the proofs of the calls behind them.

The answer is that of blame for the files of the commit, limited to the lines that are new in it. A proof opens only
changes that the commit publishes anyway: a change with a line that is in neither side of the committed file stays
closed.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from batonpass.accounts.blame.blame_text import Blame
from batonpass.accounts.blame.blame_values import BlamedLine, HowKnown, Maker
from batonpass.accounts.blame.committed_runs import find_touched
from batonpass.accounts.blame.file_blame import AskedFile, blame_file
from batonpass.accounts.blame.file_changes import FilePlace
from batonpass.attribution.changes.change import FileChange, lines_of
from batonpass.attribution.changes.sides import printable
from batonpass.attribution.git.commit_span import ChangedLines, CommitSpan
from batonpass.attribution.git.git_history import History
from batonpass.credentials.redaction import Redactor
from batonpass.model.base.content_names import RESULT
from batonpass.model.base.ids import CallId, HandoffId, RunId
from batonpass.model.ledger.content import Place
from batonpass.model.ledger.key import Signer
from batonpass.notes.call_proof import write_call_proof, write_key_proof, write_run_proof
from batonpass.notes.line_prints import write_prints
from batonpass.notes.line_ranges import LineRanges
from batonpass.notes.line_slides import slides
from batonpass.notes.note_keys import path_key, pointer, proof_key, words_key
from batonpass.notes.note_record import (
    MOST_CANDIDATES,
    LineEdits,
    NotedCall,
    NotedRun,
    NoteRecord,
    Perhaps,
    claimed_lines,
    short_word,
    write_record,
)
from batonpass.notes.note_store import NoteKind, NoteRepository
from batonpass.notes.shared_words import SharedWords, read_words, without_erased, write_words
from batonpass.records.handoff import Standing, read_handoff
from batonpass.records.hold import Leave
from batonpass.records.text import Found
from batonpass.store.port import LedgerView

MOST_FILES: Final = 1000  # of a commit: nobody has worked on more than that one by one
_LARGEST_FILE: Final = 2 * 1024 * 1024


class CommitNotes(Struct, frozen=True, kw_only=True):
    """The notes to be written about one commit, by key."""

    commit: str
    lines: Mapping[str, list[str]] = field(default_factory=dict)
    proofs: Mapping[str, list[str]] = field(default_factory=dict)
    words: Mapping[str, list[str]] = field(default_factory=dict)  # if the words of tasks are shared
    runs: tuple[RunId, ...] = ()
    files: int = 0  # with a record
    claimed: int = 0  # lines


class ClaimedFile(Struct, frozen=True, kw_only=True):
    """The lines of one file of a commit of which it is certain who wrote them, by run and call."""

    path: str
    by: tuple[NotedRun, ...]


class _ChangedFile(Struct, frozen=True, kw_only=True):
    """One file of a commit: its lines, which of them are new, and its earlier text."""

    path: str
    was: str  # its path in the parent
    blob: str
    old_blob: str | None
    data: bytes
    old_data: bytes
    edits: tuple[LineEdits, ...]
    added: frozenset[int]

    @property
    def lines(self) -> list[str]:
        """Return its lines."""
        return lines_of(self.data.decode("utf-8", "surrogateescape"))

    def publishes(self, change: FileChange) -> bool:
        """Return whether the commit has every line of a change, so that opening it tells nothing more."""
        if change.path not in {self.path, self.was} or change.renamed_from not in {None, self.path, self.was}:
            return False
        known = {*self.lines, *lines_of(self.old_data.decode("utf-8", "surrogateescape"))}
        return all(line in known for hunk in change.hunks or () for line in (*hunk.removed, *hunk.added))


class CommitReader:
    """Reads from one view of a ledger who wrote the files of commits. All methods raise as git does."""

    def __init__(self, view: LedgerView, repository: NoteRepository) -> None:
        self._view = view
        self._repository = repository

    def claims(self, commit: str) -> Iterator[ClaimedFile]:
        """Yield the files of a commit with the new lines whose authors are certain."""
        for file in self._files(commit):
            blame = self._blame(file.path, file.was, file.data, commit)
            broken = {call for call, maker in blame.makers.items() if not maker.proof.holds}
            by = [
                replace(run, calls=tuple(call for call in run.calls if call.call not in broken))
                for run in _claims(blame, file.added)[0]
            ]
            yield ClaimedFile(path=file.path, by=tuple(by))

    def _files(self, commit: str) -> Iterator[_ChangedFile]:
        parents = self._repository.parents(commit)
        spans = [_hunks(self._repository, parent, commit) for parent in parents] or [
            _hunks(self._repository, self._repository.parent_of(commit), commit)
        ]
        names = {path: spans[0][path][0] for path in spans[0]}
        # A merge made only lines that none of its parents has.
        wanted = [path for path in names if all(path in other for other in spans[1:])][:MOST_FILES]
        root = self._repository.root
        touched = {path for path in wanted if any(find_touched(self._view, root, {path, names[path]}))}
        base = parents[0] if parents else ""
        asked = [(commit, path) for path in touched] + ([(base, names[path]) for path in touched] if base else [])
        blobs = self._repository.blobs(asked)
        texts = dict(self._repository.contents(blobs.values()))
        for path in (path for path in wanted if path in touched):
            blob, old = blobs.get((commit, path)), blobs.get((base, names[path]))
            data = None if blob is None else texts.get(blob)
            if blob is None or not data or b"\0" in data or len(data) > _LARGEST_FILE:
                continue
            added = [frozenset(number for one in span[path][1] for number in _new(one)) for span in spans]
            yield _ChangedFile(
                path=path,
                was=names[path],
                blob=blob,
                old_blob=old,
                data=data,
                old_data=b"" if old is None else texts.get(old, b""),
                edits=_edits(spans[0][path][1]),
                added=frozenset.intersection(*added),
            )

    def _blame(self, path: str, was: str, data: bytes, commit: str) -> Blame:
        place = FilePlace(root=self._repository.root, path=path)
        asked = AskedFile(place=place, data=data, environment=self._repository.environment, at=commit)
        names = History(paths=tuple(dict.fromkeys((path, was))), checked_out=commit)
        return blame_file(self._view, asked, names=names)


class NoteWriter(CommitReader):
    """Writes the notes of commits from one view of a ledger."""

    def __init__(
        self,
        view: LedgerView,
        repository: NoteRepository,
        signer: Signer,
        *,
        at: datetime,
        opens_all: bool = False,
        redactor: Redactor | None = None,
    ) -> None:
        """`redactor`: share the words of tasks as well, redacted by it."""
        super().__init__(view, repository)
        self._signer = signer
        self._at = at
        self._opens_all = opens_all
        self._redactor = redactor
        self._like = repository.object_format()

    def of_commit(self, commit: str) -> CommitNotes:
        """Return the notes of a commit; without records if it has no file that is recorded here. Raises as git does."""
        records: list[str] = []
        keys: dict[str, list[str]] = {}
        makers: dict[CallId, tuple[Maker, list[_ChangedFile]]] = {}
        claimed = 0
        stamp = pointer(self._repository.authored_at(commit), commit)
        commit_print = self._repository.commit_print(commit)
        parent = next(iter(self._repository.parents(commit)), None)
        for file in self._files(commit):
            blame = self._blame(file.path, file.was, file.data, commit)
            edges = self._edges(file, blame, parent)
            by, perhaps = _claims(blame, file.added | edges)
            open_edges = [number for number in edges if not blame.lines[number - 1].calls]
            lines = claimed_lines(by, perhaps)
            claimed += lines.size
            record = NoteRecord(
                path=printable(file.path),
                blob=file.blob,
                key=self._signer.public_key,
                at=self._at,
                by=by,
                perhaps=perhaps,
                was=file.old_blob,
                renamed=printable(file.was) if file.was != file.path else None,
                edits=file.edits,
                prints=write_prints(file.lines, lines),
                commit_print=commit_print,
                unclaimed=str(LineRanges.of(open_edges)),
            )
            records.append(write_record(record, self._signer))
            keys[path_key(self._repository, file.path, self._like)] = [f"{stamp} !" if edges else stamp]
            for run in by:
                for call in run.calls:
                    maker = blame.makers[CallId(call.call)]
                    makers.setdefault(CallId(call.call), (maker, []))[1].append(file)
        return CommitNotes(
            commit=commit,
            lines={commit: records, **keys} if records else {},
            proofs=self._proofs(makers),
            words={} if self._redactor is None else self._words(self._redactor, makers),
            runs=tuple(dict.fromkeys(maker.run.id for maker, _ in makers.values())),
            files=len(records),
            claimed=claimed,
        )

    def _edges(self, file: _ChangedFile, blame: Blame, parent: str | None) -> frozenset[int]:
        """Return the lines that git takes for older ones, though they are somebody else's.

        Where a brace and a line were added beside a brace, git guesses which brace is new; the record knows.
        """
        found = _find_edges(file)
        if not found or parent is None or not file.old_data:
            return frozenset()
        before = self._blame(file.was, file.was, file.old_data, parent).lines
        record = NoteRecord(path="", blob="", key=self._signer.public_key, at=self._at, edits=file.edits)
        olds = {number: record.old_line(number) for number in found}
        return frozenset(
            number
            for number, old in olds.items()
            if old is not None and old <= len(before) and _whose(before[old - 1]) != _whose(blame.lines[number - 1])
        )

    def _proofs(self, makers: Mapping[CallId, tuple[Maker, list[_ChangedFile]]]) -> dict[str, list[str]]:
        if not makers:
            return {}
        found = {proof_key(self._repository, self._signer.public_key, self._like): write_key_proof(self._view)}
        runs: dict[RunId, HandoffId | None] = {}
        for call, (maker, files) in makers.items():
            runs[maker.run.id] = maker.run.handoff
            if maker.record is not None:
                lines = write_call_proof(self._view, maker.record, maker.leave, self._opener(files))
                found[proof_key(self._repository, call, self._like)] = lines
        for run, handoff in runs.items():
            stored = () if handoff is None else read_handoff(self._view, self._view.get_handoff(handoff)).stored
            found[proof_key(self._repository, run, self._like)] = write_run_proof(self._view, run, stored)
        return found

    def _words(
        self, redactor: Redactor, makers: Mapping[CallId, tuple[Maker, list[_ChangedFile]]]
    ) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for maker, _ in makers.values():
            task = maker.task
            if task is None or task.found is not Found.KEPT or task.words is None:
                continue
            # What people say stays as it is in their own ledger. What leaves it is treated like what tools return.
            shared = redactor.text(RESULT, task.words)
            stored = self._view.get_content(task.ref.id)
            words = SharedWords(
                content=task.ref.id,
                digest=task.ref.digest,
                key=self._signer.public_key,
                words=shared,
                salt=stored.salt if shared == task.words else None,
            )
            found[words_key(self._repository, maker.run.id, self._like)] = [write_words(words, self._signer)]
        return found

    def _opener(self, files: Sequence[_ChangedFile]) -> "_Opener":
        return _Opener(files=tuple(files), opens_all=self._opens_all)


class _Opener(Struct, frozen=True, kw_only=True):
    files: tuple[_ChangedFile, ...]
    opens_all: bool

    def __call__(self, change: FileChange) -> bool:
        """Return whether a change may be opened."""
        return self.opens_all or any(file.publishes(change) for file in self.files)


def write_notes(repository: NoteRepository, notes: Iterable[CommitNotes], *, at: datetime) -> bool:
    """Write the notes of commits, the proofs first; return whether anything was new."""
    lines: dict[str, list[str]] = {}
    proofs: dict[str, list[str]] = {}
    for one in notes:
        for key, added in one.lines.items():
            lines.setdefault(key, []).extend(added)
        for key, added in one.proofs.items():
            proofs.setdefault(key, []).extend(added)
    # If it stops in between, there are proofs without claims. Never the other way round.
    new = repository.add_notes(NoteKind.PROOFS, proofs, at=at) if proofs else False
    return (repository.add_notes(NoteKind.LINES, lines, at=at) if lines else False) or new


def write_shared_words(
    view: LedgerView, repository: NoteRepository, notes: Iterable[CommitNotes], signer: Signer, *, at: datetime
) -> bool:
    """Add the words of commits, and put a stone where words were erased here since; return whether anything changed."""
    kind = NoteKind.WORDS
    tip = repository.note_refs(kind).get(kind.ref)
    known = {} if tip is None else repository.all_notes(kind, tip).lines
    joined: dict[str, list[str]] = {key: list(lines) for key, lines in known.items()}
    for one in notes:
        for key, lines in one.words.items():
            joined.setdefault(key, []).extend(lines)
    joined = {key: without_erased((*lines, *_stones(view, lines, signer))) for key, lines in joined.items()}
    if all(set(lines) == set(known.get(key, ())) for key, lines in joined.items()):
        return False
    repository.replace_notes(kind, joined, expected=tip, at=at)
    return True


def _stones(view: LedgerView, lines: Iterable[str], signer: Signer) -> list[str]:
    own = [one for one in map(read_words, lines) if one is not None and one.key == signer.public_key]
    contents = {content.id: content for content in view.find_contents([one.content for one in own])}
    gone = [one for one in own if one.content in contents and contents[one.content].place is Place.ERASED]
    return [write_words(replace(one, words=None, salt=None), signer) for one in gone]


def find_unnoted(repository: NoteRepository, commits: Iterable[str], key: str) -> list[str]:
    """Return the commits that have no record by this key yet, in the same order."""
    wanted = list(commits)
    tip = repository.note_refs(NoteKind.LINES).get(NoteKind.LINES.ref)
    notes = repository.read_notes(NoteKind.LINES, wanted, refs=() if tip is None else (tip,))
    return [commit for commit in wanted if not any(key in line for line in notes.of(commit))]


def _hunks(repository: NoteRepository, base: str, commit: str) -> dict[str, tuple[str, list[ChangedLines]]]:
    """Return by path the name before, and the changed lines; files without changed lines are left out."""
    found: dict[str, tuple[str, list[ChangedLines]]] = {}
    for one in CommitSpan(repository=repository, base=base, head=commit).read():
        if one.instead is None:
            found.setdefault(one.path, (one.was or one.path, []))[1].append(one)
        elif one.was is not None:
            found.setdefault(one.path, (one.was, []))
    return found


def _new(changed: ChangedLines) -> range:
    return range(changed.first, changed.first + changed.added)


def _edits(changed: Iterable[ChangedLines]) -> tuple[LineEdits, ...]:
    edits: list[LineEdits] = []
    shift = 0
    for one in changed:
        before = (one.first - 1 if one.added else one.first) - shift
        edits.append(LineEdits(before, one.removed, one.added))
        shift += one.added - one.removed
    return tuple(edits)


def _find_edges(file: _ChangedFile) -> set[int]:
    """Return the lines around a change that have the same text: a diff could have taken them instead."""
    now, old = file.lines, lines_of(file.old_data.decode("utf-8", "surrogateescape"))
    found: set[int] = set()
    shift = 0
    for edit in file.edits:
        start = edit.before + shift  # lines of the new file before it
        shift += edit.added - edit.removed
        if edit.added and edit.removed:
            continue
        moved = now[start : start + edit.added] or old[edit.before : edit.before + edit.removed]
        found.update(slides(now, moved, start, start + edit.added))
    return found


def _whose(line: BlamedLine) -> tuple[object, ...]:
    return line.run, line.calls, line.or_nobody


def _claims(blame: Blame, added: frozenset[int]) -> tuple[tuple[NotedRun, ...], tuple[Perhaps, ...]]:
    """Return the authors of new lines: by run and call, and lines that several calls may have written."""
    sure: dict[tuple[CallId, bool], list[int]] = {}
    doubts: dict[tuple[tuple[CallId, ...], bool], list[int]] = {}
    for line in blame.lines:
        calls = tuple(call for call in line.calls if call in blame.makers)
        if line.number not in added or not calls:
            continue
        if _is_sure(line, calls):
            sure.setdefault((calls[0], line.known is HowKnown.MATCHED), []).append(line.number)
        elif len(calls) <= MOST_CANDIDATES:
            doubts.setdefault((calls, line.or_nobody or len(calls) < len(line.calls)), []).append(line.number)
    perhaps = tuple(
        Perhaps(lines=str(LineRanges.of(numbers)), calls=calls, nobody=nobody)
        for (calls, nobody), numbers in doubts.items()
    )
    listed = dict.fromkeys((*(call for call, _ in sure), *(call for calls, _ in doubts for call in calls)))
    runs: dict[RunId, list[NotedCall]] = {}
    makers: dict[RunId, Maker] = {}
    for call in listed:
        maker = blame.makers[call]
        makers.setdefault(maker.run.id, maker)
        forms = [(matched, numbers) for (one, matched), numbers in sure.items() if one == call]
        for matched, numbers in forms or [(False, [])]:
            runs.setdefault(maker.run.id, []).append(_call(maker, call, numbers, matched=matched))
    return tuple(_run(makers[run], tuple(calls)) for run, calls in runs.items()), perhaps


def _is_sure(line: BlamedLine, calls: Sequence[CallId]) -> bool:
    return line.run is not None and len(line.calls) == len(calls) == 1 and not line.or_nobody


def _call(maker: Maker, call: CallId, numbers: Iterable[int], *, matched: bool) -> NotedCall:
    leave = maker.leave
    state = Leave.NOT_NEEDED if leave is None else leave.leave
    return NotedCall(
        call=call,
        tool=maker.tool,
        at=int(maker.at.timestamp()),
        lines=str(LineRanges.of(numbers)),
        matched=matched,
        approval=None if state is Leave.NOT_NEEDED else state.value,
        approved_by=() if leave is None else tuple(one.by for one in leave.approvals if one.is_for),
    )


def _run(maker: Maker, calls: tuple[NotedCall, ...]) -> NotedRun:
    source, task = maker.source, maker.task
    return NotedRun(
        run=maker.run.id,
        agent=maker.run.agent,
        human=maker.principal,
        calls=calls,
        handoff=maker.run.handoff,
        via=tuple(hop.agent for hop in maker.hops[1:]),
        above=tuple(hop.run for hop in maker.hops[1:]),
        subagent=maker.hops[0].subagent,
        program=None if source is None else source.program,
        model=None if source is None else short_word(source.model),
        task=None if task is None else task.ref.digest,
        standing=None if maker.standing is Standing.UNVERIFIED else maker.standing.value,
        imported=maker.is_hearsay,
    )
