"""Contenders in processes of their own: Batonpass itself, the engines it is measured beside, and bare commits.

python bench/peers.py NAME WHERE        answers orders, one a line, until its input ends

`time ACTS` answers the median seconds of so many acts, `race THREADS SECONDS` how many acts a second so many threads do
together, and `waits SECONDS` how many acts one thread did, with the median and the longest of them.
"""

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from itertools import count
from statistics import median
from typing import TYPE_CHECKING, Any, Final, Self, TypedDict

import workload

if TYPE_CHECKING:
    from types import TracebackType

    from langgraph.checkpoint.base import BaseCheckpointSaver

Make = Callable[[], workload.Act]

POSTGRES_WORKERS: Final = 8
_WARM: Final = 100
_RECEIPT_BYTES: Final = 1_900  # of a handoff with a baton of 3 KB, in the mean of its three
_NUMBERS: Final = count(1)


class PeerError(Exception):
    """A contender did not start."""


def batonpass(where: str) -> Make:
    """Batonpass on a file or a server. Each act has a lead of its own, as programs have."""
    from batonpass import Relay  # noqa: PLC0415 - a contender imports what it runs

    relay = Relay.open(where)
    return lambda: workload.hands_off(relay.start(workload.SENTENCE, by=workload.PRINCIPAL))


def langgraph_sqlite(where: str) -> Make:
    """LangGraph with its SqliteSaver, synced at each commit as we are."""
    import sqlite3  # noqa: PLC0415

    from langgraph.checkpoint.sqlite import SqliteSaver  # noqa: PLC0415

    connection = sqlite3.connect(where, check_same_thread=False)
    saver = SqliteSaver(connection)
    saver.setup()
    connection.execute("PRAGMA synchronous=FULL")
    return _langgraph(saver)


def langgraph_postgres(where: str) -> Make:
    """LangGraph with its PostgresSaver, over a pool."""
    from langgraph.checkpoint.postgres import PostgresSaver  # noqa: PLC0415
    from psycopg import connect  # noqa: PLC0415
    from psycopg.rows import dict_row  # noqa: PLC0415
    from psycopg_pool import ConnectionPool  # noqa: PLC0415

    options: dict[str, Any] = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}
    pool = ConnectionPool(where, min_size=POSTGRES_WORKERS, max_size=POSTGRES_WORKERS, kwargs=options, open=True)
    saver = PostgresSaver(pool)
    with connect(where) as connection:
        connection.execute("SELECT pg_advisory_xact_lock(1)")
        saver.setup()
    return _langgraph(saver)


class _State(TypedDict, total=False):
    baton: dict[str, Any]
    done: bool


def _langgraph(saver: "BaseCheckpointSaver[str]") -> Make:
    """Let a parent node hand state to a child node, with a thread for each handoff, every superstep durable."""
    from langgraph.graph import END, START, StateGraph  # noqa: PLC0415
    from langgraph.types import Command  # noqa: PLC0415

    def parent(_: _State) -> Command[str]:
        return Command(goto="child", update={"baton": workload.baton_of_peer()})

    graph = StateGraph(_State)
    graph.add_node("parent", parent, destinations=("child",))
    graph.add_node("child", lambda _: {"done": True})
    graph.add_edge(START, "parent")
    graph.add_edge("child", END)
    compiled = graph.compile(checkpointer=saver)

    def hand_off() -> None:
        thread = f"thread-{os.getpid()}-{next(_NUMBERS)}"
        compiled.invoke({}, {"configurable": {"thread_id": thread}}, durability="sync")

    return lambda: hand_off


def dbos(where: str) -> Make:
    """Let a workflow hand its input to a step; workflow, step and result are durable."""
    import sqlalchemy  # noqa: PLC0415
    from dbos import DBOS  # noqa: PLC0415

    engine = sqlalchemy.create_engine(f"sqlite:///{where}", connect_args={"timeout": 30})

    @sqlalchemy.event.listens_for(engine, "connect")
    def make_durable(connection: Any, _: object) -> None:  # noqa: ANN401 - the driver's connection
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")

    @DBOS.step()
    def child(baton: dict[str, Any]) -> dict[str, bool]:
        return {"done": bool(baton)}

    @DBOS.workflow()
    def hand_off(baton: dict[str, Any]) -> dict[str, bool]:
        return child(baton)

    DBOS(config={"name": "bench", "log_level": "ERROR", "run_admin_server": False, "system_database_engine": engine})
    DBOS.launch()
    return lambda: lambda: hand_off(workload.baton_of_peer())


def three_inserts(where: str) -> Make:
    """Three one-row inserts of what a receipt weighs, each durable, on a connection of its own: the lower limit."""
    import psycopg  # noqa: PLC0415

    with psycopg.connect(where) as connection:
        connection.execute("SELECT pg_advisory_xact_lock(2)")
        connection.execute(
            "CREATE TABLE IF NOT EXISTS bare (number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, body bytea)"
        )

    def make() -> workload.Act:
        connection = psycopg.connect(where, autocommit=True)
        data = os.urandom(_RECEIPT_BYTES)

        def insert() -> None:
            for _ in range(3):
                connection.execute("INSERT INTO bare (body) VALUES (%s)", (data,), prepare=True)

        return insert

    return make


MAKERS: Final[dict[str, Callable[[str], Make]]] = {
    "batonpass": batonpass,
    "langgraph_sqlite": langgraph_sqlite,
    "langgraph_postgres": langgraph_postgres,
    "dbos": dbos,
    "three_inserts": three_inserts,
}


def time_acts(act: workload.Act, acts: int) -> float:
    """Return the median seconds of an act."""
    return median(_seconds(act) for _ in range(acts))


def _seconds(act: workload.Act) -> float:
    began = time.perf_counter()
    act()
    return time.perf_counter() - began


def race(make: Make, threads: int, seconds: float) -> float:
    """Return how many acts in a second so many threads do together."""
    acts = [make() for _ in range(threads)]
    done, barrier = [0] * threads, threading.Barrier(threads + 1)

    def work(number: int) -> None:
        barrier.wait()
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            acts[number]()
            done[number] += 1

    workers = [threading.Thread(target=work, args=(number,)) for number in range(threads)]
    for worker in workers:
        worker.start()
    barrier.wait()
    began = time.perf_counter()
    for worker in workers:
        worker.join()
    return sum(done) / (time.perf_counter() - began)


def waits(act: workload.Act, seconds: float) -> list[float]:
    """Return how many acts one thread did, the median of their seconds, and the longest."""
    end, taken = time.perf_counter() + seconds, [_seconds(act)]
    while time.perf_counter() < end:
        taken.append(_seconds(act))
    return [len(taken), median(taken), max(taken)]


class Peer:
    """A contender in a process of its own, which measures itself when it is asked."""

    def __init__(self, name: str, where: str) -> None:
        command = [sys.executable, __file__, name, where]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._name = name

    def __enter__(self) -> Self:
        if self._answer() != "ready":
            raise PeerError(f"{self._name} did not start")
        return self

    def ask(self, *order: object) -> Any:  # noqa: ANN401 - a figure, or a list of them
        """Return what it measured."""
        self.order(*order)
        return self.answer()

    def order(self, *order: object) -> None:
        """Let it begin to measure."""
        if self._process.stdin is None:
            raise PeerError(self._name)
        print(*order, file=self._process.stdin, flush=True)

    def answer(self) -> Any:  # noqa: ANN401 - as `ask`
        """Return what it measured, when it is done."""
        return json.loads(self._answer())

    def _answer(self) -> str:
        if self._process.stdout is None:
            raise PeerError(self._name)
        return self._process.stdout.readline().strip()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: "TracebackType | None"
    ) -> None:
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process.wait(30)


def serve(make: Make) -> None:
    """Answer orders, one a line."""
    act = make()
    for _ in range(_WARM):
        act()
    print("ready", flush=True)
    for line in sys.stdin:
        match line.split():
            case ["time", acts]:
                print(time_acts(act, int(acts)), flush=True)
            case ["race", threads, seconds]:
                print(race(make, int(threads), float(seconds)), flush=True)
            case ["waits", seconds]:
                print(waits(act, float(seconds)), flush=True)
    os._exit(0)  # some engines have threads that do not end


if __name__ == "__main__":
    serve(MAKERS[sys.argv[1]](sys.argv[2]))
