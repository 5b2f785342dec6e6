"""Set up the desk of a relay: with the key that signs its grants, and the list of protected files."""

from collections.abc import Callable, Mapping
from pathlib import Path

from batonpass.clock import Clock
from batonpass.credentials import Provider
from batonpass.grants.issuer import Issuer
from batonpass.handoff.files.protected_paths import Protected, program_files
from batonpass.handoff.runtime.desk import Desk
from batonpass.handoff.runtime.membership import Membership
from batonpass.handoff.runtime.relay_voucher import Vouched
from batonpass.handoff.runtime.tree_secret import TreeSecrets
from batonpass.ledger.act_receipts import Recording
from batonpass.model.base.ids import AgentId
from batonpass.model.baton.card import Card
from batonpass.model.ledger.key import RunKeys
from batonpass.model.policy.policy_rules import Policy
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
    """Return the desk of one relay."""
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
    """Return an issuer that signs grants with the current key of the relay."""
    _, identity = membership.join()
    return Issuer(identity.signer, clock)
