"""What an agent was handed and what it may do, read from the receipts above it.

An offer adds its task and its brief; what the person said and what everybody on the way recorded stand in the receipts
above, which the chain signs. So the bytes of a handoff do not grow along a chain, and nothing is retold.
"""

from msgspec import Struct, json

from batonpass.errors import NotFoundError
from batonpass.model.bodies import HandoffAccepted, HandoffInitiated, RunRecorded, RunStarted
from batonpass.model.grants import Held, Terms
from batonpass.model.items import AnyItem, Baton, Intent, OfferedParts
from batonpass.model.receipt import Signed
from batonpass.model.rows import HandoffRow
from batonpass.reading.history import read_items, read_part, read_text
from batonpass.store.port import Store

_decode_terms = json.Decoder(Terms).decode
_decode_parts = json.Decoder(OfferedParts).decode


class Hop(Struct, frozen=True, kw_only=True):
    """One step down a tree: the first receipt of a run, and the offer that led to it (none for a root)."""

    run: str
    agent: str
    first: Signed
    offer: Signed | None = None


def get_handoff(store: Store, handoff: str) -> HandoffRow:
    """Return the row of a handoff. Raises `NotFoundError`."""
    row = store.find_handoff(handoff)
    if row is None:
        raise NotFoundError(f"there is no handoff {handoff} in this ledger: `batonpass run list` shows what there is")
    return row


def get_receipt(store: Store, stream: str, seq: int) -> Signed:
    """Return one receipt. Raises `NotFoundError`."""
    signed = store.receipt(stream, seq)
    if signed is None:
        raise NotFoundError(f"there is no receipt {seq} of {stream} in this ledger")
    return signed


def read_hops(store: Store, run: str) -> list[Hop]:
    """Return the way down from the root to a run."""
    hops: list[Hop] = []
    while True:
        first = get_receipt(store, run, 1)
        body = first.body
        if isinstance(body, RunStarted):
            hops.append(Hop(run=run, agent=body.agent, first=first))
            return hops[::-1]
        if not isinstance(body, HandoffAccepted):
            raise NotFoundError(f"{run} is no run")
        offer = get_receipt(store, body.parent, get_handoff(store, body.handoff).seq)
        hops.append(Hop(run=run, agent=body.agent, first=first, offer=offer))
        run = body.parent


def read_terms(signed: Signed) -> Terms | None:
    """Return the terms that a receipt gives; None if it gives none. Terms that were erased give nothing."""
    if "terms" not in signed.receipt.content:
        return None
    terms = read_part(signed, "terms")
    return Terms() if terms is None else _decode_terms(terms)  # else erasing a grant would lift it


def tree_secret(root: Signed) -> bytes:
    """Return by what equal calls of a tree are recognised. Raises `NotFoundError` if it was erased."""
    secret = read_part(root, "secret")
    if secret is None:
        detail = "the secret of this tree was erased: finished calls cannot be recognised, so nothing of it goes on"
        raise NotFoundError(detail)
    return secret


def principal_of(hops: list[Hop]) -> str:
    """Return for whom a tree works."""
    body = hops[0].first.body
    return body.principal if isinstance(body, RunStarted) else ""


def read_lineage(hops: list[Hop], offer: Signed | None = None) -> tuple[Held, ...]:
    """Return what each hop holds, from where the grant began; with an offer, what its receiver will hold as well."""
    held: list[Held] = []
    given = [(hop.run, hop.agent, hop.first) if hop.offer is None else _given(hop.offer) for hop in hops]
    if offer is not None:
        given.append(_given(offer))
    for account, agent, signed in given:
        terms = read_terms(signed)
        if terms is not None:
            held.append(Held(account, agent, terms))
    return tuple(held)


def _given(offer: Signed) -> tuple[str, str, Signed]:
    body = offer.body
    if not isinstance(body, HandoffInitiated):
        raise NotFoundError(f"receipt {offer.receipt.seq} of {offer.stream} offers nothing")
    return body.handoff, body.to, offer


def read_baton(store: Store, hops: list[Hop], offer: Signed | None = None) -> Baton:
    """Return what the last of these hops was handed; with an offer, what its receiver is handed."""
    offers = [hop.offer for hop in hops[1:]] + ([] if offer is None else [offer])
    root = hops[0].first
    intent = (Intent(read_text(root, "intent"), by=principal_of(hops)),)
    items: tuple[AnyItem, ...] = read_items(root)
    last = OfferedParts()
    for hop, given in zip(hops, offers, strict=False):
        if given is None:
            continue
        for signed in store.receipts(hop.run):
            if signed.receipt.seq < given.receipt.seq and isinstance(signed.body, RunRecorded):
                items += read_items(signed)
        data = read_part(given, "baton")
        last = OfferedParts() if data is None else _decode_parts(data)
        items += last.items
    task = read_text(offers[-1], "task") if offers and offers[-1] is not None else intent[0].text
    agents = tuple(hop.agent for hop in (hops if offer is not None else hops[:-1]))
    return Baton(intent=intent, task=task, criteria=last.criteria, items=items, brief=last.brief, agents=agents)
