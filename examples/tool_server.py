"""A tool server that knows one public key and nothing else lets exactly those calls through that were granted.

    python examples/tool_server.py DIRECTORY

It runs in a second, on this machine alone. The server writes files below DIRECTORY. It has no ledger, no account and no
network: it is started with the root key of the ledger whose agents it serves. A lead holds `src` and `docs`, and hands
an editor the right to write Python files below `src`. The editor sends each call with a token that proves the grant,
hop by hop, and that the editor itself makes this very call.
"""

import json
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from batonpass import BatonpassError
from batonpass.clock import SystemClock
from batonpass.grants.issuer import Issuer, enrol, prove, revoke
from batonpass.grants.resolved_paths import WorkTreePaths
from batonpass.grants.verifier_memory import SeenProofs
from batonpass.guard import Permitted, verify_call
from batonpass.model.base.ids import (
    AgentId,
    PrincipalId,
    PublicKey,
    RunId,
    new_handoff_id,
    new_ledger_id,
    new_relay_id,
    new_run_id,
)
from batonpass.model.grants.call import Call, resolved
from batonpass.model.grants.grant import Chain, Grant, Signed, Terms
from batonpass.model.grants.scope_text import read_scope
from batonpass.signing.ed25519 import Ed25519Signer
from batonpass.wire.token import HEADER, encode_chain, encode_proof, encode_revocations, join_token

HOUR = timedelta(hours=1)
LONGEST_BODY = 1_000_000


class Tool(BaseHTTPRequestHandler):
    """POST /write_file with {"path": …, "text": …}: 200, or 403 with a sentence for the model that tried."""

    server: "ToolServer"

    def do_POST(self) -> None:
        """Do what was asked for, if it was granted."""
        try:
            arguments = json.loads(self.rfile.read(min(int(self.headers["Content-Length"]), LONGEST_BODY)))
            call = Call("write_file", "write", arguments["path"], arguments)
            # Where links lead is asked before the check, and the file is then opened by the name that was checked.
            acts_on = resolved(call, self.server.tree, paths={"path"})
            permitted = self.server.permit(self.headers.get(HEADER, ""), call, acts_on)
        except BatonpassError as error:
            self._answer(403, {"error": {"code": error.code, "message": str(error)}})
            return
        except (KeyError, TypeError, ValueError):
            self._answer(400, {"error": {"code": "request", "message": 'send {"path": …, "text": …}'}})
            return
        place = self.server.root / acts_on.resource
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(arguments["text"], encoding="utf-8")
        self._answer(200, {"written": acts_on.resource, "for": permitted.agent, "on_behalf_of": permitted.principal})

    def _answer(self, status: int, answer: dict[str, object]) -> None:
        body = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Keep quiet: the story is told by the client."""


class ToolServer(ThreadingHTTPServer):
    """Serves one directory, to whoever was granted something in it."""

    def __init__(self, root: Path, root_key: PublicKey) -> None:
        super().__init__(("127.0.0.1", 0), Tool)
        self.root = root
        self.tree = WorkTreePaths(root)
        self.address = f"http://127.0.0.1:{self.server_port}"
        self.root_key = root_key
        self.revoked = ""  # the newest list; without one, nothing is let through
        self.seen = SeenProofs()

    def permit(self, token: str, call: Call, acts_on: Call) -> Permitted:
        """Let a call be made, or refuse it with a sentence for whoever made it."""
        return verify_call(
            token,
            call,
            acts_on=acts_on,
            root_key=self.root_key,
            audience=self.address,
            at=datetime.now(UTC),
            revocations=self.revoked,
            proofs=self.seen,
        )


@contextmanager
def serving(root: Path, root_key: PublicKey) -> Iterator[ToolServer]:
    """Serve in a thread, until the story is over."""
    with ToolServer(root, root_key) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


class Ledger:
    """What a relay has: its key, which the ledger's root key has enrolled."""

    def __init__(self) -> None:
        now = datetime.now(UTC)
        self.root, relay = Ed25519Signer.generate(), Ed25519Signer.generate()
        self.enrolment = enrol(
            relay.public_key, ledger=new_ledger_id(now), relay=new_relay_id(now), root=self.root, at=now
        )
        self.issuer = Issuer(relay, SystemClock())

    def list_revoked(self, number: int, *runs: RunId) -> str:
        """Return the list of what is revoked, for every tool server to fetch."""
        made = revoke(number, signer=self.root, at=datetime.now(UTC), good_for=HOUR, runs=frozenset(runs))
        return encode_revocations(made)


class Editor:
    """A run that holds terms and a key of its own."""

    def __init__(self, ledger: Ledger, *terms: Signed[Terms]) -> None:
        self.run = new_run_id(datetime.now(UTC))
        self._key = Ed25519Signer.generate()
        certificate = ledger.issuer.certify(
            terms[-1], run=self.run, attempt=1, epoch=1, run_key=self._key.public_key, valid_for=timedelta(minutes=5)
        )
        self._chain = Chain(enrolments=(ledger.enrolment,), terms=terms, certificate=certificate)

    def token(self, server: ToolServer, path: str, text: str) -> str:
        """Return the proof of one call, for one server."""
        call = Call("write_file", "write", path, {"path": path, "text": text})
        proof = prove(call, self._chain.certificate, run_key=self._key, audience=server.address, at=datetime.now(UTC))
        return join_token(encode_chain(self._chain), encode_proof(proof))


def send(server: ToolServer, path: str, text: str, token: str) -> None:
    """Send a call, and tell what the server said."""
    connection = HTTPConnection("127.0.0.1", server.server_port, timeout=30)
    connection.request("POST", "/write_file", json.dumps({"path": path, "text": text}), {HEADER: token})
    response = connection.getresponse()
    said = json.loads(response.read())
    connection.close()
    told = f"[{said['error']['code']}] {said['error']['message']}" if "error" in said else json.dumps(said)
    print(f"{response.status} {path}: {told}")


def main(root: Path) -> None:
    """Play it."""
    (root / "src").mkdir(parents=True, exist_ok=True)
    (root / "src" / "ci").symlink_to("../.github")
    ledger = Ledger()
    now = datetime.now(UTC)
    run, everything = new_run_id(now), read_scope(["write:src/**", "write:docs/**"])
    lead = ledger.issuer.begin(
        Grant(may=everything, may_delegate=everything, until=now + HOUR, max_depth=2),
        agent=AgentId("lead"),
        principal=PrincipalId("user:ana"),
        root=run,
    )
    asked = Grant(may=read_scope(['write:src/** where path matches "*.py"']))
    terms = ledger.issuer.hand_off(lead, asked, depth=0, agent=AgentId("editor"), handoff=new_handoff_id(now), run=run)
    editor = Editor(ledger, lead, terms)

    with serving(root, ledger.root.public_key) as server:
        server.revoked = ledger.list_revoked(1)
        token = editor.token(server, "src/invoice.py", "ROUNDING = 'half-even'\n")
        send(server, "src/invoice.py", "ROUNDING = 'half-even'\n", token)
        print("- the same token again, and for something else:")
        send(server, "src/invoice.py", "ROUNDING = 'half-even'\n", token)
        send(server, "src/invoice.py", "ROUNDING = 'down'\n", token)
        print("- what was not granted, by its name and by a link:")
        for path in ("docs/index.md", "src/notes.txt", "src/ci/build.py", "src/../setup.py", "src/%2e%2e/setup.py"):
            send(server, path, "x", editor.token(server, path, "x"))
        print("- a thief who has seen a token, and no token at all:")
        thief = Editor(ledger, lead, terms)
        send(
            server,
            "src/a.py",
            "x",
            f"{token.partition('.')[0]}.{thief.token(server, 'src/a.py', 'x').partition('.')[2]}",
        )
        send(server, "src/a.py", "x", "")
        print("- the lead's run is revoked, and with it everything that hangs from it:")
        server.revoked = ledger.list_revoked(2, run)
        send(server, "src/a.py", "x", editor.token(server, "src/a.py", "x"))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
