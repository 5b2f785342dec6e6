"""`relay.admin`: the methods for people who look after a ledger, its keys, seals, tokens, bundles and erasures."""

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from batonpass.clock import Clock
from batonpass.errors import InvalidValueError, StoreReadOnlyError, StoreRefusedError
from batonpass.model.base.checks import as_member, require_text
from batonpass.model.base.durations import as_duration
from batonpass.model.base.ids import (
    AgentId,
    ContentId,
    KeyId,
    PrincipalId,
    PublicKey,
    RelayId,
    RunId,
    require_agent,
    require_principal,
)
from batonpass.model.base.kinds import AccessRole
from batonpass.model.ledger.key import Key
from batonpass.model.ledger.seal import Seal
from batonpass.store.port import LedgerStore

if TYPE_CHECKING:
    from batonpass.audit.verification.evidence import Evidence
    from batonpass.handoff.runtime.desk import Desk
    from batonpass.handoff.runtime.membership import Membership
    from batonpass.ledger.access_tokens import AccessTokens, IssuedToken
    from batonpass.model.bodies.body import WebhookChanged
    from batonpass.records.access_token import TokenRecord
    from batonpass.records.recipients.webhook import WebhookRecord

# As in the relay, each method imports its use case when it is first called.

LONGEST_TOKEN: Final = timedelta(days=366)
GOOD_FOR: Final = timedelta(hours=1)  # the lifetime of a list of revocations


class Admin:
    """Keys, approvers, seals, bundles and erasure: the methods for people who look after a ledger."""

    def __init__(
        self,
        store: LedgerStore,
        clock: Clock,
        *,
        membership: "Callable[[], Membership]",
        desk: "Callable[[], Desk]",
        rotated: Callable[[], None],
    ) -> None:
        self._store = store
        self._clock = clock
        self._membership = membership
        self._desk = desk
        self._rotated = rotated

    def __repr__(self) -> str:
        return f"<Admin of {self._store.url}>"

    def identity(self) -> tuple[RelayId, PublicKey]:
        """Return the id and the public key under which this relay asks to be enrolled."""
        return self._membership().identity()

    def seal(self) -> Seal:
        """Return a seal over all receipts so far. Kept elsewhere, it shows later whether anything was deleted."""
        from batonpass.ledger.seals import Sealing  # noqa: PLC0415 - as above

        _, identity = self._membership().join()
        return Sealing(self._store, identity).seal()

    def erase(self, contents: Sequence[ContentId], *, by: str, reason: str) -> None:
        """Erase contents for good. Their receipts stay and still verify; the erasure is recorded as a receipt too."""
        from batonpass.ledger.erasure import Erasure  # noqa: PLC0415 - as above

        ledger, identity = self._membership().join()
        Erasure(self._store, ledger, identity, self._clock).erase(contents, by=by, reason=reason)
        from batonpass.drift.rollup import keep_up  # noqa: PLC0415 - as above

        # What was erased stands in roll-ups too, until they are made again. Without any, there is nothing to do.
        with self._store.view() as view:
            has_rolled = view.rolled().version
        if has_rolled:
            keep_up(self._store)

    def keys(self) -> tuple[Key, ...]:
        """Return every key that is enrolled or ever was. The root key comes first."""
        return self._membership().keys()

    def enroll(self, relay: RelayId, public_key: PublicKey) -> None:
        """Let another relay record in this ledger. Needs the root key. Raises `KeyRefusedError` for an unusable key."""
        self._membership().enroll(relay, public_key)

    def rotate(self) -> PublicKey:
        """Replace the key of this relay and return the new public key. Open runs go on under it. Needs the root key."""
        fresh = self._membership().rotate()
        self._rotated()  # open runs go on under the new key
        return fresh

    def revoke(self, key: Key, *, reason: str) -> None:
        """Stop a relay key from recording. Needs the root key.

        Raises `KeyRefusedError` if the key cannot be revoked.
        """
        self._membership().revoke(key, reason=reason)

    def enroll_approver(self, principal: str, public_key: PublicKey) -> None:
        """Enrol the key that signs the rulings of a principal. Needs the root key.

        Raises `KeyRefusedError` for an unusable key.
        """
        self._membership().enroll_approver(require_principal("principal", PrincipalId(principal)), public_key)

    def revoke_approver(self, principal: str, *, reason: str) -> Key:
        """Revoke the key of an approver and return it. It signs no rulings from now on. Needs the root key."""
        return self._membership().revoke_approver(PrincipalId(principal), reason=reason)

    def add_token(
        self,
        principal: str,
        role: AccessRole | str,
        *,
        by: str,
        lasts: timedelta | str,
        agents: Sequence[str] = (),
        may: Sequence[str] = (),
        may_delegate: Sequence[str] = (),
    ) -> "IssuedToken":
        """Add a token with which somebody comes in through a server. Its text is returned this once, and kept nowhere.

        Runs that are started with it are the principal's, for one of these agents, and within `may` and `may_delegate`.
        Raises `InvalidValueError`, also for a token of an agent that says neither.
        """
        from batonpass.ledger.access_tokens import AccessCeiling  # noqa: PLC0415 - as above
        from batonpass.model.grants.scope_text import read_scope  # noqa: PLC0415 - as above

        known = as_member("role", role, AccessRole)
        if known is AccessRole.AGENT and not may and not may_delegate:
            raise InvalidValueError("may", "is missing: a token of an agent says what its runs may use or delegate")
        duration = as_duration("lasts", lasts)
        if not timedelta(0) < duration <= LONGEST_TOKEN:
            raise InvalidValueError("lasts", f"is between a moment and {LONGEST_TOKEN.days} days; tokens are replaced")
        ceiling = AccessCeiling(may=read_scope(may).lines, may_delegate=read_scope(may_delegate).lines)
        return self._tokens().add(
            require_principal("principal", PrincipalId(principal)),
            known,
            until=self._clock.now() + duration,
            by=require_principal("by", PrincipalId(by)),
            agents=tuple(require_agent("agents", AgentId(agent)) for agent in dict.fromkeys(agents)),
            ceiling=ceiling if may or may_delegate else None,
        )

    def tokens(self) -> "tuple[TokenRecord, ...]":
        """Return every token, the latest first, also those that are over."""
        from batonpass.records.access_token import find_tokens  # noqa: PLC0415 - as above

        with self._store.view() as view:
            return tuple(find_tokens(view))

    def revoke_token(self, token: str, *, by: str, reason: str) -> "TokenRecord":
        """Revoke a token from now on, in every process, and return it.

        Name it by its id or the end of its id. Raises `NotFoundError` and `AmbiguousIdError`.
        """
        from batonpass.audit.meant_ids import get_meant_token  # noqa: PLC0415 - as above

        require_text("reason", reason)
        with self._store.view() as view:
            found = get_meant_token(view, token)
        self._tokens().revoke(found.id, by=require_principal("by", PrincipalId(by)), reason=reason)
        return found

    def _tokens(self) -> "AccessTokens":
        from batonpass.ledger.access_tokens import AccessTokens  # noqa: PLC0415 - as above

        ledger, identity = self._membership().join()
        return AccessTokens(self._store, ledger, identity, self._clock)

    def webhooks(self) -> "tuple[WebhookRecord, ...]":
        """Return every webhook, the first that was added first, also those that were removed."""
        from batonpass.records.recipients.webhook import find_webhooks  # noqa: PLC0415 - as above

        with self._store.view() as view:
            return tuple(find_webhooks(view))

    def record_webhook(self, body: "WebhookChanged", *, url: str | None = None, reason: str | None = None) -> None:
        """Record the new state of a webhook. `dispatch.webhooks.Webhooks` looks after its secret as well."""
        from batonpass.ledger.webhook_notes import note_webhook  # noqa: PLC0415 - as above

        ledger, identity = self._membership().join()
        note_webhook(self._store, ledger, identity, body, self._clock.now(), url=url, reason=reason)

    def revocations(self, *, good_for: timedelta | str = GOOD_FOR) -> str:
        """Return everything that is revoked, as a signed list for tool servers that verify offline. Needs the root key.

        A server that never fetches another list refuses calls once `good_for` has passed.
        """
        from batonpass.handoff.grants.revocation import revocation_list  # noqa: PLC0415 - as above

        return revocation_list(self._desk(), self._membership().root(), good_for=as_duration("good_for", good_for))

    def export(self, run: RunId, *, form: str = "bundle", with_content: bool | None = None) -> Iterator[str]:
        """Yield the lines of the whole tree of a run. A bundle has everything that is needed to verify it.

        `form` may be `dsse`, `cloudevents`, `otlp` or `prov` as well. Those have no words; only `otlp` can, with
        `with_content=True`. A bundle has them unless it is told otherwise.
        """
        from batonpass.audit.bundle import export_bundle  # noqa: PLC0415 - as above
        from batonpass.telemetry.export_format import ExportFormat  # noqa: PLC0415 - as above
        from batonpass.telemetry.tree_export import export_tree  # noqa: PLC0415 - as above

        chosen = as_member("form", form, ExportFormat)
        sequence_if_possible(self._store)
        if chosen is ExportFormat.BUNDLE:
            return export_bundle(self._store, run, with_content=with_content is not False)
        return export_tree(self._store, run, chosen, words=bool(with_content))

    def import_(self, lines: Iterable[str], *, root_key: PublicKey | KeyId | None = None) -> "Evidence":
        """Verify a bundle and keep it in this store. The store must be empty."""
        from batonpass.audit.bundle import import_bundle  # noqa: PLC0415 - as above

        return import_bundle(self._store, lines, root_key=root_key)


def sequence_if_possible(store: LedgerStore) -> None:
    """Give committed receipts their positions, unless the store can only be read."""
    # Nothing can be sequenced in a store that can only be read: it is verified as far as it was sequenced before.
    with contextlib.suppress(StoreReadOnlyError, StoreRefusedError):
        store.sequence()
