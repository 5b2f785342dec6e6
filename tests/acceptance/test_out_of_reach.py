"""What no agent reaches by a recorded call: its own approval, the keys, what decides about calls, other paths."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from batonpass import Grant
from batonpass.errors import CallProtectedError, GrantDeniedError, KeyRefusedError, VerificationError
from batonpass.handoff.live.faces import LiveHandoff, LiveRun
from batonpass.handoff.tools.declaration import tool
from batonpass.model.base.ids import PrincipalId
from batonpass.model.base.lifecycle import State
from batonpass.model.bodies.body import HandoffApproved
from batonpass.relay import Relay, recording_of
from batonpass.signing.approver_key import Approver
from batonpass.signing.ed25519 import Ed25519Signer
from tests.integration.cli.shell import batonpass_in
from tests.unit.cli.desk import Desk

ANA: Final = PrincipalId("user:ana")
EVERYTHING: Final = ["read:**", "read:/**", "write:**", "write:/**", "run:**"]


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a work tree with sources, rules and a ledger of its own."""
    for name in ("src/a.py", "Docs/a.md", ".github/ci.yml", ".claude/settings.json", "batonpass.toml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


class TestOwnApproval:
    """An agent whose call is held cannot let itself go on where approvals are proven."""

    @pytest.fixture
    def relay(self, tree: Path) -> Iterator[Relay]:
        """Return a relay whose policy takes nobody's word for it; Ana's key is enrolled, and not on this machine."""
        (tree / "batonpass.toml").write_text("[policy]\nenforce = true\nproven = true\n", encoding="utf-8")
        with Desk(tree).relay() as relay:
            recording_of(relay)
            relay.admin.enroll_approver(ANA, Ed25519Signer.generate().public_key)
            yield relay

    @pytest.fixture
    def held(self, relay: Relay) -> LiveHandoff:
        """Return a handoff that is held at a call."""
        deploy = tool("deploy", reversible=False, target="place", action="deploy")(lambda place: place)
        lead = relay.start("Ship it", by=ANA, grant=Grant(may_delegate=["deploy:*"]))
        handoff = lead.hand_off("shipper", "Ship", may=["deploy:*"], run=lambda run: run.call(deploy, "prod"))
        assert State.HELD is handoff.wait().state
        return handoff

    def test_not_with_a_process_of_its_own(self, tree: Path, held: LiveHandoff) -> None:
        """On the same ledger and with its keys, in Ana's name: refused, and it still waits."""
        done = batonpass_in(tree, "handoff", "approve", held.id[-6:], "--by", ANA, "--yes")

        assert (1, True, State.HELD) == (done.returncode, "[handoff.unproven]" in done.stderr, held.state())

    @pytest.mark.parametrize(
        ("words", "code"),
        [
            pytest.param((ANA,), "handoff.unproven", id="of a person, without a terminal"),
            pytest.param(("user:eve", "--yes"), "handoff.unproven", id="of somebody whom nobody knows"),
            pytest.param(("service:nightly", "--yes"), "handoff.not_approver", id="of a service"),
            pytest.param(("agent:shipper", "--yes"), "handoff.not_approver", id="of its own"),
        ],
    )
    def test_not_in_any_name(self, tree: Path, held: LiveHandoff, words: tuple[str, ...], code: str) -> None:
        """Whatever name the command line is given, nothing proves it."""
        done = Desk(tree).run("handoff", "approve", held.id[-6:], "--by", *words)

        assert (1, True, State.HELD) == (done.exit_code, f"[{code}]" in done.stderr, held.state())

    def test_not_with_a_key_of_its_own(self, relay: Relay, held: LiveHandoff) -> None:
        """A key that nobody enrolled signs nothing, and no key of the ledger's machine is one."""
        for signer in (Ed25519Signer.generate(), relay._membership.join()[1].signer, relay._membership.root()):
            with pytest.raises(KeyRefusedError):
                held.approve(by=Approver(ANA, signer))

        assert State.HELD is held.state()

    def test_not_with_the_relays_key(self, relay: Relay, held: LiveHandoff) -> None:
        """Whoever has it can write that Ana approved: the call is still not made, and verification tells."""
        recording_of(relay).act(held.id, lambda known, _: HandoffApproved(handoff=known.id, by=ANA))

        assert State.HELD is held.wait().state
        with pytest.raises(VerificationError):
            relay.verify()


class Hands:
    """Tools of every shape, and what they were let do."""

    def __init__(self) -> None:
        self.done: list[Any] = []
        self.read = tool("read", reads=True, target="path")(lambda path: self.done.append(("read", path)))
        self.write = tool("write", target="path")(lambda path: self.done.append(("write", path)))
        self.run = tool("run", action="run")(lambda argv: self.done.append(("run", argv)))
        self.put = tool("put", action="run")(lambda files: self.done.append(("put", files)))


@pytest.fixture
def hands() -> Hands:
    """Return tools that have done nothing."""
    return Hands()


@pytest.fixture
def agent(tree: Path) -> Iterator[LiveRun]:
    """Return a run that was granted everything there is."""
    with Desk(tree).relay() as relay:
        yield relay.start("Do as you like", by=ANA, may=EVERYTHING)


def symlinked(tree: Path) -> str:
    (tree / "src" / "notes").symlink_to(tree / ".batonpass")
    return "src/notes/relay.key"


def hard_linked(tree: Path) -> str:
    os.link(tree / ".batonpass" / "relay.key", tree / "src" / "notes.txt")
    return "src/notes.txt"


def by_descriptor(tree: Path) -> str:
    # It is never closed: the path is about an open file.
    return f"/proc/self/fd/{os.open(tree / '.batonpass' / 'relay.key', os.O_RDONLY)}"


KEY: Final[dict[str, Callable[[Path], str]]] = {
    "as it is called": lambda _: ".batonpass/relay.key",
    "from the root": lambda tree: f"{tree}/.batonpass/relay.key",
    "by a detour": lambda _: "src/../.batonpass/./relay.key",
    "with more slashes": lambda _: ".batonpass//relay.key",
    "in other letters": lambda _: ".BatonPass/RELAY.KEY",
    "by way of the process": lambda _: "/proc/self/cwd/.batonpass/relay.key",
    "by way of the process's root": lambda tree: f"/proc/self/root{tree}/.batonpass/relay.key",
    "by an open file": by_descriptor,
    "by a link": symlinked,
    "by a hard link": hard_linked,
    "as an address": lambda tree: f"file://{tree}/.batonpass/relay%2Ekey",
    "as an address of this machine": lambda tree: f"FILE://localhost{tree}/.batonpass/relay.key",
}


class TestKeys:
    """Nobody reads the keys of the ledger by a call, whatever they are granted."""

    @pytest.mark.parametrize("spelled", KEY.values(), ids=KEY.keys())
    def test_the_relays_key_is_read_by_no_name(
        self, tree: Path, agent: LiveRun, hands: Hands, spelled: Callable[[Path], str]
    ) -> None:
        """By a tool that reads, as a word of a command, behind an option, in a mapping and as a name in one."""
        path = spelled(tree)
        tries: list[tuple[Callable[..., Any], Any]] = [
            (hands.read, path),
            (hands.run, ["cat", path]),
            (hands.run, ["tar", f"--files-from={path}"]),
            (hands.put, {"steps": [{"copy": {"from": path}}]}),
            (hands.put, {path: "x"}),
        ]
        for function, given in tries:
            with pytest.raises(CallProtectedError, match="the ledger or its keys"):
                agent.call(function, given)

        assert [] == hands.done

    def test_what_lies_elsewhere_is_read(self, tree: Path, agent: LiveRun, hands: Hands) -> None:
        """A name that is only alike, a hard link between other files, words about it: all of it goes on."""
        os.link(tree / "src" / "a.py", tree / "src" / "b.py")
        for path in ("src/b.py", ".batonpass.md", "relay.key", ".claude/notes.md"):
            agent.call(hands.read, path)
        agent.call(hands.put, {"text": "see .batonpass/relay.key"})

        assert 5 == len(hands.done)


class TestRules:
    """Under a grant nobody changes what decides about calls, nor where it lies."""

    @pytest.mark.parametrize(
        "path",
        [
            ".claude/settings.json",
            ".claude/settings.local.json",
            ".Claude/Settings.json",
            "src/../.claude//settings.json",
            "/proc/self/cwd/batonpass.toml",
            "batonpass.toml",
            ".claude",
            ".claude/",
        ],
    )
    def test_they_are_not_written_moved_or_replaced(self, tree: Path, agent: LiveRun, hands: Hands, path: str) -> None:
        """Not as a target, in a command that moves or removes, or in a mapping; they can be read."""
        (tree / "src" / "other").mkdir()
        tries: list[tuple[Callable[..., Any], Any]] = [
            (hands.write, path),
            (hands.run, ["rm", "-r", path]),
            (hands.run, ["mv", "src/other", path]),
            (hands.put, {"files": {path: "{}"}}),
            (hands.put, {"edits": [{"file": path}]}),
        ]
        for function, given in tries:
            with pytest.raises(CallProtectedError, match="the settings that decide about calls"):
                agent.call(function, given)
        agent.call(hands.read, path)

        assert [("read", path)] == hands.done

    def test_who_moves_the_tree_moves_them(self, tree: Path, agent: LiveRun, hands: Hands) -> None:
        """A target that holds them is refused; one beside them is not, and neither is working in the tree."""
        for path in (str(tree), str(tree.parent)):
            with pytest.raises(CallProtectedError):
                agent.call(hands.write, path)
        agent.call(hands.write, ".claude/agents/editor.md")
        agent.call(hands.run, ["ls", str(tree)])

        assert 2 == len(hands.done)

    def test_observed_nothing_but_the_record_is_out_of_reach(self, tree: Path, hands: Hands) -> None:
        """A run without a grant may change the rules and read the ledger; not change that, nor read the keys."""
        with Desk(tree).relay() as relay:
            lead = relay.start("Look", by=ANA)
            lead.call(hands.write, "batonpass.toml")
            lead.call(hands.read, ".batonpass/ledger.db")
            for function, path in (
                (hands.read, ".batonpass/relay.key"),
                (hands.write, ".batonpass/ledger.db"),
                (hands.write, hard_linked(tree)),
                (hands.write, str(tree)),
            ):
                with pytest.raises(CallProtectedError):
                    lead.call(function, path)

        assert 2 == len(hands.done)


OUTSIDE: Final = (
    "src/../.github/ci.yml",
    "src/../../elsewhere",
    "src//..//.github/ci.yml",
    "src/link/ci.yml",
    "src/file.py",
    "/etc/hostname",
    "~/x.py",
    "SRC/a.py",
    "\u0455rc/a.py",
    "\uff53rc/a.py",
    "src\u2215a.py",
    "src/%2e%2e/.github/ci.yml",
    "src/..%2f.github/ci.yml",
    "src%2fa.py",
    "src\\a.py",
    "src/a\u202e.py",
    "src/a.py\u200b",
    "src/a.py ",
    "src/a.",
    "src/*",
    "src/**",
    "src",
    "file:src/a.py",
)
INSIDE: Final = ("src/a.py", "src//a.py", "./src/./a.py", "src/../src/b.py", "Docs/../src/c.py", "src/new/d.py")


class TestPaths:
    """A call is judged by where its path leads, and what could be read in two ways is refused."""

    @pytest.fixture
    def editor(self, tree: Path) -> Iterator[LiveRun]:
        """Return a run that may write what lies in src, where links lead elsewhere."""
        (tree / "src" / "link").symlink_to(tree / ".github")
        (tree / "src" / "file.py").symlink_to(tree / "Docs" / "a.md")
        with Desk(tree).relay() as relay:
            yield relay.start("Edit", by=ANA, may=["write:src/**"])

    @pytest.mark.parametrize("path", OUTSIDE, ids=ascii)
    def test_no_spelling_leads_out(self, editor: LiveRun, hands: Hands, path: str) -> None:
        """Detours, links, encodings, other letters and invisible ones: nothing is written."""
        with pytest.raises(GrantDeniedError):
            editor.call(hands.write, path)

        assert [] == hands.done

    def test_every_way_in_is_a_way_in(self, tree: Path, editor: LiveRun, hands: Hands) -> None:
        """What leads there may be spelled as one likes."""
        paths = [*INSIDE, f"{tree}/src/e.py", "/proc/self/cwd/src/f.py"]
        for path in paths:
            editor.call(hands.write, path)

        assert paths == [path for _, path in hands.done]
