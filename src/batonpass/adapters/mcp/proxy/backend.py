"""The server behind a proxy, however it is reached."""

import contextlib
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from typing import IO, Final, Protocol

from batonpass.adapters.mcp.messages.line_pipes import EndlessLineError, Outlet, read_lines
from batonpass.errors import InvalidValueError

# As the protocol has it for shutting down: close its input, wait, ask it to end, wait, end it. Twice this is less than
# clients give us before they kill.
_GRACE: Final = timedelta(seconds=1)


class Backend(Protocol):
    """A server: lines go to it and come from it until it is gone."""

    def send(self, line: bytes) -> None:
        """Hand it a message. Raises `OSError` if it is gone."""

    def lines(self) -> Iterator[bytes]:
        """Yield its messages until it is gone."""

    def close(self) -> None:
        """Let it end, and wait until it has."""

    @property
    def end(self) -> str:
        """Return how it ended, for whoever waits for it."""


class StdioBackend:
    """A server that is a child of ours. It has our environment, our directory and our stderr, as the client meant."""

    def __init__(self, command: Sequence[str], *, grace: timedelta = _GRACE) -> None:
        self._grace = grace.total_seconds()
        try:
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)  # noqa: S603 - what the user asked to run
        except (OSError, ValueError) as error:
            raise InvalidValueError("the server", f"{command[0]} cannot be started: {error}") from None
        self._outlet = Outlet(self._input.fileno())
        self._endless: EndlessLineError | None = None

    @property
    def _input(self) -> IO[bytes]:
        assert self._process.stdin is not None  # noqa: S101 - it was asked for
        return self._process.stdin

    def send(self, line: bytes) -> None:
        """Hand it a message. Raises `OSError` if it is gone."""
        self._outlet.send(line)

    def lines(self) -> Iterator[bytes]:
        """Yield its messages until it is gone."""
        assert self._process.stdout is not None  # noqa: S101 - it was asked for
        with self._process.stdout as output:
            try:
                yield from read_lines(output.fileno())
            except EndlessLineError as error:
                self._endless = error

    def close(self) -> None:
        """Close its input, and end it if it does not end by itself."""
        with contextlib.suppress(OSError):
            self._input.close()
        for end in (self._process.terminate, self._process.kill):
            try:
                self._process.wait(self._grace)
            except subprocess.TimeoutExpired:
                end()
        self._process.wait()

    @property
    def end(self) -> str:
        """Return how it ended."""
        if self._endless is not None:
            return f"the server {self._endless}"
        try:
            code = self._process.wait(self._grace)
        except subprocess.TimeoutExpired:
            return "the server closed its output"
        return f"the server was ended by signal {-code}" if code < 0 else f"the server ended with exit code {code}"


def headers_from(named: Sequence[str], environment: Mapping[str, str]) -> dict[str, str]:
    """Return headers whose values are in the environment, where other processes do not see them: NAME=VARIABLE.

    Raises `InvalidValueError`.
    """
    headers = {}
    for each in named:
        name, _, variable = each.partition("=")
        if not name or not variable:
            raise InvalidValueError("--header", f"{each!r}: write NAME=VARIABLE, such as Authorization=GITHUB_TOKEN")
        if variable not in environment:
            raise InvalidValueError("--header", f"{name}: there is no variable {variable} in the environment")
        headers[name] = environment[variable]
    return headers
