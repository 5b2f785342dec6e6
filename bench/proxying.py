"""What the MCP proxy adds to a call: a client and a server that do nothing else, with it and without it."""

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from bench.effort import Effort
from bench.limits import RawFile
from bench.measure import Act, time_in_turns
from bench.table import Row, p50, p99

_SERVER = """
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    result = {"content": [{"type": "text", "text": message["params"]["arguments"]["text"]}]}
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}) + "\\n")
    sys.stdout.flush()
"""
_TEXT = "x" * 500
_BYTES = 1500  # of one of the two receipts, with its content


def measure(scratch: Path, effort: Effort) -> Sequence[Row]:
    """Measure calls until the client has the answer; behind the proxy, request and outcome are durable by then."""
    bare = [sys.executable, "-I", "-S", "-c", _SERVER]
    proxy = [str(Path(sys.executable).with_name("batonpass")), "mcp-proxy", "--ledger", str(scratch / "ledger.db")]
    raw = RawFile(scratch / "raw", _BYTES)
    with _calls(bare, scratch) as direct, _calls([*proxy, "--", *bare], scratch) as through:
        contenders: dict[str, Act] = {"direct": direct, "through": through, "raw": raw.append}
        taken = time_in_turns(contenders, turns=effort.turns, acts=effort.acts)
    rows = {"MCP call through the proxy, durable": p50, "the same, p99": p99}
    return [
        Row(what=what, ours=figure(taken["through"]), against=against, theirs=figure(taken[name]))
        for what, figure in rows.items()
        for against, name in (("the same call without it", "direct"), ("raw append+fsync", "raw"))
    ]


@contextmanager
def _calls(command: Sequence[str], folder: Path) -> Iterator[Act]:
    """Start a server, and give what calls it once."""
    with subprocess.Popen(command, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        reading, writing, numbers = process.stdout, process.stdin, count()
        if reading is None or writing is None:
            raise BrokenPipeError

        def call() -> None:
            number = next(numbers)
            params = {"name": "echo", "arguments": {"text": _TEXT, "number": number}}
            message = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}
            writing.write(json.dumps(message).encode() + b"\n")
            writing.flush()
            reading.readline()

        call()
        yield call
        writing.close()
