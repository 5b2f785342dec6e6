"""The lock of the real program: by hash, and without any host."""

import re
from pathlib import Path

LOCK = (Path(__file__).parents[2] / "requirements-claude.lock").read_text(encoding="utf-8")
PINNED = re.compile(r"^(\S+)==(\S+)((?:[^\n]*\\\n)?(?:    [^\n]*\n)*)", re.MULTILINE)


def test_every_package_is_pinned_by_hash() -> None:
    """An installer can refuse any file that is not the one we tested."""
    pinned = PINNED.findall(LOCK)

    assert "claude-agent-sdk" in {name for name, _, _ in pinned}
    assert [] == [name for name, _, rest in pinned if "--hash=sha256:" not in rest]


def test_the_lock_names_no_host() -> None:
    """It works with any mirror."""
    assert [] == re.findall(r"\S*(?:://|--\S*url\S*|--find-links)\S*", LOCK)
