"""Access tokens as they were added and revoked: the owner of each, the role, and the end."""

import json
from collections.abc import Iterator
from datetime import datetime

from msgspec import Struct

from batonpass.errors import NotFoundError
from batonpass.model.base.content_names import CEILING
from batonpass.model.base.ids import AgentId, Digest, PrincipalId, ReceiptId, TokenId
from batonpass.model.base.kinds import AccessRole
from batonpass.model.bodies.body import TokenAdded, TokenRevoked
from batonpass.model.ledger.receipt import Receipt
from batonpass.model.ledger.remark import RemarkKind
from batonpass.records.text import Text, read_receipt_again, read_texts
from batonpass.store.port import LedgerView


class TokenRecord(Struct, frozen=True, kw_only=True):
    """A token: its principal, its role and ceiling, and whether it is still valid."""

    id: TokenId
    receipt: ReceiptId
    secret: Digest
    principal: PrincipalId
    role: AccessRole
    agents: tuple[AgentId, ...]
    may: tuple[str, ...]
    may_delegate: tuple[str, ...]
    is_ceiling_lost: bool  # it had one, and somebody erased it
    added_by: PrincipalId
    added_at: datetime
    until: datetime
    revoked_by: PrincipalId | None = None
    revoked_at: datetime | None = None

    def is_valid(self, at: datetime) -> bool:
        """Return whether it lets somebody in at this moment."""
        return self.revoked_at is None and at < self.until and not self.is_ceiling_lost


def get_token(view: LedgerView, token: TokenId) -> TokenRecord:
    """Return a token. Raises `NotFoundError`."""
    receipts = [read_receipt_again(view.get_receipt(one.receipt)) for one in view.find_remarks(RemarkKind.TOKEN, token)]
    added = next((one for one in receipts if isinstance(one.body, TokenAdded) and one.body.token == token), None)
    if added is None:
        raise NotFoundError("token", token)
    revoked = [one for one in receipts if isinstance(one.body, TokenRevoked) and one.body.token == token]
    # The latest comes first, and the first revocation is the one that counts.
    return _record(view, added, revoked[-1] if revoked else None)


def find_tokens(view: LedgerView) -> Iterator[TokenRecord]:
    """Yield all tokens, the latest first, those that are over included."""
    for name in dict.fromkeys(remark.name for remark in view.find_remarks(RemarkKind.TOKEN)):
        yield get_token(view, TokenId(name))


def _record(view: LedgerView, added: Receipt, revoked: Receipt | None) -> TokenRecord:
    if not isinstance(added.body, TokenAdded):
        raise NotFoundError("token", added.id)
    body, ceiling = added.body, read_texts(view, added).get(CEILING)
    said = _ceiling(ceiling)
    return TokenRecord(
        id=body.token,
        receipt=added.id,
        secret=body.secret,
        principal=body.principal,
        role=body.role,
        agents=body.agents,
        may=tuple(said.get("may", ())),
        may_delegate=tuple(said.get("may_delegate", ())),
        is_ceiling_lost=ceiling is not None and ceiling.words is None,
        added_by=body.by,
        added_at=added.at,
        until=body.until,
        revoked_by=revoked.body.by if revoked is not None and isinstance(revoked.body, TokenRevoked) else None,
        revoked_at=None if revoked is None else revoked.at,
    )


def _ceiling(text: Text | None) -> dict[str, list[str]]:
    return {} if text is None or text.words is None else json.loads(text.words)
