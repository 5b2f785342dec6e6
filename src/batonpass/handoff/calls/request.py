"""The request of a call: the receipt that is durable before the call is made, in one commit with its charges."""

from collections.abc import Sequence
from typing import Final

from batonpass.attribution.git.arrived_commits import see_history
from batonpass.credentials import Credential
from batonpass.guard.grants.recorded_call import JUDGED
from batonpass.handoff.calls.call_gates import tiers_of
from batonpass.handoff.calls.call_limits import write_counted
from batonpass.handoff.calls.credential import key_of, told
from batonpass.handoff.calls.pending_call import Begun, PendingCall
from batonpass.handoff.calls.result_cache import cache_key
from batonpass.handoff.files.edited_files import NOTHING, Watched, watch
from batonpass.handoff.runtime.desk import Desk
from batonpass.handoff.tools.json_values import describe
from batonpass.model.base.content_names import ARGUMENTS, SCOPE, TARGET
from batonpass.model.base.ids import CallId, new_call_id
from batonpass.model.base.trusted import unchecked_maker
from batonpass.model.bodies.body import Body, ToolRequested
from batonpass.model.grants.call import Call
from batonpass.model.grants.charge import Charge
from batonpass.model.grants.condition import argument_of, is_absent
from batonpass.model.ledger.content import Content
from batonpass.model.policy.policy_rules import Tier


def judged(desk: Desk, names: Sequence[str], tried: Call) -> Content:
    """Return as content the named arguments of a call as they were checked, with paths followed.

    They are recorded in addition to the arguments as given, because a verifier has no file system to follow paths in.
    """
    found = {name: value for name in names if not is_absent(value := argument_of(name, tried.arguments))}
    return desk.json(JUDGED, describe(found))


UNTRUSTED_ARGUMENT = "argument.untrusted"
UNDECLARED_TOOL = "tool.undeclared"  # a model called a tool that may do harm: it is undeclared

_requested_plainly: Final = unchecked_maker(ToolRequested)


def write_request(pending: PendingCall, credential: Credential | None = None) -> Begun:
    """Write the request of a call that has passed every check, and return the call as begun.

    Raises `ConstraintViolatedError` and `GrantRevokedError` if the commit finds that a limit was used up or a grant
    was revoked since the check.
    """
    desk, holding, call, declared = pending.desk, pending.holding, pending.call, pending.declared
    identifier = new_call_id(desk.clock.now())
    acting = () if credential is None else told(desk, credential)
    contents = [desk.json(ARGUMENTS, pending.described), *acting, *_words(pending), *pending.beside]
    recorded = write_counted(pending, lambda charges: _requested(pending, identifier, credential, charges), contents)
    # Only after the commit: a request that was refused there has not used its approval.
    holding.use_up(pending.key, idempotent=declared.idempotent)
    holding.use.make(pending.tried, pending.flags)
    changes = recorded and not declared.reads
    if changes:
        holding.effects.append(identifier)
    if pending.target is not None:
        holding.changed.add(pending.target)
    looks = changes and not call.seen_elsewhere
    return Begun(
        call=identifier,
        key=pending.key,
        attempt=holding.working.run.attempt,
        described=pending.described,
        number=pending.number,
        cache=None if declared.cache_for is None else cache_key(desk, holding.root, declared, pending.described),
        recorded=recorded,
        credential=credential,
        watched=_watched(pending) if changes else NOTHING,
        counted=pending.counting.counted(),
        looked=looks and (declared.any_file or desk.files.is_watched),
    )


def _requested(
    pending: PendingCall, identifier: CallId, credential: Credential | None, charges: tuple[Charge, ...]
) -> Body:
    declared = pending.declared
    flags = [*pending.call.flags, *pending.flags]
    if pending.gates:
        flags += [decision.flag for decision in pending.gates]
    if pending.untrusted:
        flags.append(UNTRUSTED_ARGUMENT)
    if pending.holding.stops_harm and Tier.UNDECLARED in tiers_of(declared):
        flags.append(UNDECLARED_TOOL)
    # The short way skips the checks of the fields: ids and digests were made here or are those of the run, and the
    # rest is empty or was checked when it was made. Flags come from doors and policies, and a tool may declare values
    # that are not booleans: such a receipt is checked field by field.
    plain = not flags and type(declared.idempotent) is bool and type(declared.reads) is bool
    return (_requested_plainly if plain else ToolRequested)(
        run=pending.holding.id,
        call=identifier,
        tool=declared.name,
        key=pending.key,
        target=pending.target_key,
        idempotent=declared.idempotent,
        reversible=declared.reversible is True,
        reads=declared.reads,
        flags=tuple(dict.fromkeys(flags)),
        tiers=tuple(map(str, tiers_of(declared))),
        credential=None if credential is None else key_of(pending.desk, pending.holding, credential),
        label=pending.label,
        untrusted=pending.untrusted,
        charges=charges,
    )


def _words(pending: PendingCall) -> list[Content]:
    """Return the contents of a request besides its arguments: the target, the call as a grant sees it, objections."""
    desk = pending.desk
    contents = []
    if (shown := pending.declared.shown if pending.target is None else pending.target) is not None:
        contents.append(desk.text(TARGET, shown))
    if pending.tried is not None:
        contents.append(desk.text(SCOPE, str(pending.tried)))
        if names := pending.holding.bounds.conditioned:
            contents.append(judged(desk, names, pending.tried))
    if pending.reasons:
        contents.append(desk.refusal("\n".join(dict.fromkeys(pending.reasons))))
    return contents


def _watched(pending: PendingCall) -> Watched:
    """Look at the files that a call names, before it is made; only at commits if its door looks at the files itself."""
    if pending.call.seen_elsewhere:
        root = pending.desk.files.root
        return Watched(root, {}, see_history(root))
    return watch(pending.call.named, looks=pending.looks)
