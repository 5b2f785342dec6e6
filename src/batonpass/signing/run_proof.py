"""The proof that a request comes from a run: a signature with the run's key, which only its holder can make.

It names the token as well, so a proof that somebody else got hold of is of no use without the token. When a run is
taken over it gets another key, and every proof from before is void.
"""

from base64 import urlsafe_b64encode
from typing import Final

from batonpass.model.base.ids import RunId, TokenId
from batonpass.model.ledger.key import Signer

BETWEEN: Final = "."
_STATEMENT: Final = "batonpass run proof v1\n{token}\n{run}\n"


def make_proof(signer: Signer, run: RunId, token: TokenId) -> str:
    """Return the proof with which the holder of a token acts in the name of a run."""
    signature = urlsafe_b64encode(signer.sign(proof_statement(run, token))).rstrip(b"=").decode("ascii")
    return f"{run}{BETWEEN}{signature}"


def proof_statement(run: RunId, token: TokenId) -> bytes:
    """Return the bytes that a proof signs."""
    return _STATEMENT.format(token=token, run=run).encode()
