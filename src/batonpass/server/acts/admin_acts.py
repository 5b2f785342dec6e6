"""The acts of an administrator: tokens and webhooks; and findings and alarms that a person leaves as they are."""

from typing import Annotated, Final

from msgspec import Meta, Struct

from batonpass.dispatch.webhooks import Webhooks
from batonpass.errors import NotFoundError
from batonpass.model.base.durations import read_duration
from batonpass.model.base.ids import TokenId
from batonpass.model.base.kinds import AccessRole
from batonpass.records.access_token import get_token
from batonpass.records.json_shapes import Shape, token_shape
from batonpass.records.recipients.webhook import find_webhooks
from batonpass.records.remarks.alarm import find_alarms
from batonpass.server.acts.handoff_acts import NoMessage
from batonpass.server.acts.own_run import in_whose_name
from batonpass.server.endpoint import ADMINS, DECIDERS, ApiRequest, Endpoint
from batonpass.server.shape_types import DoneShape, IssuedTokenShape, IssuedWebhookShape, WebhookAnswerShape

_CREATED: Final = 201
Words = Annotated[str, Meta(min_length=1, max_length=10_000)]


class TokenMessage(Struct, frozen=True, kw_only=True):
    """A token for somebody."""

    principal: str
    role: AccessRole
    lasts: Annotated[str, Meta(description="How long it is valid, such as 30d or 8h.")] = "30d"
    agents: tuple[str, ...] = ()
    may: tuple[str, ...] = ()
    may_delegate: tuple[str, ...] = ()
    by: str | None = None


class ReasonMessage(Struct, frozen=True, kw_only=True):
    """Why."""

    reason: Words
    by: str | None = None


class AcknowledgeMessage(Struct, frozen=True, kw_only=True):
    """A finding of the tree of a run, and why it stays as it is."""

    run: str
    reason: Words
    by: str | None = None


class WebhookMessageBody(Struct, frozen=True, kw_only=True):
    """The address that is told of receipts, and their kinds; all if there are none."""

    url: Annotated[str, Meta(min_length=1, max_length=2048)]
    kinds: tuple[str, ...] = ()
    by: str | None = None


def add_token(asked: ApiRequest) -> Shape:
    """Add a token. Its text is in this answer, and nowhere else."""
    said: TokenMessage = asked.body
    relay = asked.plane.relay
    issued = relay.admin.add_token(
        said.principal,
        said.role,
        by=in_whose_name(asked, said.by),
        lasts=read_duration("lasts", said.lasts),
        agents=said.agents,
        may=said.may,
        may_delegate=said.may_delegate,
    )
    known = next(one for one in relay.admin.tokens() if one.id == issued.id)
    return {**token_shape(known, asked.plane.clock.now()), "token": issued.text}


def revoke_token(asked: ApiRequest) -> Shape:
    """Revoke a token from now on, at every server."""
    said: ReasonMessage = asked.body
    with asked.looking() as (view, _):
        # The whole id: the end of one, which people type at a terminal, may be that of another token here.
        token = get_token(view, TokenId(asked.names["token"]))
    asked.plane.relay.admin.revoke_token(token.id, by=in_whose_name(asked, said.by), reason=said.reason)
    return {"done": True}


def acknowledge(asked: ApiRequest) -> Shape:
    """Leave a finding as it is, with a reason."""
    said: AcknowledgeMessage = asked.body
    by = in_whose_name(asked, said.by)
    with asked.looking() as (_, reach):
        run = reach.run(said.run)
    asked.plane.relay.acknowledge(run.id, asked.names["finding"], by=by, reason=said.reason)
    return {"done": True}


def acknowledge_alarm(asked: ApiRequest) -> Shape:
    """Let an agent in alarm go on, with a reason."""
    said: ReasonMessage = asked.body
    by = in_whose_name(asked, said.by)
    given = asked.names["alarm"]
    with asked.looking() as (view, _):
        # The whole key, as of a token: the name of an agent, which people type, may come to mean another alarm.
        if all(one.key != given for one in find_alarms(view)):
            raise NotFoundError("alarm", given)
    asked.plane.relay.acknowledge_alarm(given, by=by, reason=said.reason)
    return {"done": True}


def _webhook(asked: ApiRequest) -> str:
    given = asked.names["webhook"]
    with asked.looking() as (view, _):
        if all(one.id != given for one in find_webhooks(view)):
            raise NotFoundError("webhook", given)
    return given


def _webhooks(asked: ApiRequest) -> Webhooks:
    return Webhooks(asked.plane.relay, asked.plane.egress)


def add_webhook(asked: ApiRequest) -> Shape:
    """Add a webhook. Its secret is in this answer, and nowhere else."""
    said: WebhookMessageBody = asked.body
    issued = _webhooks(asked).add(said.url, by=in_whose_name(asked, said.by), kinds=said.kinds)
    return {"id": issued.id, "secret": issued.secret.reveal()}


def rotate_webhook(asked: ApiRequest) -> Shape:
    """Give a webhook another secret. The one before signs beside it for a day."""
    issued = _webhooks(asked).rotate(_webhook(asked), by=asked.caller.principal)
    return {"id": issued.id, "secret": issued.secret.reveal()}


def remove_webhook(asked: ApiRequest) -> Shape:
    """Remove a webhook: it is told nothing more."""
    said: ReasonMessage = asked.body
    _webhooks(asked).remove(_webhook(asked), by=in_whose_name(asked, said.by), reason=said.reason)
    return {"done": True}


def resume_webhook(asked: ApiRequest) -> Shape:
    """Try a webhook again that was given up. It is told everything since then."""
    _webhooks(asked).resume(_webhook(asked), by=asked.caller.principal)
    return {"done": True}


def test_webhook(asked: ApiRequest) -> Shape:
    """Send a webhook an event that says nothing, and return how it answered."""
    answer = _webhooks(asked).test(_webhook(asked))
    return {"status": answer.status, "taken": answer.is_good}


ENDPOINTS: Final = (
    Endpoint(
        method="POST",
        path="/v1/findings/{finding}/acknowledgement",
        name="acknowledgeFinding",
        about="Leave a finding as it is, with a reason.",
        roles=DECIDERS,
        act=acknowledge,
        answers=DoneShape,
        body=AcknowledgeMessage,
    ),
    Endpoint(
        method="POST",
        path="/v1/alarms/{alarm}/acknowledgement",
        name="acknowledgeAlarm",
        about="Let an agent in alarm go on, with a reason.",
        roles=DECIDERS,
        act=acknowledge_alarm,
        answers=DoneShape,
        body=ReasonMessage,
    ),
    Endpoint(
        method="POST",
        path="/v1/tokens",
        name="addToken",
        about="Add a token; its text is shown this once.",
        roles=ADMINS,
        act=add_token,
        answers=IssuedTokenShape,
        body=TokenMessage,
        status=_CREATED,
    ),
    Endpoint(
        method="POST",
        path="/v1/tokens/{token}/revocation",
        name="revokeToken",
        about="Revoke a token from now on, at every server.",
        roles=ADMINS,
        act=revoke_token,
        answers=DoneShape,
        body=ReasonMessage,
    ),
    Endpoint(
        method="POST",
        path="/v1/webhooks",
        name="addWebhook",
        about="Add a webhook that is told what is recorded; its secret is shown this once.",
        roles=ADMINS,
        act=add_webhook,
        answers=IssuedWebhookShape,
        body=WebhookMessageBody,
        status=_CREATED,
        asks_others=True,
    ),
    Endpoint(
        method="POST",
        path="/v1/webhooks/{webhook}/rotation",
        name="rotateWebhook",
        about="Give a webhook another secret; the one before signs beside it for a day.",
        roles=ADMINS,
        act=rotate_webhook,
        answers=IssuedWebhookShape,
        body=NoMessage,
    ),
    Endpoint(
        method="POST",
        path="/v1/webhooks/{webhook}/resumption",
        name="resumeWebhook",
        about="Try a webhook again that was given up.",
        roles=ADMINS,
        act=resume_webhook,
        answers=DoneShape,
        body=NoMessage,
    ),
    Endpoint(
        method="POST",
        path="/v1/webhooks/{webhook}/test",
        name="testWebhook",
        about="Send a webhook an event that says nothing, and show how it answered.",
        roles=ADMINS,
        act=test_webhook,
        answers=WebhookAnswerShape,
        body=NoMessage,
        asks_others=True,
    ),
    Endpoint(
        method="POST",
        path="/v1/webhooks/{webhook}/removal",
        name="removeWebhook",
        about="Remove a webhook: it is told nothing more.",
        roles=ADMINS,
        act=remove_webhook,
        answers=DoneShape,
        body=ReasonMessage,
    ),
)
