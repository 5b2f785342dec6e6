"""The bodies of receipts: one struct for each kind, and the closed list of kinds.

Signed bytes hold ids, codes, integers, times and digests. Whatever a person or a model wrote (tasks, reasons, results,
arguments, targets, lines) is content, which stands beside the receipt; `docs/spec/content.md` lists the parts of each
kind. Names of agents, tools and principals are ids that a program gives.
"""

from typing import Annotated, Final, Literal, TypeAlias

from msgspec import Meta, Struct

from batonpass.model.ids import AccountId, CallId, HandoffId, RelayId, RunId
from batonpass.model.values import Count, Digest, Effect, Key, Name, Outcome, RunHead, Settlement

Attempt: TypeAlias = Annotated[int, Meta(ge=1, lt=2**53)]


class Body(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What happened."""


class RunStarted(Body, frozen=True):
    """A principal began a tree. Signed by the run's key as well: proof that this run holds it."""

    run: RunId
    agent: Name
    principal: Name
    run_key: Key


class RunRekeyed(Body, frozen=True):
    """Another process or relay took the run over. The envelope has the new epoch: the old holder is fenced."""

    run: RunId
    run_key: Key


class RunRecorded(Body, frozen=True):
    """What a run knows (items), or what it could not record when it happened (gap)."""

    run: RunId
    subject: Literal["items", "gap"]
    count: Count  # how many items, or how many acts are missing


class RunClosed(Body, frozen=True):
    """The root of a tree ended. A child's head listed here means: at least this far."""

    run: RunId
    outcome: Outcome
    children: tuple[RunHead, ...] = ()


class HandoffInitiated(Body, frozen=True):
    """A run offered a task. This is the checkpoint: the baton is durable before anything of the child runs."""

    handoff: HandoffId
    to: Name
    execution: Literal["caller"]
    state: Literal["offered"]


class HandoffAccepted(Body, frozen=True):
    """An attempt began. The relay signs that this key holds these terms, the run that it accepts this baton."""

    handoff: HandoffId
    parent: RunId
    run: RunId
    attempt: Attempt
    agent: Name
    run_key: Key
    baton: Digest
    terms: Digest | None = None
    expires_at: Count | None = None


class HandoffEnded(Body, frozen=True):
    """An attempt ended. Its kind says how; completed is provisional."""

    handoff: HandoffId
    parent: RunId
    attempt: Attempt
    children: tuple[RunHead, ...] = ()
    kept: Count = 0  # calls that an earlier attempt had finished, and that were not made again


class HandoffCompleted(HandoffEnded, frozen=True):
    """The attempt delivered."""


class HandoffFailed(HandoffEnded, frozen=True):
    """The attempt ended without a result."""


class HandoffRetried(Body, frozen=True):
    """The next attempt may begin. It names exactly the head of the last one, and fences it there."""

    handoff: HandoffId
    attempt: Attempt  # the one that ended
    by: Name
    ended_run: RunHead


class HandoffCancelled(Body, frozen=True):
    """The handoff is over without a result. A run that withdraws it says in which epoch it held its own stream."""

    handoff: HandoffId
    attempt: Count
    by: Name
    code: Literal["handoff.parent_closed"]
    holder: RunId
    holder_epoch: Count
    ended_run: RunHead | None = None


class ToolRequested(Body, frozen=True):
    """Durable before the tool runs. By `key` an equal call is recognised; `charges` are the grants that it needs."""

    run: RunId
    call: CallId
    key: Key
    tool: Name
    charges: tuple[AccountId, ...] = ()


class ToolEnded(Body, frozen=True):
    """The outcome of a call."""

    run: RunId
    call: CallId
    took_us: Count
    effects: tuple[Effect, ...] = ()


class ToolCompleted(ToolEnded, frozen=True):
    """The tool returned. Without the content `result` it has no result that a later attempt could be given."""


class ToolFailed(ToolEnded, frozen=True):
    """The tool raised."""


class ToolDenied(Body, frozen=True):
    """The call was not made."""

    run: RunId
    call: CallId
    key: Key
    tool: Name
    rule: Literal["grant.exceeded", "grant.expired", "grant.revoked", "value.invalid"]


class ToolLateResult(Body, frozen=True):
    """A fenced attempt delivered the outcome of a call that it had requested. Evidence, and nothing more."""

    handoff: HandoffId
    run: RunId
    call: CallId
    outcome: Outcome
    took_us: Count
    effects: tuple[Effect, ...] = ()


class ToolSettled(Body, frozen=True):
    """A person decided about a call in doubt: make it again, or never."""

    run: RunId
    call: CallId
    settlement: Settlement
    by: Name


class KeyEnrolled(Body, frozen=True):
    """A key may sign. The ledger's root key signs this receipt as well."""

    subject: Literal["relay"]
    relay: RelayId
    owner: Name
    public_key: Key
    root_key: Key


class GrantRevoked(Body, frozen=True):
    """A grant has ended, and all that hang from it: what was given to a root run, or with a handoff."""

    account: AccountId
    by: Name


KINDS: Final[dict[str, type[Body]]] = {
    "run.started": RunStarted,
    "run.rekeyed": RunRekeyed,
    "run.recorded": RunRecorded,
    "run.closed": RunClosed,
    "handoff.initiated": HandoffInitiated,
    "handoff.accepted": HandoffAccepted,
    "handoff.completed": HandoffCompleted,
    "handoff.failed": HandoffFailed,
    "handoff.retried": HandoffRetried,
    "handoff.cancelled": HandoffCancelled,
    "tool.requested": ToolRequested,
    "tool.completed": ToolCompleted,
    "tool.failed": ToolFailed,
    "tool.denied": ToolDenied,
    "tool.late_result": ToolLateResult,
    "tool.settled": ToolSettled,
    "key.enrolled": KeyEnrolled,
    "grant.revoked": GrantRevoked,
}


def public_kind(kind: str, body: Body) -> str:
    """Return the name under which filters and lists know it: the kind, with its subject where it has one."""
    subject = getattr(body, "subject", None)
    return kind if subject is None else f"{kind}.{subject}"
