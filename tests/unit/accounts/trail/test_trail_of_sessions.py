"""The trail tells of sessions: what came along, what has to be decided again, what was not called again."""

from datetime import timedelta

from batonpass.accounts.trail.trail import read_trail
from batonpass.accounts.trail.trail_text import render_text
from batonpass.audit.short_ids import ending
from batonpass.handoff.live.faces import LiveRun
from batonpass.handoff.tools.declaration import tool
from batonpass.model.base.lifecycle import Carrier
from batonpass.model.baton.items import Assumption, Decision
from batonpass.relay import Relay
from batonpass.store.memory import MemoryStore

ANA = "user:ana"


@tool("pull", reads=True, cache_for=timedelta(hours=1))
def pull() -> int:
    """Return what takes long."""
    return 1


def lines(relay: Relay, run: LiveRun) -> list[str]:
    """Return the lines of a trail, without times and branches."""
    with relay.store.view() as view:
        rows = list(render_text(read_trail(view, run.id)))
    return ["".join(part.text for part in row.parts).strip() for row in rows]


def test_sessions_are_told() -> None:
    """Saved and resumed, with what waits; and a call that was not made."""
    relay = Relay(MemoryStore())
    lead = relay.start("begin", by=ANA)
    lead.record(Decision("d", conditions=("until 2020-01-01",)), Decision("e"), Assumption("a"))
    lead.hand_off("worker", "do it", carrier=Carrier.WORKER)
    lead.call(pull)
    session = lead.save_session()
    run = relay.resume_session(session, by=ANA)
    run.call(pull)
    plain = relay.resume_session(relay.start("nothing", by=ANA).id, by=ANA)
    plain.save_session()
    with relay.store.view() as view:
        (cached,) = view.find_cached()

    waiting = "to be decided again: 1 · in flight: 1"
    assert f"session saved {ending(session)} · keeps 1 · {waiting}" in lines(relay, lead)
    assert f"resumed from {ending(lead.id)} · 1 came along, 1 were left · {waiting}" in lines(relay, run)
    assert f"pull · not called: the result of {ending(cached.call)} is fresh" in lines(relay, run)
    assert f"session saved {ending(plain.session.session or '')} · keeps 0" in lines(relay, plain)
