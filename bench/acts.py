"""The acts whose cost is told: the ways through the product that people wait for."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from importlib.metadata import entry_points
from itertools import count
from json import loads
from os import environ
from pathlib import Path
from typing import Final, Protocol

from batonpass import Relay
from batonpass.adapters.coders import client
from batonpass.adapters.coders.client import HookInvocation
from batonpass.adapters.coders.resident import ask_who
from batonpass.adapters.coders.session.hook_recorder import HookRecorder
from batonpass.audit.verification.verify import verify_ledger
from bench import batons, hooking, ledger_blame, proxying, starting
from bench.cost import Cost, Turns, cost_of, repeat, spend
from bench.gauge import Gauges, children_cpu, cpu_of, cpu_of_tree, own_cpu, written_by
from bench.ledgers import count_receipts, fill, sqlite_ledger
from bench.measure import Act
from bench.postgres_server import missing_part, running_server
from bench.tally import Counts, Tally
from bench.wire import Wire

IN_FLIGHT: Final = 64

_COUNTED: Final = 40  # acts whose counts are the figure
_WARM: Final = 20
_OFFERED: Final = 240  # more than the steps of twenty turns, and of what warms up
_VERIFIED: Final = 1_000
_BLAMED: Final = 1_000
_COUNTER: Final = Path(__file__).with_name("counted.py")
_OWN: Final = Gauges(cpu=own_cpu, written=written_by)
_CHILDREN: Final = Gauges(cpu=children_cpu)


class Subject(Protocol):
    """Something whose cost can be told."""

    @property
    def name(self) -> str:
        """Return what it is called, here and in the file of what has landed."""

    def cost(self, scratch: Path, turns: int) -> Cost | None:
        """Measure it in an empty folder; None if something that it needs is not installed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InProcess:
    """An act of this process: measured in one ledger, then counted in another one."""

    name: str
    open: Callable[[Path], AbstractContextManager[Act]]
    acts: int = 20
    each: int = 1
    counted: int = _COUNTED
    warm: int = _WARM

    def cost(self, scratch: Path, turns: int) -> Cost:
        """Measure it, then count."""
        with self.open(scratch / "timed") as act:
            repeat(act, self.warm)
            spent = spend(act, _OWN, Turns(turns=turns, acts=self.acts, each=self.each), scratch)
        with Tally() as tally, self.open(scratch / "counted") as act:
            counts = _count(tally, act, self.warm, self.counted)
        return cost_of(self.name, spent, counts, self.counted * self.each)


@dataclass(frozen=True, slots=True, kw_only=True)
class OnPostgres:
    """A handoff on a server of our own: the server's processor time stands beside ours."""

    name: str
    acts: int = 10

    def cost(self, scratch: Path, turns: int) -> Cost | None:
        """Measure it, then count on its way to the server."""
        if missing_part() is not None:
            return None
        import psycopg  # noqa: PLC0415 - it may be missing

        with running_server(scratch) as url, psycopg.connect(url, autocommit=True) as asking:
            server = int((scratch / "data" / "postmaster.pid").read_text(encoding="ascii").split()[0])

            def logged() -> float:
                row = asking.execute("SELECT pg_current_wal_insert_lsn() - '0/0'").fetchone()
                return float(row[0]) if row else 0.0

            gauges = Gauges(cpu=own_cpu, beside=lambda: cpu_of_tree(server), written=logged)
            with batons.open_relay(scratch / "timed", url) as relay:
                act = batons.hands_off(relay)
                repeat(act, _WARM)
                spent = spend(act, gauges, Turns(turns=turns, acts=self.acts), scratch)
            with Wire(url) as wire, Tally() as tally, batons.open_relay(scratch / "timed", wire.url) as relay:
                act = batons.hands_off(relay)
                repeat(act, _WARM)
                before, statements, trips = tally.read(), wire.statements, wire.trips
                repeat(act, _COUNTED)
                counted = tally.read().since(before)
                asked = wire.statements - statements
                counts = Counts(calls=counted.calls, statements=asked, steps=0, pages=0)
                trips = wire.trips - trips
        return cost_of(self.name, spent, counts, _COUNTED, trips).without_sqlite()


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """A fresh process from its start to its end."""

    name: str
    command: Callable[[Path], list[str]]
    program: str  # the same, as `python -c` would be given it
    sql: bool = True

    def cost(self, scratch: Path, turns: int) -> Cost:
        """Measure it, then count."""
        command = self.command(scratch)
        spent = spend(starting.runs(command), _CHILDREN, Turns(turns=max(turns // 2, 1), acts=1), scratch)
        counts = _count_process(scratch, self.program, command[1:], sql=self.sql)
        return cost_of(self.name, spent, counts)


@dataclass(frozen=True, slots=True, kw_only=True)
class ThroughProxy:
    """A call through the MCP proxy, which is a process of its own."""

    name: str
    acts: int = 20

    def cost(self, scratch: Path, turns: int) -> Cost:
        """Measure it, then count in two runs of which one makes more calls."""
        with proxying.served(proxying.proxy_command(scratch / "timed.db"), scratch) as through:
            through.greet()
            repeat(through.call, _WARM)
            gauges = Gauges(cpu=lambda: cpu_of(through.pid), written=lambda: written_by(through.pid))
            spent = spend(through.call, gauges, Turns(turns=turns, acts=self.acts), scratch)
        few, many = (self._count(scratch, calls) for calls in (_WARM, 2 * _WARM))
        return cost_of(self.name, spent, many.since(few), _WARM)

    def _count(self, scratch: Path, calls: int) -> Counts:
        report = scratch / "report"
        _, *arguments = proxying.proxy_command(scratch / f"{calls}.db")
        with proxying.served(_counting(report, _command_line(), arguments, sql=True), scratch) as through:
            through.greet()
            repeat(through.call, calls)
        return Counts(**loads(report.read_text(encoding="utf-8")))


@dataclass(frozen=True, slots=True, kw_only=True)
class Hook:
    """The command that Claude Code starts for each event; the recorder that it tells is beside it."""

    name: str
    acts: int = 4

    def cost(self, scratch: Path, turns: int) -> Cost:
        """Measure it, then count in the command alone."""
        project = hooking.project_at(scratch / "project")
        command = hooking.hook_command(project)
        events = map(hooking.event_bytes, count())

        def tell() -> None:
            hooking.run_event(command, next(events))

        with hooking.ended(project):
            repeat(tell, 2)
            recorder = _recorder_of(project)
            gauges = Gauges(cpu=children_cpu, beside=lambda: cpu_of(recorder), written=lambda: written_by(recorder))
            spent = spend(tell, gauges, Turns(turns=turns, acts=self.acts), scratch)
            program = f"exec(compile(open({client.__file__!r}).read(), 'client', 'exec'))"
            counts = _count_process(scratch, program, command[4:], sql=False, given=next(events))
        return cost_of(self.name, spent, counts).without_sqlite()


def subjects() -> tuple[Subject, ...]:
    """Return all of them, in the order of the table."""
    return (
        InProcess(name="handoff", open=_on_relay(batons.hands_off)),
        InProcess(
            name=f"handoff, {IN_FLIGHT} in flight", open=_in_flight, acts=1, each=2 * IN_FLIGHT, counted=1, warm=1
        ),
        InProcess(name="tool call", open=_on_relay(batons.calls)),
        InProcess(name="tool call under a grant of three hops", open=_on_relay(batons.calls_under_grant)),
        InProcess(name="worker step", open=_works, acts=10),
        OnPostgres(name="handoff on PostgreSQL"),
        ThroughProxy(name="call through the MCP proxy"),
        Hook(name="hook event, the command"),
        InProcess(name="hook event, the recorder", open=_records, acts=10),
        InProcess(name="verify, one receipt", open=_verifies, acts=1, each=_VERIFIED, counted=1, warm=1),
        InProcess(name="blame of one line", open=_blames, acts=4, counted=10, warm=3),
        Process(
            name="import Relay",
            command=lambda _: starting.IMPORT_RELAY,
            program=starting.IMPORT_RELAY[-1],
            sql=False,
        ),
        *(_short_command(name) for name in ("--version", "run list", "handoff list")),
    )


def _short_command(name: str) -> Process:
    return Process(
        name=f"batonpass {name}",
        command=lambda scratch: starting.short_commands(scratch)[f"batonpass {name}"],
        program=_command_line(),
        sql=name != "--version",
    )


def _on_relay(make: Callable[[Relay], Act]) -> Callable[[Path], AbstractContextManager[Act]]:
    @contextmanager
    def opened(folder: Path) -> Iterator[Act]:
        with batons.open_relay(folder) as relay:
            yield make(relay)

    return opened


@contextmanager
def _in_flight(folder: Path) -> Iterator[Act]:
    """Give an act that is two handoffs of each of 64 threads."""
    with batons.open_relay(folder) as relay, ThreadPoolExecutor(IN_FLIGHT) as threads:
        acts = [batons.hands_off(relay) for _ in range(IN_FLIGHT)]
        yield lambda: list(threads.map(lambda act: repeat(act, 2), acts))


@contextmanager
def _works(folder: Path) -> Iterator[Act]:
    with batons.open_relay(folder) as relay:
        batons.refills(relay, _OFFERED)
        yield batons.works(relay)


@contextmanager
def _records(folder: Path) -> Iterator[Act]:
    project = hooking.project_at(folder)
    events = map(hooking.event_bytes, count())
    with Relay.open(f"sqlite:///{project}/.batonpass/ledger.db", keys_in_files=True) as relay:
        recorder = HookRecorder(relay, project)
        yield lambda: recorder.handle(loads(next(events)))


@contextmanager
def _verifies(folder: Path) -> Iterator[Act]:
    with sqlite_ledger(folder) as scribe:
        fill(scribe, _VERIFIED - count_receipts(scribe))
        yield lambda: verify_ledger(scribe.store)


@contextmanager
def _blames(folder: Path) -> Iterator[Act]:
    with sqlite_ledger(folder) as scribe:
        yield ledger_blame.asks(scribe, _BLAMED)


def _count(tally: Tally, act: Act, warm: int, times: int) -> Counts:
    repeat(act, warm)
    before = tally.read()
    repeat(act, times)
    return tally.read().since(before)


def _count_process(scratch: Path, program: str, arguments: list[str], *, sql: bool, given: bytes = b"") -> Counts:
    report = scratch / "report"
    command = _counting(report, program, arguments, sql=sql)
    for _ in range(2):  # the first one may have to compile something
        subprocess.run(command, input=given, stdout=subprocess.DEVNULL, check=True)
    return Counts(**loads(report.read_text(encoding="utf-8")))


def _counting(report: Path, program: str, arguments: list[str], *, sql: bool) -> list[str]:
    return [sys.executable, str(_COUNTER), str(report), "sql" if sql else "nosql", program, *arguments]


def _command_line() -> str:
    """Return the program behind the command `batonpass`."""
    (script,) = entry_points(group="console_scripts", name="batonpass")
    return f"from {script.module} import {script.attr}; {script.attr}()"


def _recorder_of(project: Path) -> int:
    answer = ask_who(HookInvocation(["--project", str(project)], dict(environ)), 60)
    if answer is None:
        raise AssertionError("the first event has started a recorder")
    return int(answer.rpartition(" ")[2])
