"""The command that is run when something waits for a person."""

from datetime import timedelta

from msgspec import Struct

from batonpass.errors import InvalidValueError
from batonpass.model.base.checks import require_instance


class NotifySettings(Struct, frozen=True, kw_only=True):
    """The command that is run for every notice, and how long it may take."""

    command: tuple[str, ...]
    timeout: timedelta = timedelta(seconds=30)

    def __post_init__(self) -> None:
        if not self.command or not all(isinstance(word, str) for word in self.command):
            raise InvalidValueError("command", "is a list of words, the first of which is a program")
        if require_instance("timeout", self.timeout, timedelta) <= timedelta(0):
            raise InvalidValueError("timeout", "a command takes a while")
