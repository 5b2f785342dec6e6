"""The definition of a sub-agent of a coding agent: a file in the project or in the user's home."""

import re
from pathlib import Path
from typing import Any, Final

from batonpass.adapters.coders.hook_files import user_directory
from batonpass.adapters.tool_kinds import Coder
from batonpass.handoff.programs.agent_makeup import makeup

# Where an agent keeps the definitions of its sub-agents: in a project, and in its own directory at home.
_FOLDERS: Final = {
    Coder.CLAUDE_CODE: (".claude/agents", "agents"),
    Coder.QWEN: (".qwen/agents", "agents"),
    Coder.GEMINI: (".gemini/agents", "agents"),
    Coder.CURSOR: (".cursor/agents", "agents"),
    Coder.DROID: (".factory/droids", "droids"),
    Coder.OPENCODE: (".opencode/agents", "agents"),
}
_PLAIN: Final = re.compile(r"[\w][\w.-]{0,80}")  # the name comes from a model, and becomes part of a path
_LARGEST: Final = 1 << 20
_HEAD: Final = re.compile(r"\A---\r?\n(?P<head>.*?)^---[ \t]*\r?\n?", re.DOTALL | re.MULTILINE)
_LINE: Final = re.compile(r"^(?P<name>model|tools):[ \t]*(?P<value>[^\r\n]*)", re.MULTILINE)


def find_makeup(coder: Coder, kind: str | None, project: Path) -> dict[str, Any] | None:
    """Return the makeup of a sub-agent of this type; None if no file defines it, or it cannot be read."""
    if kind is None or coder not in _FOLDERS or _PLAIN.fullmatch(kind) is None:
        return None
    inside, at_home = _FOLDERS[coder]
    for folder in (project / inside, user_directory(coder) / at_home):
        if (text := _read(folder / f"{kind}.md")) is not None:
            return _parse(text)
    return None


def _read(path: Path) -> str | None:
    try:
        with path.open("rb") as file:
            return file.read(_LARGEST).decode("utf-8", "replace")
    except OSError:
        return None


def _parse(text: str) -> dict[str, Any]:
    head = _HEAD.match(text)
    said = {} if head is None else {found["name"]: found["value"] for found in _LINE.finditer(head["head"])}
    listed = said.get("tools")  # without the line, it has all tools of its sender
    tools = None if listed is None else [name.strip(" []\"'") for name in listed.split(",")]
    prompt = text if head is None else text[head.end() :]
    return makeup(model=said.get("model", "").strip(" \"'"), prompt=prompt.strip(), tools=tools)
