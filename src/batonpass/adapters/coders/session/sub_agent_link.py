"""Finds the call that started a sub-agent, in one of the four ways in which agents tell it, the best first.

An id in the event names the call; the event names the parent; the session file does; or only the order of events tells.
Two of one type look alike, so an uncertain link is marked as inferred.
"""

from pathlib import Path
from typing import Final

from msgspec import Struct

from batonpass.adapters.claude_code.transcripts import transcript_reader
from batonpass.adapters.coders.dialects.dialect import LinkKind
from batonpass.adapters.coders.events import HookEvent
from batonpass.adapters.coders.session.hook_session import HookSession, OfferedByCall
from batonpass.adapters.session_files.session_values import LinkedBy
from batonpass.adapters.tool_kinds import Coder

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
    if event.coder is not Coder.CLAUDE_CODE:
        named = next((offer for offer in waiting if is_named_after(event.agent, offer.call)), None)
        if named is not None:
            return OfferLink(offered=named, how=LinkKind.ID)
        waiting = _fitting(state, event, waiting)
    if not waiting:
        return OfferLink(offered=None, how=UNKNOWN if event.link is None else event.link)
    # An offer that another took by a guess may be this one's, and the reverse: all of them count as candidates.
    guessed = sum(1 for _ in state.guessed_offers(event.agent_type))
    how = event.link if event.link is not None and len(waiting) + guessed == 1 else LinkedBy.INFERRED
    return OfferLink(offered=waiting[0], how=how, candidates=len(waiting) + guessed)


def nested_name(call: str) -> str:
    """Return our name for the sub-agent of a call, for agents that give their sub-agents none."""
    return f"call-{call}"


def is_named_after(agent: str | None, call: str | None) -> bool:
    """Return whether the id of a sub-agent names the call that started it, as Qwen Code's do."""
    return agent is not None and bool(call) and agent.endswith(f"-{call}")


def _fitting(state: HookSession, event: HookEvent, waiting: list[OfferedByCall]) -> list[OfferedByCall]:
    """Return the offers of a sub-agent's parent, if that is known, and of these the ones with its very task."""
    above = state.run_of(event.parent)
    if event.link is not None and above is not None:
        waiting = [offer for offer in waiting if offer.parent == above.id]
    task = event.prompt.strip()
    same = [offer for offer in waiting if task and offer.task is not None and offer.task.strip() == task]
    return same or waiting


def read_meta(event: HookEvent) -> Meta | None:
    """Return the content of the file next to a sub-agent's transcript; None if it does not exist (yet)."""
    path = transcript_of(event, event.agent)
    if path is None or event.agent is None:
        return None
    try:
        found = transcript_reader.read_meta(path)
    except transcript_reader.NO_META:
        return None
    parent = found.get("parentAgentId")
    return Meta(call=found["toolUseId"], parent=parent if isinstance(parent, str) else None) if found else None


def transcript_of(event: HookEvent, agent: str | None) -> Path | None:
    """Return the transcript of a sub-agent, or of the main conversation."""
    if event.coder is not Coder.CLAUDE_CODE:
        return None  # its files have another form, and are read when they are imported
    if event.transcript is None or agent is None:
        return event.transcript
    return event.transcript.with_suffix("") / "subagents" / f"agent-{agent}.jsonl"
