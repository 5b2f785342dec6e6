"""The locks of the real servers: by hash, and without any host to fetch them from."""

import json
import re
from pathlib import Path

HERE = Path(__file__).parent
PYTHON = (HERE.parents[1] / "requirements-mcp.lock").read_text(encoding="utf-8")
NODE = json.loads((HERE / "package-lock.json").read_text(encoding="utf-8"))["packages"]
PINNED = re.compile(r"^(\S+)==(\S+)((?:[^\n]*\\\n)?(?:    [^\n]*\n)*)", re.MULTILINE)


def test_every_package_is_pinned_by_hash() -> None:
    """An installer can refuse any file that is not the one we tested."""
    pinned = PINNED.findall(PYTHON)

    assert {"mcp-server-git", "mcp-server-time"} <= {name for name, _, _ in pinned}
    assert [] == [name for name, _, rest in pinned if "--hash=sha256:" not in rest]
    assert [""] == [name for name, package in NODE.items() if "integrity" not in package]


def test_the_locks_name_no_host() -> None:
    """They work with any mirror."""
    assert [] == re.findall(r"\S*(?:://|--\S*url\S*|--find-links)\S*", PYTHON)
    assert [] == [name for name, package in NODE.items() if "resolved" in package]
