"""Every operation of the OpenAPI document, tried by Schemathesis on a real server, by an administrator and an agent.

    python tests/http/try_document.py .venv/http/bin/st

No answer is a 5xx, none has a status, a media type or a shape that the document does not have, and nothing that the
document forbids is taken. Each role tries the operations that let it in: that
the others do not is tested with the table of routes. EXAMPLES says how many requests are made up for each operation,
beside the systematic ones. Prints how often each status was answered, and exits as Schemathesis does; it also fails if
an operation never came further than its refusals.
"""

import http.server
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from batonpass.dispatch.egress import Egress
from batonpass.dispatch.egress_rule import EgressRule
from batonpass.dispatch.webhooks import Webhooks
from batonpass.model.policy.listed_place import read_listed
from batonpass.relay import Relay
from batonpass.server.routes import ENDPOINTS

CHECKS: Final = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_schema_conformance",
    "negative_data_rejection",
)
ROLES: Final = {"admin": "user:ana", "agent": "service:nightly"}
STREAM: Final = "streamEvents"  # it does not end; its tests are elsewhere
# What needs more than a name: the act that waits for a signature, and a worker's lease.
FAR: Final = frozenset(
    {
        "signAct",
        "renewLease",
        "releaseLease",
        "settleCall",
        "acknowledgeFinding",
        "acknowledgeAlarm",  # nobody there is in alarm
        "takeResult",
        "prepareRuling",  # nobody there has a passkey
    }
)
AGENTS: Final = ("lead", "editor", "asked", "child", "held", "worker", "checked", "failing")
PATIENCE: Final = 60
LASTS: Final = timedelta(hours=2)
POLICY: Final = """
[[rules]]
name = "sheet"
on = "handoff"
agent = "held"
gate = "approve"

[egress]
allow = ["127.0.0.1"]
"""


class Taker(http.server.BaseHTTPRequestHandler):
    """Takes whatever a webhook is told."""

    def do_POST(self) -> None:
        """Take it."""
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def main() -> int:
    """Start a server in an empty directory, try everything, and return the exit code."""
    with tempfile.TemporaryDirectory() as folder, taker() as webhook:
        place = Path(folder)
        (place / "batonpass.toml").write_text(POLICY)
        known = prepared(place, webhook)
        with served(place) as address:
            known["port"] = int(address.rpartition(":")[2])
            (place / "known.json").write_text(json.dumps(known))
            codes = [tried(place, address, role, str(known["tokens"][role])) for role in ROLES]
        return max(*codes, told(place))


def prepared(place: Path, webhook: str) -> dict[str, Any]:
    """Make the tokens and webhooks; return what the hooks need to know."""
    with Relay.open(place / ".batonpass" / "ledger.db", work_tree=place) as relay:
        made = {
            role: relay.admin.add_token(
                whose,
                role,
                by=whose,
                lasts=LASTS,
                may=["read:**", "call:*"],
                may_delegate=["read:**"],
                agents=AGENTS if role == "agent" else (),
            )
            for role, whose in ROLES.items()
        }

        spare = [relay.admin.add_token("user:eve", "auditor", by="user:ana", lasts=LASTS).id for _ in range(20)]
        hooks = Webhooks(relay, Egress(EgressRule([read_listed("127.0.0.1")])))
        webhooks = [hooks.add(webhook, by="user:ana").id for _ in range(3)]
    return {
        "tokens": {role: one.text for role, one in made.items()},
        "kept_tokens": [one.id for one in made.values()],
        "spare_tokens": spare,
        "webhooks": webhooks,
        "hook": webhook,
    }


@contextmanager
def taker() -> Iterator[str]:
    """Return the address of somebody who takes webhooks."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Taker) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/hook"
        server.shutdown()


@contextmanager
def served(place: Path) -> Iterator[str]:
    """Start a server, and return its address."""
    program = str(Path(sys.executable).with_name("batonpass"))
    server = subprocess.Popen([program, "serve", "--port", "0", "--no-link", "--address-file", "a"], cwd=place)
    try:
        address, until = place / "a", time.monotonic() + PATIENCE
        while not (address.exists() and address.read_text()):
            if time.monotonic() > until:
                raise TimeoutError("the server does not listen")
            time.sleep(0.05)
        yield address.read_text().strip()
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(PATIENCE)


def names_for(role: str) -> list[str]:
    """Return the operations that a role tries."""
    return [one.name for one in ENDPOINTS if role in one.roles and one.name != STREAM]


def tried(place: Path, address: str, role: str, token: str) -> int:
    """Try every operation that lets a role in; return the exit code."""
    options = ["--phases", "coverage,fuzzing", "--max-examples", os.environ.get("EXAMPLES", "20")]
    options += [
        "--checks",
        ",".join(CHECKS),
        "--generation-deterministic",
        "--continue-on-failure",
        "--warnings",
        "off",
    ]
    for name in names_for(role):
        options += ["--include-operation-id", name]
    made = [str(Path(sys.argv[1]).absolute()), "run", f"{address}/openapi.json", "-H", f"Authorization: Bearer {token}"]
    hooks = {"SCHEMATHESIS_HOOKS": "living_names", "PYTHONPATH": str(Path(__file__).parent)}
    told = {"TRIED_PLACE": str(place), "TRIED_ROLE": role}
    return subprocess.run([*made, *options], cwd=place, check=False, env={**os.environ, **hooks, **told}).returncode


def told(place: Path) -> int:
    """Print what was answered; return 1 if an operation was never done for somebody whom it lets in."""
    never: list[str] = []
    for role in ROLES:
        counted: Counter[str] = Counter()
        for file in place.glob(f"answered-{role}-*.json"):
            counted.update(json.loads(file.read_text()))
        by_status: Counter[str] = Counter()
        for name, times in counted.items():
            by_status[name.partition(" ")[2]] += times
        said = ", ".join(f"{times} × {status}" for status, times in sorted(by_status.items()))
        sys.stdout.write(f"{role}: {sum(counted.values())} requests: {said}\n")
        done = {name.partition(" ")[0] for name in counted if name.partition(" ")[2].startswith("2")}
        never += [f"{name} ({role})" for name in names_for(role) if name not in done | FAR]
    sys.stdout.write(f"never done: {', '.join(never) or 'none'}\n")
    return bool(never)


if __name__ == "__main__":
    sys.exit(main())
