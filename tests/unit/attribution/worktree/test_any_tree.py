"""Whatever is done to a work tree, by hand or by git, two looks tell it."""

import contextlib
import shutil
import tempfile
from pathlib import Path
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.seeds import SEEDS
from tests.unit.attribution.trees import Tree, a_tree, applied

PATHS: Final = ("a.py", "b.py", "src/a.py", "src/deep/c.py", "src/deep/d.py", "new/e.py", "build/f.o")
OPERATIONS: Final = st.one_of(
    st.tuples(st.just("write"), st.sampled_from(PATHS), st.sampled_from(["1\n", "2\n", "3\n", ""])),
    st.tuples(st.just("move"), st.sampled_from(PATHS), st.sampled_from(PATHS)),
    st.tuples(st.just("delete"), st.sampled_from(PATHS), st.just("")),
    st.tuples(st.just("mkdir"), st.sampled_from(["empty", "src/empty", "new"]), st.just("")),
    st.tuples(st.just("rmtree"), st.sampled_from(["src", "src/deep", "new"]), st.just("")),
    st.tuples(st.just("rename directory"), st.sampled_from(["src/deep", "new"]), st.sampled_from(["src/deep", "new"])),
    st.tuples(st.just("git"), st.sampled_from(["add", "commit", "switch", "restore", "stash"]), st.just("")),
)


def act(tree: Tree, kind: str, path: str, more: str) -> None:
    """Do something to a work tree, if it can be done."""
    place = tree.root / path
    if kind == "write" and not (place.is_dir() or any(parent.is_file() for parent in place.parents)):
        tree.write(path, more)
    elif kind in {"move", "rename directory"} and place.exists() and not (tree.root / more).exists():
        if place not in (tree.root / more).parents:
            (tree.root / more).parent.mkdir(parents=True, exist_ok=True)
            place.rename(tree.root / more)
    elif kind == "delete" and place.is_file():
        place.unlink()
    elif kind == "mkdir" and not place.exists():
        place.mkdir(parents=True)
    elif kind == "rmtree":
        shutil.rmtree(place, ignore_errors=True)
    elif kind == "git":
        git_act(tree, path)


def git_act(tree: Tree, verb: str) -> None:
    """Let git do something that changes the index, the files, the commit, or all of them."""
    if verb == "add":
        tree.git("add", "--all")
    elif verb == "commit":
        tree.commit()
    elif verb == "switch":
        other = "other" if tree.git("branch", "--show-current").strip() == "main" else "main"
        with contextlib.suppress(AssertionError):  # a file that git does not know may be in the way
            tree.git("switch", "--quiet", "--discard-changes", other)
    elif verb == "restore":
        tree.git("checkout", "--quiet", "--", ".")
    else:
        tree.git("stash", "push", "--include-untracked")


@pytest.mark.slow
@settings(max_examples=SEEDS // 2, deadline=None)
@given(steps=st.lists(st.lists(OPERATIONS, max_size=4), min_size=1, max_size=5))
def test_differences_lead_exactly_from_before_to_after(steps: list[list[tuple[str, str, str]]]) -> None:
    """Whatever is done to a work tree, what is found makes of the files before exactly the files after."""
    with tempfile.TemporaryDirectory() as place:
        tree = a_tree(Path(place).resolve() / "tree", {".gitignore": "build/\n", "a.py": "1\n", "src/deep/c.py": "2\n"})
        tree.git("branch", "other")
        lookings = [tree.looking(watch=True), tree.looking(watch=False)]
        for looking in lookings:
            looking.look()  # only from the second look on is anything watched
        looks = [looking.look() for looking in lookings]
        firsts, first = list(looks), tree.files()
        for step in steps:
            before = tree.files()
            for operation in step:
                act(tree, *operation)
            after = tree.files()
            for number, looking in enumerate(lookings):
                look = looking.look()
                assert after == applied(looking.differences(looks[number], look), before)
                looks[number] = look
        for looking, earliest, last in zip(lookings, firsts, looks, strict=True):
            assert tree.files() == applied(looking.differences(earliest, last), first)
            looking.close()
