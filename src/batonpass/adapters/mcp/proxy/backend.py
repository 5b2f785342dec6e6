"""The server behind a proxy: the interface, and a server that is a child process."""

import contextlib
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from typing import IO, Final, Protocol

from batonpass.adapters.mcp.messages.line_pipes import EndlessLineError, Outlet, read_lines
from batonpass.errors import InvalidValueError

# The protocol's way to shut down: close its input, wait, terminate it, wait, kill it. Twice this time is less than
# clients wait before they kill us.
_GRACE: Final = timedelta(seconds=1)


class Backend(Protocol):
    """A server: it takes and sends lines until it is gone."""

    def send(self, line: bytes) -> None:
        """Send a message to the server. Raises `OSError` if it is gone."""

    def lines(self) -> Iterator[bytes]:
        """Yield the server's messages until it is gone."""

    def close(self) -> None:
        """Let the server end, and wait until it has ended."""

    @property
    def end(self) -> str:
        """Return a sentence about how it ended."""


class StdioBackend:
    """A server that is our child process. It gets our environment, directory and stderr, as the client intended."""

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
        """Send a message to the server. Raises `OSError` if it is gone."""
        self._outlet.send(line)

    def lines(self) -> Iterator[bytes]:
        """Yield the server's messages until it is gone."""
        assert self._process.stdout is not None  # noqa: S101 - it was asked for
        with self._process.stdout as output:
            try:
                yield from read_lines(output.fileno())
            except EndlessLineError as error:
                self._endless = error

    def close(self) -> None:
        """Close the server's input, and end it if it does not end by itself."""
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
        """Return a sentence about how it ended."""
        if self._endless is not None:
            return f"the server {self._endless}"
        try:
            code = self._process.wait(self._grace)
        except subprocess.TimeoutExpired:
            return "the server closed its output"
        return f"the server was ended by signal {-code}" if code < 0 else f"the server ended with exit code {code}"


def headers_from(named: Sequence[str], environment: Mapping[str, str]) -> dict[str, str]:
    """Return headers from entries NAME=VARIABLE. The values are in the environment, hidden from other processes.

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
