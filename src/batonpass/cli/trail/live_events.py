"""`batonpass trail --follow`: one line for each receipt, printed as it is recorded, until an interrupt."""

import time
from collections.abc import Callable, Iterator
from typing import Final

from msgspec import Struct

from batonpass.accounts.trail.first_lines import first_line
from batonpass.audit.feed import Feed
from batonpass.audit.short_ids import ending
from batonpass.cli.input.ledger_access import viewed
from batonpass.cli.output.exits import tell_trouble
from batonpass.cli.output.terminal import Painted, paint, say, say_json, tell
from batonpass.cli.output.units import moment
from batonpass.errors import NotFoundError, StoreBusyError, StoreUnavailableError
from batonpass.model.base.content_names import (
    ANSWER,
    ARGUMENTS,
    EVIDENCE,
    INTENT,
    ITEM,
    MESSAGE,
    QUESTION,
    REASON,
    REPORT,
    TARGET,
    TASK,
)
from batonpass.model.base.ids import HANDOFF, RUN, CallId, HandoffId, RunId
from batonpass.model.ledger.receipt import Receipt, StoredReceipt
from batonpass.records.json_shapes import exact
from batonpass.records.text import read_receipt, read_texts
from batonpass.store.port import LedgerStore, LedgerView

_POLL: Final = 0.3
_STOP: Final = "Ctrl-C ends it"
_COLOURS: Final = {"failed": "red", "denied": "red", "refused": "red", "completed": "green", "passed": "green"}
# The contents of a receipt that say most in one line, the best first. `batonpass receipt show` has all of them.
_TELLING: Final = (TASK, INTENT, TARGET, MESSAGE, REASON, QUESTION, ANSWER, EVIDENCE, REPORT, ARGUMENTS, ITEM)
_QUOTED: Final = frozenset({"run", "call", "handoff", "by", "tool", "error", "rule", "to", "attempt"})

Look = Callable[[LedgerView, Iterator[StoredReceipt]], None]


class ReceiptEvent(Struct, frozen=True, kw_only=True):
    """One receipt, as it fits into a line."""

    receipt: Receipt
    who: str  # the agent and its run; or the handoff or relay
    about: tuple[str, ...]  # signed facts: a tool, an error, a rule
    words: str | None  # the first line of its contents


def follow(store: LedgerStore, top: RunId | HandoffId | None, *, whole: bool, calls: bool, as_json: bool) -> None:
    """Print the events below a run or a handoff from its start; without one, every event from now on."""
    with viewed(store) as view:
        root = None if top is None else _root_of(view, top)
        # Rulings about an attempt are recorded in the stream of its handoff.
        handoff: str | None = view.get_run(RunId(top)).handoff if top is not None and top.startswith(RUN) else None
    feed, tools = Feed(store, root=root), dict[CallId, str]()

    def look(view: LedgerView, found: Iterator[StoredReceipt]) -> None:
        for stored in found:
            if (calls or not stored.kind.startswith("tool.")) and (
                top is None or whole or stored.stream == handoff or _is_below(view, stored, top)
            ):
                event = read_event(view, stored, tools)
                if as_json:
                    say_json(event_facts(event), line=True)
                else:
                    say(_line(event))

    repeat(store, feed, look, None if top is not None else lambda _: None)


def read_event(view: LedgerView, stored: StoredReceipt, tools: dict[CallId, str]) -> ReceiptEvent:
    """Return a receipt as an event; `tools` remembers the tool of each call."""
    receipt = read_receipt(stored)
    call, tool = getattr(receipt.body, "call", None), getattr(receipt.body, "tool", None)
    if call is not None and tool is not None:
        tools[call] = tool
    said = (getattr(receipt.body, name, None) for name in ("tool", "to", "error", "rule", "by"))
    about = [str(value) for value in said if value]
    if call is not None and tool is None:
        about.insert(0, tools.get(call) or f"call {ending(call)}")
    return ReceiptEvent(receipt=receipt, who=_who(view, receipt), about=tuple(about), words=_words(view, receipt))


def event_facts(event: ReceiptEvent) -> dict[str, object]:
    """Return an event for programs."""
    receipt = event.receipt
    said = {name: getattr(receipt.body, name, None) for name in sorted(_QUOTED)}
    return {
        "receipt": receipt.id,
        "kind": receipt.kind,
        "at": exact(receipt.at),
        "stream": receipt.stream,
        "seq": receipt.seq,
        "root": receipt.root,
        "mode": receipt.mode,
        "who": event.who,
        "words": event.words,
        **{name: value for name, value in said.items() if value is not None},
    }


def repeat(store: LedgerStore, feed: Feed, look: Look, begin: Callable[[LedgerView], None] | None) -> None:
    """Call `look` with new receipts again and again; with `begin`, that shows the existing ones instead.

    Ends with an interrupt, which `answered` turns into an exit code.
    """
    if begin is not None:
        feed.sequence()
        with viewed(store) as view:
            feed.skip(view)
            begin(view)
    tell(paint(f"following {store.url}; {_STOP}", dim=True))
    troubled = False
    while True:
        try:
            feed.sequence()
            with viewed(store) as view:
                look(view, feed.read(view))
            troubled = False
        except (StoreBusyError, StoreUnavailableError) as error:
            if not troubled:  # once for each outage, not three times a second
                tell_trouble(error)
            troubled = True
        pause()


def pause() -> None:
    """Wait before looking again. No store notifies us, so we poll."""
    time.sleep(_POLL)


def _line(event: ReceiptEvent) -> Painted:
    last = event.receipt.kind.rpartition(".")[2]
    words = () if event.words is None else (event.words,)
    parts = [
        paint(f"{moment(event.receipt.at)}  ", dim=True),
        paint(f"{event.who}  "),
        paint(event.receipt.kind, _COLOURS.get(last)),
        paint(f"  {' · '.join((*event.about, *words))}" if event.about or words else ""),
    ]
    return Painted("".join(parts))


def _who(view: LedgerView, receipt: Receipt) -> str:
    try:
        return f"{view.get_run(RunId(receipt.stream)).agent} {ending(receipt.stream)}"
    except NotFoundError:
        pass
    try:
        return f"handoff to {view.get_handoff(HandoffId(receipt.stream)).to} {ending(receipt.stream)}"
    except NotFoundError:
        return f"{receipt.stream.partition('_')[0]} {ending(receipt.stream)}"


def _words(view: LedgerView, receipt: Receipt) -> str | None:
    texts = read_texts(view, receipt)
    # A run records several items at once, under numbered names.
    known = [(name.partition(".")[0], text) for name, text in texts.items()]
    name, text = next(((kind, text) for wanted in _TELLING for kind, text in known if kind == wanted), ("", None))
    if text is None:
        return None
    return text.first_line if text.body is None else str(first_line(name, text.ref.id, text.body))


def _root_of(view: LedgerView, top: RunId | HandoffId) -> RunId:
    return view.get_run(RunId(top)).root if top.startswith(RUN) else view.get_handoff(HandoffId(top)).root


def _is_below(view: LedgerView, stored: StoredReceipt, top: RunId | HandoffId) -> bool:
    """Return whether a receipt belongs to a run or a handoff, or to something below it."""
    place: str | None = stored.stream
    seen: set[str] = set()
    while place is not None and place not in seen:
        if place == top:
            return True
        seen.add(place)
        try:
            if place.startswith(f"{HANDOFF}_"):
                place = view.get_handoff(HandoffId(place)).parent
            else:
                run = view.get_run(RunId(place))
                place = run.handoff or run.parent
        except NotFoundError:
            return False
    return False
