"""Notes: how much of the lines a clone knows, how large they are, and what they cost in a repository of many commits.

Git's own work is told apart: a question about a line takes git as long as its history is.
"""

import resource
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import reduce
from operator import add
from pathlib import Path
from statistics import median
from typing import Final

from batonpass.accounts.blame.file_blame import AskedFile, Lines, find_names
from batonpass.accounts.blame.file_changes import FilePlace
from batonpass.accounts.blame.note_blame import NoteSource, blank_blame
from batonpass.attribution.git.file_git import blob_name
from batonpass.model.base.ids import new_call_id, new_run_id
from batonpass.notes.line_prints import write_prints
from batonpass.notes.line_ranges import LineRanges
from batonpass.notes.note_exchange import NoteExchange
from batonpass.notes.note_keys import path_key, pointer
from batonpass.notes.note_record import LineEdits, NotedCall, NotedRun, NoteRecord, write_record
from batonpass.notes.note_store import NoteKind, NoteRepository
from batonpass.signing.ed25519 import Ed25519Signer
from bench.effort import Effort
from bench.table import Figure, Goal, Note, Row, Unit
from tests.attribution.repository import ENVIRONMENT, git
from tests.attribution.team import fresh_clone, play

_FILES: Final = 200
_LINES: Final = 60  # of one file
_BEGUN: Final = 1_700_000_000
_NOW: Final = datetime(2026, 1, 1, tzinfo=UTC)
_ASKED: Final = "src/f7.py"
_PATIENCE: Final = timedelta(minutes=10)


def measure(scratch: Path, effort: Effort) -> Sequence[Row | Note]:
    """Ask clones of made-up teams, and one long history."""
    return [*_of_teams(scratch / "teams", effort), *_of_many(scratch, effort.noted)]


def _of_teams(scratch: Path, effort: Effort) -> Iterator[Row]:
    teams = [play(seed, scratch / str(seed)) for seed in range(max(2, effort.pasts // 2))]
    found = reduce(add, [team.score(fresh_clone(team, "fresh")) for team in teams])
    notes = [one for team in teams for member in team.members for one in member.notes]
    records = [len(line) + 1 for one in notes for line in one.lines.get(one.commit, ())]
    proofs = [sum(len(line) + 1 for lines in one.proofs.values() for line in lines) for one in notes if one.proofs]
    yield Row(
        what="of what the authors' machines know, a fresh clone knows",
        ours=Figure(found.share, Unit.SHARE),
        against=f"of {found.known:,} lines, {len(teams)} teams",
        theirs=None,
        goal=Goal(words="≥ 95 %", at_least=0.95, of_ratio=False),
    )
    yield Row(
        what="lines given to a wrong run in a fresh clone",
        ours=Figure(found.wrong, Unit.COUNT),
        against=f"of {found.agents + found.humans:,} lines, those of people too",
        theirs=None,
        goal=Goal(words="0", at_most=0, of_ratio=False),
    )
    yield Row(
        what="a note about one changed file of one commit, median",
        ours=Figure(median(records), Unit.BYTES),
        against=f"largest {max(records):,}; proofs of a commit {median(proofs):,.0f}",
        theirs=None,
        goal=Goal(words="≤ 1 KB", at_most=1024, of_ratio=False),
    )


def _of_many(scratch: Path, count: int) -> Iterator[Row | Note]:
    root = scratch / "long"
    commits = _long_history(root, count)
    repository = NoteRepository(root, ENVIRONMENT, _PATIENCE)
    _note_all(repository, commits)
    git(root, "gc", "--quiet")
    asked = AskedFile(
        place=FilePlace(root=root, path=_ASKED), data=(root / _ASKED).read_bytes(), environment=ENVIRONMENT
    )
    middle = Lines(first=10, last=10)
    alone = _spent(lambda: git(root, "blame", "--porcelain", "--", _ASKED))[1]
    follow = _spent(lambda: git(root, "log", "--follow", "--format=%H", "--", _ASKED))[1]
    for what, lines in (("one line", middle), ("a whole file", None)):
        own, theirs = _spent(lambda lines=lines: _ask(asked, lines))  # type: ignore[misc]
        yield _row(f"blame of {what} from notes, {count:,} commits: ours", own, f"git besides: {theirs * 1e3:,.0f} ms")
    remote = scratch / "remote.git"
    git(scratch, "clone", "--quiet", "--bare", str(root), str(remote))
    git(root, "remote", "add", "origin", str(remote))
    exchange = NoteExchange(repository, "origin")
    own, theirs = _spent(lambda: exchange.run(at=_NOW, sends=True))
    yield _row(f"sending {count:,} notes for the first time: ours", own, f"git besides: {theirs * 1e3:,.0f} ms")
    repository.add_notes(NoteKind.LINES, {commits[0][0]: ["one more"]}, at=_NOW)
    own, theirs = _spent(lambda: exchange.run(at=_NOW, sends=True))
    yield _row(f"sending one more beside {count:,}: ours", own, f"git besides: {theirs * 1e3:,.0f} ms")
    git(scratch, "clone", "--quiet", str(remote), "clone")
    clone = NoteExchange(NoteRepository(scratch / "clone", ENVIRONMENT, _PATIENCE), "origin")
    own, theirs = _spent(lambda: clone.run(at=_NOW, sends=False))
    yield _row(f"fetching {count:,} notes into a fresh clone: ours", own, f"git besides: {theirs * 1e3:,.0f} ms")
    yield Note(
        "seconds are of the processor. Of git's part in a blame, the search for earlier names of the file takes "
        f"{follow * 1e3:,.0f} ms (`git log --follow`) and `git blame` {alone * 1e3:,.0f} ms"
    )


def _row(what: str, seconds: float, against: str) -> Row:
    return Row(what=what, ours=Figure(seconds, Unit.SECONDS), against=against, theirs=None)


def _ask(asked: AskedFile, lines: Lines | None) -> None:
    names = find_names(asked, lines)
    source = NoteSource.find(asked)
    told = None if source is None else source.fill(blank_blame(asked, lines, names), asked, names)
    if told is None or not told.is_complete:
        raise ValueError("the notes do not answer")


def _spent(act: Callable[[], object]) -> tuple[float, float]:
    """Return the processor's seconds that an act took here, and in the programs that it started."""
    before = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    act()
    after = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    own, theirs = (
        one.ru_utime + one.ru_stime - other.ru_utime - other.ru_stime for one, other in zip(after, before, strict=True)
    )
    return own, theirs


_Made = tuple[str, str, bytes, bytes | None, bool]  # commit, path, content, content before, whether a line went


def _long_history(root: Path, count: int) -> list[_Made]:
    """Make so many commits, each of which adds a line to one of a few hundred files."""
    root.mkdir(parents=True)
    git(root, "init", "--quiet", "--initial-branch=main")
    texts: dict[str, list[str]] = {f"src/f{number}.py": [] for number in range(_FILES)}
    made: list[tuple[str, bytes, bytes | None, bool]] = []
    stream: list[bytes] = []
    for number in range(count):
        path = f"src/f{number % _FILES}.py"
        lines = texts[path]
        before = "".join(f"{line}\n" for line in lines).encode() if lines else None
        is_full = len(lines) >= _LINES
        lines[:] = [*lines[is_full:], f"line_{number} = compute({number}, rate)  # of {path}"]
        data = "".join(f"{line}\n" for line in lines).encode()
        head = f"commit refs/heads/main\ncommitter Ana <ana@example.org> {_BEGUN + number} +0000\ndata 4\nwork\n"
        stream += [f"{head}M 100644 inline {path}\ndata {len(data)}\n".encode(), data, b"\n"]
        made.append((path, data, before, is_full))
    git(root, "fast-import", "--quiet", given=b"".join(stream))
    git(root, "reset", "--quiet", "--hard")
    names = git(root, "rev-list", "--reverse", "HEAD").split()
    return [(name, *one) for name, one in zip(names, made, strict=True)]


def _note_all(repository: NoteRepository, made: Sequence[_Made]) -> None:
    signer = Ed25519Signer.generate()
    like = repository.object_format()
    run = new_run_id(_NOW)
    notes: dict[str, list[str]] = {}
    for number, (commit, path, data, before, is_full) in enumerate(made):
        lines = data.decode().splitlines()
        call = NotedCall(call=new_call_id(_NOW), tool="Edit", at=_BEGUN + number, lines=str(len(lines)))
        removed = (LineEdits(0, 1, 0),) if is_full else ()
        record = NoteRecord(
            path=path,
            blob=blob_name(data, commit),
            key=signer.public_key,
            at=_NOW,
            by=(NotedRun(run=run, agent="editor", human="user:ana", calls=(call,)),),
            was=None if before is None else blob_name(before, commit),
            edits=(*removed, LineEdits(len(lines) - 1 + is_full, 0, 1)),
            prints=write_prints(lines, LineRanges.of([len(lines)])),
            commit_print="0" * 12,
        )
        notes.setdefault(commit, []).append(write_record(record, signer))
        notes.setdefault(path_key(repository, path, like), []).append(pointer(_BEGUN + number, commit))
    repository.add_notes(NoteKind.LINES, notes, at=_NOW)
