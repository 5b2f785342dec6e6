"""Finds transcripts: one folder per working directory, one file per session, one per sub-agent."""

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from batonpass.adapters.session_files.session_place import SessionFiles, entries, spellings, worked_in

PROGRAM: Final = "claude-code"  # in receipts and commands

_LONGEST_SLUG: Final = 200
_ODD: Final = re.compile(r"[^a-zA-Z0-9]")
_AGENT: Final = re.compile(r"agent-(.+)\.jsonl")


def config_directory(environment: Mapping[str, str] | None = None) -> Path:
    """Return Claude Code's own directory: `CLAUDE_CONFIG_DIR`, or `~/.claude`."""
    given = (os.environ if environment is None else environment).get("CLAUDE_CONFIG_DIR")
    return Path(given) if given else Path.home() / ".claude"


def slug_of(directory: str) -> str:
    """Return the name of the folder with the transcripts of a working directory.

    Beyond 200 characters the program appends a hash. It is left out here, so such a name is only a prefix.
    """
    # The program counts UTF-16 units, where a character beyond the basic plane is two.
    units = "".join("--" if ord(character) > 0xFFFF else character for character in directory)  # noqa: PLR2004 - the end of the basic plane
    return _ODD.sub("-", units)[:_LONGEST_SLUG]


def find_transcripts(project: Path, *, config: Path | None = None) -> Iterator[SessionFiles]:
    """Yield the sessions that worked in a project's directory or below it, in the order of their names.

    Transcripts in the project's own folder are found by its name; all others are searched for the directory.
    """
    spelled = spellings(project)
    own = {slug_of(spelling) for spelling in spelled}
    folders = (config or config_directory()) / "projects"
    for folder in (path for path in entries(folders) if path.is_dir()):
        for main in (path for path in entries(folder) if path.suffix == ".jsonl" and path.is_file()):
            if _AGENT.fullmatch(main.name):
                continue  # some versions kept sub-agents here; they are found with their session
            if worked_in(main, spelled) or (folder.name[:_LONGEST_SLUG] in own and not worked_in(main, [""])):
                yield SessionFiles(session=main.stem, main=main, agents=_agents(folder, main.stem))


def _agents(folder: Path, session: str) -> dict[str, Path]:
    found: dict[str, Path] = {}
    # Workflows put their sub-agents into nested folders of any depth.
    for path in sorted((folder / session / "subagents").rglob("agent-*.jsonl")):
        if (match := _AGENT.fullmatch(path.name)) and path.is_file():
            found.setdefault(match[1], path)
    return found
