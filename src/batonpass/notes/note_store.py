"""Notes in git's own object store: read in one question, written in one commit, merged as sets of lines.

A note is found by the name of a git object. Where something else is the key (a path, a call, a run), the name is that
of a blob with the key as its content, whether or not such a blob is stored. The note of a key is a set of lines: two
people who write at the same time never conflict, and a line that is there twice is there once.

Notes may be hostile. They are found by name and size before they are read, and a note that is too large is left out.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from enum import StrEnum
from hashlib import sha256
from secrets import token_hex
from typing import Final, TypeVar

from msgspec import Struct

from batonpass.attribution.git.file_git import EMPTY_TREE, GitSilentError, Repository, blob_name

LARGEST_NOTE: Final = 4 * 1024 * 1024
TRACKED: Final = "refs/batonpass"  # below it, by remote, the refs as they were fetched
_DEEPEST: Final = 3  # levels of directories that git's own commands spread notes over
_READ_AT_MOST: Final = 64 * 1024 * 1024  # bytes in one answer
_TRIES: Final = 8
_PRINT: Final = 12
_AT_ONCE: Final = 2_000

Done = TypeVar("Done")


class NoteKind(StrEnum):
    """Which notes: each kind has a ref of its own."""

    LINES = "batonpass"  # by commit: records; by path: which commits have records about it
    PROOFS = "batonpass-proofs"  # by call, run and key: receipts and what they open
    WORDS = "batonpass-words"  # by run: the words of tasks, if they are shared; this ref has no history

    @property
    def ref(self) -> str:
        """Return the local ref."""
        return f"refs/notes/{self.value}"

    def tracked(self, remote: str) -> str:
        """Return the ref with a remote's notes, as they were fetched."""
        return f"{TRACKED}/{remote}/{self.value}"


class ReadNotes(Struct, frozen=True):
    """Notes by key, as sets of lines in order, and how many were too large to be read."""

    lines: Mapping[str, tuple[str, ...]]
    too_large: int = 0

    def of(self, key: str) -> tuple[str, ...]:
        """Return the lines of one note."""
        return self.lines.get(key, ())


class NoteRepository(Repository, frozen=True):
    """A repository with notes. All methods raise `GitSilentError`."""

    def object_format(self) -> str:
        """Return the empty tree's name, which is as long as all names here."""
        return EMPTY_TREE[64 if self._text("rev-parse", "--show-object-format").strip() == "sha256" else 40]

    def key(self, text: str, like: str) -> str:
        """Return the name under which the note of a text is kept, as long as this other name."""
        return blob_name(f"batonpass {text}\n".encode("utf-8", "surrogateescape"), like)

    def remotes(self) -> list[str]:
        """Return the names of the remotes."""
        return self._text("remote").split()

    def not_leading_to(self, commits: Iterable[str], head: str) -> set[str]:
        """Return those commits that are not ancestors of another, or are not here at all."""
        wanted = list(dict.fromkeys(commits))
        printed = self._batch("--batch-check", wanted).decode("ascii", "replace").splitlines()
        here = {name for name, line in zip(wanted, printed, strict=False) if line.split(" ")[1:2] == ["commit"]}
        given = "".join(f"{name}\n" for name in (*sorted(here), f"^{head}"))
        away = set(self._run(["rev-list", "--stdin"], given.encode()).decode().split()) if here else set()
        return {name for name in wanted if name not in here or name in away}

    def commit_print(self, commit: str) -> str:
        """Return a short digest of the parts of a commit that a rebase keeps: author, author time, subject."""
        facts = self._text("log", "-1", "--no-walk", "--format=%an%x00%ae%x00%at%x00%s", commit)
        return sha256(facts.rstrip("\n").encode("utf-8", "surrogateescape")).hexdigest()[:_PRINT]

    def parents(self, commit: str) -> list[str]:
        """Return the parents of a commit."""
        return self._text("rev-parse", f"{commit}^@").split()

    def authored_at(self, commit: str) -> int:
        """Return when the author made a commit, in seconds since 1970."""
        said = self._text("log", "-1", "--no-walk", "--format=%at", commit).strip()
        return int(said) if said.isdigit() else 0

    def committed_at(self, commit: str) -> datetime:
        """Return when a commit was made."""
        said = self._text("log", "-1", "--no-walk", "--format=%ct", commit).strip()
        return datetime.fromtimestamp(int(said) if said.isdigit() else 0, UTC)

    def point(self, ref: str, commit: str) -> None:
        """Make a ref point to a commit."""
        self._text("update-ref", ref, commit)

    def missing_from(self, remote: str, *, most: int) -> list[str]:
        """Return the commits here that no branch of a remote has, the latest first."""
        return self._text("rev-list", f"--max-count={most}", "HEAD", "--not", f"--remotes={remote}").split()

    def commits(self, span: str, *, most: int) -> list[str]:
        """Return a commit, or those of `BASE..HEAD`, the latest first."""
        alone = () if ".." in span else ("--max-count=1",)
        return self._text("rev-list", f"--max-count={most}", *alone, "--end-of-options", span).split()

    def describe(self, commits: Iterable[str], form: str, fields: int) -> list[tuple[str, ...]]:
        """Return fields of commits, as a format of `git log` with a zero byte between them gives them."""
        what = ("log", "--no-walk=unsorted", "--stdin", "-z", f"--format={form}")
        printed = self._run(what, "".join(f"{one}\n" for one in commits).encode()).decode("utf-8", "surrogateescape")
        told = printed.split("\0")
        return [tuple(told[start : start + fields]) for start in range(0, len(told) - fields + 1, fields)]

    def shallow(self) -> frozenset[str]:
        """Return the commits at which a shallow clone ends: git blames them for the lines of all earlier commits."""
        if self._text("rev-parse", "--is-shallow-repository").strip() != "true":
            return frozenset()
        listed = self.root / self._text("rev-parse", "--git-path", "shallow").removesuffix("\n")
        try:
            return frozenset(listed.read_text("ascii", "replace").split())
        except OSError:
            return frozenset()

    def note_refs(self, kind: NoteKind) -> dict[str, str]:
        """Return the refs that hold such notes, the local one first, and their commits."""
        wanted = ("for-each-ref", "--format=%(refname) %(objectname) %(objecttype)", kind.ref, TRACKED)
        found: dict[str, str] = {}
        for line in self._text(*wanted).splitlines():
            ref, commit, sort = line.split(" ")
            if sort == "commit" and (ref == kind.ref or ref.endswith(f"/{kind.value}")):
                found[ref] = commit
        return dict(sorted(found.items(), key=lambda one: one[0] != kind.ref))

    def read_notes(self, kind: NoteKind, keys: Iterable[str], *, refs: Iterable[str] | None = None) -> ReadNotes:
        """Return the notes with these keys, from every ref that holds such notes."""
        places = self.note_refs(kind).values() if refs is None else refs
        wanted = list(dict.fromkeys(keys))
        lines: dict[str, set[str]] = {}
        too_large = 0
        for commit in dict.fromkeys(places):
            bodies, refused = self.note_bodies(commit, wanted)
            too_large += refused
            for key, data in bodies:
                lines.setdefault(key, set()).update(_lines(data))
        return ReadNotes({key: tuple(sorted(found)) for key, found in lines.items()}, too_large)

    def note_bodies(self, commit: str, keys: Iterable[str]) -> tuple[list[tuple[str, bytes]], int]:
        """Return the notes with these keys in one commit of notes, anybody's, and how many were too large."""
        blobs, refused = self._locate(commit, keys)
        owners: dict[str, list[str]] = {}
        for key, found in blobs.items():
            for _, name in found:
                owners.setdefault(name, []).append(key)
        return [(key, data) for name, data in self.contents(owners) for key in owners.get(name, ())], refused

    def add_notes(self, kind: NoteKind, additions: Mapping[str, Iterable[str]], *, at: datetime) -> bool:
        """Add lines to notes, in one commit; return whether anything was new. Others may write at the same time."""
        wanted = {key: tuple(lines) for key, lines in additions.items()}
        return self._until_done(kind, lambda tip: self._add(kind, tip, wanted, at=at))

    def add_bodies(self, ref: str, bodies: Mapping[str, bytes], *, at: datetime) -> list[str]:
        """Add notes of another tool's format; return the keys that were new. A note that is there stays as it is."""
        tip = self.commit_of(ref)
        printed = "" if tip is None else self._text("ls-tree", "-r", "-z", "--name-only", tip)
        there = {path.replace("/", "") for path in printed.split("\0")}
        new = {key: data for key, data in bodies.items() if key not in there}
        if new:
            files = {_place(key): data for key, data in new.items()}
            self._import(ref, () if tip is None else (tip,), files, [], at=at)
        return list(new)

    def merge_notes(self, kind: NoteKind, theirs: str, *, at: datetime) -> int:
        """Add all that another commit's notes have; return how many notes were new or had new lines."""
        return self._until_done(kind, lambda ours: self._merge(kind, ours, theirs, at=at))

    def replace_notes(
        self, kind: NoteKind, notes: Mapping[str, Iterable[str]], *, expected: str | None, at: datetime
    ) -> str:
        """Make these all the notes of a kind, in a commit without a parent. Raises if the ref is not as expected."""
        made = f"{TRACKED}/made-{token_hex(8)}"
        files = {_place(key): _data(lines) for key, lines in notes.items()}
        self._import(made, (), files, [], at=at)
        commit = self._text("rev-parse", "--verify", made).strip()
        self._text("update-ref", "-d", made, commit)
        self._text("update-ref", kind.ref, commit, expected or "0" * len(commit))
        return commit

    def all_notes(self, kind: NoteKind, commit: str) -> ReadNotes:
        """Return every note of a commit."""
        printed = self._text("ls-tree", "-r", "-z", "--name-only", commit)
        return self.read_notes(kind, (path.replace("/", "") for path in printed.split("\0") if path), refs=[commit])

    def _until_done(self, kind: NoteKind, act: Callable[[str | None], Done]) -> Done:
        """Do something to the local ref as it is, and again as long as somebody else was first."""
        for left in reversed(range(_TRIES)):
            tip = self.note_refs(kind).get(kind.ref)
            try:
                return act(tip)
            except GitSilentError:
                if left == 0 or self.note_refs(kind).get(kind.ref) == tip:
                    raise
        raise AssertionError("unreachable")

    def _locate(self, commit: str, keys: Iterable[str]) -> tuple[dict[str, list[tuple[str, str]]], int]:
        """Return by key the places and blobs of notes that are not too large, and how many are."""
        wanted = list(keys)
        found: dict[str, list[tuple[str, str]]] = {}
        too_large = budget = 0
        for start in range(0, len(wanted), _AT_ONCE):
            asked = [(key, path) for key in wanted[start : start + _AT_ONCE] for path in _places(key)]
            printed = self._batch("--batch-check", (f"{commit}:{path}" for _, path in asked))
            for (key, path), line in zip(asked, printed.decode("ascii", "replace").splitlines(), strict=False):
                match line.split(" "):
                    case [name, "blob", size]:
                        budget += int(size)
                        if int(size) > LARGEST_NOTE or budget > _READ_AT_MOST:
                            too_large += 1
                        else:
                            found.setdefault(key, []).append((path, name))
                    case _:
                        continue
        return found, too_large

    def _add(self, kind: NoteKind, tip: str | None, additions: Mapping[str, Iterable[str]], *, at: datetime) -> bool:
        known, _ = ({}, 0) if tip is None else self._locate(tip, additions)
        there = self.read_notes(kind, additions, refs=() if tip is None else (tip,))
        files: dict[str, bytes] = {}
        gone: list[str] = []
        for key, lines in additions.items():
            joined = {*there.of(key), *lines}
            data = _data(joined)
            if joined == set(there.of(key)) or len(data) > LARGEST_NOTE:
                continue
            files[_place(key)] = data
            gone += [path for path, _ in known.get(key, ()) if path != _place(key)]
        if files:
            self._import(kind.ref, () if tip is None else (tip,), files, gone, at=at)
        return bool(files)

    def _merge(self, kind: NoteKind, ours: str | None, theirs: str, *, at: datetime) -> int:
        if ours == theirs:
            return 0
        base = None if ours is None else self.common(ours, theirs)
        if base == theirs:
            return 0
        changed = self._changed(base, theirs)
        if ours is None or base == ours:
            # Whatever else is in that tree is never read: notes are found by their names and their size.
            self._text("update-ref", kind.ref, theirs, ours or "0" * len(theirs))
            return len(changed)
        there = self.read_notes(kind, changed, refs=(theirs,))
        here = self.read_notes(kind, changed, refs=(ours,))
        known, _ = self._locate(ours, changed)
        files: dict[str, bytes] = {}
        gone: list[str] = []
        for key in changed:
            joined = {*here.of(key), *there.of(key)}
            data = _data(joined)
            # One that grew too large would never be read again, and with it what we said ourselves.
            if joined == set(here.of(key)) or len(data) > LARGEST_NOTE:
                continue
            files[_place(key)] = data
            gone += [path for path, _ in known.get(key, ()) if path != _place(key)]
        self._import(kind.ref, (ours, theirs), files, gone, at=at)
        return len(files)

    def _changed(self, base: str | None, theirs: str) -> list[str]:
        what = ("diff-tree", "-r", "-z", "--name-only", "--no-renames", "--no-ext-diff")
        printed = self._text(*what, base or EMPTY_TREE[len(theirs)], theirs)
        names = (path.replace("/", "") for path in printed.split("\0") if path)
        return list(dict.fromkeys(name for name in names if len(name) == len(theirs) and _is_hex(name)))

    def _import(
        self, ref: str, parents: tuple[str, ...], files: Mapping[str, bytes], gone: Iterable[str], *, at: datetime
    ) -> None:
        message = b"batonpass: notes"
        stream = [f"commit {ref}\ncommitter batonpass <batonpass> {int(at.timestamp())} +0000\n".encode()]
        stream.append(b"data %d\n%s\n" % (len(message), message))
        stream += [f"{word} {parent}\n".encode() for word, parent in zip(("from", "merge"), parents, strict=False)]
        stream += [f"D {path}\n".encode() for path in gone]
        for path, data in files.items():
            stream += [f"M 100644 inline {path}\ndata {len(data)}\n".encode(), data, b"\n"]
        self._run(["fast-import", "--quiet", "--date-format=raw"], b"".join(stream))


def _places(key: str) -> Iterator[str]:
    for depth in range(_DEEPEST + 1):
        yield "/".join([*(key[2 * level : 2 * level + 2] for level in range(depth)), key[2 * depth :]])


def _place(key: str) -> str:
    return f"{key[:2]}/{key[2:]}"


def _is_hex(name: str) -> bool:
    return all(letter in "0123456789abcdef" for letter in name)


def _lines(data: bytes) -> Iterator[str]:
    return filter(None, data.decode("utf-8", "surrogateescape").split("\n"))


def _data(lines: Iterable[str]) -> bytes:
    return "".join(f"{line}\n" for line in sorted(set(lines))).encode("utf-8", "surrogateescape")
