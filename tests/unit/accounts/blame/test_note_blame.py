"""Blame from notes in a clone without a ledger, and notes that somebody made up."""

import json
import time
from pathlib import Path

import pytest
from msgspec.structs import replace

from batonpass.accounts.blame.blame_text import Blame
from batonpass.accounts.blame.blame_values import HowKnown
from batonpass.accounts.blame.file_blame import Lines, find_names
from batonpass.accounts.blame.hearsay_blame import HearsayTellers
from batonpass.accounts.blame.note_blame import blank_blame
from batonpass.attribution.changes.change import FileChange, Hunk, digest_of
from batonpass.attribution.changes.change_document import encode_change
from batonpass.attribution.git.git_history import CommittedLine
from batonpass.errors import InvalidValueError
from batonpass.model.base.ids import RECEIPT, CallId, ReceiptId, RunId, StreamId, new_id
from batonpass.model.base.kinds import Mode
from batonpass.model.bodies.body import Changed, ToolCompleted
from batonpass.model.ledger.content import new_content
from batonpass.model.ledger.receipt import Receipt
from batonpass.notes.call_proof import write_key_proof
from batonpass.notes.note_keys import path_key, pointer, proof_key
from batonpass.notes.note_record import LineEdits, NoteRecord, read_record, write_record
from batonpass.notes.note_store import LARGEST_NOTE, NoteKind, NoteRepository
from batonpass.notes.trusted_keys import KEYS_FILE
from batonpass.signing.ed25519 import Ed25519Signer
from batonpass.wire.canonical import encode_typed, write_base64
from batonpass.wire.receipt_codec import encode_receipt, signing_bytes
from tests.attribution.generator import File
from tests.attribution.lines import HUMAN
from tests.attribution.repository import ENVIRONMENT, git
from tests.attribution.team import Member, Team, asked_file
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


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Team:
    """Return a team in which ana's agents have worked, and the server has merged it as it is."""
    return a_noted_team(tmp_path_factory.mktemp("team"))


@pytest.fixture
def clone(team: Team, tmp_path: Path) -> Path:
    """Return a clone of its own, to do harm in."""
    return a_clone(team, tmp_path)


def test_a_clone_names_the_right_run_and_whose_relay_says_so(team: Team) -> None:
    """It is signed by ana's relay, and a receipt opens the line, or it says that none does."""
    file, number = an_agents_line(team)
    blame = told(team.root / "fresh", file, Lines(first=number, last=number))
    (line,) = blame.lines
    (maker,) = blame.makers.values()
    ana = team.members[0]

    assert line.known is HowKnown.RECORDED
    assert ana.runs[file.lines[number - 1].run] == line.run
    assert maker.noted is not None
    assert ("user:ana", True, None) == (maker.noted.signer, maker.noted.counts, maker.noted.problem)
    assert "signed by ana's relay" in str(blame)


def test_the_whole_file_and_one_line_say_the_same(team: Team) -> None:
    """Asking for a line is answered with the lines around it in view."""
    file, number = an_agents_line(team)
    clone = team.root / "fresh"

    assert told(clone, file).lines[number - 1] == told(clone, file, Lines(first=number, last=number)).lines[0]


def test_a_claim_by_a_strangers_key_is_hearsay(team: Team, clone: Path) -> None:
    """It is shown as that where nobody else claims the line, and not at all where somebody does."""
    file, number = a_persons_line(team)
    claim(clone, file, number, EVE)
    agents, other = an_agents_line(team)
    claim(clone, agents, other, EVE)

    blame = told(clone, file, Lines(first=number, last=number))
    (maker,) = blame.makers.values()
    assert (True, True) == (maker.is_hearsay, "hearsay: a note says so" in str(blame))
    assert "mallory" not in str(told(clone, agents, Lines(first=other, last=other)))


def test_what_another_tool_says_is_never_over_a_signed_note(team: Team, clone: Path) -> None:
    """git-ai claims two lines: one that a signed note explains stays as it is, and the other is told as hearsay."""
    agents, number = an_agents_line(team)
    persons, other = a_persons_line(team)
    before, heard = told(clone, agents, Lines(first=number, last=number)), list[Blame]()
    for file, place in ((agents, number), (persons, other)):
        origin = find_names(asked_file(clone, file)).origins[place]
        who = ("-c", "user.name=Eve", "-c", "user.email=eve@example.com")
        git(clone, *who, "notes", "--ref=ai", "add", "-f", "-m", _authorship(origin), origin.commit.id)
        heard.append(heard_beside(clone, file, place))
    blame, unexplained = heard

    assert (before.lines, before.makers) == (blame.lines, blame.makers)
    assert (HowKnown.RECORDED, (), False) == (blame.lines[0].known, blame.lines[0].said, "windsurf" in str(blame))
    (line,) = unexplained.lines
    assert (HowKnown.UNEXPLAINED, ["windsurf"]) == (line.known, [one.by for one in line.said])


def _authorship(origin: CommittedLine) -> str:
    """Return a log of git-ai that gives a line to an agent."""
    agent = {"tool": "windsurf", "id": "6ef2", "model": "m"}
    metadata = {
        "schema_version": "authorship/3.0.0",
        "git_ai_version": "1.4.5",
        "base_commit_sha": origin.commit.id,
        "prompts": {},
        "humans": {},
        "sessions": {"s_c9883b05a2487d": {"agent_id": agent, "human_author": "eve@example.com"}},
    }
    row = f"{origin.path}\n  s_c9883b05a2487d::t_9f8e7d6c5b4a32 {origin.line}\n---\n"
    return row + json.dumps(metadata)


def heard_beside(clone: Path, file: File, number: int) -> Blame:
    """Return what notes say about a line, and then what other tools say."""
    asked, lines = asked_file(clone, file), Lines(first=number, last=number)
    tellers = HearsayTellers.find(asked)
    assert tellers is not None
    return tellers.fill(told(clone, file, lines), find_names(asked, lines))


def test_two_signed_claims_are_both_shown(team: Team, clone: Path) -> None:
    """Nobody decides between two people who are both trusted."""
    ben = team.members[1]
    signer = ben.scribe.identity.signer
    assert isinstance(signer, Ed25519Signer)
    with ben.scribe.store.view() as view:
        proof = write_key_proof(view)
    repository = NoteRepository(clone, ENVIRONMENT)
    add(clone, NoteKind.PROOFS, proof_key(repository, signer.public_key, repository.object_format()), proof)
    file, number = an_agents_line(team)
    claim(clone, file, number, signer)
    (line,) = told(clone, file, Lines(first=number, last=number)).lines

    assert (HowKnown.CANDIDATES, 2, None, False) == (line.known, len(line.calls), line.run, line.or_nobody)


def test_a_record_under_another_content_counts_for_nothing(team: Team, clone: Path) -> None:
    """What was signed about one file says nothing about another, nor about another state of it."""
    file, _ = an_agents_line(team)
    others = [one for one in team.server.tree.values() if one is not file]
    repository = NoteRepository(clone, ENVIRONMENT)
    every = repository.read_notes(NoteKind.LINES, repository.commits("HEAD~3..HEAD", most=9)).lines
    names = find_names(asked_file(clone, others[0]))
    for origin in {one.commit.id for one in names.origins.values()} - set(every):
        add(clone, NoteKind.LINES, origin, [line for lines in every.values() for line in lines])

    truth = {number for number, line in enumerate(others[0].lines, 1) if line.run != HUMAN}
    assert {line.number for line in told(clone, others[0]).lines if line.calls} <= truth


def test_an_opened_receipt_refuses_a_line_that_it_does_not_have(team: Team, clone: Path) -> None:
    """A relay that claims more than its receipts open is not followed, though its key is trusted."""
    ana = team.members[0]
    signer = ana.scribe.identity.signer
    assert isinstance(signer, Ed25519Signer)
    repository = NoteRepository(clone, ENVIRONMENT)
    like = repository.object_format()
    file, number = a_persons_line(team)
    record = claim(clone, file, number, signer)
    before = told(clone, file, Lines(first=number, last=number))
    call, run = record.by[0].calls[0].call, record.by[0].run
    assert before.lines[0].calls
    opened = _a_call_elsewhere(ana, file, run, call)
    add(clone, NoteKind.PROOFS, proof_key(repository, call, like), opened)
    after = told(clone, file, Lines(first=number, last=number))

    assert HowKnown.UNEXPLAINED is after.lines[0].known
    assert any("claims of notes were refused" in note for note in after.notes)


def _a_call_elsewhere(ana: Member, file: File, run: str, call: str) -> list[str]:
    """Return the proof of a call that changed something else, signed by ana's relay."""
    hunk = Hunk(0, 0, 1, 1, (), ("something else",))
    digest = digest_of(b"x")
    change = FileChange(call=call, run=run, at=NOW, path=file.path, after=digest, hunks=(hunk,))
    kept = new_content("change.1", encode_change(change), NOW, media_type="application/json")
    identity, working = ana.scribe.identity, Ed25519Signer.generate()
    body = ToolCompleted(run=RunId(run), call=CallId(call), changes=(Changed(change=kept.ref.id, after=digest),))
    receipt = Receipt(
        id=ReceiptId(new_id(RECEIPT, NOW)),
        stream=StreamId(run),
        seq=9,
        previous=digest,
        epoch=1,
        at=NOW,
        mode=Mode.OBSERVED,
        relay=identity.id,
        relay_key=identity.signer.key,
        cosigner=working.key,
        root=RunId(run),
        session=None,
        body=body,
        content={"change.1": kept.ref},
    )
    payload = encode_receipt(receipt)
    envelope = {
        "payload": write_base64(payload),
        "payloadType": "application/vnd.in-toto+json",
        "signatures": [
            {"keyid": one.key, "sig": write_base64(one.sign(signing_bytes(payload)))}
            for one in (identity.signer, working)
        ],
    }
    opened = {"body": write_base64(kept.body), "content": kept.ref.id, "salt": write_base64(kept.salt)}
    return [encode_typed({"dsse": envelope}).decode(), encode_typed(opened).decode()]


def test_ten_megabytes_of_notes_are_left_out(team: Team, clone: Path) -> None:
    """A note that is too large is not read, and the answer says so; the others still count."""
    file, number = an_agents_line(team)
    commit = find_names(asked_file(clone, file)).origins[number].commit.id
    large = git(clone, "hash-object", "-w", "--stdin", given=b"x" * (10 * 1024 * 1024)).strip()
    tree = git(clone, "mktree", given=f"100644 blob {large}\t{commit}\n".encode()).strip()
    who = ("-c", "user.name=eve", "-c", "user.email=eve@example.org")
    made = git(clone, *who, "commit-tree", "-m", "large", tree).strip()
    git(clone, "update-ref", NoteKind.LINES.tracked("eve"), made)
    began = time.process_time()
    blame = told(clone, file)

    assert blame.lines[number - 1].run is not None
    assert any("too large" in note for note in blame.notes)
    assert 10 * 1024 * 1024 > LARGEST_NOTE
    assert time.process_time() - began < 5


def test_a_circle_of_records_ends(team: Team, clone: Path) -> None:
    """Records that lead from blob to blob and back are followed once."""
    file, number = a_persons_line(team)
    repository = NoteRepository(clone, ENVIRONMENT)
    blob = repository.head_with(file.path)[1] or ""
    ana = team.members[0].scribe.identity.signer
    assert isinstance(ana, Ed25519Signer)
    lines = [
        write_record(NoteRecord(path=file.path, blob=one, was=other, key=ana.public_key, at=NOW, edits=edits), ana)
        for one, other, edits in ((blob, "b" * 40, (LineEdits(0, 0, 1),)), ("b" * 40, blob, (LineEdits(0, 1, 0),)))
    ]
    add(clone, NoteKind.LINES, "c" * 40, lines)
    key = path_key(repository, file.path, repository.object_format())
    add(clone, NoteKind.LINES, key, [pointer(2**31, "c" * 40), f"{pointer(2**31, 'd' * 40)} !", "nonsense", "1 2 3 4"])

    assert HowKnown.UNEXPLAINED is told(clone, file, Lines(first=number, last=number)).lines[0].known


def test_control_sequences_are_inert(team: Team, clone: Path) -> None:
    """No text of a note reaches a terminal as it is."""
    file, number = a_persons_line(team)
    record = claim(clone, file, number, EVE)
    evil = replace(record, by=(replace(record.by[0], subagent="\u202e\u2066x", program="a\u200bb"),))
    commit = find_names(asked_file(clone, file)).origins[number].commit.id
    add(clone, NoteKind.LINES, commit, [write_record(evil, EVE), "\x1b[2J\x1b]0;x\x07", f"x {'{' * 9999}"])
    shown = str(told(clone, file))

    assert evil.by == read_record(write_record(evil, EVE)).by
    assert not any(ord(letter) < 32 and letter != "\n" for letter in shown)
    assert not {"\u202e", "\u2066", "\u200b"} & set(shown)


def test_a_key_in_the_commit_itself_is_not_believed(team: Team, clone: Path) -> None:
    """Whoever adds a key to the branch that is asked about is not trusted for that."""
    file, number = a_persons_line(team)
    (clone / KEYS_FILE).write_text(f'[[relay]]\nowner = "user:eve"\nkey = "{EVE.public_key}"\n', encoding="utf-8")
    who = ("-c", "user.name=eve", "-c", "user.email=eve@example.org")
    git(clone, *who, "commit", "--quiet", "--all", "--message=trust me")
    claim(clone, file, number, EVE)
    (maker,) = told(clone, file, Lines(first=number, last=number)).makers.values()

    assert maker.is_hearsay


def test_a_file_that_is_none_is_refused(team: Team) -> None:
    """Lines that are not there are a mistake of whoever asks."""
    file, _ = an_agents_line(team)
    asked = asked_file(team.root / "fresh", file)

    for data, lines in ((None, None), (b"", Lines(first=1, last=1)), (file.data, Lines(first=9999, last=9999))):
        with pytest.raises(InvalidValueError):
            blank_blame(replace(asked, data=data), lines, find_names(asked))
    assert () == blank_blame(replace(asked, data=b"\0"), None, find_names(asked)).lines
