"""What the MCP proxy adds to a call: a client and a server that do nothing else, with it and without it."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any, Final

from bench.effort import Effort
from bench.gauge import cpu_of
from bench.limits import RawFile
from bench.measure import Act, Samples, time_act, time_in_turns
from bench.table import Figure, Row, Unit, p50, p99, within

# Two texts of 500 bytes that have no passage in common: where the result of an earlier call stands in arguments, more
# is looked at, and that is another act.
ARGUMENT: Final = "".join(f"Set the rate of line {line} to {line * 37 % 100} per cent. " for line in range(20))[:500]
RESULT: Final = "".join(f"changed {line}: ok, was {line * 53 % 97}; " for line in range(30))[:500]

_SERVER: Final = f"""
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    if message["method"] == "initialize":
        server = dict(name="set-rates", version="1")
        result = dict(protocolVersion="2025-06-18", capabilities=dict(tools=dict()), serverInfo=server)
    else:
        result = dict(content=[dict(type="text", text={RESULT!r})])
    sys.stdout.write(json.dumps(dict(jsonrpc="2.0", id=message["id"], result=result)) + "\\n")
    sys.stdout.flush()
"""
SERVER: Final = [sys.executable, "-I", "-S", "-c", _SERVER]

_HELLO: Final = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "bench", "version": "1"},
}
_BYTES: Final = 1500  # of one of the two receipts, with its content
_STARTS: Final = 5


class Client:
    """An MCP client that talks to one process, which may be a proxy."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        if process.stdin is None or process.stdout is None:
            raise BrokenPipeError
        self.pid = process.pid
        self._writing, self._reading = process.stdin, process.stdout
        self._numbers = count()

    def greet(self) -> None:
        """Say hello, and wait for the answer: from then on calls can be made."""
        self._ask("initialize", _HELLO)

    def call(self) -> None:
        """Call the tool, and wait for its result."""
        self._ask("tools/call", {"name": "set_rates", "arguments": {"text": ARGUMENT, "number": next(self._numbers)}})

    def _ask(self, method: str, params: dict[str, Any]) -> None:
        message = {"jsonrpc": "2.0", "id": next(self._numbers), "method": method, "params": params}
        self._writing.write(json.dumps(message).encode() + b"\n")
        self._writing.flush()
        if not self._reading.readline():
            raise BrokenPipeError(f"no answer to {method}")


def measure(scratch: Path, effort: Effort) -> Sequence[Row]:
    """Measure calls until the client has the answer; behind the proxy, request and outcome are durable by then."""
    raw = RawFile(scratch / "raw", _BYTES)
    with served(SERVER, scratch) as direct, served(proxy_command(scratch / "ledger.db"), scratch) as through:
        direct.greet()
        through.greet()
        contenders: dict[str, Act] = {"direct": direct.call, "through": through.call, "raw": raw.append}
        taken = time_in_turns(contenders, turns=effort.turns, acts=effort.acts)
        before = cpu_of(through.pid)
        time_act(through.call, effort.turns * 2)
        cpu = (cpu_of(through.pid) - before) / (effort.turns * 2)
    rows = {"MCP call through the proxy, durable": p50, "the same, p99": p99}
    return [
        *(
            Row(what=what, ours=figure(taken["through"]), against=against, theirs=figure(taken[name]))
            for what, figure in rows.items()
            for against, name in (("the same call without it", "direct"), ("raw append+fsync", "raw"))
        ),
        Row(
            what="processor time of the proxy for a call",
            ours=Figure(cpu, Unit.SECONDS),
            against="",
            theirs=None,
            goal=within(0.001, must=0.0015),
        ),
        *_starts(scratch),
    ]


def proxy_command(ledger: Path) -> list[str]:
    """Return the command of a proxy before the server that does nothing."""
    program = str(Path(sys.executable).with_name("batonpass"))
    return [program, "mcp-proxy", "--ledger", str(ledger), "--", *SERVER]


@contextmanager
def served(command: Sequence[str], folder: Path) -> Iterator[Client]:
    """Start a server, or a proxy before one, and give its client; both are gone in the end."""
    with subprocess.Popen(command, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        yield Client(process)
        if process.stdin is not None:
            process.stdin.close()


def start(command: Sequence[str], folder: Path) -> tuple[float, float]:
    """Return how long it took from a start to the first answer, and the processor time until then."""
    began = time.perf_counter()
    with served(command, folder) as client:
        client.greet()
        return time.perf_counter() - began, cpu_of(client.pid)


def _starts(scratch: Path) -> Iterator[Row]:
    ledger = scratch / "ledger.db"
    proxies, servers = zip(
        *((start(proxy_command(ledger), scratch), start(SERVER, scratch)) for _ in range(_STARTS)), strict=True
    )
    waited, used = (Samples(values) for values in zip(*proxies, strict=True))
    bare = Samples(tuple(seconds for seconds, _ in servers))
    what = "MCP proxy, from its start to the first answer"
    goal = within(0.25, must=0.4)
    yield Row(what=what, ours=p50(waited), against="the server without it", theirs=p50(bare), goal=goal)
    yield Row(what="processor time of the proxy until then", ours=p50(used), against="", theirs=None)
