"""A repository that wants something run, read or made when somebody only looks at it in an editor or with blame."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from batonpass.cli.server.shown_repository import ShownRepository
from batonpass.relay import Relay, recording_of
from tests.unit.accounts.shop import ANA, BEFORE, NEW, Shop

PROGRAM = str(Path(sys.executable).with_name("batonpass"))
HOSTILE = "[run](command:evil) ![x](https://evil.example/x.png) <img src=x> https://evil.example"


class Trap:
    """A repository in which everything that git or we could start leaves a trace, and a ledger that came with it."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "repository"
        self.sprung = folder / "sprung"
        self.home = folder / "home"
        for place in (self.root, self.home):
            place.mkdir()
        self.program = folder / "evil.sh"
        self.program.write_text(f'#!/bin/sh\necho "$0 $*" >> {self.sprung}\ncat\n', encoding="utf-8")
        self.program.chmod(0o755)

    @property
    def environment(self) -> dict[str, str]:
        """Return the environment of a person who has set nothing."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("GIT_", "BATONPASS_"))}
        return {**kept, "HOME": str(self.home), "CLAUDE_CONFIG_DIR": str(self.home / ".claude")}

    def git(self, *arguments: str) -> None:
        """Run git there, as its author does."""
        who = ("-c", "user.name=Eve", "-c", "user.email=eve@example.org", "-c", "commit.gpgsign=false")
        subprocess.run(["git", *who, *arguments], cwd=self.root, check=True, capture_output=True, env=self.environment)

    def set(self) -> None:
        """Name the program wherever a repository can name one."""
        settings = (
            *("core.fsmonitor", "core.pager", "core.editor", "core.sshCommand", "core.askPass", "core.gitProxy"),
            *("diff.external", "diff.evil.textconv", "diff.evil.command", "gpg.program", "credential.helper"),
            *("filter.evil.clean", "filter.evil.smudge", "filter.evil.process", "merge.evil.driver"),
            *("pager.blame", "pager.diff", "pager.log", "pager.show", "alias.blame", "alias.log", "alias.diff"),
            *("remote.origin.uploadpack", "interactive.diffFilter", "sequence.editor"),
        )
        for name in settings:
            value = f"!{self.program}" if name.startswith("alias.") else str(self.program)
            self.git("config", name, value)
        for name, value in (
            ("log.showSignature", "true"),
            ("remote.origin.url", f"ext::{self.program}"),
            ("remote.origin.promisor", "true"),
            ("extensions.partialClone", "origin"),
            ("protocol.ext.allow", "always"),
            ("core.hooksPath", str(self.root / "hooks")),
        ):
            self.git("config", name, value)
        hooks = self.root / "hooks"
        hooks.mkdir()
        for name in (
            "post-checkout",
            "post-index-change",
            "reference-transaction",
            "fsmonitor-watchman",
            "pre-auto-gc",
        ):
            (hooks / name).symlink_to(self.program)
        for name in ("git", "less", "batonpass"):
            (self.root / name).symlink_to(self.program)

    def files(self) -> dict[str, tuple[int, int]]:
        """Return everything below the repository and the home, with sizes and times."""
        found = [path for top in (self.root, self.home) for path in top.rglob("*")]
        return {str(path): (path.lstat().st_size, path.lstat().st_mtime_ns) for path in found}


@pytest.fixture
def trap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Trap:
    """Return the repository, set, with a modified file that a filter and a text conversion are named for."""
    trap = Trap(tmp_path)
    monkeypatch.chdir(trap.root)
    monkeypatch.setenv("HOME", str(trap.home))
    trap.git("init", "--quiet", "--initial-branch=main")
    (trap.root / "a.py").write_text(BEFORE, encoding="utf-8")
    (trap.root / ".gitattributes").write_text("*.py diff=evil filter=evil merge=evil\n", encoding="utf-8")
    (trap.root / "batonpass.toml").write_text(f'[notify]\ncommand = ["{trap.program}"]\n', encoding="utf-8")
    settings = trap.root / ".vscode"
    settings.mkdir()
    (settings / "settings.json").write_text(json.dumps({"batonpass.path": str(trap.program)}), encoding="utf-8")
    trap.git("add", "--all")
    trap.git("commit", "--quiet", "--message=one")
    shop = Shop(trap.root, f"sqlite:///{trap.root}/.batonpass/ledger.db")
    with shop.relay.start(HOSTILE, by=ANA) as lead:
        shop.edits(lead, task=HOSTILE)
    shop.relay.close()
    # As a ledger looks that came with a repository: the file alone, without what SQLite keeps beside it.
    for left in (trap.root / ".batonpass").iterdir():
        if left.name != "ledger.db":
            left.unlink()
    trap.set()
    return trap


def asked(trap: Trap, *paths: Path) -> list[dict[str, Any]]:
    """Ask the language server about files, as an editor started in the repository does."""
    messages: list[dict[str, Any]] = [
        {
            "id": 0,
            "method": "initialize",
            "params": {"capabilities": {"textDocument": {"hover": {"contentFormat": ["markdown"]}}}},
        }
    ]
    for path in paths:
        document = {"textDocument": {"uri": path.as_uri()}}
        for line in range(3):
            params = {**document, "position": {"line": line, "character": 0}}
            messages.append({"id": len(messages), "method": "textDocument/hover", "params": params})
        for method in ("textDocument/codeLens", "batonpass/authors"):
            messages.append({"id": len(messages), "method": method, "params": document})
    bodies = [json.dumps(message).encode() for message in messages]
    given = b"".join(b"Content-Length: %d\r\n\r\n" % len(body) + body for body in bodies)
    done = subprocess.run(
        [PROGRAM, "lsp"], cwd=trap.root, env=trap.environment, input=given, capture_output=True, check=False
    )
    printed = [json.loads(part.partition(b"\r\n\r\n")[2]) for part in done.stdout.split(b"Content-Length: ")[1:]]
    assert len(messages) == len(printed), done.stderr
    return printed[1:]


@pytest.mark.slow
def test_looking_starts_nothing_and_leaves_nothing(trap: Trap) -> None:
    """By hover, lens and annotations: no program of the repository runs, and no file is made or touched."""
    before = trap.files()
    found = asked(trap, trap.root / "a.py", trap.root / ".gitattributes", trap.root / "gone", trap.root / "git")

    assert found[1]["result"]["contents"]["value"].startswith("**editor ")
    assert [False, {}] == [
        trap.sprung.exists(),
        {path: sign for path, sign in trap.files().items() if before.get(path) != sign},
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        ("blame", "a.py"),
        ("blame", "a.py:2", "--full"),
        ("blame", "a.py", "--porcelain"),
        ("blame", "a.py", "--json"),
        ("blame", "HEAD"),
        ("blame", "."),
    ],
    ids=" ".join,
)
def test_asking_starts_nothing(trap: Trap, words: tuple[str, ...]) -> None:
    """By command: whatever git is asked, no program of the repository runs."""
    done = subprocess.run([PROGRAM, *words], cwd=trap.root, env=trap.environment, capture_output=True, check=False)

    assert (False, b"") == (trap.sprung.exists(), done.stderr if b"Traceback" in done.stderr else b"")
    assert done.returncode in {0, 1}


@pytest.mark.slow
def test_the_trap_is_one(trap: Trap) -> None:
    """Asked plainly, git starts what the repository names: the tests above would notice."""
    sprung = []
    for words in (
        ["diff"],
        ["-c", "core.fsmonitor=", "-c", "diff.external=", "diff"],
        ["blame", "a.py"],
    ):
        subprocess.run(["git", *words], cwd=trap.root, env=trap.environment, capture_output=True, check=False)
        sprung.append(trap.sprung.exists())
        trap.sprung.unlink(missing_ok=True)

    assert [True, True, True] == sprung


@pytest.mark.slow
def test_words_of_a_repository_are_inert(trap: Trap) -> None:
    """No link, image or tag of a task is live in a card, and none in a lens is an icon."""
    results = asked(trap, trap.root / "a.py")
    card = results[1]["result"]["contents"]["value"]

    assert [r"\[run\](command:evil)", r"!\[x\](https\://evil.example/x.png)", r"\<img src=x\>", r" https\://evil"] == [
        part
        for part in (
            r"\[run\](command:evil)",
            r"!\[x\](https\://evil.example/x.png)",
            r"\<img src=x\>",
            r" https\://evil",
        )
        if part in card
    ]


@pytest.mark.slow
def test_a_ledger_that_came_with_the_commits_is_not_asked(trap: Trap) -> None:
    """Its receipts verify against keys that came with it: the card says why there is no answer."""
    trap.git("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=", "add", "-f", ".batonpass/ledger.db")
    card = asked(trap, trap.root / "a.py")[1]["result"]["contents"]["value"]

    assert (True, False) == ("speaks for whoever made the commits" in card, "editor" in card)


@pytest.mark.slow
@pytest.mark.parametrize(
    "content", [b"", b"SQLite format 3\0 and then nothing", b"x" * 4096], ids=["empty", "cut", "no"]
)
def test_a_file_that_is_no_ledger_stays_as_it_is(trap: Trap, content: bytes) -> None:
    """Nothing is founded, brought up to date or repaired for somebody who looks."""
    (trap.root / ".batonpass" / "ledger.db").write_bytes(content)
    before = trap.files()
    asked(trap, trap.root / "a.py")

    assert (before, False) == (trap.files(), trap.sprung.exists())


@pytest.mark.slow
def test_the_page_starts_nothing_and_leaves_nothing(trap: Trap) -> None:
    """Listed, shown line by line, now and in a commit, and asked about a diff: no program of the repository runs."""
    files = ShownRepository(trap.root, trap.root / ".batonpass")
    patch = f"--- a/a.py\n+++ b/a.py\n@@ -2 +2 @@\n-x\n+{NEW}\n"
    before = trap.files()
    with Relay.open("memory:") as empty:
        recording_of(empty)
        with empty.store.view() as view:
            entries = files.entries(view, "")
            now, committed = files.blame(view, "a.py", 1, 10, None), files.blame(view, "a.py", 1, 10, "HEAD")
            earlier = files.before(now, 2)
            hunks = files.hunks(view, patch)

    assert (["a.py"], 3, 3, 1) == (
        [entry.name for entry in entries if entry.name == "a.py"],
        len(now.blame.lines),
        len(committed.blame.lines),
        len(hunks),
    )
    assert earlier is not None
    assert (False, before) == (trap.sprung.exists(), trap.files())
