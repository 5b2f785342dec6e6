"""A team with notes, a clone of it to do harm in, and somebody who may push and means harm."""

import random
import shutil
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

from batonpass.accounts.blame.blame_text import Blame
from batonpass.accounts.blame.file_blame import Lines, find_names
from batonpass.accounts.blame.note_blame import NoteSource, blank_blame
from batonpass.model.base.ids import CallId, RunId, new_call_id, new_run_id
from batonpass.notes.note_record import NotedCall, NotedRun, NoteRecord, write_record
from batonpass.notes.note_store import NoteKind, NoteRepository
from batonpass.signing.ed25519 import Ed25519Signer
from tests.attribution.generator import File
from tests.attribution.lines import HUMAN
from tests.attribution.repository import ENVIRONMENT
from tests.attribution.team import Team, asked_file, fresh_clone
from tests.attribution.workshop import work

NOW = datetime(2026, 2, 1, tzinfo=UTC)
EVE = Ed25519Signer.generate()


def a_noted_team(root: Path) -> Team:
    """Return a team in which ana's agents have worked, and the server has merged it as it is."""
    team = Team(root / "team", random.Random(3))
    team.begin()
    ana, shop = team.members[0], team.members[0].shop
    shop.tree = dict(team.trees[shop.head()])
    for _ in range(3):
        work(shop)
        ana.note(shop.head())
    team.exchange(ana)
    shop.git("push", "--quiet", "origin", "HEAD:main")
    team.server.tree = dict(shop.tree)
    fresh_clone(team, "fresh")
    return team


def a_clone(team: Team, root: Path) -> Path:
    """Return a clone of its own, to do harm in."""
    return Path(shutil.copytree(team.root / "fresh", root / "clone", symlinks=True))


def told(clone: Path, file: File, lines: Lines | None = None) -> Blame:
    """Return what notes say about a file of a clone."""
    asked = asked_file(clone, file)
    source = NoteSource.find(asked)
    assert source is not None
    names = find_names(asked, lines)
    return source.fill(blank_blame(asked, lines, names), asked, names)


def an_agents_line(team: Team) -> tuple[File, int]:
    """Return a line that an agent wrote."""
    return next(
        (file, number)
        for file in team.server.tree.values()
        for number, line in enumerate(file.lines, 1)
        if line.run != HUMAN and line.text.strip()
    )


def a_persons_line(team: Team) -> tuple[File, int]:
    """Return a line that a person wrote, and nobody else has one like it."""
    return next(
        (file, number)
        for file in team.server.tree.values()
        for number, line in enumerate(file.lines, 1)
        if line.run == HUMAN and line.text.startswith("def ")
    )


def add(clone: Path, kind: NoteKind, key: str, lines: Iterable[str]) -> None:
    """Add lines to a note, as anybody can who may push."""
    NoteRepository(clone, ENVIRONMENT).add_notes(kind, {key: lines}, at=NOW)


def claim(
    clone: Path,
    file: File,
    number: int,
    signer: Ed25519Signer,
    *,
    call: CallId | None = None,
    run: RunId | None = None,
) -> NoteRecord:
    """Return a record in which somebody claims a line of the commit that brought it."""
    names = find_names(asked_file(clone, file))
    origin = names.origins[number]
    blob = NoteRepository(clone, ENVIRONMENT).blobs([(origin.commit.id, origin.path)])
    claimed = NotedCall(call=call or new_call_id(NOW), tool="write_file", at=1, lines=str(origin.line))
    by = NotedRun(run=run or new_run_id(NOW), agent="mallory", human="user:eve", calls=(claimed,))
    record = NoteRecord(
        path=origin.path, blob=blob[origin.commit.id, origin.path], key=signer.public_key, at=NOW, by=(by,)
    )
    add(clone, NoteKind.LINES, origin.commit.id, [write_record(record, signer)])
    return record
