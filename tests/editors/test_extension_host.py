"""The extension in a real VS Code: its workbench in a browser, its extension host, and a workspace that nobody trusts.

`make test-editors` fetches both; they are 700 MB, so `make test` goes without.
"""

import json
import os
import subprocess
from pathlib import Path

import pytest

from editors.vscode.vsix import pack
from tests.editors.extension import HOST, NODE, PROGRAM, SOURCE, built
from tests.unit.accounts.shop import ANA, Shop

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (HOST / ".installed").exists(), reason="`make test-editors` fetches the extension host"),
]
TASK = "Round half-even, see [x](command:evil) ![x](https://evil.example/x.png) <img src=x> https://evil.example"


def test_a_person_sees_who_wrote_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By status bar, lens, annotation, marks, hover and command, in restricted mode; nothing is live, run or made."""
    work, sprung = tmp_path / "work", tmp_path / "sprung"
    work.mkdir()
    evil = tmp_path / "evil.sh"
    evil.write_text(f"#!/bin/sh\ntouch {sprung}\n", encoding="utf-8")
    evil.chmod(0o755)
    monkeypatch.chdir(work)
    shop = Shop(work, f"sqlite:///{work}/.batonpass/ledger.db")
    with shop.relay.start("Fix it", by=ANA) as lead:
        shop.edits(lead, text="one = 1\ntwo = 2\n", task=TASK)
    shop.relay.close()
    (work / ".vscode").mkdir()
    (work / ".vscode" / "settings.json").write_text(json.dumps({"batonpass.path": str(evil)}), encoding="utf-8")
    (work / "batonpass").symlink_to(evil)
    before = sorted(str(path) for path in work.rglob("*"))

    extensions, data = tmp_path / "extensions", tmp_path / "data"
    install(built(tmp_path), extensions, data, tmp_path)
    machine = data / "data" / "Machine"
    machine.mkdir(parents=True, exist_ok=True)
    (machine / "settings.json").write_text(json.dumps({"batonpass.path": str(PROGRAM)}), encoding="utf-8")
    command = [str(NODE), str(SOURCE / "host" / "look.mjs"), str(HOST), str(extensions), str(data), str(work / "a.py")]
    home = {**os.environ, "HOME": str(tmp_path)}
    done = subprocess.run(command, env=home, check=False, capture_output=True, text=True, timeout=600)
    seen = json.loads(done.stdout.splitlines()[-1])

    assert "failed" not in seen, seen
    assert (True, True, True) == (
        seen["restricted"],
        seen["bar"].startswith("editor "),
        seen["lenses"][0].startswith(seen["bar"]),
    )
    assert (True, 2, []) == (seen["bar"] in seen["behind"], seen["marks"], seen["live"])
    assert (True, True) == ("https://evil.example" in seen["card"], seen["bar"] in seen["said"])
    assert (False, before) == (sprung.exists(), sorted(str(path) for path in work.rglob("*")))


def install(extension: Path, extensions: Path, data: Path, folder: Path) -> None:
    """Install the package as a person does, by the editor's own command."""
    package = folder / "batonpass.vsix"
    pack(extension, package)
    server = HOST / "node_modules" / "code-server" / "lib" / "vscode" / "out" / "server-main.js"
    command = [str(NODE), str(server), "--install-extension", str(package), "--accept-server-license-terms"]
    places = ["--extensions-dir", str(extensions), "--server-data-dir", str(data)]
    done = subprocess.run([*command, *places], check=False, capture_output=True, text=True)
    assert "was successfully installed" in done.stdout, done.stdout + done.stderr
