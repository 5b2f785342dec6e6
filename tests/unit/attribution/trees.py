"""A git repository of a test with a work tree, and the truth about its files."""

import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final

from batonpass.attribution.worktree.tree import WorkTree
from batonpass.attribution.worktree.tree_difference import Difference

ENVIRONMENT: Final = MappingProxyType(
    {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "HOME": "/nonexistent",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        **{f"GIT_{who}_{what}": f"{who}@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
    }
)


@dataclass(frozen=True, slots=True)
class Tree:
    """A directory that git may know."""

    root: Path

    def git(self, *arguments: str) -> str:
        """Run git there."""
        command = ["git", "-C", str(self.root), "-c", "protocol.file.allow=always", *arguments]
        done = subprocess.run(command, env=dict(ENVIRONMENT), capture_output=True, check=False)
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout.decode("utf-8", "surrogateescape")

    def write(self, path: str, data: bytes | str) -> Path:
        """Write a file there."""
        place = self.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data.encode() if isinstance(data, str) else data)
        return place

    def commit(self) -> None:
        """Commit all there is."""
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message=a commit")

    def files(self) -> dict[str, bytes]:
        """Return the files that are tracked or not ignored, read one by one."""
        names = self.git("ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0")
        return {name: path.read_bytes() for name in names if name and (path := self.root / name).is_file()}

    def looking(self, *, watch: bool = True) -> WorkTree:
        """Return what looks at it."""
        return WorkTree(self.root, environment=ENVIRONMENT, without={".batonpass"}, watch=watch)


def a_tree(root: Path, files: Mapping[str, bytes | str]) -> Tree:
    root.mkdir(parents=True, exist_ok=True)
    tree = Tree(root)
    tree.git("init", "--quiet", "--initial-branch=main")
    for path, data in files.items():
        tree.write(path, data)
    tree.commit()
    return tree


def applied(differences: Iterable[Difference], files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the files after differences, which must fit what was there before."""
    result = dict(files)
    for each in differences:
        assert result.get(each.renamed_from or each.path) == each.before
        if each.renamed_from is not None:
            del result[each.renamed_from]
        if each.after is None:
            del result[each.path]
        else:
            result[each.path] = each.after
    return result
