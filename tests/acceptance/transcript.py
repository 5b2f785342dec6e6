"""Documents as programs: what a document tells its reader to run, and what it says will appear."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from textwrap import dedent
from typing import Final

ANYTHING: Final = "…"

_FENCE: Final = re.compile(
    r"^(?P<indent> *)```(?P<language>python|console)\n(?P<body>.*?)^(?P=indent)```$",
    re.MULTILINE | re.DOTALL,
)
_COMMAND: Final = re.compile(r"^\$ ((?:[^\n]*\\\n)*[^\n]*)\n", re.MULTILINE)

# What differs between two runs of the same document. Order matters: an id contains what looks like a number.
_VARYING: Final = (
    (re.compile(r"\b[a-z]+_[0-7][0-9a-hjkmnp-tv-z]{25}\b"), "<id>"),
    (re.compile(r"\b(?:sha256:)?[0-9a-f]{16,}\b"), "<digest>"),
    (re.compile(r"\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:\d\d)?)?"), "<time>"),
    (re.compile(r"\b\d\d:\d\d(?::\d\d(?:\.\d+)?)?\b"), "<time>"),
    (re.compile(r"\b\d+(?:\.\d+)? ?(?:µs|ms|s)\b"), "<duration>"),
    (re.compile(r"[ ─━-]{2,}"), " "),  # the width of a column follows what stands in it
)


@dataclass(frozen=True, slots=True)
class Program:
    """A block of Python that must run."""

    line: int
    text: str


@dataclass(frozen=True, slots=True)
class Command:
    """A line typed into a shell, and what must appear below it."""

    line: int
    text: str
    output: str


def steps_in(document: str) -> Iterator[Program | Command]:
    """Yield what a document tells its reader to run, in order."""
    for fence in _FENCE.finditer(document):
        line = document.count("\n", 0, fence.start("body")) + 1
        body = dedent(fence["body"])
        if fence["language"] == "python":
            yield Program(line, body)
        else:
            yield from _commands_in(body, line)


def _commands_in(body: str, line: int) -> Iterator[Command]:
    found = list(_COMMAND.finditer(body))
    if not found or found[0].start() != 0:
        raise ValueError(f"line {line}: a console block begins with a command, like `$ batonpass --help`")
    ends = [*(match.start() for match in found[1:]), len(body)]
    for match, end in zip(found, ends, strict=True):
        yield Command(line + body.count("\n", 0, match.start()), match[1], body[match.end() : end])


def steadied(text: str) -> list[str]:
    """Return the lines of a text with everything replaced that differs from run to run."""
    lines = text.strip("\n").splitlines()
    for pattern, steady in _VARYING:
        lines = [pattern.sub(steady, line) for line in lines]
    return [line.strip() for line in lines]


def shows(expected: str, actual: str) -> bool:
    """Tell whether an output is what the document shows; `…` stands for anything in a line, or for any lines."""
    pattern = "".join(
        r"(?:[^\n]*\n)*" if line == ANYTHING else re.escape(line).replace(ANYTHING, r"[^\n]*") + r"\n"
        for line in steadied(expected)
    )
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in steadied(actual))) is not None
