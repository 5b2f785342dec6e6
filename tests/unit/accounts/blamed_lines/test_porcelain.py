"""What reads `git blame --porcelain` reads ours: the same bytes where only git knows, and an agent as any author."""

import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from batonpass.accounts.blame.file_blame import Lines
from batonpass.adapters.line_blame import porcelain_in
from batonpass.relay import recording_of
from tests.unit.accounts.shop import AFTER, ANA, BEFORE, NEW, Shop

HOSTILE = "Do\x1b[31m it\nauthor mallory\n\tfake content"


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    """Return a repository with some history: two people, a rename, a copied block, a file without a last newline."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BATONPASS_LEDGER", "memory:")
    shop = Shop(tmp_path)
    recording_of(shop.relay)
    shop.git("init", "-q")
    shop.path("old name.py").write_text("".join(f"line {number}\n" for number in range(1, 31)), encoding="utf-8")
    _commit(shop, "First")
    lines = shop.path("old name.py").read_text(encoding="utf-8").splitlines()
    lines[4:6] = ["five", "six", "six and a half"]
    shop.path("old name.py").write_text("\n".join(lines) + "\n", encoding="utf-8")
    _commit(shop, "Größer\n\nwith a body", author="Ben Ö <ben@example.org>")
    shop.git("mv", "old name.py", "a.py")
    _commit(shop, "Rename")
    lines[20] = "twenty-one\twith a tab\r"
    shop.path().write_text("\n".join(lines) + "\nlast, without an end", encoding="utf-8", newline="")
    _commit(shop, "Edit")
    return shop


def _commit(shop: Shop, message: str, author: str = "Ana <ana@example.org>") -> None:
    shop.git("add", "--all")
    shop.git("commit", "-qm", message, "--author", author)


def _ours(shop: Shop, lines: Lines | None = None, *, every: bool = False) -> bytes:
    printed = porcelain_in(shop.relay.store, shop.path(), lines, every=every)
    return b"".join(line + b"\n" for line in printed)


def _git(shop: Shop, *options: str) -> bytes:
    command = ["git", "blame", *options, "--", "a.py"]
    return subprocess.run(command, cwd=shop.folder, check=True, capture_output=True).stdout


def _without_ours(printed: bytes) -> bytes:
    return re.sub(rb"^batonpass-[^\n]*\n", b"", printed, flags=re.MULTILINE)


@dataclass
class Read:
    """A line as a reader of git's format has it."""

    commit: str
    number: int
    content: str
    facts: dict[str, str] = field(default_factory=dict)


def read_as_git_says(printed: str) -> list[Read]:
    """Read the format as git's manual describes it: a reader of git's, that knows nothing of us."""
    commits: dict[str, dict[str, str]] = {}
    found: list[Read] = []
    lines = iter(printed.removesuffix("\n").split("\n"))
    for line in lines:
        head = re.fullmatch(r"([0-9a-f]{40}) (\d+) (\d+)(?: (\d+))?", line)
        assert head is not None, line
        facts = commits.setdefault(head[1], {})
        for header in lines:
            if header.startswith("\t"):
                found.append(Read(head[1], int(head[3]), header[1:], dict(facts)))
                break
            name, _, value = header.partition(" ")
            assert re.fullmatch(r"[a-z]+(-[a-z]+)*", name), header
            facts[name] = value
    return found


@pytest.mark.parametrize("option", ["--porcelain", "--line-porcelain"])
def test_where_only_git_knows_the_bytes_are_gits(shop: Shop, option: str) -> None:
    """Through a rename, another author, a boundary, a carriage return and a missing last newline."""
    assert _git(shop, option) == _without_ours(_ours(shop, every=option == "--line-porcelain"))


def test_an_uncommitted_line_is_as_git_says_it(shop: Shop) -> None:
    """Zeros for a name, and the commit before; but for the moment, byte by byte."""
    text = shop.path().read_bytes().replace(b"line 9\n", b"line nine\nand ten\n")
    shop.path().write_bytes(text)
    theirs, ours = (re.sub(rb"-time \d+", b"-time T", one) for one in (_git(shop, "--porcelain"), _ours(shop)))

    assert theirs == _without_ours(ours)


def test_some_lines_are_as_git_says_them(shop: Shop) -> None:
    """A range begins with its own headers."""
    assert _git(shop, "--porcelain", "-L4,8") == _without_ours(_ours(shop, Lines(first=4, last=8)))


def test_an_agent_is_an_author(shop: Shop) -> None:
    """With its human as committer, its task as summary, and the run and the receipt in headers of ours."""
    shop.path().write_text(BEFORE, encoding="utf-8")
    _commit(shop, "Another file")
    with shop.relay.start("Fix it", by=ANA) as lead:
        editor = shop.edits(lead)
    maker = shop.maker()
    for every in (False, True):
        first, second, third = read_as_git_says(_ours(shop, every=every).decode())

        assert ["Ana", "editor", "Ana"] == [one.facts["author"] for one in (first, second, third)]
        assert (NEW, "ana", "Shout", editor.id, maker.receipt, maker.call, "agent") == (
            second.content,
            *(second.facts[name] for name in ("committer", "summary")),
            *(second.facts[f"batonpass-{name}"] for name in ("run", "receipt", "call", "author")),
        )
        assert (first.commit, "committed") == (third.commit, third.facts["batonpass-author"])
        assert second.commit not in {first.commit, "0" * 40}


def test_two_agents_in_one_commit_have_two_names(shop: Shop) -> None:
    """A reader remembers headers by the name of the commit; one name would give both lines to one of them."""
    with shop.relay.start("Fix it", by=ANA) as lead:
        shop.edits(lead, text="of the first\n")
        with lead.hand_off("fixer", "Add") as fixer:
            fixer.call(_append, "a.py", "of the second\n")
    _commit(shop, "Both")
    first, second = read_as_git_says(_ours(shop).decode())

    assert ["editor", "fixer"] == [one.facts["author"] for one in (first, second)]
    assert first.facts["batonpass-commit"] == second.facts["batonpass-commit"]


def _append(path: str, text: str) -> None:
    with Path(path).open("a", encoding="utf-8") as file:
        file.write(text)


def test_no_word_of_a_task_is_a_header(shop: Shop) -> None:
    """A task may hold line feeds, tabs and escapes; a header is one line."""
    with shop.relay.start("Fix it", by=ANA) as lead:
        shop.edits(lead, text=AFTER, task=HOSTILE)
    printed = _ours(shop).decode()
    lines = read_as_git_says(printed)

    assert (3, {"editor"}) == (len(lines), {one.facts["author"] for one in lines})
    assert {"Do\\x1b[31m it"} == {one.facts["summary"] for one in lines}
    assert "\x1b" not in printed


def test_a_file_outside_of_any_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What nobody explains is what git would call not committed yet."""
    monkeypatch.chdir(tmp_path)
    shop = Shop(tmp_path)
    shop.path().write_text(BEFORE, encoding="utf-8")
    with shop.relay.start("Fix it", by=ANA) as lead:
        shop.edits(lead)

    assert ["Not Committed Yet", "editor", "Not Committed Yet"] == [
        one.facts["author"] for one in read_as_git_says(_ours(shop).decode())
    ]


def test_bytes_that_are_no_text_stay_what_they_are(shop: Shop) -> None:
    """The content is the file's, whatever its encoding."""
    shop.path().write_bytes(b"caf\xe9 \x1b[31m\nsecond\n")
    _commit(shop, "Latin")

    assert _git(shop, "--porcelain") == _without_ours(_ours(shop))


def test_the_history_is_read_once_however_long_the_file(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """As many questions to git for ten thousand lines as for three."""
    asked: list[list[str]] = []
    run = subprocess.run

    def counted(command: list[str], *rest: object, **named: object) -> object:
        asked.append(command)
        return run(command, *rest, **named)  # type: ignore[call-overload]

    counts = []
    for text in (AFTER, "".join(f"line {number}\n" for number in range(10_000))):
        with shop.relay.start("Fix it", by=ANA) as lead:
            shop.edits(lead, text=text)
        _commit(shop, "More")
        with monkeypatch.context() as patched:
            patched.setattr(subprocess, "run", counted)
            lines = read_as_git_says(_ours(shop).decode())
        counts.append((len(asked), len(lines)))
        asked.clear()

    assert (counts[0][0], 3, 10_000) == (counts[1][0], counts[0][1], counts[1][1])
