"""Acts about the ledger as a whole: verify it, and end a grant."""

from collections.abc import Sequence

from batonpass.api.acts import DECIDE, Caller, Value, act
from batonpass.model.receipt import Signed
from batonpass.runtime import retry as deciding
from batonpass.runtime.context import Context
from batonpass.verify.verifier import Evidence, verify


class VerifyLedger(Value, frozen=True):
    """Verify every receipt. The keys are in hex, from where they are kept apart from the ledger."""

    root_key: str | None = None  # not given: any root key; the evidence says which
    relay_key: str | None = None  # not given: the one of this relay


@act("GET /v1/ledger/verification", roles=DECIDE | {"auditor"})
def verify_ledger(context: Context, caller: Caller, request: VerifyLedger) -> Evidence:  # noqa: ARG001 - as every act
    """Verify every receipt of the ledger, and name the first thing that is wrong."""
    recorder = context.recorder
    return verify(recorder.store, root_key=request.root_key, relay_key=request.relay_key or recorder.key.public)


class RevokeGrant(Value, frozen=True):
    """End a grant and all that hang from it: `account` is the root run or the handoff that it was given to."""

    account: str
    by: str | None = None
    reason: str = ""


class Revoked(Value, frozen=True):
    """The grant has ended."""

    account: str


@act("POST /v1/grants/{account}/revoke", roles=DECIDE)
def revoke_grant(context: Context, caller: Caller, request: RevokeGrant) -> Revoked:
    """End a grant and all that hang from it. No call that needs it is made any more; ending it twice does nothing."""
    deciding.revoke_grant(context, request.account, by=caller.act_as(request.by), reason=request.reason)
    return Revoked(account=request.account)


@revoke_grant.repeated
def _revoked(_: Context, request: RevokeGrant, __: Sequence[Signed]) -> Revoked:
    return Revoked(account=request.account)
