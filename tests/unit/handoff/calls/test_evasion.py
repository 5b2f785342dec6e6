"""Ways around a grant that were tried once: each is refused, and what was tried is on record."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from batonpass.errors import (
    CallProtectedError,
    ConstraintViolatedError,
    GrantDeniedError,
    GrantRevokedError,
    GuardFailedError,
)
from batonpass.guard.policy.gates import GateDecision
from batonpass.handoff.calls.begin import begin_call
from batonpass.handoff.live.faces import LiveRun
from batonpass.handoff.tools.declaration import declared_of, tool
from batonpass.handoff.tools.tool_call import ToolCall
from batonpass.model.baton.items import Constraint
from batonpass.model.bodies.body import Kind
from batonpass.relay import Relay
from tests.unit.handoff.places import ANA, Disk, Places, bodies, denials, fail, receipts

TOKEN: Final = "ghp_" + "a1B2" * 10


class Unreadable(Mapping[str, object]):
    """An argument that cannot be looked at."""

    def __getitem__(self, _: str) -> object:
        raise RuntimeError("not for you")

    def __iter__(self) -> Iterator[str]:
        raise RuntimeError("not for you")

    def __len__(self) -> int:
        return 1


class Unruly(ToolCall[Any]):
    """A call of a door whose own rules fail."""

    def find_refusals(self) -> Iterable[GateDecision]:
        """Fail."""
        raise ZeroDivisionError("oops")


class PathInBytes:
    """A path as some listings of directories give it."""

    def __fspath__(self) -> bytes:
        return b"/etc/passwd"


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a work tree with a link that leads out of it; this process stands in it."""
    tree = tmp_path / "tree"
    (tree / "src").mkdir(parents=True)
    (tree / "elsewhere").mkdir()
    (tree / "src" / "link").symlink_to(tmp_path)
    monkeypatch.chdir(tree)
    monkeypatch.setenv("HOME", str(tree))
    return tree


@pytest.fixture
def relay(places: Places, tree: Path) -> Relay:
    """Return a relay whose grants are about that work tree."""
    return Relay(places.relay().store, home=tree / ".batonpass", work_tree=tree)


@pytest.fixture
def disk() -> Disk:
    """Return a world in which nothing has happened."""
    return Disk()


class TestTargets:
    """What a call acts on is a name, and nothing that merely has a spelling."""

    @pytest.mark.parametrize(
        "path",
        [b"/etc/passwd", ["/etc/passwd"], {"name": "/etc/passwd"}, PathInBytes(), 3, True],
        ids=["bytes", "a list", "an object", "a path in bytes", "an open file", "a truth"],
    )
    def test_what_is_no_text_lies_in_no_work_tree(self, relay: Relay, path: Any) -> None:  # noqa: ANN401 - that is it
        """Spelled out it would look like a file in here with a strange name."""
        made: list[Any] = []
        write = tool("write", target="path")(lambda path: made.extend([path]))
        lead = relay.start("Fix it", by=ANA, may=["write:**"])
        with pytest.raises(GrantDeniedError):
            lead.call(write, path)

        assert ([], ["target"]) == (made, [rule for rule, _ in denials(relay)])

    def test_an_action_of_its_own_may_be_done_to_a_number(self, relay: Relay) -> None:
        """The number of an order is a name."""
        paid: list[int] = []
        pay = tool("pay", target="order", action="pay")(lambda order: paid.extend([order]))
        relay.start("Pay", by=ANA, may=["pay:7"]).call(pay, 7)

        assert [7] == paid

    def test_the_record_is_out_of_reach_in_lists_and_in_bytes(self, tree: Path) -> None:
        """Watched or enforced, whatever the target is made of."""
        with Relay.open(f"sqlite:///{tree}/.batonpass/ledger.db", work_tree=tree) as relay:
            write = tool("write", target="path")(lambda path: path)
            note = tool("note")(lambda text: text)
            with pytest.raises(CallProtectedError):
                relay.start("Look", by=ANA).call(write, [".batonpass/ledger.db"])
            with pytest.raises(CallProtectedError):
                relay.start("Fix it", by=ANA, may=["call:note"]).call(note, b".batonpass/relay.key")

            assert ["protected", "protected"] == [rule for rule, _ in denials(relay)]


class TestProtected:
    """What is protected is reached neither by a command nor by a parent, and content is only content."""

    @pytest.fixture
    def run(self, tree: Path) -> Iterator[LiveRun]:
        """Return a run that may do everything, on a ledger in the tree."""
        with Relay.open(f"sqlite:///{tree}/.batonpass/ledger.db", work_tree=tree) as relay:
            yield relay.start("Fix it", by=ANA, may=["run:**", "call:**", "write:**", "read:**"])

    @pytest.fixture
    def watched(self, tree: Path) -> Iterator[LiveRun]:
        """Return a run that nothing holds, on a ledger in the tree."""
        with Relay.open(f"sqlite:///{tree}/.batonpass/ledger.db", work_tree=tree) as relay:
            yield relay.start("Look", by=ANA)

    @pytest.mark.parametrize("mode", ["run", "watched"])
    @pytest.mark.parametrize(
        ("command", "cwd"),
        [
            (["cat", "../.batonpass/relay.key"], "src"),
            (["cat", "relay.key"], ".batonpass"),
            (["cat", "/proc/self/cwd/../.batonpass/relay.key"], "src"),
            (["sh", "-c", "cat ../.batonpass/relay.key"], "src"),
            (["sh", "-c", "cd .. && cat .batonpass/*.key"], "src"),
            (["git", "-C", "..", "hash-object", ".batonpass/relay.key"], "src"),
            (["env", "X=1", "rm", "-rf", ".."], "src"),
            (["rm", "-rf", "."], None),
            (["python3", "-c", "print(open('.batonpass/relay.key').read())"], None),
        ],
        ids=lambda value: value if value is None or isinstance(value, str) else " ".join(value),
    )
    def test_a_command_reaches_no_key_from_wherever_it_runs(
        self, request: pytest.FixtureRequest, mode: str, command: list[str], cwd: str | None
    ) -> None:
        """Its words begin where it runs, and not where this process stands."""
        lead: LiveRun = request.getfixturevalue(mode)
        with pytest.raises(CallProtectedError):
            lead.shell(command, cwd=cwd)

        assert (Path.cwd() / ".batonpass" / "relay.key").exists()

    @pytest.mark.parametrize(
        ("command", "stdin"),
        [
            (["find", ".", "-name", "*.key", "-exec", "cat", "{}", ";"], None),
            (["find", "..", "-type", "f", "-exec", "cat", "{}", "+"], None),
            (["sh", "-c", "cat $0$1", ".batonpass/", "relay.key"], None),
            (["sh", "-c", "cat $0$1", ".baton", "pass/relay.key"], None),
            (["sh", "-c", "cat ${X:-.batonpass}/relay.key"], None),
            (["wc", "--files0-from=-"], "README\0.batonpass/relay.key\0"),
            (["sort", "--files0-from=-"], ".batonpass/relay.key"),
            (["git", "hash-object", "--stdin-paths"], "src/a\n.batonpass/relay.key\n"),
            (["tar", "-T", "-", "-cf", "x.tar"], ".batonpass/relay.key\n"),
            (["tar", "cf", "x.tar", "."], None),
            (["cp", "-r", ".", "../copy"], None),
        ],
        ids=lambda value: None if value is None or isinstance(value, str) else " ".join(value),
    )
    def test_an_enforced_command_takes_no_key_along_with_what_lies_around_it(
        self, run: LiveRun, command: list[str], stdin: str | None
    ) -> None:
        """By the name of a directory, by names that it is fed, or by pieces that a shell puts together."""
        with pytest.raises(CallProtectedError):
            run.shell(command, stdin=stdin)

    @pytest.mark.parametrize(
        ("command", "stdin"),
        [
            (["find", ".", "-name", "*.py", "-exec", "cat", "{}", ";"], None),
            (["find", ".", "-not", "-path", "./.batonpass/*", "-type", "f", "-exec", "cat", "{}", "+"], None),
            (["grep", "-rc", "nothing", "src"], None),
            (["wc", "--files0-from=-"], "src/a.py"),
            (["wc", "-c"], ".batonpass/relay.key"),
            (["tar", "cf", "x.tar", "--exclude=.batonpass", "."], None),
        ],
        ids=lambda value: None if value is None or isinstance(value, str) else " ".join(value),
    )
    def test_what_leaves_it_out_is_run(self, run: LiveRun, tree: Path, command: list[str], stdin: str | None) -> None:
        """A guard that is in the way is switched off."""
        (tree / "src" / "link").unlink()
        (tree / "src" / "a.py").write_text("nothing\n", encoding="utf-8")

        assert run.shell(command, stdin=stdin).ok

    def test_a_watched_command_removes_no_key_that_it_only_finds(self, watched: LiveRun, tree: Path) -> None:
        """To read what lies around the record is nobody's business there; to remove some of it is."""
        with pytest.raises(CallProtectedError, match="leave it out"):
            watched.shell(["find", ".", "-name", "*.key", "-delete"])

        assert (tree / ".batonpass" / "relay.key").exists()
        assert watched.shell(["tar", "cf", "x.tar", "."]).exit_code in {0, 1}

    def test_a_shell_is_not_fed_what_it_may_not_be_told(self, run: LiveRun) -> None:
        """What stands on its stdin is a program; to others it is text."""
        with pytest.raises(CallProtectedError):
            run.shell(["sh"], stdin="cat .batonpass/relay.key")

        assert ".batonpass\n" == run.shell(["cat"], stdin=".batonpass\n").stdout

    def test_a_tool_that_says_where_it_works_is_judged_from_there(self, run: LiveRun) -> None:
        """As servers that run commands do."""
        told = tool("sh")(lambda command, cwd: (command, cwd))
        with pytest.raises(CallProtectedError):
            run.call(told, "cat ../.batonpass/relay.key", cwd="src")

        assert ("cat ../a", "src") == run.call(told, "cat ../a", cwd="src")

    def test_content_says_what_it_likes(self, run: LiveRun) -> None:
        """A tool declares which of its arguments are texts to be written; a name for them that all use is known."""
        put = tool("put", target="path", content=("text",))(lambda path, text: (path, text))
        other = tool("other", target="path")(lambda path, content: (path, content))

        assert (".gitignore", ".batonpass/") == run.call(put, ".gitignore", ".batonpass/")
        assert (".gitignore", ".batonpass/\n") == run.call(other, ".gitignore", ".batonpass/\n")
        with pytest.raises(CallProtectedError):
            run.call(put, ".batonpass/x", "y")

    def test_content_is_no_way_to_hide_a_target(self, run: LiveRun) -> None:
        """What a call acts on is looked at, whatever it is called."""
        put = tool("put", target="content", content=("content",))(lambda content: content)
        with pytest.raises(CallProtectedError):
            run.call(put, ".batonpass/x")

    def test_who_searches_a_tree_touches_nothing_in_it(self, run: LiveRun) -> None:
        """It is named by many calls, and moved or removed by few."""
        search = tool("search")(lambda where, pattern: (where, pattern))
        run.call(search, ".", "*")
        run.call(search, str(Path.cwd()), "**/*.py")
        for pattern in (".batonpass/**", "**/.batonpass/*", ".baton*/*"):
            with pytest.raises(CallProtectedError):
                run.call(search, ".", pattern)

    @pytest.mark.parametrize(
        "target",
        ["https://a.example", "https://a.example/", "crm://account/", "host:/", "note:.", "a=1,/", "ana@x.org"],
    )
    def test_what_is_no_file_is_not_taken_for_the_root(self, watched: LiveRun, target: str) -> None:
        """A target that holds everything would be refused."""
        send = tool("send", target="to", action="send")(lambda to: to)

        assert target == watched.call(send, target)

    @pytest.mark.parametrize("target", ["/", "file:///", ".", "..", "~", "src/.."])
    def test_who_changes_a_directory_around_the_record_changes_the_record(self, watched: LiveRun, target: str) -> None:
        """Nothing is known of the tool but that it acts on all of it."""
        move = tool("move", target="what")(lambda what: what)
        with pytest.raises(CallProtectedError):
            watched.call(move, target)

    def test_more_than_can_be_looked_at_is_refused_where_it_is_enforced(self, run: LiveRun, watched: LiveRun) -> None:
        """A path among a great many is not hidden by them."""
        take = tool("take")(lambda rows: sum(map(bool, rows)))
        many = [f"row {number}" for number in range(10_001)]
        with pytest.raises(CallProtectedError, match="smaller calls"):
            run.call(take, many)

        assert (10_001, 9_000) == (watched.call(take, many), run.call(take, many[:9_000]))

    def test_an_agent_runs_no_batonpass(self, run: LiveRun) -> None:
        """It is the user's, and keeps the record."""
        for command in (["batonpass", "doctor"], ["sh", "-c", "batonpass doctor"], ["python3", "-m", "batonpass"]):
            with pytest.raises(CallProtectedError, match="run or change `batonpass`"):
                run.shell(command)


class TestPlaces:
    """An argument that has to lie under a place is judged by where it leads, whichever argument it is."""

    @pytest.mark.parametrize(
        ("permit", "value"),
        [
            ("call:copy where to under src", "src/link/secret"),
            ("call:copy where to under src", ["src/a", "src/link/secret"]),
            ("call:copy where to.path under src", {"path": "src/link/secret"}),
        ],
        ids=["of a tool without a target", "in a list", "in an object"],
    )
    def test_a_link_is_followed_in_every_argument(self, relay: Relay, permit: str, value: Any) -> None:  # noqa: ANN401
        """Not only in what the call acts on."""
        made: list[Any] = []
        copy = tool("copy")(lambda to: made.extend([to]))
        lead = relay.start("Fix it", by=ANA, may=[permit])
        with pytest.raises(GrantDeniedError):
            lead.call(copy, value)
        inside = {"path": "src/a"} if isinstance(value, dict) else "src/a"
        lead.call(copy, inside)

        assert [inside] == made

    def test_a_command_is_judged_from_where_it_runs(self, relay: Relay) -> None:
        """The same words mean other files in another directory."""
        lead = relay.start("Fix it", by=ANA, may=["run:echo where arguments under src"])
        with pytest.raises(GrantDeniedError, match="elsewhere/src/a"):
            lead.shell(["echo", "src/a"], cwd="elsewhere")

        assert "a\n" == lead.shell(["echo", "a"], cwd="src").stdout


class TestJudging:
    """What cannot be judged is not done."""

    def test_arguments_that_cannot_be_looked_at_stop_the_call(self, relay: Relay, disk: Disk) -> None:
        """The guard is not even asked, and that is on record as its failure."""
        lead = relay.start("Fix it", by=ANA, may=["write:**"])
        with pytest.raises(GuardFailedError, match="RuntimeError"):
            lead.call(disk.write, "a", Unreadable())

        assert ([], ["guard"]) == (disk.written, [rule for rule, _ in denials(relay)])

    def test_rules_that_fail_stop_only_what_is_enforced(self, relay: Relay, disk: Disk) -> None:
        """Nobody knows whether they would have held it, so it is not let go on; observed, that is a flag."""
        call = Unruly(declared_of(disk.write), disk.write, ("a", ""))
        enforced, observed = relay.start("Fix it", by=ANA, may=["write:**"]), relay.start("Look", by=ANA)
        with pytest.raises(GuardFailedError, match="ZeroDivisionError"):
            begin_call(enforced._desk, enforced._holding, call)
        begin_call(observed._desk, observed._holding, call)

        assert ["guard"] == [rule for rule, _ in denials(relay)]
        assert [("would_deny.guard",)] == [body.flags for body in bodies(relay, Kind.TOOL_REQUESTED)]

    def test_a_constraint_that_cannot_be_compared_stops_the_call(self, relay: Relay) -> None:
        """A number that does not want to be compared is no way around it."""

        class Stubborn(int):
            def __le__(self, _: object) -> bool:
                raise RuntimeError("no")

            __lt__ = __ge__ = __gt__ = __le__
            __str__ = __repr__ = __format__ = __le__  # type: ignore[assignment]
            __hash__ = int.__hash__

            def __eq__(self, _: object) -> bool:
                raise RuntimeError("no")

        made: list[int] = []
        pay = tool("pay")(lambda amount: made.extend([amount]))
        lead = relay.start("Pay", by=ANA, may=["call:pay"])
        lead.record(Constraint(key="amount", operator="<=", value="5", binds_to="call:pay.amount"))
        with pytest.raises(ConstraintViolatedError, match="Stubborn, which may change"):
            lead.call(pay, Stubborn(9))

        assert ([], ["constraint"]) == (made, [body.rule for body in bodies(relay, Kind.TOOL_DENIED)])


class TestSecrets:
    """What quotes a call quotes no secret of it."""

    def test_no_word_about_a_call_holds_what_looks_like_a_secret(self, relay: Relay, disk: Disk) -> None:
        """Neither why it was refused, nor what it did to what, nor what would have been enough."""
        with relay.start("Fix it", by=ANA, may=["write:src/**"]) as lead:
            lead.call(disk.write, f"src/{TOKEN}", "")
            with pytest.raises(GrantDeniedError):
                lead.call(disk.write, f"docs/{TOKEN}", "")
        with relay.start("Try it", by=ANA, may=["write:src/**"], mode="observed") as watched:
            watched.call(disk.write, f"docs/{TOKEN}", "")
        kept = [relay.read(ref.id) for receipt in receipts(relay) for ref in receipt.content.values()]

        assert [] == [words for words in kept if TOKEN.encode() in words]
        assert b"write:src/[redacted]" in kept
        relay.verify()

    def test_what_stands_under_the_name_of_a_secret_is_not_quoted(self, relay: Relay) -> None:
        """A condition on it is told without it, also to whoever tried."""
        login = tool("login")(lambda password: password)
        lead = relay.start("Log in", by=ANA, may=['call:login where password starts with "x"'])
        with pytest.raises(GrantDeniedError, match=r"with password '\[redacted\]'") as refused:
            lead.call(login, "hunter2!")

        assert "hunter2!" not in str(refused.value)


class TestRevoked:
    """What was revoked comes back by no door."""

    def test_a_session_is_not_resumed_under_a_revoked_grant(self, relay: Relay) -> None:
        """Whoever wants to go on asks for a new grant, and starts."""
        lead = relay.start("Fix it", by=ANA, may=["write:**"])
        session = lead.save_session()
        relay.revoke_grant(lead.id, by=ANA, reason="the wrong repository")
        with pytest.raises(GrantRevokedError):
            relay.resume_session(session, by=ANA)

        assert 1 == len(receipts(relay, Kind.RUN_STARTED))

    def test_what_an_earlier_attempt_finished_is_not_given_again(self, relay: Relay, disk: Disk) -> None:
        """No call is made for it, and still it is one."""
        handoff = relay.start("Fix it", by=ANA).hand_off("editor", "Edit", may=["write:**"])
        first = handoff.accept()
        first.call(disk.write, "a", "")
        fail(first)
        handoff.retry(by=ANA)
        second = handoff.accept()
        relay.revoke_grant(handoff.id, by=ANA, reason="the wrong repository")
        with pytest.raises(GrantRevokedError):
            second.call(disk.write, "a", "")

        assert ([("a", "")], ["grant"]) == (disk.written, [rule for rule, _ in denials(relay)])
