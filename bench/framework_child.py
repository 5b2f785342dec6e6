"""Plays agents of one framework in its own environment, with us and without, and prints how long acts took.

python -m bench.framework_child COLUMN FOLDER TURNS

The agents are those of the framework's column of tests, and so is the scripted model. A play with some acts is compared
with one that has none, so that starting and ending the framework and opening a ledger do not count.
"""

import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from tests.frameworks.suite import WORDS, Delegate, Driver, Say, Script, Stage, write

ACTS: Final = 6  # frameworks stop agents that ask for more than ten turns

Play = Callable[[Stage, Script], object]


def calls(acts: int) -> Script:
    """Return a script in which one agent calls a tool so many times."""
    return {"lead": [*([write(f"src/{number}.txt")] for number in range(acts)), Say("done")]}


def handoffs(acts: int) -> Script:
    """Return a script in which one agent asks another so many times."""
    asked = [[Delegate("editor", f"Write part {number}")] for number in range(acts)]
    return {"lead": [*asked, Say("done")], "editor": [Say("ok")] * acts}


def plays(column: str) -> Mapping[str, Play]:
    """Return the ways in which a framework is played: without us, with us, and with its own checkpointer."""
    module = import_module(f"tests.frameworks.{column}_column")
    driver = next(one for one in vars(module).values() if isinstance(one, type) and one.__bases__ == (Driver,))()
    ways: dict[str, Play] = {"without": driver.play_unrecorded, "with": driver.play}
    if (own := OWN.get(column)) is not None:
        ways["own"] = lambda stage, script: own(module, stage, script)
    return ways


def _openai_session(column: Any, stage: Stage, script: Script) -> object:  # noqa: ANN401 - a module
    from agents import Runner, SQLiteSession  # noqa: PLC0415 - only in its environment

    agents = column._agents(stage, script)  # noqa: SLF001 - the agents of the column's scenes
    session = SQLiteSession("bench", stage.directory / "session.db")
    return column._told(agents, Runner.run(agents["lead"], WORDS, session=session))  # noqa: SLF001 - as above


def _langgraph_saver(column: Any, stage: Stage, script: Script) -> object:  # noqa: ANN401 - a module
    from langchain_core.messages import HumanMessage  # noqa: PLC0415 - only in its environment
    from langgraph.checkpoint.sqlite import SqliteSaver  # noqa: PLC0415 - as above

    agents, models = column._agents(stage, script, [])  # noqa: SLF001 - as above
    thread = {"configurable": {"thread_id": "bench"}}
    with SqliteSaver.from_conn_string(str(stage.directory / "checkpoints.db")) as saver:
        graph = column._swarm(agents, checkpointer=saver)  # noqa: SLF001 - as above
        return column._told(models, lambda: graph.invoke({"messages": [HumanMessage(WORDS)]}, thread))  # noqa: SLF001


# What a framework keeps by itself, so that work can go on after a crash.
OWN: Final[Mapping[str, Callable[[Any, Stage, Script], object]]] = {
    "openai_agents": _openai_session,
    "langgraph": _langgraph_saver,
}


def time_of(play: Play, script: Script, folder: Path) -> float:
    """Return how many seconds a play took. Raises what ended it."""
    folder.mkdir(parents=True)
    os.chdir(folder)
    stage = Stage(folder)
    began = time.perf_counter()
    told = play(stage, script)
    taken = time.perf_counter() - began
    for relay in stage.relays:
        relay.close()
    error = getattr(told, "error", None)
    if isinstance(error, BaseException):
        raise error
    return taken


def main(column: str, folder: Path, turns: int) -> None:
    """Print how many seconds one act took, by kind and way. The first turn warms up and does not count."""
    taken: dict[str, dict[str, list[float]]] = {}
    for kind, script in (("call", calls), ("handoff", handoffs)):
        for turn in range(turns + 1):
            for way, play in plays(column).items():
                place = folder / f"{kind}-{way}-{turn}"
                none = time_of(play, script(0), place / "none")
                some = time_of(play, script(ACTS), place / "some")
                if turn:
                    taken.setdefault(kind, {}).setdefault(way, []).append(max(some - none, 1e-9) / ACTS)
    sys.stdout.write("\n" + json.dumps(taken) + "\n")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
