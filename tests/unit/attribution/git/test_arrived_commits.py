"""Where a history stands, read from git's own files: as git says it, wherever git keeps it."""

from pathlib import Path

import pytest

from batonpass.attribution.git.arrived_commits import find_arrived, see_history
from tests.unit.attribution.trees import ENVIRONMENT, Tree


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    """Return a repository with one commit."""
    tree = Tree(tmp_path / "shop")
    tree.root.mkdir()
    tree.git("init", "--quiet", "--initial-branch=main")
    tree.commit()
    return tree


def beside(tree: Tree) -> Tree:
    """Return a work tree beside another one, on a branch of its own."""
    other = Tree(tree.root.parent / "other")
    tree.git("worktree", "add", "--quiet", "-b", "topic", str(other.root))
    return other


def head_of(tree: Tree) -> str | None:
    history = see_history(tree.root)
    return None if history is None else history.head


@pytest.mark.parametrize("linked", [False, True], ids=["the repository itself", "a work tree beside it"])
@pytest.mark.parametrize(
    "act",
    [
        pytest.param((), id="on a branch"),
        pytest.param(("pack-refs", "--all"), id="packed"),
        pytest.param(("checkout", "--quiet", "--detach"), id="on no branch"),
    ],
)
def test_the_head_is_what_git_says(tree: Tree, linked: bool, act: tuple[str, ...]) -> None:  # noqa: FBT001
    """Whatever git wrote it into; and a commit that comes since has arrived, and nothing else."""
    here = beside(tree) if linked else tree
    if act:
        here.git(*act)
    before = see_history(here.root)
    assert before is not None
    assert here.git("rev-parse", "HEAD").strip() == before.head
    assert () == find_arrived(before, ENVIRONMENT)

    here.commit()

    assert (here.git("rev-parse", "HEAD").strip(),) == find_arrived(before, ENVIRONMENT)


def test_a_commit_that_was_left_again_has_arrived(tree: Tree) -> None:
    """The head is where it was; its log is longer."""
    before = see_history(tree.root)
    tree.git("checkout", "--quiet", "-b", "away")
    tree.commit()
    made = tree.git("rev-parse", "HEAD").strip()
    tree.git("checkout", "--quiet", "main")

    assert (made,) == find_arrived(before, ENVIRONMENT)


def test_a_commit_without_a_log_has_arrived(tree: Tree) -> None:
    """The log is as long as it was; the head moved."""
    tree.git("config", "core.logAllRefUpdates", "false")
    (tree.root / ".git" / "logs" / "HEAD").unlink()
    before = see_history(tree.root)
    tree.commit()

    assert (tree.git("rev-parse", "HEAD").strip(),) == find_arrived(before, ENVIRONMENT)


def test_a_branch_is_the_repository_s(tree: Tree) -> None:
    """A file that git does not read says nothing about a work tree beside the repository, nor hides a commit there."""
    other = beside(tree)
    own = Path(other.git("rev-parse", "--absolute-git-dir").strip())
    (own / "refs" / "heads").mkdir(parents=True)
    (own / "refs" / "heads" / "topic").write_text("a" * 40, encoding="utf-8")

    assert other.git("rev-parse", "HEAD").strip() == head_of(other)


def test_what_is_no_repository_has_no_history(tmp_path: Path) -> None:
    """Nor is anything known of one without a head, or with folders where files should be."""
    assert see_history(tmp_path) is None
    (tmp_path / ".git" / "HEAD").mkdir(parents=True)

    assert head_of(Tree(tmp_path)) is None


def test_a_long_list_of_packed_branches_is_read_to_its_end(tree: Tree) -> None:
    """It may be longer than what is read at once."""
    tree.git("pack-refs", "--all")
    packed = tree.root / ".git" / "packed-refs"
    others = "".join(f"{number:040x} refs/heads/a/{number}\n" for number in range(30_000))
    packed.write_text(packed.read_text("utf-8").replace("^", "").partition("\n")[0] + "\n" + others, encoding="utf-8")
    head = tree.git("rev-parse", "refs/heads/a/29999").strip()
    tree.git("symbolic-ref", "HEAD", "refs/heads/a/29999")

    assert head == head_of(tree)
