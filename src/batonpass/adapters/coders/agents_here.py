"""Which coding agents are used in a directory, and which of them are recorded."""

import shutil
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from batonpass.adapters.coders.dialects.table import DIALECTS
from batonpass.adapters.coders.hook_files import HOOK_FILES, user_directory
from batonpass.adapters.coders.hook_settings import find_installed
from batonpass.adapters.tool_kinds import Coder


class AgentHere(Struct, frozen=True, kw_only=True):
    """A coding agent that is used in a directory."""

    coder: Coder
    title: str
    why: str  # the sign that it is used
    by: Path | None = None  # the file with our hooks; None: it is not recorded


def find_agents(project: Path) -> Iterator[AgentHere]:
    """Yield the agents that left traces in a project or in the user's home, or that are on the PATH."""
    for coder, file in HOOK_FILES.items():
        traces = [name for name in file.traces if (project / name).exists()]
        why = [f"{name} here" for name in traces]
        if file.user is not None and user_directory(coder).is_dir():
            why.append("settings in your home")
        if shutil.which(file.program) is not None:
            why.append(f"{file.program} on the PATH")
        if why:
            by = next((installed.path for _, installed in find_installed(project, coder)), None)
            yield AgentHere(coder=coder, title=DIALECTS[coder].title, why=", ".join(why), by=by)
