"""Whether a call goes on to the server: the one place that every call passes, and where rights are asked for."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

from batonpass.adapters.mcp.protecting import find_protected
from batonpass.adapters.mcp.recorder import ProxiedCall, Recorder
from batonpass.errors import BatonpassError, CallError, CallSuspendedError, GrantError, HandoffError
from batonpass.handoff.calls.begun import Begun, Replayed
from batonpass.handoff.calls.sentences import not_made, sentence_for
from batonpass.model.ids import CallId
from batonpass.model.visible import visible

PROTECTED: Final = "mcp.protected"
_SHOWN: Final = "shown"  # stands in the place of what was too large to keep


@dataclass(frozen=True, slots=True)
class GoOn:
    """The call may be made; its request is on record, unless nothing could be written and the proxy only watches."""

    begun: Begun | None


@dataclass(frozen=True, slots=True)
class Known:
    """The call was made by an earlier attempt, and is not made again: this is what the server answered then."""

    result: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Held:
    """The call waits for somebody to let it be made."""

    call: CallId
    rule: str
    why: str
    sentence: str  # what a model is told


@dataclass(frozen=True, slots=True)
class Denied:
    """The call must not be made."""

    sentence: str  # what a model is told


Decision: TypeAlias = GoOn | Known | Held | Denied


class Guard:
    """Decides about the calls of one proxy. Safe to use from several threads."""

    def __init__(self, recorder: Recorder, home: Path | None = None) -> None:
        self._recorder = recorder
        self._home = home

    def decide(self, call: ProxiedCall) -> Decision:
        """Return whether a call is made now."""
        try:
            return self._judge(call)
        except CallSuspendedError as error:
            return Held(CallId(error.call), error.rule, error.sentence, sentence_for(error))
        except (CallError, GrantError, HandoffError) as error:
            return Denied(sentence_for(error))
        except BatonpassError as error:
            return Denied(not_made(f"nothing is done here that is not recorded, and that is impossible now: {error}"))
        except Exception as error:  # noqa: BLE001 - a guard that crashes stops what is enforced, and nothing else
            self._recorder.miss(error)
            words = f"the guard failed, and what it cannot judge is not done here: {type(error).__name__}"
            return Denied(not_made(words)) if self._recorder.enforced else GoOn(None)

    def _judge(self, call: ProxiedCall) -> Decision:
        """Ask one thing after the other. What the relay asks, constraints and gates, comes last, with the record."""
        if self._home is not None and (named := find_protected(call.mentioned, self._home)) is not None:
            # Watched or enforced: whoever can change the record could make all of this worthless.
            self._recorder.deny(call, PROTECTED)
            return Denied(
                not_made(f"{visible(named)} is where the record is kept, which no agent may touch; leave it alone")
            )
        begun = self._recorder.begin(call)
        if not isinstance(begun, Replayed):
            return GoOn(begun)
        if isinstance(begun.value, dict) and _SHOWN not in begun.value:
            return Known(begun.value)
        return Denied(not_made("an earlier attempt made this call, and what it returned is not kept; go on without it"))
