"""Records of notes for tests."""

from datetime import UTC, datetime

from batonpass.model.base.ids import new_call_id, new_run_id
from batonpass.notes.line_prints import write_prints
from batonpass.notes.note_record import LineEdits, NotedCall, NotedRun, NoteRecord, Perhaps, claimed_lines
from batonpass.signing.ed25519 import Ed25519Signer

AT = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)
BLOB = "a" * 40


def a_call(lines: str, *, matched: bool = False) -> NotedCall:
    """Return a call that wrote these lines."""
    return NotedCall(call=new_call_id(AT), tool="write_file", at=int(AT.timestamp()), lines=lines, matched=matched)


def a_run(*calls: NotedCall, agent: str = "editor") -> NotedRun:
    """Return a run with these calls."""
    return NotedRun(run=new_run_id(AT), agent=agent, human="user:ana", calls=calls)


def a_record(
    signer: Ed25519Signer,
    *runs: NotedRun,
    path: str = "src/a.py",
    blob: str = BLOB,
    was: str | None = None,
    edits: tuple[LineEdits, ...] = (),
    perhaps: tuple[Perhaps, ...] = (),
    texts: tuple[str, ...] = (),
    commit: str = "",
) -> NoteRecord:
    """Return a record; with texts, also the prints of its lines."""
    return NoteRecord(
        path=path,
        blob=blob,
        key=signer.public_key,
        at=AT,
        by=runs,
        perhaps=perhaps,
        was=was,
        edits=edits,
        prints=write_prints(texts, claimed_lines(runs, perhaps)) if texts else "",
        commit_print=commit,
    )
