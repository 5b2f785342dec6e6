"""Our lines in somebody's hook: put in once, taken out without a trace."""

import os
import subprocess
from pathlib import Path

import pytest

from batonpass.cli.git.commit_hook import block, install, remove

WORDS = ["git", "trailer"]
THEIRS = "#!/bin/bash\necho theirs\nexit 0\n"
PYTHON = "#!/usr/bin/env python3\nprint('theirs')\n"


def a_hook(hooks: Path, text: str, mode: int = 0o755) -> Path:
    hooks.mkdir(exist_ok=True)
    path = hooks / "commit-msg"
    path.write_text(text, encoding="utf-8")
    path.chmod(mode)
    return path


def ran(path: Path) -> str:
    """Run a hook where `batonpass` only says what it was called with; return what was printed."""
    tools = path.parent.parent / "tools"
    tools.mkdir(exist_ok=True)
    tool = tools / "batonpass"
    tool.write_text('#!/bin/sh\necho "batonpass $*"\n', encoding="utf-8")
    tool.chmod(0o755)
    search = f"{tools}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run([path, "MSG"], env={"PATH": search}, capture_output=True, text=True, check=True)
    return done.stdout


def test_a_new_hook_runs_ours(tmp_path: Path) -> None:
    """Where there was no hook there is one that git can run."""
    path = install(tmp_path / "hooks", WORDS, None)

    assert "batonpass git trailer MSG\n" == ran(path)


def test_installing_twice_is_installing_once(tmp_path: Path) -> None:
    """Our lines never pile up, and the latest arguments count."""
    once = install(tmp_path / "hooks", ["--ledger", "it's here", *WORDS], None).read_text(encoding="utf-8")
    install(tmp_path / "hooks", WORDS, None)
    path = install(tmp_path / "hooks", ["--ledger", "it's here", *WORDS], None)

    assert (once, "batonpass --ledger it's here git trailer MSG\n") == (path.read_text(encoding="utf-8"), ran(path))


@pytest.mark.parametrize("theirs", [THEIRS, "#!/bin/sh", "#!/usr/bin/env bash\nexec echo theirs\n"])
def test_a_shell_hook_is_kept_and_ours_runs_first(tmp_path: Path, theirs: str) -> None:
    """A script that ends with exit or exec would never reach lines at its end."""
    a_hook(tmp_path / "hooks", theirs)
    path = install(tmp_path / "hooks", WORDS, None)

    expected = ["batonpass git trailer MSG", *(["theirs"] if "theirs" in theirs else [])]
    assert expected == ran(path).splitlines()


@pytest.mark.parametrize(
    "theirs",
    [pytest.param(THEIRS, id="a shell script"), pytest.param(PYTHON, id="another language")],
)
def test_undoing_leaves_what_was_there(tmp_path: Path, theirs: str) -> None:
    """Taking our lines out gives back the hook, byte for byte."""
    a_hook(tmp_path / "hooks", theirs)
    install(tmp_path / "hooks", WORDS, None)
    removed = remove(tmp_path / "hooks")

    assert (True, theirs, ["commit-msg"]) == (
        removed,
        (tmp_path / "hooks" / "commit-msg").read_text(encoding="utf-8"),
        [path.name for path in (tmp_path / "hooks").iterdir()],
    )


def test_undoing_a_hook_of_ours_removes_it(tmp_path: Path) -> None:
    """Where we made the hook, nothing stays; and what is not ours is not touched."""
    install(tmp_path / "hooks", WORDS, None)

    assert [True, False, []] == [
        remove(tmp_path / "hooks"),
        remove(tmp_path / "hooks"),
        [*(tmp_path / "hooks").iterdir()],
    ]


def test_somebodys_hook_is_not_ours_to_undo(tmp_path: Path) -> None:
    """A hook without our lines stays as it is."""
    path = a_hook(tmp_path / "hooks", THEIRS)

    assert (False, THEIRS) == (remove(tmp_path / "hooks"), path.read_text(encoding="utf-8"))


def test_another_language_is_set_aside_and_called(tmp_path: Path) -> None:
    """A hook that is no shell script is not edited; ours calls it, and passes on its verdict."""
    a_hook(tmp_path / "hooks", "#!/bin/cat\n")
    path = install(tmp_path / "hooks", WORDS, None)
    aside = tmp_path / "hooks" / "commit-msg.before-batonpass"
    aside.write_text("#!/bin/false\n", encoding="utf-8")

    with pytest.raises(subprocess.CalledProcessError):
        ran(path)


def test_a_link_is_set_aside(tmp_path: Path) -> None:
    """A hook that is a link leads to somebody's file, which is never edited."""
    theirs = a_hook(tmp_path / "shared", THEIRS)
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    (hooks / "commit-msg").symlink_to(theirs)
    path = install(hooks, WORDS, None)

    assert (["batonpass git trailer MSG", "theirs"], THEIRS) == (
        ran(path).splitlines(),
        theirs.read_text(encoding="utf-8"),
    )
    assert (True, theirs) == (remove(hooks), (hooks / "commit-msg").readlink())


def test_a_hook_that_is_switched_off_stays_off(tmp_path: Path) -> None:
    """Git does not run a file without the permission; neither do we bring it to life."""
    a_hook(tmp_path / "hooks", THEIRS, 0o644)
    path = install(tmp_path / "hooks", WORDS, None)

    assert "batonpass git trailer MSG\n" == ran(path)


def test_bytes_that_are_no_text_are_set_aside(tmp_path: Path) -> None:
    """A compiled hook is not read as a script."""
    path = a_hook(tmp_path / "hooks", "")
    path.write_bytes(b"\x7fELF\xff\xfe")
    install(tmp_path / "hooks", WORDS, None)

    assert b"\x7fELF\xff\xfe" == (tmp_path / "hooks" / "commit-msg.before-batonpass").read_bytes()


def test_nothing_that_was_set_aside_is_lost(tmp_path: Path) -> None:
    """A second foreign hook does not overwrite the first."""
    a_hook(tmp_path / "hooks", PYTHON)
    install(tmp_path / "hooks", WORDS, None)
    a_hook(tmp_path / "hooks", "#!/usr/bin/perl\n")

    with pytest.raises(FileExistsError):
        install(tmp_path / "hooks", WORDS, None)


def test_a_failure_of_ours_does_not_fail_the_hook(tmp_path: Path) -> None:
    """Where `batonpass` is not there any more, the commit goes on and says so."""
    path = install(tmp_path / "hooks", WORDS, str(tmp_path / "gone"))
    done = subprocess.run(
        ["/bin/sh", path, "MSG"], env={"PATH": "/nowhere"}, capture_output=True, text=True, check=False
    )

    assert (0, True) == (done.returncode, "continues without our trailers" in done.stderr)


def test_a_program_that_is_not_on_the_path_is_found(tmp_path: Path) -> None:
    """Editors start git without the environment in which we were installed."""
    program = tmp_path / "odd 'place" / "batonpass"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\necho "found $*"\n', encoding="utf-8")
    program.chmod(0o755)
    path = install(tmp_path / "hooks", WORDS, str(program))
    done = subprocess.run(
        ["/bin/sh", path, "MSG"], env={"PATH": "/nowhere"}, capture_output=True, text=True, check=False
    )

    assert "found git trailer MSG\n" == done.stdout


def test_our_lines_are_marked() -> None:
    """Whoever reads the hook knows whose lines these are and how to get rid of them."""
    first, *_, last = block(WORDS, None).splitlines()

    assert (True, True) == ("batonpass git install --undo" in first, last.startswith("# <<< batonpass"))
