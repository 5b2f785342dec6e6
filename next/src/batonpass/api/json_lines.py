"""The table of acts over two pipes, a JSON object on each line, for programs in other languages.

    {"id": 1, "act": "hand_off", "request": {"run": "run_…", "to": "editor", "task": "…"}, "key": "k-17"}
    {"id": 1, "answer": {"handoff": "handoff_…", "state": "offered"}}
    {"id": 1, "error": {"type": "urn:batonpass:error:grant.exceeded", "title": "…", "detail": "…", "code": "…"}}

Each line has one answer, in the order of the lines, whatever is in it.
"""

from collections.abc import Iterator
from typing import IO, Final

from msgspec import Raw, Struct, json

from batonpass.api import calls, handoffs, ledgers, reports, runs  # noqa: F401 - each fills the table
from batonpass.api.port import Port
from batonpass.api.problems import Problem, find_act, problem_of, read_json
from batonpass.errors import InvalidValueError

LARGEST_LINE: Final = 32 * 1024 * 1024  # a content of 16 MiB, spelled in JSON
_CHUNK: Final = 64 * 1024


class Line(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A request. With a key the same line again has the same answer, also from another process."""

    act: str
    request: Raw = Raw(b"{}")
    id: int | str | None = None  # the caller's own, said back with the answer
    key: str | None = None


class Reply(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The answer to a line, or why there is none."""

    id: int | str | None
    answer: Struct | None = None
    error: Problem | None = None


class _Identified(Struct, frozen=True):
    id: int | str | None = None


def serve_lines(port: Port, requests: IO[bytes], replies: IO[bytes]) -> None:
    """Answer lines, one after the other, until there are no more. Each answer is flushed before the next is read."""
    for line in _read_lines(requests):
        replies.write((_TOO_LARGE if line is None else answer_line(port, line)) + b"\n")
        replies.flush()


def answer_line(port: Port, line: bytes) -> bytes:
    """Return the reply to a line, without its end."""
    identity = None
    try:
        identity = _id_of(line)
        asked = read_json(Line, line, what="line")
        act = find_act(asked.act)
        answer = port.do(act, read_json(act.request, asked.request, what=act.name), asked.key)
        return json.encode(Reply(id=identity, answer=answer))
    except Exception as error:  # noqa: BLE001 - nothing that a line says ends the loop
        return json.encode(Reply(id=identity, error=problem_of(error)))


_TOO_LARGE: Final = json.encode(
    Reply(
        id=None,
        error=problem_of(
            InvalidValueError(f"line: more than {LARGEST_LINE:,} bytes; it was not read", code="content.too_large")
        ),
    )
)


def _id_of(line: bytes) -> int | str | None:
    """Return the id also of a line with a mistake in it: a caller with several on their way needs to know which."""
    try:
        return json.decode(line, type=_Identified).id
    except (ValueError, RecursionError):
        return None


def _read_lines(requests: IO[bytes]) -> Iterator[bytes | None]:
    """Yield each line; None for one that is too large to be kept."""
    while line := requests.readline(LARGEST_LINE + 1):
        if len(line) <= LARGEST_LINE:
            yield line
            continue
        while line and not line.endswith(b"\n"):
            line = requests.readline(_CHUNK)
        yield None
