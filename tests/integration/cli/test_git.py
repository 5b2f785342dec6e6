"""The seal in every commit: a real repository, a real remote, and somebody who deletes."""

import os
import shutil
import sys
from pathlib import Path

import pytest

from batonpass.demo.tampered_copy import delete_tree
from batonpass.ledger.note import from_trailer
from batonpass.model.base.ids import RunId
from batonpass.relay import recording_of
from tests.integration.cli.clones import Clone, a_clone
from tests.integration.cli.shell import batonpass_in
from tests.unit.cli.desk import record_in, record_tree

pytestmark = [pytest.mark.skipif(shutil.which("git") is None, reason="needs git"), pytest.mark.slow]

TRAILER = "Batonpass-Seal"


@pytest.fixture
def clone(tmp_path: Path) -> Clone:
    return a_clone(tmp_path)


@pytest.fixture
def sealing(clone: Clone) -> Clone:
    """Give a repository with a ledger and our hook."""
    record_in(clone.folder)
    assert 0 == clone.batonpass("git", "install").returncode
    return clone


def trailers(message: str) -> list[str]:
    return [line.partition(": ")[2] for line in message.splitlines() if line.startswith(TRAILER)]


def test_a_commit_carries_the_seal(sealing: Clone) -> None:
    """The trailer of a commit is the ledger's newest seal, and the ledger itself stays out of the commit."""
    (trailer,) = trailers(sealing.commit("Fix rounding"))
    note = sealing.batonpass("ledger", "seal").stdout

    assert note == from_trailer(trailer)
    assert "" == sealing.git("status", "--porcelain").stdout


def test_what_was_deleted_is_found_with_the_remotes_help(sealing: Clone) -> None:
    """Whole trees deleted, local history rewritten: the seal that was pushed still tells."""
    with sealing.desk.relay() as relay:
        hidden = record_tree(recording_of(relay)).run.id
    sealing.commit("Fix rounding")
    assert 0 == sealing.git("push", "--quiet", "origin", "main").returncode
    honest = sealing.batonpass("ledger", "verify", "--seal", "git")
    delete_tree(sealing.desk.ledger, RunId(hidden))
    sealing.git("commit", "--allow-empty", "--amend", "--no-verify", "-m", "Fix rounding")
    without = sealing.batonpass("ledger", "verify")
    found = sealing.batonpass("ledger", "verify", "--seal", "git")

    assert [] == trailers(sealing.message())
    assert (0, 0, 1) == (honest.returncode, without.returncode, found.returncode)
    assert "1 seal matches: nothing that was sealed is gone" in honest.stdout
    assert "[verify.seal]" in found.stderr


def test_a_commit_before_anything_was_recorded_has_no_seal(clone: Clone) -> None:
    """Without a ledger the hook is silent."""
    clone.batonpass("git", "install")
    done = clone.git("commit", "--allow-empty", "-m", "Begin")

    assert (0, "", []) == (done.returncode, done.stderr, trailers(clone.message()))
    assert not clone.desk.ledger.exists()


def test_amending_replaces_the_seal(sealing: Clone) -> None:
    """A message never collects seals."""
    first = trailers(sealing.commit("Fix rounding"))
    with sealing.desk.relay() as relay:
        record_tree(recording_of(relay))
    second = trailers(sealing.commit("Fix rounding, again", "--amend"))

    assert (1, 1, True) == (len(first), len(second), first != second)


def test_a_message_keeps_its_other_trailers_and_dashes(sealing: Clone) -> None:
    """The seal joins the trailers that are there; three dashes are just a line."""
    message = sealing.commit("Fix rounding\n\n---\nbody\n\nReviewed-by: bob")

    assert ["Fix rounding", "", "---", "body", "", "Reviewed-by: bob"] == message.splitlines()[:6]
    assert message.splitlines()[6].startswith(TRAILER)


@pytest.mark.parametrize("arguments", [[], ["--verbose"]])
def test_an_empty_message_still_stops_a_commit(sealing: Clone, arguments: list[str]) -> None:
    """Whoever leaves the editor without a word has changed their mind."""
    (sealing.folder / "a").write_text("a", encoding="utf-8")
    sealing.git("add", "a")
    done = sealing.git("commit", *arguments, GIT_EDITOR="true")

    assert (1, True) == (done.returncode, "empty commit message" in done.stderr)


def test_a_failure_of_ours_does_not_stop_a_commit(sealing: Clone) -> None:
    """A key that cannot be used leaves the commit without a seal, and says why."""
    (sealing.desk.ledger.parent / "relay.key").chmod(0o644)
    done = sealing.git("commit", "--allow-empty", "-m", "Fix rounding")

    assert (0, []) == (done.returncode, trailers(sealing.message()))
    assert "[key.refused]" in done.stderr
    assert "continues without a seal" in done.stderr


def test_the_newest_seal_can_be_taken_without_sealing(clone: Clone) -> None:
    """With `--newest-seal` commits carry what somebody else sealed, or nothing."""
    record_in(clone.folder)
    clone.batonpass("git", "install", "--newest-seal")
    before = trailers(clone.commit("Begin"))
    note = clone.batonpass("ledger", "seal").stdout
    with clone.desk.relay() as relay:
        record_tree(recording_of(relay))

    assert ([], [note]) == (before, [from_trailer(line) for line in trailers(clone.commit("Fix rounding"))])


def test_the_seal_can_be_left_out(clone: Clone) -> None:
    """With `--no-seal` commits carry none, whoever sealed."""
    record_in(clone.folder)
    done = clone.batonpass("git", "install", "--no-seal")
    clone.batonpass("ledger", "seal")

    assert ([], False) == (trailers(clone.commit("Fix rounding")), "Seal" in done.stderr)


def test_a_shared_directory_of_hooks_is_respected(clone: Clone) -> None:
    """`core.hooksPath` decides where the hook goes, and a hook that is committed has no path of this machine in it."""
    record_in(clone.folder)
    clone.git("config", "core.hooksPath", ".githooks")
    clone.batonpass("git", "install")
    text = (clone.folder / ".githooks" / "commit-msg").read_text(encoding="utf-8")

    assert (1, False) == (len(trailers(clone.commit("Fix rounding"))), str(Path(sys.executable).parent) in text)


def test_a_hook_that_refuses_still_refuses(clone: Clone) -> None:
    """Somebody's own check of messages keeps its say, and undoing leaves it alone."""
    record_in(clone.folder)
    hook = clone.folder / ".git" / "hooks" / "commit-msg"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\nexit 7\n", encoding="utf-8")
    hook.chmod(0o755)
    clone.batonpass("git", "install")
    refused = clone.git("commit", "--allow-empty", "-m", "Fix rounding").returncode
    undone = clone.batonpass("git", "install", "--undo")

    assert (1, 0, "#!/bin/sh\nexit 7\n") == (refused, undone.returncode, hook.read_text(encoding="utf-8"))
    assert 1 == clone.batonpass("git", "install", "--undo").returncode


def test_a_hook_knows_which_ledger(clone: Clone, tmp_path: Path) -> None:
    """A ledger that was named at the installation is the one that is sealed; a password is never written down."""
    desk = record_in(tmp_path / "elsewhere")
    clone.batonpass("git", "install", "--ledger", os.path.relpath(desk.ledger, clone.folder))
    secret = clone.batonpass("git", "install", "--ledger", "postgresql://ana:secret@db.example/ledger")

    assert (1, 2) == (len(trailers(clone.commit("Fix rounding"))), secret.returncode)
    assert "secret" not in (clone.folder / ".git" / "hooks" / "commit-msg").read_text(encoding="utf-8")


def test_seals_of_other_ledgers_are_left_out_and_counted(sealing: Clone, tmp_path: Path) -> None:
    """Colleagues have ledgers of their own; a seal that cannot be read is counted too."""
    sealing.commit("Fix rounding")
    other = record_in(tmp_path / "other")
    foreign = other.words("ledger", "seal").split("\n")
    line = f"{foreign[0]} {foreign[1]} {foreign[2]} {foreign[4].split()[-1]}"
    sealing.git("commit", "--allow-empty", "--no-verify", "-m", f"Theirs\n\n{TRAILER}: {line}")
    sealing.git("commit", "--allow-empty", "--no-verify", "-m", f"Odd\n\n{TRAILER}: what")
    done = sealing.batonpass("ledger", "verify", "--seal", "git")

    assert (0, "left out: 1 seals of other ledgers and 1 that cannot be read\n") == (done.returncode, done.stderr)


def test_a_ledger_that_was_replaced_is_found(sealing: Clone) -> None:
    """If every seal is of another ledger, somebody put another ledger in its place."""
    sealing.commit("Fix rounding")
    shutil.rmtree(sealing.desk.ledger.parent)
    record_in(sealing.folder)
    done = sealing.batonpass("ledger", "verify", "--seal", "git", "--json")

    assert (1, True) == (done.returncode, "verify.seal" in done.stdout)


def test_commits_without_seals_are_said(clone: Clone) -> None:
    """Asking git where no commit carries a seal is a no, with how to begin; so is asking outside a repository."""
    record_in(clone.folder)
    clone.commit("Begin")
    done = clone.batonpass("ledger", "verify", "--seal", "git")
    outside = batonpass_in(clone.tools, "git", "install")

    assert (1, True) == (done.returncode, "run `batonpass git install` and commit" in done.stderr)
    assert (1, True) == (outside.returncode, "not a git repository" in outside.stderr)
