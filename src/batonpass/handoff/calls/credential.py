"""Credentials of tools: fetched for one call. Only the name and the identity are recorded, never the secret."""

from batonpass.credentials import Credential, CredentialRequest
from batonpass.errors import CredentialError
from batonpass.handoff.calls.pending_call import PendingCall
from batonpass.handoff.runtime.desk import Desk
from batonpass.handoff.runtime.run_state import Holding
from batonpass.handoff.tools.declaration import Declared
from batonpass.handoff.tools.json_values import describe
from batonpass.model.base.content_names import CREDENTIAL
from batonpass.model.base.ids import Digest
from batonpass.model.ledger.content import Content


def fetch_credential(pending: PendingCall) -> Credential | None:
    """Return the credential that a tool declares. From now on, its secret is removed from everything that is written.

    Raises `CredentialError`, once the denial is recorded.
    """
    declared = pending.declared
    if declared.credential is None or pending.made:
        return None
    try:
        credential = _fetched(pending.desk, pending.holding, declared, declared.credential)
    except CredentialError as error:
        pending.deny(CREDENTIAL, error)
    # Before the request is written and the tool runs: both the arguments and whatever the tool prints or raises may
    # contain the secret.
    pending.desk.redactor.know(credential.secret.reveal())
    return credential


def told(desk: Desk, credential: Credential | None) -> tuple[Content, ...]:
    """Return name and identity of a credential as content, without its secret."""
    if credential is None:
        return ()
    return (desk.json(CREDENTIAL, describe({"name": credential.name, "identity": credential.identity})),)


def key_of(desk: Desk, holding: Holding, credential: Credential | None) -> Digest | None:
    """Return a keyed digest that shows whether two runs of a tree used the same credential, and nothing else."""
    if credential is None:
        return None
    return desk.secrets.digest(holding.root, b"credential", credential.secret.reveal().encode())


def _fetched(desk: Desk, holding: Holding, declared: Declared, name: str) -> Credential:
    provider = desk.providers.get(name)
    if provider is None:
        raise CredentialError(name, "nobody registered it; call relay.credential(name, provider)")
    request = CredentialRequest(
        name=name,
        tool=declared.name,
        run=holding.id,
        agent=holding.agent,
        principal=holding.principal,
    )
    try:
        return provider.fetch(request)
    except CredentialError:
        raise
    except Exception as error:  # noqa: BLE001 - a provider is foreign code and may raise anything
        # The message may contain the secret, so only the type of the error is told.
        raise CredentialError(name, f"its provider raised {type(error).__name__}") from None
