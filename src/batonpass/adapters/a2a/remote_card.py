"""The card of a remote agent: fetched within the egress rule, and pinned by its digest."""

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Final

from msgspec import Struct

from batonpass.dispatch.egress import Egress
from batonpass.errors import RemoteCardError

WELL_KNOWN: Final = "/.well-known/agent-card.json"
JSON_RPC: Final = "JSONRPC"
HTTP_JSON: Final = "HTTP+JSON"
_MAJOR: Final = "1."
_GOOD: Final = 200


class RemoteCard(Struct, frozen=True, kw_only=True):
    """The parts of a card that we use: the digest of all of it, and one way to ask its agent."""

    digest: str
    name: str
    url: str
    binding: str
    tenant: str = ""


def card_digest(card: Mapping[str, Any]) -> str:
    """Return the digest of a card: of everything that its agent says, without the signatures."""
    said = {name: value for name, value in card.items() if name != "signatures"}
    text = json.dumps(said, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return f"sha256:{sha256(text.encode()).hexdigest()}"


def fetch_card(egress: Egress, url: str, headers: Mapping[str, str]) -> RemoteCard:
    """Return the card of an agent, by its address or that of its card. Raises `RemoteCardError` and `EgressError`."""
    where = url if url.endswith(".json") else f"{url.rstrip('/')}{WELL_KNOWN}"
    answer = egress.send("GET", where, headers={**headers, "Accept": "application/json"})
    if answer.status != _GOOD:
        raise RemoteCardError(f"{where} answered {answer.status} instead of a card; see the address and the credential")
    try:
        return read_card(json.loads(answer.body))
    except (ValueError, TypeError, AttributeError, RecursionError):
        raise RemoteCardError(f"the answer of {where} is no card of A2A 1.0") from None


def read_card(given: Mapping[str, Any]) -> RemoteCard:
    """Return the parts of a card that we use. Raises `RemoteCardError` if it offers no way that we speak."""
    ways = [one for one in given["supportedInterfaces"] if str(one.get("protocolVersion", "")).startswith(_MAJOR)]
    way = next((one for one in ways if one.get("protocolBinding") in {JSON_RPC, HTTP_JSON}), None)
    if way is None:
        raise RemoteCardError("its card offers neither JSON-RPC nor HTTP+JSON of A2A 1.0")
    return RemoteCard(
        digest=card_digest(given),
        name=str(given.get("name", "")),
        url=str(way["url"]).rstrip("/"),
        binding=str(way["protocolBinding"]),
        tenant=str(way.get("tenant", "")),
    )


def require_pinned(card: RemoteCard, digest: str | None, url: str) -> None:
    """Raise `RemoteCardError` unless the card is the one that somebody has looked at."""
    if digest is None:
        raise RemoteCardError(f'the card at {url} is not pinned; look at it, then give digest="{card.digest}"')
    if card.digest != digest:
        raise RemoteCardError(
            f"the card at {url} has changed: it is {card.digest}, and {digest} is pinned; look at it, then pin it anew"
        )
