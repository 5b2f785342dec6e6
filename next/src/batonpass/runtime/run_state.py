"""A run at work. Nothing here that the ledger could not answer, but the head of its stream and what is being made now.

`history` is the one cache, and it has one rule: whenever an append was cut short or lost, it is read again before the
next act.
"""

import logging
from threading import Lock
from typing import Final

from msgspec import Struct, field

from batonpass.errors import FencedError, StoreError
from batonpass.log.append import Draft, Recorder, StreamWriter
from batonpass.model.grants import Held
from batonpass.model.items import AnyItem, Baton
from batonpass.model.lifecycle import RunState
from batonpass.model.values import Mode
from batonpass.reading.history import History, read_run
from batonpass.runtime.effects import Snapshot

_log: Final = logging.getLogger("batonpass")
_MOST_GAPS: Final = 1_000


class OpenCall(Struct, kw_only=True):
    """A call that is being made."""

    id: str
    key: str
    tool: str
    target: str
    began_at: int
    before: Snapshot | None = None


class ActiveRun(Struct, eq=False, kw_only=True):
    """One agent at work."""

    writer: StreamWriter
    agent: str
    principal: str
    tree_secret: bytes
    baton: Baton
    parent: str | None = None
    handoff: str | None = None
    attempt: int = 1
    lineage: tuple[Held, ...] = ()  # what each hop holds, its own last; empty: observed
    history: History = field(default_factory=History)
    open_calls: dict[str, OpenCall] = field(default_factory=dict)
    settled_calls: dict[str, OpenCall] = field(default_factory=dict)  # decided about while the tool is at work here
    settling: set[str] = field(default_factory=set)  # calls that are being decided about
    guard: Lock = field(default_factory=Lock)  # between threads, for a moment: never held while anything waits
    unwritten_items: tuple[AnyItem, ...] = ()  # what it knows and could not record: written with its next offer
    unwritten_close: Draft | None = None  # it has ended, and could not say so: its parent tries again at its own end
    unwritten_children: list["ActiveRun"] = field(default_factory=list)
    reporter: "ActiveRun | None" = None  # of a run that has no place in the record: which run says that it is missing
    is_replayed: bool = False  # its attempt has completed: what it did is given again, and nothing is added

    def __repr__(self) -> str:
        """Return it without its secrets: a traceback may show it to others."""
        return f"ActiveRun({self.id})"

    @property
    def id(self) -> str:
        """Its id, which is the name of its stream."""
        return self.writer.stream

    @property
    def root(self) -> str:
        """The run that the tree began with."""
        return self.writer.root

    @property
    def owner(self) -> str:
        """What goes on when an attempt does not: the handoff, or the root run. Offers and calls are known by it."""
        return self.handoff or self.writer.stream

    @property
    def mode(self) -> Mode:
        """Whether its grant is enforced, or it is observed only."""
        return self.writer.mode

    def require_live(self) -> None:
        """Raise `FencedError` if it only gives again what a completed attempt did."""
        if self.is_replayed:
            detail = f"{self.id} has ended: what it did is given again, and nothing is added"
            raise FencedError(detail, code="ledger.stream_closed")

    def require_open(self, recorder: Recorder) -> None:
        """Raise `FencedError` if the run was taken over or has ended: for what is written into another stream."""
        row = recorder.store.find_stream(self.id)
        if row is None or row.epoch != self.writer.epoch or row.state != RunState.OPEN:
            raise FencedError(f"{self.id} was taken over: what it does now is not recorded in its name")

    def note_gap(self, what: str, error: StoreError) -> None:
        """Let an observed run go on when something could not be recorded: it is said with its next receipt.

        Raises the error for an enforced run, which fails closed.
        """
        if self.mode == "enforced":
            raise error
        _log.warning("%r goes on unrecorded: %r: %r", self.agent, what, str(error))
        gaps = (self.reporter or self).writer.gaps
        if len(gaps) < _MOST_GAPS:
            gaps.append(f"{self.agent}: {what}: {error}")
        else:  # however long a disk stays full, this stays small
            gaps[-1] = "and more"

    def refresh(self, recorder: Recorder) -> None:
        """Read the history again, if what is remembered may not be what is recorded.

        An observed run goes on without, if nothing can be read: what it does next will not be written either.
        """
        if not self.writer.is_unsure:
            return
        try:
            self._read_again(recorder)
        except StoreError:
            if self.mode == "enforced":
                raise

    def _read_again(self, recorder: Recorder) -> None:
        # No append is at work meanwhile: what another thread wrote during the reading would be forgotten again.
        with self.writer.lock:
            if self.writer.is_unsure:
                self.writer.read_head()
                row = None if self.handoff is None else recorder.store.find_handoff(self.handoff)
                self.history = read_run(recorder.store, self.id, row)
                self.unwritten_items = tuple(each for each in self.unwritten_items if each not in self.history.items)
                self.writer.is_unsure = False
