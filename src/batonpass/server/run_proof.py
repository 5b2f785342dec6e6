"""The proof that a request comes from a run: a signature with the run's key, which only its holder can make.

It names the token as well, so a proof that somebody else got hold of is of no use without the token. When a run is
taken over it gets another key, and every proof from before is void.
"""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as NotBase64Error
from typing import Final

from batonpass.errors import NotFoundError, RunProofError
from batonpass.model.base.ids import RunId, TokenId
from batonpass.model.ledger.key import Signer
from batonpass.records.run_key import get_run_key
from batonpass.signing.ed25519 import is_signed
from batonpass.store.port import LedgerView

_STATEMENT: Final = "batonpass run proof v1\n{token}\n{run}\n"
_BETWEEN: Final = "."


def make_proof(signer: Signer, run: RunId, token: TokenId) -> str:
    """Return the proof with which the holder of a token acts in the name of a run."""
    signature = urlsafe_b64encode(signer.sign(_statement(run, token))).rstrip(b"=").decode("ascii")
    return f"{run}{_BETWEEN}{signature}"


def proven_run(view: LedgerView, proof: str | None, token: TokenId) -> RunId:
    """Return the run that a proof is for. Raises `RunProofError` if there is none, or it is not one of this token."""
    if not proof:
        raise RunProofError(None)
    given, _, text = proof.partition(_BETWEEN)
    run = RunId(given)
    try:
        signature = urlsafe_b64decode(f"{text}{'=' * (-len(text) % 4)}".encode("ascii"))
        key = bytes.fromhex(get_run_key(view, run))
    except (NotBase64Error, NotFoundError, UnicodeEncodeError):
        raise RunProofError(run) from None
    if not is_signed(key, _statement(run, token), signature):
        raise RunProofError(run)
    return run


def _statement(run: RunId, token: TokenId) -> bytes:
    return _STATEMENT.format(token=token, run=run).encode()
