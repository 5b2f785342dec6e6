"""The input of an attempt: its briefing, and the messages of an earlier attempt."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from batonpass.aio import AsyncRun
from batonpass.aio.threads import in_thread
from batonpass.briefing.references import read_reference, show_excerpt
from batonpass.briefing.render import Briefing, Earlier, brief
from batonpass.briefing.sections import ReadBody
from batonpass.drift.receiver_memory import remember_for
from batonpass.drift.rollup import keep_up
from batonpass.errors import NotFoundError
from batonpass.handoff.history.past_calls import Resumption
from batonpass.handoff.live.faces import LiveRun
from batonpass.handoff.programs.program_briefing import tell_past
from batonpass.handoff.taint.intake import take_in
from batonpass.handoff.transfer.result import read_sent_back
from batonpass.model.base.ids import ContentId
from batonpass.model.grants.effective_grant import EffectiveGrant
from batonpass.store.port import LedgerStore


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """The briefing of an attempt, and the messages of an earlier attempt."""

    briefing: Briefing
    messages: object | None  # as JSON; None if there was no earlier attempt, or it kept no messages


async def prepare(run: AsyncRun, store: LedgerStore, *, recalled: int = 0) -> Prepared:
    """Return the briefing of a handed-off run: for the user's role, never the system's.

    At most `recalled` earlier handoffs of the same kind come along in it, as data.
    """
    return await in_thread(lambda: prepare_input(run.sync, store, recalled=recalled))


def read_piece(run: LiveRun, store: LedgerStore, ref: str, start: int) -> str:
    """Return a quoted part of an artifact in a run's briefing. Raises `InvalidValueError` for anything else."""
    return show_excerpt(ref, read_reference(run.baton, ref, read=_reader(store), start=start))


def describe_past(store: LedgerStore, past: Resumption) -> Earlier:
    """Return the finished calls, the calls in doubt and the handoffs of earlier attempts, in words."""
    before = tell_past(store, past)
    return Earlier(
        finished=tuple(map(_call, before["finished"])),
        in_doubt=tuple(map(_call, before["in_doubt"])),
        children=tuple(f"{child['to']}: {child['task']} ({child['state']})" for child in before["children"]),
    )


def prepare_input(run: LiveRun, store: LedgerStore, *, can_ask: bool = True, recalled: int = 0) -> Prepared:
    """Return the briefing of a handed-off run; `can_ask` says that its model has a tool to ask for its grant."""
    earlier = describe_past(store, run.earlier)
    if run.attempt > 1:
        with store.view() as view:
            earlier = replace(earlier, sent_back=read_sent_back(view, view.get_handoff(run.baton.handoff)))
    grant = run.grant()
    briefing = brief(
        run.baton,
        read=_reader(store),
        earlier=earlier,
        grant=grant,
        can_ask=can_ask,
        remembered=_remember(run, store, grant, recalled) if recalled else "",
    )
    # Whoever was refuted begins anew: its messages lead to the result that was found wrong.
    return Prepared(briefing=briefing, messages=None if earlier.sent_back else run.messages())


def _remember(run: LiveRun, store: LedgerStore, grant: EffectiveGrant, most: int) -> str:
    """Return the results of earlier handoffs of this kind. Their outside content taints the run from now on."""
    keep_up(store)
    baton = run.baton
    with store.view() as view:
        known = remember_for(view, agent=run.agent, brief=baton.brief, relation=baton.relation, grant=grant, most=most)
    take_in(run._desk, run._holding, known.sources)  # noqa: SLF001 - we speak for the run
    return known.text


def _call(told: Mapping[str, Any]) -> str:
    return f"{told['tool']} {json.dumps(told['arguments'], ensure_ascii=False)}"


def _reader(store: LedgerStore) -> ReadBody:
    def read(content: ContentId) -> bytes | None:
        with store.view() as view:
            try:
                return view.get_content(content).body
            except NotFoundError:
                return None

    return read
