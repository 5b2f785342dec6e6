"""DBOS: a workflow that hands its input to a step; workflow, step and result are durable."""

from importlib.metadata import version
from itertools import count
from typing import Any

import sqlalchemy
from dbos import DBOS

from bench.measure import Act
from bench.peers.serving import serve, settings

_NUMBERS = count(1)
_SYNCHRONOUS = {0: "off", 1: "normal", 2: "full", 3: "extra"}
_BUSY_SECONDS = 30


@DBOS.step()
def child(baton: dict[str, Any]) -> dict[str, bool]:
    """Do nothing with what was handed over."""
    return {"done": bool(baton)}


@DBOS.workflow()
def hand_off(baton: dict[str, Any]) -> dict[str, bool]:
    """Hand a baton to a child."""
    return child(baton)


def main() -> None:
    """Serve one system database: on a SQLite file, or on a PostgreSQL server."""
    asked = settings()
    on_sqlite = asked["url"].startswith("sqlite:")
    if on_sqlite:
        engine = sqlalchemy.create_engine(asked["url"], connect_args={"timeout": _BUSY_SECONDS})
        as_it_comes = _pragmas(engine)
        if asked["durable"]:
            sqlalchemy.event.listen(engine, "connect", _make_durable)
            engine.dispose()
        config: dict[str, Any] = {"system_database_engine": engine}
    else:
        engine, as_it_comes = None, None
        config = {"system_database_url": asked["url"], "sys_db_pool_size": asked["connections"]}
    DBOS(config={"name": "bench", "log_level": "ERROR", "run_admin_server": False, **config})
    DBOS.launch()
    facts: dict[str, Any] = {"version": version("dbos")}
    if engine is not None:
        act = _hands_off(asked["words"])
        measured = _pragmas(engine)
        facts |= {"as it comes": as_it_comes, "measured": measured, "commits": _count_commits(engine, act)}
    try:
        serve(lambda: _hands_off(asked["words"]), {"facts": lambda: facts})
    finally:
        DBOS.destroy()


def _hands_off(words: dict[str, Any]) -> Act:
    return lambda: hand_off({**words, "task": f"{words['task']} This is batch {next(_NUMBERS)}."})


def _make_durable(connection: Any, _: object) -> None:  # noqa: ANN401 - whatever the driver gives
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")


def _pragmas(engine: sqlalchemy.Engine) -> dict[str, str]:
    with engine.connect() as connection:
        journal = connection.exec_driver_sql("PRAGMA journal_mode").scalar_one()
        synchronous = connection.exec_driver_sql("PRAGMA synchronous").scalar_one()
    return {"journal_mode": journal, "synchronous": _SYNCHRONOUS[synchronous]}


def _count_commits(engine: sqlalchemy.Engine, act: Act) -> int:
    """Return in how many transactions a handoff changes something."""
    act()
    wrote: list[bool] = []
    changed = [False]

    def note_statement(*arguments: Any) -> None:  # noqa: ANN401 - as the event has it
        changed[0] = changed[0] or not arguments[2].lstrip().startswith("SELECT")

    def note_commit(_: object) -> None:
        wrote.append(changed[0])
        changed[0] = False

    sqlalchemy.event.listen(engine, "before_cursor_execute", note_statement)
    sqlalchemy.event.listen(engine, "commit", note_commit)
    act()
    sqlalchemy.event.remove(engine, "before_cursor_execute", note_statement)
    sqlalchemy.event.remove(engine, "commit", note_commit)
    return sum(wrote)


if __name__ == "__main__":
    main()
