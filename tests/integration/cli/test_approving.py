"""Passphrases and questions on a real terminal: what is typed, what is shown, and what is recorded of it."""

import json
import threading
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from nacl.pwhash import argon2id

from batonpass.errors import CallSuspendedError
from batonpass.handoff.live.faces import LiveHandoff
from batonpass.handoff.tools.declaration import tool
from batonpass.model.base.ids import PrincipalId
from batonpass.model.base.lifecycle import State
from batonpass.model.bodies.body import Body
from batonpass.relay import Relay, recording_of
from batonpass.signing.approver_key import Cost, make_approver
from batonpass.store.port import ReceiptQuery
from batonpass.wire.receipt_codec import decode_receipt
from tests.integration.cli.shell import batonpass_in
from tests.integration.cli.terminal import Terminal

ANA = PrincipalId("user:ana")
PASSPHRASE = "correct horse"
CHEAP = Cost(passes=argon2id.OPSLIMIT_MIN, memory=argon2id.MEMLIMIT_MIN)
PROVEN = "[policy]\nenforce = true\nproven = true\n"
ASKS = "Passphrase of user:ana: "


@tool(reversible=False, target="place")
def deploy(place: str) -> str:
    """Pretend to deploy."""
    return f"deployed {place}"


class Place:
    """A project with a ledger, and a person with a place of their own for keys."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "project"
        self.folder.mkdir()
        self.config = folder / "config"
        (self.folder / "batonpass.toml").write_text(PROVEN, encoding="utf-8")
        with self.relay() as relay:
            recording_of(relay)

    @property
    def keys(self) -> Path:
        """Return where Ana's keys are."""
        return self.config / "batonpass" / "approvers"

    def relay(self) -> Relay:
        """Open the ledger in this process."""
        return Relay.open(f"sqlite:///{self.folder}/.batonpass/ledger.db", home=self.folder / ".batonpass")

    def terminal(self, *arguments: str) -> Terminal:
        """Start a command on a terminal, as Ana."""
        return Terminal(self.folder, arguments, XDG_CONFIG_HOME=str(self.config), USER="ana")

    def run(self, *arguments: str) -> CompletedProcess[str]:
        """Run a command as Ana, with nobody there."""
        environment = {"XDG_CONFIG_HOME": str(self.config), "USER": "ana"}
        return batonpass_in(self.folder, *arguments, environment=environment)

    def enrol(self) -> None:
        """Make a key for Ana that is cheap to open, and enrol it."""
        made = make_approver(self.keys, ANA, PASSPHRASE, cost=CHEAP)
        with self.relay() as relay:
            relay.admin.enroll_approver(ANA, made.public_key)

    def verify(self) -> None:
        """Verify all of the ledger."""
        with self.relay() as relay:
            relay.verify()

    def bodies(self, kind: str) -> list[Body]:
        """Return what receipts of a kind say."""
        with self.relay() as relay, relay.store.view() as view:
            return [decode_receipt(stored.payload).body for stored in view.find_receipts(ReceiptQuery(kind=kind))]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.fixture
def held(place: Place) -> Iterator[LiveHandoff]:
    """Return a handoff that waits, with Ana's key enrolled."""
    place.enrol()
    with place.relay() as relay:
        yield relay.start("Ship the release", by=ANA).hand_off("mailer", "Tell everybody", hold=True)


def test_a_key_is_made_enrolled_and_used(place: Place) -> None:
    """Asked twice, never shown, 0600 in the person's own place; and listed as lying here."""
    with place.terminal("approver", "add", "ana") as terminal:
        terminal.until("at least 8 characters: ").type(f"{PASSPHRASE}\n")
        code = terminal.until("passphrase again: ").type(f"{PASSPHRASE}\n").end()
    (file,) = place.keys.iterdir()

    assert (0, False, 0o600) == (code, PASSPHRASE in terminal.shown, file.stat().st_mode & 0o777)
    assert "enrolled user:ana with key " in terminal.shown
    (listed,) = json.loads(place.run("approver", "list", "--json").stdout)
    assert (ANA, "active", True) == (listed["principal"], listed["status"], listed["here"])
    place.verify()


@pytest.mark.parametrize(
    ("typed", "says"),
    [
        pytest.param([""], "at least 8 characters; no key was made", id="empty"),
        pytest.param(["1234567"], "at least 8 characters; no key was made", id="too short"),
        pytest.param(
            [PASSPHRASE, "correct house"], "the two passphrases differ; no key was made", id="two that differ"
        ),
    ],
)
def test_a_passphrase_that_will_not_do_makes_no_key(place: Place, typed: list[str], says: str) -> None:
    """Neither a file nor a receipt is left."""
    with place.terminal("approver", "add", "ana") as terminal:
        for text in typed:
            terminal.until(": ").type(f"{text}\n")
        code = terminal.end()

    assert (1, True, False, []) == (code, says in terminal.shown, place.keys.exists(), place.bodies("approver"))


def test_whoever_stops_has_made_no_key(place: Place) -> None:
    """Ctrl-C at the second question leaves nothing, and the terminal as it was."""
    with place.terminal("approver", "add", "ana") as terminal:
        terminal.until("at least 8 characters: ").type(f"{PASSPHRASE}\n").until("passphrase again: ").interrupt()
        code = terminal.end()

    assert (130, False, []) == (code, place.keys.exists(), place.bodies("approver"))


def test_without_a_terminal_no_key_is_made(place: Place) -> None:
    """A passphrase comes from a person, and from nowhere else."""
    done = place.run("approver", "add", "ana")

    assert (2, True, False) == (done.returncode, "read from a terminal" in done.stderr, place.keys.exists())


def test_where_the_root_key_is_elsewhere_the_next_step_is_printed(place: Place) -> None:
    """The key is made all the same; whoever has the root key enrols it by what is printed."""
    root = place.folder / ".batonpass" / "root.key"
    away = root.rename(place.folder / "root.key.away")
    with place.terminal("approver", "add", "ana") as terminal:
        terminal.until("at least 8 characters: ").type(f"{PASSPHRASE}\n")
        code = terminal.until("passphrase again: ").type(f"{PASSPHRASE}\n").end()
    command = next(line for line in terminal.shown.splitlines() if "approver enroll" in line).split()[1:]
    away.rename(root)

    assert (1, 0) == (code, place.run(*command).returncode)
    assert [ANA] == [body.principal for body in place.bodies("approver.enrolled")]  # type: ignore[union-attr]


def test_the_right_passphrase_proves_who_approved(place: Place, held: LiveHandoff) -> None:
    """What was on the screen is what was signed, and the verifier agrees."""
    with place.terminal("handoff", "approve", "mailer", "--reason", "fine") as terminal:
        terminal.until("Approve it? [y/N]: ").type("y\n")
        code = terminal.until(ASKS).type(f"{PASSPHRASE}\n").end()
    (approved,) = place.bodies("handoff.approved")
    screen, _, _ = terminal.shown.partition("Approve it?")

    assert (0, True, False) == (code, "approved by user:ana (proven)" in terminal.shown, PASSPHRASE in terminal.shown)
    assert sha256(screen.replace("\r\n", "\n").encode()).hexdigest() == approved.shown  # type: ignore[union-attr]
    assert (True, State.OFFERED) == (approved.looked_ms >= 0, held.state())  # type: ignore[union-attr,operator]
    place.verify()


def test_a_denial_is_proven_as_well(place: Place, held: LiveHandoff) -> None:
    """It is shown and signed in the same way."""
    with place.terminal("handoff", "deny", "mailer", "--reason", "no") as terminal:
        terminal.until("Deny it? [y/N]: ").type("y\n")
        code = terminal.until(ASKS).type(f"{PASSPHRASE}\n").end()

    assert (0, State.DENIED, [True]) == (code, held.state(), [body.proven for body in place.bodies("handoff.denied")])  # type: ignore[union-attr]


def test_a_wrong_passphrase_is_asked_for_again(place: Place, held: LiveHandoff) -> None:
    """Three tries: the third that is right will do."""
    with place.terminal("handoff", "approve", "mailer") as terminal:
        terminal.until("Approve it? [y/N]: ").type("y\n")
        terminal.until(ASKS).type("wrong one\n").until("2 more tries")
        code = terminal.until(ASKS).type("\n").until("1 more try").until(ASKS).type(f"{PASSPHRASE}\n").end()

    assert (0, State.OFFERED) == (code, held.state())


def test_three_wrong_passphrases_decide_nothing(place: Place, held: LiveHandoff) -> None:
    """Nothing is recorded, not even as unproven."""
    with place.terminal("handoff", "approve", "mailer") as terminal:
        terminal.until("Approve it? [y/N]: ").type("y\n")
        for _ in range(3):
            terminal.until(ASKS).type("wrong one\n")
        code = terminal.end()

    assert (1, State.HELD, []) == (code, held.state(), place.bodies("handoff.approved"))
    assert "nothing was signed" in terminal.shown


@pytest.mark.parametrize("where", ["Approve it? [y/N]: ", ASKS])
@pytest.mark.parametrize("how", ["Ctrl-C", "SIGKILL"])
def test_whoever_stops_half_way_has_decided_nothing(place: Place, held: LiveHandoff, where: str, how: str) -> None:
    """At the question or at the passphrase; what waits goes on waiting."""
    with place.terminal("handoff", "approve", "mailer") as terminal:
        if where == ASKS:
            terminal.until("Approve it? [y/N]: ").type("y\n")
        terminal.until(where)
        if how == "Ctrl-C":
            terminal.interrupt()
        else:
            terminal.kill()
        code = terminal.end()

    assert (130 if how == "Ctrl-C" else -9, State.HELD, []) == (code, held.state(), place.bodies("handoff.approved"))
    place.verify()


def test_an_agent_with_a_shell_proves_nothing(place: Place, held: LiveHandoff) -> None:
    """Without a terminal nobody is asked, so nothing is signed; where a proof is asked for, that is refused."""
    done = place.run("handoff", "approve", "mailer")

    assert (1, True, State.HELD) == (
        done.returncode,
        "batonpass approver add user:ana" in done.stdout + done.stderr,
        held.state(),
    )


def test_a_root_s_call_is_approved_from_another_process(place: Place) -> None:
    """The root waits in this one; the person decides in that one, and the root's next such call goes on."""
    place.enrol()
    with place.relay() as relay, relay.start("Ship the release", by=ANA) as lead:
        with pytest.raises(CallSuspendedError) as held:
            lead.call(deploy, "prod")
        with place.terminal("handoff", "approve", held.value.call[-6:]) as terminal:
            terminal.until("Approve it? [y/N]: ").type("y\n")
            code = terminal.until(ASKS).type(f"{PASSPHRASE}\n").end()

        assert (0, "deployed prod") == (code, lead.call(deploy, "prod"))
    assert ('place = "prod"' in terminal.shown, [True]) == (
        True,
        [body.proven for body in place.bodies("tool.approved")],  # type: ignore[union-attr]
    )
    place.verify()


def test_of_two_processes_that_decide_at_once_one_wins(place: Place) -> None:
    """One approves and one denies; one is told so, and the other gets a sentence and an exit code."""
    (place.folder / "batonpass.toml").write_text("[policy]\nenforce = true\n", encoding="utf-8")
    with place.relay() as relay, relay.start("Ship the release", by=ANA) as lead:
        with pytest.raises(CallSuspendedError) as held:
            lead.call(deploy, "prod")
        handoff = lead.hand_off("mailer", "Tell everybody", hold=True)
        for waiting in (held.value.call, handoff.id):
            done = at_once(
                place,
                ["handoff", "approve", waiting, "--yes"],
                ["handoff", "deny", waiting, "--reason", "no"],
            )
            assert [0, 1] == sorted(process.returncode for process in done)
            (loser,) = (process for process in done if process.returncode)
            said, *possible = loser.stderr.splitlines()  # who came first decides whether anything is left to do
            assert ("batonpass: ", ["  it is "][: len(possible)]) == (said[:11], [line[:8] for line in possible])
    assert 1 == len(place.bodies("tool.approved") + place.bodies("tool.refused"))
    place.verify()


def at_once(place: Place, *commands: list[str]) -> list[CompletedProcess[str]]:
    """Run commands at the same time."""
    done: list[CompletedProcess[str]] = []
    threads = [threading.Thread(target=lambda words=words: done.append(place.run(*words))) for words in commands]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return done
