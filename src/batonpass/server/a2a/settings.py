"""The settings of the A2A door of a server."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from msgspec import Struct, field

from batonpass.dispatch.egress_rule import EgressRule
from batonpass.model.base.ids import AgentId, PublicKey

CARD: Final = "/.well-known/agent-card.json"
SIMPLE_CARD: Final = "/.well-known/agent.json"


class GrpcPlace(Struct, frozen=True, kw_only=True):
    """Where A2A is served over gRPC."""

    address: str  # under which clients reach it: a name and a port
    host: str
    port: int
    certificate: Path | None = None
    key: Path | None = None


class A2aSettings(Struct, frozen=True, kw_only=True):
    """The settings of the A2A door of a server."""

    address: str  # under which clients reach the server, such as https://agents.example.com
    primary: AgentId | None = None  # whose card is at the well-known address; None: the first
    grpc: GrpcPlace | None = None  # None: it is not served over gRPC
    egress: EgressRule = field(default_factory=EgressRule)  # which addresses may be told about tasks
    peers: Mapping[PublicKey, str] = field(default_factory=dict)  # pinned keys of other relays, and what to call them
