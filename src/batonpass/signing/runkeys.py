"""Where a run's own key lives: with the process that runs it, or, between short processes, in a private file.

In process: the key is in memory and dies with the process. Across short processes (hooks): the key is in
`runs/<run>.key` under the home directory, readable by its owner alone, until the run closes. Lost either way: the
run is rekeyed, with a new key in the next epoch, which fences whoever still holds the old one. A key is kept only
once the receipt that names it is durable: of two processes that rekey a run at once, the winner's key stays.
"""

from pathlib import Path

from batonpass.errors import KeyMissingError, KeyRefusedError
from batonpass.model.base.ids import RunId
from batonpass.model.ledger.key import Signer
from batonpass.signing.ed25519 import Ed25519Signer
from batonpass.signing.keyfile import read_key, replace_key
from batonpass.store.home import prepare_home


class RunKeysInMemory:
    """Keys that die with this process."""

    def __init__(self) -> None:
        self._keys: dict[RunId, tuple[Signer, int]] = {}

    def new(self) -> Signer:
        """Return a new key."""
        return Ed25519Signer.generate()

    def keep(self, run: RunId, epoch: int, signer: Signer) -> None:
        """Keep a run's key in place of any of an earlier epoch."""
        if run not in self._keys or self._keys[run][1] < epoch:
            self._keys[run] = (signer, epoch)

    def get(self, run: RunId) -> tuple[Signer, int]:
        """Return a run's key and its epoch."""
        try:
            return self._keys[run]
        except KeyError:
            raise _lost(run) from None

    def drop(self, run: RunId) -> None:
        """Forget the key of a run that is over."""
        self._keys.pop(run, None)


class RunKeysInFiles:
    """Keys that outlive a process: one private file for each open run."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._directory = home / "runs"

    def new(self) -> Signer:
        """Return a new key."""
        return Ed25519Signer.generate()

    def keep(self, run: RunId, epoch: int, signer: Signer) -> None:
        """Keep a run's key in place of any of an earlier epoch."""
        if not isinstance(signer, Ed25519Signer):
            raise KeyRefusedError("only a key of this process can be kept in a file")
        try:
            if self.get(run)[1] >= epoch:
                return
        except KeyMissingError:
            prepare_home(self._home)
        replace_key(self._path(run), str(epoch), signer)

    def get(self, run: RunId) -> tuple[Signer, int]:
        """Return a run's key and its epoch."""
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
