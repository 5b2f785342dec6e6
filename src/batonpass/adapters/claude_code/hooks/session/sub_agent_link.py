"""Finds the call that started a sub-agent. Two of one type look alike, so an uncertain link is marked as inferred."""

from pathlib import Path
from typing import Final

from msgspec import Struct

from batonpass.adapters.claude_code.hooks.events import HookEvent
from batonpass.adapters.claude_code.hooks.session.state import HookSession, OfferedByCall
from batonpass.adapters.claude_code.transcripts import transcript
from batonpass.adapters.session_files.session_values import LinkedBy

UNKNOWN: Final = "unknown"


class Meta(Struct, frozen=True, kw_only=True):
    """The content of the file next to a sub-agent's transcript."""

    call: str
    parent: str | None  # the sub-agent that started it; None: the main conversation


class OfferLink(Struct, frozen=True, kw_only=True):
    """The offer that a sub-agent took, and how that is known."""

    offered: OfferedByCall | None  # None: its call was not seen
    how: str
    candidates: int = 1
    meta: Meta | None = None


def find_link(state: HookSession, event: HookEvent) -> OfferLink:
    """Return the offer that a sub-agent took, from the facts at its first call or its end."""
    meta = read_meta(event)
    if meta is not None:
        offered = state.offer_of(meta.call)
        taken = offered is not None and (offered.child is not None or offered.ended)
        return OfferLink(offered=None if taken else offered, how=LinkedBy.META, meta=meta)
    waiting = list(state.open_offers(event.agent_type))
    if not waiting:
        return OfferLink(offered=None, how=UNKNOWN)
    # An offer that another took by a guess may be this one's, and the reverse: all of them count as candidates.
    guessed = sum(1 for _ in state.guessed_offers(event.agent_type))
    return OfferLink(offered=waiting[0], how=LinkedBy.INFERRED, candidates=len(waiting) + guessed)


def read_meta(event: HookEvent) -> Meta | None:
    """Return the content of the file next to a sub-agent's transcript; None if it does not exist (yet)."""
    path = transcript_of(event, event.agent)
    if path is None or event.agent is None:
        return None
    try:
        found = transcript.read_meta(path)
    except transcript.NO_META:
        return None
    parent = found.get("parentAgentId")
    return Meta(call=found["toolUseId"], parent=parent if isinstance(parent, str) else None) if found else None


def transcript_of(event: HookEvent, agent: str | None) -> Path | None:
    """Return the transcript of a sub-agent, or of the main conversation."""
    if event.transcript is None or agent is None:
        return event.transcript
    return event.transcript.with_suffix("") / "subagents" / f"agent-{agent}.jsonl"
