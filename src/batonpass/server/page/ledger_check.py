"""A verification of the whole ledger that goes on while nobody looks: one at a time, with its progress."""

import threading
import time
from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from batonpass.errors import BatonpassError
from batonpass.model.base.ids import PrincipalId
from batonpass.server.answer import told_error
from batonpass.server.control_plane import ControlPlane


class CheckState(Struct, frozen=True, kw_only=True):
    """How far a verification is, or its result."""

    by: PrincipalId
    began_at: datetime
    is_over: bool = False
    done: int = 0
    total: int = 0
    seconds: float = 0.0
    receipts: int = 0  # that were verified, once it is over
    signatures: int = 0
    error: dict[str, object] | None = None  # what does not hold


class LedgerCheck:
    """Verifies the ledger of a server in a thread of its own. Safe to use from many threads."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane
        self._lock = threading.Lock()
        self._state: CheckState | None = None

    @property
    def state(self) -> CheckState | None:
        """Return how far the latest one is; None if nobody began one since the server was started."""
        with self._lock:
            return self._state

    def begin(self, by: PrincipalId) -> None:
        """Begin a verification, unless one is under way."""
        with self._lock:
            if self._state is not None and not self._state.is_over:
                return
            self._state = CheckState(by=by, began_at=self._plane.clock.now())
        threading.Thread(target=self._run, name="page-verification", daemon=True).start()

    def _run(self) -> None:
        since = time.monotonic()
        try:
            evidence = self._plane.relay.verify(progress=self._tell)
        except BatonpassError as error:
            self._change(is_over=True, error=told_error(error), seconds=time.monotonic() - since)
            return
        except Exception:
            fault = {"code": "http.internal", "message": "the verification itself failed; the log says more"}
            self._change(is_over=True, error=fault, seconds=time.monotonic() - since)
            raise
        self._change(
            is_over=True,
            receipts=evidence.receipts,
            signatures=evidence.signatures,
            seconds=time.monotonic() - since,
        )

    def _tell(self, done: int, total: int) -> None:
        self._change(done=done, total=total)

    def _change(self, **changed: object) -> None:
        with self._lock:
            if self._state is not None:
                self._state = replace(self._state, **changed)
