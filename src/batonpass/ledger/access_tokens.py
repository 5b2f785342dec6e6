"""Access tokens: made once, kept as a digest, revoked by a receipt. Each is recorded in the relay's own stream."""

import json
import secrets
from datetime import datetime
from hashlib import sha256
from typing import Final

from msgspec import Struct

from batonpass.clock import Clock
from batonpass.ledger.draft import Draft
from batonpass.ledger.ledger import Ledger, Recorder
from batonpass.model.base.content_names import CEILING, REASON
from batonpass.model.base.ids import AgentId, Digest, PrincipalId, StreamId, TokenId, new_token_id
from batonpass.model.base.kinds import AccessRole
from batonpass.model.bodies.body import Body, TokenAdded, TokenRevoked
from batonpass.model.ledger.content import Content, new_content
from batonpass.store.port import LedgerStore

_SECRET_BYTES: Final = 32
_BETWEEN: Final = "."


class AccessCeiling(Struct, frozen=True, kw_only=True):
    """The ceiling for a run that is started with a token: permits to use, and permits to delegate."""

    may: tuple[str, ...] = ()
    may_delegate: tuple[str, ...] = ()


class IssuedToken(Struct, frozen=True, kw_only=True):
    """A new token. Its text is shown once, and is written down nowhere."""

    id: TokenId
    text: str

    def __repr__(self) -> str:
        return f"<IssuedToken {self.id}>"  # never the text: whoever has it comes in


def secret_digest(secret: str) -> Digest:
    """Return the digest under which a secret is kept. It is random and long, so a plain digest tells nothing."""
    return Digest(sha256(secret.encode()).hexdigest())


def split_token(text: str) -> tuple[TokenId, str]:
    """Return the id and the secret of a token as it is sent. Whether there is such a token is another question."""
    given, _, secret = text.partition(_BETWEEN)
    return TokenId(given), secret


class AccessTokens:
    """Adds and revokes tokens."""

    def __init__(self, store: LedgerStore, ledger: Ledger, recorder: Recorder, clock: Clock) -> None:
        self._store = store
        self._ledger = ledger
        self._recorder = recorder
        self._clock = clock

    def add(
        self,
        principal: PrincipalId,
        role: AccessRole,
        *,
        until: datetime,
        by: PrincipalId,
        agents: tuple[AgentId, ...] = (),
        ceiling: AccessCeiling | None = None,
    ) -> IssuedToken:
        """Add a token, and return it. This is the only moment at which its text is known."""
        at = self._clock.now()
        token, secret = new_token_id(at), secrets.token_urlsafe(_SECRET_BYTES)
        body = TokenAdded(
            token=token,
            secret=secret_digest(secret),
            principal=principal,
            role=role,
            until=until,
            by=by,
            agents=agents,
        )
        contents: tuple[Content, ...] = ()
        if ceiling is not None:
            document = json.dumps({"may": ceiling.may, "may_delegate": ceiling.may_delegate}, ensure_ascii=False)
            contents = (new_content(CEILING, document, at, media_type="application/json"),)
        self._note(body, contents)
        return IssuedToken(id=token, text=f"{token}{_BETWEEN}{secret}")

    def revoke(self, token: TokenId, *, by: PrincipalId, reason: str) -> None:
        """Revoke a token from now on, in every process."""
        self._note(TokenRevoked(token=token, by=by), (new_content(REASON, reason, self._clock.now()),))

    def _note(self, body: Body, contents: tuple[Content, ...]) -> None:
        with self._store.view() as view:
            anchor = view.info().genesis
        stream = StreamId(self._recorder.id)
        self._ledger.append(Draft(stream=stream, body=body, anchor=anchor, contents=contents))
