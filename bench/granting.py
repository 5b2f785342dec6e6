"""Grants: narrowing one, and verifying a chain of five, against bare signature checks and against peers."""

import gc
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from nacl.bindings import crypto_sign_open

from batonpass.clock import SystemClock
from batonpass.grants.issuer import Issuer, enrol, prove
from batonpass.grants.verifier import Verifier
from batonpass.guard.grants.authority import authorise
from batonpass.guard.grants.narrower_terms import narrow
from batonpass.model.base.ids import AgentId, PrincipalId, new_handoff_id, new_ledger_id, new_relay_id, new_run_id
from batonpass.model.grants.call import Call
from batonpass.model.grants.grant import Chain, Grant, Proof, Signed
from batonpass.model.grants.scope_text import read_scope
from batonpass.signing.ed25519 import Ed25519Signer
from batonpass.wire.grant_statements import signing_bytes
from batonpass.wire.token import encode_chain, encode_proof, join_token
from bench.effort import Effort
from bench.measure import Act, Elsewhere, time_in_turns
from bench.peering import Peer, missing_peers, started
from bench.table import Note, Row, p50, skipped, within

HOPS: Final = 5
MICROSECOND: Final = 1e-6
_AUDIENCE: Final = "https://tools.example"
_CALL: Final = Call("write_file", "write", "src/invoice.py", {"path": "src/invoice.py"})
_ASKED: Final = Grant(
    may=read_scope(["write:src/** where path under src"]),
    may_delegate=read_scope(["write:src/** where path under src"]),
)
_LONG: Final = timedelta(days=1)


class Granted:
    """A chain of five hops that one relay has signed, and everything around it."""

    def __init__(self) -> None:
        now = datetime.now(UTC)
        self.root, self.relay, self.run = (Ed25519Signer.generate() for _ in range(3))
        self.issuer = Issuer(self.relay, SystemClock())
        enrolment = enrol(
            self.relay.public_key, ledger=new_ledger_id(now), relay=new_relay_id(now), root=self.root, at=now
        )
        run = new_run_id(now)
        terms = [self.issuer.begin(_ASKED, agent=AgentId("lead"), principal=PrincipalId("user:ana"), root=run)]
        for depth in range(HOPS - 1):
            terms.append(
                self.issuer.hand_off(
                    terms[-1],
                    _ASKED,
                    depth=depth,
                    agent=AgentId(f"worker{depth}"),
                    handoff=new_handoff_id(now),
                    run=run,
                )
            )
        self.terms = tuple(terms)
        certificate = self.issuer.certify(
            terms[-1], run=run, attempt=1, epoch=1, run_key=self.run.public_key, valid_for=_LONG
        )
        self.chain = Chain(enrolments=(enrolment,), terms=self.terms, certificate=certificate)
        self.text = encode_chain(self.chain)
        short = self.issuer.begin(_ASKED, agent=AgentId("lead"), principal=PrincipalId("user:ana"), root=run)
        certified = self.issuer.certify(
            short, run=run, attempt=0, epoch=1, run_key=self.run.public_key, valid_for=_LONG
        )
        self.other = encode_chain(Chain(enrolments=(enrolment,), terms=(short,), certificate=certified))

    def prove(self) -> Signed[Proof]:
        """Return a proof that nobody has seen."""
        return prove(_CALL, self.chain.certificate, run_key=self.run, audience=_AUDIENCE, at=datetime.now(UTC))

    def token(self) -> str:
        """Return what a client sends with a call."""
        return join_token(self.text, encode_proof(self.prove()))

    def verifier(self) -> Verifier:
        """Return somebody who has seen nothing yet."""
        return Verifier(self.root.public_key, audience=_AUDIENCE, revocations=False, fresh_for=_LONG)

    def acquainted(self) -> Verifier:
        """Return somebody who has seen another chain of this relay."""
        verifier = self.verifier()
        verifier.verify_chain(self.other)
        return verifier

    def checks(self, count: int) -> Act:
        """Return what does so many bare checks of a signature over as many bytes as terms have."""
        part = self.terms[-1]
        message = part.signature + signing_bytes(part.payload)
        key = bytes.fromhex(self.relay.public_key)

        def act() -> None:
            for _ in range(count):
                crypto_sign_open(message, key)

        return act


def measure(scratch: Path, effort: Effort) -> Sequence[Row | Note]:
    """Measure what a relay does at an offer, and what a tool server does at a call."""
    granted = Granted()
    with ExitStack() as stack:
        peers = _peers(scratch, stack)
        return [
            *_narrowing(granted, peers, effort),
            *_verifying(granted, peers, effort),
            *([] if peers else [skipped("grants, against peers", str(missing_peers()))]),
            Note(
                f"a token of {HOPS} hops has {len(granted.token()):,} characters: an enrolment, the terms of each hop, "
                "a certificate and a proof, eight signatures in all"
            ),
            *(Note(f"{name}: {peer.tell('facts')}") for name, peer in peers.items() if name.endswith("verify")),
        ]


def _peers(scratch: Path, stack: ExitStack) -> dict[str, Peer]:
    if missing_peers() is not None:
        return {}
    return {
        f"{name} {act}": stack.enter_context(started(name, scratch, "", act=act, hops=HOPS))
        for name in ("tenuo", "attenu-guard")
        for act in ("narrow", "verify")
    }


def _narrowing(granted: Granted, peers: Mapping[str, Peer], effort: Effort) -> Iterator[Row]:
    parent = granted.terms[0]
    run = new_run_id(datetime.now(UTC))
    handoff = new_handoff_id(datetime.now(UTC))
    contenders: dict[str, Act | Elsewhere] = {
        "narrow": lambda: narrow(parent.said, _ASKED, depth=0),
        "issue": lambda: granted.issuer.hand_off(
            parent, _ASKED, depth=0, agent=AgentId("worker"), handoff=handoff, run=run
        ),
        "sign": lambda: granted.relay.sign(parent.payload),
        **{name: peer for name, peer in peers.items() if name.endswith("narrow")},
    }
    taken = time_in_turns(contenders, turns=effort.turns // 2, acts=effort.acts)
    sign = p50(taken["sign"])
    yield Row(
        what="grant: narrow",
        ours=p50(taken["narrow"]),
        against="one bare signature",
        theirs=sign,
        goal=within(60 * MICROSECOND),
    )
    yield Row(what="grant: narrow and sign", ours=p50(taken["issue"]), against="one bare signature", theirs=sign)
    words = {"tenuo narrow": "tenuo: attenuate, signed", "attenu-guard narrow": "attenu-guard: meet, not signed"}
    for name, against in words.items():
        if name in taken:
            yield Row(what="grant: narrow and sign", ours=p50(taken["issue"]), against=against, theirs=p50(taken[name]))


def _verifying(granted: Granted, peers: Mapping[str, Peer], effort: Effort) -> Iterator[Row]:
    turns, acts = effort.turns // 4, effort.acts
    times = (turns + 1) * acts
    # Each of these has seen nothing yet, and is gone afterwards; that permits were read before is common to all.
    new = [granted.verifier() for _ in range(2 * times)]
    acquainted = [granted.acquainted() for _ in range(times)]
    tokens = [granted.token() for _ in range(2 * times)]
    gc.freeze()  # thousands of verifiers that only a benchmark has, and that the collector would look through
    known = granted.verifier()
    at = datetime.now(UTC)
    contenders: dict[str, Act | Elsewhere] = {
        "relay": lambda: authorise(acquainted.pop().verify_chain(granted.text).terms, _CALL, at),
        "cold": lambda: authorise(new.pop().verify_chain(granted.text).terms, _CALL, at),
        "cached": lambda: authorise(known.verify_chain(granted.text).terms, _CALL, at),
        "call": lambda: new.pop().verify_call(tokens.pop(), _CALL),
        "cached call": lambda: known.verify_call(tokens.pop(), _CALL),
        "six": granted.checks(HOPS + 1),
        "seven": granted.checks(HOPS + 2),
        "eight": granted.checks(HOPS + 3),
        "one": granted.checks(1),
        **{name: peer for name, peer in peers.items() if name.endswith("verify")},
    }
    taken = time_in_turns(contenders, turns=turns, acts=acts)
    rows = (
        ("verify a chain of 5 hops, nothing seen before", "cold", "seven bare checks", "seven", None),
        ("the same, the relay known", "relay", "six bare checks", "six", within(650 * MICROSECOND)),
        ("the same, the chain known", "cached", "one bare check", "one", within(20 * MICROSECOND)),
        ("verify a call: chain and proof, nothing seen before", "call", "eight bare checks", "eight", None),
        ("the same, the chain known", "cached call", "one bare check", "one", None),
        (
            "verify a call: chain and proof, nothing seen before",
            "call",
            "tenuo: the same, from text",
            "tenuo verify",
            None,
        ),
        (
            "verify a chain of 5 hops, nothing seen before",
            "cold",
            "attenu-guard: chain, no proof",
            "attenu-guard verify",
            None,
        ),
    )
    for what, ours, against, theirs, goal in rows:
        if theirs in taken:
            yield Row(what=what, ours=p50(taken[ours]), against=against, theirs=p50(taken[theirs]), goal=goal)
