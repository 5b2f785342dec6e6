"""The extension for VS Code: it compiles, its own tests pass with the real server, and its locks name no host."""

import json
import re
from pathlib import Path
from zipfile import ZipFile

import pytest

from editors.vscode.vsix import pack
from tests.editors.extension import SOURCE, built, run


@pytest.mark.slow
def test_the_extension_passes_its_tests(tmp_path: Path) -> None:
    """Which program is started, what is shown where, the protocol's library at our server, cards in real renderers."""
    extension = built(tmp_path)
    told = run(extension, "test")
    bundle = (extension / "dist" / "extension.js").read_text(encoding="utf-8")

    assert (["14"], ["0"]) == tuple(re.findall(rf" {name} (\d+)$", told, re.MULTILINE) for name in ("pass", "fail"))
    assert 'require("vscode")' in bundle


@pytest.mark.slow
def test_the_package_has_what_the_editor_looks_for(tmp_path: Path) -> None:
    """The manifest, the bundle and the page about it; packed again, it has the same bytes."""
    extension = built(tmp_path)
    pack(extension, tmp_path / "one.vsix")
    pack(extension, tmp_path / "two.vsix")
    with ZipFile(tmp_path / "one.vsix") as package:
        names = set(package.namelist())

    assert {"extension.vsixmanifest", "[Content_Types].xml"} < names
    assert {"extension/package.json", "extension/dist/extension.js", "extension/README.md"} < names
    assert (tmp_path / "one.vsix").read_bytes() == (tmp_path / "two.vsix").read_bytes()


@pytest.mark.parametrize("lock", ["package-lock.json", "host/package-lock.json"])
def test_the_locks_name_no_host(lock: str) -> None:
    """They work with any mirror, and an installer can refuse any file that is not the one we tested."""
    packages = json.loads((SOURCE / lock).read_text(encoding="utf-8"))["packages"]

    assert [] == [name for name, package in packages.items() if "resolved" in package]
    assert [""] == [name for name, package in packages.items() if "integrity" not in package]
