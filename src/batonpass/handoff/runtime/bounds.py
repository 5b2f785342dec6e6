"""The bounds of a run: the grants, limits and budgets of its own offer and of every hop above it.

They are read once, when the run begins or is resumed, so that a call does not have to walk up the tree.
"""

from collections.abc import Iterable, Iterator
from datetime import datetime
from decimal import Decimal
from functools import cached_property, lru_cache
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from batonpass.errors import GrantChainError, GrantIntegrityError, GrantRevokedError, InvalidValueError
from batonpass.guard.grants.limit_accounts import account_of
from batonpass.guard.grants.recorded_call import conditioned
from batonpass.handoff.history.moments import last_recorded
from batonpass.handoff.history.offers import read_brief
from batonpass.model.base.content_names import TERMS
from batonpass.model.base.ids import AgentId, HandoffId, RunId, StreamId
from batonpass.model.base.kinds import Mode
from batonpass.model.base.passkey import public_bytes
from batonpass.model.baton.baton import Brief, Budget
from batonpass.model.bodies.body import HandoffInitiated, RunStarted
from batonpass.model.grants.charge import MILLION
from batonpass.model.grants.condition import Under
from batonpass.model.grants.grant import Signed, Terms
from batonpass.model.grants.limits import UNLIMITED, Limits
from batonpass.model.grants.permit import earlier
from batonpass.model.grants.scope import Scope
from batonpass.model.ledger.key import KeyStatus
from batonpass.model.ledger.receipt import Receipt
from batonpass.model.ledger.run import Run
from batonpass.store.port import LedgerView
from batonpass.wire.canonical import digest
from batonpass.wire.grant_statements import signing_bytes
from batonpass.wire.receipt_codec import decode_receipt
from batonpass.wire.token import decode_part

STATEMENT: Final = "application/vnd.batonpass.grant"


class LimitAccount(Struct, frozen=True, kw_only=True):
    """The limits of one handoff or tree, which everybody in it shares."""

    id: StreamId
    agent: AgentId  # the agent of the handoff
    limits: Limits
    since: datetime  # the start of its limit in seconds
    budget: bool = False  # True: from the budget of a brief; False: from a grant


class Bounds(Struct, frozen=True, kw_only=True, dict=True):
    """The bounds of a run, kept in memory. By default, there are none.

    Values that every call needs are computed once, by the first call.
    """

    line: tuple[StreamId, ...] = ()  # its root, each handoff below, and its own: each can be revoked
    chain: tuple[Signed[Terms], ...] = ()  # the terms from the root down to its own; empty without a grant
    accounts: tuple[LimitAccount, ...] = ()
    tried_out: bool = False  # the grant of the root stops nobody; refusals are only noted
    known_at: datetime | None = None  # time of the last receipt above it; None: not read

    @cached_property
    def terms(self) -> tuple[Terms, ...]:
        """Return the terms of the chain, without signatures."""
        return tuple(signed.said for signed in self.chain)

    @cached_property
    def counted_at(self) -> tuple[StreamId, ...]:
        """Return the account in which the use of each of its terms is counted."""
        return tuple(map(account_of, self.terms))

    @cached_property
    def conditioned(self) -> tuple[str, ...]:
        """Return the names of all arguments that a permit sets a condition on, in order."""
        return conditioned(self.terms)

    @cached_property
    def placed(self) -> frozenset[str]:
        """Return the names of the arguments that a permit limits to a directory."""
        return frozenset(placed(scope for terms in self.terms for scope in (terms.may, terms.may_delegate)))

    @cached_property
    def ends(self) -> datetime | None:
        """Return the earliest end of all terms in the chain; None if none ends."""
        found: datetime | None = None
        for signed in self.chain:
            found = earlier(found, signed.said.until)
        return found

    @property
    def is_granted(self) -> bool:
        """Return whether its own terms are signed: only then can the run prove them or delegate from them."""
        return bool(self.chain and self.chain[-1].signature)


def placed(scopes: Iterable[Scope]) -> Iterator[str]:
    """Yield the names of the arguments that a permit of these scopes limits to a directory."""
    for scope in scopes:
        for permit in scope.permits:
            yield from (condition.argument for condition in permit.where if isinstance(condition, Under))


def bounds_of_root(run: RunId, terms: Signed[Terms] | None, mode: Mode) -> Bounds:
    """Return the bounds of a root run."""
    account = StreamId(run)
    return Bounds(
        line=(account,),
        chain=() if terms is None else (terms,),
        accounts=_limited(account, terms),
        tried_out=terms is not None and mode is Mode.OBSERVED,
    )


class Hop(Struct, frozen=True, kw_only=True):
    """One offer's part in the bounds of the run that accepts it: terms, brief and account."""

    account: StreamId
    agent: AgentId
    brief: Brief = field(default_factory=Brief)
    since: datetime  # the start of its attempt
    terms: Signed[Terms] | None = None


def below(bounds: Bounds, hop: Hop) -> Bounds:
    """Return the bounds of the run that accepts an offer, from the bounds of its sender.

    If grants are only tried out and the offer has no terms, the most that the sender could have given is used. Raises
    `GrantChainError` if the terms do not belong to those of the sender, or are missing below a grant.
    """
    chain = bounds.chain
    if hop.terms is not None:
        above = chain[-1].digest if chain else None
        if hop.terms.said.parent != above:
            raise GrantChainError(f"the terms of {hop.agent} do not follow from those of its sender")
        chain = (*chain, hop.terms)
    elif bounds.tried_out:
        chain = (*chain, _most(chain[-1], hop))
    elif chain:
        raise GrantChainError(f"{hop.agent} was handed work by a run with a grant, and was given none itself")
    budget = () if hop.brief.budget is None else (_budgeted(hop, hop.brief.budget),)
    return Bounds(
        line=(*bounds.line, hop.account),
        chain=chain,
        accounts=(*bounds.accounts, *_limited(hop.account, hop.terms), *budget),
        tried_out=bounds.tried_out,
        known_at=bounds.known_at,
    )


def _most(above: Signed[Terms], hop: Hop) -> Signed[Terms]:
    """Return the most that the sender of an offer could have given, unsigned, because nobody gave it.

    An enforced run could not have handed off without terms. Here the calls of the child are compared with these, so
    that the trial still notes which of them a grant would have refused.
    """
    held = above.said
    handoff = HandoffId(hop.account)
    said = replace(held, may=held.may_delegate, agent=hop.agent, handoff=handoff, run=None, parent=None)
    return Signed(said, b"", b"", digest(b""))


# A worker reads the first receipt of a tree for each of its handoffs. A cache is safe: the same bytes are the same
# receipt, and they contain no words that could be erased.
_decoded: Final = lru_cache(maxsize=256)(decode_receipt)


def read_bounds(view: LedgerView, run: Run) -> Bounds:
    """Read the bounds of a run from receipts. Raises `GrantChainError`, `GrantIntegrityError`, `GrantRevokedError`."""
    above = [run]
    while above[-1].parent is not None:
        above.append(view.get_run(above[-1].parent))
    first = _decoded(view.get_receipt_at(StreamId(above[-1].id), 1).payload)
    bounds = bounds_of_root(above[-1].id, read_terms(view, first), first.mode)
    for one in reversed(above[:-1]):
        bounds = below(bounds, read_hop(view, one))
    if not bounds.chain:
        return bounds
    streams = {StreamId(stream) for one in above for stream in (one.id, one.handoff) if stream is not None}
    return replace(bounds, known_at=last_recorded(view, streams))


def read_hop(view: LedgerView, run: Run) -> Hop:
    """Return the part of a run's bounds that its offer adds. Raises `InvalidValueError` for a root run."""
    if run.handoff is None:
        raise InvalidValueError("run", f"{run.id} is a root: it took no offer")
    handoff = view.get_handoff(run.handoff)
    offered = _decoded(view.get_receipt_at(StreamId(handoff.parent), handoff.seq).payload)
    return Hop(
        account=StreamId(run.handoff),
        agent=run.agent,
        brief=read_brief(view, offered),
        since=run.started_at,
        terms=read_terms(view, offered),
    )


def read_terms(view: LedgerView, receipt: Receipt) -> Signed[Terms] | None:
    """Return the terms that a receipt commits to, signed by an enrolled relay; None if it commits to none.

    Raises `GrantChainError` if they were erased, `GrantIntegrityError` if digest or signature do not match, and
    `GrantRevokedError` if the key that signed them was revoked.
    """
    body = receipt.body
    if not isinstance(body, RunStarted | HandoffInitiated) or body.terms is None:
        return None
    ref = receipt.content.get(TERMS)
    stored = None if ref is None else view.get_content(ref.id).body
    if stored is None:
        raise GrantChainError(f"the terms that {receipt.id} names are gone, so its rights are unknown")
    from batonpass.signing.ed25519 import is_signed  # noqa: PLC0415 - loads libsodium, which only runs with a grant need

    terms = decode_part(stored, Terms)
    key = next((key for key in view.find_keys() if key.id == terms.said.key), None)
    message = signing_bytes(terms.payload)
    signed = key is not None and is_signed(public_bytes(key.public_key), message, terms.signature)
    if terms.digest != body.terms or key is None or not signed:
        raise GrantIntegrityError(
            f"the terms of {receipt.id} are not what a relay signed; run `batonpass ledger verify`"
        )
    if key.status is KeyStatus.REVOKED:
        raise GrantRevokedError(f"key {key.id[:16]}, which signed the terms, was revoked; ask for a new grant")
    return terms


def _limited(account: StreamId, terms: Signed[Terms] | None) -> tuple[LimitAccount, ...]:
    if terms is None or terms.said.limits == UNLIMITED:
        return ()
    return (LimitAccount(id=account, agent=terms.said.agent, limits=terms.said.limits, since=terms.said.at),)


def _budgeted(hop: Hop, budget: Budget) -> LimitAccount:
    spend = None if budget.cost is None else format(Decimal(budget.cost) / MILLION, "f")
    limits = Limits(calls=budget.calls, spend=spend, tokens=budget.tokens, seconds=budget.seconds)
    return LimitAccount(id=hop.account, agent=hop.agent, limits=limits, since=hop.since, budget=True)
