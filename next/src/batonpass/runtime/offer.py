"""An offer: the whole baton is durable before anything of the child runs.

It reads nothing: what it needs to know stands in the run. The same offer by the same owner is the same handoff, also in
a later attempt or after a restart, because its id is a digest of both.
"""

from collections.abc import Callable, Sequence

from batonpass.authority.grants import expiry_at, narrow
from batonpass.errors import ConflictError, GrantError
from batonpass.log.append import Draft
from batonpass.model.bodies import HandoffInitiated, RunRecorded
from batonpass.model.grants import Grant, Held, Terms
from batonpass.model.ids import derived_id
from batonpass.model.items import Baton, OfferedParts
from batonpass.model.receipt import Signed
from batonpass.runtime.context import Context, Offer
from batonpass.runtime.run_state import ActiveRun
from batonpass.runtime.start import root_terms
from batonpass.wire.canonical import encode, keyed_digest


def offer(
    context: Context,
    run: ActiveRun,
    to: str,
    task: str,
    *,
    grant: Grant | None,
    parts: OfferedParts,
    key: str | None,
    following: Callable[[Offer, Signed], Sequence[Signed]] | None = None,
) -> Offer:
    """Offer a task to an agent. Raises `GrantExceededError`, and `ConflictError` if it was offered before.

    `following` makes receipts that belong into the same commit: the acceptance, where the child runs at once.
    """
    recorder = context.recorder
    run.require_live()
    run.refresh(recorder)
    terms = _terms_of_child(context, run, grant)
    contents = {"task": task.encode(), "baton": encode(parts)}
    if terms is not None:
        contents["terms"] = encode(terms)
    handoff = handoff_id(run, to, task, grant=grant, parts=parts, key=key)
    baton = baton_of(run, task, parts)

    def made(signed: Signed) -> Offer:
        return Offer(
            id=handoff,
            to=to,
            parent=run.id,
            root=run.root,
            anchor=signed.digest,
            attempt=0,
            principal=run.principal,
            tree_secret=run.tree_secret,
            baton=baton,
            baton_digest=signed.receipt.content["baton"],
            lineage=() if terms is None else (*run.lineage, Held(handoff, to, terms)),
            terms=signed.receipt.content.get("terms"),
        )

    body = HandoffInitiated(handoff=handoff, to=to, execution="caller", state="offered")
    run.history.children[handoff] = None  # before the commit: an interrupt right after it must not hide it from `close`
    unwritten = run.unwritten_items
    drafts = [Draft(body, contents)]
    if unwritten:  # in the same commit: what a child is handed stands in the receipts above it
        known = RunRecorded(run=run.id, subject="items", count=len(unwritten))
        drafts.insert(0, Draft(known, {"items": encode(unwritten)}))
    signed = run.writer.append(
        *drafts, following=None if following is None else lambda first: following(made(first), first)
    )
    run.history.children[handoff] = None  # and after it: another thread may have read the history again meanwhile
    run.history.items += unwritten
    run.unwritten_items = run.unwritten_items[len(unwritten) :]
    return made(signed)


def baton_of(run: ActiveRun, task: str, parts: OfferedParts) -> Baton:
    """Return all that travels with an offer of this run."""
    return Baton(
        intent=run.baton.intent,
        task=task,
        criteria=parts.criteria,
        items=(*run.baton.items, *run.history.items, *run.unwritten_items, *parts.items),
        brief=parts.brief,
        agents=(*run.baton.agents, run.agent),
    )


def handoff_id(run: ActiveRun, to: str, task: str, *, grant: Grant | None, parts: OfferedParts, key: str | None) -> str:
    """Return the id of a handoff: it follows from its owner, and from its key or what is offered."""
    # Without its expiry: "24h from now" is another moment each time that it is said.
    scope = None if grant is None else (grant.may, grant.may_delegate)
    words = ("key", key) if key is not None else ("offer", to, task, scope, parts)
    return derived_id("handoff", bytes.fromhex(keyed_digest(run.tree_secret, encode((run.owner, words)))))


def is_same_offer(error: ConflictError) -> bool:
    """Return whether a refusal says that the same was offered before."""
    return error.code == "handoff.already_offered"


def _terms_of_child(context: Context, run: ActiveRun, grant: Grant | None) -> Terms | None:
    if not run.lineage:
        # An observed run may give a child any grant: it begins there, by the root's principal.
        return None if grant is None else root_terms(context.recorder, grant)
    if grant is None:
        detail = f"{run.agent} works under a grant, so what it hands on needs one: may=[...], or grant=Grant(...)"
        raise GrantError(detail, code="grant.required")
    expires_at = expiry_at(grant.expires, context.recorder.system.now())
    return narrow(run.lineage[-1].terms, may=grant.may, may_delegate=grant.may_delegate, expires_at=expires_at)
