"""A story that the real program plays once: everything of which a transcript keeps a trace."""

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.claude_code.api import Script, ScriptedApi, says, uses
from tests.claude_code.cli import ClaudeCode

FIX: Final = 'Fix the rounding of invoices,\nplease: "half-even" – and nothing else'
NEGATIVE: Final = "What about negative totals?"
CHANGES: Final = "Write down what changed"
AFTER: Final = "And now the tests"
OTHERWISE: Final = "Or do it in another way"

HALF_EVEN: Final = "Make total() round half-even"
NOTES: Final = "Write the notes for the office"
DEEPER: Final = "Ask the tax office's page"
SLOWLY: Final = "Look through the archive, slowly"

INVOICE: Final = "from decimal import Decimal\n\n\ndef total(lines):\n    return round(sum(lines), 2)\n"
FIXED: Final = INVOICE.replace("round(sum(lines), 2)", 'sum(lines).quantize(Decimal("0.01"))')


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """Where the story was played, and the ids of its sessions."""

    home: Path
    project: Path
    session: str
    fork: str

    @property
    def config(self) -> Path:
        """Return where the transcripts are."""
        return self.home / ".claude"


def script(project: Path) -> Script:
    """Return what the model answers to each prompt."""
    invoice, notes = str(project / "src" / "invoice.py"), str(project / "notes.md")
    editor = {"description": "edit", "subagent_type": "editor"}
    return {
        FIX: [
            [says("I look first."), uses("look", "Read", file_path=invoice)],
            [
                uses(
                    "edit",
                    "Edit",
                    file_path=invoice,
                    old_string="round(sum(lines), 2)",
                    new_string='sum(lines).quantize(Decimal("0.01"))',
                ),
            ],
            [uses("create", "Write", file_path=notes, content="one\ntwo\n")],
            [uses("rewrite", "Write", file_path=notes, content="one\nTWO\n")],
            [uses("sed", "Bash", command="sed -i s/TWO/three/ notes.md", description="sed")],
            [uses("fails", "Bash", command="echo oops >&2; exit 3", description="fails")],
            [uses("misses", "Edit", file_path=invoice, old_string="nowhere", new_string="x")],
            [uses("denied", "Bash", command="rm -f notes.md", description="denied by a rule")],
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
            [uses("half_edit", "Edit", file_path=invoice, old_string="lines", new_string="rows", replace_all=True)],
            [uses("deeper", "Agent", prompt=DEEPER, run_in_background=False, **editor)],
            [says("It rounds half-even.")],
        ],
        NOTES: [
            [uses("notes_write", "Write", file_path=str(project / "office.md"), content="dear office\n")],
            [uses("notes_fails", "Bash", command="exit 4", description="fails")],
            [uses("notes_read", "Read", file_path=notes)],
            [uses("notes_sed", "Bash", command="sed -i s/one/ONE/ notes.md", description="sed")],
            [uses("notes_edit", "Edit", file_path=notes, old_string="three", new_string="THREE")],
            [says("The notes are written.")],
        ],
        DEEPER: [
            [uses("deeper_write", "Write", file_path=str(project / "page.md"), content="a page\n")],
            [says("The page says so.")],
        ],
        SLOWLY: [
            [uses("slow_bash", "Bash", command="sleep 2; echo found > archive.txt", description="slow")],
            [says("Looked through it.")],
        ],
        NEGATIVE: [
            [uses("negative", "Bash", command="echo negative > negative.txt", description="negative")],
            [says("They are rounded likewise.")],
        ],
        CHANGES: [[says("Rounding is half-even now.")]],
        AFTER: [[uses("after", "Bash", command="echo tests > tests.txt", description="tests")], [says("Tested.")]],
        OTHERWISE: [
            [uses("otherwise", "Bash", command="echo other > other.txt", description="other")],
            [says("Done otherwise.")],
        ],
    }


def play(folder: Path) -> Played:
    """Play the story with the real program: two prompts, a resumed session, a compaction, a fork."""
    home, project = folder / "home", folder / "My project_1.0"
    home.mkdir()
    lay_out(project)
    with ScriptedApi(script(project)) as api:
        claude = ClaudeCode(home=home, project=project, api=api)
        session = claude.say(FIX)
        claude.say(NEGATIVE, "--continue")
        claude.say(CHANGES, f"--resume={session}")
        claude.say("/compact", f"--resume={session}")
        claude.say(AFTER, f"--resume={session}")
        fork = claude.say(OTHERWISE, f"--resume={session}", "--fork-session")
    return Played(home=home, project=project, session=session, fork=fork)


def lay_out(project: Path) -> None:
    """Make a project: a repository with one file, a type of sub-agent and a rule."""
    (project / "src").mkdir(parents=True)
    (project / "src" / "invoice.py").write_text(INVOICE, encoding="utf-8")
    agents = project / ".claude" / "agents"
    agents.mkdir(parents=True)
    (agents / "editor.md").write_text(
        "---\nname: editor\ndescription: edits\ntools: Read, Write, Edit, Bash, Agent\n---\nYou edit.\n",
        encoding="utf-8",
    )
    rules = {"permissions": {"deny": ["Bash(rm:*)"]}}
    (project / ".claude" / "settings.json").write_text(json.dumps(rules), encoding="utf-8")
    for arguments in (["init", "--quiet", "--initial-branch=main"], ["config", "user.email", "ana@example.org"]):
        subprocess.run(["git", *arguments], cwd=project, check=True)
