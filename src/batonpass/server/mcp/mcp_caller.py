"""Who is at the other end of a connection: somebody with a token, or the user of this machine."""

from datetime import UTC, datetime
from typing import Final

from msgspec import Struct

from batonpass.model.base.ids import Digest, PrincipalId, ReceiptId, TokenId
from batonpass.model.base.kinds import AccessRole
from batonpass.records.access_token import TokenRecord
from batonpass.server.access import AccessCaller
from batonpass.server.control_plane import ControlPlane
from batonpass.server.endpoint import AGENTS, DECIDERS, ApiRequest, Endpoint
from batonpass.server.mcp.run_handle import proof_behind

# Bound into the proofs of runs that were begun over stdio, so that they are of no use at any other door.
_STDIO: Final = TokenId("token_stdio")
_ALWAYS: Final = datetime(9999, 1, 1, tzinfo=UTC)


class McpCaller(Struct, frozen=True, kw_only=True, eq=False):
    """In whose name the tools of one request act and read, and who decides if the client asks its person."""

    plane: ControlPlane
    worker: AccessCaller  # in the name of a run
    reader: AccessCaller  # without a run
    person: AccessCaller | None  # only what the person at the client said, never what the model did
    proof: str | None = None  # from a header of the request
    is_local: bool = False

    def request(self, endpoint: Endpoint, *, handle: str | None = None, **said: object) -> ApiRequest:
        """Return a request to an endpoint. Raises `RoleRefusedError` and `RunProofError`."""
        caller = self.worker if handle is not None or endpoint.roles == AGENTS else self.reader
        caller.require_role(endpoint.roles)
        proof = self.proof if handle is None else proof_behind(self.plane.runs, caller.token.id, handle)
        return _asked(self.plane, caller, said, proof)

    def decision(self, endpoint: Endpoint, **said: object) -> ApiRequest:
        """Return a request to an endpoint in the name of the person at the client, who has answered."""
        caller = self.person or self.reader
        caller.require_role(endpoint.roles)
        return _asked(self.plane, caller, said, None)


def _asked(plane: ControlPlane, caller: AccessCaller, said: dict[str, object], proof: str | None) -> ApiRequest:
    given = {"names": {}, "query": None, "body": None, **said}
    return ApiRequest(plane=plane, caller=caller, proof=proof, **given)  # type: ignore[arg-type]  # names, query, body, key


def caller_by_token(plane: ControlPlane, caller: AccessCaller, proof: str | None) -> McpCaller:
    """Return somebody who was let in as caller: the token gives them their rights, and nothing here adds to them."""
    decides = caller if caller.role in DECIDERS else None
    return McpCaller(plane=plane, worker=caller, reader=caller, person=decides, proof=proof)


def local_caller(plane: ControlPlane, principal: PrincipalId) -> McpCaller:
    """Return the user of this machine as caller, as on the command line: they read everything, and they decide.

    Their model works in runs, and reads; it never decides.
    """
    return McpCaller(
        plane=plane,
        worker=_local(principal, AccessRole.AGENT),
        reader=_local(principal, AccessRole.AUDITOR),
        person=_local(principal, AccessRole.OPERATOR),
        is_local=True,
    )


def _local(principal: PrincipalId, role: AccessRole) -> AccessCaller:
    token = TokenRecord(
        id=_STDIO,
        receipt=ReceiptId(""),
        secret=Digest(""),
        principal=principal,
        role=role,
        agents=(),
        may=(),
        may_delegate=(),
        is_ceiling_lost=False,
        added_by=principal,
        added_at=datetime.now(UTC),
        until=_ALWAYS,
    )
    return AccessCaller(token=token)
