"""What comes of asking for a call: it may be made now, or it need not be, as its result is known."""

import time
from typing import Any

from msgspec import Struct, field

from batonpass.credentials import Credential
from batonpass.handoff.calls.context import CallContext
from batonpass.handoff.calls.edited_files import NOTHING, Watched
from batonpass.handoff.calls.limits import Counted
from batonpass.handoff.calls.sayings import Sayings
from batonpass.model.ids import CallId, Digest, RunId


class Begun(Struct, frozen=True, kw_only=True):
    """A call that may be made now: its request is durable, or its run is only watched."""

    call: CallId
    key: Digest | None  # the same for the same call in every attempt: what an idempotent tool recognises it by
    attempt: int
    described: bytes = b""
    number: int = 1  # which of the identical calls of its run it is, from 1
    cache: Digest | None = None  # under what its result is kept for a while, if it is
    recorded: bool = True  # False if its request could not be written; then its outcome is not, either
    credential: Credential | None = None
    watched: Watched = NOTHING  # the files that its arguments name, as they were before
    counted: tuple[Counted, ...] = ()  # what it counts against
    looked: bool = False  # whether the whole work tree is looked at, right before it and after
    sayings: Sayings = field(default_factory=Sayings)
    began: int | None = field(default_factory=time.perf_counter_ns)  # None: another process saw it begin

    @property
    def took_us(self) -> int | None:
        """Return how long it has taken until now; None if nobody here knows when it began."""
        return None if self.began is None else (time.perf_counter_ns() - self.began) // 1000

    def context(self, run: RunId) -> CallContext:
        """Return what the tool can know about the call."""
        return CallContext(
            run=run,
            call=self.call,
            key=self.key or Digest(""),
            attempt=self.attempt,
            credential=self.credential,
            sayings=self.sayings,
        )


class Replayed(Struct, frozen=True):
    """A call that need not be made: an earlier attempt finished it, or its result is kept and fresh."""

    value: Any
