"""The keys of one place: made once, whoever asks first, and a rotation that survives being cut short."""

import stat
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import pytest

from batonpass.errors import KeyMissingError, KeyRefusedError, StoreReadOnlyError, UnknownRelayError
from batonpass.model.base.ids import PublicKey
from batonpass.model.ledger.key import KeyRole, KeyStatus
from batonpass.relay import Relay, recording_of
from batonpass.signing.keyfile import read_key, write_key
from batonpass.signing.keyring import Keyring
from batonpass.store.memory import MemoryStore
from batonpass.testing import FrozenClock
from batonpass.testing.builders import ANA
from batonpass.testing.clock import NOON
from tests.children import run_at_once
from tests.unit.model.examples import EDITOR

MAKE_KEYS = """
from pathlib import Path
from batonpass.clock import SystemClock
from batonpass.signing.keyring import Keyring
keyring = Keyring(Path(sys.argv[1]), SystemClock())
print(json.dumps([keyring.relay().id, keyring.relay().signer.key, keyring.make_root().key]))
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "project" / ".batonpass"


def a_keyring(home: Path | None) -> Keyring:
    return Keyring(home, FrozenClock())


def in_threads(act: Callable[[], object], count: int) -> None:
    threads = [threading.Thread(target=act) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)


def test_a_relay_is_who_it_was(home: Path) -> None:
    """The identity is made on first use and is the same ever after."""
    made = a_keyring(home).relay()
    again = a_keyring(home).relay()

    assert (made.id, made.signer.key) == (again.id, again.signer.key)
    assert made.id.startswith("relay_")


def test_a_home_is_private_and_unseen_by_git(home: Path) -> None:
    """Keys are 0600 in a directory that is 0700 and ignores itself."""
    keyring = a_keyring(home)
    keyring.relay()
    keyring.make_root()
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (home, *home.glob("*.key"))}

    assert {".batonpass": 0o700, "relay.key": 0o600, "root.key": 0o600} == modes
    assert "*\n" == (home / ".gitignore").read_text()


def test_a_gitignore_of_ones_own_is_kept(home: Path) -> None:
    """What somebody wrote there is not overwritten."""
    home.mkdir(parents=True)
    (home / ".gitignore").write_text("# mine\n*\n")
    a_keyring(home).relay()

    assert "# mine\n*\n" == (home / ".gitignore").read_text()


def test_without_a_home_keys_live_in_memory() -> None:
    """A keyring of memory has one identity and one root, which nobody else has."""
    first, second = a_keyring(None), a_keyring(None)

    assert first.relay() == first.relay()
    assert first.make_root().key == first.make_root().key == first.root().key
    assert first.relay().signer.key != second.relay().signer.key


@pytest.mark.parametrize("name", ["relay.key", "root.key"], ids="a {} that others can read".format)
def test_a_key_that_others_can_read_is_refused(home: Path, name: str) -> None:
    """A key is not used once it was open to others, nor silently replaced."""
    keyring = a_keyring(home)
    keyring.relay()
    keyring.make_root()
    (home / name).chmod(0o640)
    again = a_keyring(home)

    with pytest.raises(KeyRefusedError, match="chmod 600"):
        again.relay() if name == "relay.key" else again.make_root()


def test_a_root_key_that_is_elsewhere_is_missing(home: Path) -> None:
    """Whoever did not found the ledger is told where the root key would be."""
    with pytest.raises(KeyMissingError, match=f"{home}/root.key"):
        a_keyring(home).root()
    with pytest.raises(KeyMissingError):
        a_keyring(None).root()


def test_a_key_of_something_else_is_no_relay(home: Path) -> None:
    """A root key that was copied into the relay's place is refused as such."""
    a_keyring(home).make_root()
    write_key(home / "relay.key", "root", read_key(home / "root.key")[1])

    with pytest.raises(KeyRefusedError, match="does not name a relay"):
        a_keyring(home).relay()


def test_a_home_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    """A file where the home should be: one sentence says so."""
    (tmp_path / ".batonpass").write_text("not a directory")

    with pytest.raises(StoreReadOnlyError, match=f"{tmp_path}/.batonpass"):
        a_keyring(tmp_path / ".batonpass").relay()


@pytest.mark.slow
def test_processes_that_begin_at_once_agree(home: Path) -> None:
    """Of several processes that make the keys of one home together, one wins and all use its keys."""
    answers = run_at_once(MAKE_KEYS, str(home), processes=4)
    identity = a_keyring(home).relay()

    assert [[identity.id, identity.signer.key, a_keyring(home).root().key]] * 4 == answers
    assert {".gitignore", "relay.key", "root.key"} == {path.name for path in home.iterdir()}


def test_threads_that_begin_at_once_agree(home: Path) -> None:
    """Of several keyrings on one home, each in its thread, all have one identity."""
    found: list[str] = []
    together = threading.Barrier(8)

    def ask() -> None:
        keyring = a_keyring(home)
        together.wait(timeout=30)
        found.append(keyring.relay().signer.key)

    in_threads(ask, 8)

    assert [a_keyring(home).relay().signer.key] * 8 == found


@dataclass
class SlowClock:
    """Lets whoever asks first wait until another has been answered, or for a moment if nobody comes."""

    asked: threading.Event = field(default_factory=threading.Event)
    answered: threading.Event = field(default_factory=threading.Event)

    def now(self) -> datetime:
        """Return noon, late to the first who asks."""
        if not self.asked.is_set():
            self.asked.set()
            self.answered.wait(timeout=0.2)
        return NOON


def test_threads_of_one_keyring_in_memory_agree() -> None:
    """A thread that is slow to make the identity does not replace the one that another thread already uses."""
    clock = SlowClock()
    keyring = Keyring(None, clock)
    slow = threading.Thread(target=keyring.relay)
    slow.start()
    clock.asked.wait(timeout=30)
    used = keyring.relay()
    clock.answered.set()
    slow.join(timeout=30)

    assert used == keyring.relay()


def test_a_proposed_key_waits_beside_the_present_one(home: Path) -> None:
    """Until it is adopted, a proposed key changes nothing but is there after a crash."""
    keyring = a_keyring(home)
    present = keyring.relay()
    proposed = keyring.propose_relay_key()
    after_a_crash = a_keyring(home)
    found = after_a_crash.proposed()

    assert present.signer.key == after_a_crash.relay().signer.key
    assert found is not None
    assert proposed.key == found.key
    assert 0o600 == stat.S_IMODE((home / "relay.next.key").stat().st_mode)


def test_an_adopted_key_is_the_relays(home: Path) -> None:
    """Adopting keeps the relay's id, changes its key for every process, and leaves no proposal."""
    keyring = a_keyring(home)
    before = keyring.relay()
    proposed = keyring.propose_relay_key()
    keyring.adopt_relay_key(proposed)
    after = a_keyring(home).relay()

    assert (before.id, proposed.key, proposed.key) == (after.id, after.signer.key, keyring.relay().signer.key)
    assert a_keyring(home).proposed() is None


def test_nothing_is_proposed_without_a_proposal(home: Path) -> None:
    """A keyring that never rotated has no other key."""
    assert (None, None) == (a_keyring(home).proposed(), a_keyring(None).proposed())


def test_a_rotation_that_was_recorded_and_then_cut_short_is_completed(home: Path) -> None:
    """A crash between the record of a rotation and the change of the file: the next start goes on with the new key."""
    store = MemoryStore()
    before = Relay(store, home=home)
    _, old = before.admin.identity()
    recording_of(before).start("one", agent=EDITOR, by=ANA)
    proposed = before._membership._keyring.propose_relay_key()
    before._membership._enrolment().rotate(proposed.public_key, root=before._membership.root())

    after = Relay(store, home=home)
    recording_of(after).start("two", agent=EDITOR, by=ANA)

    enrolled = after.admin.keys()
    statuses = {key.public_key: key.status for key in enrolled if key.role is KeyRole.RELAY}
    assert {old: KeyStatus.RETIRED, proposed.public_key: KeyStatus.ACTIVE} == statuses
    assert proposed.public_key == after.admin.identity()[1]
    assert a_keyring(home).proposed() is None
    assert 2 == after.verify().runs


def test_a_rotation_that_was_never_recorded_changes_nothing(home: Path) -> None:
    """A crash before the record: the next start goes on with the key it had."""
    store = MemoryStore()
    before = Relay(store, home=home)
    recording_of(before).start("one", agent=EDITOR, by=ANA)
    before._membership._keyring.propose_relay_key()

    after = Relay(store, home=home)
    recording_of(after).start("two", agent=EDITOR, by=ANA)

    assert before.admin.identity() == after.admin.identity()
    assert 2 == after.verify().runs


def test_a_key_that_was_rotated_away_records_nothing_more(home: Path) -> None:
    """A copy of the home from before a rotation is told that its key is no longer active."""
    store = MemoryStore()
    relay = Relay(store, home=home)
    recording_of(relay).start("one", agent=EDITOR, by=ANA)
    old = (home / "relay.key").read_bytes()
    relay.admin.rotate()
    (home / "relay.key").write_bytes(old)

    with pytest.raises(UnknownRelayError, match="no longer active"):
        _ = recording_of(Relay(store, home=home))


def test_a_stranger_without_the_root_key_is_refused(home: Path, tmp_path: Path) -> None:
    """A second home cannot enrol itself in a ledger whose root key it does not have."""
    store = MemoryStore()
    recording_of(Relay(store, home=home)).start("one", agent=EDITOR, by=ANA)

    with pytest.raises(UnknownRelayError, match="not enrolled"):
        _ = recording_of(Relay(store, home=tmp_path / "elsewhere"))


def test_the_root_key_of_another_ledger_is_not_taken(home: Path) -> None:
    """A home whose root key founded another ledger has no say in this one."""
    recording_of(Relay(MemoryStore(), home=home)).start("theirs", agent=EDITOR, by=ANA)
    other = MemoryStore()
    recording_of(Relay(other)).start("ours", agent=EDITOR, by=ANA)

    with pytest.raises(UnknownRelayError, match="not enrolled"):
        _ = recording_of(Relay(other, home=home))


def test_a_weak_key_is_not_enrolled(home: Path) -> None:
    """A relay that asks to be enrolled with a point of small order is refused, and nothing is written."""
    relay = Relay(MemoryStore(), home=home)
    recording_of(relay).start("one", agent=EDITOR, by=ANA)

    with pytest.raises(KeyRefusedError):
        relay.admin.enroll(relay.admin.identity()[0], PublicKey("01" + "00" * 31))

    assert 2 == len(relay.admin.keys())
