"""The bodies in a relay's own stream: keys, revoked grants, erasures, endorsed files, alarms, tokens, webhooks."""

from datetime import datetime
from typing import ClassVar, Final

from msgspec import Struct

from batonpass.errors import InvalidValueError
from batonpass.model.base.checks import (
    Form,
    require_code,
    require_codes,
    require_digest,
    require_instance,
    require_member,
    require_unique,
    require_utc,
)
from batonpass.model.base.ids import (
    CONTENT,
    HANDOFF,
    RELAY,
    RUN,
    TOKEN,
    WEBHOOK,
    AgentId,
    ContentId,
    Digest,
    HandoffId,
    PrincipalId,
    PublicKey,
    RelayId,
    RunId,
    StreamId,
    TokenId,
    WebhookId,
    require_agent,
    require_id,
    require_principal,
)
from batonpass.model.base.kinds import AccessRole, Kind, WebhookChange
from batonpass.model.base.passkey import require_approver_key
from batonpass.model.grants.charge import require_account, whole_of


class RelayEnrolled(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The root key enrolled a relay: it may record in this ledger."""

    kind: ClassVar = Kind.RELAY_ENROLLED
    relay: RelayId
    public_key: PublicKey

    def __post_init__(self) -> None:
        require_id("relay", self.relay, RELAY)
        require_digest("public_key", self.public_key)


class RelayRotated(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A relay continues with a new key. Everything that its old key signed before stays valid."""

    kind: ClassVar = Kind.RELAY_ROTATED
    relay: RelayId
    old_key: PublicKey
    public_key: PublicKey

    def __post_init__(self) -> None:
        require_id("relay", self.relay, RELAY)
        require_digest("old_key", self.old_key)
        require_digest("public_key", self.public_key)


class RelayRevoked(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A relay's key was revoked: it may record nothing more."""

    kind: ClassVar = Kind.RELAY_REVOKED
    relay: RelayId
    public_key: PublicKey

    def __post_init__(self) -> None:
        require_id("relay", self.relay, RELAY)
        require_digest("public_key", self.public_key)


class _OfApprover(Struct, frozen=True, kw_only=True, omit_defaults=True):
    principal: PrincipalId
    public_key: PublicKey

    def __post_init__(self) -> None:
        require_principal("principal", self.principal)
        if self.principal.startswith("agent:"):
            raise InvalidValueError("principal", f"{self.principal} is an agent, and no agent approves")
        require_approver_key("public_key", self.public_key)


class ApproverEnrolled(_OfApprover, frozen=True, kw_only=True):
    """The root key enrolled an approver's key, and says whose it is."""

    kind: ClassVar = Kind.APPROVER_ENROLLED


class ApproverRevoked(_OfApprover, frozen=True, kw_only=True):
    """An approver's key was revoked. Its later signatures prove nothing; earlier ones stay valid."""

    kind: ClassVar = Kind.APPROVER_REVOKED


class GrantRevoked(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The grant of a handoff or a root was revoked, and with it every grant below."""

    kind: ClassVar = Kind.GRANT_REVOKED
    account: StreamId  # the handoff, or the root run
    by: PrincipalId

    def __post_init__(self) -> None:
        if whole_of(require_account("account", self.account)) != self.account:
            raise InvalidValueError("account", "is a part of one; a grant is revoked as a whole")
        require_principal("by", self.by)


_FINDING: Final = Form(r"[0-9a-f]{12}", "a finding: twelve hexadecimal digits")


class FindingAcknowledged(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A person has seen a finding of a review and answers for leaving it as it is."""

    kind: ClassVar = Kind.FINDING_ACKNOWLEDGED
    root: RunId  # of the tree that it is about
    finding: str  # its key, which follows from the evidence
    code: str  # its sort
    by: PrincipalId

    def __post_init__(self) -> None:
        require_id("root", self.root, RUN)
        _FINDING.require("finding", self.finding)
        require_code("code", self.code)
        require_principal("by", self.by)


_ALARM: Final = Form(r"[0-9a-f]{12}", "an alarm: twelve hexadecimal digits")
_CONFIG: Final = Form(r"[0-9a-f]{8}", "a configuration: eight hexadecimal digits")


class _OfAlarm(Struct, frozen=True, kw_only=True, omit_defaults=True):
    agent: AgentId
    alarm: str  # its key: agent, kind of task, configuration, cause and window, so one alarm has one key

    def __post_init__(self) -> None:
        require_agent("agent", self.agent)
        _ALARM.require("alarm", self.alarm)


class AlarmRaised(_OfAlarm, frozen=True, kw_only=True):
    """An agent works differently from its baseline, and has for several windows. The kind of task is content."""

    kind: ClassVar = Kind.ALARM_RAISED
    cause: str  # `index`, or what is different
    window_since: datetime  # when the window begins after which it was raised
    window_until: datetime  # when that window ends
    compared_since: datetime  # when the baseline begins
    compared_until: datetime  # when the baseline ends
    first: HandoffId | None = None  # the first handoff that shows the change, if there is one
    configuration: str | None = None  # of the agent's model, prompt and tools; None if nobody said it

    def __post_init__(self) -> None:
        super().__post_init__()
        require_code("cause", self.cause)
        if self.configuration is not None:
            _CONFIG.require("configuration", self.configuration)
        if self.first is not None:
            require_id("first", self.first, HANDOFF)
        for name in ("window_since", "window_until", "compared_since", "compared_until"):
            require_utc(name, getattr(self, name))


class AlarmAcknowledged(_OfAlarm, frozen=True, kw_only=True):
    """A person has seen an alarm and answers for letting the agent go on."""

    kind: ClassVar = Kind.ALARM_ACKNOWLEDGED
    by: PrincipalId

    def __post_init__(self) -> None:
        super().__post_init__()
        require_principal("by", self.by)


class AlarmCleared(_OfAlarm, frozen=True, kw_only=True):
    """The cause of an alarm is over: a later window is as the baseline was, or the agent has another configuration."""

    kind: ClassVar = Kind.ALARM_CLEARED


class FileEndorsed(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A person endorsed the content of a file that a tainted run wrote."""

    kind: ClassVar = Kind.FILE_ENDORSED
    holds: tuple[Digest, ...]  # sha256 of its bytes, and of the bytes that the run left if somebody changed them since
    by: PrincipalId

    def __post_init__(self) -> None:
        if not isinstance(self.holds, tuple) or not self.holds:
            raise InvalidValueError("holds", "names no bytes that somebody could answer for")
        for digest in self.holds:
            require_digest("holds", digest)
        require_unique("holds", self.holds)
        require_principal("by", self.by)


class ContentErased(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Contents were erased on purpose. Their receipts stay."""

    kind: ClassVar = Kind.CONTENT_ERASED
    contents: tuple[ContentId, ...]
    by: PrincipalId

    def __post_init__(self) -> None:
        if not isinstance(self.contents, tuple) or not self.contents:
            raise InvalidValueError("contents", "names nothing to erase")
        for content in self.contents:
            require_id("contents", content, CONTENT)
        require_unique("contents", self.contents)
        require_principal("by", self.by)


class TokenAdded(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Somebody may come in with a token: as whom, in which role, and until when. Its ceiling is content."""

    kind: ClassVar = Kind.TOKEN_ADDED
    token: TokenId
    secret: Digest  # sha256 of the secret, which is random and long: nobody finds it from this
    principal: PrincipalId
    role: AccessRole
    until: datetime
    by: PrincipalId
    agents: tuple[AgentId, ...] = ()  # as which agents it may work; none: as any

    def __post_init__(self) -> None:
        require_id("token", self.token, TOKEN)
        require_digest("secret", self.secret)
        require_principal("principal", self.principal)
        require_member("role", self.role, AccessRole)
        require_utc("until", self.until)
        require_principal("by", self.by)
        for agent in require_instance("agents", self.agents, tuple):
            require_agent("agents", agent)
        require_unique("agents", self.agents)


class TokenRevoked(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A token lets nobody in any more."""

    kind: ClassVar = Kind.TOKEN_REVOKED
    token: TokenId
    by: PrincipalId

    def __post_init__(self) -> None:
        require_id("token", self.token, TOKEN)
        require_principal("by", self.by)


class WebhookChanged(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A webhook was added, removed, given another secret, given up or taken up again. Its URL is content."""

    kind: ClassVar = Kind.WEBHOOK_CHANGED
    webhook: WebhookId
    change: WebhookChange
    by: PrincipalId
    kinds: tuple[str, ...] = ()  # of receipts, or families of them, that it is told of; none: of all

    def __post_init__(self) -> None:
        require_id("webhook", self.webhook, WEBHOOK)
        require_member("change", self.change, WebhookChange)
        require_principal("by", self.by)
        require_codes("kinds", self.kinds)
