"""Which call started a sub-agent. Two of one type at once look alike: what is not certain is said to be inferred."""

from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct

from batonpass.adapters.claude_code.hooks.events import HookEvent
from batonpass.adapters.claude_code.hooks.session.state import HookSession, OfferedByCall
from batonpass.adapters.claude_code.transcripts.transcript_values import LinkedBy

UNKNOWN: Final = "unknown"

_LARGEST_META: Final = 1024 * 1024


class Meta(Struct, frozen=True, kw_only=True):
    """What the file beside a sub-agent's transcript says."""

    call: str
    parent: str | None  # the sub-agent that started it; None: the main conversation did


class OfferLink(Struct, frozen=True, kw_only=True):
    """The offer that a sub-agent took, and how that is known."""

    offered: OfferedByCall | None  # None: the call that started it was not seen
    how: str
    candidates: int = 1
    meta: Meta | None = None


def find_link(state: HookSession, event: HookEvent) -> OfferLink:
    """Return which offer a sub-agent took, from what is known at its first call or its end."""
    meta = read_meta(event)
    if meta is not None:
        offered = state.offer_of(meta.call)
        taken = offered is not None and (offered.child is not None or offered.ended)
        return OfferLink(offered=None if taken else offered, how=LinkedBy.META, meta=meta)
    waiting = list(state.open_offers(event.agent_type))
    if not waiting:
        return OfferLink(offered=None, how=UNKNOWN)
    # What somebody took by a guess may be ours, and what is left may be theirs: it is one guess for all of them.
    guessed = sum(1 for _ in state.guessed_offers(event.agent_type))
    return OfferLink(offered=waiting[0], how=LinkedBy.INFERRED, candidates=len(waiting) + guessed)


def read_meta(event: HookEvent) -> Meta | None:
    """Return what the file beside a sub-agent's transcript says; None if it is not there, or not yet."""
    path = transcript_of(event, event.agent)
    if path is None or event.agent is None:
        return None
    try:
        with path.with_name(f"{path.stem}.meta.json").open("rb") as file:
            found: Any = msgspec.json.decode(file.read(_LARGEST_META))
    except (OSError, msgspec.MsgspecError, ValueError, RecursionError):
        return None
    match found:
        case {"toolUseId": str(call)}:
            parent = found.get("parentAgentId")
            return Meta(call=call, parent=parent if isinstance(parent, str) else None)
        case _:
            return None


def transcript_of(event: HookEvent, agent: str | None) -> Path | None:
    """Return the transcript of a sub-agent, or of the main conversation."""
    if event.transcript is None or agent is None:
        return event.transcript
    return event.transcript.with_suffix("") / "subagents" / f"agent-{agent}.jsonl"
