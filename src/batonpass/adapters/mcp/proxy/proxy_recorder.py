"""Records for one proxy: one root run, started by the first call, or an attempt at a handoff.

If the ledger cannot be written, an observing proxy goes on and records later how many calls it missed. An enforcing
proxy makes no call that is not recorded.
"""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from batonpass.errors import BatonpassError, CallError, CallSuspendedError, GrantError
from batonpass.guard.policy.gates import DoorFacts
from batonpass.handoff.tools.declaration import Declared
from batonpass.handoff.tools.foreign_call import ForeignCall
from batonpass.handoff.tools.json_values import describe
from batonpass.model.base.ids import AgentId, CallId, HandoffId, SessionId
from batonpass.model.base.kinds import Mode
from batonpass.model.bodies.body import Outcome
from batonpass.model.grants.grant import Grant
from batonpass.model.policy.policy_rules import DoorName

if TYPE_CHECKING:
    from batonpass.handoff.approvals.decision_sheet import Material
    from batonpass.handoff.calls.pending_call import Begun, Replayed
    from batonpass.handoff.runtime.desk import Desk
    from batonpass.handoff.runtime.run_state import Holding
    from batonpass.relay import Relay

# A client starts all of its servers and calls few of them, so the runtime is imported with the first call.

# Larger results are passed on whole and recorded by digest only: no store keeps a larger content.
LARGEST = 16 * 1024 * 1024


_DOOR: Final = DoorFacts(door=DoorName.MCP)


@dataclass(frozen=True, slots=True)
class ProxiedCall(ForeignCall):
    """A call that a client wants to make. A grant sees the tool as `call:SERVER/TOOL`, and its arguments."""

    said: Any = None  # all params of its message; a path may stand anywhere in them

    @property
    def mentioned(self) -> Mapping[str, Any]:
        """Return everything in which a path to protected files may stand, also names of arguments."""
        return {"arguments": self.kwargs, "params": self.said}

    @property
    def told_by_door(self) -> DoorFacts:
        """Return which door this is."""
        return _DOOR

    def is_same(self, other: "ProxiedCall") -> bool:
        """Return whether both calls ask for exactly the same, arguments included."""
        # Compared as recorded: in Python, 1 equals True and 1.0.
        mine, theirs = (describe({"of": call.to, "arguments": call.arguments}) for call in (self, other))
        return mine == theirs


def proxied(
    declared: Declared,
    arguments: Mapping[str, Any],
    of: str,
    *,
    said: object = None,
    local: bool = False,
    flags: tuple[str, ...] = (),
) -> ProxiedCall:
    """Return a client's call. Only the server knows the meaning of its arguments, unless it is local."""
    return ProxiedCall(declared, dict, (), arguments, flags=flags, to=of, local=local, said=said)


class CallRefusedError(Exception):
    """The server answered that the call failed."""

    code = "mcp.failed"


class ProxyOrigin(Struct, frozen=True, kw_only=True):
    """On whose behalf a proxy records, and where its run belongs."""

    by: str
    agent: str | None = None  # None: the name that the client gives itself
    session: SessionId | None = None
    series: str | None = None
    grant: Grant | None = None  # of the client; None: the one in the policy for its agent, if enforced
    handoff: HandoffId | None = None  # the proxy works on this handoff, within its grant; None: a run of its own


class ProxyRecorder:
    """Records the calls of one client to one server. Safe to use from several threads."""

    def __init__(
        self, open_relay: "Callable[[], Relay]", origin: ProxyOrigin, *, enforced: bool, tell: Callable[[str], None]
    ) -> None:
        self._open = open_relay
        self._origin = origin
        self._tell = tell
        self._mode = Mode.ENFORCED if enforced else Mode.OBSERVED
        self._client = AgentId("mcp-client")
        self._relay: Relay | None = None
        self._holding: Holding | None = None
        self._missed = 0
        self._complained: str | None = None
        self._lock = threading.Lock()

    @property
    def enforced(self) -> bool:
        """Return whether nothing may happen that is not recorded."""
        return self._mode is Mode.ENFORCED

    @property
    def principal(self) -> str:
        """Return the principal for whom the client works."""
        return self._origin.by

    def meet(self, client: AgentId) -> None:
        """Set the name of the client. It counts only before the first call."""
        self._client = client

    @property
    def can_ask(self) -> bool:
        """Return whether the person at the client can be asked about a held call.

        In an attempt at a handoff, a hold ends it.
        """
        return self._origin.handoff is None

    def begin(self, call: ProxiedCall) -> "Begun | Replayed | None":
        """Record that a call is about to be made; None if it cannot be recorded and is made anyway.

        An attempt at a handoff gets the recorded results of the attempt before it. Raises `CallError` and `GrantError`
        for a call that must not be made, and another `BatonpassError` if an enforced call cannot be recorded.
        """
        from batonpass.handoff.calls.begin import begin_call  # noqa: PLC0415 - as above

        try:
            relay, holding = self._run()
            return begin_call(_desk(relay), holding, call)
        except CallSuspendedError:
            if self._origin.handoff is not None:
                with self._lock:
                    self._holding = None  # that attempt is over; once somebody approves, the next one goes on
            raise
        except (CallError, GrantError):
            raise
        except BatonpassError as error:
            if self.enforced:
                raise
            self.miss(error)
            return None

    def finish(self, begun: "Begun", call: ProxiedCall, result: Mapping[str, Any], line: bytes) -> None:
        """Record the result of a call."""
        from batonpass.handoff.calls.finish import finish_call  # noqa: PLC0415 - as above

        kept: object = result if len(line) <= LARGEST else {"shown": f"{len(line):,} bytes"}
        relay, holding = self._run()
        self.attempt(lambda: finish_call(_desk(relay), holding, begun, call, kept))

    def fail(self, begun: "Begun", call: ProxiedCall, sentence: str) -> None:
        """Record that the server reported a failure of a call."""
        from batonpass.handoff.calls.finish import fail_call  # noqa: PLC0415 - as above

        relay, holding = self._run()
        self.attempt(lambda: fail_call(_desk(relay), holding, begun, call, CallRefusedError(sentence)))

    def material(self, held: CallId) -> "Material":
        """Return the material that an approver must see before ruling on a held call."""
        relay, _ = self._run()
        return relay.held_call(held).material()

    def settle(self, held: CallId, *, approved: bool, shown: "Material", looked_ms: int) -> None:
        """Record the ruling of the person at the client about a held call, as said and not proven.

        Raises `BatonpassError` if this person may not rule on it, or one ruling is not enough.
        """
        relay, _ = self._run()
        call = relay.held_call(held)
        (call.approve if approved else call.deny)(
            by=self.principal, reason="answered at the client", shown=shown, looked_ms=looked_ms
        )

    def keep(self, name: str, body: bytes) -> None:
        """Keep something that the server said as an untrusted artifact."""
        from batonpass.handoff.runtime.run_items import attach  # noqa: PLC0415 - as above

        relay, holding = self._run()
        attach(_desk(relay), holding, name, body, media_type="application/json", untrusted=True)

    def close(self, error: BaseException | None = None) -> None:
        """End the run, if there is one. Calls without an outcome stay in doubt."""
        with self._lock:
            relay, holding = self._relay, self._holding
        if relay is None:
            return
        if holding is not None:
            from batonpass.handoff.transfer.close import close_run  # noqa: PLC0415 - as above

            outcome = Outcome.COMPLETED if error is None else Outcome.FAILED
            self.attempt(lambda: close_run(_desk(relay), holding, outcome, error=error))
        relay.close()

    def _run(self) -> "tuple[Relay, Holding]":
        with self._lock:
            if self._relay is None:
                self._relay = self._open()
            if self._holding is None:
                self._holding = self._begin(self._relay)
                self._holding.unrecorded, self._missed = self._missed, 0
            return self._relay, self._holding

    def _begin(self, relay: "Relay") -> "Holding":
        if self._origin.handoff is not None:
            from batonpass.handoff.transfer.accept import accept  # noqa: PLC0415 - as above

            return accept(_desk(relay), self._origin.handoff)
        from batonpass.handoff.sessions.start import start_run  # noqa: PLC0415 - as above

        return start_run(
            _desk(relay),
            None,
            by=self._origin.by,
            agent=self._origin.agent or self._client,
            series=self._origin.series,
            session=self._origin.session,
            mode=self._mode,
            grant=self._origin.grant,
        )

    def miss(self, error: Exception) -> None:
        """Count a call that is made without being recorded."""
        with self._lock:
            if self._holding is None:
                self._missed += 1
            else:
                with self._holding.lock:
                    self._holding.unrecorded += 1
        self.complain(error)

    def attempt(self, write: Callable[[], None]) -> None:
        """Record something that has already happened. A failure is only reported: the call is then in doubt."""
        try:
            write()
        except Exception as error:  # noqa: BLE001 - whatever is wrong with us, the client gets its answer
            self.complain(error)

    def complain(self, error: Exception) -> None:
        """Report that something is not recorded; once, because a store that is gone is gone for every call."""
        said = str(error) if isinstance(error, BatonpassError) else f"{type(error).__name__}: {error}"
        self.warn(f"not recorded: {said}")

    def warn(self, sentence: str) -> None:
        """Tell the user something, but not the same sentence twice in a row."""
        if sentence != self._complained:
            self._complained = sentence
            self._tell(sentence)


def _desk(relay: "Relay") -> "Desk":
    from batonpass.relay import desk_of  # noqa: PLC0415 - it is loaded when there is a relay: with the first call

    return desk_of(relay)
