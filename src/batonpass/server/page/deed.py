"""The deeds of people on the page. Each form becomes an act of the HTTP interface, with its roles and its receipts."""

import json
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Final

from msgspec import Struct

from batonpass.audit.short_ids import ending
from batonpass.errors import InvalidValueError
from batonpass.model.bodies.body import Settlement
from batonpass.model.policy.offer_options import ChangedInputs
from batonpass.records.json_shapes import in_json
from batonpass.server.acts.decision_acts import PasskeyMessage, PrepareMessage, RevokeMessage, RulingMessage
from batonpass.server.acts.handoff_acts import AnswerMessage, CancelMessage, NoMessage, RetryMessage, VerdictMessage
from batonpass.server.acts.recovery_acts import ReplaceMessage, SettleMessage
from batonpass.server.answer import json_bytes
from batonpass.server.endpoint import DECIDERS, Endpoint
from batonpass.server.idempotency import GivenAnswer
from batonpass.server.page.request import PageRequest
from batonpass.server.resources.findings import ExportQuery, export_tree
from batonpass.server.routes import ENDPOINTS

Fields = Mapping[str, str]

_OPERATIONS: Final[Mapping[str, Endpoint]] = {one.name: one for one in ENDPOINTS}
_DOUBT: Final = "doubt:"
_LONGEST_KEY: Final = 64


class Deed(Struct, frozen=True, kw_only=True):
    """One thing that a form does."""

    path: str  # its parts are those of the operation
    name: str
    operation: str  # of the HTTP interface
    said: Callable[[Fields], object]  # the body of the request
    to: str  # the address that shows what came of it
    act: Callable[[PageRequest, Fields], object] | None = None  # what is done, if it is not the operation itself


def _retry(fields: Fields) -> RetryMessage:
    return RetryMessage(
        reason=_optional(fields, "reason"),
        repeat=_settled(fields, Settlement.REPEAT),
        skip=_settled(fields, Settlement.SKIP),
        inputs=ChangedInputs(given) if (given := fields.get("inputs")) else None,
    )


def _replace(fields: Fields) -> ReplaceMessage:
    return ReplaceMessage(
        to=_required(fields, "to"),
        reason=_optional(fields, "reason"),
        repeat=_settled(fields, Settlement.REPEAT),
        skip=_settled(fields, Settlement.SKIP),
        inputs=ChangedInputs(given) if (given := fields.get("inputs")) else None,
    )


def _rule(fields: Fields) -> RulingMessage:
    decision = fields.get("decision")
    if decision not in {"approved", "denied"}:
        raise InvalidValueError("decision", "is approved or denied")
    return RulingMessage(
        approved=decision == "approved",
        reason=_required(fields, "reason"),
        # A page that shows nothing cannot be approved from: what was on the screen is part of the ruling. Denying is
        # always possible.
        shown=_required(fields, "shown") if decision == "approved" else _optional(fields, "shown"),
        looked_ms=_looked(fields),
        passkey=_passkey(fields),
    )


def _looked(fields: Fields) -> int | None:
    looked = fields.get("looked_ms", "")
    return int(looked) if looked.isascii() and looked.isdecimal() and len(looked) < len(str(2**53)) else None


def _passkey(fields: Fields) -> PasskeyMessage | None:
    """Return the answer of a passkey; None if none was asked."""
    if not fields.get("passkey_signature"):
        return None
    try:
        at = datetime.fromisoformat(fields.get("passkey_at", ""))
    except ValueError:
        raise InvalidValueError("passkey_at", "is no time") from None
    return PasskeyMessage(
        at=at,
        client_data=fields.get("passkey_client", ""),
        authenticator_data=fields.get("passkey_authenticator", ""),
        signature=fields["passkey_signature"],
    )


def _settle(fields: Fields) -> SettleMessage:
    given = fields.get("settlement", "")
    if given not in set(Settlement):
        raise InvalidValueError("settlement", "choose whether it is made again or counts as done")
    return SettleMessage(settlement=Settlement(given), reason=_optional(fields, "reason"))


def _verdict(fields: Fields) -> VerdictMessage:
    return VerdictMessage(holds=fields.get("holds") == "yes", words=_required(fields, "reason"))


def _acknowledge(asked: PageRequest, fields: Fields) -> None:
    asked.visitor.caller.require_role(DECIDERS)
    asked.plane.relay.acknowledge(
        asked.names["root"],
        asked.names["finding"],
        by=asked.visitor.caller.principal,
        reason=_required(fields, "reason"),
    )


DEEDS: Final[tuple[Deed, ...]] = (
    Deed(
        path="/approvals/{held}",
        name="rule",
        operation="rule",
        said=_rule,
        to="/approvals/{held}",
    ),
    Deed(
        path="/handoffs/{handoff}/answer",
        name="answer",
        operation="answer",
        said=lambda fields: AnswerMessage(text=_required(fields, "answer")),
        to="/handoffs/{handoff}",
    ),
    Deed(
        path="/handoffs/{handoff}/retry",
        name="retry",
        operation="retryHandoff",
        said=_retry,
        to="/handoffs/{handoff}?part=attempts",
    ),
    Deed(
        path="/handoffs/{handoff}/replace",
        name="replace",
        operation="replaceAgent",
        said=_replace,
        to="/handoffs/{handoff}?part=attempts",
    ),
    Deed(
        path="/handoffs/{handoff}/cancel",
        name="cancel",
        operation="cancelHandoff",
        said=lambda fields: CancelMessage(reason=_required(fields, "reason")),
        to="/handoffs/{handoff}",
    ),
    Deed(
        path="/handoffs/{handoff}/judge",
        name="judge",
        operation="judgeResult",
        said=_verdict,
        to="/handoffs/{handoff}",
    ),
    Deed(
        path="/handoffs/{handoff}/calls/{call}/settle",
        name="settle",
        operation="settleCall",
        said=_settle,
        to="/handoffs/{handoff}?part=calls",
    ),
    Deed(
        path="/grants/{account}/revoke",
        name="revoke",
        operation="revokeGrant",
        said=lambda fields: RevokeMessage(reason=_required(fields, "reason")),
        to="/handoffs/{account}",
    ),
    Deed(
        path="/ledger/verify",
        name="verify",
        operation="verifyLedger",
        said=lambda _: NoMessage(),
        to="/ledger/verify",
        # It goes on while nobody waits for it: a browser would not wait for the answer of the operation.
        act=lambda asked, _: asked.check.begin(asked.visitor.caller.principal),
    ),
    Deed(
        path="/review/{root}/{finding}",
        name="acknowledge",
        operation="judgeResult",  # whoever judges results may leave a finding as it is
        said=lambda fields: NoMessage() if _required(fields, "reason") else None,
        to="/review/{root}/{finding}",
        act=_acknowledge,
    ),
    Deed(
        path="/ledger/seals",
        name="seal",
        operation="seal",
        said=lambda _: NoMessage(),
        to="/ledger/seals",
    ),
)
_BY_NAME: Final = {deed.name: deed for deed in DEEDS}


def perform(name: str, asked: PageRequest, fields: Fields) -> str:
    """Do the deed of a form, once, and return the address that shows it. Raises the errors of the act.

    A form that is sent twice, because somebody pressed twice, has the same key: then the first answer counts.
    """
    deed = _BY_NAME[name]
    operation = _OPERATIONS[deed.operation]
    asked.visitor.caller.require_role(operation.roles)
    request = asked.as_api(body=deed.said(fields))
    key = fields.get("key", "")
    if not (0 < len(key) <= _LONGEST_KEY and key.isascii() and key.isprintable()):
        raise InvalidValueError("key", "is missing: load the page again")
    said = json.dumps([asked.path, request.body, fields.get("reason")], default=in_json, sort_keys=True).encode()

    def act() -> GivenAnswer:
        done = operation.act(request) if deed.act is None else deed.act(asked, fields)
        return GivenAnswer(operation.status, json_bytes(done))

    asked.plane.answers.once(asked.visitor.caller.token.id, f"page {key}", said, act)
    return deed.to.format(**asked.names)


def prepare(asked: PageRequest, fields: Fields) -> bytes:
    """Return the ruling that the visitor's passkey has to sign, for the page's script. Raises the errors of the act.

    Nothing is recorded. The page has checked that the screen shows exactly the sheet, and the act checks it again.
    """
    operation = _OPERATIONS["prepareRuling"]
    asked.visitor.caller.require_role(operation.roles)
    said = PrepareMessage(
        approved=fields.get("decision") == "approved", shown=_required(fields, "shown"), looked_ms=_looked(fields)
    )
    return json_bytes(operation.act(asked.as_api(body=said)))


def export(asked: PageRequest) -> tuple[str, bytes, str]:
    """Return the bundle of a task: a name for the file, its bytes and their type. Raises the errors of the act."""
    asked.visitor.caller.require_role(_OPERATIONS["exportTree"].roles)
    made = export_tree(asked.as_api(query=ExportQuery()))
    return f"batonpass-{ending(asked.names['run'])}.jsonl", made.body, made.media_type


def _settled(fields: Fields, settlement: Settlement) -> tuple[str, ...]:
    """Return the calls in doubt for which a form says this."""
    chosen = {name.removeprefix(_DOUBT): said for name, said in fields.items() if name.startswith(_DOUBT)}
    return tuple(call for call, said in chosen.items() if said == settlement)


def _required(fields: Fields, name: str) -> str:
    given = fields.get(name, "").strip()
    if not given:
        raise InvalidValueError(name, "say it in a few words: it goes on record")
    return given


def _optional(fields: Fields, name: str) -> str | None:
    return fields.get(name, "").strip() or None
