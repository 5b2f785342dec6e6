"""The bodies in a relay's own stream: keys, revoked grants, erasures, endorsed files, alarms, tokens, webhooks."""

from datetime import datetime
from typing import Annotated, ClassVar, TypeAlias

from batonpass.errors import InvalidValueError
from batonpass.model.base.checked_value import CheckedValue, Code, FieldCheck
from batonpass.model.base.checks import (
    Form,
)
from batonpass.model.base.ids import (
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
)
from batonpass.model.base.kinds import AccessRole, Kind, WebhookChange
from batonpass.model.base.passkey import require_approver_key
from batonpass.model.grants.charge import require_account, whole_of


class RelayEnrolled(CheckedValue, frozen=True, kw_only=True, omit_defaults=True):
    """The root key enrolled a relay: it may record in this ledger."""

    kind: ClassVar = Kind.RELAY_ENROLLED
    relay: RelayId
    public_key: PublicKey


class RelayRotated(CheckedValue, frozen=True, kw_only=True, omit_defaults=True):
    """A relay continues with a new key. Everything that its old key signed before stays valid."""

    kind: ClassVar = Kind.RELAY_ROTATED
    relay: RelayId
    old_key: PublicKey
    public_key: PublicKey


class RelayRevoked(CheckedValue, frozen=True, kw_only=True, omit_defaults=True):
    """A relay's key was revoked: it may record nothing more."""

    kind: ClassVar = Kind.RELAY_REVOKED
    relay: RelayId
    public_key: PublicKey


class _OfApprover(CheckedValue, frozen=True, kw_only=True, omit_defaults=True):
    principal: PrincipalId
    public_key: Annotated[PublicKey, FieldCheck(require_approver_key)]

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.principal.startswith("agent:"):
            raise InvalidValueError("principal", f"{self.principal} is an agent, and no agent approves")


class ApproverEnrolled(_OfApprover, frozen=True, kw_only=True):
    """The root key enrolled an approver's key, and says whose it is."""

    kind: ClassVar = Kind.APPROVER_ENROLLED


class ApproverRevoked(_OfApprover, frozen=True, kw_only=True):
    """An approver's key was revoked. Its later signatures prove nothing; earlier ones stay valid."""

    kind: ClassVar = Kind.APPROVER_REVOKED


class GrantRevoked(CheckedValue, frozen=True, kw_only=True, omit_defaults=True):
    """The grant of a handoff or a root was revoked, and with it every grant below."""

    kind: ClassVar = Kind.GRANT_REVOKED
    account: Annotated[StreamId, FieldCheck(require_account)]  # the handoff, or the root run
    by: PrincipalId

    def __post_init__(self) -> None:
        super().__post_init__()
        if whole_of(self.account) != self.account:
            raise InvalidValueError("account", "is a part of one; a grant is revoked as a whole")


FindingKey: TypeAlias = Annotated[str, Form(r"[0-9a-f]{12}", "a finding: twelve hexadecimal digits")]


class FindingAcknowledged(CheckedValue, frozen=True, kw_only=True, omit_defaults=True):
    """A person has seen a finding of a review and answers for leaving it as it is."""

    kind: ClassVar = Kind.FINDING_ACKNOWLEDGED
    root: RunId  # of the tree that it is about
    finding: FindingKey  # which follows from the evidence
    code: Code  # its sort
    by: PrincipalId


AlarmKey: TypeAlias = Annotated[str, Form(r"[0-9a-f]{12}", "an alarm: twelve hexadecimal digits")]
ConfigKey: TypeAlias = Annotated[str, Form(r"[0-9a-f]{8}", "a configuration: eight hexadecimal digits")]


class _OfAlarm(CheckedValue, frozen=True, kw_only=True, omit_defaults=True):
    agent: AgentId
    alarm: AlarmKey  # agent, kind of task, configuration, cause and window, so one alarm has one key


class AlarmRaised(_OfAlarm, frozen=True, kw_only=True):
    """An agent works differently from its baseline, and has for several windows. The kind of task is content."""

    kind: ClassVar = Kind.ALARM_RAISED
    cause: Code  # `index`, or what is different
    window_since: datetime  # when the window begins after which it was raised
    window_until: datetime  # when that window ends
    compared_since: datetime  # when the baseline begins
    compared_until: datetime  # when the baseline ends
    first: HandoffId | None = None  # the first handoff that shows the change, if there is one
    configuration: ConfigKey | None = None  # of the agent's model, prompt and tools; None if nobody said it


class AlarmAcknowledged(_OfAlarm, frozen=True, kw_only=True):
    """A person has seen an alarm and answers for letting the agent go on."""

    kind: ClassVar = Kind.ALARM_ACKNOWLEDGED
    by: PrincipalId


class AlarmCleared(_OfAlarm, frozen=True, kw_only=True):
    """The cause of an alarm is over: a later window is as the baseline was, or the agent has another configuration."""

    kind: ClassVar = Kind.ALARM_CLEARED


class FileEndorsed(CheckedValue, frozen=True, kw_only=True, omit_defaults=True):
    """A person endorsed the content of a file that a tainted run wrote."""

    kind: ClassVar = Kind.FILE_ENDORSED
    holds: tuple[Digest, ...]  # sha256 of its bytes, and of the bytes that the run left if somebody changed them since
    by: PrincipalId

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.holds:
            raise InvalidValueError("holds", "names no bytes that somebody could answer for")


class ContentErased(CheckedValue, frozen=True, kw_only=True, omit_defaults=True):
    """Contents were erased on purpose. Their receipts stay."""

    kind: ClassVar = Kind.CONTENT_ERASED
    contents: tuple[ContentId, ...]
    by: PrincipalId

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.contents:
            raise InvalidValueError("contents", "names nothing to erase")


class TokenAdded(CheckedValue, frozen=True, kw_only=True, omit_defaults=True):
    """Somebody may come in with a token: as whom, in which role, and until when. Its ceiling is content."""

    kind: ClassVar = Kind.TOKEN_ADDED
    token: TokenId
    secret: Digest  # sha256 of the secret, which is random and long: nobody finds it from this
    principal: PrincipalId
    role: AccessRole
    until: datetime
    by: PrincipalId
    agents: tuple[AgentId, ...] = ()  # as which agents it may work; none: as any


class TokenRevoked(CheckedValue, frozen=True, kw_only=True, omit_defaults=True):
    """A token lets nobody in any more."""

    kind: ClassVar = Kind.TOKEN_REVOKED
    token: TokenId
    by: PrincipalId


class WebhookChanged(CheckedValue, frozen=True, kw_only=True, omit_defaults=True):
    """A webhook was added, removed, given another secret, given up or taken up again. Its URL is content."""

    kind: ClassVar = Kind.WEBHOOK_CHANGED
    webhook: WebhookId
    change: WebhookChange
    by: PrincipalId
    kinds: tuple[Code, ...] = ()  # of receipts, or families of them, that it is told of; none: of all
