"""The meaning of an id that a person typed; the same rule for every command.

In this order: `last`; a full id; an exact name of an agent, series, session or tool; the last characters of an id,
since those are random. Exactly one thing must match. If several do, the error lists them with enough detail to choose;
nothing is guessed.
"""

import re
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from datetime import datetime
from itertools import islice
from typing import Final, TypeVar

from msgspec import Struct

from batonpass.audit.short_ids import LAST, ending, telling_length
from batonpass.errors import AmbiguousIdError, NotFoundError, ShortIdError
from batonpass.model.base.ids import (
    CALL,
    CONTENT,
    HANDOFF,
    RECEIPT,
    RUN,
    SESSION,
    TOKEN,
    WEBHOOK,
    AgentId,
    CallId,
    ContentId,
    HandoffId,
    ReceiptId,
    RunId,
    SessionId,
    StreamId,
    pattern_of,
    session_named,
    time_of,
)
from batonpass.model.base.lifecycle import State
from batonpass.model.baton.session import session_of
from batonpass.model.bodies.body import ToolCached, ToolHeld
from batonpass.model.ledger.key import Key, KeyStatus
from batonpass.model.ledger.receipt import StoredReceipt
from batonpass.model.ledger.run import Handoff, HeldCall, Run, RunState
from batonpass.records.access_token import TokenRecord, find_tokens
from batonpass.records.call import Asked
from batonpass.records.lineage import Tasks, read_task
from batonpass.records.recipients.webhook import WebhookRecord, find_webhooks
from batonpass.records.text import read_receipt
from batonpass.store.port import LedgerView, ReceiptQuery

# With three characters, one of thirty mistyped endings finds something in a ledger of a thousand receipts; with four,
# one of a thousand does. Our own lists print four.
SHORTEST: Final = 4

_SHOWN: Final = 5
_LONGEST_ID: Final = len(RECEIPT) + 1 + 26
_LONGEST_NAME: Final = 128

Thing = TypeVar("Thing")


class Meant(Struct, frozen=True, kw_only=True):
    """The one thing that was meant."""

    id: RunId | HandoffId | ReceiptId | CallId | SessionId | ContentId
    receipt: ReceiptId | None = None  # for a call: the receipt of its request, denial or hold

    @property
    def kind(self) -> str:
        """Return its kind."""
        return self.id.partition("_")[0]


def choose(
    given: str,
    what: str,
    *,
    named: Callable[[str], Iterable[Thing]],
    ended: Callable[[str], Iterable[Thing]],
    lines: Callable[[Sequence[Thing]], Iterable[str]],
) -> Thing:
    """Return the one thing that is meant: by exact name, else by the end of its id.

    Names come first, because an ending can be made longer and a name cannot. Raises `NotFoundError`,
    `AmbiguousIdError`, and `ShortIdError` if it is no name and too short for an ending.
    """
    wanted = _plain(given)
    found = _some(named, wanted)
    if not found and 0 < len(wanted) < SHORTEST:
        raise ShortIdError(what, given, SHORTEST)
    # Ids are lower case, so a capital letter can only belong to a name, and names must match exactly.
    if not found and len(wanted) <= _LONGEST_ID and wanted.isascii() and wanted == wanted.lower():
        found = _some(ended, wanted)
    if not found:
        raise NotFoundError(what, given)
    if len(found) > 1:
        rest = ("… and more",) if len(found) > _SHOWN else ()
        raise AmbiguousIdError(what, given, (*lines(found[:_SHOWN]), *rest))
    return found[0]


def get_meant(view: LedgerView, given: str, kinds: Sequence[str], what: str | None = None) -> Meant:
    """Return the thing that is meant, among these kinds; `last` is the latest of the first kind that exists.

    An agent's name means its run or its handoff. The name of a series or session means the session. Where only receipts
    count, an agent's name means the receipts of its runs. Raises as `choose` does.
    """
    if (whole := _whole(view, _plain(given), kinds)) is not None:
        return whole
    return choose(
        given,
        what or _either(kinds),
        named=lambda name: find_named(view, name, kinds),
        ended=lambda end: find_ended(view, end, kinds),
        lines=lambda found: describe(view, found),
    )


def get_run(view: LedgerView, given: str) -> Run:
    """Return the run that is meant. Raises as `choose` does."""
    return view.get_run(RunId(get_meant(view, given, (RUN,)).id))


def get_open_root(view: LedgerView) -> Run:
    """Return the latest open root run. Raises `NotFoundError`."""
    for run in view.find_runs(roots=True, states=[RunState.OPEN], limit=1):
        return run
    raise NotFoundError("open root run", LAST)


def get_handoff(view: LedgerView, given: str) -> Handoff:
    """Return the handoff that is meant; a name is that of its receiver. Raises as `choose` does."""
    return view.get_handoff(HandoffId(get_meant(view, given, (HANDOFF,)).id))


def get_receipt(view: LedgerView, given: str) -> StoredReceipt:
    """Return the receipt that is meant. Raises as `choose` does."""
    return view.get_receipt(ReceiptId(get_meant(view, given, (RECEIPT,)).id))


def get_session(view: LedgerView, given: str) -> SessionId:
    """Return the session that is meant: by its id or name, a root, or its series. Raises as `choose` does."""
    return SessionId(get_meant(view, given, (SESSION,)).id)


def get_meant_token(view: LedgerView, given: str) -> TokenRecord:
    """Return the token that is meant, by its id or the end of its id. Raises as `choose` does."""
    known = list(find_tokens(view))
    return choose(
        given,
        TOKEN,
        named=lambda name: [one for one in known if one.id == name],
        ended=lambda end: [one for one in known if one.id.endswith(end)],
        lines=lambda found: [f"{one.id} {one.role} of {one.principal}" for one in found],
    )


def get_meant_webhook(view: LedgerView, given: str) -> WebhookRecord:
    """Return the webhook that is meant, by its id or the end of its id. Raises as `choose` does."""
    known = list(find_webhooks(view))
    return choose(
        given,
        WEBHOOK,
        named=lambda name: [one for one in known if one.id == name],
        ended=lambda end: [one for one in known if one.id.endswith(end)],
        lines=lambda found: [f"{one.id} added by {one.added_by}" for one in found],
    )


def find_erasable(view: LedgerView, given: str) -> tuple[str, tuple[ContentId, ...]]:
    """Return the content, receipt or run that is meant, and its contents.

    The task of a run is not included: it is in the stream of the run that offered it. Raises as `choose` does.
    """
    meant = get_meant(view, given, (RUN, RECEIPT, CONTENT), "content, receipt or run")
    return meant.id, tuple(_contents_of(view, meant))


def get_key(keys: Iterable[Key], given: str) -> Key:
    """Return the key whose id begins or ends like this, or whose relay's id ends like this.

    If a relay rotated its keys, its active one is meant. Raises as `choose` does.
    """
    known = list(keys)

    def ended(end: str) -> list[Key]:
        by_id = [key for key in known if key.id.startswith(end) or key.id.endswith(end)]
        by_relay = [key for key in known if key.relay is not None and key.relay.endswith(end)]
        if len({key.relay for key in by_relay}) == 1 and not by_id:
            return [key for key in by_relay if key.status is KeyStatus.ACTIVE] or by_relay
        return by_id + [key for key in by_relay if key not in by_id]

    def lines(found: Sequence[Key]) -> Iterator[str]:
        return (f"{key.id[:16]} · {key.role} {ending(key.relay or '')} · {key.status}" for key in found)

    return choose(given, "key", named=lambda _: (), ended=ended, lines=lines)


def find_named(view: LedgerView, name: str, kinds: Sequence[str]) -> Iterator[Meant]:
    """Yield the things of these kinds with exactly this name; `last` is the latest of the first kind."""
    if name == LAST:
        yield from islice((meant for kind in kinds for meant in _last(view, kind)), 1)
        return
    if len(name) > _LONGEST_NAME:
        return
    if RUN in kinds or HANDOFF in kinds:
        yield from _work_of(view, AgentId(name), kinds)
    elif SESSION in kinds:
        # A session's id follows from its name; the name of a series is in the rows.
        series = [session_of(run) for run in view.find_runs(series=name, limit=1)]
        called = [*view.find_ids(SESSION, session_named(name))]
        yield from (Meant(id=session) for session in dict.fromkeys((*series, *map(SessionId, called))))
    elif RECEIPT in kinds:
        yield from (Meant(id=stored.id) for stored in _receipts_of(view, AgentId(name)))


def _receipts_of(view: LedgerView, agent: AgentId) -> Iterator[StoredReceipt]:
    """Yield the latest receipts of an agent's latest runs, just enough to notice an ambiguity."""
    for run in view.find_runs(agent=agent, limit=_SHOWN + 1):
        yield from reversed(deque(view.find_receipts(ReceiptQuery(stream=StreamId(run.id))), _SHOWN + 1))


def find_ended(view: LedgerView, end: str, kinds: Collection[str]) -> Iterator[Meant]:
    """Yield the things of these kinds whose ids end like this."""
    for kind, made in ((RUN, RunId), (HANDOFF, HandoffId), (RECEIPT, ReceiptId), (CONTENT, ContentId)):
        if kind in kinds:
            yield from (Meant(id=made(found)) for found in view.find_ids(kind, end))
    if CALL in kinds:
        yield from (meant for meant in _calls_in(view.find_call_receipts(end)) if meant.id.endswith(end))
    if SESSION in kinds:
        yield from (Meant(id=session) for session in dict.fromkeys(_find_sessions(view, end)))


def describe(view: LedgerView, found: Sequence[Meant]) -> Iterator[str]:
    """Yield a line to choose by for each: end of its id, kind, owner, start and task."""
    tasks = Tasks(view)
    length = telling_length([meant.id.rpartition("_")[2] for meant in found])
    for meant in found:
        about, at, task = _about(view, tasks, meant)
        yield " · ".join((ending(meant.id, length), about, at.astimezone().strftime("%Y-%m-%d %H:%M:%S"), *task))


def _plain(given: str) -> str:
    """Return the typed id, without decoration that our own output adds."""
    return given.strip().removeprefix("…")


def _some(find: Callable[[str], Iterable[Thing]], wanted: str) -> list[Thing]:
    # No name has unprintable characters, and some databases refuse to search for them.
    return list(islice(find(wanted), _SHOWN + 1)) if wanted and wanted.isprintable() else []


def _either(kinds: Sequence[str]) -> str:
    *most, last = sorted(kinds)
    return f"{', '.join(most)} or {last}" if most else last


def _whole(view: LedgerView, wanted: str, kinds: Collection[str]) -> Meant | None:
    """Return the thing with exactly this id, even if something else has it as its name."""
    kind = wanted.partition("_")[0]
    if kind not in kinds or not re.fullmatch(pattern_of(kind), wanted):
        return None
    return next(find_ended(view, wanted, (kind,)), None)


def _last(view: LedgerView, kind: str) -> Iterator[Meant]:
    match kind:
        case "run":
            yield from (Meant(id=run.id) for run in view.find_runs(limit=1))
        case "handoff":
            yield from (Meant(id=handoff.id) for handoff in view.find_handoffs(limit=1))
        case "session":
            yield from (Meant(id=session_of(run)) for run in view.find_runs(roots=True, limit=1))
        case "call":
            receipts = (view.get_receipt(ReceiptId(found)) for found in view.find_ids(RECEIPT, ""))
            yield from islice(_calls_in(stored for stored in receipts if stored.kind.startswith("tool.")), 1)
        case _:
            yield from (Meant(id=ReceiptId(found)) for found in islice(view.find_ids(kind, ""), 1))


def _work_of(view: LedgerView, agent: AgentId, kinds: Collection[str]) -> Iterator[Meant]:
    """Yield each piece of an agent's work once: its run, or the handoff if it made several attempts."""
    if HANDOFF not in kinds:
        yield from (Meant(id=run.id) for run in view.find_runs(agent=agent, limit=_SHOWN + 1))
        return
    work: dict[RunId | HandoffId, list[RunId]] = {}
    for run in view.find_runs(agent=agent) if RUN in kinds else ():
        work.setdefault(run.handoff or run.id, []).append(run.id)
        if len(work) > _SHOWN:
            break
    for handoff in view.find_handoffs(to=agent):
        if len(work) > _SHOWN:
            break
        work.setdefault(handoff.id, [])
    for one, runs in work.items():
        yield Meant(id=runs[0] if len(runs) == 1 else one)


def _calls_in(receipts: Iterable[StoredReceipt]) -> Iterator[Meant]:
    for stored in receipts:
        body = read_receipt(stored).body
        if isinstance(body, Asked) and not isinstance(body, ToolCached):
            yield Meant(id=body.call, receipt=stored.id)


def _find_sessions(view: LedgerView, end: str) -> Iterator[SessionId]:
    yield from map(SessionId, view.find_ids(SESSION, end))
    # A root without a session counts as its own, under its own last characters.
    tail = end.removeprefix(f"{SESSION}_")
    yield from map(session_of, _roots(view.get_run(RunId(run)) for run in view.find_ids(RUN, tail)))


def _roots(runs: Iterable[Run]) -> Iterator[Run]:
    return (run for run in runs if run.parent is None)


def _about(view: LedgerView, tasks: Tasks, meant: Meant) -> tuple[str, datetime, tuple[str, ...]]:
    """Return the kind of a thing, when it began, and its task if it has one."""
    match meant.kind:
        case "run":
            run = view.get_run(RunId(meant.id))
            return f"run of {run.agent}", run.started_at, (run.state, tasks.first_line(run))
        case "handoff":
            handoff = view.get_handoff(HandoffId(meant.id))
            task = read_task(view, handoff)
            words = "unknown" if task is None else task.first_line
            return f"handoff to {handoff.to}", time_of(handoff.id), (handoff.state, words)
        case "session":
            last = _last_root(view, SessionId(meant.id))
            return f"session of {last.agent}", last.started_at, (last.state, tasks.first_line(last))
        case "content":
            return "content", time_of(meant.id), ()
        case _:
            stored = view.get_receipt(ReceiptId(meant.receipt or meant.id))
            return _about_receipt(view, tasks, meant, stored)


def _about_receipt(
    view: LedgerView, tasks: Tasks, meant: Meant, stored: StoredReceipt
) -> tuple[str, datetime, tuple[str, ...]]:
    what = f"{meant.kind} {stored.kind}"
    if meant.kind == CALL and isinstance(body := read_receipt(stored).body, Asked):
        what = f"call {body.tool}"
    try:
        run = view.get_run(RunId(stored.stream))
    except NotFoundError:
        return f"{what} of {stored.stream.partition('_')[0]} {ending(stored.stream)}", time_of(stored.id), ()
    return f"{what} of {run.agent} {ending(run.id)}", time_of(stored.id), (tasks.first_line(run),)


def _last_root(view: LedgerView, session: SessionId) -> Run:
    named = next(_roots(view.find_runs(session=session)), None)
    # No run has this session, so it is a root without one, under its own characters.
    return named or view.get_run(RunId(f"{RUN}_{session.partition('_')[2]}"))


def _contents_of(view: LedgerView, meant: Meant) -> Iterator[ContentId]:
    if meant.kind == CONTENT:
        yield ContentId(meant.id)
        return
    if meant.kind == RECEIPT:
        receipts: Iterable[StoredReceipt] = [view.get_receipt(ReceiptId(meant.id))]
    else:
        receipts = view.find_receipts(ReceiptQuery(stream=StreamId(meant.id)))
    for stored in receipts:
        for ref in read_receipt(stored).content.values():
            yield ref.id


def get_waiting(view: LedgerView, given: str) -> Handoff | HeldCall:
    """Return the handoff or held call that is meant, by id, by agent, or by the tool of a waiting call.

    A name means waiting work, if any of that name waits. Raises as `choose` does.
    """
    meant, held = _choose_held(view, given, "handoff or held call", (HANDOFF,))
    return view.get_handoff(HandoffId(meant.id)) if meant.kind == HANDOFF else held[CallId(meant.id)]


def get_held(view: LedgerView, given: str) -> HeldCall:
    """Return the held call that is meant, decided or not: by its id, or by its tool while it waits.

    Raises as `choose` does.
    """
    meant, held = _choose_held(view, given, "held call", ())
    return held[CallId(meant.id)]


def _choose_held(view: LedgerView, given: str, what: str, kinds: Sequence[str]) -> tuple[Meant, dict[CallId, HeldCall]]:
    """Return the held call, or the thing of another kind, that a name or an id means; and all held calls by id."""
    calls = {held.call: held for held in view.find_held_calls()}

    def named(name: str) -> Iterable[Meant]:
        # Only what waits can be decided. What the same agent did before is no second meaning of its name; it is
        # found only if nothing waits, so that the answer says in which state it is.
        waiting = (*_held_for(view, name, kinds), *_using(view, name))
        return waiting or find_named(view, name, kinds)

    meant = choose(
        given,
        what,
        named=named,
        ended=lambda end: (
            *find_ended(view, end, kinds),
            *(_meant(held) for held in calls.values() if held.call.endswith(end)),
        ),
        lines=lambda found: describe(view, found),
    )
    return meant, calls


def find_waiting_calls(view: LedgerView, *, root: RunId | None = None) -> Iterator[HeldCall]:
    """Yield the held calls of open runs, the latest first, in one tree or in all."""
    found = [held for held in view.find_waiting_calls() if root is None or view.get_run(held.run).root == root]
    return iter(reversed(found))


def _held_for(view: LedgerView, agent: str, kinds: Sequence[str]) -> Iterator[Meant]:
    if HANDOFF in kinds and agent != LAST and len(agent) <= _LONGEST_NAME:
        held = view.find_handoffs(to=AgentId(agent), states=[State.HELD], limit=_SHOWN + 1)
        yield from (Meant(id=handoff.id) for handoff in held)


def _using(view: LedgerView, tool: str) -> Iterator[Meant]:
    for held in view.find_waiting_calls():
        body = read_receipt(view.get_receipt(held.receipt)).body
        if isinstance(body, ToolHeld) and body.tool == tool:
            yield _meant(held)


def _meant(held: HeldCall) -> Meant:
    return Meant(id=held.call, receipt=held.receipt)
