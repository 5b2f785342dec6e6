"""Git on a hostile repository: nothing that its configuration names is ever started."""

import os
import subprocess
from pathlib import Path

import pytest

from batonpass.attribution.git.file_git import Repository
from batonpass.attribution.git.git_process import GitProcess, GitSilentError
from tests.attribution.repository import ENVIRONMENT, git


@pytest.fixture
def trap(tmp_path: Path) -> tuple[Path, Path]:
    """Return a repository whose configuration names a program wherever it can, and what that program leaves behind."""
    sprung = tmp_path / "sprung"
    program = tmp_path / "trap.sh"
    program.write_text(f'#!/bin/sh\necho "$0 $*" >> {sprung}\ncat\n', encoding="utf-8")
    program.chmod(0o755)
    root = tmp_path / "hostile"
    root.mkdir()
    git(root, "init", "--quiet", "--initial-branch=main")
    (root / "a.py").write_text("one\ntwo\n", encoding="utf-8")
    (root / ".gitattributes").write_text("*.py diff=evil\n", encoding="utf-8")
    git(root, "add", ".")
    who = ("-c", "user.name=Eve", "-c", "user.email=eve@example.org")
    git(root, *who, "commit", "--quiet", "--message=one")
    (root / "a.py").write_text("one\nthree\n", encoding="utf-8")
    for name in ("post-checkout", "post-index-change", "reference-transaction", "fsmonitor-watchman"):
        (root / ".git" / "hooks").mkdir(exist_ok=True)
        (root / ".git" / "hooks" / name).symlink_to(program)
    for setting in (
        *("core.fsmonitor", "core.pager", "core.sshCommand", "core.editor", "diff.external", "gpg.program"),
        *("diff.evil.textconv", "diff.evil.command", "pager.blame", "pager.diff", "pager.log"),
    ):
        git(root, "config", setting, str(program))
    git(root, "config", "log.showSignature", "true")
    return root, sprung


def test_nothing_that_a_repository_names_is_started(trap: tuple[Path, Path]) -> None:
    """Neither its file monitor, text conversion, external diff, pager nor a hook runs, whatever is asked."""
    root, sprung = trap
    repository = Repository(root, ENVIRONMENT)
    head = repository.head() or ""

    repository.origins(head, "a.py")
    repository.diff(head, None)
    repository.log(["a.py"], since=None, most=5)
    repository.versions("a.py", most=5)
    process = GitProcess(root=root, environment=ENVIRONMENT)
    process.text("update-ref", "refs/notes/here", head)
    process.text("status", "--porcelain")

    assert not sprung.exists()


def test_the_trap_is_one(trap: tuple[Path, Path]) -> None:
    """The same questions asked plainly do start what the repository names."""
    root, sprung = trap

    git(root, "diff")

    assert sprung.exists()


def test_variables_of_a_hook_count_only_in_a_hook(trap: tuple[Path, Path], tmp_path: Path) -> None:
    """A variable that names another repository is passed on only where a hook is told so."""
    root, _ = trap
    elsewhere = {**ENVIRONMENT, "GIT_DIR": str(tmp_path / "nowhere")}

    assert "main" == GitProcess(root=root, environment=elsewhere).text("symbolic-ref", "--short", "HEAD").strip()
    with pytest.raises(GitSilentError):
        GitProcess(root=root, environment=elsewhere, in_hook=True).text("symbolic-ref", "--short", "HEAD")


def test_a_remote_is_spoken_to_only_where_that_is_said(trap: tuple[Path, Path], tmp_path: Path) -> None:
    """Fetching is refused by a process that is not online."""
    root, _ = trap
    bare = tmp_path / "bare.git"
    subprocess.run(["git", "init", "--quiet", "--bare", str(bare)], check=True, env=ENVIRONMENT, cwd=os.sep)
    git(root, "push", "--quiet", str(bare), "main")

    with pytest.raises(GitSilentError):
        GitProcess(root=root, environment=ENVIRONMENT).text("ls-remote", bare.as_uri())
    assert "refs/heads/main" in GitProcess(root=root, environment=ENVIRONMENT, online=True).text(
        "ls-remote", bare.as_uri()
    )
