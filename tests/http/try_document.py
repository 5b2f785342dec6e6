"""Every operation of the OpenAPI document, tried by Schemathesis on a real server, with a token of each role.

    python tests/http/try_document.py .venv/http/bin/st

No answer is a 5xx, and none has a status, a media type or a shape that the document does not have. Exits as
Schemathesis does.
"""

import os
import signal
import subprocess
import sys
import tempfile
import time
from datetime import timedelta
from pathlib import Path
from typing import Final

from batonpass.relay import Relay

CHECKS: Final = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"
ROLES: Final = {"admin": "user:ana", "agent": "service:nightly"}
PATIENCE: Final = 60


def main() -> int:
    """Start a server in an empty directory, try everything, and return the exit code."""
    program = str(Path(sys.executable).with_name("batonpass"))
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        with Relay.open(place / ".batonpass" / "ledger.db") as relay:
            tokens = [
                relay.admin.add_token(
                    whose, role, by=whose, lasts=timedelta(hours=1), may=["read:**"], may_delegate=["read:**"]
                ).text
                for role, whose in ROLES.items()
            ]
        server = subprocess.Popen([program, "serve", "--port", "0", "--no-link", "--address-file", "a"], cwd=place)
        try:
            return max(tried(place, token) for token in tokens)
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait(PATIENCE)


def tried(place: Path, token: str) -> int:
    """Try every operation but the stream with one token; return the exit code."""
    address, until = place / "a", time.monotonic() + PATIENCE
    while not (address.exists() and address.read_text()):
        if time.monotonic() > until:
            raise TimeoutError("the server does not listen")
        time.sleep(0.05)
    options = ["--phases", "coverage,fuzzing", "--max-examples", os.environ.get("EXAMPLES", "10"), "--checks", CHECKS]
    target = f"{address.read_text().strip()}/openapi.json"
    made = [str(Path(sys.argv[1]).absolute()), "run", target, "-H", f"Authorization: Bearer {token}", *options]
    return subprocess.run(
        [*made, "--exclude-operation-id", "streamEvents", "--generation-deterministic"], cwd=place, check=False
    ).returncode


if __name__ == "__main__":
    sys.exit(main())
