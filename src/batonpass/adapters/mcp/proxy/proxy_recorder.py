"""Recording for one proxy: one root run, begun by the first call, in a ledger that may come and go.

Where nothing can be written, a proxy that only watches goes on, and says later how much it missed; one that enforces
makes no call that is not on record.
"""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from batonpass.errors import BatonpassError, CallError, CallSuspendedError, GrantError
from batonpass.handoff.tools.declaration import Declared
from batonpass.handoff.tools.foreign_call import ForeignCall
from batonpass.handoff.tools.json_values import describe
from batonpass.model.base.ids import AgentId, CallId, HandoffId, SessionId
from batonpass.model.base.kinds import Mode
from batonpass.model.bodies.body import Outcome
from batonpass.model.grants.grant import Grant

if TYPE_CHECKING:
    from batonpass.handoff.approvals.decision_sheet import Material
    from batonpass.handoff.calls.pending_call import Begun, Replayed
    from batonpass.handoff.runtime.desk import Desk
    from batonpass.handoff.runtime.run_state import Holding
    from batonpass.relay import Relay

# A client starts all of its servers and calls few of them. What acts is loaded with the first call, not with the proxy.

# Larger results are passed on whole and recorded by digest: a store keeps no larger content.
LARGEST = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class ProxiedCall(ForeignCall):
    """A call that a client wants to make. A grant sees the tool, `call:SERVER/TOOL`, and its arguments."""

    said: Any = None  # all that its message says besides the method; a path may stand anywhere in it

    @property
    def mentioned(self) -> Mapping[str, Any]:
        """Return everything in which a path to what is protected may stand: names of arguments as well."""
        return {"arguments": self.kwargs, "params": self.said}

    def is_same(self, other: "ProxiedCall") -> bool:
        """Return whether both ask for the same, to the last argument."""
        # As they are recorded: to Python, 1 is True and 1.0.
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
    """Return a call of a client's. What a server makes of its arguments only it knows, unless it is local."""
    return ProxiedCall(declared, dict, (), arguments, flags=flags, to=of, local=local, said=said)


class CallRefusedError(Exception):
    """The server answered that the call failed."""

    code = "mcp.failed"


class ProxyOrigin(Struct, frozen=True, kw_only=True):
    """On whose behalf a proxy records, and where its run belongs."""

    by: str
    agent: str | None = None  # None: as the client calls itself
    session: SessionId | None = None
    series: str | None = None
    grant: Grant | None = None  # what the client may; None: what the table of its agent says, where it is enforced
    handoff: HandoffId | None = None  # the proxy works on this one, within what it grants; None: for itself


class ProxyRecorder:
    """Writes what one client does with one server. Safe to use from several threads."""

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
        """Return for whom the client works."""
        return self._origin.by

    def meet(self, client: AgentId) -> None:
        """Learn what the client calls itself; what counts is what it says before its first call."""
        self._client = client

    @property
    def can_ask(self) -> bool:
        """Return whether a held call can wait for the person at the client: an attempt at a handoff ends with it."""
        return self._origin.handoff is None

    def begin(self, call: ProxiedCall) -> "Begun | Replayed | None":
        """Record that a call is about to be made; None if it could not be recorded and is made all the same.

        An attempt at a handoff gets what the one before it finished. Raises `CallError` and `GrantError` for a call
        that must not be made, and `BatonpassError` if it cannot be recorded and has to be.
        """
        from batonpass.handoff.calls.begin import begin_call  # noqa: PLC0415 - as above

        try:
            relay, holding = self._run()
            return begin_call(_desk(relay), holding, call)
        except CallSuspendedError:
            if self._origin.handoff is not None:
                with self._lock:
                    self._holding = None  # that attempt is over; once somebody approved, the next one goes on
            raise
        except (CallError, GrantError):
            raise
        except BatonpassError as error:
            if self.enforced:
                raise
            self.miss(error)
            return None

    def finish(self, begun: "Begun", call: ProxiedCall, result: Mapping[str, Any], line: bytes) -> None:
        """Record what a call returned."""
        from batonpass.handoff.calls.finish import finish_call  # noqa: PLC0415 - as above

        kept: object = result if len(line) <= LARGEST else {"shown": f"{len(line):,} bytes"}
        relay, holding = self._run()
        self.attempt(lambda: finish_call(_desk(relay), holding, begun, call, kept))

    def fail(self, begun: "Begun", call: ProxiedCall, sentence: str) -> None:
        """Record that the server said that a call failed."""
        from batonpass.handoff.calls.finish import fail_call  # noqa: PLC0415 - as above

        relay, holding = self._run()
        self.attempt(lambda: fail_call(_desk(relay), holding, begun, call, CallRefusedError(sentence)))

    def material(self, held: CallId) -> "Material":
        """Return what somebody has to be shown before they decide about a held call."""
        relay, _ = self._run()
        return relay.held_call(held).material()

    def settle(self, held: CallId, *, approved: bool, shown: "Material", looked_ms: int) -> None:
        """Record what the person at the client decided about a held call, as said and not proven.

        Raises `BatonpassError` if that is not theirs to decide, or not enough.
        """
        relay, _ = self._run()
        call = relay.held_call(held)
        (call.approve if approved else call.deny)(
            by=self.principal, reason="answered at the client", shown=shown, looked_ms=looked_ms
        )

    def keep(self, name: str, body: bytes) -> None:
        """Keep something that the server said, as data from outside."""
        from batonpass.handoff.transfer.run_items import attach  # noqa: PLC0415 - as above

        relay, holding = self._run()
        attach(_desk(relay), holding, name, body, media_type="application/json", untrusted=True)

    def close(self, error: BaseException | None = None) -> None:
        """End the run, if one was begun. Calls without an outcome stay in doubt."""
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
        """Write what has happened already: nothing can be refused any more, and without it the call is in doubt."""
        try:
            write()
        except Exception as error:  # noqa: BLE001 - whatever is wrong with us, the client gets its answer
            self.complain(error)

    def complain(self, error: Exception) -> None:
        """Say that something is not on record; once, as a store that is gone is gone for every call."""
        said = str(error) if isinstance(error, BatonpassError) else f"{type(error).__name__}: {error}"
        self.warn(f"not recorded: {said}")

    def warn(self, sentence: str) -> None:
        """Say something to whoever reads our messages; not twice in a row."""
        if sentence != self._complained:
            self._complained = sentence
            self._tell(sentence)


def _desk(relay: "Relay") -> "Desk":
    from batonpass.relay import desk_of  # noqa: PLC0415 - it is loaded when there is a relay: with the first call

    return desk_of(relay)
