"""The loops that are profiled, and the flame graph of one of them."""

import json
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from itertools import count
from pathlib import Path
from typing import Final

from batonpass.adapters.mcp.proxy.call_decision import Guard
from batonpass.adapters.mcp.proxy.proxy import Proxy
from batonpass.adapters.mcp.proxy.proxy_recorder import ProxyOrigin, ProxyRecorder
from batonpass.adapters.mcp.server_declaration import read_server
from batonpass.handoff.files.protected_paths import Protected, program_files
from bench import batons
from bench.flame_graph import draw, grow
from bench.measure import Act
from bench.proxying import ARGUMENT, RESULT
from bench.sampler import Sampler

FOLDER: Final = Path(__file__).resolve().parent.parent / ".profile"

_SECONDS: Final = 10.0  # of processor time
_ROUND: Final = 50  # acts, between which something may be prepared

# What prepares a round, and the act.
Loop = tuple[Act, Act]


def run_profile(name: str, scratch: Path) -> None:
    """Do an act again and again, write the flame graph, and say where it is."""
    sampler = Sampler(root=f"bench.profiles:{_repeat.__qualname__}")
    acts = 0
    with (
        tempfile.TemporaryDirectory(prefix="batonpass-bench-", dir=scratch) as folder,
        LOOPS[name](Path(folder)) as loop,
    ):
        prepare, act = loop
        prepare()
        _repeat(act, _ROUND)
        print(f"{name}: {_SECONDS:.0f} s of processor time …", flush=True)
        while sampler.seconds < _SECONDS:
            prepare()
            with sampler:
                _repeat(act, _ROUND)
            acts += _ROUND
    each = sampler.seconds / acts
    samples = sampler.stacks.total()
    drawn = draw(
        grow(sampler.stacks, name),
        title=f"Where the processor time of one {TITLES[name]} goes: {each * 1e3:.2f} ms",
        facts=(
            f"{samples:,} samples of {acts:,} acts, {time.strftime('%Y-%m-%d %H:%M')}. Below each function is what it "
            "calls, from left to right as in its source; time in C is its caller's."
        ),
        seconds=each,
    )
    FOLDER.mkdir(exist_ok=True)
    path = FOLDER / f"{name}.svg"
    path.write_text(drawn, encoding="utf-8")
    print(f"{samples:,} samples of {acts:,} acts, {each * 1e3:.2f} ms each: open {path.relative_to(FOLDER.parent)}")


def _repeat(act: Act, times: int) -> None:
    for _ in range(times):
        act()


@contextmanager
def _handoff(folder: Path) -> Iterator[Loop]:
    with batons.open_relay(folder) as relay:
        yield _nothing, batons.hands_off(relay)


@contextmanager
def _call(folder: Path) -> Iterator[Loop]:
    with batons.open_relay(folder) as relay:
        yield _nothing, batons.calls(relay)


@contextmanager
def _granted(folder: Path) -> Iterator[Loop]:
    with batons.open_relay(folder) as relay:
        yield _nothing, batons.calls_under_grant(relay)


@contextmanager
def _worker(folder: Path) -> Iterator[Loop]:
    with batons.open_relay(folder) as relay:
        yield lambda: batons.refills(relay, _ROUND), batons.works(relay)


@contextmanager
def _proxy(folder: Path) -> Iterator[Loop]:
    """Give both halves of a call through the proxy, in one thread: in its process there are two."""
    with batons.open_relay(folder) as relay:
        recorder = ProxyRecorder(lambda: relay, ProxyOrigin(by="user:ana"), enforced=False, tell=print)
        protected = Protected.around(folder, relay.store.url, folder, program=program_files())
        proxy = Proxy(
            read_server(None, "set-rates"), recorder, Guard(recorder, protected), to_client=_forget, to_server=_forget
        )
        numbers = count()

        def call() -> None:
            number = next(numbers)
            arguments = {"text": ARGUMENT, "number": number}
            params = {"name": "set_rates", "arguments": arguments}
            result = {"content": [{"type": "text", "text": RESULT}]}
            proxy.from_client(_line({"id": number, "method": "tools/call", "params": params}))
            proxy.from_server(_line({"id": number, "result": result}))

        yield _nothing, call


def _line(message: Mapping[str, object]) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n"


def _nothing() -> None:
    """Prepare nothing."""


def _forget(_: bytes) -> None:
    """Send nothing to anybody."""


LOOPS: Final[Mapping[str, Callable[[Path], AbstractContextManager[Loop]]]] = {
    "handoff": _handoff,
    "call": _call,
    "grant": _granted,
    "worker": _worker,
    "proxy": _proxy,
}
TITLES: Final = {
    "handoff": "handoff: offer, accept, close",
    "call": "tool call: request, finish",
    "grant": "tool call under a grant of three hops",
    "worker": "worker's step: claim, accept, close",
    "proxy": "call through the MCP proxy",
}
