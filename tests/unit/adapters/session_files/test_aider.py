"""Aider's commits count as its own if they say so, and of them only what its chat shows."""

import subprocess
from pathlib import Path

import pytest

from batonpass.adapters.importer.session_import import import_sessions
from batonpass.adapters.line_blame import blame_at
from batonpass.adapters.session_files.conversation import read_conversation
from batonpass.adapters.session_files.readers.aider import AiderSessions
from batonpass.relay import Relay
from tests.unit.adapters.session_files.recorded_sessions import git

TRAILER = "Co-authored-by: aider (openai/fake-model) <aider@aider.chat>"
# As Aider 0.86.2 writes it.
CHAT = """
# aider chat started at 2026-11-17 20:18:43

> Aider v0.86.2  
> Model: openai/fake-model with diff edit format  

#### Round totals to cents  
#### and say so  

I change it.

src/invoice.py
```python
<<<<<<< SEARCH
    return result
=======
    return round(result, 2)
    # to cents, as the tax office asks
>>>>>>> REPLACE
```

> Tokens: 2.6k sent, 85 received.  
> Applied edit to src/invoice.py  
> Commit {commit} feat: round totals  
"""  # noqa: W291 - it ends lines with blanks
BEFORE = "def total(items):\n    result = sum(items)\n    return result\n\n\ndef other(value):\n    return value\n"
AFTER = BEFORE.replace("return result", "return round(result, 2)\n    # to cents, as the tax office asks")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a repository with a file that a person committed."""
    (tmp_path / "src").mkdir()
    (tmp_path / "src/invoice.py").write_text(BEFORE)
    git(tmp_path, "init", "-q", "-b", "main")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-q", "-m", "begin")
    return tmp_path


def commit(project: Path, text: str, message: str) -> str:
    """Commit a text, and return the commit."""
    (project / "src/invoice.py").write_text(text)
    git(project, "commit", "-q", "-a", "-m", message)
    done = subprocess.run(["git", "-C", str(project), "rev-parse", "--short", "HEAD"], check=True, capture_output=True)
    return done.stdout.decode().strip()


def chatted(project: Path, *commits: str) -> None:
    (project / ".aider.chat.history.md").write_text("".join(CHAT.format(commit=one) for one in commits))


def writers(project: Path) -> list[int]:
    """Return the lines that Aider certainly wrote."""
    with Relay.open("memory:") as relay:
        import_sessions(relay, project, AiderSessions(), by="user:ana")
        found = blame_at(relay, project / "src/invoice.py")
        relay.verify()
    return [line.number for line in found.lines if line.run is not None and len(line.calls) == 1]


def test_a_commit_of_its_own_tells_which_lines_it_wrote(project: Path) -> None:
    """With what the person said before it."""
    chatted(project, commit(project, AFTER, f"feat: round totals\n\n{TRAILER}"))
    reader = AiderSessions()
    (files,) = reader.find(project)
    found = read_conversation(reader, files, project)

    assert ["Round totals to cents\nand say so"] == [prompt.text for prompt in found.prompts]
    assert ("0.86.2", "openai/fake-model") == (found.info.version, found.info.model)
    assert [3, 4] == writers(project)


def test_what_a_person_had_changed_is_not_its_own(project: Path) -> None:
    """It commits what it finds in the file, too."""
    theirs = AFTER.replace("return value", "return value or missing_by_hand")
    chatted(project, commit(project, theirs, f"feat: round totals\n\n{TRAILER}"))

    assert [3, 4] == writers(project)


@pytest.mark.parametrize(
    "name",
    [pytest.param("", id="a commit of a person"), pytest.param("0123abc", id="a commit that is not there")],
)
def test_a_chat_cannot_claim_other_commits(project: Path, name: str) -> None:
    """Anything may stand in a chat, also a line that looks like Aider's."""
    there = commit(project, AFTER, "By hand")
    chatted(project, name or there)

    assert [] == writers(project)


@pytest.mark.parametrize("way", ["committed", "a link"])
def test_a_chat_that_came_with_the_repository_is_nobodys(project: Path, way: str) -> None:
    """Whoever made the repository may have written it, and a link may lead anywhere."""
    chatted(project, commit(project, AFTER, f"feat: round totals\n\n{TRAILER}"))
    chat = project / ".aider.chat.history.md"
    if way == "committed":
        git(project, "add", "-f", chat.name)
    else:
        chat.rename(project / "elsewhere.md")
        chat.symlink_to("elsewhere.md")

    assert [] == list(AiderSessions().find(project))


def test_a_chat_can_be_told_twice(project: Path) -> None:
    """A commit counts once, and so does an import."""
    made = commit(project, AFTER, f"feat: round totals\n\n{TRAILER}")
    chatted(project, made, made)
    with Relay.open("memory:") as relay:
        counts = [import_sessions(relay, project, AiderSessions()).counts.calls for _ in range(2)]

    assert [1, 0] == counts
