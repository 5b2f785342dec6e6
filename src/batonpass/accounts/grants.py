"""Grants as they are told: who holds what, by whose word, and how much of it is used; and what would be enough."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise

from batonpass.audit.lookup import read_receipt
from batonpass.errors import GrantError, InvalidValueError, NotFoundError
from batonpass.guard.least import LeastScope, least_scope
from batonpass.guard.narrowing import narrow
from batonpass.handoff.bounds import Bounds, read_bounds, read_terms
from batonpass.handoff.calling import TARGET
from batonpass.handoff.guarding import account_of
from batonpass.handoff.resuming import ARGUMENTS
from batonpass.handoff.tools import CALL, READ, WRITE
from batonpass.handoff.using import SCOPE
from batonpass.model.bodies import Kind, ToolRequested
from batonpass.model.call import Call
from batonpass.model.charge import REVOKED, Charged, part_of
from batonpass.model.grant import Signed, Terms
from batonpass.model.ids import HANDOFF, AgentId, HandoffId, RunId, StreamId
from batonpass.model.receipt import Receipt
from batonpass.store.port import LedgerView, ReceiptQuery

_PATH = "path"


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """One hop of a chain: its terms, what is used of them, and whether they were revoked."""

    terms: Signed[Terms]
    account: StreamId
    used: tuple[Charged, ...]
    revoked: bool


def read_chain(view: LedgerView, account: StreamId) -> tuple[Held, ...]:
    """Return the grants from which that of a handoff or a root hangs, the first first, and its own.

    Every signature and every link is checked. Raises `NotFoundError` if it was granted nothing.
    """
    chain = _chain(view, account)
    if not chain:
        raise NotFoundError("grant of", account)
    return tuple(_held(view, terms) for terms in chain)


def find_widened(chain: tuple[Held, ...]) -> Iterator[str]:
    """Yield what somebody gave that they could not have given; it has no effect, and should not be there."""
    for depth, (above, below) in enumerate(pairwise(chain)):
        try:
            narrow(above.terms.said, below.terms.said, depth=depth)
        except GrantError as error:
            yield str(error)


def suggest(view: LedgerView, *, since: datetime | None = None, agent: AgentId | None = None) -> tuple[LeastScope, ...]:
    """Return for each agent the least grant that covers the calls that it was seen to make."""
    query = ReceiptQuery(kind=Kind.TOOL_REQUESTED, since=since, agent=agent)
    return least_scope(_observed(view, query))


def _chain(view: LedgerView, account: StreamId) -> tuple[Signed[Terms], ...]:
    if not account.startswith(HANDOFF):
        return read_bounds(view, view.get_run(RunId(account))).chain
    handoff = view.get_handoff(HandoffId(account))
    above: Bounds = read_bounds(view, view.get_run(handoff.parent))
    offered = read_receipt(view.get_receipt_at(StreamId(handoff.parent), handoff.seq))
    terms = read_terms(view, offered, {key.id: key for key in view.find_keys()})
    return () if terms is None else (*above.chain, terms)


def _held(view: LedgerView, terms: Signed[Terms]) -> Held:
    account = account_of(terms.said)
    return Held(
        terms=terms,
        account=account,
        used=tuple(view.find_charged(account)),
        revoked=any(view.find_charged(part_of(account, REVOKED))),
    )


def _observed(view: LedgerView, query: ReceiptQuery) -> Iterator[tuple[AgentId, Call]]:
    agents: dict[RunId, AgentId] = {}
    for stored in view.find_receipts(query):
        receipt = read_receipt(stored)
        body = receipt.body
        if isinstance(body, ToolRequested) and (call := _seen(view, receipt, body)) is not None:
            if body.run not in agents:
                agents[body.run] = view.get_run(body.run).agent
            yield agents[body.run], call


def _seen(view: LedgerView, receipt: Receipt, body: ToolRequested) -> Call | None:
    """Return a recorded call as a grant would see it; None if its words are gone, or nothing could grant it."""
    texts = {
        name: (view.get_content(receipt.content[name].id).body or b"").decode("utf-8", "replace")
        for name in (SCOPE, TARGET, ARGUMENTS)
        if name in receipt.content
    }
    action, _, resource = texts.get(SCOPE, "").partition(":")
    if not resource:
        named = texts.get(TARGET) or _path_in(texts.get(ARGUMENTS, ""))
        action, resource = (READ if body.reads else WRITE, named) if named else (CALL, body.tool)
    try:
        call = Call(body.tool, action, resource)
        call.place  # noqa: B018 - it is read to see whether it can be
    except InvalidValueError:
        return None
    return call


def _path_in(described: str) -> str | None:
    try:
        found = json.loads(described)["arguments"][_PATH]
    except (ValueError, KeyError, TypeError):
        return None
    return found if isinstance(found, str) and found else None
