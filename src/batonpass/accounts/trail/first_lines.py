"""First lines of texts, short enough for one line of a trail."""

import json
import re
from collections.abc import Callable, Mapping
from datetime import timedelta
from types import MappingProxyType
from typing import Final

import msgspec
from msgspec import Struct

from batonpass.errors import InvalidValueError
from batonpass.model.base.content_names import (
    ANSWER,
    ARGUMENTS,
    BRIEF,
    COMMAND,
    EVIDENCE,
    INTENT,
    ITEM,
    MESSAGE,
    PATH,
    QUESTION,
    REASON,
    REPORT,
    TARGET,
    TASK,
)
from batonpass.model.base.ids import ContentId
from batonpass.model.baton.items import (
    Artifact,
    Constraint,
    Decision,
    Exclusion,
    ItemValue,
    OpenQuestion,
    RejectedPath,
    Report,
    Statement,
)
from batonpass.model.ledger.ruling import Decided
from batonpass.records.text import Found
from batonpass.wire.documents import decode_brief, decode_item, decode_report, is_report

_LONGEST: Final = 200
_LARGEST: Final = 65_536  # bytes of arguments that are parsed; of larger ones only the beginning is shown
_VALUE: Final = 60
_TRACEBACKS: Final = ("Traceback", "Exception Group Traceback")
_EXIT: Final = re.compile(r"\s*(?:error: )?exit code:? -?\d+\s*", re.IGNORECASE)  # says that it failed, but not why
_MINUTE: Final = 60
_DAY: Final = 24


class Words(Struct, frozen=True, kw_only=True):
    """The first line of a text, as far as it still exists."""

    content: ContentId
    found: Found
    line: str = ""
    whole: bool = True  # False if the text has more than this line

    def __str__(self) -> str:
        """Return it in quotes, or why it is not available."""
        return f'"{self.bare}"' if self.found is Found.KEPT else str(self.found)

    @property
    def bare(self) -> str:
        """Return it without quotes: for a target, or for a list of our own."""
        if self.found is not Found.KEPT:
            return str(self.found)
        return self.line if self.whole else f"{self.line}…"


def elapsed(duration: timedelta) -> str:
    """Return a duration with two units at most."""
    seconds = max(0.0, duration.total_seconds())
    if seconds < 1:
        return f"{seconds * 1000:.0f}ms"
    if seconds < _MINUTE:
        return f"{seconds:.1f}s"
    minutes, rest = divmod(int(seconds), _MINUTE)
    if minutes < _MINUTE:
        return f"{minutes}m{rest:02}s"
    hours, minutes = divmod(minutes, _MINUTE)
    return f"{hours}h{minutes:02}m" if hours < _DAY else f"{hours // _DAY}d{hours % _DAY:02}h"


def looked_for(decided: Decided) -> str | None:
    """Return how long an approver looked: as the relay measured it, else as claimed; None if unknown."""
    if decided.measured_ms is not None:
        return f"looked {elapsed(timedelta(milliseconds=decided.measured_ms))}"
    if decided.looked_ms is not None:
        return f"looked {elapsed(timedelta(milliseconds=decided.looked_ms))}, as claimed"
    return None


def proven(decided: Decided) -> str:
    """Return whether an approver's key signed a ruling, in one word."""
    return "proven" if decided.proven else "unproven"


def is_told(name: str) -> bool:
    """Return whether a trail shows contents with this name."""
    return name in _READERS


def first_line(name: str, content: ContentId, body: bytes) -> Words:
    """Return the first line of a content, read according to its name."""
    try:
        text = _READERS[name](body)
    except (InvalidValueError, msgspec.DecodeError, ValueError, RecursionError):
        # altered, or written by another version: show it as it is
        text = _plain(body)
    return shortened(content, text)


def shortened(content: ContentId, text: str) -> Words:
    """Return the first non-empty line, shortened."""
    stripped = text.strip()
    lines = stripped[: _LONGEST + 1].splitlines()
    line = lines[0].rstrip() if lines else ""
    if len(line) > _LONGEST:
        line = line[: _LONGEST - 1].rstrip()
    return Words(content=content, found=Found.KEPT, line=line, whole=line == stripped)


def sentence_of(value: ItemValue) -> str:
    """Return an item as a sentence."""
    match value:
        case Constraint():
            return value.sentence
        case Statement() | Exclusion() | OpenQuestion():
            return f"{value.text} (blocking)" if isinstance(value, OpenQuestion) and value.blocking else value.text
        case Artifact():
            return f"{value.name} (from {value.source})"
        case Report():
            return _report(value)
        case _:
            why = value.why if isinstance(value, RejectedPath | Decision) else ""
            return f"{value.what} ({why})" if why else value.what


def arguments_of(body: bytes) -> str:
    """Return the arguments of a call on one line. Raises `msgspec.DecodeError` if they cannot be read."""
    if len(body) > _LARGEST:
        return _plain(body)
    read = msgspec.json.decode(body)
    given = read.get(ARGUMENTS, read) if isinstance(read, dict) else read
    if not isinstance(given, dict):
        return json.dumps(given, ensure_ascii=False)
    return " ".join(f"{name}={_value(value)}" for name, value in given.items())


def _value(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if len(text) <= _VALUE and text.isprintable():
        return text.strip()
    short = shortened(ContentId(""), text[: 4 * _VALUE])
    cut = len(short.line) > _VALUE or not short.whole or len(text) > 4 * _VALUE
    return f"{short.line[: _VALUE - 1]}…" if cut else short.line


def _plain(body: bytes) -> str:
    try:
        return body.decode()
    except UnicodeDecodeError:
        return f"{len(body):,} bytes that are no text"


def _report(report: Report) -> str:
    return report.result or report.value or "(no result)"


def _reported(body: bytes) -> str:
    return _report(decode_report(body)) if is_report(body) else _plain(body)


def _item(body: bytes) -> str:
    return _reported(body) if is_report(body) else sentence_of(decode_item(body)[0])


def _may(body: bytes) -> str:
    return ", ".join(decode_brief(body).may)


# The module of our own error class tells a reader nothing.
_OURS: Final = re.compile(r"^batonpass(?:\.\w+)+\.(?=\w+:)")


def message_of(text: str) -> str:
    """Return the significant line of an error: the last of a traceback, else the first."""
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines:
        return ""
    is_traceback = any(line.lstrip(" +|").startswith(_TRACEBACKS) for line in lines)
    if is_traceback:
        return _OURS.sub("", lines[-1])
    return next((line for line in lines if not _EXIT.fullmatch(line)), lines[0])


def _message(body: bytes) -> str:
    text = _plain(body)
    # Both ends are enough; a long message is not read in full.
    return message_of(text if len(text) <= _LARGEST else f"{text[: _LARGEST // 2]}\n{text[-_LARGEST // 2 :]}")


def _command(body: bytes) -> str:
    return " ".join(_plain(body).split("\n"))


_READERS: Final[Mapping[str, Callable[[bytes], str]]] = MappingProxyType(
    {
        INTENT: _plain,
        TASK: _plain,
        BRIEF: _may,
        ITEM: _item,
        TARGET: _plain,
        PATH: _plain,
        ARGUMENTS: arguments_of,
        MESSAGE: _message,
        REPORT: _reported,
        REASON: _plain,
        QUESTION: _plain,
        ANSWER: _plain,
        EVIDENCE: _plain,
        COMMAND: _command,
    }
)
