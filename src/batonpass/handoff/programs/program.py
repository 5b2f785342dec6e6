"""Programs as runners: an agent in any language that speaks JSON lines over stdin and stdout (docs/spec/runner.md)."""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import msgspec

from batonpass.errors import InvalidValueError, RunnerError
from batonpass.handoff.programs.line_process import LONGEST_LINE, LineTooLongError, Process
from batonpass.handoff.programs.program_briefing import tell_task
from batonpass.handoff.programs.program_requests import Serving
from batonpass.model.base.durations import as_duration

if TYPE_CHECKING:
    from batonpass.handoff.programs.run_port import WorkingRun

_NO_TOOLS: Final[Mapping[str, Callable[..., Any]]] = MappingProxyType({})
_LINGERS: Final = timedelta(seconds=5)  # time to clean up, after its last message
_SHOWN: Final = 200


class Program:
    """A runner that starts a command for each attempt and answers its messages. It may call the functions in `tools`.

    `env` is its whole environment, by default ours. After `timeout`, the process and everything it started is killed.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        cwd: str | os.PathLike[str] | None = None,
        env: Mapping[str, str] | None = None,
        timeout: timedelta | str | None = None,
        tools: Mapping[str, Callable[..., Any]] = _NO_TOOLS,
    ) -> None:
        if isinstance(command, str) or not command:
            raise InvalidValueError("command", "is a list: a program and its arguments")
        self._command = tuple(command)
        self._cwd = cwd
        self._env = env
        self._timeout = None if timeout is None else as_duration("timeout", timeout)
        self._tools = tools

    def __repr__(self) -> str:
        return f"Program({list(self._command)!r})"

    def __call__(self, run: "WorkingRun") -> None:
        """Let the program work on a run until it reports, fails or ends.

        Raises `RunnerError` if it breaks the protocol, and `ProgramError` if it says that it failed.
        """
        serving = Serving(run, self._tools)
        with Process(self._command, cwd=self._cwd, env=self._env, timeout=self._timeout) as process:
            process.send(_line(tell_task(run)))
            fault = self._converse(process, serving)
        if serving.failure is not None:
            raise serving.failure
        if not serving.reported:
            self._require_good_end(process, fault)

    def _converse(self, process: Process, serving: Serving) -> str | None:
        """Answer messages until the program ends. Return its mistake if it made one, which ends the conversation."""
        try:
            for line in process.lines():
                if serving.is_over() or not line.strip():
                    continue
                message = _parsed(line)
                if message is None:
                    shown = line[:_SHOWN].decode("utf-8", "replace")
                    return (
                        f"printed something that is not a message: {shown!r}; stdout is for messages, stderr for words"
                    )
                process.send(_line(serving.answer(message)))
                if serving.is_over():
                    process.hang_up(_LINGERS)
        except LineTooLongError:
            return None if serving.is_over() else f"printed a line of more than {LONGEST_LINE:,} bytes"
        return None

    def _require_good_end(self, process: Process, fault: str | None) -> None:
        if fault is None and process.timed_out:
            fault = f"did not end within {self._timeout}"
        if fault is None and process.exit_code != 0:
            fault = f"ended with exit code {process.exit_code} and without a report"
        if fault is not None:
            words = " | ".join(process.last_words.splitlines())  # a reason is shown in one line
            raise RunnerError(f"{self._command[0]} {fault}" + (f"; its last words: {words}" if words else ""))


def _line(message: Mapping[str, Any]) -> bytes:
    return json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode()


def _parsed(line: bytes) -> dict[str, Any] | None:
    try:
        message = msgspec.json.decode(line)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return None
    return message if isinstance(message, dict) else None
