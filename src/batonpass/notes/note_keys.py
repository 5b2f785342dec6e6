"""The keys of notes about a path, a proof or shared words instead of a commit, and the lines in the note of a path."""

from batonpass.attribution.changes.sides import printable
from batonpass.notes.note_store import NoteRepository


def pointer(seconds: int, commit: str) -> str:
    """Return the line that says, in the note of a path, that a commit has a record about it."""
    return f"{max(seconds, 0):010d} {commit}"


def read_pointer(line: str, like: str) -> tuple[str, bool] | None:
    """Return the commit that such a line names, and whether it knows better than git; None for another line."""
    _, commit, *flags = (*line.split(" "), "")
    is_one = len(commit) == len(like) and all(letter in "0123456789abcdef" for letter in commit)
    return (commit, "!" in flags) if is_one else None


def path_key(repository: NoteRepository, path: str, like: str) -> str:
    """Return the key of the note that lists the commits with records about a path."""
    return repository.key(f"path {printable(path)}", like)


def proof_key(repository: NoteRepository, name: str, like: str) -> str:
    """Return the key of the proof of a call, a run or a relay's key."""
    return repository.key(f"proof {name}", like)


def words_key(repository: NoteRepository, run: str, like: str) -> str:
    """Return the key of the words of a run's task."""
    return repository.key(f"words {run}", like)
