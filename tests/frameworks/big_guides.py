"""The guides about frameworks that are too big for `make test`; `make test-adapters` plays them."""

from pathlib import Path

import pytest

from tests.acceptance.test_documents import BIG, ROOT, play


@pytest.mark.parametrize("name", sorted(BIG))
def test_a_guide_does_what_it_says(name: str, tmp_path: Path) -> None:
    """All blocks of the guide run in order in one empty folder."""
    play(ROOT / "docs" / "guide" / name, tmp_path)
