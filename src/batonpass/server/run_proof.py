"""Whose request it is: the proof of a run is checked with the public key that the run's own receipts have."""

from base64 import urlsafe_b64decode
from binascii import Error as NotBase64Error

from batonpass.errors import NotFoundError, RunProofError
from batonpass.model.base.ids import RunId, TokenId
from batonpass.records.run_key import get_run_key
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
