"""The pictures in the documents: each can be made anew from what the demonstrations record."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from website.screenshots import TARGET, take_all


@pytest.mark.slow
def test_every_picture_of_the_documents_can_be_made_anew(chromium: Browser, tmp_path: Path) -> None:
    """Those that are made are those that the documents show."""
    take_all(chromium, tmp_path)
    root = TARGET.parents[1]
    shown = {
        name
        for file in (root / "README.md", *root.glob("docs/**/*.md"))
        for name in re.findall(r"pictures/(page-\w+\.png)", file.read_text(encoding="utf-8"))
    }

    assert {one.name for one in tmp_path.iterdir()} == shown == {one.name for one in TARGET.glob("page-*.png")}
