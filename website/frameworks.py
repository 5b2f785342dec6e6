"""Write the table framework × thing, docs/reference/frameworks.md, from what the tests of each column have shown.

python website/frameworks.py [COLUMN...]

plays the scenes of these columns, or of all whose environments are installed, keeps the results in
tests/frameworks/results.json, and writes the page. `make frameworks` does that.
"""

import ast
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final
from xml.etree import ElementTree as ET

ROOT: Final = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.frameworks.shown import SHOWN_COLUMNS  # noqa: E402 - the tests are beside us, and not installed

HERE: Final = ROOT / "tests" / "frameworks"
PAGE: Final = ROOT / "docs" / "reference" / "frameworks.md"
RESULTS: Final = HERE / "results.json"
THINGS: Final = 13  # the last scene is not one of them: it says that being observed changes nothing
TITLES: Final = {
    "agent_framework": "Agent Framework",
    "crewai": "CrewAI",
    "google_adk": "Google ADK",
    "langgraph": "LangGraph",
    "openai_agents": "OpenAI Agents",
    "pydantic_ai": "PydanticAI",
    "strands": "Strands",
}
LABELS: Final = {
    "exact_task": "the exact task is in the receipt",
    "baton_reaches_the_model": "intent, constraints and baton reach the child's model",
    "accepted_only_when_it_starts": "accepted only when the child starts; dropped is visible",
    "narrowed_grant": "a narrowed grant is enforced, recorded and explained",
    "nested_child_is_guarded": "a nested child is guarded too",
    "a_guard_that_crashes_stops_the_call": "a guard that crashes stops an enforced call",
    "untrusted_output_is_marked": "untrusted output arrives marked",
    "retry_runs_the_child_only": "a retry runs the child only, and repeats no effect",
    "two_handoffs_in_one_turn": "two handoffs in one turn",
    "parallel_children_have_streams_of_their_own": "parallel children keep separate streams",
    "approved_in_another_process": "approved in another process, and resumed",
    "close_out": "a close-out with used scope and effects",
    "configuration": "model, prompt and tools of the child are recorded",
    "observed_changes_nothing": "observed, models get exactly what they get without us",
}
PASSED: Final = "passed"
IMPOSSIBLE: Final = "impossible"
MISSING: Final = "missing"
VERSION: Final = "played with"  # beside the scenes of a column
_MARKS: Final = {PASSED: "yes", IMPOSSIBLE: "–", MISSING: "no"}

_HEAD: Final = """# Frameworks

What each adapter shows. The scenes are written once ([`suite.py`](../../tests/frameworks/suite.py)) and played with the
real framework and its own scripted model; for Claude Code and for a loop of your own, tests of their own show them.
This page is made by `make frameworks` from the results. **yes**: the scene passes. **–**: the framework makes it
impossible. **no**: it is not there.

"""


def frameworks() -> list[str]:
    """Return the columns with a driver: what the Makefile lists."""
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    listed = re.findall(r"^(?:BIG_)?FRAMEWORKS := (.+)$", text, re.MULTILINE)
    return sorted(name for line in listed for name in line.split())


def columns() -> list[str]:
    """Return all columns in the order of the table."""
    first, last = SHOWN_COLUMNS
    return [first, *frameworks(), last]


def scenes() -> list[str]:
    """Return the scenes, in the order in which they are written."""
    suite = ast.parse((HERE / "suite.py").read_text(encoding="utf-8"))
    found = (node for node in suite.body if isinstance(node, ast.ClassDef) and node.name == "FrameworkConformance")
    return [
        node.name.removeprefix("test_")
        for one in found
        for node in one.body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    ]


def declared(column: str) -> Mapping[str, tuple[str, str]]:
    """Return what a column says that it does not show: which state, and why."""
    if column in SHOWN_COLUMNS:
        told = SHOWN_COLUMNS[column]
        said = {scene: (IMPOSSIBLE, why) for scene, why in told.cannot.items()}
        return said | {scene: (MISSING, why) for scene, why in told.missing.items()}
    tree = ast.parse((HERE / f"{column}_column.py").read_text(encoding="utf-8"))
    drivers = (
        node
        for node in tree.body
        if isinstance(node, ast.ClassDef)
        and any(isinstance(base, ast.Name) and base.id == "Driver" for base in node.bases)
    )
    cannot: dict[str, str] = {}
    for node in (one for driver in drivers for one in driver.body):
        target = (
            node.target
            if isinstance(node, ast.AnnAssign)
            else node.targets[0]
            if isinstance(node, ast.Assign)
            else None
        )
        if isinstance(target, ast.Name) and target.id == "cannot" and isinstance(node, ast.AnnAssign | ast.Assign):
            cannot = {} if node.value is None else ast.literal_eval(node.value)
    return {scene: (IMPOSSIBLE, why) for scene, why in cannot.items()}


def version(column: str) -> str:
    """Return the release that a column is played with, as its lock has it."""
    if column in SHOWN_COLUMNS:
        lock = ROOT / SHOWN_COLUMNS[column].played_with
        names = ["claude-agent-sdk"]
    else:
        lock = HERE / f"{column}.lock"
        wanted = (HERE / f"{column}.in").read_text(encoding="utf-8").splitlines()
        names = [re.split(r"[<>=!~\[; ]", line)[0] for line in wanted if line and not line.startswith("#")]
    if not lock.is_file():
        return ""
    name = next((one for one in names if one == column.replace("_", "-")), names[0])
    found = re.search(rf"^{re.escape(name)}==([^\s\\;]+)", lock.read_text(encoding="utf-8"), re.MULTILINE)
    return "" if found is None else f"{name} {found[1]}"


def play(column: str) -> dict[str, str] | None:
    """Play the scenes of a column and return what came of each; None if its environment is not installed."""
    python = Path(sys.executable)
    told = SHOWN_COLUMNS.get(column)
    if told is None:
        python = ROOT / ".venv" / "frameworks" / column / "bin" / "python"
        arguments = ["-c", str(HERE / "column.ini"), str(HERE / f"{column}_column.py"), "-k", " or ".join(scenes())]
    else:
        arguments = sorted({test for tests in told.shown.values() for test in tests})
    needs_claude = any(one.startswith("tests/claude_code") for one in arguments)
    if not python.exists() or (needs_claude and not (ROOT / ".venv" / "claude" / ".installed").exists()):
        return None
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = [str(python), "-m", "pytest", "-q", *arguments, f"--junitxml={report}", "-p", "no:randomly"]
        subprocess.run(command, cwd=ROOT, check=False, stdout=sys.stderr)
        played = dict(_outcomes(report)) if report.exists() else {}
    if told is None:
        return {scene: played.get(f"test_{scene}", "not played") for scene in scenes()}
    shown = {
        scene: "; ".join(sorted({played.get(test.rpartition("::")[2], "not played") for test in tests}))
        for scene, tests in told.shown.items()
    }
    return {scene: shown.get(scene, declared(column).get(scene, ("not said", ""))[0]) for scene in scenes()}


def _outcomes(report: Path) -> Iterator[tuple[str, str]]:
    """Yield the tests of a report, and what came of each; of several with one name, the worst."""
    found: dict[str, str] = {}
    for case in ET.parse(report).iter("testcase"):  # noqa: S314 - written by pytest a moment ago
        name = case.get("name", "").partition("[")[0]
        bad = next((one.tag for one in case if one.tag in {"failure", "error", "skipped"}), None)
        outcome = PASSED if bad is None else IMPOSSIBLE if bad == "skipped" else "failed"
        found[name] = max(found.get(name, outcome), outcome, key=[PASSED, IMPOSSIBLE, "failed"].index)
    return iter(found.items())


def results() -> dict[str, dict[str, str]]:
    """Return what was played last, by column and scene."""
    kept: dict[str, dict[str, str]] = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    return kept


def page() -> str:
    """Return the page of what was played last."""
    played = results()
    known = [name for name in columns() if name in played]
    titles = [SHOWN_COLUMNS[name].title if name in SHOWN_COLUMNS else TITLES.get(name, name) for name in known]
    lines = [f"| thing | {' | '.join(titles)} |", f"|---|{'---|' * len(known)}"]
    for scene in scenes():
        cells = [_MARKS.get(played[name].get(scene, ""), "failed") for name in known]
        lines.append(f"| {LABELS.get(scene, scene.replace('_', ' '))} | {' | '.join(cells)} |")
    things = scenes()[:THINGS]
    counted = [name for name in known if name != "own_loop"]
    shown = sum(played[name].get(scene) == PASSED for name in counted for scene in things)
    lines += [
        "",
        f"Without the last row, {len(counted)} frameworks show {shown} of {THINGS * len(counted)} things.",
        "",
        "## Played with",
        "",
        "| column | release |",
        "|---|---|",
        *(
            f"| {title} | {release} |"
            for title, name in zip(titles, known, strict=True)
            if (release := played[name].get(VERSION))
        ),
        "",
        "## Why not",
        "",
        "| column | thing | why |",
        "|---|---|---|",
    ]
    for title, name in zip(titles, known, strict=True):
        said = declared(name)
        lines += [f"| {title} | {LABELS.get(one, one)} | {said[one][1]} |" for one in scenes() if one in said]
    return _HEAD + "\n".join(lines) + "\n"


def main(chosen: list[str]) -> int:
    """Play, keep and write. Return 1 if a scene did not come out as its column declares."""
    kept = results()
    bad: list[str] = []
    for column in chosen or columns():
        played = play(column)
        if played is None:
            sys.stderr.write(f"{column}: not installed; its results stay as they were\n")
            continue
        said = declared(column)
        bad += [f"{column}: {scene} {got}" for scene, got in played.items() if got != said.get(scene, (PASSED, ""))[0]]
        kept[column] = {**played, VERSION: version(column)}
    RESULTS.write_text(json.dumps(kept, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    PAGE.write_text(page(), encoding="utf-8")
    sys.stderr.writelines(f"{one}\n" for one in bad)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
