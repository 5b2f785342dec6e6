"""Grants forged by somebody who holds a relay's key: the store takes what they write, and verifying finds it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import pytest

from batonpass.audit.bundle import verify_bundle
from batonpass.errors import CertificateError, TermsError, UngrantedError, VerificationError, WidenedError
from batonpass.grants.issuing import sign
from batonpass.handoff.bounds import CERTIFICATE, TERMS
from batonpass.handoff.transfer.grant_terms import kept
from batonpass.handoff.using import SCOPE
from batonpass.ledger.standing import Granted, Working
from batonpass.model.bodies import HandoffInitiated, Kind, ToolRequested
from batonpass.model.content import Content
from batonpass.model.grant import Certificate, Signed, Terms
from batonpass.model.ids import AgentId, HandoffId, PublicKey, RunId, new_call_id, new_handoff_id, new_run_id
from batonpass.model.key import Signer
from batonpass.model.lifecycle import Carrier, State
from batonpass.model.limits import Limits
from batonpass.model.receipt import Mode
from batonpass.model.scope_text import read_scope
from batonpass.relay import Relay
from batonpass.signing.ed25519 import Ed25519Signer
from batonpass.testing.clock import FrozenClock
from batonpass.testing.recording import plainly
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
            may=["read:**"],
            may_delegate=["write:src/**"],
            limits="at most 9 calls",
            until=self.clock.now() + HOUR,
        )
        self.holding = self.lead._holding
        self.desk = self.relay.desk

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

    def request(self, working: Working, scope: str | None = "write:src/a.py") -> None:
        """Record that an attempt does something to something."""
        body = ToolRequested(run=working.run.id, call=new_call_id(self.clock.now()), tool="write")
        words = () if scope is None else (self.desk.text(SCOPE, scope),)
        self.desk.recording.record(working, body, words)


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
    hand.relay.enroll(*other.identity())
    stolen = other._membership._keyring.relay()
    membership = hand.relay._membership
    known = {key.id: key for key in membership.keys()}  # noqa: SIM118 - no dictionary
    hand.relay.revoke(known[stolen.signer.key], reason="stolen")
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


def _late_permit(hand: Hand) -> None:
    """Make a call under a permit that ended before the rest of the grant."""
    working = hand.working(may=read_scope([f"write:src/a.py; until {hand.clock.now() + HOUR / 4:%Y-%m-%dT%H:%M:%SZ}"]))
    hand.clock.tick(HOUR / 2)
    hand.request(working)


def _revoked(hand: Hand) -> None:
    """Make a call a minute after the root's grant was revoked."""
    working = hand.working()
    hand.relay.revoke_grant(hand.lead.id, by=ANA, reason="no")
    hand.clock.tick(timedelta(minutes=1))
    hand.request(working)


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
    "a call after the end of its permit": (_late_permit, UngrantedError, "scope"),
    "a call after a revocation": (_revoked, UngrantedError, "at"),
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


def test_a_revocation_in_the_same_moment_is_nobodys_fault(hand: Hand) -> None:
    """A call and a revocation that commit together may stand in either order."""
    working = hand.working()
    hand.relay.revoke_grant(hand.lead.id, by=ANA, reason="no")
    hand.clock.tick(timedelta(seconds=1))
    hand.request(working)

    assert 1 == hand.relay.verify().handoffs


def test_what_was_erased_is_not_judged(hand: Hand) -> None:
    """Terms may be erased like all words: nobody can tell then what hung from them, and the erasure is on record."""
    hand.request(hand.working(may=read_scope(["write:src/b.py"])))
    with pytest.raises(UngrantedError):
        hand.relay.verify()
    (offered,) = receipts(hand.relay, Kind.HANDOFF_INITIATED)
    hand.relay.erase([offered.content[TERMS].id], by=ANA, reason="they named a customer")

    assert 1 == hand.relay.verify().erased


def test_a_grant_that_is_tried_out_refuses_nothing(places: Places) -> None:
    """Where a root says that its grant stops nobody, calls outside of it and offers beyond it are no findings."""
    relay, disk = places.relay(), Disk()
    lead = relay.start("Fix it", by=ANA, may=["read:**"], may_delegate=["write:src/**"], mode="observed")
    lead.call(disk.write, "etc/passwd", "")
    for may in (["write:src/**"], ["write:**"]):
        with lead.hand_off("editor", "Edit", may=may) as editor:
            editor.call(disk.write, "etc/passwd", "")

    assert (2, 3) == (relay.verify().handoffs, len(disk.written))
    relay.close()


def test_a_bundle_is_judged_like_the_ledger(places: Places) -> None:
    """A tree that was handed on is clean with its words, and without them, where nothing can be said of grants."""
    relay, disk = places.relay(), Disk()
    lead = relay.start("Fix it", by=ANA, may_delegate=["write:src/**"])
    with lead.hand_off("editor", "Edit", may=["write:src/**"]) as editor:
        editor.call(disk.write, "src/a.py", "")
    lead.close()
    found = [verify_bundle(list(relay.export(lead.id, with_content=kept_))) for kept_ in (True, False)]

    assert [1, 1] == [evidence.handoffs for evidence in found]
    relay.close()
