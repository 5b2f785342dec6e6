"""The doctor's checks of trust: whether an agent runs the hooks that are in its settings."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from batonpass.adapters.coders.hook_files import HOOK_FILES, user_directory
from batonpass.adapters.coders.hook_settings import is_our_command
from batonpass.adapters.tool_kinds import Coder
from batonpass.cli.doctor.check import DoctorCheck, Level

_PATIENCE: Final = 10.0
_TRUSTED: Final = frozenset({"trusted", "managed"})
_FOLDERS: Final = "trustedFolders.json"
_UP: Final = frozenset({"TRUST_FOLDER", "TRUST_PARENT"})


def check_trust(coder: Coder, project: Path) -> Iterator[DoctorCheck]:
    """Yield whether an agent trusts our hooks in a project; nothing for an agent that needs no trust."""
    match coder:
        case Coder.CODEX:
            yield from _check_codex(project)
        case Coder.GEMINI | Coder.QWEN:
            yield from _check_folder(coder, project)
        case _:
            return


def _check_codex(project: Path) -> Iterator[DoctorCheck]:
    """Yield the checks that Codex itself reports for the hooks that it finds."""
    program = shutil.which(HOOK_FILES[Coder.CODEX].program)
    if program is None:
        return
    try:
        found = list(_listed(program, project))
    except (OSError, ValueError, KeyError, TypeError, subprocess.SubprocessError):
        yield DoctorCheck(Level.WARN, "trust", "Codex does not say which hooks it trusts", "say /hooks in Codex")
        return
    ours = [hook for hook in found if is_our_command(str(hook.get("command", "")))]
    left = [hook for hook in ours if str(hook.get("trustStatus", "")).lower() not in _TRUSTED]
    if ours and not left:
        yield DoctorCheck(Level.OK, "trust", "Codex trusts our hooks")
    else:
        advice = "start `codex` here once and accept them, or say /hooks; until then nothing is recorded"
        said = "Codex finds no hook of ours"
        if ours:
            said = f"Codex trusts {len(ours) - len(left)} of {len(ours)} of our hooks"
        yield DoctorCheck(Level.WARN, "trust", said, advice)


def _listed(program: str, project: Path) -> Iterator[dict[str, Any]]:
    asked = (
        {"id": 1, "method": "initialize", "params": {"clientInfo": {"name": "batonpass", "version": "0"}}},
        {"method": "initialized"},
        {"id": 2, "method": "hooks/list", "params": {"cwds": [str(project)]}},
    )
    words = "".join(f"{json.dumps(one)}\n" for one in asked)
    # Its standard input stays open until it has answered: at its end, the program leaves at once.
    with subprocess.Popen(  # noqa: S603 - the user's own program, with words of ours
        [program, "app-server"],
        cwd=project,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        try:
            yield from _answered(process, words)
        finally:
            process.kill()


def _answered(process: "subprocess.Popen[str]", words: str) -> Iterator[dict[str, Any]]:
    import threading  # noqa: PLC0415 - only here

    if process.stdin is None or process.stdout is None:
        return
    late = threading.Timer(_PATIENCE, process.kill)
    late.start()
    try:
        process.stdin.write(words)
        process.stdin.flush()
        for line in process.stdout:
            answer = json.loads(line)
            if answer.get("id") == 2:  # noqa: PLR2004 - the request for the hooks
                for entry in answer["result"]["data"]:
                    yield from entry["hooks"]
                return
        raise ValueError("Codex left without an answer")
    finally:
        late.cancel()


def _check_folder(coder: Coder, project: Path) -> Iterator[DoctorCheck]:
    """Yield whether a folder is trusted, if the agent keeps a list of them and the user has switched that on."""
    own = user_directory(coder)
    if coder is Coder.QWEN and not _asks_for_trust(own / "settings.json"):
        return
    try:
        known = json.loads((own / _FOLDERS).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        known = {}
    told = known if isinstance(known, dict) else {}
    trusted = any(
        project.is_relative_to(Path(folder).parent if state == "TRUST_PARENT" else folder)
        for folder, state in told.items()
        if state in _UP
    )
    if trusted:
        yield DoctorCheck(Level.OK, "trust", f"{coder} trusts this folder")
    else:
        yield DoctorCheck(Level.WARN, "trust", f"{coder} does not trust this folder", str(HOOK_FILES[coder].trust))


def _asks_for_trust(settings: Path) -> bool:
    try:
        found = json.loads(settings.read_text(encoding="utf-8"))
        return bool(found["security"]["folderTrust"]["enabled"])
    except (OSError, ValueError, KeyError, TypeError):
        return False
