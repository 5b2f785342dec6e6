"""The keys in one home directory: the relay's, and the root key if the ledger was founded here."""

import threading
from pathlib import Path

from msgspec import Struct

from batonpass.clock import Clock
from batonpass.errors import InvalidValueError, KeyMissingError, KeyRefusedError
from batonpass.model.base.ids import RELAY, RelayId, new_relay_id, require_id
from batonpass.model.ledger.key import Signer
from batonpass.signing.ed25519 import Ed25519Signer
from batonpass.signing.keyfile import read_key, replace_key, write_key
from batonpass.store.home import prepare_home


class RelayIdentity(Struct, frozen=True):
    """The identity of a relay: its id and its key."""

    id: RelayId
    signer: Signer


class Keyring:
    """Keys as files in a home directory that git ignores; without a home, in memory only."""

    def __init__(self, home: Path | None, clock: Clock) -> None:
        self._home = home
        self._clock = clock
        self._lock = threading.Lock()
        self._relay: RelayIdentity | None = None
        self._root: Signer | None = None

    @property
    def home(self) -> Path | None:
        """Return the directory of the keys; None if they are in memory only."""
        return self._home

    def relay(self) -> RelayIdentity:
        """Return this relay's identity. It is made on first use."""
        with self._lock:
            if self._relay is None:
                self._relay = self._make_relay() if self._home is None else self._keep_relay(self._home)
            return self._relay

    def root(self) -> Signer:
        """Return the root key. Raises `KeyMissingError` if the ledger was founded elsewhere."""
        if self._root is None:
            if self._home is None:
                raise KeyMissingError("this ledger has no root key here")
            try:
                self._root = read_key(self._home / "root.key")[1]
            except KeyMissingError:
                raise KeyMissingError(
                    f"the ledger's root key is not at {self._home / 'root.key'}; "
                    "enrol, rotate and revoke where the ledger was founded",
                ) from None
        return self._root

    def make_root(self) -> Signer:
        """Return the root key, and make it if there is none. Use it to found a ledger."""
        made = Ed25519Signer.generate()
        if self._home is None:
            with self._lock:
                self._root = self._root or made
            return self._root
        prepare_home(self._home)
        write_key(self._home / "root.key", "root", made)
        return self.root()

    def propose_relay_key(self) -> Ed25519Signer:
        """Return a new key, durable beside the current one, so that a rotation survives a crash."""
        made = Ed25519Signer.generate()
        if self._home is not None:
            replace_key(self._home / "relay.next.key", self.relay().id, made)
        return made

    def adopt_relay_key(self, signer: Ed25519Signer) -> None:
        """Make the proposed key the relay's current one."""
        identity = RelayIdentity(self.relay().id, signer)
        if self._home is not None:
            replace_key(self._home / "relay.key", identity.id, signer)
            (self._home / "relay.next.key").unlink(missing_ok=True)
        self._relay = identity

    def proposed(self) -> Ed25519Signer | None:
        """Return a proposed key that was never adopted, because a rotation was interrupted; None if there is none."""
        if self._home is None or not (self._home / "relay.next.key").exists():
            return None
        return read_key(self._home / "relay.next.key")[1]

    def _make_relay(self) -> RelayIdentity:
        return RelayIdentity(new_relay_id(self._clock.now()), Ed25519Signer.generate())

    def _keep_relay(self, home: Path) -> RelayIdentity:
        path = home / "relay.key"
        if not path.exists():
            prepare_home(home)
            made = self._make_relay()
            if isinstance(made.signer, Ed25519Signer):
                write_key(path, made.id, made.signer)
        label, signer = read_key(path)
        try:
            return RelayIdentity(require_id("relay", RelayId(label), RELAY), signer)
        except InvalidValueError:
            raise KeyRefusedError(f"{path} does not name a relay") from None
