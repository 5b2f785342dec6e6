"""Receive a handoff: validate the offer before anything runs; then accept it, ask one question, or decline it.

Accepting begins an attempt. It hangs from the exact state of the handoff that was validated, so that nobody begins an
attempt on an offer that has changed since.
"""

from collections.abc import Iterator
from functools import partial
from hashlib import sha256
from itertools import islice
from typing import Final

from msgspec import Struct

from batonpass.errors import (
    ApprovalExpiredError,
    HandoffAskedError,
    HandoffDeclinedError,
    HandoffEndedError,
    HandoffHeldError,
    IllegalTransitionError,
    InvalidValueError,
    NotFoundError,
    StaleHeadError,
)
from batonpass.guard.baton.declared_format import is_declared, parse_declared
from batonpass.guard.baton.known_facts import KeptContent, KnownFacts
from batonpass.guard.baton.problem import Problem
from batonpass.guard.baton.receiver_question import NOTHING_TO_ASK, Asking, choose_question, is_settled
from batonpass.guard.baton.referential_drift import find_open_references
from batonpass.guard.baton.validation import validate_baton
from batonpass.handoff.grants.attempt_certificate import Binding, binding_of, bounds_of, read_above
from batonpass.handoff.history.holds import require_proven
from batonpass.handoff.history.lineage import read_lineage
from batonpass.handoff.history.offers import Offer, author_of, is_intact, read_offer, read_words
from batonpass.handoff.history.past_calls import NOTHING, Resumption, read_resumption
from batonpass.handoff.runtime.bounds import Bounds
from batonpass.handoff.runtime.deadlines import is_overdue
from batonpass.handoff.runtime.desk import Desk
from batonpass.handoff.runtime.run_state import Holding
from batonpass.handoff.runtime.run_taint import Taint
from batonpass.handoff.transfer.attempt_limit import attempts_allowed, count_begun
from batonpass.handoff.transfer.attempt_receipts import Acceptance, accepted, take_over
from batonpass.handoff.transfer.close import end_overdue, expire
from batonpass.handoff.transfer.question import answer, ask, find_answer
from batonpass.handoff.transfer.retry import retry
from batonpass.ledger.act_receipts import AttemptOpening, Standing
from batonpass.ledger.position import UNGRANTED, Working, anchor_of, mode_of_child
from batonpass.model.base.checks import require_text
from batonpass.model.base.content_names import MESSAGE, REASON
from batonpass.model.base.ids import ContentId, Digest, HandoffId, PrincipalId, SessionId, StreamId
from batonpass.model.base.kinds import Mode
from batonpass.model.base.lifecycle import Carrier, State
from batonpass.model.baton.items import Artifact
from batonpass.model.bodies.body import (
    Body,
    ChildHead,
    HandoffDeclined,
    Kind,
    Part,
)
from batonpass.model.grants.grant import Signed, Terms
from batonpass.model.ledger.content import Content
from batonpass.model.ledger.lease import Lease
from batonpass.model.ledger.receipt import Receipt
from batonpass.model.ledger.run import Handoff
from batonpass.model.policy.handoff_policy import HandoffPolicy
from batonpass.store.port import LedgerView, ReceiptQuery
from batonpass.wire.receipt_codec import decode_receipt


def replayed(desk: Desk, handoff: HandoffId) -> Holding:
    """Return a finished handoff as a run that only replays the record and does nothing. Raises `NotFoundError`."""
    with desk.store.view() as view:
        known = view.get_handoff(handoff)
        if known.run is None:
            raise NotFoundError("attempt at handoff", handoff)
        offer = read_offer(view, known)
        run = view.get_run(known.run)
        resumption = read_resumption(view, known)
    holding = Holding(working=Working(run=run), baton=offer.baton, resumption=resumption, replaying=True)
    holding.add(*offer.baton.items)
    return holding


_TAKEABLE: Final = frozenset({State.OFFERED, State.READY, State.CLAIMED})
_AGAIN: Final = frozenset({State.FAILED, State.DECLINED, State.REFUTED})
_DONE: Final = frozenset({State.COMPLETED, State.VERIFIED})
_MOST_REFERENCES: Final = 20
_LONGEST_NAME: Final = 255
_MOST_READ: Final = 1 << 16  # bytes of a text in which parts are looked up


class Examined(Struct, frozen=True, kw_only=True):
    """An offer, the problems that validation found in it, and the question to ask."""

    offer: Offer
    problems: tuple[Problem, ...]
    asking: Asking


def examine(desk: Desk, handoff: HandoffId) -> Examined:
    """Validate an offer and record nothing."""
    with desk.store.view() as view:
        return _examine(desk, view, handoff)


def _examine(desk: Desk, view: LedgerView, handoff: HandoffId) -> Examined:
    known = view.get_handoff(handoff)
    offer = read_offer(view, known)
    policy = desk.policy_with(offer.policy)
    facts = _facts(desk, view, offer, policy)
    hops = _hops_since_question(view, known) if policy.asks else None
    return _judged(desk, offer, facts, hops, policy)


def examine_own(desk: Desk, offer: Offer) -> Examined:
    """Validate an offer that this process has just written, without reading it back from the store."""
    baton = offer.baton
    policy = desk.policy_with(offer.policy)
    # If the ledger or the hops above are needed, it is validated like any other offer.
    # This process wrote the offer, but the answer to these depends on receipts of others.
    if policy.asks or policy.max_depth is not None or find_open_references(baton):
        return examine(desk, offer.handoff.id)
    # The same if a file was declared as something that can be parsed, because its bytes are only in the store.
    attached = baton.attached
    if attached and any(map(is_declared, attached)):
        return examine(desk, offer.handoff.id)
    contents = {}
    for artifact in attached:
        contents[artifact.body] = KeptContent(size=artifact.size, sha256=artifact.sha256, digest_ok=True)
    return _judged(desk, offer, KnownFacts(now=desk.clock.now(), contents=contents, references={}), None, policy)


def accept(
    desk: Desk,
    handoff: HandoffId,
    *,
    lease: Lease | None = None,
    parent: Holding | None = None,
    written_here: Offer | None = None,
    asks: bool = True,
    beside: tuple[Content, ...] = (),
) -> Holding:
    """Accept a handoff: its next attempt begins, and its first receipt is countersigned with the attempt's own key.

    A finished handoff is returned as a run that only replays the record. For the parent that handed it off, a failed
    one is tried again, and one whose process is gone is taken over. In another program nobody can be asked: with
    `asks=False` the attempt begins, and its receipt says that a question would have been asked.
    Raises `HandoffAskedError`, `HandoffHeldError`, `HandoffDeclinedError`, `HandoffEndedError`, and `InvalidValueError`
    if the offer was tampered with or a worker has no lease.
    """
    if written_here is not None and parent is not None and _is_open(desk, written_here.handoff):
        try:
            return _accept_own(desk, written_here, parent)
        except (StaleHeadError, IllegalTransitionError):
            pass  # somebody acted on it since: read it, and accept it like any other
    taking = _Taking(desk=desk, handoff=handoff, lease=lease, parent=parent, asks=asks, beside=beside)
    try:
        return _accept(taking)
    except ApprovalExpiredError as late:
        expire(desk, handoff, reason=str(late))
        raise
    except (StaleHeadError, IllegalTransitionError):
        # Somebody acted on it between our look and our commit. Look once more: the new state decides what happens now.
        return _accept(taking)


def _is_open(desk: Desk, written: Handoff) -> bool:
    """Return whether an offer that this process has written can be taken at once: it is not held, and in time."""
    if written.state is not State.OFFERED:
        return False
    return written.deadline is None or not is_overdue(desk, written.id, written.deadline)


class _Taking(Struct, frozen=True, kw_only=True):
    """A handoff that is about to be accepted: by whom, and how."""

    desk: Desk
    handoff: HandoffId
    lease: Lease | None = None
    parent: Holding | None = None
    asks: bool = True
    beside: tuple[Content, ...] = ()

    def stands_open(self, examined: Examined) -> bool:
        """Return whether it can be accepted at once: it is waiting, nothing is to be asked, and it is intact."""
        offer = examined.offer
        asks = self.asks and examined.asking.question is not None
        leased = self.lease is not None or offer.handoff.state is State.OFFERED
        return offer.handoff.state in _TAKEABLE and leased and not asks and not offer.tampered

    def look(self) -> tuple[Examined, "_Ground | None"]:
        """Validate the offer. If it can be accepted at once, also return its ground, read in the same view."""
        with self.desk.store.view(about=self.handoff) as view:
            examined = _examine(self.desk, view, self.handoff)
            return examined, _read_ground(self.desk, view, examined.offer) if self.stands_open(examined) else None

    def open(
        self,
        said: Acceptance,
        binding: Binding | None,
        *,
        mode: Mode,
        session: SessionId | None,
        known: Standing | None = None,
    ) -> Working:
        """Begin the attempt. Its first receipt is countersigned with a new key, to which its grant is bound."""

        def opens(opening: AttemptOpening) -> tuple[Body, tuple[Content, ...]]:
            granted = UNGRANTED if binding is None else binding(opening.run, opening.key)
            return accepted(opening, said, granted), (*self.beside, *granted.contents)

        token = None if self.lease is None else self.lease.token
        recording = self.desk.recording
        return recording.open_attempt(self.handoff, opens, mode=mode, session=session, token=token, known=known)


class _Ground(Struct, frozen=True, kw_only=True):
    """The state that an attempt builds on, read in the same view in which its offer was validated."""

    anchor: Digest  # digest of the last receipt about the handoff
    principal: PrincipalId
    offered: Receipt
    resumption: Resumption
    terms: Signed[Terms] | None
    above: Bounds
    allowed: int | None = None  # number of the last attempt that begins by itself, if its offer says so


def _read_ground(desk: Desk, view: LedgerView, offer: Offer) -> _Ground:
    # The state of a handoff is only a row in the store. So an approval that takes a key, or several people, is verified
    # here once more from its signed receipt, before anything runs.
    require_proven(view, offer.handoff, offer.initiated, desk.clock.now())
    offered = offer.offered
    if offered is None:
        raise InvalidValueError("offer", "was not read back from its receipt")
    resumption = read_resumption(view, offer.handoff)
    desk.secrets.fetch(offer.handoff.root, view)
    terms, above = read_above(view, offer, offered)
    return _Ground(
        anchor=anchor_of(view, offer.handoff),
        principal=offer.baton.principal,
        offered=offered,
        resumption=resumption,
        terms=terms,
        above=above,
        allowed=_allowed(desk, offer, view),
    )


def _accept(taking: _Taking) -> Holding:
    desk, handoff, lease, parent = taking.desk, taking.handoff, taking.lease, taking.parent
    examined, ground = taking.look()
    if examined.offer.tampered:
        raise InvalidValueError("task", "is not what was offered; run `batonpass ledger verify`")
    state = examined.offer.handoff.state
    deadline = examined.offer.handoff.deadline
    if deadline is not None and is_overdue(desk, handoff, deadline):
        end_overdue(desk, handoff)
        raise HandoffEndedError(handoff, State.EXPIRED)
    # Delivered already. Working on it again would repeat its effects, so the caller gets the record instead.
    if state in _DONE:
        return replayed(desk, handoff)
    if lease is None and state in {State.READY, State.CLAIMED}:
        # Without a lease, nobody would ever find out that the worker has died.
        raise InvalidValueError("lease", f"{handoff} waits for a worker: claim it, and take it under that lease")
    if state not in _TAKEABLE:
        # A retry or a take-over moves the handoff, so the offer is read and validated again as it is afterwards.
        _prepare(desk, examined, parent)
        examined, ground = taking.look()
    if taking.asks and (problem := examined.asking.question) is not None:
        ask(desk, handoff, problem.question, error=problem.error, check=problem.check, lease=lease)
        known = find_answer(desk, examined.offer.handoff, problem.question)
        if known is not None and is_settled(problem, (known[0],)):
            # The same question was answered elsewhere in the tree: nobody is asked twice.
            answer(desk, handoff, known[0].answer, by=known[0].by, taint=known[1])
            if lease is None:
                return accept(desk, handoff, parent=parent)
        # The question has ended the lease. Once it is answered, the handoff waits for a worker again.
        again = any(known.question == problem.question for known in examined.offer.baton.answers)
        raise HandoffAskedError(handoff, problem.question, again=again)
    if ground is None:
        raise StaleHeadError(handoff, 0)  # somebody acted on it again
    return _take(taking, examined, ground)


def _take(taking: _Taking, examined: Examined, ground: _Ground) -> Holding:
    desk, handoff, lease, parent = taking.desk, taking.handoff, taking.lease, taking.parent
    offer, resumption = examined.offer, ground.resumption
    taint = taint_of(offer, resumption, parent)
    # `known` carries the anchor that we validated. If anything happened to the handoff since, the commit refuses this,
    # and `accept` looks again. So two receivers can never both begin the same attempt.
    working = taking.open(
        _said(examined, desk.gates.digest, taint),
        binding_of(desk, offer, ground.terms, lease, ground.above),
        mode=mode_of_child(ground.offered),
        session=ground.offered.session,
        known=(offer.handoff, ground.anchor, ground.principal),
    )
    if parent is not None:
        parent.begun.add(working.run.id)
    holding = Holding(
        working=working,
        baton=offer.baton,
        resumption=resumption,
        lease=lease,
        resumed=working.run.attempt > 1,
        taint=taint,
        bounds=bounds_of(ground.above, offer, working, ground.terms),
        own_policy=offer.policy,
    )
    holding.add(*offer.baton.items)
    # The children of an earlier attempt go on. The new attempt answers for them: its close lists them, or withdraws
    # them.
    holding.handed_off.update(child.id for child in resumption.children)
    holding.attempts_allowed = ground.allowed
    if lease is not None:
        desk.leased[handoff] = holding
    return holding


def _accept_own(desk: Desk, offer: Offer, parent: Holding) -> Holding:
    """Accept an offer that this process has just written, without reading anything.

    Raises `StaleHeadError` or `IllegalTransitionError` if something has happened to it since.
    """
    # This process wrote the offer a moment ago, so it need not be read. We do not assume that nothing has happened to
    # it since: the acceptance hangs from `handoff.initiated`, and the commit refuses it if the handoff has a stream by
    # now.
    examined = examine_own(desk, offer)
    if examined.asking.question is not None:
        raise StaleHeadError(offer.handoff.id, 0)
    taint = taint_of(offer, NOTHING, parent)
    working = _Taking(desk=desk, handoff=offer.handoff.id).open(
        _said(examined, desk.gates.digest, taint),
        binding_of(desk, offer, offer.terms, None, parent.bounds, seen=parent.latest),
        mode=parent.working.mode if offer.terms is None or parent.bounds.tried_out else Mode.ENFORCED,
        session=parent.working.session,
        known=(offer.handoff, offer.handoff.initiated, parent.principal),
    )
    parent.begun.add(working.run.id)
    bounds = bounds_of(parent.bounds, offer, working, offer.terms)
    holding = Holding(
        working=working,
        baton=offer.baton,
        taint=taint,
        bounds=bounds,
        latest=parent.latest,
        stated=parent.stated,
        refutations=parent.refutations,
        attempts_allowed=_allowed(desk, offer),
        own_policy=offer.policy,
    )
    holding.add(*offer.baton.items)
    return holding


def _allowed(desk: Desk, offer: Offer, view: LedgerView | None = None) -> int | None:
    """Return the number of the last attempt that begins by itself, if the offer has a retry rule."""
    if offer.initiated.retries is None:
        return None
    stopped = 0 if view is None else offer.handoff.attempt - count_begun(view, offer.handoff)
    return attempts_allowed(offer.initiated, desk.policy_with(offer.policy).attempts) + stopped


def taint_of(offer: Offer, past: Resumption, parent: Holding | None = None) -> Taint:
    """Return the taint that an attempt begins with: that of the offer, and that of the attempts before it."""
    endorsed = {*offer.endorsed, *past.endorsed}
    if offer.initiated.label is not None and offer.handoff.parent not in offer.taint:
        # It travels in quarantine, and the offer does not list it as taint: somebody had endorsed it for the sender.
        # It stays endorsed here, so that it cannot taint the receiver by another way either. We cannot conclude this if
        # the sender's run stands for all its sources, because then the list does not name every one.
        for item in offer.baton.items:
            if item.part is Part.UNTRUSTED and item.id not in offer.taint:
                endorsed.add(item.id)
    taint = Taint(endorsed=endorsed)
    taint.learn(offer.initiated.label)
    taint.enter(offer.taint, offer.receipt)
    for source, receipt in past.taint.items():
        taint.enter((source,), receipt)
    # Their texts are read when a call is compared with them, and not here: an attempt may end without one.
    taint.unread.update(taint.entered)
    if parent is not None:
        taint.passages.update(parent.taint.passages)
    return taint


def _said(examined: Examined, policy: Digest | None, taint: Taint) -> Acceptance:
    return Acceptance(
        baton=examined.offer.revision,
        problems=tuple(dict.fromkeys([problem.check for problem in examined.problems])) if examined.problems else (),
        would_ask=(examined.asking.would_ask or examined.asking.question) is not None,
        policy=policy,
        label=taint.label,
    )


def _judged(desk: Desk, offer: Offer, facts: KnownFacts, hops: int | None, policy: HandoffPolicy) -> Examined:
    baton = offer.baton
    problems = validate_baton(baton, known=facts, policy=policy, card=desk.cards.get(baton.to))
    if not problems:
        return Examined(offer=offer, problems=(), asking=NOTHING_TO_ASK)
    asking = choose_question(
        problems,
        policy=policy,
        asked_here=len(offer.asked),
        hops_since_question=hops,
        answers=baton.answers,
    )
    return Examined(offer=offer, problems=problems, asking=asking)


def decline(
    desk: Desk,
    handoff: HandoffId,
    reason: str,
    *,
    code: str = "declined",
    by: str | None = None,
    lease: Lease | None = None,
) -> None:
    """Decline a handoff, with a reason."""
    require_text("reason", reason)

    def declined(known: Handoff, _: ChildHead | None) -> Body:
        return HandoffDeclined(handoff=handoff, by=PrincipalId(by) if by else author_of(known.to), code=code)

    desk.recording.act(handoff, declined, (desk.text(REASON, reason),), token=None if lease is None else lease.token)


def why_declined(desk: Desk, handoff: HandoffId) -> str:
    """Return the reason of the last decline of a handoff; empty if there is none."""
    with desk.store.view() as view:
        found = view.find_receipts(ReceiptQuery(stream=StreamId(handoff), kind=Kind.HANDOFF_DECLINED))
        reasons = [read_words(view, decode_receipt(stored.payload).content.get("reason")) for stored in found]
    return reasons[-1] if reasons else ""


def _prepare(desk: Desk, examined: Examined, parent: Holding | None) -> None:
    """Make a handoff acceptable again: retry it or take it over, if the caller is the run that handed it off.

    Raises `HandoffHeldError`, `HandoffAskedError`, `HandoffDeclinedError` and `HandoffEndedError`.
    """
    handoff = examined.offer.handoff
    caller = author_of(parent.agent) if parent is not None else None
    if handoff.state is State.HELD:
        raise HandoffHeldError(handoff.id)
    if handoff.state is State.ASKED:
        raise HandoffAskedError(handoff.id, examined.offer.open_question or "")
    # Only the run that handed it off may begin another attempt here. If workers carry it, the end of a lease shows that
    # a worker died, and the sweep makes it ready again.
    ours = caller is not None and handoff.carrier is Carrier.CALLER
    if ours and handoff.state in _AGAIN:
        retry(desk, handoff.id, by=str(caller), reason="its caller asks for it again")
    elif ours and _is_left_behind(handoff, parent):
        words = (desk.text(MESSAGE, "the process that worked on it is gone"),)
        take_over(desk.recording, handoff.id, words, by=str(caller))
    elif handoff.state is State.DECLINED:
        raise HandoffDeclinedError(handoff.id, why_declined(desk, handoff.id))
    else:
        raise HandoffEndedError(handoff.id, handoff.state)


def _is_left_behind(handoff: Handoff, parent: Holding | None) -> bool:
    """Return whether the process of a running attempt is gone: its parent was resumed, and did not begin it here."""
    return parent is not None and parent.resumed and handoff.state is State.RUNNING and handoff.run not in parent.begun


def _facts(desk: Desk, view: LedgerView, offer: Offer, policy: HandoffPolicy) -> KnownFacts:
    baton = offer.baton
    references = find_open_references(baton)
    return KnownFacts(
        now=desk.clock.now(),
        depth=0 if policy.max_depth is None else read_lineage(view, view.get_run(offer.handoff.parent)).depth,
        contents=dict(_kept(view, offer, [*baton.artifacts, *baton.untrusted])),
        resolves=frozenset(
            reference for reference in islice(references, _MOST_REFERENCES) if _resolves(view, reference)
        ),
        references=references,
        files=frozenset(filter(partial(_is_file, desk), [answer.answer.strip() for answer in baton.answers])),
    )


def _is_file(desk: Desk, name: str) -> bool:
    """Return whether an answer is the name of a file in the work tree."""
    if not name or len(name) > _LONGEST_NAME or "\0" in name:
        return False
    path = (desk.work_tree / name).resolve()
    return path.is_relative_to(desk.work_tree.resolve()) and path.is_file()


def _kept(view: LedgerView, offer: Offer, artifacts: list[Artifact]) -> Iterator[tuple[ContentId, KeptContent]]:
    # One after the other: an artifact may have megabytes, so only one is in memory at a time.
    for artifact in artifacts:
        try:
            stored = view.get_content(artifact.body)
        except NotFoundError:
            continue
        if stored.body is None or stored.salt is None or stored.receipt is None:
            continue
        refs = decode_receipt(view.get_receipt(stored.receipt).payload).content.values()
        declared = next((ref.digest for ref in refs if ref.id == artifact.body), None)
        yield (
            artifact.body,
            _looked_at(artifact, stored.body, digest_ok=declared is not None and is_intact(stored, declared)),
        )
    for item in offer.baton.items:
        if item.id in offer.broken:
            stored = view.get_content(item.id)
            body = stored.body or b""
            yield item.id, KeptContent(size=len(body), sha256=Digest(sha256(body).hexdigest()), digest_ok=False)


def _looked_at(artifact: Artifact, body: bytes, *, digest_ok: bool) -> KeptContent:
    parsed = parse_declared(artifact, body)
    text = None
    if len(body) <= _MOST_READ and b"\0" not in body:
        try:
            text = body.decode()
        except UnicodeDecodeError:
            text = None
    return KeptContent(
        size=len(body),
        sha256=Digest(sha256(body).hexdigest()),
        digest_ok=digest_ok,
        fault=parsed.fault,
        rows=parsed.rows,
        text=text,
    )


def _resolves(view: LedgerView, reference: str) -> bool:
    prefix, _, ending = reference.partition(":")
    return (
        prefix in {"run", "handoff", "receipt"} and next(iter(view.find_ids(prefix, ending.lower())), None) is not None
    )


def _hops_since_question(view: LedgerView, handoff: Handoff) -> int | None:
    """Return how many hops above this one the last question was asked; None if there was none."""
    hops, run = 1, view.get_run(handoff.parent)
    while run.handoff is not None and run.parent is not None:
        asked = view.find_receipts(ReceiptQuery(stream=StreamId(run.handoff), kind=Kind.HANDOFF_ASKED))
        if next(iter(asked), None) is not None:
            return hops
        hops, run = hops + 1, view.get_run(run.parent)
    return None
