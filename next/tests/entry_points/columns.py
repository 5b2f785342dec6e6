# ruff: noqa: ANN401, D102 - the methods are those of `EntryPoint`, and handles may be of two kinds
"""The entry points of the table: handles, awaited handles, JSON lines, the loop of a program."""

import asyncio
import threading
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from batonpass import Grant, Handoff, Relay, Run, aio, tool
from batonpass.frameworks import Recording, recorded_tool
from batonpass.testing import EntryPoint, say_in_json

ANA = "user:ana"


def grant_of(may: Sequence[str], may_delegate: Sequence[str] = (), expires: str | None = None) -> Grant | None:
    return Grant(may=tuple(may), may_delegate=tuple(may_delegate), expires=expires) if may else None


class ByHandles:
    """The Python handles; or the awaited ones, each awaited where it is called."""

    def __init__(self, relay: Any, wait: Callable[[Any], Any] = lambda value: value) -> None:
        self._relay = relay
        self._wait = wait
        self._runs: dict[str, Any] = {}

    def _keep(self, run: Run) -> str:
        self._runs[run.id] = run
        return run.id

    def _handoff(self, handoff: str) -> Handoff:
        found: Handoff = self._wait(self._relay.handoff(handoff))
        return found

    def start(
        self, *, may: Sequence[str] = (), expires: str | None = None, key: str | None = None, intent: str = "Round"
    ) -> str:
        return self._keep(self._wait(self._relay.start(intent, by=ANA, grant=grant_of(may, may, expires), key=key)))

    def hand_off(self, run: str, *, may: Sequence[str] = (), to: str = "editor", task: str = "Round") -> str:
        handoff: str = self._wait(self._runs[run].hand_off(to, task, grant=grant_of(may))).id
        return handoff

    def accept(self, handoff: str) -> str:
        return self._keep(self._wait(self._handoff(handoff).accept()))

    def call(self, run: str, tool: Callable[[str], str], path: str, *, idempotent: bool = False) -> Any:
        return self._wait(self._runs[run].call(a_tool(tool, idempotent=idempotent), path))

    def close(self, run: str, *, result: str = "", error: str | None = None) -> None:
        if result:
            self._runs[run].report(result)
        self._wait(self._runs[run].close(None if error is None else ValueError(error)))

    def retry(self, handoff: str, *, skip: Sequence[str] = ()) -> str:
        self._wait(self._handoff(handoff).retry(by=ANA, skip=skip))
        return handoff

    def result(self, handoff: str) -> tuple[str, str]:
        result = self._wait(self._handoff(handoff).result())
        return result.state.value, result.report.result


def a_tool(function: Callable[[str], str], *, idempotent: bool) -> Callable[[str], Any]:
    """Return a function as the tool of the table."""

    @tool("write_file", action="write", target="path", idempotent=idempotent)
    def write_file(path: str) -> Any:
        return function(path)

    return write_file


class ByOwnLoop(ByHandles):
    """A program with a loop of its own: its tools are recorded functions, called while an agent is at work."""

    def call(self, run: str, tool: Callable[[str], str], path: str, *, idempotent: bool = False) -> Any:
        recording = Recording(self._relay, by=ANA)

        @recorded_tool(recording, "write_file", action="write", target="path", idempotent=idempotent)
        def write_file(path: str) -> Any:
            return tool(path)

        with self._runs[run].as_current():
            return write_file(path)


class ByLines:
    """A program elsewhere, which counts its equal calls by itself."""

    def __init__(self, relay: Relay) -> None:
        self._relay = relay
        self._finished: Counter[tuple[str, str]] = Counter()

    def _send(self, act: str, key: str | None = None, **request: object) -> dict[str, Any]:
        return say_in_json(self._relay, act, {name: each for name, each in request.items() if each is not None}, key)

    def start(
        self, *, may: Sequence[str] = (), expires: str | None = None, key: str | None = None, intent: str = "Round"
    ) -> str:
        run: str = self._send("start", key, intent=intent, by=ANA, grant=in_json(may, may, expires))["run"]
        return run

    def hand_off(self, run: str, *, may: Sequence[str] = (), to: str = "editor", task: str = "Round") -> str:
        handoff: str = self._send("hand_off", run=run, to=to, task=task, grant=in_json(may))["handoff"]
        return handoff

    def accept(self, handoff: str) -> str:
        run: str = self._send("accept", handoff=handoff)["run"]
        return run

    def call(self, run: str, tool: Callable[[str], str], path: str, *, idempotent: bool = False) -> Any:
        what: dict[str, Any] = {
            "tool": "write_file",
            "action": "write",
            "target": path,
            "arguments": [path],
            "idempotent": idempotent,
        }
        begun = self._send("begin_call", run=run, number=self._finished[run, path] + 1, **what)
        if "result" in begun:
            self._finished[run, path] += 1
            return begun["result"]
        try:
            value = tool(path)
        except Exception as error:
            self._send("finish_call", run=run, call=begun["call"], error=repr(error))
            raise
        self._send("finish_call", run=run, call=begun["call"], result=value)
        self._finished[run, path] += 1
        return value

    def close(self, run: str, *, result: str = "", error: str | None = None) -> None:
        words = None if error is None else repr(ValueError(error))
        self._send("close", run=run, report={"result": result} if result else None, error=words)

    def retry(self, handoff: str, *, skip: Sequence[str] = ()) -> str:
        self._send("retry", handoff=handoff, by=ANA, skip=list(skip))
        return handoff

    def result(self, handoff: str) -> tuple[str, str]:
        answer = self._send("show_result", handoff=handoff)
        return answer["state"], answer["report"]["result"]


def in_json(may: Sequence[str], may_delegate: Sequence[str] = (), expires: str | None = None) -> dict[str, Any] | None:
    return {"may": list(may), "may_delegate": list(may_delegate), "expires": expires} if may else None


@contextmanager
def a_loop() -> Iterator[Callable[[Any], Any]]:
    """Lend a function that waits for what is awaited, in a loop of its own thread; what is not, it returns as it is."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()

    def wait(value: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(value, loop).result(30) if isinstance(value, Coroutine) else value

    try:
        yield wait
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


@contextmanager
def an_entry_point(name: str, relay: Relay) -> Iterator[EntryPoint]:
    """Lend one of the ways to a relay."""
    if name == "async":
        with a_loop() as wait:
            yield ByHandles(aio.of(relay), wait)
    else:
        yield {"python": ByHandles, "own loop": ByOwnLoop, "json lines": ByLines}[name](relay)
