"""The cards of agents as A2A tells them, and in the shape of its first users. They never contain a prompt.

They are made from the cards of the registry: the purpose of an agent, its skills and the inputs that it takes.
"""

from importlib.metadata import version
from typing import Final
from urllib.parse import quote

from a2a.types.a2a_pb2 import (
    AgentCapabilities,
    AgentExtension,
    AgentInterface,
    AgentSkill,
    HTTPAuthSecurityScheme,
    SecurityRequirement,
    SecurityScheme,
    StringList,
)
from a2a.types.a2a_pb2 import AgentCard as CardDocument

from batonpass.handoff.history.travelled_lineage import URI
from batonpass.model.base.ids import AgentId
from batonpass.model.baton.card import Card
from batonpass.model.ledger.key import Signer
from batonpass.records.json_shapes import Shape
from batonpass.server.a2a.card_signature import sign_card
from batonpass.server.a2a.settings import A2aSettings

VERSION: Final = "1.0"
PREFIX: Final = "/a2a/agents"
INVOKE: Final = "invoke"
# An agent whose card does not say which inputs it takes gets texts and JSON.
_INPUTS: Final = ("text/plain", "application/json")
_OUTPUTS: Final = ("text/plain", "application/json", "application/octet-stream")
_SCHEME: Final = "token"
_SIMPLE: Final = "a2a/1.2"  # what the shape of `/.well-known/agent.json` calls itself


def path_of(agent: AgentId) -> str:
    """Return the path under which an agent is."""
    return f"{PREFIX}/{quote(agent, safe='/:@+')}"


def card_document(card: Card, settings: A2aSettings, signer: Signer) -> CardDocument:
    """Return the card of an agent, signed by the relay."""
    here = f"{settings.address}{path_of(card.agent)}"
    interfaces = [
        AgentInterface(url=f"{here}/{INVOKE}", protocol_binding="JSONRPC", protocol_version=VERSION),
        AgentInterface(url=here, protocol_binding="HTTP+JSON", protocol_version=VERSION),
    ]
    if settings.grpc is not None:
        # There are no paths in gRPC: the tenant says which agent is meant.
        interfaces.append(
            AgentInterface(
                url=settings.grpc.address, protocol_binding="GRPC", protocol_version=VERSION, tenant=card.agent
            )
        )
    told = CardDocument(
        name=name_of(card.agent),
        description=described(card),
        supported_interfaces=interfaces,
        version=version("batonpass"),
        capabilities=AgentCapabilities(
            streaming=True,
            push_notifications=True,
            extensions=[
                AgentExtension(
                    uri=URI,
                    description="Says who worked on a task before and what they give at most, signed.",
                    params={"key": signer.public_key},
                )
            ],
        ),
        default_input_modes=sorted({"text/plain", *(card.accepts or _INPUTS)}),
        default_output_modes=_OUTPUTS,
        skills=[
            AgentSkill(id=skill, name=skill, description=f"{name_of(card.agent)}: {skill}", tags=[skill])
            for skill in card.skills or (card.agent,)
        ],
    )
    if not card.public:
        told.security_schemes[_SCHEME].CopyFrom(
            SecurityScheme(
                http_auth_security_scheme=HTTPAuthSecurityScheme(
                    scheme="bearer", description="A token of this server, with the role agent."
                )
            )
        )
        told.security_requirements.append(SecurityRequirement(schemes={_SCHEME: StringList()}))
    return sign_card(told, signer)


def simple_card(card: Card, settings: A2aSettings) -> Shape:
    """Return the card of an agent in the simple shape: skills as texts, `protocol` and `endpoint`."""
    return {
        "id": card.agent,
        "name": name_of(card.agent),
        "description": described(card),
        "version": version("batonpass"),
        "skills": list(card.skills or ()),
        "protocol": _SIMPLE,
        "endpoint": f"{settings.address}{path_of(card.agent)}/{INVOKE}",
    }


def name_of(agent: AgentId) -> str:
    """Return the name of an agent for people."""
    return agent.replace("-", " ").replace("_", " ").title()


def described(card: Card) -> str:
    """Return the purpose of an agent."""
    return card.description or name_of(card.agent)
