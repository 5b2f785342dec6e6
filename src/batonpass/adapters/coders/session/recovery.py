"""Restores the state of a session from the ledger, because the process that recorded it may be gone."""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Final

from batonpass.adapters.coders.events import HookEvent
from batonpass.adapters.coders.session.hook_session import Going, HookSession, MadeCall, OfferedByCall, Track
from batonpass.adapters.importer.import_sources import as_source, series_of, session_id_of
from batonpass.adapters.tool_kinds import Coder
from batonpass.attribution.git.arrived_commits import HistoryHead
from batonpass.handoff.calls.pending_call import Begun
from batonpass.handoff.files.background_commits import GOES_ON, HISTORY
from batonpass.handoff.grants.limit_use import Counting
from batonpass.handoff.runtime.run_state import Holding
from batonpass.handoff.sessions.earlier_roots import find_denied, find_earlier
from batonpass.handoff.sessions.resume import follow_run
from batonpass.ledger.position import Working
from batonpass.model.base.content_names import REASON, SOURCE, TASK
from batonpass.model.base.ids import ContentId, HandoffId, RunId, StreamId
from batonpass.model.base.kinds import Mode
from batonpass.model.base.lifecycle import DELIVERED, State
from batonpass.model.bodies.body import (
    HandoffAccepted,
    HandoffInitiated,
    HandoffLate,
    Kind,
    Part,
    RunRecorded,
    RunStarted,
)
from batonpass.model.ledger.content import StoredContent
from batonpass.model.ledger.receipt import Receipt
from batonpass.model.ledger.run import Handoff, Run, RunState
from batonpass.records.call import CallOutcome, CallRecord, Ended, call_asked
from batonpass.store.port import LedgerView, ReceiptQuery
from batonpass.wire.receipt_codec import decode_receipt

SAID: Final = "said"
STATEMENT: Final = f"{Part.INTENT}.1"
UNLET: Final = "unlet/"  # prefix of the key of a sub-agent that was not allowed to start, and has ended

_AT_ONCE: Final = 500
_REST: Final = "/background"
_REFUSED: Final = "it was refused before, and still is"  # if the reason was erased
_UNDER_WAY: Final = frozenset({State.HELD, State.OFFERED, State.RUNNING})


def remember_session(
    view: LedgerView,
    session: str,
    *,
    mode: Mode,
    place: Path,
    lost: Collection[RunId] = (),
    coder: Coder = Coder.CLAUDE_CODE,
) -> HookSession:
    """Return the state of a session, from an open root that hooks started and that is not `lost`.

    `place` is the root of its repository.
    """
    state = HookSession(session=session, coder=coder)
    for run in view.find_runs(series=series_of(coder, session)):
        if run.state is RunState.OPEN and run.id not in lost and session_of(view, run) is not None:
            _Remembering(view, state, run, mode, place).read()
            break
    return state


def session_of(view: LedgerView, run: Run) -> str | None:
    """Return the session of a root run that hooks started; None for any other, and if its source was erased."""
    first = decode_receipt(view.get_receipt_at(StreamId(run.id), 1).payload)
    ref = first.content.get(SOURCE)
    source = None if ref is None else as_source(view.get_content(ref.id))
    session = source.get("session") if source is not None and source.get("recorded") is True else None
    return session if isinstance(session, str) else None


@dataclass(slots=True)
class _Remembering:
    view: LedgerView
    state: HookSession
    root: Run
    mode: Mode
    place: Path
    runs: Mapping[RunId, Run] = field(init=False)
    handoffs: Mapping[HandoffId, Handoff] = field(init=False)

    def read(self) -> None:
        self.runs = {run.id: run for run in self.view.find_runs(root=self.root.id)}
        self.handoffs = {handoff.id: handoff for handoff in self.view.find_handoffs(root=self.root.id)}
        stored = self.view.find_receipts(ReceiptQuery(root=self.root.id))
        receipts = (decode_receipt(one.payload) for one in stored)
        while batch := list(islice(receipts, _AT_ONCE)):
            words = {content.id: content for content in self.view.find_contents(list(_wanted(batch)))}
            for receipt in batch:
                self._take(receipt, words)
        series = series_of(self.state.coder, self.state.session)
        denied = find_denied(self.view, find_earlier(self.view, series, self.root.principal, self.root.id))
        for track in self.state.runs.values():
            track.holding.denied_before = denied

    def _take(self, receipt: Receipt, words: Mapping[ContentId, StoredContent]) -> None:
        source = _source(receipt, words)
        key = source.get("key")
        named = key if isinstance(key, str) else None
        match receipt.body:
            case RunStarted() | HandoffAccepted() as body:
                offered = self.state.offers.get(body.handoff) if isinstance(body, HandoffAccepted) else None
                self._take_run(body.run, source, None if offered is None else offered.kind)
                if isinstance(body, RunStarted) and named is not None:
                    self.state.prompts[named] = _text(receipt, Part.INTENT, words)
            case RunRecorded():
                self._take_words(receipt, named, words)
            case HandoffInitiated() as body:
                self._take_offer(body, named, source, _text(receipt, TASK, words))
            case _ if (call := call_asked(receipt)) is not None:
                self._take_asked(call, named, words)
            case body if isinstance(body, Ended | HandoffLate):
                if named in self.state.calls and self.state.calls[named].id == body.call:
                    self.state.calls[named].open = False
                    self._take_going(receipt, named, source)
            case _:
                return

    def _take_asked(self, call: CallRecord, named: str | None, words: Mapping[ContentId, StoredContent]) -> None:
        if named is None:
            return
        if call.is_made:
            self._take_call(call, named)
        elif call.outcome in {CallOutcome.DENIED, CallOutcome.HELD}:
            denied = _text(call.receipt, REASON, words) or _REFUSED
            self.state.calls[named] = MadeCall(id=call.id, run=call.run, tool=call.tool, open=False, denied=denied)

    def _take_words(self, receipt: Receipt, named: str | None, words: Mapping[ContentId, StoredContent]) -> None:
        if STATEMENT in receipt.content and named is not None:
            self.state.prompts[named] = _text(receipt, STATEMENT, words)
        elif SAID in receipt.content:
            self.state.said = _text(receipt, SAID, words)
        elif named is not None and named.startswith(UNLET):
            self.state.unlet.add(named.removeprefix(UNLET))

    def _take_run(self, run: RunId, source: Mapping[str, Any], kind: str | None) -> None:
        known = self.runs[run]
        agent, candidates = source.get("subagent"), source.get("candidates")
        working = Working(run=known, mode=self.mode, session=session_id_of(self.state.coder, self.state.session))
        is_open = known.state is RunState.OPEN
        self.state.add(
            Track(
                holding=follow_run(self.view, working) if is_open else Holding(working=working),
                agent=agent if isinstance(agent, str) else None,
                kind=kind,
                link=source.get("link"),
                candidates=candidates if isinstance(candidates, int) else 1,
                open=is_open,
            ),
        )

    def _take_offer(self, body: HandoffInitiated, call: str | None, source: Mapping[str, Any], task: str) -> None:
        known = self.handoffs[body.handoff]
        kind = source.get("type")
        self.state.offers[body.handoff] = OfferedByCall(
            handoff=body.handoff,
            parent=body.run,
            to=body.to,
            call=call,
            kind=kind if isinstance(kind, str) else None,
            child=known.run,
            ended=known.state not in _UNDER_WAY,
            completed=known.state in DELIVERED,
            held=task if body.state is State.HELD else None,
        )

    def _take_call(self, call: CallRecord, named: str) -> None:
        before = self.state.calls.get(named)
        self.state.calls[named] = MadeCall(
            id=call.id,
            run=call.run,
            tool=call.tool,
            denied=None if before is None else before.denied,  # refused, but made anyway
            begun=self._begun(call),
            kept=None if call.arguments is None else call.arguments.id,
        )

    def _take_going(self, receipt: Receipt, named: str, source: Mapping[str, Any]) -> None:
        """Restore a command that returned and may still be running."""
        body, made = receipt.body, self.state.calls[named]
        if isinstance(body, Ended) and GOES_ON in body.flags:
            task, ref = source.get("task"), receipt.content.get(HISTORY)
            head = b"" if ref is None else self.view.get_content(ref.id).body or b""
            asked = None if made.kept is None else self.view.get_content(made.kept).body
            given = json.loads(asked).get("arguments") if asked is not None else None
            self.state.going[named] = Going(
                made=made,
                event=HookEvent(
                    name="PostToolUse",
                    session=self.state.session,
                    coder=self.state.coder,
                    tool=made.tool,
                    call=named,
                    input=given if isinstance(given, dict) else {},
                ),
                history=HistoryHead(self.place, head.decode() or None, 0),
                task=task if isinstance(task, str) else None,
            )
        elif named.endswith(_REST):
            self.state.going.pop(named.removesuffix(_REST), None)

    def _begun(self, call: CallRecord) -> Begun:
        """Return a call that another process saw begin."""
        holding = self.state.runs[call.run].holding
        return Begun(
            call=call.id,
            key=call.key,
            attempt=holding.working.run.attempt,
            counted=Counting(holding.bounds.accounts).counted(),
            began=None,
        )


def _wanted(receipts: Sequence[Receipt]) -> Iterator[ContentId]:
    for receipt in receipts:
        names = {SOURCE, STATEMENT, SAID}
        if isinstance(receipt.body, RunStarted):
            names.add(Part.INTENT)
        if receipt.kind in {Kind.TOOL_DENIED, Kind.TOOL_HELD}:
            names.add(REASON)
        if isinstance(receipt.body, HandoffInitiated) and receipt.body.state is State.HELD:
            names.add(TASK)
        yield from (ref.id for name, ref in receipt.content.items() if name in names)


def _source(receipt: Receipt, words: Mapping[ContentId, StoredContent]) -> Mapping[str, Any]:
    ref = receipt.content.get(SOURCE)
    stored = None if ref is None else words.get(ref.id)
    return (None if stored is None else as_source(stored)) or {}


def _text(receipt: Receipt, name: str, words: Mapping[ContentId, StoredContent]) -> str:
    ref = receipt.content.get(name)
    stored = None if ref is None else words.get(ref.id)
    return "" if stored is None or stored.body is None else stored.body.decode("utf-8", "replace")
