"""Commands of a run: granted by their program, bounded, recorded, with every file that they changed."""

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from batonpass.accounts.dry_run import dry_run
from batonpass.accounts.handoff.account import read_account
from batonpass.aio import AsyncRelay
from batonpass.credentials import FromEnvironment
from batonpass.errors import (
    CallDeniedError,
    CallProtectedError,
    CommandTimeoutError,
    GrantDeniedError,
    InvalidValueError,
    OutsideGrantError,
)
from batonpass.handoff.live.faces import LiveRun
from batonpass.model.base.kinds import Gate
from batonpass.model.bodies.body import Kind
from batonpass.model.policy.policy_rules import Policy, Rule, Subject
from batonpass.relay import Relay
from tests.unit.handoff.places import ANA, bodies, receipts, words
from tests.unit.handoff.repositories import repository


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a repository in which the test works."""
    made = repository(tmp_path / "work")
    monkeypatch.chdir(made)
    return made


@pytest.fixture
def relay(place: Path) -> Iterator[Relay]:
    """Return a relay that works there; all that was recorded is verified."""
    with Relay.open("memory:", work_tree=place) as opened:
        yield opened
        opened.verify()


@pytest.fixture
def lead(relay: Relay) -> LiveRun:
    """Return a root that nothing holds."""
    return relay.start("Fix it", by=ANA)


NO_PUSH = Rule(name="no-push", on=Subject.CALL, gate=Gate.DENY, tool="shell(git push *)")
GIT_ONLY = Rule(name="git-only", on=Subject.CALL, gate=Gate.DENY, unless=("shell(git *)",))


@pytest.mark.parametrize(
    ("command", "rule"),
    [
        (["git", "status"], None),
        (["git", "push", "--dry-run"], "no-push"),
        (["env", "git", "-C", ".", "push", "--dry-run"], "no-push"),
        (["sh", "-c", "true; git push --dry-run"], "no-push"),
        (["true"], "git-only"),
    ],
)
def test_a_rule_names_a_command_in_brackets(place: Path, command: list[str], rule: str | None) -> None:
    """Whichever program runs it; what a rule excepts has to cover every program. A dry run says the same afterwards."""
    rules = (NO_PUSH, GIT_ONLY)
    with Relay.open("memory:", work_tree=place, policy=Policy(rules=rules)) as observed:
        observed.start("Fix it", by=ANA).shell(command)
        (call,) = bodies(observed, Kind.TOOL_REQUESTED)
        with observed.store.view() as view:
            counts = dry_run(view, Policy(rules=rules), 9).counts
    with Relay.open("memory:", work_tree=place, policy=Policy(enforce=True, rules=rules)) as enforced:
        run = enforced.start("Fix it", by=ANA)
        denied = nullcontext() if rule is None else pytest.raises(CallDeniedError, match=f"rule {rule} says deny")
        with denied:
            run.shell(command)

    refused = [] if rule is None else [rule]
    assert [f"would_deny.{name}" for name in refused] == [flag for flag in call.flags if "would_deny" in flag]
    assert refused == [name for name, count in counts.items() if count.denied]


def changed(relay: Relay, kind: Kind = Kind.TOOL_COMPLETED) -> list[list[str]]:
    """Return the paths that calls changed, by call."""
    with relay.store.view() as view:
        touches = {touched.content: touched.path for touched in view.find_touches()}
    return [sorted(touches[one.change] for one in body.changes) for body in bodies(relay, kind)]


def state_of(pid: int) -> str:
    """Return the state of a process as the system tells it; nothing if there is none, Z if it is only not buried."""
    shown = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], check=False, capture_output=True, text=True)
    return shown.stdout.strip()[:1]


def wait_for(holds: Callable[[], bool]) -> bool:
    """Return whether something comes true before anybody would have given up."""
    patience = threading.Event()
    return any(holds() or patience.wait(0.02) for _ in range(500))


class TestRunning:
    """What a command is given, and what comes back."""

    def test_a_command_is_a_call(self, relay: Relay, lead: LiveRun) -> None:
        """How it ended and what it wrote come back, and stand on receipts: the line in words, the code as a number."""
        done = lead.shell(["sh", "-c", "cat; echo bad >&2; exit 3"], stdin="given")
        (asked,), (ended,) = receipts(relay, Kind.TOOL_REQUESTED), bodies(relay, Kind.TOOL_COMPLETED)

        assert (3, False, "given", "bad\n", 5, 4, True) == (
            done.exit_code,
            done.ok,
            done.stdout,
            done.stderr,
            done.stdout_bytes,
            done.stderr_bytes,
            done.whole,
        )
        assert ("sh -c 'cat; echo bad >&2; exit 3'", 3) == (words(relay, asked, "target"), ended.exit_code)
        assert ended.took_us > 0

    def test_every_file_that_it_changed_is_on_its_receipt(self, relay: Relay, lead: LiveRun, place: Path) -> None:
        """Also one that it made or removed, and none that git ignores or that our own home has."""
        (place / ".batonpass").mkdir()
        script = "echo two >> src/a.py; echo new > src/b.py; rm README.md; echo x > y.log"
        script += '; echo x > "$(printf .baton)pass/z"'  # no text tells this, so nothing refuses it
        lead.shell(["sh", "-c", script])

        assert [["README.md", "src/a.py", "src/b.py"]] == changed(relay)

    def test_a_command_that_fails_in_between_tells_what_it_did(self, relay: Relay, lead: LiveRun) -> None:
        """Its time runs out: everything that it started is ended, and what it had changed is recorded."""
        with pytest.raises(CommandTimeoutError, match=r"sh did not end within 0\.4 seconds.*last words: began") as late:
            lead.shell(["sh", "-c", "echo two > src/a.py; echo began; sleep 60 & wait"], timeout=timedelta(seconds=0.4))
        (failed,) = bodies(relay, Kind.TOOL_FAILED)

        assert ("call.timeout", 137, 137) == (failed.error, failed.exit_code, late.value.exit_code)
        assert [["src/a.py"]] == changed(relay, Kind.TOOL_FAILED)

    def test_nothing_that_it_started_goes_on(self, lead: LiveRun, place: Path) -> None:
        """A background process is ended with the command: it changes nothing that nobody would record."""
        lead.shell(["sh", "-c", "sleep 60 & echo $! > y.log"])
        pid = int((place / "y.log").read_text(encoding="utf-8"))

        assert wait_for(lambda: state_of(pid) in {"", "Z"})

    def test_what_is_left_out_is_counted(self, lead: LiveRun) -> None:
        """Of much output the beginning and the end are kept, with how much is missing; the digest is of all."""
        done = lead.shell([sys.executable, "-c", "print('a' * 50 + 'b' * 5000 + 'c' * 49)"], kept=100)

        assert (5100, False) == (done.stdout_bytes, done.whole)
        assert "a" * 50 + "\n[5,000 bytes left out]\n" + "c" * 49 + "\n" == done.stdout

    def test_secrets_of_ours_are_not_inherited(
        self, relay: Relay, lead: LiveRun, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Only plain variables, those that are named and those that are given; a credential comes from its provider."""
        monkeypatch.setenv("DEPLOY_TOKEN", "s3cret-of-ours")
        monkeypatch.setenv("BUILD", "7")
        monkeypatch.setenv("VAULT", "from-the-provider")
        relay.credential("ci", FromEnvironment("VAULT", identity="ci@example.org"))
        show = ["sh", "-c", 'test "$CI" = from-the-provider && echo "[$DEPLOY_TOKEN][$BUILD][$GIVEN]"']
        done = lead.shell(show, inherit=["BUILD"], env={"GIVEN": "x"}, credential=("ci", "CI"))

        assert "[][7][x]\n" == done.stdout
        with pytest.raises(InvalidValueError, match="NOT_THERE is not in the environment"):
            lead.shell(["true"], inherit=["NOT_THERE"])

    def test_what_is_said_of_a_command_counts(self, relay: Relay, lead: LiveRun) -> None:
        """One that only reads is not looked at, and words from outside taint as those of any tool."""
        lead.shell(["true"], reads=True, external=True)
        lead.shell(["true"], idempotent=True)

        assert [(True, False), (False, True)] == [
            (body.reads, body.idempotent) for body in bodies(relay, Kind.TOOL_REQUESTED)
        ]
        assert 1 == len(lead.taint)

    @pytest.mark.parametrize("command", ["rm -rf /", [], [7]], ids=["one text", "nothing", "no texts"])
    def test_a_command_is_a_list(self, lead: LiveRun, command: Any) -> None:  # noqa: ANN401 - what is no command
        """No shell takes a text apart, and nothing else can be run."""
        with pytest.raises(InvalidValueError, match="command"):
            lead.shell(command)

    def test_the_next_attempt_gets_the_same_answer(self, relay: Relay, lead: LiveRun, place: Path) -> None:
        """What a command did is not done again when its handoff is tried once more."""
        handoff = lead.hand_off("editor", "Edit")
        one = handoff.accept()
        first = one.shell(["sh", "-c", "echo two >> src/a.py; echo done"])
        one.fail(ConnectionError("the model is gone"))
        handoff.retry(by=ANA)

        assert first == handoff.accept().shell(["sh", "-c", "echo two >> src/a.py; echo done"])
        assert "one\ntwo\n" == (place / "src" / "a.py").read_text(encoding="utf-8")
        assert 1 == len(receipts(relay, Kind.TOOL_COMPLETED))


class TestGranting:
    """A grant names programs, and what they may be given; what they may change is what the run may write."""

    def test_more_files_than_a_receipt_holds_are_said_to_be_cut(self, relay: Relay, place: Path) -> None:
        """A thousand are listed; that there were more is a flag."""
        assert place.is_dir()
        lead = relay.start("Fix it", by=ANA)
        lead.shell([sys.executable, "-c", "for n in range(1010): open(f'f{n}', 'w').write('x')"])
        (done,) = bodies(relay, Kind.TOOL_COMPLETED)

        assert (1000, True) == (len(done.changes), "changes.cut" in done.flags)

    def test_programs_are_granted_by_name(self, relay: Relay, place: Path) -> None:
        """Another program, other arguments and a file of the same name are other things."""
        (place / "src" / "git").write_text("#!/bin/sh\n", encoding="utf-8")
        lead = relay.start("Fix it", by=ANA, may=['run:git where arguments in ["status", "--short"]'])
        lead.shell(["git", "status", "--short"])
        for refused in (["sh", "-c", "true"], ["git", "push"], ["src/git", "status"], ["/usr/bin/git", "status"]):
            with pytest.raises(GrantDeniedError, match="lead may run:git"):
                lead.shell(refused)

        assert 1 == len(receipts(relay, Kind.TOOL_REQUESTED))
        (asked,) = receipts(relay, Kind.TOOL_REQUESTED)
        assert 'lead may run:git where arguments in ["--short", "status"]' == words(relay, asked, "permit")

    def test_a_script_of_the_work_tree_is_granted_as_what_it_is(self, relay: Relay, place: Path) -> None:
        """Wherever it is called from, and by whatever way."""
        script = place / "src" / "build.sh"
        script.write_text("#!/bin/sh\necho built\n", encoding="utf-8")
        script.chmod(0o755)
        lead = relay.start("Fix it", by=ANA, may=["run:src/build.sh"])

        assert ["built\n"] * 2 == [
            lead.shell(["./src/build.sh"]).stdout,
            lead.shell(["../src/build.sh"], cwd="src").stdout,
        ]

    def test_a_file_is_not_the_program_of_that_name(self, relay: Relay, place: Path) -> None:
        """What somebody wrote at the top of the work tree is named from the root on, and has to be granted so."""
        forged = place / "true"
        forged.write_text("#!/bin/sh\necho forged\n", encoding="utf-8")
        forged.chmod(0o755)
        lead = relay.start("Fix it", by=ANA, may=["run:true"])
        with pytest.raises(GrantDeniedError, match=f"tried run:{re.escape(str(forged))}"):
            lead.shell(["./true"])

        assert "" == lead.shell(["true"]).stdout

    def test_where_it_runs_can_be_granted(self, relay: Relay, place: Path) -> None:
        """As the work tree names it, whatever way leads there."""
        lead = relay.start("Fix it", by=ANA, may=["run:pwd where cwd under src"])

        assert f"{place}/src\n" == lead.shell(["pwd"], cwd=place / "src" / ".." / "src").stdout
        for outside in (None, "..", place.parent, "src/.."):
            with pytest.raises(GrantDeniedError):
                lead.shell(["pwd"], cwd=outside)

    def test_whoever_gives_another_path_gets_the_same_program(self, relay: Relay, place: Path) -> None:
        """The program that was granted is found where we find it."""
        fake = place / "src" / "git"
        fake.write_text("#!/bin/sh\necho fake\n", encoding="utf-8")
        fake.chmod(0o755)
        lead = relay.start("Fix it", by=ANA, may=["run:git"], mode="observed")

        assert "git version" in lead.shell(["git", "--version"], env={"PATH": str(place / "src")}).stdout

    def test_what_it_changed_outside_of_the_grant_is_told(self, relay: Relay) -> None:
        """It is done: its receipt and the close say so, and whoever ran it is told which file."""
        lead = relay.start("Fix it", by=ANA, may=["run:sh", "write:src/**"])
        lead.shell(["sh", "-c", "echo two > src/a.py"])
        with pytest.raises(OutsideGrantError, match=r"changed top\.txt, which lead may not write") as outside:
            lead.shell(["sh", "-c", "echo x > top.txt; echo x > src/b.py"])
        lead.close()

        assert ("top.txt",) == outside.value.paths
        assert [(), ("effect.outside-grant",)] == [body.flags for body in bodies(relay, Kind.TOOL_COMPLETED)]
        assert ("effect.outside-grant",) == bodies(relay, Kind.RUN_CLOSED)[0].flags

    @pytest.mark.parametrize("resumed", [False, True])
    def test_what_it_wrote_counts_as_used(self, relay: Relay, *, resumed: bool) -> None:
        """Whoever took away the permit that no call names would break the command; also if another process closes."""
        lead = relay.start("Fix it", by=ANA, may=["run:sh", "write:src/**", "write:docs/**"])
        lead.shell(["sh", "-c", "echo two > src/a.py"])
        (relay.resume() if resumed else lead).close()
        (closed,) = receipts(relay, Kind.RUN_CLOSED)
        use = json.loads(words(relay, closed, "use"))

        used = {one["permit"]: one["calls"] for one in use["may"]}
        assert {"run:sh": 1, "write:docs/**": 0, "write:src/**": 1} == used
        assert ["run:sh", "write:src/a.py"] == [one["permit"] for one in use["least"]]

    def test_a_denied_command_is_told_as_it_was_typed(self, relay: Relay) -> None:
        """Not as all that a command can be given besides."""
        lead = relay.start("Fix it", by=ANA, may=["run:git"])
        with pytest.raises(GrantDeniedError):
            lead.shell(["rm", "-rf", "a b"])
        (denied,) = receipts(relay, Kind.TOOL_DENIED)

        assert "rm -rf 'a b'" == words(relay, denied, "target")

    def test_a_grant_that_is_tried_out_only_tells(self, relay: Relay) -> None:
        """Nothing is raised in a run that is observed under a grant; its receipts say what would have been."""
        lead = relay.start("Fix it", by=ANA, may=["run:sh"], mode="observed")
        lead.shell(["sh", "-c", "echo x > top.txt"])
        lead.close()

        assert [("effect.outside-grant",)] * 2 == [
            bodies(relay, kind)[0].flags for kind in (Kind.TOOL_COMPLETED, Kind.RUN_CLOSED)
        ]

    def test_no_command_is_given_the_record(self, tmp_path: Path, place: Path) -> None:
        """An enforced run does not get to name the ledger or its keys."""
        with Relay.open(f"sqlite:///{tmp_path}/ledger.db", home=tmp_path / "home", work_tree=place) as relay:
            lead = relay.start("Fix it", by=ANA, may=["run:*"])
            with pytest.raises(CallProtectedError):
                lead.shell(["cat", f"{tmp_path}/ledger.db"])


class TestEndings:
    """Interrupted, killed and cancelled commands."""

    @pytest.mark.slow
    def test_a_killed_parent_leaves_doubt(self, tmp_path: Path) -> None:
        """The request was durable before the command began; nobody knows what became of it."""
        program = f"""
            from batonpass import Relay
            with Relay.open("sqlite:///{tmp_path}/ledger.db") as relay:
                with relay.start("Fix it", by="user:ana").hand_off("editor", "Edit") as editor:
                    editor.shell(["sh", "-c", "echo $PPID; touch begun; sleep 2"])
        """
        child = subprocess.Popen([sys.executable, "-c", textwrap.dedent(program)], cwd=tmp_path)
        while not (tmp_path / "begun").exists():
            assert child.poll() is None
        os.kill(child.pid, signal.SIGKILL)
        child.wait()

        with Relay.open(f"sqlite:///{tmp_path}/ledger.db") as relay:
            with relay.store.view() as view:
                (handoff,) = view.find_handoffs()
            relay.handoff(handoff.id).cancel(by=ANA, reason="its process is gone")
            with relay.store.view() as view:
                account = read_account(view, view.get_handoff(handoff.id))

            assert ["shell"] == [call.record.tool for call in account.doubts]

    def test_a_cancelled_command_is_ended_and_in_doubt(self, place: Path) -> None:
        """Asynchronously: whoever is cancelled does not wait for it, and it does not go on."""

        async def main() -> tuple[int, int, str]:
            async with AsyncRelay.open("memory:", work_tree=place) as relay:
                run = await relay.start("Fix it", by=ANA)
                said = (await run.shell(["echo", "hello"])).stdout
                task = asyncio.create_task(run.shell(["sh", "-c", "touch begun.log; sleep 60"]))
                await asyncio.to_thread(wait_for, (place / "begun.log").exists)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
                sync = relay.sync
                return len(receipts(sync, Kind.TOOL_REQUESTED)), len(receipts(sync, Kind.TOOL_COMPLETED)), said

        assert (2, 1, "hello\n") == asyncio.run(main())


def certainties(relay: Relay) -> dict[str, str]:
    """Return for each file that changed how certain it is that the call did it, as the receipts keep it."""
    documents = [
        json.loads(words(relay, receipt, name))
        for receipt in receipts(relay, Kind.TOOL_COMPLETED)
        for name in receipt.content
        if name.startswith("change.")
    ]
    return {one["path"]: one.get("certainty", "certain") for one in documents}


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        pytest.param(["sed", "-i", "s/a/b/", "a.txt"], {"a.txt": "certain"}, id="it is told the file"),
        pytest.param(
            ["sh", "-c", "echo x > a.txt; ./gen"], {"a.txt": "certain", "c.txt": "candidate"}, id="one of two"
        ),
        pytest.param(["./gen", "c.txt"], {"c.txt": "candidate"}, id="it names the file"),
        pytest.param(["./gen"], {"c.txt": "candidate"}, id="it does not"),
        pytest.param(["git", "checkout", "-q", "--", "."], {"a.txt": "brought"}, id="git brings it"),
    ],
)
def test_a_command_wrote_what_it_writes_by_name(
    relay: Relay, lead: LiveRun, place: Path, command: list[str], expected: dict[str, str]
) -> None:
    """As under the hooks of Claude Code: of whatever else changes while it runs it is a candidate."""
    (place / "a.txt").write_text("a\n", encoding="utf-8")
    gen = place / "gen"
    gen.write_text("#!/bin/sh\necho y > c.txt\n", encoding="utf-8")
    gen.chmod(0o755)
    for given in (["add", "--all"], ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "--message=x"]):
        subprocess.run(["git", *given], cwd=place, check=True)
    if command[0] == "git":
        (place / "a.txt").write_text("by hand\n", encoding="utf-8")

    lead.shell(command)

    assert expected == certainties(relay)


def test_a_person_who_saves_during_a_command_is_no_command(relay: Relay, lead: LiveRun, place: Path) -> None:
    """A function of ours stands for the person: it is called while the command waits for it."""
    pipe = place.parent / "pipe"
    os.mkfifo(pipe)

    def save() -> None:
        with pipe.open("w", encoding="utf-8") as waiting:
            (place / "notes.txt").write_text("by hand\n", encoding="utf-8")
            waiting.write("go\n")

    person = threading.Thread(target=save)
    person.start()
    lead.shell(["cat", str(pipe)])
    person.join()

    assert {"notes.txt": "candidate"} == certainties(relay)
