"""What a tool says, while it runs, that it changed."""

import threading
from typing import Final

from msgspec import Struct

from batonpass.errors import InvalidValueError
from batonpass.model.checks import as_member, require_integer, require_text
from batonpass.model.effect import EffectKind

MOST_EFFECTS: Final = 1000


class Said(Struct, frozen=True, kw_only=True):
    """One thing that a tool says it changed."""

    kind: EffectKind
    target: str
    how: str | None = None
    count: int | None = None


class Sayings:
    """What one call says that it changed, until it has ended. Several threads may say something."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._said: list[Said] = []
        self._cut = False
        self._over = False

    def add(self, kind: EffectKind | str, target: str, *, how: str | None = None, count: int | None = None) -> None:
        """Note an effect. Raises `InvalidValueError` for one that is none, and once the call has ended."""
        known = as_member("kind", kind, EffectKind)
        require_text("target", target)
        if how is not None:
            require_text("how", how)
        if count is not None:
            require_integer("count", count)
        with self._lock:
            if self._over:
                raise InvalidValueError("effect", "the call has ended: its outcome is written")
            if len(self._said) < MOST_EFFECTS:
                self._said.append(Said(kind=known, target=target, how=how, count=count))
            else:
                self._cut = True

    def take(self) -> tuple[tuple[Said, ...], bool]:
        """Return all that was said, and whether there was more; from now on it is too late."""
        with self._lock:
            self._over = True
            return tuple(self._said), self._cut
