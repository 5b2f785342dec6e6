"""A project in a repository, a ledger, and somebody who records."""

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from batonpass.adapters.coders.session.hook_recorder import HookRecorder
from batonpass.attribution.worktree.tree import WorkTree
from batonpass.relay import Relay
from tests.unit.adapters.coders.sessions import Session


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a repository with one file."""
    project = tmp_path / "shop"
    project.mkdir()
    (project / "a.py").write_text("one\ntwo\n", encoding="utf-8")
    subprocess.run(["git", "init", "--quiet"], cwd=project, check=True)
    return project


@pytest.fixture
def relay(project: Path) -> Iterator[Relay]:
    """Return a relay whose ledger is whole after every test."""
    with Relay.open("memory:", work_tree=project) as relay:
        yield relay
        if relay.store.founded():
            relay.verify()


@pytest.fixture
def record(relay: Relay, project: Path) -> Iterator[Callable[[], HookRecorder]]:
    """Return what makes recorders, each of which knows nothing but the ledger."""
    made: list[HookRecorder] = []

    def make() -> HookRecorder:
        tree = WorkTree(project, environment={"PATH": "/usr/bin:/bin"}, without=(".batonpass",), watch=False)
        made.append(HookRecorder(relay, project, by="user:ana", work_tree=tree))
        return made[-1]

    yield make
    for recorder in made:
        recorder.close()


@pytest.fixture
def session(project: Path, record: Callable[[], HookRecorder]) -> Session:
    """Return a session that is recorded from its beginning."""
    return Session(project, record())
