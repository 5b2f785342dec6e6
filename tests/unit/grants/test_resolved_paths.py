"""Where paths lead, as the file system says: links and `..` do not lead out of a grant."""

from pathlib import Path

import pytest

from batonpass.errors import InvalidValueError
from batonpass.grants.resolved_paths import WorkTreePaths
from batonpass.model.grants.call import Call, resolved
from batonpass.model.grants.scope_text import read_scope
from batonpass.testing.clock import NOON


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Return a work tree with links that lead elsewhere."""
    root = tmp_path / "work"
    for folder in ("src/deep", ".github", "other"):
        (root / folder).mkdir(parents=True)
    (root / "src" / "ci").symlink_to("../.github")
    (root / "src" / "out").symlink_to(tmp_path)
    (root / "src" / "absolute").symlink_to("/etc")
    (root / "src" / "loop").symlink_to("loop")
    (root / "inside").symlink_to("src/deep")
    return root


@pytest.mark.parametrize(
    ("path", "leads"),
    [
        pytest.param("src/a.py", "src/a.py", id="a file that is not there yet"),
        pytest.param("src/ci/ci.yml", ".github/ci.yml", id="a link to another folder"),
        pytest.param("src/deep/../../other/x", "other/x", id="up and down again"),
        pytest.param("inside/../x", "src/x", id="up from where a link leads, not from where it stands"),
        pytest.param("src/absolute/hosts", "/etc/hosts", id="an absolute link"),
        pytest.param("/etc/hosts", "/etc/hosts", id="an absolute path"),
        pytest.param("./", ".", id="the work tree itself"),
    ],
)
def test_where_a_path_leads(tree: Path, path: str, leads: str) -> None:
    """Within the work tree by its name there, outside by its absolute name."""
    assert leads == WorkTreePaths(tree)(path)


@pytest.mark.parametrize(
    "path", ["src/ci/ci.yml", "src/out/secret", "src/absolute/hosts", "src/../../x", "src/deep/../../other/x"]
)
def test_a_link_does_not_lead_out_of_a_grant(tree: Path, path: str) -> None:
    """What is granted below `src` is not what a link below `src` leads to; by its absolute name it is the same file."""
    scope = read_scope(["write:src/** where path under src"])
    place = WorkTreePaths(tree)
    for spelled in (path, f"{tree}/{path}"):
        call = resolved(Call("write_file", "write", spelled, {"path": spelled}), place, paths={"path"})
        assert not scope.allows(call, NOON)


def test_a_file_by_its_absolute_name_is_granted_like_by_its_own(tree: Path) -> None:
    """A tool that always gives absolute paths works under a grant for the work tree."""
    place = WorkTreePaths(tree)
    path = f"{tree}/src/a.py"
    call = resolved(Call("write_file", "write", path, {"path": path}), place, paths={"path"})

    assert read_scope(["write:src/** where path under src"]).allows(call, NOON)


@pytest.mark.parametrize("path", ["a\0b", "src/\ud800"])
def test_what_no_file_system_could_follow(tree: Path, path: str) -> None:
    """Such a path leads nowhere, and is refused as such."""
    with pytest.raises(InvalidValueError, match="leads nowhere"):
        WorkTreePaths(tree)(path)


def test_a_loop_stays_where_it_is(tree: Path) -> None:
    """A link to itself is named as it stands."""
    assert "src/loop/x" == WorkTreePaths(tree)("src/loop/x")
