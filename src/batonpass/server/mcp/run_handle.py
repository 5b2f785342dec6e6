"""The handle of a run, which a model passes on to act in the run's name. It is short, because models copy it.

It is made from the proof of the run, so it is of use only together with the same token, and only until the run is taken
over. Nothing is stored: the process that keeps the run's key makes it again and compares.
"""

import hmac
from base64 import urlsafe_b64encode
from hashlib import sha256
from typing import Final

from batonpass.errors import InvalidValueError, KeyMissingError, KeyRefusedError, RunProofError
from batonpass.model.base.checks import shorten
from batonpass.model.base.ids import RUN, RunId, TokenId, require_id
from batonpass.server.open_runs import OpenRuns
from batonpass.signing.run_proof import make_proof

_BETWEEN: Final = "."
_LENGTH: Final = 16  # characters, 96 bits: nobody guesses that, least of all at a server that counts wrong ones


def handle_of(proof: str) -> str:
    """Return the handle that stands for a proof."""
    run, _, _ = proof.partition(_BETWEEN)
    return f"{run}{_BETWEEN}{urlsafe_b64encode(sha256(proof.encode()).digest())[:_LENGTH].decode('ascii')}"


def run_of(handle: str) -> str:
    """Return the run that a handle or a proof is for, as far as it says so itself."""
    return handle.partition(_BETWEEN)[0]


def proof_behind(runs: OpenRuns, token: TokenId, handle: str) -> str:
    """Return the proof for which a handle stands; a whole proof stands for itself. Raises `RunProofError`."""
    run, _, rest = handle.partition(_BETWEEN)
    if len(rest) > _LENGTH:
        return handle  # the reach checks it, as it does every proof
    try:
        named = require_id("run", RunId(run), RUN)
        proof = make_proof(runs.signer_of(named), named, token)
    except (InvalidValueError, KeyMissingError, KeyRefusedError):
        raise RunProofError(shorten(run)) from None  # a run that is over has no key any more either
    if not hmac.compare_digest(handle_of(proof).encode(), handle.encode()):
        raise RunProofError(run)
    return proof
