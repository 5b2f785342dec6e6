"""The runs in every commit: those whose recorded changes it holds, and no others."""

import shutil
from pathlib import Path

import pytest

from batonpass.handoff.live.faces import LiveRun
from batonpass.relay import Relay
from tests.integration.cli.clones import Clone, a_clone

pytestmark = [pytest.mark.skipif(shutil.which("git") is None, reason="needs git"), pytest.mark.slow]

RUN = "Batonpass-Run"


class Shop:
    """A repository with our hook, in which runs write files."""

    def __init__(self, clone: Clone, relay: Relay) -> None:
        self.clone = clone
        self.relay = relay

    def run(self) -> LiveRun:
        """Start somebody who writes."""
        return self.relay.start("Fix it", by="user:ana")

    def commit(self, *arguments: str, say: str = "A commit") -> list[str]:
        """Commit all there is and return the runs that it names."""
        self.clone.git("add", "--all")
        done = self.clone.git("commit", "--message", say, *arguments)
        assert 0 == done.returncode, done.stderr
        return self.named()

    def named(self) -> list[str]:
        """Return the runs that the last commit names."""
        return [line.partition(": ")[2] for line in self.clone.message().splitlines() if line.startswith(f"{RUN}:")]


def write(path: str, text: str) -> None:
    Path(path).write_text(text, encoding="utf-8")


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    """Return a repository with one commit, a ledger, and our hook without the seal."""
    clone = a_clone(tmp_path)
    monkeypatch.chdir(clone.folder)
    write("old.py", "1\n")
    write(".gitignore", ".batonpass/\n")
    clone.git("add", "--all")
    # Long ago: whether a commit is amended is told by its author's time.
    clone.git("commit", "--message", "Begin", "--date", "2026-01-02T12:00:00Z")
    relay = clone.desk.relay()
    relay.start("Found it", by="user:ana")
    assert 0 == clone.batonpass("git", "install", "--no-seal").returncode
    return Shop(clone, relay)


def later(shop: Shop) -> None:
    """Date the last commit back, so that the next one is not taken for its amendment."""
    done = shop.clone.git("commit", "--amend", "--no-edit", "--no-verify", "--date", "2026-01-02T12:00:00Z")
    assert 0 == done.returncode


def test_a_commit_names_the_runs_that_made_it(shop: Shop) -> None:
    """Who wrote a file that is committed is named, the latest first; who wrote another one is not."""
    first, second, third = shop.run(), shop.run(), shop.run()
    first.call(write, "old.py", "2\n")
    second.call(write, "old.py", "3\n")
    third.call(write, "other.py", "1\n")
    shop.clone.git("add", "old.py")
    done = shop.clone.git("commit", "--message", "Fix it")

    assert ([second.id, first.id], True) == (shop.named(), "this commit names 2 runs" in done.stderr)


def test_a_commit_does_not_name_whom_an_earlier_one_named(shop: Shop) -> None:
    """Each change is named by the commit that holds it; one that was left out, by the one that takes it in."""
    first, second = shop.run(), shop.run()
    first.call(write, "old.py", "2\n")
    first.call(write, "late.py", "1\n")
    shop.clone.git("add", "old.py")
    shop.clone.git("commit", "--message", "Fix it")
    named = shop.named()
    later(shop)
    second.call(write, "old.py", "3\n")

    assert ([first.id], [second.id, first.id]) == (named, shop.commit())


def test_a_person_names_nobody(shop: Shop) -> None:
    """What no run wrote has no trailer, and nothing is said."""
    shop.run().call(write, "old.py", "2\n")
    shop.commit()
    later(shop)
    write("old.py", "3\n")
    shop.clone.git("add", "--all")
    done = shop.clone.git("commit", "--message", "By hand")

    assert (0, "", []) == (done.returncode, done.stderr, shop.named())


@pytest.mark.parametrize("arguments", [["--no-edit"], ["--message", "In other words"]], ids=["as it was", "anew"])
def test_an_amended_commit_names_each_run_once(shop: Shop, arguments: list[str]) -> None:
    """Amending adds the runs of what is added, and keeps those of what was there, whatever the message."""
    first, second = shop.run(), shop.run()
    first.call(write, "old.py", "2\n")
    shop.commit()
    second.call(write, "new.py", "1\n")
    shop.clone.git("add", "--all")
    done = shop.clone.git("commit", "--amend", *arguments)

    assert (0, {first.id, second.id}, 2) == (done.returncode, set(shop.named()), len(shop.named()))


def test_the_first_commit_names_its_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a parent, everything in the commit is new; amending it changes nothing about that."""
    clone = a_clone(tmp_path)
    monkeypatch.chdir(clone.folder)
    with clone.desk.relay() as relay:
        shop = Shop(clone, relay)
        run = shop.run()
        run.call(write, "a.py", "1\n")
        clone.batonpass("git", "install", "--no-seal")

        assert [[run.id]] * 2 == [shop.commit(), shop.commit("--amend", say="Again")]


def test_picked_and_rebased_commits_keep_their_runs(shop: Shop) -> None:
    """A message that travels takes its lines along, once."""
    run = shop.run()
    shop.clone.git("switch", "--quiet", "--create", "branch")
    run.call(write, "new.py", "1\n")
    shop.commit()
    later(shop)
    shop.clone.git("switch", "--quiet", "main")
    shop.clone.git("cherry-pick", "branch")
    picked = shop.named()
    shop.clone.git("commit", "--amend", "--no-edit")

    assert [[run.id], [run.id]] == [picked, shop.named()]


def test_a_merge_names_who_resolved_it(shop: Shop) -> None:
    """What the branches bring, they have named; the merge names only who wrote what neither side has."""
    ours, theirs, resolver = shop.run(), shop.run(), shop.run()
    shop.clone.git("switch", "--quiet", "--create", "branch")
    theirs.call(write, "old.py", "theirs\n")
    theirs.call(write, "new.py", "1\n")
    shop.commit()
    shop.clone.git("switch", "--quiet", "main")
    ours.call(write, "old.py", "ours\n")
    shop.commit()
    later(shop)
    shop.clone.git("merge", "branch")
    resolver.call(write, "old.py", "both\n")

    assert [resolver.id] == shop.commit()


def test_a_commit_of_everything_names_from_its_own_index(shop: Shop) -> None:
    """`git commit --all` and `git commit FILE` prepare an index of their own, and the hook reads that one."""
    first, second = shop.run(), shop.run()
    first.call(write, "old.py", "2\n")
    second.call(write, ".gitignore", "*.o\n.batonpass/\n")
    shop.clone.git("commit", "--message", "One file", "--", "old.py")
    one = shop.named()
    later(shop)
    shop.clone.git("commit", "--message", "The rest", "--all")

    assert [[first.id], [second.id]] == [one, shop.named()]


def test_many_runs_are_named_up_to_a_number(shop: Shop) -> None:
    """The latest are named, and how many more there were stands in a line of its own."""
    runs = [shop.run() for _ in range(22)]
    for number, run in enumerate(runs):
        run.call(write, f"file{number}.py", "1\n")
    named = shop.commit()

    assert ([run.id for run in reversed(runs)][:20], True) == (
        named,
        "Batonpass-More-Runs: 2" in shop.clone.message(),
    )


def test_what_a_submodule_points_to_is_no_file(shop: Shop) -> None:
    """A commit of a commit has no bytes that anybody wrote."""
    run = shop.run()
    run.call(write, "old.py", "2\n")
    shop.clone.git("init", "--quiet", "lib")
    shop.clone.git("-C", "lib", "commit", "--allow-empty", "--message", "Inner")

    assert [run.id] == shop.commit()


def lose(shop: Shop, path: str, left: int) -> None:
    """Leave so many bytes of the object that the last commit has at a path."""
    name = shop.clone.git("rev-parse", f"HEAD:{path}").stdout.strip()
    place = shop.clone.folder / ".git/objects" / name[:2] / name[2:]
    data = place.read_bytes()[:left]
    place.unlink()
    if data:
        place.write_bytes(data)


def test_a_file_whose_object_is_missing_is_followed_without_it(shop: Shop) -> None:
    """In a clone of a part, what the parent has may not be there."""
    run = shop.run()
    run.call(write, "old.py", "2\n")
    lose(shop, "old.py", 0)

    assert [run.id] == shop.commit("--quiet")  # not quiet, git itself would count the lines that it cannot read


def test_if_git_cannot_read_the_commit_goes_on(shop: Shop) -> None:
    """Where an object is broken, the commit carries no runs, and says so."""
    write("large.txt", "".join(f"{number}\n" for number in range(50_000)))
    shop.commit()
    later(shop)
    lose(shop, "large.txt", 20_000)
    shop.run().call(write, "large.txt", "1\n")
    shop.clone.git("add", "large.txt")
    done = shop.clone.git("commit", "--quiet", "--message", "Fix it")

    assert (0, [], True) == (done.returncode, shop.named(), "continues without its runs" in done.stderr)
