"""The reach of a caller: people reach the whole ledger, an agent only a run that it proves, and everything below it."""

from base64 import urlsafe_b64decode
from binascii import Error as NotBase64Error

from batonpass.errors import NotFoundError, OutOfReachError, RunProofError
from batonpass.model.base.ids import HANDOFF, RUN, HandoffId, RunId, TokenId
from batonpass.model.base.lifecycle import Carrier
from batonpass.model.ledger.receipt import Receipt
from batonpass.model.ledger.run import Handoff, Run
from batonpass.records.lineage import find_ancestors
from batonpass.records.run_key import get_run_key
from batonpass.server.access import AccessCaller
from batonpass.signing.ed25519 import is_signed
from batonpass.signing.run_proof import BETWEEN, proof_statement
from batonpass.store.port import LedgerView


def proven_run(view: LedgerView, proof: str | None, token: TokenId) -> RunId:
    """Return the run that a proof is for. Raises `RunProofError` if there is none, or it is not one of this token."""
    if not proof:
        raise RunProofError(None)
    given, _, text = proof.partition(BETWEEN)
    run = RunId(given)
    try:
        signature = urlsafe_b64decode(f"{text}{'=' * (-len(text) % 4)}".encode("ascii"))
        key = bytes.fromhex(get_run_key(view, run))
    except (NotBase64Error, NotFoundError, UnicodeEncodeError):
        raise RunProofError(run) from None
    if not is_signed(key, proof_statement(run, token), signature):
        raise RunProofError(run)
    return run


def claimable(view: LedgerView, caller: AccessCaller, proof: str | None, given: str) -> Handoff | None:
    """Return a handoff that waits, or waited, for a worker of one of the agents that a token names.

    Such a worker has no run before it takes the handoff, and so no proof. It may read the handoff that it claims.
    """
    if not caller.is_agent or proof is not None:
        return None
    try:
        found = view.get_handoff(HandoffId(given))
    except NotFoundError:
        return None
    return found if found.to in caller.token.agents and found.carrier is Carrier.WORKER else None


class CallerReach:
    """The reach of one request, at one moment of the ledger.

    An agent gets the same answer for things that it may not see and for things that do not exist.
    """

    def __init__(self, view: LedgerView, caller: AccessCaller, proof: str | None) -> None:
        self._view = view
        self._caller = caller
        self._own = self._proven(proof) if caller.is_agent else None
        self._known: dict[RunId, bool] = {}

    @property
    def own(self) -> Run:
        """Return the run in whose name an agent acts. Raises `RunProofError` for anybody else."""
        if self._own is None:
            raise RunProofError(None)
        return self._own

    @property
    def is_limited(self) -> bool:
        """Return whether the caller reaches only a part of the ledger."""
        return self._own is not None

    def run(self, given: str) -> Run:
        """Return a run that is within reach. Raises `OutOfReachError` or, for people, `NotFoundError`."""
        try:
            found = self._view.get_run(RunId(given))
        except NotFoundError:
            raise self._nothing(given) from None
        if not self.covers(found):
            raise OutOfReachError(given)
        return found

    def handoff(self, given: str) -> Handoff:
        """Return a handoff of a run that is within reach. Raises as `run` does."""
        try:
            found = self._view.get_handoff(HandoffId(given))
            parent = self._view.get_run(found.parent)
        except NotFoundError:
            raise self._nothing(given) from None
        if not self.covers(parent):
            raise OutOfReachError(given)
        return found

    def readable_handoff(self, given: str) -> Handoff:
        """Return a handoff that may be read: also the one that the caller's own run works on."""
        if self._own is not None and self._own.handoff == given:
            return self._view.get_handoff(HandoffId(given))
        return self.handoff(given)

    def covers(self, run: Run) -> bool:
        """Return whether a run is within reach."""
        if self._own is None or run.id == self._own.id:
            return True
        if run.root != self._own.root:
            return False
        known = self._known.get(run.id)
        if known is None:
            known = any(above.id == self._own.id for above in find_ancestors(self._view, run))
            self._known[run.id] = known
        return known

    def covers_receipt(self, receipt: Receipt) -> bool:
        """Return whether a receipt is within reach: it stands in the stream of such a run, or of its handoff."""
        if self._own is None:
            return True
        try:
            if receipt.stream.startswith(f"{RUN}_"):
                return self.covers(self._view.get_run(RunId(receipt.stream)))
            if receipt.stream.startswith(f"{HANDOFF}_"):
                return self.covers(self._view.get_run(self._view.get_handoff(HandoffId(receipt.stream)).parent))
        except NotFoundError:
            return False
        return False

    def _nothing(self, given: str) -> Exception:
        if self._own is not None:
            return OutOfReachError(given)
        return NotFoundError("run or handoff", given)

    def _proven(self, proof: str | None) -> Run:
        run = self._view.get_run(proven_run(self._view, proof, self._caller.token.id))
        # The key alone is not enough: the run must be one that this token could have begun.
        own = run.principal == self._caller.principal and self._caller.may_work_as(run.agent)
        if not own and not self._claimed(run):
            raise RunProofError(run.id)
        return run

    def _claimed(self, run: Run) -> bool:
        """Return whether it is an attempt that a worker with this token could have claimed, in anybody's tree."""
        if run.handoff is None or run.agent not in self._caller.token.agents:
            return False
        return self._view.get_handoff(run.handoff).carrier is Carrier.WORKER
