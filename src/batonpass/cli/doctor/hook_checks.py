"""The doctor's checks of the hooks in coding agents: where they are, whether they record, and missed events."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from batonpass.adapters.coders.client import HOME_NAME, LOG, HookInvocation
from batonpass.adapters.coders.dialects.table import DIALECTS
from batonpass.adapters.coders.hook_files import HOOK_FILES
from batonpass.adapters.coders.hook_settings import Installed, find_installed
from batonpass.adapters.coders.resident import ask_who
from batonpass.adapters.coders.rules.directory_policy import DirectoryPolicy
from batonpass.adapters.coders.spool import find_spooled
from batonpass.adapters.tool_kinds import Coder
from batonpass.cli.doctor.check import DoctorCheck, Level
from batonpass.cli.doctor.hook_trust import check_trust
from batonpass.cli.output.units import counted
from batonpass.config import Settings
from batonpass.errors import InvalidValueError
from batonpass.policy.file_place import FILE_NAME

_PATIENCE: Final = 2.0


def look_at_hooks(found: Settings) -> Iterator[DoctorCheck]:
    """Yield the checks of the hooks in the project of a ledger."""
    if found.home is None:
        return
    project = found.home.parent if found.home.name == HOME_NAME else Path.cwd()
    installed = [one for _, one in find_installed(project)]
    if not installed:
        yield DoctorCheck(Level.OK, "hooks", "none in Claude Code: `batonpass init claude-code` adds them")
    elif len(installed) == 1:
        yield DoctorCheck(Level.OK, "hooks", f"{_mode(installed[0])}, by {installed[0].path}")
    else:
        paths = " and ".join(str(one.path) for one in installed)
        advice = "run batonpass init claude-code --undo for all files but one (--shared, --user)"
        yield DoctorCheck(Level.BAD, "hooks", f"by {paths}: everything is recorded twice", advice)
    for one in installed[:1]:
        yield _recorder(one, project)
        yield from _rules(one, project)
    first = not installed
    for coder in HOOK_FILES:
        if coder is not Coder.CLAUDE_CODE and (checks := list(_look_at_agent(coder, project, first=first))):
            yield from checks
            first = False
    waiting = sum(1 for _ in find_spooled(found.home))
    if waiting:
        advice = f"the next event records them as gaps; {found.home / LOG} says why they were missed"
        missed = f"{counted(waiting, 'event')} reached no recorder"
        yield DoctorCheck(Level.WARN, "spool", missed, advice)


def _look_at_agent(coder: Coder, project: Path, *, first: bool) -> Iterator[DoctorCheck]:
    """Yield the checks of the hooks in one agent; nothing if it has none of ours."""
    installed = [one for _, one in find_installed(project, coder)]
    title = DIALECTS[coder].title
    for one in installed[:1]:
        yield DoctorCheck(Level.OK, str(coder), f"{_mode(one)}, by {one.path}")
        yield from check_trust(coder, project)
        if first:
            yield _recorder(one, project)
            yield from _rules(one, project)
    if len(installed) > 1:
        paths = " and ".join(str(one.path) for one in installed)
        advice = f"run batonpass init {coder} --undo for all files but one (--shared, --user)"
        yield DoctorCheck(Level.BAD, str(coder), f"{title} has our hooks in {paths}: all is recorded twice", advice)


def _rules(one: Installed, project: Path) -> Iterator[DoctorCheck]:
    if not one.enforce or not (project / FILE_NAME).exists():
        return
    try:
        DirectoryPolicy(project)()
    except InvalidValueError as error:
        yield DoctorCheck(Level.BAD, "rules", f"{FILE_NAME}: {error}", "correct it: until then every call is refused")
    else:
        yield DoctorCheck(Level.OK, "rules", f"{project / FILE_NAME}")


def _mode(one: Installed) -> str:
    return "enforced" if one.enforce else "observed"


def _recorder(one: Installed, project: Path) -> DoctorCheck:
    arguments = one.arguments if "--project" in one.arguments else [*one.arguments, "--project", str(project)]
    call = HookInvocation(arguments, dict(os.environ))
    socket = Path(call.home) / f"{call.name}.sock"
    if not socket.exists():
        return DoctorCheck(Level.OK, "recorder", "not running: the next event starts it")
    answer = ask_who(call, _PATIENCE)
    if answer is not None:
        stamp, _, pid = answer.partition(" ")
        return DoctorCheck(Level.OK, "recorder", f"process {pid} answers, {stamp}")
    return DoctorCheck(
        Level.WARN, "recorder", "does not answer", "the next event replaces it, unless it is frozen; see `ps`"
    )
