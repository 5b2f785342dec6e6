"""Where a run's own key lives: with the process that runs it, or, between short processes, in a private file.

In process: the key is in memory and dies with the process. Across short processes (hooks): the key is in
`runs/<run>.key` under the home directory, readable by its owner alone, until the run closes. Lost either way: the
run is rekeyed, with a new key in the next epoch, which fences whoever still holds the old one.
"""

from pathlib import Path

from batonpass.errors import KeyMissingError
from batonpass.model.ids import RunId
from batonpass.model.key import Signer
from batonpass.signing.ed25519 import Ed25519Signer
from batonpass.signing.keyfile import read_key, replace_key


class RunKeysInMemory:
    """Keys that die with this process."""

    def __init__(self) -> None:
        self._keys: dict[RunId, tuple[Signer, int]] = {}

    def make(self, run: RunId, epoch: int) -> Signer:
        """Return a new key for a run."""
        signer = Ed25519Signer.generate()
        self._keys[run] = (signer, epoch)
        return signer

    def get(self, run: RunId) -> tuple[Signer, int]:
        """Return a run's key and its epoch."""
        try:
            return self._keys[run]
        except KeyError:
            raise KeyMissingError(f"the key of {run} is not in this process; rekey the run to go on with it") from None

    def drop(self, run: RunId) -> None:
        """Forget the key of a run that is over."""
        self._keys.pop(run, None)


class RunKeysInFiles:
    """Keys that outlive a process: one private file for each open run."""

    def __init__(self, home: Path) -> None:
        self._directory = home / "runs"

    def make(self, run: RunId, epoch: int) -> Signer:
        """Return a new key for a run."""
        signer = Ed25519Signer.generate()
        self._directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        replace_key(self._path(run), str(epoch), signer)
        return signer

    def get(self, run: RunId) -> tuple[Signer, int]:
        """Return a run's key and its epoch."""
        epoch, signer = read_key(self._path(run))
        return signer, int(epoch)

    def drop(self, run: RunId) -> None:
        """Forget the key of a run that is over."""
        self._path(run).unlink(missing_ok=True)

    def _path(self, run: RunId) -> Path:
        return self._directory / f"{run}.key"
