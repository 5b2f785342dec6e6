"""The table `[notify]`: the command that is run when something waits for a person."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from batonpass.errors import InvalidValueError
from batonpass.model.base.durations import read_duration
from batonpass.model.policy.notify_settings import NotifySettings
from batonpass.policy.document import NOTIFY, DocumentPlace, read_document


def _timeout(place: DocumentPlace) -> Any:  # noqa: ANN401 - as every reader of a value
    try:
        return read_duration("timeout", place.value)
    except InvalidValueError as error:
        raise place.error(error.problem) from None


_KEYS: Final[Mapping[str, Callable[[DocumentPlace], Any]]] = {
    "command": lambda place: place.texts("words"),
    "timeout": _timeout,
}


def read_notify(path: Path) -> NotifySettings | None:
    """Return the settings for notices; None if a file has no such table. Raises `PolicyFileError`."""
    place = read_document(path).table(NOTIFY)
    given = place.table(_KEYS)
    if not given:
        return None
    try:
        return NotifySettings(**{key: _KEYS[key](value) for key, value in given.items()})
    except (InvalidValueError, TypeError) as error:
        problem = error.problem if isinstance(error, InvalidValueError) else 'needs a command, such as ["notify-send"]'
        raise place.error(problem) from None
