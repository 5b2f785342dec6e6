"""The lock file pins what pyproject.toml asks for, by hash, and names no host."""

import re
import tomllib
from collections.abc import Iterator

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from tests.house.tree import ROOT

LOCK = (ROOT / "requirements.lock").read_text(encoding="utf-8")
# A framework is an extra, and locked in an environment of its own.
FRAMEWORKS = "".join(path.read_text(encoding="utf-8") for path in sorted((ROOT / "tests/frameworks").glob("*.lock")))
PINNED = re.compile(r"^(\S+)==(\S+)((?:[^\n]*\\\n)?(?:    [^\n]*\n)*)", re.MULTILINE)


def wanted() -> Iterator[Requirement]:
    """Yield every requirement of the project: its own, its extras', its developers'."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    project = settings["project"]
    for names in (
        settings["build-system"]["requires"],
        project["dependencies"],
        *project["optional-dependencies"].values(),
        *settings["dependency-groups"].values(),
    ):
        yield from map(Requirement, names)


def test_every_requirement_is_locked() -> None:
    """What pyproject.toml asks for is in the lock, in a version that it allows: `make lock` was not forgotten."""
    versions = {name: Version(version) for name, version, _ in PINNED.findall(FRAMEWORKS + LOCK)}
    unmet = [
        str(requirement)
        for requirement in wanted()
        if (version := versions.get(canonicalize_name(requirement.name))) is None
        or version not in requirement.specifier
    ]

    assert [] == unmet


def test_every_package_is_pinned_by_hash() -> None:
    """An installer can refuse any file that is not the one we tested."""
    assert [] == [name for name, _, rest in PINNED.findall(LOCK) if "--hash=sha256:" not in rest]


def test_the_lock_names_no_host() -> None:
    """The lock has no address in it, so it works with any mirror."""
    assert [] == re.findall(r"\S*(?:://|--\S*url\S*|--find-links)\S*", LOCK)
