"""Decides whether a call goes on to the server. Every call of a proxy passes here."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from msgspec import Struct

from batonpass.adapters.mcp.proxy.proxy_recorder import ProxiedCall, ProxyRecorder
from batonpass.errors import (
    BatonpassError,
    CallError,
    CallProtectedError,
    CallSuspendedError,
    GrantError,
    HandoffError,
)
from batonpass.handoff.files.protected_paths import Protected
from batonpass.handoff.shell.call_reach import find_touched
from batonpass.handoff.tools.refusal_sentences import not_made, sentence_for
from batonpass.model.base.ids import CallId

if TYPE_CHECKING:
    from batonpass.handoff.calls.pending_call import Begun

_SHOWN: Final = "shown"  # key that replaces a result too large to keep


class GoOn(Struct, frozen=True):
    """The call may be made. Its request is recorded, unless an observing proxy could not write."""

    begun: "Begun | None"


class KnownAnswer(Struct, frozen=True):
    """An earlier attempt made the call, so it is not made again. This is the recorded answer."""

    result: Mapping[str, Any]


class CallHeld(Struct, frozen=True):
    """The call waits for a ruling."""

    call: CallId
    rule: str
    why: str
    sentence: str  # for the model


class CallDenied(Struct, frozen=True):
    """The call must not be made."""

    sentence: str  # for the model


Decision: TypeAlias = GoOn | KnownAnswer | CallHeld | CallDenied


class Guard:
    """Decides about the calls of one proxy. Safe to use from several threads."""

    def __init__(self, recorder: ProxyRecorder, protected: Protected | None = None) -> None:
        self._recorder = recorder
        self._protected = protected

    def decide(self, call: ProxiedCall) -> Decision:
        """Return the decision about a call. Never raises: in an enforcing proxy, every failure is a denial."""
        try:
            return self._judge(call)
        except CallSuspendedError as error:
            return CallHeld(CallId(error.call), error.rule, error.sentence, sentence_for(error))
        except (CallError, GrantError, HandoffError) as error:
            return CallDenied(sentence_for(error))
        except BatonpassError as error:
            return CallDenied(
                not_made(f"nothing is done here that is not recorded, and that is impossible now: {error}")
            )
        except Exception as error:  # noqa: BLE001 - a guard that crashes stops what is enforced, and nothing else
            self._recorder.miss(error)
            words = f"the guard failed, and a call that it cannot judge is not made: {type(error).__name__}"
            return CallDenied(not_made(words)) if self._recorder.enforced else GoOn(None)

    def _judge(self, call: ProxiedCall) -> Decision:
        """Record the call, which judges it too. If nothing can be recorded, check protected paths here."""
        from batonpass.handoff.calls.pending_call import Replayed  # noqa: PLC0415 - with the first call, as the recorder does it

        begun = self._recorder.begin(call)
        if begun is None and self._protected is not None:
            # Nothing can be recorded, so nobody has judged the call. This would be the moment to tamper with the
            # record.
            found = find_touched(self._protected, call, enforced=self._recorder.enforced)
            if found is not None:
                return CallDenied(sentence_for(CallProtectedError(call.declared.name, found.does, found.instead)))
        if not isinstance(begun, Replayed):
            return GoOn(begun)
        if isinstance(begun.value, dict) and _SHOWN not in begun.value:
            return KnownAnswer(begun.value)
        return CallDenied(not_made("an earlier attempt made this call, and its result was not kept; go on without it"))
