"""The definition of a sub-agent of a coding agent: a file in the project or in the user's home."""

import re
from pathlib import Path
from typing import Any, Final

from batonpass.adapters.coders.hook_files import user_directory
from batonpass.adapters.tool_kinds import Coder
from batonpass.attribution.worktree.plain_file import open_plain
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
# A value stands behind its name, or in the lines below it, which are indented or begin with a dash.
_ENTRY: Final = re.compile(
    r"^(?P<name>model|tools):[ \t]*(?P<value>[^\r\n]*)(?P<below>(?:\r?\n(?:[ \t#-][^\r\n]*)?)*)", re.MULTILINE
)
_AROUND: Final = " \t\r\n[]\"'"


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
        with open_plain(path) as file:
            return file.read(_LARGEST).decode("utf-8", "replace")
    except OSError:
        return None


def _parse(text: str) -> dict[str, Any]:
    head = _HEAD.match(text)
    said = {} if head is None else {found["name"]: found for found in _ENTRY.finditer(head["head"])}
    listed = said.get("tools")  # without the line, it has all tools of its sender
    prompt = text if head is None else text[head.end() :]
    model = said["model"]["value"].strip(_AROUND) if "model" in said else None
    return makeup(model=model, prompt=prompt.strip(), tools=None if listed is None else _tools(listed))


def _tools(entry: re.Match[str]) -> list[str] | None:
    """Return the tools of an entry; None if it names none, which is as if it were not there."""
    written = (line.partition(" #")[0].strip() for line in f"{entry['value']}{entry['below']}".split("\n"))
    lines = [line for line in written if line and line[0] != "#"]
    # OpenCode writes `bash: false`, which stays as it is: which tools are left is not known here.
    names = " ".join(lines).split(",") if entry["value"].strip() else [line.removeprefix("-") for line in lines]
    return [name.strip(_AROUND) for name in names] if lines else None
