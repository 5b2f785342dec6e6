"""Starting a root run: its grant, the state inherited from earlier runs, and its first receipts."""

from collections.abc import Sequence
from functools import partial
from itertools import islice
from typing import Final

from batonpass.handoff.grants.policy_tables import held_root
from batonpass.handoff.grants.terms import Beginning
from batonpass.handoff.runtime.bounds import bounds_of_root
from batonpass.handoff.runtime.desk import Desk
from batonpass.handoff.runtime.run_state import Holding
from batonpass.handoff.sessions.session_state import carried_from, find_said_outside, inherit, resumed
from batonpass.model.base.checks import require_text
from batonpass.model.base.ids import AgentId, PrincipalId, RunId, SessionId, StreamId, quotes_models
from batonpass.model.base.kinds import Mode
from batonpass.model.base.label import Label, SourceType, named_sources
from batonpass.model.baton.items import Item, ItemValue
from batonpass.model.baton.session import NO_SESSION, Stop
from batonpass.model.bodies.body import RunStarted
from batonpass.model.grants.grant import Grant
from batonpass.model.ledger.content import Content
from batonpass.model.ledger.receipt import Receipt, StoredReceipt
from batonpass.wire.receipt_codec import decode_receipt

_LATEST: Final = 64


def start_run(
    desk: Desk,
    intent: str | None,
    *,
    by: str,
    agent: str = "lead",
    said: Sequence[ItemValue] = (),
    continues: RunId | None = None,
    series: str | None = None,
    mode: Mode | None = None,
    session: SessionId | None = None,
    contents: tuple[Content, ...] = (),
    resumes: Sequence[Stop] = (),
    labelled: bool = True,
    grant: Grant | None = None,
    upstream: int = 0,
) -> Holding:
    """Start a root run: the human's words, if anybody heard them, and further items, in one commit.

    Items come along from the roots at which a session stopped, from the root that is continued, or from the last root
    of a series. With `labelled=False` no labels are recorded: the run is of another program, and nobody knows which
    content reached it. `upstream` is how many agents of other ledgers worked before it: they count towards its depth. A
    run with a grant, given or from the table of its agent, is enforced unless the grant is only observed.
    """
    if intent is not None:
        require_text("intent", intent)
    principal = PrincipalId(by)
    if not resumes and continues is None and series is not None:
        continues = _last_of(desk, series)
    stops = tuple(resumes) or (() if continues is None else (Stop(continues),))
    resumed_session = session if resumes else None
    state, heads = inherit(desk, stops, session=resumed_session, anew=said) if stops else (NO_SESSION, ())
    outside = find_said_outside(desk, state) if stops and labelled else frozenset()
    now = desk.clock.now()
    told = dict.fromkeys(said, (principal, now))
    for one in carried_from(state, now):
        # The earlier author stays the author. An item that is repeated in every run is recorded once.
        told.setdefault(one.value, (one.by, one.at))
    secret = desk.secrets.new()
    last = stops[-1].root if stops else None
    shared = _shared_secret(desk, last, session)
    noted = [
        desk.item(value, author, number, said_at=at) for number, (value, (author, at)) in enumerate(told.items(), 1)
    ]
    tainted = [item for item, _ in noted if item.value in outside]
    kept = partial(resumed, state=state, heads=heads, outside=[item.id for item in tainted])
    held, mode = held_root(desk, AgentId(agent), grant, mode)
    beginning = None if held is None else Beginning(desk, held, AgentId(agent), principal)
    working = desk.recording.start(
        intent,
        agent=agent,
        by=by,
        mode=mode,
        session=session,
        continues=last,
        series=series,
        policy=desk.gates.digest,
        label=Label(SourceType.USER_INPUT) if labelled else None,
        contents=(secret, *shared, *contents),
        items=tuple((item.part, content) for item, content in noted if item not in tainted),
        items_label=_label_of([item for item, _ in noted if item not in tainted]) if labelled else None,
        items_from_outside=tuple((item.part, content) for item, content in noted if item in tainted),
        resumed=kept if stops else None,
        granting=beginning,
        upstream=upstream,
    )
    desk.secrets.keep(working.run.root, secret.body, shared[0].body if shared else None)
    bounds = bounds_of_root(working.run.id, None if beginning is None else beginning.terms, mode)
    holding = Holding(working=working, session=state, bounds=bounds)
    holding.add(*(item for item, _ in noted))
    holding.taint.enter(named_sources(working.run.id, (item.id for item in tainted)), None)
    return holding


def _label_of(items: Sequence[Item]) -> Label:
    """Return the label of the items that come along: the principal's own words, or an agent's if there are any."""
    agents = any(quotes_models(item.by) for item in items)
    return Label(SourceType.LLM_GENERATED if agents else SourceType.USER_INPUT)


def _shared_secret(desk: Desk, last: RunId | None, session: SessionId | None) -> tuple[Content, ...]:
    """Return the secret that a root shares with earlier trees, so that their cached results are found again."""
    if last is None and session is not None:
        with desk.store.view() as view:
            last = next((run.root for run in view.find_runs(session=session)), None)
    return () if last is None else (desk.secrets.pass_on(last),)


def _decoded(stored: StoredReceipt) -> Receipt:
    return decode_receipt(stored.payload)


def _last_of(desk: Desk, series: str) -> RunId | None:
    """Return the last root of a series: one that no other continues. Ids follow clocks, and clocks differ."""
    with desk.store.view() as view:
        runs = [run.id for run in islice(view.find_runs(series=series), _LATEST)]
        begun = [_decoded(view.get_receipt_at(StreamId(run), 1)).body for run in runs]
    continued = {body.continues for body in begun if isinstance(body, RunStarted)}
    return next((run for run in runs if run not in continued), None)
