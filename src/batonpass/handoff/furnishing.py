"""Furnishing: a desk that can grant, and that knows what no call may touch."""

from collections.abc import Callable, Mapping
from pathlib import Path

from batonpass.clock import Clock
from batonpass.credentials import Provider
from batonpass.grants.issuing import Issuer
from batonpass.handoff.calls.protected_paths import Protected, program_files
from batonpass.handoff.desk import Desk
from batonpass.handoff.membership import Membership
from batonpass.handoff.secrets import TreeSecrets
from batonpass.handoff.vouching import Vouched
from batonpass.ledger.recording import Recording
from batonpass.model.card import Card
from batonpass.model.ids import AgentId
from batonpass.model.key import RunKeys
from batonpass.model.rules import Policy
from batonpass.store.port import LedgerStore


def furnish(
    store: LedgerStore,
    recording: Recording,
    membership: Membership,
    *,
    clock: Clock,
    gates: Policy,
    run_keys: RunKeys,
    home: Path | None,
    work_tree: Path,
    cards: Mapping[AgentId, Card],
    checks: Mapping[str, Callable[[], object]],
    providers: Mapping[str, Provider],
) -> Desk:
    """Return where the use cases of one relay work."""
    return Desk(
        store=store,
        recording=recording,
        clock=clock,
        secrets=TreeSecrets(store, clock),
        gates=gates,
        cards=cards,
        checks=checks,
        providers=providers,
        run_keys=run_keys,
        enrolments=Vouched(store, membership.root),
        issuer=issuer_of(membership, clock),
        work_tree=work_tree,
        protected=Protected.around(home, store.url, work_tree, program=program_files()),
    )


def issuer_of(membership: Membership, clock: Clock) -> Issuer:
    """Return what signs grants with the key under which a relay records now."""
    _, identity = membership.join()
    return Issuer(identity.signer, clock)
