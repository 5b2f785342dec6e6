"""Questions about a baton before anybody acts on it: asked, answered, or waived.

A waiver is an answer too: it settles the question, and says why the work goes on without a real answer.
"""

from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from batonpass.errors import HandoffEndedError, InvalidValueError, NotEntitledError
from batonpass.guard.baton.problem import Problem
from batonpass.guard.policy.approvers import Approvable, may_approve
from batonpass.handoff.history.offers import Offer, author_of, read_offer
from batonpass.handoff.runtime.desk import Desk
from batonpass.handoff.runtime.run_state import ref_of
from batonpass.handoff.transfer.free_text import find_suspect, words_in
from batonpass.model.base.checks import require_instance, require_text
from batonpass.model.base.content_names import ANSWER, QUESTION
from batonpass.model.base.ids import ContentId, Digest, HandoffId, PrincipalId, is_user, require_principal
from batonpass.model.base.kinds import Part
from batonpass.model.base.label import Source
from batonpass.model.base.lifecycle import State
from batonpass.model.baton.baton import Answer, Baton, place_of
from batonpass.model.baton.items import Artifact, Item, ItemValue
from batonpass.model.bodies.body import (
    Body,
    ChildHead,
    ErrorType,
    HandoffAnswered,
    HandoffAsked,
    HandoffRevised,
    Kind,
)
from batonpass.model.grants.scope import Scope
from batonpass.model.ledger.content import Content
from batonpass.model.ledger.lease import Lease
from batonpass.model.ledger.run import Handoff
from batonpass.store.port import ReceiptQuery
from batonpass.wire.receipt_codec import decode_receipt

ASKED_BY_HAND: Final = "asked"


class Enclosed(Struct, frozen=True, kw_only=True):
    """The enclosures of an answer: items that are recorded already, new ones, and files by name."""

    items: Sequence[Item | ItemValue] = ()
    files: Mapping[str, bytes | str] = field(default_factory=dict)


_NOTHING_ENCLOSED: Final = Enclosed()


def ask(
    desk: Desk,
    handoff: HandoffId,
    question: str,
    *,
    error: ErrorType = ErrorType.DATA_GAP,
    check: str = ASKED_BY_HAND,
    by: str | None = None,
    lease: Lease | None = None,
) -> None:
    """Ask the sender one closed question before acting; the handoff waits for the answer."""
    require_text("question", question)
    content = desk.text(QUESTION, question)

    def asked(known: Handoff, _: ChildHead | None) -> Body:
        return HandoffAsked(
            handoff=handoff,
            by=PrincipalId(by) if by else author_of(known.to),
            error=error,
            check=check,
            question=desk.secrets.digest(known.root, b"question", question.encode()),
        )

    desk.recording.act(handoff, asked, (content,), token=None if lease is None else lease.token)


def answer(
    desk: Desk,
    handoff: HandoffId,
    text: str,
    *,
    by: str,
    taint: tuple[Source, ...] = (),
    enclosed: Enclosed = _NOTHING_ENCLOSED,
) -> None:
    """Answer the question of the receiver: this makes the next revision of the baton, with the taint of the answer.

    Enclosed items travel with the handoff from then on. A file replaces the one of the same name.
    """
    require_text("answer", text)
    with desk.store.view() as view:
        known = view.get_handoff(handoff)
        offer = read_offer(view, known)
    baton = offer.baton
    added: tuple[Item, ...] = ()
    revision = baton.revision + 1
    if enclosed.items or enclosed.files:
        # Before the answer: whoever takes the handoff up as soon as it is answered finds what belongs to the answer.
        if known.state is not State.ASKED:
            raise HandoffEndedError(handoff, known.state)
        added = _enclose(desk, baton, enclosed, by=PrincipalId(by), taint=taint)
        revision += 1
    suspect = _suspect(desk, offer, text, added, by=PrincipalId(by))
    body = HandoffAnswered(handoff=handoff, by=PrincipalId(by), revision=revision, taint=taint, suspect=suspect)
    desk.recording.act(handoff, lambda _, __: body, (desk.text(ANSWER, text),))


def waive(desk: Desk, offer: Offer, problem: Problem, reason: str, *, by: str, taint: tuple[Source, ...] = ()) -> None:
    """Let a handoff go on although a problem is not settled, with the reason.

    Raises `NotEntitledError` if the agent that would do the work says so, or somebody who has no say in it, and
    `HandoffEndedError` if it is no longer waiting.
    """
    require_text("reason", reason)
    handoff = offer.handoff
    who = require_principal("by", PrincipalId(by))
    _require_entitled(desk, offer, who)
    if offer.open_question != problem.question:
        if handoff.state is not State.OFFERED:
            raise HandoffEndedError(handoff.id, handoff.state)
        # Nobody has asked yet. A waiver without its question would be a blank cheque.
        ask(desk, handoff.id, problem.question, error=problem.error, check=problem.check, by=by)
    body = HandoffAnswered(
        handoff=handoff.id,
        by=who,
        revision=offer.baton.revision + 1,
        taint=taint,
        waives=problem.check,
        suspect=_suspect(desk, offer, reason, (), by=who),
    )
    desk.recording.act(handoff.id, lambda _, __: body, (desk.text(ANSWER, reason),))


def _suspect(desk: Desk, offer: Offer, text: str, added: Iterable[Item], *, by: PrincipalId) -> tuple[str, ...]:
    """Return the parts of an answer that look injected, if the policy scans words of models."""
    if is_user(by) or not desk.policy_with(offer.policy).sanitize_context:
        return ()
    return find_suspect(desk, {ANSWER: text} | {place_of(item): words_in(item) for item in added})


def _require_entitled(desk: Desk, offer: Offer, by: PrincipalId) -> None:
    """Refuse a waiver by anybody but the sender, the principal of the work, and people who may approve it.

    The agent that is to do the work never waives its own question.
    """
    baton, approvers = offer.baton, desk.gates.approvers
    own = {author_of(baton.sender), baton.principal} - {author_of(baton.to)}
    if by in own:
        return
    scope = approvers.get(by)
    work = Approvable(worker=baton.to, granted=Scope(()))
    listed = not approvers or (scope is not None and may_approve(scope, work, desk.clock.now()))
    if not is_user(by) or not listed:
        raise NotEntitledError(
            baton.handoff, by, (*sorted(own), "a person who may approve it"), act="waive a problem of"
        )


def find_answer(desk: Desk, handoff: Handoff, question: str) -> tuple[Answer, tuple[Source, ...]] | None:
    """Return the answer to the same question elsewhere in the tree, and its taint; None if there is no answer.

    Questions are compared by keyed digest, so that the signed bytes do not reveal them.
    """
    asked = desk.secrets.digest(handoff.root, b"question", question.encode())
    with desk.store.view() as view:
        for stored in view.find_receipts(ReceiptQuery(root=handoff.root, kind=Kind.HANDOFF_ASKED)):
            body = decode_receipt(stored.payload).body
            if isinstance(body, HandoffAsked) and body.question == asked and body.handoff != handoff.id:
                offer = read_offer(view, view.get_handoff(body.handoff))
                # A waiver is for one handoff.
                found = [known for known in offer.baton.answers if known.question == question and not known.waives]
                if found:
                    return found[-1], offer.taint
    return None


def _enclose(
    desk: Desk, baton: Baton, enclosed: Enclosed, *, by: PrincipalId, taint: tuple[Source, ...]
) -> tuple[Item, ...]:
    """Record the enclosures of an answer as a revision, and return its items."""
    items: list[Item] = []
    contents: list[Content] = []
    for number, value in enumerate(enclosed.items, 1):
        if isinstance(value, Item):
            items.append(value)
            continue
        item, content = desk.item(value, by, number)
        items.append(item)
        contents.append(content)
    for number, (name, body) in enumerate(enclosed.files.items(), len(items) + 1):
        item, made = _file(desk, name, body, by=by, number=number)
        items.append(item)
        contents += made
    carried = {item.id for item in baton.items}
    revised = HandoffRevised(
        handoff=baton.handoff,
        by=by,
        revision=baton.revision + 1,
        drops=tuple(_replaced(baton, items)),
        carries=tuple(ref_of(item) for item in items if item.id not in carried),
        taint=tuple(dict.fromkeys((*taint, *(item.id for item in items if item.part is Part.UNTRUSTED)))),
    )
    desk.recording.act(baton.handoff, lambda _, __: revised, tuple(contents))
    return tuple(items)


def _file(
    desk: Desk, name: str, body: bytes | str, *, by: PrincipalId, number: int
) -> tuple[Item, tuple[Content, Content]]:
    require_instance("file", body, (bytes, str))
    kept = desk.body(body, "text/plain" if isinstance(body, str) else "application/octet-stream")
    kept = replace(kept, name=f"{kept.name}.{number}")  # names are unique in a receipt
    value = Artifact(
        name,
        body=kept.ref.id,
        sha256=Digest(sha256(kept.body).hexdigest()),
        size=len(kept.body),
        media_type=kept.ref.media_type,
        source=by,
    )
    item, content = desk.item(value, by, number)
    return item, (content, kept)


def _replaced(baton: Baton, items: Iterable[Item]) -> Iterable[ContentId]:
    new = {item.value.name: item.id for item in items if isinstance(item.value, Artifact)}
    for item in baton.items:
        if isinstance(item.value, Artifact) and new.get(item.value.name, item.id) != item.id:
            yield item.id


def chosen_problem(problems: Sequence[Problem], check: str | None, question: str | None) -> Problem:
    """Return the problem that somebody means: by its check, or else the one that was asked about.

    Raises `InvalidValueError` if there is none, or if several have this check.
    """
    if check is not None:
        named = [problem for problem in problems if problem.check == check]
    elif question is not None:
        named = [problem for problem in problems if problem.question == question]
    else:
        named = list(problems)
    if len(named) != 1:
        open_checks = ", ".join(dict.fromkeys(problem.check for problem in problems)) or "none"
        found = "no problem is" if not named else f"{len(named)} problems are"
        raise InvalidValueError(
            "check", f"{found} meant; the open ones are {open_checks}; see `batonpass handoff check`"
        )
    return named[0]
