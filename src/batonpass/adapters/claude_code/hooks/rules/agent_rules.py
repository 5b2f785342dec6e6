"""Reads the rules for agents from `batonpass.toml`: which tools a type may use, in Claude Code's own notation."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from msgspec import Struct, field

from batonpass.adapters.claude_code.tool_kinds import DELEGATES, FILES, SHELLS, leading_name
from batonpass.guard.policy.name_patterns import glob
from batonpass.policy.document import CLAUDE_CODE, Document, DocumentPlace, find_document

ALLOW: Final = "allow"
DENY: Final = "deny"

_WITH_MORE: Final = FILES | SHELLS | DELEGATES | {"WebFetch"}
_PATTERN: Final = re.compile(r"([A-Za-z][A-Za-z0-9_*-]*)(?:\((.+)\))?", re.DOTALL)


class ToolPattern(Struct, frozen=True):
    """A tool, or several with `*`, and perhaps what it is used on: `Bash(git *)`, `Edit(src/**)`, `mcp__github__*`."""

    text: str
    tool: str
    of: str | None = None

    def covers(self, tool: str) -> bool:
        """Return whether the pattern is about a tool, whatever it is used on."""
        if self.tool == leading_name(tool):
            return True
        if self.tool in DELEGATES and tool in DELEGATES:
            return True
        return glob(self.tool, across=True).fullmatch(tool) is not None


class AgentLimits(Struct, frozen=True, kw_only=True):
    """The tools of a type of agent. Without `allow`, all that is not denied is allowed, unless the default denies."""

    allow: tuple[ToolPattern, ...] | None = None
    deny: tuple[ToolPattern, ...] = ()


class Rules(Struct, frozen=True, kw_only=True):
    """The rules for agents of Claude Code."""

    denies_by_default: bool = False
    main: AgentLimits = AgentLimits()
    agents: Mapping[str, AgentLimits] = field(default_factory=dict)

    def limits_of(self, agent_type: str | None) -> AgentLimits:
        """Return the limits of a type of sub-agent; None is the main conversation."""
        return self.main if agent_type is None else self.agents.get(agent_type, AgentLimits())


def read_rules(path: Path) -> Rules:
    """Return the rules in a file; empty rules if there is none. Raises `PolicyFileError`."""
    document = find_document(path)
    return Rules() if document is None else rules_of(document)


def rules_of(document: Document) -> Rules:
    """Return the rules in a document.

    Raises `PolicyFileError` for anything unknown: a rule that is ignored protects nobody.
    """
    table = document.table(CLAUDE_CODE).table(("default", "main", "agents"))
    default = table.get("default")
    if default is not None and default.value not in {ALLOW, DENY}:
        raise default.error('is neither "allow" nor "deny"')
    agents = table["agents"].table() if "agents" in table else {}
    return Rules(
        denies_by_default=default is not None and default.value == DENY,
        main=_limits(table["main"]) if "main" in table else AgentLimits(),
        agents={name: _limits(given) for name, given in agents.items()},
    )


def read_pattern(place: DocumentPlace) -> ToolPattern:
    """Return a pattern. Raises `PolicyFileError` if it is invalid or says more than can be checked."""
    text = place.value
    found = _PATTERN.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        raise place.error(f"{text!r} is not a rule; examples are Read, Bash(git *), Edit(src/**) and mcp__x__*")
    if found[2] is not None and found[1] not in _WITH_MORE:
        raise place.error(f"{text!r}: only tools for files, Bash, Agent and WebFetch take brackets")
    if found[1] == "WebFetch" and found[2] is not None and not found[2].startswith("domain:"):
        raise place.error(f"{text!r}: WebFetch takes a domain, as WebFetch(domain:example.org)")
    return ToolPattern(found[0], found[1], found[2])


def _limits(place: DocumentPlace) -> AgentLimits:
    lists = {
        name: tuple(map(read_pattern, given.elements("rules"))) for name, given in place.table((ALLOW, DENY)).items()
    }
    return AgentLimits(allow=lists.get(ALLOW), deny=lists.get(DENY, ()))
