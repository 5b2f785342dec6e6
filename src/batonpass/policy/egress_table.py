"""The table `[egress]`: places that requests of Batonpass itself may reach although they are not public."""

from pathlib import Path
from typing import Final

from batonpass.errors import InvalidValueError
from batonpass.model.policy.listed_place import ListedPlace, read_listed
from batonpass.policy.document import EGRESS, DocumentPlace, read_document

_KEYS: Final = ("allow",)


def read_egress(path: Path | None) -> tuple[ListedPlace, ...]:
    """Return the places that a file lists; none if there is no file or no such table. Raises `PolicyFileError`."""
    if path is None:
        return ()
    given = read_document(path).table(EGRESS).table(_KEYS)
    return tuple(_place(one) for one in given["allow"].elements("places")) if "allow" in given else ()


def _place(place: DocumentPlace) -> ListedPlace:
    try:
        return read_listed(place.text())
    except InvalidValueError as error:
        raise place.error(error.problem) from None
