"""The ledger itself: its identity, agents, workers, seals and tokens."""

from datetime import datetime
from importlib.metadata import version
from typing import Final

from batonpass.model.base.ids import AgentId
from batonpass.model.baton.card import Card
from batonpass.model.ledger.lease import Lease
from batonpass.model.ledger.seal import Seal
from batonpass.records.access_token import TokenRecord, find_tokens
from batonpass.records.json_shapes import Shape, exact, token_shape
from batonpass.relay import cards_of
from batonpass.server.endpoint import ADMINS, EVERYBODY, PEOPLE, ApiRequest, Endpoint
from batonpass.server.resources.page import CursorQuery, paged
from batonpass.server.shape_types import CardShape, LedgerShape, Page, SealShape, TokenShape, WorkerShape


def show_ledger(asked: ApiRequest) -> Shape:
    """Return which ledger this is, and how far it goes."""
    with asked.plane.relay.store.view() as view:
        info = view.info()
        return {
            "id": info.id,
            "root_key": info.root_key,
            "position": view.last_position(),
            "version": version("batonpass"),
        }


def list_agents(asked: ApiRequest) -> Shape:
    """Return the agents that this server knows. Cards never contain prompts."""
    query: CursorQuery = asked.query
    relay = asked.plane.relay
    cards = [card for _, card in sorted(cards_of(relay).items()) if asked.caller.may_work_as(card.agent)]
    return paged(
        cards,
        query.limit,
        shape=lambda card: card_shape(card, set(relay.runners)),
        cursor=lambda one: one.agent,
        after=query.after,
    )


def card_shape(card: Card, running: set[AgentId]) -> Shape:
    """Return the card of an agent."""
    lists = {name: getattr(card, name) for name in ("skills", "tools", "accepts", "ceiling")}
    return {
        "agent": card.agent,
        "description": card.description,
        **{name: None if given is None else list(given) for name, given in lists.items()},
        "runs_here": card.agent in running,
    }


def list_workers(asked: ApiRequest) -> Shape:
    """Return the leases that workers hold."""
    query: CursorQuery = asked.query
    with asked.looking() as (view, _):
        return paged(
            view.find_leases(),
            query.limit,
            shape=_worker,
            cursor=lambda one: one.handoff,
            after=query.after,
        )


def _worker(lease: Lease) -> Shape:
    return {"holder": lease.holder, "handoff": lease.handoff, "until": exact(lease.until)}


def list_seals(asked: ApiRequest) -> Shape:
    """Return the seals, the newest first."""
    query: CursorQuery = asked.query
    with asked.looking() as (view, _):
        seals = sorted(view.find_seals(), key=lambda one: one.size, reverse=True)
    return paged(
        seals,
        query.limit,
        shape=seal_shape,
        cursor=lambda one: str(one.size),
        after=query.after,
    )


def seal_shape(seal: Seal) -> Shape:
    """Return a seal."""
    return {"size": seal.size, "previous": seal.previous, "root": seal.root, "note": seal.note}


def list_tokens(asked: ApiRequest) -> Shape:
    """Return all tokens, the latest first, without anything that would let somebody in."""
    query: CursorQuery = asked.query
    now = asked.plane.clock.now()
    with asked.looking() as (view, _):
        return paged(
            find_tokens(view),
            query.limit,
            shape=lambda one: _token(one, now),
            cursor=lambda one: one.id,
            after=query.after,
        )


def _token(one: TokenRecord, now: datetime) -> Shape:
    return token_shape(one, now)


ENDPOINTS: Final = (
    Endpoint(
        method="GET",
        path="/v1/ledger",
        name="showLedger",
        about="Show which ledger this is, and how far it goes.",
        roles=EVERYBODY,
        act=show_ledger,
        answers=LedgerShape,
        needs_proof=False,
    ),
    Endpoint(
        method="GET",
        path="/v1/agents",
        name="listAgents",
        about="List the agents that this server knows.",
        roles=EVERYBODY,
        act=list_agents,
        answers=Page[CardShape],
        query=CursorQuery,
        needs_proof=False,
    ),
    Endpoint(
        method="GET",
        path="/v1/workers",
        name="listWorkers",
        about="List the leases that workers hold.",
        roles=PEOPLE,
        act=list_workers,
        answers=Page[WorkerShape],
        query=CursorQuery,
    ),
    Endpoint(
        method="GET",
        path="/v1/seals",
        name="listSeals",
        about="List the seals, the newest first.",
        roles=PEOPLE,
        act=list_seals,
        answers=Page[SealShape],
        query=CursorQuery,
    ),
    Endpoint(
        method="GET",
        path="/v1/tokens",
        name="listTokens",
        about="List all tokens, the latest first.",
        roles=ADMINS,
        act=list_tokens,
        answers=Page[TokenShape],
        query=CursorQuery,
    ),
)
