"""Grants forged by somebody who holds a relay's key: the store takes what they write, and verifying finds it."""

import json
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import pytest
from msgspec.structs import replace

from batonpass import Grant
from batonpass.audit.bundle import verify_bundle
from batonpass.errors import (
    CertificateError,
    OverLimitError,
    TermsError,
    UncountedError,
    UngrantedError,
    VerificationError,
    WidenedError,
)
from batonpass.grants.issuer import sign
from batonpass.guard.grants.limit_accounts import permit_account
from batonpass.guard.grants.recorded_call import JUDGED
from batonpass.handoff.grants.terms import kept
from batonpass.ledger.position import Granted, Working
from batonpass.model.base.content_names import CERTIFICATE, SCOPE, TERMS
from batonpass.model.base.ids import (
    AgentId,
    CallId,
    HandoffId,
    PublicKey,
    RunId,
    StreamId,
    new_call_id,
    new_handoff_id,
    new_run_id,
)
from batonpass.model.base.kinds import Mode
from batonpass.model.base.lifecycle import Carrier, State
from batonpass.model.bodies.body import HandoffInitiated, Kind, ToolCompleted, ToolRequested
from batonpass.model.grants.charge import MILLION, Charge, Unit
from batonpass.model.grants.grant import Certificate, Signed, Terms
from batonpass.model.grants.limits import Limits
from batonpass.model.grants.scope_text import read_scope
from batonpass.model.ledger.content import Content
from batonpass.model.ledger.key import Signer
from batonpass.relay import Relay, desk_of
from batonpass.signing.ed25519 import Ed25519Signer
from batonpass.testing.clock import FrozenClock
from batonpass.testing.plain_acts import plainly
from tests.unit.handoff.places import ANA, STORES, Disk, Places, places_at, receipts

HOUR: Final = timedelta(hours=1)
EDITOR: Final = AgentId("editor")


@dataclass
class Hand:
    """Somebody who has the relay's key and writes what they please; all else is as an honest relay has it."""

    relay: Relay
    clock: FrozenClock

    def __post_init__(self) -> None:
        self.lead = self.relay.start(
            "Fix it",
            by=ANA,
            grant=Grant(
                may=["read:**"], may_delegate=["write:src/**"], limits="at most 9 calls", until=self.clock.now() + HOUR
            ),
        )
        self.holding = self.lead._holding
        self.desk = desk_of(self.relay)

    @property
    def signer(self) -> Signer:
        """Return the relay's key."""
        return self.desk.issuer._signer

    def terms(self, handoff: HandoffId, *, by: Signer | None = None, **changed: Any) -> Signed[Terms]:  # noqa: ANN401 - any field
        """Return terms for the editor that an honest relay would have signed, but for what is changed."""
        signer = by or self.signer
        above = self.holding.bounds.chain[-1]
        good = Terms(
            may=read_scope(["write:src/a.py"]),
            limits=above.said.limits,
            until=above.said.until,
            agent=EDITOR,
            principal=self.holding.principal,
            root=self.holding.root,
            at=self.clock.now(),
            key=signer.key,
            handoff=handoff,
            run=self.holding.id,
            parent=above.digest,
        )
        return sign(replace(good, **changed), signer)

    def offer(self, handoff: HandoffId, terms: Signed[Terms] | None, *, shown: Signed[Terms] | None = None) -> None:
        """Offer something under these terms, keeping others beside the receipt if they are given."""
        body = HandoffInitiated(
            handoff=handoff,
            run=self.holding.id,
            to=EDITOR,
            carrier=Carrier.CALLER,
            state=State.OFFERED,
            terms=None if terms is None else terms.digest,
        )
        beside = shown or terms
        words = [self.desk.text("task", "Edit")]
        self.record(body, *words, *(() if beside is None else (kept(self.desk, TERMS, beside),)))

    def record(self, body: Any, *contents: Content) -> None:  # noqa: ANN401 - any body
        """Write into the lead's stream."""
        self.desk.recording.record(self.holding.working, body, contents)

    def accept(
        self,
        handoff: HandoffId,
        granted: Signed[Terms],
        /,
        *,
        mode: Mode = Mode.ENFORCED,
        by: Signer | None = None,
        without: bool = False,
        **changed: Any,  # noqa: ANN401 - any field of the certificate
    ) -> Working:
        """Take an offer, with a certificate of which something is changed."""
        signer = by or self.signer

        def bind(run: RunId, run_key: PublicKey) -> Granted:
            good = Certificate(
                terms=granted.digest,
                run=run,
                attempt=1,
                epoch=1,
                run_key=run_key,
                valid_from=self.clock.now(),
                valid_until=self.clock.now() + HOUR,
                key=signer.key,
            )
            made = sign(replace(good, **changed), signer)
            return Granted(certificate=made.digest, contents=(kept(self.desk, CERTIFICATE, made),))

        return plainly(self.desk.recording).accept(handoff, mode=mode, granting=None if without else bind)

    def given(self, **changed: Any) -> tuple[HandoffId, Signed[Terms]]:  # noqa: ANN401 - any field
        """Offer something under terms of which something is changed."""
        handoff = new_handoff_id(self.clock.now())
        terms = self.terms(handoff, **changed)
        self.offer(handoff, terms)
        return handoff, terms

    def working(self, **changed: Any) -> Working:  # noqa: ANN401 - any field
        """Return an honest attempt under terms of which something is changed."""
        return self.accept(*self.given(**changed))

    def counts(self, working: Working, *more: Charge) -> tuple[Charge, ...]:
        """Return what an honest call charges: one call of the root's nine, and of the handoff's."""
        accounts = (StreamId(self.holding.id), StreamId(working.run.handoff or ""))
        return (*(Charge(account=account, unit=Unit.CALLS, amount=1) for account in accounts), *more)

    def request(
        self,
        working: Working,
        scope: str | None = "write:src/a.py",
        *,
        charges: tuple[Charge, ...] | None = None,
        judged: object = None,
        arguments: object = None,
    ) -> CallId:
        """Record that an attempt does something to something."""
        body = ToolRequested(
            run=working.run.id,
            call=new_call_id(self.clock.now()),
            tool="write",
            charges=self.counts(working) if charges is None else charges,
        )
        words: tuple[Content, ...] = () if scope is None else (self.desk.text(SCOPE, scope),)
        if judged is not None:
            words += (self.desk.json(JUDGED, json.dumps(judged).encode()),)
        if arguments is not None:
            words += (self.desk.json("arguments", json.dumps({"arguments": arguments}).encode()),)
        self.desk.recording.record(working, body, words)
        return body.call

    def complete(self, working: Working, call: CallId, *charges: Charge, cost: int = 0) -> None:
        """Record how a call ended, and what it used up."""
        done = ToolCompleted(run=working.run.id, call=call, charges=charges, cost=cost)
        self.desk.recording.record(working, done, ())


@pytest.fixture(params=STORES[:1])
def places(request: pytest.FixtureRequest, tmp_path: Path) -> Places:
    """Return a ledger that is not verified in the end: the tests do that."""
    return places_at(request, tmp_path)


@pytest.fixture
def hand(places: Places) -> Iterator[Hand]:
    """Return somebody with the relay's key."""
    clock = FrozenClock()
    relay = places.relay(clock=clock)
    yield Hand(relay, clock)
    relay.close()


def _resigned_parent(hand: Hand) -> None:
    """Widen the parent's terms, sign them again, and hang a child from those."""
    above = hand.holding.bounds.chain[-1]
    wide = sign(replace(above.said, may_delegate=read_scope(["write:**"])), hand.signer)
    hand.given(parent=wide.digest, may=read_scope(["write:etc/passwd"]))


def _swapped(hand: Hand) -> None:
    """Give one handoff the terms of another."""
    one, other = (new_handoff_id(hand.clock.now()) for _ in range(2))
    hand.offer(one, hand.terms(other))


def _exchanged(hand: Hand) -> None:
    """Keep other terms beside the receipt than those that it names."""
    handoff = new_handoff_id(hand.clock.now())
    hand.offer(handoff, hand.terms(handoff), shown=hand.terms(handoff, may=read_scope(["write:src/b.py"])))


def _dropped(hand: Hand) -> None:
    """Hand off without terms."""
    hand.offer(new_handoff_id(hand.clock.now()), None)


def _kept_none(hand: Hand) -> None:
    """Name terms and keep none."""
    handoff = new_handoff_id(hand.clock.now())
    body = HandoffInitiated(
        handoff=handoff,
        run=hand.holding.id,
        to=EDITOR,
        carrier=Carrier.CALLER,
        state=State.OFFERED,
        terms=hand.terms(handoff).digest,
    )
    hand.record(body, hand.desk.text("task", "Edit"))


def _revoked_relay(hand: Hand) -> None:
    """Sign terms with a key of another relay that was revoked before."""
    other = Relay(hand.relay.store, clock=hand.clock)
    hand.relay.admin.enroll(*other.admin.identity())
    stolen = other._membership._keyring.relay()
    membership = hand.relay._membership
    known = {key.id: key for key in membership.keys()}  # noqa: SIM118 - no dictionary
    hand.relay.admin.revoke(known[stolen.signer.key], reason="stolen")
    hand.given(by=stolen.signer)


def _bad_signature(hand: Hand) -> None:
    """Keep terms with a signature that is another's."""
    handoff = new_handoff_id(hand.clock.now())
    good = hand.terms(handoff)
    hand.offer(handoff, replace(good, signature=hand.terms(handoff, may=read_scope(["read:a"])).signature))


def _observed(hand: Hand) -> None:
    """Say of a run with a grant that it is only watched."""
    hand.accept(*hand.given(), mode=Mode.OBSERVED)


def _observed_request(hand: Hand) -> None:
    """Say so of one of its calls."""
    hand.request(replace(hand.working(), mode=Mode.OBSERVED))


def _late(hand: Hand) -> None:
    """Make a call an hour after the grant has ended."""
    working = hand.working()
    hand.clock.tick(2 * HOUR)
    hand.request(working)


def _late_below(hand: Hand) -> None:
    """Make a call under terms that ended before those of the root."""
    working = hand.working(until=hand.clock.now() + HOUR / 4)
    hand.clock.tick(HOUR / 2)
    hand.request(working)


def _late_permit(hand: Hand) -> None:
    """Make a call under a permit that ended before the rest of the grant."""
    working = hand.working(may=read_scope([f"write:src/a.py; until {hand.clock.now() + HOUR / 4:%Y-%m-%dT%H:%M:%SZ}"]))
    hand.clock.tick(HOUR / 2)
    hand.request(working)


def _in_time(hand: Hand) -> None:
    """Make a call under a permit that has not ended yet."""
    hand.request(
        hand.working(may=read_scope([f"write:src/a.py; until {hand.clock.now() + HOUR / 4:%Y-%m-%dT%H:%M:%SZ}"]))
    )


def _revoked(hand: Hand) -> None:
    """Make a call a minute after the root's grant was revoked."""
    working = hand.working()
    hand.relay.revoke_grant(hand.lead.id, by=ANA, reason="no")
    hand.clock.tick(timedelta(minutes=1))
    hand.request(working)


def _revoked_by_itself(hand: Hand) -> None:
    """Make a call in the very moment in which the same relay has revoked the root's grant."""
    working = hand.working()
    hand.relay.revoke_grant(hand.lead.id, by=ANA, reason="no")
    hand.request(working)


def _ten_calls(hand: Hand) -> None:
    """Make ten calls where nine may be made, each of them counted."""
    working = hand.working()
    for _ in range(10):
        hand.request(working)


def _two_children(hand: Hand) -> None:
    """Let two children make five calls each, where they share the nine of their root."""
    for working in (hand.working(), hand.working()):
        for _ in range(5):
            hand.request(working)


def _uncounted(hand: Hand) -> None:
    """Make a call that is counted nowhere."""
    hand.request(hand.working(), charges=())


def _counted_below(hand: Hand) -> None:
    """Make a call that is counted for the handoff, and not for the root above it."""
    working = hand.working()
    hand.request(working, charges=hand.counts(working)[1:])


def _counted_elsewhere(hand: Hand) -> None:
    """Make a call that is counted for a sibling."""
    working, other = hand.working(), hand.working()
    hand.request(working, charges=hand.counts(other))


def _of_a_permit(hand: Hand, calls: int) -> None:
    scope = read_scope(["write:src/a.py; at most 2 calls"])
    working = hand.working(may=scope)
    part = permit_account(StreamId(working.run.handoff or ""), scope.permits[0])
    for _ in range(calls):
        hand.request(
            working,
            charges=hand.counts(working, Charge(account=part, unit=Unit.CALLS, amount=1)) if calls > 1 else None,
        )


def _given_back(hand: Hand) -> None:
    """Count a call, and take that back when it is over."""
    working = hand.working()
    call = hand.request(working)
    hand.complete(working, call, Charge(account=StreamId(hand.holding.id), unit=Unit.CALLS, amount=-1))


def _spend(hand: Hand, *costs: int, charged: bool = True) -> None:
    """Make calls of which each costs so much, where five may be spent by the handoff."""
    working = hand.working(limits=Limits(calls=9, spend="5"))
    account = StreamId(working.run.handoff or "")
    for cost in costs:
        charge = Charge(account=account, unit=Unit.SPEND, amount=cost * MILLION)
        hand.complete(working, hand.request(working), *((charge,) if charged else ()), cost=cost * MILLION)


def _conditioned(judged: object, arguments: object = None) -> Callable[[Hand], object]:
    """Return somebody who makes a call with these arguments, where a hundred is the most."""
    may = read_scope(["write:src/a.py where amount <= 100"])
    return lambda hand: hand.request(hand.working(may=may), judged=judged, arguments=arguments)


def terms(**changed: Any) -> Callable[[Hand], object]:  # noqa: ANN401 - any field
    """Return somebody who offers under terms of which something is changed."""
    return lambda hand: hand.given(**{name: made(hand) if callable(made) else made for name, made in changed.items()})


def certificate(**changed: Any) -> Callable[[Hand], object]:  # noqa: ANN401 - any field
    """Return somebody who takes an offer with a certificate of which something is changed."""
    return lambda hand: hand.accept(
        *hand.given(), **{name: made(hand) if callable(made) else made for name, made in changed.items()}
    )


def request(scope: str | None, **changed: Any) -> Callable[[Hand], object]:  # noqa: ANN401 - any field
    """Return somebody who does something under terms of which something is changed."""
    return lambda hand: hand.request(hand.working(**changed), scope)


STRANGER: Final = Ed25519Signer.generate()
FORGERIES: Final[dict[str, tuple[Callable[[Hand], object], type[VerificationError], str]]] = {
    "the parent's terms, signed again": (_resigned_parent, TermsError, "parent"),
    "no parent": (terms(parent=None), TermsError, "parent"),
    "terms of another handoff": (_swapped, TermsError, "handoff"),
    "terms of another agent": (terms(agent=AgentId("helper")), TermsError, "agent"),
    "terms of another tree": (terms(root=lambda hand: new_run_id(hand.clock.now())), TermsError, "root"),
    "terms of another run": (terms(run=lambda hand: new_run_id(hand.clock.now())), TermsError, "run"),
    "terms of another principal": (terms(principal="user:eve"), TermsError, "principal"),
    "other terms than are named": (_exchanged, TermsError, "terms"),
    "terms that are named and not kept": (_kept_none, TermsError, "terms"),
    "no terms": (_dropped, TermsError, "terms"),
    "a key that nobody enrolled": (terms(by=STRANGER), TermsError, "terms"),
    "a key that was revoked": (_revoked_relay, TermsError, "terms"),
    "a signature of something else": (_bad_signature, TermsError, "terms"),
    "a run that is said to be watched": (_observed, TermsError, "mode"),
    "more to use": (terms(may=read_scope(["write:**"])), WidenedError, "terms"),
    "more to delegate": (terms(may_delegate=read_scope(["read:**"])), WidenedError, "terms"),
    "more calls": (terms(limits=Limits(calls=10)), WidenedError, "terms"),
    "no end": (terms(until=None), WidenedError, "terms"),
    "no certificate": (certificate(without=True), CertificateError, "certificate"),
    "a certificate for another key": (certificate(run_key=STRANGER.public_key), CertificateError, "run_key"),
    "a certificate for another run": (
        certificate(run=lambda hand: new_run_id(hand.clock.now())),
        CertificateError,
        "run",
    ),
    "a certificate for another attempt": (certificate(attempt=2), CertificateError, "attempt"),
    "a certificate for other terms": (certificate(terms="ab" * 32), CertificateError, "terms"),
    "a certificate by nobody": (certificate(by=STRANGER), CertificateError, "certificate"),
    "a call outside of what it may": (request("write:src/b.py"), UngrantedError, "scope"),
    "a call that nobody can grant": (request("write:src/../a.py"), UngrantedError, "scope"),
    "a call that says nothing": (request(None), UngrantedError, "scope"),
    "a call that is said to be watched": (_observed_request, UngrantedError, "mode"),
    "a call after the end": (_late, UngrantedError, "at"),
    "a call after the end of its own terms": (_late_below, UngrantedError, "at"),
    "a call after the end of its permit": (_late_permit, UngrantedError, "scope"),
    "a call after a revocation": (_revoked, UngrantedError, "at"),
    "a call after its own relay revoked it": (_revoked_by_itself, UngrantedError, "at"),
    "more calls than there are": (_ten_calls, OverLimitError, "charges"),
    "more calls than two share": (_two_children, OverLimitError, "charges"),
    "a call that is not counted": (_uncounted, UncountedError, "charges"),
    "a call that is not counted above": (_counted_below, UncountedError, "charges"),
    "a call that is counted elsewhere": (_counted_elsewhere, UncountedError, "charges"),
    "a call that is not counted by its permit": (lambda hand: _of_a_permit(hand, 1), UncountedError, "charges"),
    "more calls than its permit has": (lambda hand: _of_a_permit(hand, 3), OverLimitError, "charges"),
    "a call that is taken back": (_given_back, OverLimitError, "charges"),
    "a call when all is spent": (lambda hand: _spend(hand, 2, 3, 1), OverLimitError, "charges"),
    "a cost that is not charged": (lambda hand: _spend(hand, 2, charged=False), UncountedError, "charges"),
    "arguments beyond a condition": (_conditioned({"amount": 101}), UngrantedError, "arguments"),
    "arguments of another type": (_conditioned({"amount": [1, "many"]}), UngrantedError, "arguments"),
    "an argument that is not there": (_conditioned({}), UngrantedError, "arguments"),
    "arguments that nobody judged": (_conditioned(None, {"amount": 1}), UngrantedError, "arguments"),
    "other arguments than were judged": (_conditioned({"amount": 1}, {"amount": 500}), UngrantedError, "arguments"),
}


@pytest.mark.parametrize("forged", FORGERIES)
def test_what_is_forged_is_found(hand: Hand, forged: str) -> None:
    """Each finding has its code, and the field that tells where."""
    require_found(hand, forged)


@pytest.mark.parametrize("places", STORES[1:], indirect=True)
@pytest.mark.parametrize(
    "forged", ["no terms", "more to use", "a certificate for another key", "a call after a revocation"]
)
def test_every_store_gives_the_same_answer(hand: Hand, forged: str) -> None:
    """One forgery of each kind, in a file and on a server."""
    require_found(hand, forged)


def require_found(hand: Hand, forged: str) -> None:
    """Forge something, and let it be found for what it is."""
    forge, finding, field = FORGERIES[forged]
    forge(hand)
    with pytest.raises(finding) as found:
        hand.relay.verify()

    assert (finding, field) == (type(found.value), found.value.field)


def test_what_is_as_it_was_granted_is_taken(hand: Hand) -> None:
    """The forger who changes nothing is not found: whatever is found above is found for what was changed."""
    working = hand.working()
    hand.request(working)
    hand.relay.revoke_grant(hand.lead.id, by=ANA, reason="no")

    assert 1 == hand.relay.verify().handoffs


@pytest.mark.parametrize(("later", "found"), [(1, False), (30, False), (31, True)])
def test_two_relays_have_two_clocks(hand: Hand, later: int, found: bool) -> None:  # noqa: FBT001 - a table
    """A call by one relay and a revocation by another may stand in either order, if they are of one moment."""
    working = hand.working()
    other = Relay(hand.relay.store, clock=hand.clock)
    hand.relay.admin.enroll(*other.admin.identity())
    other.revoke_grant(hand.lead.id, by=ANA, reason="no")
    hand.clock.tick(timedelta(seconds=later))
    hand.request(working)

    with pytest.raises(UngrantedError) if found else nullcontext():
        hand.relay.verify()


@pytest.mark.parametrize(
    "honest",
    [
        lambda hand: [hand.request(working) for working in [hand.working()] for _ in range(9)],
        lambda hand: _of_a_permit(hand, 2),
        lambda hand: _spend(hand, 2, 2, 5),
        _in_time,
        _conditioned({"amount": 100}, {"amount": 100}),
        _conditioned({"amount": [1, 2]}, {"amount": [1, 2]}),
    ],
    ids=["nine calls of nine", "two of a permit's two", "the last that goes beyond", "in time", "a hundred", "a list"],
)
def test_all_that_is_given_may_be_used(hand: Hand, honest: Callable[[Hand], object]) -> None:
    """Up to the limit itself, and by a call that begins while something is left, nothing is found."""
    honest(hand)

    assert 0 == hand.relay.verify().unjudged


@pytest.mark.parametrize(
    ("judged", "erase"), [({"amount": "[redacted]"}, False), ({"amount": 500}, True)], ids=["redacted", "erased"]
)
def test_arguments_that_are_gone_are_not_guessed(hand: Hand, judged: object, erase: bool) -> None:  # noqa: FBT001 - a table
    """What was redacted or erased is no finding, and the evidence says that it was not judged."""
    _conditioned(judged)(hand)
    if erase:
        (asked,) = receipts(hand.relay, Kind.TOOL_REQUESTED)
        hand.relay.admin.erase([asked.content[JUDGED].id], by=ANA, reason="it named a customer")

    assert 1 == hand.relay.verify().unjudged


def test_honest_calls_say_with_which_arguments_they_were_judged(places: Places) -> None:
    """A path is judged as where it leads, wherever it was written from; what no permit asks for is left out."""
    relay, disk = places.relay(), Disk()
    lead = relay.start(
        "Fix it",
        by=ANA,
        grant=Grant(may=["write:src/** where path under src; at most 3 calls"], limits="at most 5 calls"),
    )
    lead.call(disk.write, "src/./a.py", "words")
    (asked,) = receipts(relay, Kind.TOOL_REQUESTED)

    assert {"path": "src/a.py"} == json.loads(relay.read(asked.content[JUDGED].id))
    assert 0 == relay.verify().unjudged
    relay.close()


def test_what_was_erased_is_not_judged(hand: Hand) -> None:
    """Terms may be erased like all words: nobody can tell then what hung from them, and the erasure is on record."""
    hand.request(hand.working(may=read_scope(["write:src/b.py"])))
    with pytest.raises(UngrantedError):
        hand.relay.verify()
    (offered,) = receipts(hand.relay, Kind.HANDOFF_INITIATED)
    hand.relay.admin.erase([offered.content[TERMS].id], by=ANA, reason="they named a customer")

    assert 1 == hand.relay.verify().erased


def test_a_grant_that_is_tried_out_refuses_nothing(places: Places) -> None:
    """Where a root says that its grant stops nobody, calls outside of it and offers beyond it are no findings."""
    relay, disk = places.relay(), Disk()
    lead = relay.start("Fix it", by=ANA, grant=Grant(may=["read:**"], may_delegate=["write:src/**"]), mode="observed")
    lead.call(disk.write, "etc/passwd", "")
    for may in (["write:src/**"], ["write:**"]):
        with lead.hand_off("editor", "Edit", may=may) as editor:
            editor.call(disk.write, "etc/passwd", "")

    assert (2, 3) == (relay.verify().handoffs, len(disk.written))
    relay.close()


def test_a_bundle_is_judged_like_the_ledger(places: Places) -> None:
    """A tree that was handed on is clean with its words, and without them, where nothing can be said of grants."""
    relay, disk = places.relay(), Disk()
    lead = relay.start("Fix it", by=ANA, grant=Grant(may_delegate=["write:src/**"]))
    with lead.hand_off("editor", "Edit", may=["write:src/**"]) as editor:
        editor.call(disk.write, "src/a.py", "")
    lead.close()
    found = [verify_bundle(list(relay.admin.export(lead.id, with_content=kept_))) for kept_ in (True, False)]

    assert [1, 1] == [evidence.handoffs for evidence in found]
    relay.close()
