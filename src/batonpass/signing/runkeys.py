"""The keys of open runs: in memory, or, for runs over many short processes such as hooks, in private files.

In memory, a key is lost with its process. In files, it is `runs/<run>.key` in the home directory until the run closes.
If a key is lost, the run is rekeyed: it gets a new key in the next epoch, which fences the holder of the old one.

A key is kept only when the receipt that names it is durable. So if two processes rekey a run at once, the key of the
winner is kept.
"""

from pathlib import Path

from batonpass.errors import KeyMissingError, KeyRefusedError
from batonpass.model.base.ids import RunId
from batonpass.model.ledger.key import Signer
from batonpass.signing.ed25519 import Ed25519Signer
from batonpass.signing.keyfile import read_key, replace_key
from batonpass.store.home import prepare_home


class RunKeysInMemory:
    """Keeps keys in memory: they are lost with this process."""

    def __init__(self) -> None:
        self._keys: dict[RunId, tuple[Signer, int]] = {}

    def new(self) -> Signer:
        """Return a new key."""
        return Ed25519Signer.generate()

    def keep(self, run: RunId, epoch: int, signer: Signer) -> None:
        """Keep a run's key in place of one of an earlier epoch."""
        if run not in self._keys or self._keys[run][1] < epoch:
            self._keys[run] = (signer, epoch)

    def get(self, run: RunId) -> tuple[Signer, int]:
        """Return a run's key and its epoch. Raises `KeyMissingError`."""
        try:
            return self._keys[run]
        except KeyError:
            raise _lost(run) from None

    def drop(self, run: RunId) -> None:
        """Forget the key of a run that is over."""
        self._keys.pop(run, None)


class RunKeysInFiles:
    """Keeps keys in private files, one for each open run: they outlive this process."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._directory = home / "runs"

    def new(self) -> Signer:
        """Return a new key."""
        return Ed25519Signer.generate()

    def keep(self, run: RunId, epoch: int, signer: Signer) -> None:
        """Keep a run's key in place of one of an earlier epoch.

        Raises `KeyRefusedError` for a key that is not in this process's memory.
        """
        if not isinstance(signer, Ed25519Signer):
            raise KeyRefusedError("only a key of this process can be kept in a file")
        try:
            if self.get(run)[1] >= epoch:
                return
        except KeyMissingError:
            prepare_home(self._home)
        replace_key(self._path(run), str(epoch), signer)

    def get(self, run: RunId) -> tuple[Signer, int]:
        """Return a run's key and its epoch. Raises `KeyMissingError` and `KeyRefusedError`."""
        path = self._path(run)
        if not path.exists():
            raise _lost(run)
        label, signer = read_key(path)
        if not label.isdecimal():
            raise KeyRefusedError(f"{path} is not the key of a run")
        return signer, int(label)

    def drop(self, run: RunId) -> None:
        """Forget the key of a run that is over."""
        self._path(run).unlink(missing_ok=True)

    def _path(self, run: RunId) -> Path:
        return self._directory / f"{run}.key"


def _lost(run: RunId) -> KeyMissingError:
    return KeyMissingError(f"the key of {run} is not here; rekey the run to go on with it")
