"""A call between the request of a door and its first receipt, and the two ways in which that ends well.

Either the call may be made now (`Begun`), or its result is known already (`Replayed`).
"""

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
from batonpass.handoff.tools.declaration import Declared
from batonpass.handoff.tools.json_values import describe
from batonpass.handoff.tools.tool_call import ToolCall
from batonpass.model.base.ids import CallId, Digest, RunId
from batonpass.model.base.kinds import Mode
from batonpass.model.base.label import Label, Source
from batonpass.model.grants.call import Call
from batonpass.model.ledger.content import Content

GUARD: Final = "guard"
_NONE: Final = Digest("")  # until `identify` has computed it


class PendingCall(Struct, kw_only=True):
    """One call between the moment that a door asks for it and its first receipt.

    Every step of `begin` takes it, reads from it and notes its findings in it. Every refusal goes through `refuse` or
    `deny`, so that there is none without a receipt.
    """

    desk: Desk
    holding: Holding
    call: ToolCall[Any]
    declared: Declared  # the declaration of its tool
    beside: tuple[Content, ...] = ()  # contents that its door adds to its receipts, such as the hook event
    made: bool = False  # it was made before anybody asked: it is checked and recorded, and nothing stops it

    described: bytes = b""  # tool and arguments, as they are recorded and compared
    number: int = 0  # its number among the identical calls of its run, from 1
    key: Digest = _NONE  # the same for the same call in every attempt
    tried: Call | None = None  # the call as a grant sees it; None if no grant can name it
    counting: Counting = field(default_factory=Counting)
    used: Used = field(default_factory=dict)  # how much of each limit was used when we looked
    target_key: Digest | None = None
    label: Label | None = None  # of everything that its run knows
    untrusted: tuple[Source, ...] = ()  # sources whose words stand in its arguments
    gates: tuple[GateDecision, ...] = ()  # decisions that would have held or denied it
    at: datetime | None = None  # the time of all checks of this call; see `present`
    looks: Looks = field(default_factory=dict)  # where the paths in its arguments lead, each looked up once
    flags: list[str] = field(default_factory=list)  # codes of the rules that would have stopped it if it were enforced
    reasons: list[str] = field(default_factory=list)  # the same as sentences
    put_off: Callable[["PendingCall"], None] | None = None  # a check that only a refusal or a hold needs

    @property
    def target(self) -> str | None:
        """Return the target that it would change, if its tool names one."""
        return None if self.call.declared.reads else self.call.target

    @property
    def aim(self) -> Digest:
        """Return the digest of its target; without a target, that of tool and arguments."""
        return self.target_key or self.desk.secrets.digest(self.holding.root, b"target", self.described)

    @property
    def enforced(self) -> bool:
        """Return whether an objection stops it: its run is enforced, and it was not made yet."""
        return not self.made and self.holding.working.mode is Mode.ENFORCED

    @property
    def held_to_rules(self) -> bool:
        """Return whether its run is enforced: then the same objections count, whether it was made already or not."""
        return self.holding.working.mode is Mode.ENFORCED

    def identify(self) -> None:
        """Describe it once, and give it its number and its key. Raises `GuardFailedError`."""
        try:
            self.described = self.call.described
        except BatonpassError:
            raise
        except Exception as error:
            # Arguments are foreign objects and may raise anything. A call that cannot be described cannot be recorded.
            if not self.enforced:
                raise
            self.described = describe({"tool": self.declared.name})
            self.deny(GUARD, self.failed(error))
        digest, root = self.desk.secrets.digest, self.holding.root
        scope = self.holding.scope.encode()
        while True:
            self.number = self.holding.count(self.described)
            self.key = digest(root, b"call", scope, self.described, str(self.number).encode())
            # Another process that worked on this run may have made a call with this number already.
            if self.key not in self.holding.keys_made:
                return

    def take_back(self) -> None:
        """Free its number for the next identical call, because this one was not made."""
        self.holding.uncount(self.described, self.number)

    def present(self) -> datetime:
        """Return the time of all its checks: one and the same, and never before a time that its run has seen."""
        if self.at is None:
            self.at = self.holding.present(self.desk.clock)
        return self.at

    def stop_unjudged(self, error: Exception) -> None:
        """Stop an enforced call if a guard failed with an error; an observed call goes on to the next check.

        A `BatonpassError` is the answer of the guard and no failure, so it is raised again as it is.
        """
        if isinstance(error, BatonpassError):
            raise error
        self.refuse(GUARD, self.failed(error))

    def refuse(self, rule: str, error: CallError | GrantError, *, would: str = "would_deny") -> None:
        """Deny it if it is enforced; else note that this would have stopped it."""
        self.catch_up()
        if self.enforced:
            self.deny(rule, error)
        self.flags.append(f"{would}.{rule}")
        self.reasons.append(str(error))

    def deny(self, rule: str, error: CallError | GrantError) -> NoReturn:
        """Record that it was denied, with the rule and a sentence; then raise the error."""
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
        """Run the check that was put off. Refusals and holds call this first, because that check comes before them."""
        if (look := self.put_off) is not None:
            self.put_off = None
            look(self)

    def target_shown(self) -> str | None:
        """Return its target for people to read; None if the tool's own function fails to name it."""
        try:
            return self.target
        except Exception:  # noqa: BLE001 - the function of a tool may raise anything; the denial is written without a target
            return None

    def failed(self, error: Exception) -> GuardFailedError:
        """Return the error that says that a guard failed."""
        return GuardFailedError(self.declared.name, f"{type(error).__name__}: {error}")


class Begun(Struct, frozen=True, kw_only=True):
    """A call that may be made now: its request is durable, or its run is observed and could not write it."""

    call: CallId
    key: Digest | None  # the same in every attempt, so that an idempotent tool recognises the call
    attempt: int
    described: bytes = b""
    number: int = 1  # its number among the identical calls of its run, from 1
    cache: Digest | None = None  # the key under which its result is cached, if it is
    recorded: bool = True  # False if its request could not be written; then its outcome is not written either
    credential: Credential | None = None
    watched: Watched = NOTHING  # the files that its arguments name, as they were before
    counted: tuple[Counted, ...] = ()  # the limits that it counts against
    looked: bool = False  # whether we look at the whole work tree right before and after it
    sayings: Sayings = field(default_factory=Sayings)
    began: int | None = field(default_factory=time.perf_counter_ns)  # None: it began in another process

    @property
    def took_us(self) -> int | None:
        """Return how many microseconds have passed since it began; None if it began in another process."""
        return None if self.began is None else (time.perf_counter_ns() - self.began) // 1000

    def context(self, run: RunId) -> CallContext:
        """Return the context that the tool can read while it runs."""
        return CallContext(
            run=run,
            call=self.call,
            key=self.key or Digest(""),
            attempt=self.attempt,
            credential=self.credential,
            sayings=self.sayings,
        )


class Replayed(Struct, frozen=True):
    """A call that is not made: an earlier attempt finished it, somebody settled to skip it, or its result is cached."""

    value: Any
