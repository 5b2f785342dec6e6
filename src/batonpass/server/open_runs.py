"""The runs that are open through this server. The programs that work on them are elsewhere, and go on when it restarts.

A run is kept here while it is open. One that another process of this server began is read back from its receipts: its
key is in a file beside the ledger, so nobody is fenced, and the client goes on with the proof that it has.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from batonpass.errors import HandoffEndedError, KeyMissingError
from batonpass.handoff.calls.pending_call import Begun
from batonpass.handoff.history.past_calls import read_resumption
from batonpass.handoff.live.faces import LiveRun
from batonpass.handoff.sessions.resume import follow_run
from batonpass.handoff.tools.foreign_call import ForeignCall
from batonpass.ledger.position import Working
from batonpass.model.base.ids import CallId, RunId, StreamId
from batonpass.model.ledger.key import Signer
from batonpass.model.ledger.run import RunState
from batonpass.records.text import read_receipt
from batonpass.relay import Relay, desk_of
from batonpass.signing.keys_elsewhere import ElsewhereSigner, signature_source

Told = TypeVar("Told")


class OpenRun(Struct, kw_only=True, eq=False):
    """A run that is open through this server, and its calls that have no outcome yet."""

    live: LiveRun
    elsewhere: bool = False  # its key is with its client, and only that client signs for it
    turn: threading.RLock = field(default_factory=threading.RLock)  # one act of a run at a time
    calls: dict[CallId, tuple[Begun, ForeignCall]] = field(default_factory=dict)


class OpenRuns:
    """Keeps the open runs of a server. Safe to use from many threads."""

    def __init__(self, relay: Relay) -> None:
        self._relay = relay
        self._lock = threading.Lock()
        self._open: dict[RunId, OpenRun] = {}

    def add(self, live: LiveRun) -> OpenRun:
        """Keep a run that was begun just now. Its program may outlive this server.

        A root goes on while a call of it is held. An attempt at a handoff ends there, as everywhere: the next attempt,
        after the approval, goes on from there.
        """
        holding = live._holding  # noqa: SLF001 - a door inside the package
        holding.stays_open = holding.working.run.handoff is None
        holding.first_look = None  # the files that it may write are on another machine
        # No epoch: whichever process of this server has the key may write, as with hooks.
        holding.working = replace(holding.working, epoch=None)
        elsewhere = self.is_elsewhere(live.id)
        with self._lock:
            return self._open.setdefault(live.id, OpenRun(live=live, elsewhere=elsewhere))

    @contextmanager
    def turn_of(self, run: RunId) -> Iterator[OpenRun]:
        """Open a run for one act. Raises `HandoffEndedError` if it is over, and `KeyMissingError`."""
        found = self._find(run)
        if found.elsewhere and signature_source() is None:
            # Before its turn: while its client signs something, nobody else has to wait for that.
            raise KeyMissingError(f"the key of {run} is with the client that began it; that client has to sign")
        with found.turn:
            yield found

    def signer_of(self, run: RunId) -> Signer:
        """Return the key of an open run, with which the proof for its holder is made. Raises `KeyMissingError`."""
        return desk_of(self._relay).run_keys.get(run)[0]

    def is_elsewhere(self, run: RunId) -> bool:
        """Return whether the key of an open run is with its client, who makes the proof itself."""
        return isinstance(self.signer_of(run), ElsewhereSigner)

    def forget(self, run: RunId) -> None:
        """Forget a run that is over."""
        with self._lock:
            self._open.pop(run, None)

    def act(self, run: RunId, act: Callable[[OpenRun], Told]) -> Told:
        """Do one act in a run."""
        with self.turn_of(run) as found:
            return act(found)

    def find(self, run: RunId) -> OpenRun:
        """Return an open run, only to read from it. Raises as `turn_of` does."""
        return self._find(run)

    def _find(self, run: RunId) -> OpenRun:
        with self._lock:
            known = self._open.get(run)
        return known or self._follow(run)

    def _follow(self, run: RunId) -> OpenRun:
        desk = desk_of(self._relay)
        with desk.store.view() as view:
            known = view.get_run(run)
            if known.state is not RunState.OPEN:
                raise HandoffEndedError(run, known.state)
            first = read_receipt(view.get_receipt_at(StreamId(run), 1))
            desk.secrets.fetch(known.root)
            holding = follow_run(view, Working(run=known, mode=first.mode, session=first.session))
            if known.handoff is not None:
                # What attempts before this one finished is not made again, whichever process carries this one.
                before = read_resumption(view, view.get_handoff(known.handoff))
                holding.resumption = replace(
                    before,
                    finished=tuple(one for one in before.finished if one.run != run),
                    in_doubt=tuple(one for one in before.in_doubt if one.run != run),
                )
        try:
            desk.run_keys.get(run)
        except KeyMissingError:
            raise KeyMissingError(
                f"the key of {run} is with another relay, or with the client that began it; ask there"
            ) from None
        return self.add(LiveRun(desk, holding, self._relay.runners))
