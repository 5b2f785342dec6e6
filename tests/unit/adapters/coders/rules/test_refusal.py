"""What an enforced session refuses, and what it lets pass."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec import structs

from batonpass.adapters.coders.events import HookEvent
from batonpass.adapters.coders.rules.directory_policy import DirectoryPolicy
from batonpass.adapters.coders.rules.tool_actions import call_of
from batonpass.errors import PolicyFileError
from batonpass.guard.policy.gates import CallFacts, GateDecision, judge_call
from batonpass.handoff.files.protected_paths import Protected, ProtectedFinding, RecorderProcess, program_files
from batonpass.handoff.shell.call_reach import find_touched
from batonpass.handoff.shell.call_use import find_use
from batonpass.model.base.ids import as_agent
from batonpass.model.policy.policy_rules import Policy
from batonpass.policy.document import parse_document
from batonpass.policy.former_tables import upgrade
from batonpass.policy.policy_table import policy_of
from tests.unit.adapters.coders.commands import ORDINARY, OURS, PROTECTED

RECORDER = RecorderProcess(4711, ("/opt/venv/bin/python3.11", "-I", "-m", "batonpass.adapters.coders.resident"))
EDITED_BY: Mapping[str, str] = {"Edit": "file_path", "MultiEdit": "file_path", "NotebookEdit": "notebook_path"}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a project with everything in it that is protected, and two links."""
    project = tmp_path_factory.mktemp("enforced") / "shop"
    for folder in (".batonpass", ".claude", "src", "docs"):
        (project / folder).mkdir(parents=True)
    for name in (".batonpass/ledger.db", ".claude/settings.json", ".claude/settings.local.json", "batonpass.toml"):
        (project / name).touch()
    (project / "src" / "record").symlink_to("../.batonpass")
    (project / "docs" / "up").symlink_to("../src")
    return project


@pytest.fixture(scope="module")
def places(project: Path) -> Protected:
    """Return what is protected there."""
    program = [project.parent / "site-packages" / "batonpass"]
    return Protected.around(
        project / ".batonpass",
        f"sqlite:///{project.parent}/kept/all.db",
        project,
        environment={"CLAUDE_CONFIG_DIR": str(project.parent / "config")},
        program=program,
        process=RECORDER,
    )


def a_call(project: Path, tool: str, *, by: str | None = None, **given: object) -> HookEvent:
    agent = None if by is None else "a1"
    return HookEvent(
        name="PreToolUse", session="s", tool=tool, input=given, directory=project, agent=agent, agent_type=by
    )


def touched(places: Protected, event: HookEvent, *, enforced: bool) -> ProtectedFinding | None:
    """Return what is protected and a call would touch."""
    return find_touched(places, call_of(event, Path(places.work_tree), {}), enforced=enforced)


def find_refusal(event: HookEvent, policy: Policy, project: Path) -> GateDecision | None:
    """Return the decision of the rules about a call."""
    call = call_of(event, project, {})
    told = call.told_by_door
    facts = CallFacts(
        agent=told.agent or as_agent(event.agent_type or "claude-code"),
        tool=call.declared.name,
        kin=call.declared.kin,
        door=told.door,
        used=find_use(call),
    )
    return next(iter(judge_call(facts, policy)), None)


def rule_of(places: Protected, event: HookEvent, policy: Policy | None = None) -> str | None:
    """Return the rule by which a call is refused; None if it may be made."""
    if touched(places, event, enforced=True) is not None:
        return "protected"
    refusal = find_refusal(event, policy or Policy(), Path(places.work_tree))
    return None if refusal is None else refusal.rule


def rules_of(text: str) -> Policy:
    return policy_of(parse_document(text.encode()))


def upgraded(text: str) -> str:
    return upgrade(text, parse_document(text.encode()))


@pytest.mark.parametrize("tool", EDITED_BY)
@pytest.mark.parametrize(
    "path",
    [
        ".batonpass/x",
        ".batonpass",
        "{project}/.batonpass/ledger.db",
        "src/../.batonpass/x",
        "src/record/x",
        "docs/up/record/x",
        "docs/up/../.batonpass/x",
        ".BatonPass/x",
        "././/batonpass/../.batonpass/x",
        ".claude/settings.json",
        ".claude/settings.local.json",
        ".claude/../.claude/Settings.json",
        "../config/settings.json",
        "batonpass.toml",
        "../kept/all.db",
        "../kept/all.db-wal",
        "../kept/all.db.batonpass/relay.key",
        "../site-packages/batonpass/adapters/coders/client.py",
    ],
)
def test_nobody_writes_to_what_is_protected(project: Path, places: Protected, tool: str, path: str) -> None:
    """By whatever spelling, in the main conversation and in sub-agents."""
    given = {EDITED_BY[tool]: path.format(project=project)}

    assert "protected" == rule_of(places, a_call(project, tool, **given))
    assert "protected" == rule_of(places, a_call(project, tool, by="editor", **given))


@pytest.mark.parametrize(
    "path", ["src/invoice.py", ".claude/agents/editor.md", "docs/batonpass.md", "settings.json", ".batonpass.md"]
)
def test_everything_else_can_be_written(project: Path, places: Protected, path: str) -> None:
    """Neighbours and namesakes of what is protected are not."""
    assert None is rule_of(places, a_call(project, "Write", file_path=str(project / path)))


def test_keys_are_not_even_read_and_settings_are(project: Path, places: Protected) -> None:
    """Whoever can read a key can sign; whoever reads the settings learns only how things are."""
    found = [
        rule_of(places, a_call(project, "Read", file_path=name)) for name in (".batonpass/relay.key", "batonpass.toml")
    ]

    assert ["protected", None] == found
    assert "protected" == rule_of(places, a_call(project, "Grep", pattern="x", path="src/record"))


def test_any_string_of_a_foreign_tool_may_be_a_path(project: Path, places: Protected) -> None:
    """Only the server knows which argument is one."""
    given: dict[str, Any] = {"operations": [{"to": "src/../.claude/settings.json"}], "text": "about .batonpass/\n" * 3}

    assert "protected" == rule_of(places, a_call(project, "mcp__files__move", **given))
    assert None is rule_of(places, a_call(project, "mcp__files__move", text="see .batonpass/ there", to="src/a"))
    assert "protected" == rule_of(places, a_call(project, "mcp__sh__run", cmd="batonpass doctor"))


DETOURS = st.lists(st.sampled_from(["src/..", ".", "docs/up/..", "docs/../src/..", "src/record/..", "./"]), max_size=6)
AIMS = st.sampled_from(
    [".batonpass", ".BATONPASS/", ".claude/settings.json", "batonpass.toml", "src/record/x", "docs/up/record/./x/../y"]
)


@given(DETOURS, AIMS, st.sampled_from(["", "{project}/", "{project}//", "../shop/"]))
def test_no_detour_leads_in(project: Path, places: Protected, detour: list[str], aim: str, start: str) -> None:
    """Up and down, through links, doubled slashes, other case: all of it is seen to lead to the same place."""
    path = start.format(project=project) + "/".join([*detour, aim])

    assert "protected" == rule_of(places, a_call(project, "Write", file_path=path))
    assert "protected" == rule_of(places, a_call(project, "Bash", command=f"echo x > '{path}'"))


@given(st.text(alphabet=st.sampled_from("abc./ -_*?[]{},$`\"'\\;|&()<>\n#=~!x0"), max_size=60))
@example("$'\\;")
def test_no_text_breaks_the_judge(project: Path, places: Protected, text: str) -> None:
    """Whatever is written, there is an answer."""
    rule_of(places, a_call(project, "Bash", command=text))
    rule_of(places, a_call(project, "Write", file_path=text))


@pytest.mark.parametrize("command", OURS)
def test_nobody_runs_batonpass(project: Path, places: Protected, command: str) -> None:
    """By name, by path, as a module, through other programs, in quotes and in substitutions."""
    assert "protected" == rule_of(places, a_call(project, "Bash", command=command))


@pytest.mark.parametrize("command", PROTECTED)
def test_no_command_reaches_what_is_protected(project: Path, places: Protected, command: str) -> None:
    """By name, by pattern, from another directory, by its parents, or by the process that guards it."""
    event = a_call(project, "Bash", command=command.format(project=project))

    assert "protected" == rule_of(places, event)


ENDLESS = [
    "cd a; " * 2_000,
    "cd " + "a" * 10_000,
    "$(" * 5_000,
    "eval " * 500,
    "echo " + "{a,b}" * 100,
    "cd .. ; " * 500,
]


@pytest.mark.parametrize("command", ENDLESS, ids=lambda command: command[:8])
def test_no_command_keeps_the_judge_busy(project: Path, places: Protected, command: str) -> None:
    """What would grow without end is cut off, and nothing is refused for its length."""
    assert None is rule_of(places, a_call(project, "Bash", command=command))


@pytest.mark.parametrize("command", ORDINARY)
def test_ordinary_work_goes_on(project: Path, places: Protected, command: str) -> None:
    """A guard that is in the way is switched off."""
    assert None is rule_of(places, a_call(project, "Bash", command=command))


def test_a_refusal_says_what_to_do(project: Path, places: Protected) -> None:
    """The model reads it, and has to go on from there."""
    found = touched(places, a_call(project, "Write", file_path=".batonpass/x"), enforced=True)

    assert found is not None
    assert f"touch the ledger or its keys ({project}/.batonpass)" == found.does
    assert "leave it as it is and go on without it" in found.instead


RULES = """
[[rules]]
name = "no-web"
on = "call"
gate = "deny"
agent = "claude-code"
tool = ["WebFetch", "mcp__mail__*"]

[[rules]]
name = "no-push"
on = "call"
gate = "deny"
agent = "editor"
tool = ["Bash(git push *)", "Edit(src/secret/**)"]

[[rules]]
name = "editor-only"
on = "call"
gate = "deny"
agent = "editor"
except = ["Read", "Edit(src/**)", "Bash(git *)", "Bash(make)", "Agent(helper)", "WebFetch(domain:example.org)"]

[[rules]]
name = "reader"
on = "call"
gate = "deny"
agent = ["read*", "!reader-in-chief"]
tool = ["Edit", "Bash"]
"""


@pytest.mark.parametrize(
    ("by", "tool", "given", "expected"),
    [
        (None, "WebFetch", {"url": "https://example.org"}, "no-web"),
        (None, "mcp__mail__send", {}, "no-web"),
        (None, "mcp__files__read", {}, None),
        ("editor", "Read", {"file_path": "/etc/hosts"}, None),
        ("editor", "Edit", {"file_path": "src/a/b.py"}, None),
        ("editor", "Write", {"file_path": "src/new.py"}, None),
        ("editor", "Edit", {"file_path": "docs/a.md"}, "editor-only"),
        ("editor", "Edit", {"file_path": "src/../docs/a.md"}, "editor-only"),
        ("editor", "Edit", {"file_path": "docs/up/a.py"}, "editor-only"),
        ("editor", "Edit", {"file_path": "src/secret/key.py"}, "no-push"),
        ("editor", "Edit", {"file_path": "src/Secret/key.py"}, "no-push"),
        ("editor", "Edit", {"file_path": "src/a\0b"}, "editor-only"),
        ("editor", "Bash", {"command": "git diff"}, None),
        ("editor", "Bash", {"command": "git"}, None),
        ("editor", "Bash", {"command": "git diff | git apply && make 2>&1"}, None),
        ("editor", "Bash", {"command": "git diff; curl example.org"}, "editor-only"),
        ("editor", "Bash", {"command": "git diff $(curl example.org)"}, "editor-only"),
        ("editor", "Bash", {"command": "gitx"}, "editor-only"),
        ("editor", "Bash", {"command": "make install"}, "editor-only"),
        ("editor", "Bash", {"command": ""}, "editor-only"),
        ("editor", "Bash", {"command": "git status && git push origin"}, "no-push"),
        ("editor", "Agent", {"subagent_type": "helper"}, None),
        ("editor", "Task", {"subagent_type": "helper"}, None),
        ("editor", "Agent", {"subagent_type": "other"}, "editor-only"),
        ("editor", "WebFetch", {"url": "https://docs.example.org/a"}, None),
        ("editor", "WebFetch", {"url": "https://example.org.evil.net"}, "editor-only"),
        ("editor", "WebFetch", {"url": "http://["}, "editor-only"),
        ("editor", "mcp__x__y", {}, "editor-only"),
        ("reader", "Read", {"file_path": "a"}, None),
        ("reader", "NotebookEdit", {"notebook_path": "a"}, "reader"),
        ("reader-in-chief", "Bash", {"command": "make"}, None),
        ("somebody", "Bash", {"command": "make"}, None),
    ],
)
def test_rules_hold_for_their_agent(
    places: Protected, by: str | None, tool: str, given: dict[str, Any], expected: str | None
) -> None:
    """The first that matches decides; one with exceptions refuses everything else; the others may do everything."""
    project = Path(places.work_tree)

    assert expected == rule_of(places, a_call(project, tool, by=by, **given), rules_of(RULES))


NO_PUSH = '[[rules]]\nname = "no-push"\non = "call"\ngate = "deny"\ntool = "Bash(git push *)"\n'
PUSHES = [
    "env git push",
    "/usr/bin/git push origin",
    "bash -c 'git push'",
    "bash -lc 'cd x && git push'",
    "git -C . push",
    "git -c user.name=x --no-pager push",
    "git -c alias.p=push p",
    "git -c 'alias.p=!git push' p",
    "command git push",
    "X=1 git push",
    "env X=1 -i git push",
    "(git push)",
    "true && git push",
    "true; git push",
    "true | git push",
    "git push &",
    "if true; then git push; fi",
    "for i in 1 2; do git push; done",
    "function f { git push; }; f",
    "f() { git push; }; f",
    "echo $(git push)",
    "echo `git push`",
    "cat <(git push)",
    "\\git push",
    "'git' \"push\"",
    "G=git; $G push",
    "eval 'git push'",
    "nice -n 5 git push",
    "timeout 5 git push",
    "sudo -u ana git push",
    "env -S 'git push'",
    "xargs git push",
    "find . -maxdepth 0 -exec git push ;",
    "find . -exec sh -c 'git push' ;",
    "/usr/lib/git-core/git-push",
    "bash <<'EOF'\ngit push\nEOF",
    f"true {'x' * 200_001}; git push",
]


@pytest.mark.parametrize("command", PUSHES, ids=lambda command: command[:40])
def test_a_deny_rule_is_about_every_program_that_is_run(tmp_path: Path, command: str) -> None:
    """Whatever runs it, and however it is spelled: rules are about what happens."""
    rules = rules_of(NO_PUSH)
    refusal = find_refusal(a_call(tmp_path, "Bash", command=command), rules, tmp_path)

    assert "no-push" == (refusal and refusal.rule)


@pytest.mark.parametrize(
    "command",
    [
        "git status",
        "git log --grep push",
        "git stash push",
        "echo git push",
        "sudo echo git push",
        "git commit -m 'git push later'",
        "grep -r 'git push' .",
        "./push.sh",
        "git pushx",
        "env | grep git",
    ],
)
def test_a_deny_rule_is_about_nothing_else(tmp_path: Path, command: str) -> None:
    """Words that only mention it run nothing."""
    rules = rules_of(NO_PUSH)

    assert None is find_refusal(a_call(tmp_path, "Bash", command=command), rules, tmp_path)


@pytest.mark.parametrize(
    ("command", "allowed"),
    [
        ("git status", True),
        ("git status && make test", True),
        ("timeout 5 make test", True),
        ("timeout 5 curl x", False),
        ("env make", False),
        ("timeout 5 env make", False),
        ("/usr/bin/make", False),
        ("bash -c 'make test'", True),
        ("bash -c 'curl x'", False),
        ("bash -c 'make; curl x'", False),
        ("timeout -k 5 9 make", True),
        ("timeout 5", False),
        ("timeout evil make", False),
        ("find . -name x", True),
        ("find . -exec make ;", True),
        ("find . -exec curl x ;", False),
        ("find . -exec make ; -exec curl x ;", False),
    ],
)
def test_what_is_allowed_runs_nothing_else(tmp_path: Path, command: str, *, allowed: bool) -> None:
    """A list of what is allowed has to allow each program that a command runs, by whatever other."""
    listed = '"Bash(git *)", "Bash(make *)", "Bash(timeout *)", "Bash(bash *)", "Bash(find *)"'
    rules = rules_of(f'[[rules]]\nname = "only"\non = "call"\ngate = "deny"\nexcept = [{listed}]\n')

    assert allowed == (find_refusal(a_call(tmp_path, "Bash", command=command), rules, tmp_path) is None)


@pytest.mark.parametrize("tool", ["Monitor", "PowerShell"])
def test_a_rule_about_bash_is_about_every_tool_that_runs_commands(tmp_path: Path, tool: str) -> None:
    """As one about Edit is about every tool that edits files."""
    only = '[[rules]]\nname = "only"\non = "call"\ngate = "deny"\nexcept = ["Bash(git *)"]\n'
    rules = rules_of(NO_PUSH + only)
    found = [
        find_refusal(a_call(tmp_path, tool, command=command), rules, tmp_path)
        for command in ("git push", "git status", "make")
    ]

    assert ["no-push", None, "only"] == [one and one.rule for one in found]


FORMER = """
[claude-code]
default = "deny"

[claude-code.main]  # the main conversation
allow = ["Read", "Bash(git *)"]
deny = ["Bash(git push *)"]

[claude-code.agents."A reader"]
allow = ["Read"]

# by whoever
[[rules]]
name = "no-docs"
on = "call"
gate = "deny"
target = "docs/**"

[tiers]
costly = "none"
"""


@pytest.mark.parametrize("text", [FORMER, upgraded(FORMER)], ids=["as it was", "upgraded"])
def test_the_former_table_means_what_it_did(project: Path, places: Protected, text: str) -> None:
    """It is read as rules, and written as rules it means the same."""
    calls: list[tuple[str, str | None, dict[str, str], str | None]] = [
        ("Read", None, {"file_path": "a"}, None),
        ("Write", None, {"file_path": "a"}, "claude-code.main.not-allowed"),
        ("Bash", None, {"command": "git push"}, "claude-code.main.denied"),
        ("Bash", None, {"command": "git diff"}, None),
        ("Read", "A reader", {"file_path": "a"}, None),
        ("Write", "A reader", {"file_path": "a"}, "claude-code.agents.1.not-allowed"),
        ("Read", "somebody", {"file_path": "a"}, "claude-code.default"),
    ]
    policy = rules_of(text)
    found = [rule_of(places, a_call(project, tool, by=by, **given), policy) for tool, by, given, _ in calls]

    assert [expected for *_, expected in calls] == found


def test_what_is_upgraded_is_the_same_policy() -> None:
    """Rule by rule; all else stays as it was written, comments and tables."""
    text = upgraded(FORMER)
    before, after = ([structs.replace(rule, line=None) for rule in rules_of(each).rules] for each in (FORMER, text))

    assert before == after
    assert "claude-code]" not in text
    assert "# by whoever\n" in text
    assert text.endswith('[tiers]\ncostly = "none"\n')


def test_the_former_table_is_about_claude_code_only() -> None:
    """An agent of the same name may work elsewhere, where its tools have other names."""
    facts = CallFacts(agent=as_agent("somebody"), tool="deploy")

    assert () == judge_call(facts, rules_of(FORMER))


def test_a_rule_that_lets_go_on_covers_all_that_a_command_does() -> None:
    """One program in it that is not named, and the next rule decides."""
    text = "".join(
        f'[[rules]]\nname = "{name}"\non = "call"\ngate = "{gate}"\ntool = "{tool}"\n'
        for name, gate, tool in (("git", "none", "Bash(git *)"), ("ask", "approve", "Bash"))
    )
    found = [
        find_refusal(a_call(Path("/shop"), tool, command=command), rules_of(text), Path("/shop"))
        for tool, command in (("Bash", "git diff"), ("Bash", "git diff | sh"), ("Monitor", "git diff"))
    ]

    assert [None, "ask", "ask"] == [one and one.rule for one in found]


def test_a_command_that_is_too_long_to_read_may_run_anything() -> None:
    """So a rule about one program refuses it."""
    event = a_call(Path("/shop"), "Bash", command="echo x " * 50_000)
    refusal = find_refusal(event, rules_of(NO_PUSH), Path("/shop"))

    assert "no-push" == (refusal and refusal.rule)


def test_a_refusal_names_what_the_rule_means() -> None:
    """The model reads it, and does not try the same in other words."""
    only = '[[rules]]\nname = "only"\non = "call"\ngate = "deny"\nexcept = ["Read", "Bash(git *)"]\n'
    event = a_call(Path("/shop"), "Bash", command="git push")
    found = [find_refusal(event, rules_of(text), Path("/shop")) for text in (NO_PUSH, only.replace("git", "make"))]

    assert [
        "claude-code calls Bash; rule no-push says deny to Bash(git push *)",
        "claude-code calls Bash; rule only says deny, except Read, Bash(make *)",
    ] == [one and one.sentence for one in found]


def test_rules_are_read_again_when_they_change(tmp_path: Path) -> None:
    """The person may change their mind; a mistake in the file is told with its place."""
    policy = DirectoryPolicy(tmp_path)
    event = a_call(tmp_path, "WebSearch", query="x")
    before = policy().policy
    rule = '[[rules]]\nname = "no-web"\non = "call"\ngate = "deny"\ntool = "WebSearch"\n'
    (tmp_path / "batonpass.toml").write_text(rule, encoding="utf-8")
    denied = find_refusal(event, policy().policy or Policy(), tmp_path)
    (tmp_path / "batonpass.toml").write_text(rule + 'forbid = "WebSearch"\n', encoding="utf-8")

    assert (None, "no-web") == (before, denied and denied.rule)
    for _ in range(2):
        with pytest.raises(PolicyFileError, match=r"rules\[1\]\.forbid: there is no such key"):
            policy()


def test_our_own_program_is_protected() -> None:
    """Wherever it is installed; and the process that records cannot be ended."""
    place = Path("/nowhere")
    process = RecorderProcess(os.getpid(), ("python",))
    ours = Protected.around(place / ".batonpass", "", place, program=program_files(), process=process)
    found = [
        touched(ours, a_call(place, "Edit", file_path=find_touched.__code__.co_filename), enforced=True),
        touched(ours, a_call(place, "Bash", command=f"kill {os.getpid()}"), enforced=True),
    ]

    assert None not in found


@pytest.mark.parametrize(
    ("tool", "given", "refused"),
    [
        ("Write", {"file_path": ".batonpass/ledger.db"}, True),
        ("Edit", {"file_path": "src/../.batonpass/root.key"}, True),
        ("Bash", {"command": "cd src && true; rm -rf .batonpass"}, True),
        ("Bash", {"command": "rm -rf ."}, True),
        ("Read", {"file_path": ".batonpass/ledger.db"}, False),
        ("Bash", {"command": "batonpass blame src/invoice.py:42"}, False),
        ("Bash", {"command": "ls .batonpass"}, False),
        ("Edit", {"file_path": ".claude/settings.json"}, False),
        ("Edit", {"file_path": "batonpass.toml"}, False),
        ("Bash", {"command": "rm -rf build"}, False),
        ("Read", {"file_path": ".batonpass/relay.key"}, True),
        ("Grep", {"pattern": "x", "path": ".batonpass"}, True),
        ("Grep", {"pattern": ".batonpass", "path": "."}, False),
        ("Grep", {"pattern": "x", "glob": ".batonpass/*.key"}, True),
        ("Write", {"file_path": "README.md", "content": ".batonpass/relay.key"}, False),
        ("MultiEdit", {"file_path": "a", "edits": [{"old_string": ".batonpass/x", "new_string": ""}]}, False),
        ("Bash", {"command": "cat .batonpass/relay.key"}, True),
        ("Bash", {"command": "cat .batonpass/*"}, True),
        ("Bash", {"command": "cp -r .batonpass /tmp/x"}, True),
        ("Bash", {"command": "sqlite3 .batonpass/ledger.db .dump"}, False),
        ("Bash", {"command": "cp .batonpass/ledger.db /tmp/x"}, False),
        ("Bash", {"command": "cp x .batonpass/ledger.db"}, True),
        ("Bash", {"command": "echo x > .batonpass/ledger.db"}, True),
        ("Bash", {"command": "git clean -fdx"}, True),
        ("Bash", {"command": "git config core.hooksPath x"}, False),
        ("mcp__files__write", {"path": ".batonpass/x", "content": "y"}, True),
    ],
)
def test_observed_only_the_record_is_kept_from_harm(
    project: Path, tool: str, given: dict[str, str], *, refused: bool
) -> None:
    """Without rules, a call is refused if it would change or remove the ledger, and for nothing else."""
    places = Protected.around(project / ".batonpass", "", project, program=program_files())

    assert refused == (touched(places, a_call(project, tool, **given), enforced=False) is not None)
