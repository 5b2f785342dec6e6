"""A call on its way: what was found out about it, and what comes of it: it may be made now, or its result is known."""

import time
from collections.abc import Callable
from datetime import datetime
from typing import Any, Final, NoReturn

from msgspec import Struct, field

from batonpass.credentials import Credential
from batonpass.errors import BatonpassError, CallError, GrantError, GuardFailedError
from batonpass.guard.policy.gates import GateDecision
from batonpass.handoff.calls.call_receipts import write_denial
from batonpass.handoff.files.edited_files import NOTHING, Watched
from batonpass.handoff.files.path_spellings import Looks
from batonpass.handoff.grants.limit_use import Counted, Counting, Used
from batonpass.handoff.runtime.desk import Desk
from batonpass.handoff.runtime.run_state import Holding
from batonpass.handoff.tools.call_context import CallContext, Sayings
from batonpass.handoff.tools.declaration import Declared, ToolCall
from batonpass.handoff.tools.json_values import describe
from batonpass.model.base.ids import CallId, Digest, RunId
from batonpass.model.base.kinds import Mode
from batonpass.model.base.label import Label, Source
from batonpass.model.grants.call import Call
from batonpass.model.ledger.content import Content

GUARD: Final = "guard"
_NONE: Final = Digest("")  # until it is worked out


class PendingCall(Struct, kw_only=True):
    """One call between the moment that a door asks for it and its first receipt.

    Every step of `begin` takes it, reads what it needs and notes what it found. What stops a call goes through `refuse`
    or `deny`, so that there is no refusal without a receipt.
    """

    desk: Desk
    holding: Holding
    call: ToolCall[Any]
    declared: Declared  # about its tool
    beside: tuple[Content, ...] = ()  # what its door adds to each of its receipts, such as where it heard of the call
    made: bool = False  # it was made before anybody asked: it is judged and recorded, and nothing stops it any more

    described: bytes = b""  # tool and arguments: what is recorded, compared and made a key of
    number: int = 0  # which of the identical calls of its run it is, from 1
    key: Digest = _NONE  # the same for the same call in every attempt
    tried: Call | None = None  # as a grant sees it, or would; None if nothing could grant it
    counting: Counting = field(default_factory=Counting)
    used: Used = field(default_factory=dict)  # of what it counts against, how much was used up when it was looked at
    target_key: Digest | None = None
    label: Label | None = None  # of all that its run knows
    untrusted: tuple[Source, ...] = ()  # whose words from outside stand in its arguments
    gates: tuple[GateDecision, ...] = ()  # what would have held or denied it
    at: datetime | None = None  # when it is judged, once somebody asked
    looks: Looks = field(default_factory=dict)  # where the paths among its arguments lead
    flags: list[str] = field(default_factory=list)  # what would have stopped it, were it enforced
    reasons: list[str] = field(default_factory=list)  # the same in words
    put_off: Callable[["PendingCall"], None] | None = None  # a look that only decides what a refusal says

    @property
    def target(self) -> str | None:
        """Return what it would change, if its tool says so."""
        return None if self.call.declared.reads else self.call.target

    @property
    def aim(self) -> Digest:
        """Return the digest of what it would change, or if it does not say, of all of it."""
        return self.target_key or self.desk.secrets.digest(self.holding.root, b"target", self.described)

    @property
    def enforced(self) -> bool:
        """Return whether what speaks against it stops it."""
        return not self.made and self.holding.working.mode is Mode.ENFORCED

    @property
    def held_to_rules(self) -> bool:
        """Return whether its run is enforced: then the same speaks against it, made already or not."""
        return self.holding.working.mode is Mode.ENFORCED

    def identify(self) -> None:
        """Describe it once, and give it its number and its key. Raises `GuardFailedError`."""
        try:
            self.described = self.call.described
        except BatonpassError:
            raise
        except Exception as error:
            # Arguments are somebody's objects, and may raise anything. What cannot be described cannot be recorded.
            if not self.enforced:
                raise
            self.described = describe({"tool": self.declared.name})
            self.deny(GUARD, self.failed(error))
        digest, root = self.desk.secrets.digest, self.holding.root
        scope = self.holding.scope.encode()
        while True:
            self.number = self.holding.count(self.described)
            self.key = digest(root, b"call", scope, self.described, str(self.number).encode())
            # Another process that worked on this run may have made so many of them already.
            if self.key not in self.holding.keys_made:
                return

    def take_back(self) -> None:
        """Let the next call like it have its number: it was not made."""
        self.holding.uncount(self.described, self.number)

    def present(self) -> datetime:
        """Return the time at which it is judged: one for all that is asked about it, and never one before."""
        if self.at is None:
            self.at = self.holding.present(self.desk.clock)
        return self.at

    def stop_unjudged(self, error: Exception) -> None:
        """Stop an enforced call that a guard failed to judge; one that is only watched goes on to the next question.

        Called where a guard's error is handled. What a guard says itself, by an error of ours, is raised as it is.
        """
        if isinstance(error, BatonpassError):
            raise error
        self.refuse(GUARD, self.failed(error))

    def refuse(self, rule: str, error: CallError | GrantError, *, would: str = "would_deny") -> None:
        """Stop it if it is enforced, as `deny` does; else note what would have stopped it."""
        self.catch_up()
        if self.enforced:
            self.deny(rule, error)
        self.flags.append(f"{would}.{rule}")
        self.reasons.append(str(error))

    def deny(self, rule: str, error: CallError | GrantError) -> NoReturn:
        """Record that it was refused, by which rule and in words; then raise the error."""
        self.catch_up()
        write_denial(
            self.desk,
            self.holding,
            self.declared.name,
            self.described,
            rule=rule,
            reason=str(error),
            shown=self.declared.shown or self.target_shown(),
            beside=self.beside,
        )
        raise error

    def catch_up(self) -> None:
        """Look at what was put off, before anybody is refused or held: that may be the reason which comes first."""
        if (look := self.put_off) is not None:
            self.put_off = None
            look(self)

    def target_shown(self) -> str | None:
        """Return what it would change as people are told it; None if its arguments cannot say it."""
        try:
            return self.target
        except Exception:  # noqa: BLE001 - a tool's own function says what is changed; a denial is written without it
            return None

    def failed(self, error: Exception) -> GuardFailedError:
        """Return in words that a guard failed."""
        return GuardFailedError(self.declared.name, f"{type(error).__name__}: {error}")


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
