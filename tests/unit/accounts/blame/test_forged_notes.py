"""Notes by somebody who may push and means harm: in another's name, over another's word, or only to cost time."""

import time
from pathlib import Path

import pytest
from msgspec.structs import replace

from batonpass.accounts.blame.blame_values import HowKnown
from batonpass.accounts.blame.file_blame import Lines, find_names
from batonpass.accounts.blame.note_blame import NoteSource
from batonpass.errors import InvalidValueError
from batonpass.model.base.ids import new_call_id, new_run_id
from batonpass.notes.call_proof import write_key_proof
from batonpass.notes.line_prints import write_prints
from batonpass.notes.line_ranges import LineRanges
from batonpass.notes.note_keys import path_key, pointer, proof_key
from batonpass.notes.note_record import LineEdits, NotedCall, NotedRun, NoteRecord, read_record, write_record
from batonpass.notes.note_store import NoteKind, NoteRepository
from batonpass.signing.ed25519 import Ed25519Signer
from tests.attribution.generator import File
from tests.attribution.lines import HUMAN
from tests.attribution.repository import ENVIRONMENT, git
from tests.attribution.team import Team, asked_file
from tests.unit.accounts.blame.noted_team import (
    EVE,
    NOW,
    a_clone,
    a_noted_team,
    a_persons_line,
    add,
    an_agents_line,
    claim,
    told,
)

AS_EVE = ("-c", "user.name=eve", "-c", "user.email=eve@example.org")


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Team:
    """Return a team in which ana's agents have worked, and the server has merged it as it is."""
    return a_noted_team(tmp_path_factory.mktemp("team"))


@pytest.fixture
def clone(team: Team, tmp_path: Path) -> Path:
    """Return a clone of its own, to do harm in."""
    return a_clone(team, tmp_path)


def trusted_ben(team: Team, clone: Path) -> Ed25519Signer:
    """Return the key of a member of the team, with the proof that it is one."""
    ben = team.members[1]
    signer = ben.scribe.identity.signer
    assert isinstance(signer, Ed25519Signer)
    with ben.scribe.store.view() as view:
        proof = write_key_proof(view)
    repository = NoteRepository(clone, ENVIRONMENT)
    add(clone, NoteKind.PROOFS, proof_key(repository, signer.public_key, repository.object_format()), proof)
    return signer


def both_in_one_file(team: Team) -> tuple[File, int, int]:
    """Return a file with a line of an agent and a line of a person."""
    return next(
        (file, agents[0], persons[0])
        for file in team.server.tree.values()
        if (agents := [n for n, line in enumerate(file.lines, 1) if line.run != HUMAN and line.text.strip()])
        and (persons := [n for n, line in enumerate(file.lines, 1) if line.run == HUMAN and "def " in line.text])
    )


def forget_proof(clone: Path, *names: str) -> None:
    """Take the proofs of calls and runs away, as anybody can who may push."""
    repository = NoteRepository(clone, ENVIRONMENT)
    kind, like = NoteKind.PROOFS, repository.object_format()
    refs = repository.note_refs(kind)
    kept = {key: lines for commit in refs.values() for key, lines in repository.all_notes(kind, commit).lines.items()}
    for name in names:
        del kept[proof_key(repository, name, like)]
    for ref, commit in refs.items():
        git(clone, "update-ref", "-d", ref, commit)
    repository.replace_notes(kind, kept, expected=None, at=NOW)


@pytest.mark.parametrize("who", ["a stranger", "another member"])
def test_nobody_speaks_in_the_name_of_anothers_call(team: Team, clone: Path, who: str) -> None:
    """A record that gives a person's line to a call of ana's is not shown as signed by ana's relay."""
    file, agents, persons = both_in_one_file(team)
    before = told(clone, file)
    (call,) = before.lines[agents - 1].calls
    run = before.lines[agents - 1].run
    assert run is not None
    signer = EVE if who == "a stranger" else trusted_ben(team, clone)
    forget_proof(clone, call)  # else what the receipt opens would contradict
    before = told(clone, file)
    claim(clone, file, persons, signer, call=call, run=run)
    after = told(clone, file)

    assert before.lines[agents - 1] == after.lines[agents - 1]
    assert before.makers[call] == after.makers[call]
    makers = [after.makers[one].noted for one in after.lines[persons - 1].calls]
    assert "user:ana" not in [None if one is None else one.signer for one in makers]
    alone = told(clone, file, Lines(first=persons, last=persons))
    assert [] == [one for one in alone.makers.values() if one.noted is not None and one.noted.signer == "user:ana"]


def test_a_strangers_note_about_a_squash_hides_nothing(team: Team, clone: Path) -> None:
    """The note of a commit that repeats others is not over what trusted notes say about those."""
    file, number = an_agents_line(team)
    first = git(clone, "rev-list", "--max-parents=0", "HEAD").strip()
    tree = git(clone, "rev-parse", "HEAD^{tree}").strip()
    squashed = git(clone, *AS_EVE, "commit-tree", "-p", first, "-m", "all of it (#1)", tree).strip()
    git(clone, "reset", "--quiet", "--hard", squashed)
    before = told(clone, file)
    assert before.lines[number - 1].run is not None
    claim(clone, file, number, EVE)
    after = told(clone, file)

    assert before.lines[number - 1] == after.lines[number - 1]
    assert "mallory" not in str(told(clone, file, Lines(first=number, last=number)))


def test_a_stranger_leads_nobody_astray_between_blobs(team: Team, clone: Path) -> None:
    """A stranger's record about a file leaves what trusted ones know of a person's lines as it is."""
    file, _, persons = both_in_one_file(team)
    first = git(clone, "rev-list", "--max-parents=0", "HEAD").strip()
    tree = git(clone, "rev-parse", "HEAD^{tree}").strip()
    git(clone, "reset", "--quiet", "--hard", git(clone, *AS_EVE, "commit-tree", "-p", first, "-m", "x", tree).strip())
    repository = NoteRepository(clone, ENVIRONMENT)
    before = told(clone, file)
    blob = repository.head_with(file.path)[1] or ""
    evil = NoteRecord(path=file.path, blob=blob, was="e" * 40, key=EVE.public_key, at=NOW)
    add(clone, NoteKind.LINES, "c" * 40, [write_record(evil, EVE)])
    key = path_key(repository, file.path, repository.object_format())
    add(clone, NoteKind.LINES, key, [pointer(2**31, "c" * 40)])

    assert before.lines == told(clone, file).lines
    assert not before.lines[persons - 1].calls


def test_a_line_is_claimed_once_by_one_record(team: Team, clone: Path) -> None:
    """Ranges that overlap are refused: who repeats a range a thousand times makes every line cost a thousand claims."""
    file, number = a_persons_line(team)
    record = claim(clone, file, number, EVE)
    calls = tuple(NotedCall(call=new_call_id(NOW), tool="x", at=1, lines=lines) for lines in ("1-9", "9-20"))
    for by in ((replace(record.by[0], calls=calls),), tuple(replace(record.by[0], calls=(one,)) for one in calls)):
        with pytest.raises(InvalidValueError, match="claimed twice"):
            read_record(write_record(replace(record, by=by), EVE))


def test_edits_without_end_cost_little() -> None:
    """Ten thousand edits and as many lines that know better than git are walked through once."""
    edits = tuple(LineEdits(before, 1, 1) for before in range(0, 12_000, 2))
    call = NotedCall(call=new_call_id(NOW), tool="x", at=1, lines="30000-9999999")
    run = NotedRun(run=new_run_id(NOW), agent="mallory", human="user:eve", calls=(call,))
    record = NoteRecord(path="a.py", blob="a" * 40, key=EVE.public_key, at=NOW, by=(run,), edits=edits)
    began = time.process_time()

    assert 20_000 == len(read_record(write_record(record, EVE)).overridden)
    assert time.process_time() - began < 1


def test_equal_prints_without_end_cost_little(team: Team, clone: Path) -> None:
    """A stranger's records in which every line looks like a line of the file take no time to speak of."""
    file, number = an_agents_line(team)
    first = git(clone, "rev-list", "--max-parents=0", "HEAD").strip()
    tree = git(clone, "rev-parse", "HEAD^{tree}").strip()
    git(clone, "reset", "--quiet", "--hard", git(clone, *AS_EVE, "commit-tree", "-p", first, "-m", "x", tree).strip())
    repository = NoteRepository(clone, ENVIRONMENT)
    key = path_key(repository, file.path, repository.object_format())
    prints = write_prints([""] * 6_000, LineRanges([(2, 5999)]))
    before = told(clone, file)
    for commit in (f"{number:040x}" for number in range(8)):
        lines = []
        for _ in range(8):
            call = NotedCall(call=new_call_id(NOW), tool="x", at=1, lines="2-5999")
            run = NotedRun(run=new_run_id(NOW), agent="mallory", human="user:eve", calls=(call,))
            record = NoteRecord(path=file.path, blob="a" * 40, key=EVE.public_key, at=NOW, by=(run,), prints=prints)
            lines.append(write_record(record, EVE))
        add(clone, NoteKind.LINES, commit, lines)
        add(clone, NoteKind.LINES, key, [pointer(2**31, commit)])
    began = time.process_time()
    after = told(clone, file)

    assert time.process_time() - began < 3
    assert before.lines[number - 1] == after.lines[number - 1]


def test_a_merge_does_not_make_our_own_note_unreadable(team: Team, clone: Path) -> None:
    """A note that grew too large by what a remote has stays as it was here."""
    file, number = an_agents_line(team)
    commit = find_names(asked_file(clone, file)).origins[number].commit.id
    repository = NoteRepository(clone, ENVIRONMENT)
    junk = "".join(f"{count:08d} {'x' * 90}\n" for count in range(5_200)).encode()
    blob = git(clone, "hash-object", "-w", "--stdin", given=junk).strip()
    tree = git(clone, "mktree", given=f"100644 blob {blob}\t{commit}\n".encode()).strip()
    theirs = git(clone, *AS_EVE, "commit-tree", "-m", "junk", tree).strip()
    add(clone, NoteKind.LINES, commit, [f"{'y' * 90} {count}" for count in range(400)])
    before = told(clone, file).lines[number - 1]
    repository.merge_notes(NoteKind.LINES, theirs, at=NOW)

    assert before.run is not None
    assert before == told(clone, file).lines[number - 1]


def test_a_note_cannot_borrow_a_call_of_this_ledger(team: Team) -> None:
    """Where the ledger here knows a call, a stranger's note that names it is not shown as that call."""
    ana = team.members[0]
    file, agents, persons = both_in_one_file(team)
    root = ana.shop.root
    before = ana.blame(file)
    (call,) = before.lines[agents - 1].calls
    assert HowKnown.UNEXPLAINED is before.lines[persons - 1].known
    claim(root, file, persons, EVE, call=call, run=before.lines[agents - 1].run)
    asked = asked_file(root, file)
    source = NoteSource.find(asked)
    assert source is not None
    after = source.fill(before, asked, find_names(asked))

    assert call not in after.lines[persons - 1].calls
    assert before.makers[call] == after.makers[call]
