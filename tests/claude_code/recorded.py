"""A story that the real program plays while it is recorded: once observed, once held to rules; then it crashes."""

import json
import os
import signal
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from batonpass.adapters.coders.session.hook_recorder import HookRecorder
from batonpass.model.base.kinds import Mode
from batonpass.model.baton.items import Constraint
from batonpass.relay import Relay
from tests.claude_code.api import Script, ScriptedApi, says, uses
from tests.claude_code.cli import ClaudeCode
from tests.claude_code.hooking import hooked
from tests.claude_code.story import lay_out

FIX: Final = "Fix the rounding of invoices"
HALF_EVEN: Final = "Make total() round half-even"
NOTES: Final = "Write the notes for the office"
SLOWLY: Final = "Look through the archive, slowly"
LONG: Final = "Do something that takes long"
AGAIN: Final = "Go on where you were"
LOOK: Final = "Look how far it came"

CONSTRAINT: Final = "Amounts are Decimal"


def script(project: Path) -> Script:
    """Return what the model answers to each prompt."""
    invoice = str(project / "src" / "invoice.py")
    editor = {"description": "edit", "subagent_type": "editor"}
    return {
        FIX: [
            [uses("create", "Write", file_path=str(project / "notes.md"), content="one\ntwo\n")],
            [uses("sed", "Bash", command="sed -i s/two/three/ notes.md", description="sed")],
            [uses("fails", "Bash", command="echo half > half.txt; exit 3", description="fails")],
            [uses("denied", "Bash", command="rm -f notes.md", description="denied by a rule of Claude Code")],
            [
                uses("half", "Agent", prompt=HALF_EVEN, run_in_background=False, **editor),
                uses("notes", "Agent", prompt=NOTES, run_in_background=False, **editor),
            ],
            [uses("slow", "Agent", prompt=SLOWLY, run_in_background=True, **editor)],
            [says("Done, but for the archive.")],
            [says("The archive is done too.")],
        ],
        HALF_EVEN: [
            [uses("half_read", "Read", file_path=invoice)],
            [
                uses(
                    "half_edit",
                    "Edit",
                    file_path=invoice,
                    old_string="round(sum(lines), 2)",
                    new_string='sum(lines).quantize(Decimal("0.01"))',
                ),
            ],
            [says("It rounds half-even.")],
        ],
        NOTES: [
            [uses("notes_write", "Write", file_path=str(project / "office.md"), content="dear office\n")],
            [uses("notes_rules", "Write", file_path=str(project / "batonpass.toml"), content="# mine\n")],
            [says("The notes are written.")],
        ],
        SLOWLY: [
            [uses("slow_bash", "Bash", command="sleep 0.5; echo found > archive.txt", description="slow")],
            [says("Looked through it.")],
        ],
        LONG: [[uses("long", "Bash", command="echo begun > long.txt; sleep 60", description="long")]],
        AGAIN: [
            [uses("plain", "Agent", prompt=LOOK, description="look", run_in_background=False)],
            [says("It was cut off.")],
        ],
        LOOK: [[says("I see.")]],
    }


@dataclass(slots=True, kw_only=True)
class Recorded:
    """What was recorded, and where the story was played."""

    project: Path
    home: Path
    relay: Relay
    session: str
    events: list[Mapping[str, Any]] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)  # the first message of each request to the model, as JSON
    answered: list[str] = field(default_factory=list)  # the last one
    failed: list[Exception] = field(default_factory=list)  # what went wrong, of which the program knows nothing


def record(folder: Path, *, enforce: bool) -> Recorded:
    """Play the story with the real program, and return what was recorded; whoever calls closes the relay."""
    home, project = folder / "home", folder / "shop"
    home.mkdir()
    lay_out(project)
    keys = project / ".batonpass"
    relay = Relay.open(f"sqlite:///{keys}/ledger.db", home=keys, keys_in_files=True)
    recorder = HookRecorder(relay, project, mode=Mode.ENFORCED if enforce else Mode.OBSERVED)
    told = Recorded(project=project, home=home, relay=relay, session="")

    def answer(event: Mapping[str, Any]) -> dict[str, Any]:
        told.events.append(event)
        try:
            answered = recorder.handle(event)
        except Exception as error:
            told.failed.append(error)
            raise
        if event["hook_event_name"] == "UserPromptSubmit" and event["prompt"] == FIX:
            # From outside, as a person would: what binds everybody from here on.
            relay.resume().record(Constraint(CONSTRAINT), by="user:ana@example.org")
        return answered

    with ScriptedApi(script(project)) as api, hooked(project, answer):
        claude = ClaudeCode(home=home, project=project, api=api)
        told.session = claude.say(FIX)
        if not enforce:
            _crash(claude, told, LONG)
            claude.say(AGAIN, f"--resume={told.session}")
        told.asked = [json.dumps(asked.body["messages"][0]) for asked in api.asked]
        told.answered = [json.dumps(asked.body["messages"][-1]) for asked in api.asked]
    recorder.close()
    return told


def _crash(claude: ClaudeCode, told: Recorded, prompt: str) -> None:
    """Let the program be killed in the middle of a call."""
    running = claude.start(prompt, f"--resume={told.session}")
    begun = claude.project / "long.txt"
    waiting = threading.Event()
    for _ in range(600):
        if begun.exists():
            break
        waiting.wait(0.1)
    os.killpg(running.pid, signal.SIGKILL)
    running.wait()
