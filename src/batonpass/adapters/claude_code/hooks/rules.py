"""Rules for agents, from `batonpass.toml`: which tools a type may use, spelled as in Claude Code's own rules."""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from batonpass.errors import InvalidValueError, UnknownFieldError

FILE_NAME: Final = "batonpass.toml"
TABLE: Final = "claude-code"
ALLOW: Final = "allow"
DENY: Final = "deny"

# As in Claude Code, a rule about Edit is about every tool of its own that writes files.
WRITERS: Final = frozenset({"Edit", "MultiEdit", "NotebookEdit", "Write"})
FILES: Final = WRITERS | {"Glob", "Grep", "NotebookRead", "Read"}
SHELLS: Final = frozenset({"Bash", "Monitor", "PowerShell"})
DELEGATES: Final = frozenset({"Agent", "Task"})
_WITH_MORE: Final = FILES | SHELLS | DELEGATES | {"WebFetch"}
_PATTERN: Final = re.compile(r"([A-Za-z][A-Za-z0-9_*-]*)(?:\((.+)\))?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Pattern:
    """A tool, or several by `*`, and perhaps what it is used on: `Bash(git *)`, `Edit(src/**)`, `mcp__github__*`."""

    text: str
    tool: str
    of: str | None = None

    def covers(self, tool: str) -> bool:
        """Return whether it is about a tool, whatever that is used on."""
        if self.tool == "Edit" and tool in WRITERS:
            return True
        if self.tool in DELEGATES and tool in DELEGATES:
            return True
        return glob(self.tool, across=True).fullmatch(tool) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one type of agent may use. None allows everything that is not denied, unless the default says otherwise."""

    allow: tuple[Pattern, ...] | None = None
    deny: tuple[Pattern, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What `batonpass.toml` says about the agents of Claude Code."""

    denies_by_default: bool = False
    main: Limits = Limits()
    agents: Mapping[str, Limits] = field(default_factory=dict)

    def limits_of(self, agent_type: str | None) -> Limits:
        """Return what holds for a type of sub-agent; None is the main conversation."""
        return self.main if agent_type is None else self.agents.get(agent_type, Limits())


def read_rules(path: Path) -> Rules:
    """Return the rules in a file; without the file there are none.

    Raises `InvalidValueError` for anything that we do not understand: a rule that is passed over protects nobody.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return Rules()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidValueError(FILE_NAME, f"cannot be read: {error}") from None
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidValueError(FILE_NAME, f"is not TOML: {error}") from None
    _only(document, {TABLE}, FILE_NAME)
    table = _table(document.get(TABLE, {}), TABLE)
    _only(table, {"default", "main", "agents"}, TABLE)
    default = table.get("default", ALLOW)
    if default not in {ALLOW, DENY}:
        raise InvalidValueError(f"{TABLE}.default", 'is neither "allow" nor "deny"')
    agents = _table(table.get("agents", {}), f"{TABLE}.agents")
    return Rules(
        denies_by_default=default == DENY,
        main=_limits(table.get("main", {}), f"{TABLE}.main"),
        agents={name: _limits(given, f"{TABLE}.agents.{name}") for name, given in agents.items()},
    )


def read_pattern(text: object, where: str) -> Pattern:
    """Return a pattern. Raises `InvalidValueError` if it is none, or says more about a tool than can be checked."""
    found = _PATTERN.fullmatch(text) if isinstance(text, str) else None
    if found is None or not isinstance(text, str):
        raise InvalidValueError(where, f"{text!r} is no rule; one is like Read, Bash(git *), Edit(src/**) or mcp__x__*")
    if found[2] is not None and found[1] not in _WITH_MORE:
        raise InvalidValueError(where, f"{text!r}: only tools for files, Bash, Agent and WebFetch take brackets")
    if found[1] == "WebFetch" and found[2] is not None and not found[2].startswith("domain:"):
        raise InvalidValueError(where, f"{text!r}: WebFetch takes a domain, as WebFetch(domain:example.org)")
    return Pattern(text, found[1], found[2])


def glob(pattern: str, *, across: bool = False, blind: bool = False) -> re.Pattern[str]:
    """Return a pattern as an expression: `*` within a part of a path, or across parts; `**` always across."""
    pieces = []
    for piece in re.findall(r"\*\*/|\*\*|\*|\?|[^*?]+", pattern):
        match piece:
            case "**/":
                pieces.append("(?:.*/)?")
            case "**":
                pieces.append(".*")
            case "*":
                pieces.append(".*" if across else "[^/]*")
            case "?":
                pieces.append("." if across else "[^/]")
            case _:
                pieces.append(re.escape(piece))
    return re.compile("".join(pieces), re.DOTALL | (re.IGNORECASE if blind else 0))


def _limits(given: object, where: str) -> Limits:
    table = _table(given, where)
    _only(table, {ALLOW, DENY}, where)
    lists = {name: _patterns(table[name], f"{where}.{name}") for name in table}
    return Limits(allow=lists.get(ALLOW), deny=lists.get(DENY, ()))


def _patterns(given: object, where: str) -> tuple[Pattern, ...]:
    if not isinstance(given, list):
        raise InvalidValueError(where, "is no list of rules")
    return tuple(read_pattern(text, where) for text in given)


def _table(given: object, where: str) -> Mapping[str, Any]:
    if not isinstance(given, dict):
        raise InvalidValueError(where, "is no table")
    return given


def _only(table: Mapping[str, Any], known: set[str], where: str) -> None:
    for name in table:
        if name not in known:
            raise UnknownFieldError(f"{where}.{name}")
