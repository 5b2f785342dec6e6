"""The story, played once by the real program for all tests here, and copies of it to damage."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from tests.claude_code.story import Played, play


@pytest.fixture(scope="session")
def played(tmp_path_factory: pytest.TempPathFactory) -> Played:
    """Return the story as it was played. Nobody may change it."""
    return play(tmp_path_factory.mktemp("claude-code"))


@pytest.fixture
def copied(played: Played, tmp_path: Path) -> Played:
    """Return a copy of the transcripts that a test may damage."""
    shutil.copytree(played.home, tmp_path / "home")
    return replace(played, home=tmp_path / "home")
