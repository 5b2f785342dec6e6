"""The table `[peers]`: keys of other relays whose word about a lineage is believed, by the names that we give them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from batonpass.model.base.ids import PublicKey
from batonpass.policy.document import PEERS, read_document

_KEY_LETTERS: Final = 64


def read_peers(path: Path | None) -> Mapping[PublicKey, str]:
    """Return the pinned keys of a file, with their names; none if there is no file. Raises `PolicyFileError`."""
    if path is None:
        return {}
    found: dict[PublicKey, str] = {}
    for name, place in read_document(path).table(PEERS).table().items():
        key = place.text()
        if len(key) != _KEY_LETTERS or any(letter not in "0123456789abcdef" for letter in key):
            raise place.error("is no public key; write the 64 characters that `batonpass key show` prints there")
        found[PublicKey(key)] = name
    return found
