"""The real program, recorded while it works: every receipt is where it should be, and blame leads to the human."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from batonpass.adapters.claude_code.transcripts.claude_code_sessions import ClaudeCodeSessions
from batonpass.adapters.claude_code.transcripts.transcript_places import PROGRAM
from batonpass.adapters.importer.import_sources import series_of, session_id_of
from batonpass.adapters.importer.session_drafts import ImportCounts
from batonpass.adapters.importer.session_import import import_sessions
from batonpass.adapters.line_blame import blame_at
from tests.claude_code.recorded import AGAIN, CONSTRAINT, FIX, HALF_EVEN, LONG, NOTES, SLOWLY, Recorded, record
from tests.claude_code.story import FIXED
from tests.unit.adapters.coders.sessions import told

pytestmark = pytest.mark.slow

SOURCE = {"source": "claude-code", "recorded": True}


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Recorded]]:
    """Return the story as it was recorded: once while nobody was held to anything, with a crash; once under rules."""
    folders = {mode: tmp_path_factory.mktemp(mode) for mode in ("observed", "enforced")}
    with ThreadPoolExecutor() as pool:  # most of the time, the program waits
        playing = {mode: pool.submit(record, folders[mode], enforce=mode == "enforced") for mode in folders}
        played = {mode: story.result() for mode, story in playing.items()}
    yield played
    for recorded in played.values():
        recorded.relay.close()


@pytest.fixture
def observed(both: dict[str, Recorded]) -> Recorded:
    """Return the story in which nobody was held to anything."""
    return both["observed"]


@pytest.fixture
def enforced(both: dict[str, Recorded]) -> Recorded:
    """Return the story under rules."""
    return both["enforced"]


def by_run(recorded: Recorded) -> dict[str, list[dict[str, Any]]]:
    """Return the receipts of each run, by its task, or by the words at its root."""
    every = told(recorded.relay)
    tasks = {one["body"]["handoff"]: one["content"]["task"] for one in every if one["kind"] == "handoff.initiated"}
    names = {
        one["stream"]: one["content"].get("intent") or tasks[one["body"]["handoff"]]
        for one in every
        if one["kind"] in {"run.started", "handoff.accepted"}
    }
    found: dict[str, list[dict[str, Any]]] = {}
    for one in every:
        found.setdefault(names[one["stream"]], []).append(one)
    return found


def told_of(recorded: Recorded, run: str) -> list[str]:
    """Return what happened in a run: the kinds, and which calls they are about."""
    lines = []
    for one in by_run(recorded)[run]:
        key = one["content"].get("source", {}).get("key", "")
        lines.append(f"{one['kind']} {key.removeprefix('toolu_')}" if key.startswith("toolu_") else one["kind"])
    return lines


def one_of(recorded: Recorded, kind: str, call: str) -> dict[str, Any]:
    (found,) = [
        one
        for one in told(recorded.relay)
        if one["kind"] == kind and one["content"].get("source", {}).get("key") == f"toolu_{call}"
    ]
    return found


@pytest.mark.parametrize("mode", ["observed", "enforced"])
def test_the_lead_is_recorded_from_beginning_to_end(mode: str, both: dict[str, Recorded]) -> None:
    """Its words, its calls with their outcomes, whom it started, what it answered, and its end."""
    recorded = both[mode]
    lead = told_of(recorded, FIX)
    lead[10:12] = sorted(lead[10:12])  # they are started at once

    assert [
        "run.started",
        "run.rekeyed",
        "run.recorded",
        "tool.requested create",
        "tool.completed create",
        "tool.requested sed",
        "tool.completed sed",
        "tool.requested fails",
        "tool.failed fails",
        "tool.requested denied",
        "handoff.initiated half",
        "handoff.initiated notes",
        "handoff.initiated slow",
        "tool.failed denied",
        "run.recorded",
        "run.recorded",
        "run.closed",
    ] == lead
    assert {mode} == {one["mode"] for one in told(recorded.relay)}
    assert {session_id_of(PROGRAM, recorded.session)} == {one["session"] for one in told(recorded.relay)}


@pytest.mark.parametrize("mode", ["observed", "enforced"])
def test_sub_agents_have_their_own_calls(mode: str, both: dict[str, Recorded]) -> None:
    """Two of one type at once, and one in the background: none is taken for another."""
    recorded = both[mode]
    rules = ["tool.denied notes_rules"]
    if mode == "observed":
        rules = ["tool.requested notes_rules", "tool.completed notes_rules"]

    assert {
        HALF_EVEN: [
            "handoff.accepted",
            "tool.requested half_read",
            "tool.completed half_read",
            "tool.requested half_edit",
            "tool.completed half_edit",
            "handoff.completed",
        ],
        NOTES: [
            "handoff.accepted",
            "tool.requested notes_write",
            "tool.completed notes_write",
            *rules,
            "handoff.completed",
        ],
        SLOWLY: ["handoff.accepted", "tool.requested slow_bash", "tool.completed slow_bash", "handoff.completed"],
    } == {task: told_of(recorded, task) for task in (HALF_EVEN, NOTES, SLOWLY)}
    assert ["It rounds half-even.", "The notes are written.", "Looked through it."] == [
        by_run(recorded)[task][-1]["content"]["report"] for task in (HALF_EVEN, NOTES, SLOWLY)
    ]


@pytest.mark.parametrize("mode", ["observed", "enforced"])
def test_links_are_certain(mode: str, both: dict[str, Recorded]) -> None:
    """By the file beside the transcript, or, whoever comes first, by the result of the call."""
    recorded = both[mode]
    links = {
        task: one["content"]["source"]["link"]
        for task, run in by_run(recorded).items()
        for one in run
        if one["kind"] == "handoff.accepted"
    }

    assert ("meta", "meta") == (links[HALF_EVEN], links[NOTES])
    assert links[SLOWLY] in {"meta", "result"}


def test_an_offer_field_by_field(observed: Recorded) -> None:
    """The exact task, all that the human said, what binds everybody, and the prompt as it was sent."""
    offer = one_of(observed, "handoff.initiated", "half")
    prompt = offer["content"].pop("prompt")

    thought = offer["content"].pop("reasoning")["reasoning"]
    assert (True, ["offset", "path", "sha256", "uuid"]) == (thought["path"].endswith(".jsonl"), sorted(thought))
    assert {"task": HALF_EVEN, "source": {**SOURCE, "key": "toolu_half", "type": "editor"}} == offer["content"]
    assert ("editor", "caller", "offered", "run-1", "run-1") == tuple(
        offer["body"][name] for name in ("to", "carrier", "state", "run", "scope")
    )
    assert ["intent", "constraint"] == [item["part"] for item in offer["body"]["carries"]]
    assert (
        f"{HALF_EVEN}\n\n[[MARK briefing]]\nWhat is known beyond the task above, as it was recorded.\n\n"
        f"# What must hold\n- {CONSTRAINT} [from user:ana@example.org]\n[[MARK end of briefing]]"
    ) == prompt


def test_the_briefing_reaches_the_model(observed: Recorded) -> None:
    """What was added to the prompt is in what the provider is asked, for each sub-agent."""
    for task in (HALF_EVEN, NOTES, SLOWLY):
        (first, *_) = [words for words in observed.asked if task in words]

        assert f"- {CONSTRAINT}" in first


def test_changes_are_exact(observed: Recorded) -> None:
    """Edits by their bytes, `sed -i` and a command that failed by the work tree."""
    found = {
        call: [
            (content["path"], content["hunks"], "before" in content, content.get("overlapping"))
            for name, content in one_of(observed, kind, call)["content"].items()
            if name.startswith("change.")
        ]
        for kind, call in [
            ("tool.completed", "create"),
            ("tool.completed", "sed"),
            ("tool.failed", "fails"),
            ("tool.completed", "half_edit"),
            ("tool.completed", "notes_write"),
            ("tool.completed", "slow_bash"),
        ]
    }
    removed, added = "    return round(sum(lines), 2)", '    return sum(lines).quantize(Decimal("0.01"))'

    assert {
        "create": [("notes.md", [{"old": 0, "removed": [], "new": 1, "added": ["one", "two"]}], False, None)],
        "sed": [("notes.md", [{"old": 2, "removed": ["two"], "new": 2, "added": ["three"]}], True, None)],
        "fails": [("half.txt", [{"old": 0, "removed": [], "new": 1, "added": ["half"]}], False, None)],
        "half_edit": [("src/invoice.py", [{"old": 5, "removed": [removed], "new": 5, "added": [added]}], True, None)],
        "notes_write": [("office.md", [{"old": 0, "removed": [], "new": 1, "added": ["dear office"]}], False, None)],
        "slow_bash": [("archive.txt", [{"old": 0, "removed": [], "new": 1, "added": ["found"]}], False, None)],
    } == found
    assert FIXED == (observed.project / "src" / "invoice.py").read_text(encoding="utf-8")


def test_what_claude_code_refused_was_not_done(observed: Recorded) -> None:
    """No hook is told; the transcript says which rule it was."""
    failed = one_of(observed, "tool.failed", "denied")

    assert ("claude-code.permission-rule", []) == (failed["body"]["error"], failed["body"]["changes"])
    assert failed["content"]["message"].startswith("Permission to use Bash")
    assert (observed.project / "notes.md").exists()


def test_what_we_refuse_is_not_done_and_the_model_is_told_why(enforced: Recorded) -> None:
    """The rule and the arguments are recorded; the reason is in what the provider is asked next."""
    denied = one_of(enforced, "tool.denied", "notes_rules")
    arguments = denied["content"]["arguments"]
    reason = denied["content"]["reason"]

    written = {"file_path": str(enforced.project / "batonpass.toml"), "content": "# mine\n"}
    assert ("Write", written) == (arguments["tool"], arguments["arguments"])
    assert not (enforced.project / "batonpass.toml").exists()
    assert any(json.dumps(reason)[1:-1] in words for words in enforced.answered)


def test_a_crash_leaves_the_call_in_doubt(observed: Recorded) -> None:
    """Nobody knows how far it came, whatever the transcript says later; the session goes on in the same run."""
    assert [
        "run.started",
        "session.resumed",
        "run.recorded",
        "tool.requested long",
        "run.recorded",
        "handoff.initiated plain",
        "run.recorded",
        "run.closed",
    ] == told_of(observed, LONG)
    assert [AGAIN] == [one["content"]["intent.1"] for one in by_run(observed)[LONG] if "intent.1" in one["content"]]


def test_a_session_that_is_resumed_continues(observed: Recorded) -> None:
    """It had ended: the next root continues the last one."""
    roots = [one for one in told(observed.relay) if one["kind"] == "run.started"]

    assert [(FIX, None), (LONG, "run-1")] == [(one["content"]["intent"], one["body"]["continues"]) for one in roots]
    assert {series_of(PROGRAM, observed.session)} == {one["body"]["series"] for one in roots}


def test_a_sub_agent_without_a_type_is_the_usual_one(observed: Recorded) -> None:
    """Claude Code calls it general-purpose, as we do."""
    started = [event["agent_type"] for event in observed.events if event["hook_event_name"] == "SubagentStart"]

    assert "general-purpose" == one_of(observed, "handoff.initiated", "plain")["body"]["to"] == started[-1]


@pytest.mark.parametrize(
    ("file", "line", "call", "hops"),
    [
        ("src/invoice.py", 5, "half_edit", ["editor", "claude-code"]),
        ("notes.md", 1, "create", ["claude-code"]),
        ("notes.md", 2, "sed", ["claude-code"]),
        ("office.md", 1, "notes_write", ["editor", "claude-code"]),
        ("archive.txt", 1, "slow_bash", ["editor", "claude-code"]),
    ],
)
def test_blame_leads_to_the_human(file: str, line: int, call: str, hops: list[str], observed: Recorded) -> None:
    """From a line to the call that wrote it, the task it was part of, and the words that asked for it."""
    found = blame_at(observed.relay, observed.project / file)
    blamed = found.lines[line - 1]
    (maker,) = [found.makers[one] for one in blamed.calls]

    assert (f"toolu_{call}", hops) == (
        None if maker.source is None else maker.source.key,
        [hop.agent for hop in maker.hops],
    )
    assert maker.said is not None
    assert maker.said.body is not None
    assert FIX == maker.said.body.decode()


def test_importing_adds_only_what_no_hook_was_told(observed: Recorded) -> None:
    """Everything that the transcript has is recorded already."""
    for _ in range(2):
        imported = import_sessions(observed.relay, observed.project, ClaudeCodeSessions(observed.home / ".claude"))

        assert (ImportCounts(found=1), ()) == (imported.counts, imported.problems)


@pytest.mark.parametrize("mode", ["observed", "enforced"])
def test_the_ledger_is_whole(mode: str, both: dict[str, Recorded]) -> None:
    """It verifies, and no key of a run that is over is left."""
    recorded = both[mode]
    recorded.relay.verify()

    assert [] == recorded.failed
    assert [] == sorted(Path(recorded.project / ".batonpass" / "runs").iterdir())
