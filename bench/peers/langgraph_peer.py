"""LangGraph: a parent node hands state to a child node, a thread for each handoff, every superstep durable."""

import operator
import sqlite3
from importlib.metadata import version
from itertools import count
from pathlib import Path
from typing import Annotated, Any, TypedDict

from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command
from psycopg.rows import dict_row
from psycopg_pool import ConnectionPool

from bench.measure import Act
from bench.peers.serving import serve, settings

_NUMBERS = count(1)
_SYNCHRONOUS = {0: "off", 1: "normal", 2: "full", 3: "extra"}


class State(TypedDict, total=False):
    """What travels from node to node."""

    baton: dict[str, Any]
    done: bool


class Replaced(TypedDict, total=False):
    """The state of a chain in which each hop leaves only its own baton."""

    hop: int
    baton: dict[str, Any]


class Kept(Replaced, total=False):
    """The state of a chain in which each hop adds what it decided to what all before it decided."""

    decided: Annotated[list[dict[str, str]], operator.add]


def main() -> None:
    """Serve one saver: on a SQLite file, or on a PostgreSQL server."""
    asked = settings()
    if asked["url"].startswith("postgresql:"):
        pool = ConnectionPool(
            asked["url"],
            min_size=asked["connections"],
            max_size=asked["connections"],
            kwargs={"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row},
        )
        saver: Any = PostgresSaver(pool)
        saver.setup()
        facts = {"version": version("langgraph"), "saver": version("langgraph-checkpoint-postgres")}
        serve(lambda: _hands_off(saver, asked["words"]), {"facts": lambda: facts})
        return
    connection = sqlite3.connect(asked["url"], check_same_thread=False)
    saver = SqliteSaver(connection)
    saver.setup()
    as_it_comes = _pragmas(connection)
    if asked["durable"]:
        connection.execute("PRAGMA synchronous=FULL")
    orders = {
        "facts": lambda: {
            "version": version("langgraph"),
            "saver": version("langgraph-checkpoint-sqlite"),
            "sqlite": sqlite3.sqlite_version,
            "as it comes": as_it_comes,
            "measured": _pragmas(connection),
            "commits": _count_commits(connection, _hands_off(saver, asked["words"])),
        },
        "replaced": lambda: _chain_bytes(saver, Replaced, asked),
        "kept": lambda: _chain_bytes(saver, Kept, asked),
    }
    serve(lambda: _hands_off(saver, asked["words"]), orders)


def _hands_off(saver: Any, words: dict[str, Any]) -> Act:  # noqa: ANN401 - either saver
    graph = StateGraph(State)
    graph.add_node(
        "parent", lambda _: Command(goto="child", update={"baton": _numbered(words)}), destinations=("child",)
    )
    graph.add_node("child", lambda _: {"done": True})
    graph.add_edge(START, "parent")
    graph.add_edge("child", END)
    compiled = graph.compile(checkpointer=saver)
    return lambda: compiled.invoke({}, {"configurable": {"thread_id": f"t{next(_NUMBERS)}"}}, durability="sync")


def _numbered(words: dict[str, Any]) -> dict[str, Any]:
    return {**words, "task": f"{words['task']} This is batch {next(_NUMBERS)}."}


def _pragmas(connection: sqlite3.Connection) -> dict[str, str]:
    (journal,) = connection.execute("PRAGMA journal_mode").fetchone()
    (synchronous,) = connection.execute("PRAGMA synchronous").fetchone()
    return {"journal_mode": journal, "synchronous": _SYNCHRONOUS[synchronous]}


def _count_commits(connection: sqlite3.Connection, act: Act) -> int:
    statements: list[str] = []
    connection.set_trace_callback(statements.append)
    act()
    connection.set_trace_callback(None)
    return statements.count("COMMIT")


def _chain_bytes(saver: SqliteSaver, schema: type, asked: dict[str, Any]) -> list[int]:
    """Return how many bytes each hop along one thread made durable: its checkpoint and the writes that led to it."""
    hops, note = asked["hops"], asked["note"]

    def hop(state: Any) -> Command[str]:  # noqa: ANN401 - either state
        number = state.get("hop", 0) + 1
        update = {"hop": number, "baton": _numbered(asked["words"])}
        if schema is Kept:
            update["decided"] = [{"text": f"{number}: {note['text']}", "why": note["why"]}]
        return Command(goto="hop" if number < hops else END, update=update)

    graph = StateGraph(schema)
    graph.add_node("hop", hop, destinations=("hop", END))
    graph.add_edge(START, "hop")
    thread = f"chain{next(_NUMBERS)}"
    config = {"configurable": {"thread_id": thread}, "recursion_limit": hops + 10}
    graph.compile(checkpointer=saver).invoke({}, config, durability="sync")
    query = (Path(__file__).parent / "chain_bytes.sql").read_text(encoding="utf-8")
    # The first two are of the input and of what leads to the first hop.
    return [size for (size,) in saver.conn.execute(query, {"thread": thread})][2:]


if __name__ == "__main__":
    main()
