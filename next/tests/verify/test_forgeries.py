"""What an attacker tries who can write to the database: without any key, and with the relay's key but not the root's.

Each is found by the step that it is meant for, or stands here among what is not claimed, as in
`docs/spec/verification.md`.
"""

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from batonpass import Evidence, Relay
from batonpass.errors import VerificationError
from batonpass.testing import a_relay, a_run
from tests.verify.forger import ZEROS, Forger, digest

BY = {"by": "user:ana"}
CALL = {"action": b"read", "arguments": b"{}", "target": b"a"}
OTHER = "ab" * 32
OWN_KEY = bytes(range(32))


class Scene(Forger):
    """Work that goes on: a root and a child under grants, an offer that waits, and a root of another principal."""

    def __init__(self, path: Path) -> None:
        with a_relay(path) as relay:
            root = a_run(relay, may=["read:**"])
            child = root.hand_off("editor", "Edit", may=["read:**"], accept=True)
            finished = child.begin_call("look", b"[]", action="read", target="a")
            finished.succeed("seen")
            self.finished = finished.id
            self.call = child.begin_call("look", b"{}", action="read", target="a").id
            self.root, self.child, self.child_handoff = root.id, child.id, child.handoff or ""
            self.offer = root.hand_off(
                "reader",
                "Read",
                may=["read:a/**"],
            ).id
            other = relay.start("Something else", by="user:bob")
            self.other, self.other_call = other.id, other.begin_call("mail", b"{}", action="send", target="b").id
            taken = other.hand_off("guest", "Visit", accept=True)
            self.guest, self.guest_handoff = taken.id, taken.handoff or ""
            over = relay.start("Over", by="user:bob")
            over.close()
            self.over = over.id
        keys = next((path.parent / "state" / "ledgers").glob(f"{path.stem}-*"))
        super().__init__(path, keys)
        self.path = path

    def head(self, run: str) -> dict[str, Any]:
        """Return the head of a run, as a body names it."""
        ((seq, head),) = self.connection.execute("SELECT seq, head FROM streams WHERE id = ?", (run,))
        return {"run": run, "seq": seq, "head": head}

    def offered(self) -> dict[str, Any]:
        """Return what the offer that waits has named."""
        found: dict[str, Any] = self.statement(self.root, self.one("SELECT seq FROM handoffs WHERE id = ?", self.offer))
        content: dict[str, Any] = found["predicate"]["content"]
        return content

    def accept(self, body: dict[str, Any] | None = None, **envelope: Any) -> None:  # noqa: ANN401 - any field
        """Accept the offer that waits, in a new stream, with a key of our own for the run."""
        offered = self.offered()
        accepted = {
            "handoff": self.offer,
            "parent": self.root,
            "run": f"run_{ZEROS}",
            "attempt": 1,
            "agent": "reader",
            "run_key": self.public(OWN_KEY),
            "baton": offered["baton"],
            "terms": offered["terms"],
            **(body or {}),
        }
        self.append("handoff.accepted", accepted["run"], accepted, cosigner=OWN_KEY, **{"root": self.root, **envelope})

    def request(self, run: str, body: dict[str, Any] | None = None, **envelope: Any) -> None:  # noqa: ANN401 - any field
        """Request a call in a run, charged as the grants of the child ask for."""
        asked = {"run": run, "call": f"call_{ZEROS}", "key": OTHER, "tool": "look"}
        charged = {**asked, "charges": [self.root, self.child_handoff], **(body or {})}
        self.append("tool.requested", run, charged, **{"parts": CALL, **envelope})

    def verify(self) -> Evidence:
        """Verify, as the owner of the ledger does."""
        self.connection.close()
        with Relay.open(self.path) as relay:
            return relay.verify()


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    found = Scene(tmp_path / "ledger.db")
    yield found
    found.close()


def enrol(scene: Scene, *, root_key: bytes, **changes: Any) -> None:  # noqa: ANN401 - any field
    """Enrol a relay of our own."""
    public = scene.public(OWN_KEY)
    relay = derived_relay(public)
    genesis = digest(b"batonpass ledger v0" + bytes.fromhex(scene.public(root_key)))
    named = {"subject": "relay", "relay": relay, "owner": "mallory", "public_key": public}
    scene.append(
        "key.enrolled",
        relay,
        {**named, "root_key": scene.public(root_key), **changes.pop("body", {})},
        key=OWN_KEY,
        cosigner=changes.pop("cosigner", root_key),
        parts={"secret": bytes(32)},
        **{"recorder": relay, "root": None, "mode": "observed", "previous": genesis, **changes},
    )


def derived_relay(public: str) -> str:
    """Return the id of a relay, as the specification derives it: a UUIDv8 of the key, in base 32."""
    bits = int(public[:32], 16) >> 6
    value = bits >> 74 << 80 | 8 << 76 | (bits >> 62 & 0xFFF) << 64 | 2 << 62 | bits & (1 << 62) - 1
    letters = "0123456789abcdefghjkmnpqrstvwxyz"
    return "relay_" + "".join(letters[value >> shift & 31] for shift in range(125, -1, -5))


def settle(scene: Scene, stream: str, run: str, call: str) -> None:
    """Settle a call in a stream."""
    body = {"run": run, "call": call, "settlement": "skip", **BY}
    scene.append("tool.settled", stream, body, mode="observed")


def late(scene: Scene, run: str, call: str) -> None:
    """Deliver a late result for the child's handoff."""
    body = {"handoff": scene.child_handoff, "run": run, "call": call, "outcome": "completed", "took_us": 1}
    scene.append("tool.late_result", scene.child_handoff, body, root=scene.root)


def retry(scene: Scene, **changes: Any) -> None:  # noqa: ANN401 - any field
    """Fence the child, and offer its handoff again."""
    body = {"handoff": scene.child_handoff, "attempt": 1, "ended_run": scene.head(scene.child), **BY, **changes}
    scene.append("handoff.retried", scene.child_handoff, body, root=scene.root)


def cancel(scene: Scene, holder: str, epoch: int = 0) -> None:
    """Withdraw the offer that waits, in the name of a run."""
    body = {"handoff": scene.offer, "attempt": 0, "code": "handoff.parent_closed", **BY}
    scene.append("handoff.cancelled", scene.offer, {**body, "holder": holder, "holder_epoch": epoch}, root=scene.root)


def close(scene: Scene, run: str, *children: dict[str, Any], mode: str = "enforced") -> None:
    """Close a root, and name children."""
    body = {"run": run, "outcome": "completed", "children": list(children)}
    scene.append("run.closed", run, body if children else {"run": run, "outcome": "completed"}, mode=mode)


def end(scene: Scene, kind: str, child: dict[str, Any]) -> None:
    """End the attempt that is under way, and name a child."""
    body = {"handoff": scene.child_handoff, "parent": scene.root, "attempt": 1, "children": [child]}
    scene.append(kind, scene.child, body, parts={"error": b"broken"} if kind == "handoff.failed" else {})


def revoke(scene: Scene, account: str) -> None:
    """End a grant."""
    scene.append("grant.revoked", scene.relay, {"account": account, **BY}, root=None, mode="observed")


def offer(scene: Scene, **envelope: Any) -> None:  # noqa: ANN401 - any field
    """Let the child offer without terms."""
    body = {"handoff": f"handoff_{ZEROS}", "to": "anyone", "execution": "caller", "state": "offered"}
    scene.append("handoff.initiated", scene.child, body, parts={"task": b"do", "baton": b"{}"}, **envelope)


def complete(scene: Scene, run: str, call: str, mode: str = "enforced") -> None:
    """Deliver the outcome of a call."""
    scene.append("tool.completed", run, {"run": run, "call": call, "took_us": 1}, mode=mode)


def rekey(scene: Scene, cosigner: bytes, **envelope: Any) -> None:  # noqa: ANN401 - any field
    """Take the root over."""
    body = {"run": scene.root, "run_key": scene.public(OWN_KEY)}
    scene.append("run.rekeyed", scene.root, body, **{"cosigner": cosigner, "epoch": 1, **envelope})


def revoked_then_called(scene: Scene) -> None:
    """Put a call after the end of its grant."""
    revoke(scene, scene.root)
    scene.request(scene.child)


def start(scene: Scene, **envelope: Any) -> None:  # noqa: ANN401 - any field
    """Begin a root without a grant."""
    run = f"run_{ZEROS}"
    body = {"run": run, "agent": "a", "principal": "user:eve", "run_key": scene.public(OWN_KEY)}
    parts = {"intent": b"mine", "secret": bytes(32)}
    scene.append("run.started", run, body, cosigner=OWN_KEY, **{"parts": parts, "mode": "observed", **envelope})


Forge = Callable[[Scene], None]
FORGERIES: list[tuple[str, Forge, str, str]] = [
    ("enrol a relay by a root key of one's own", lambda s: enrol(s, root_key=OWN_KEY), "verify.chain", "previous"),
    (
        "enrol a relay by a root key of one's own, in this ledger",
        lambda s: enrol(s, root_key=OWN_KEY, previous=s.one("SELECT genesis FROM ledger")),
        "verify.recorder",
        "root_key",
    ),
    (
        "enrol a relay without the root's signature",
        lambda s: enrol(s, root_key=s.root_key, cosigner=s.relay_key),
        "verify.signature",
        "cosignature",
    ),
    (
        "enrol a relay under the id of another",
        lambda s: enrol(s, root_key=s.root_key, body={"public_key": s.public(s.root_key)}),
        "verify.recorder",
        "relay",
    ),
    ("record without being enrolled", lambda s: s.request(s.child, key=OWN_KEY), "verify.signature", "signature"),
    ("accept with other terms", lambda s: s.accept({"terms": OTHER}), "verify.reference", "terms"),
    ("accept without the terms", lambda s: s.accept({"terms": None}, mode="observed"), "verify.reference", "terms"),
    ("accept another baton", lambda s: s.accept({"baton": OTHER}), "verify.reference", "baton"),
    ("accept for longer than was granted", lambda s: s.accept({"expires_at": 7}), "verify.reference", "expires_at"),
    ("accept terms and work observed", lambda s: s.accept(mode="observed"), "verify.reference", "mode"),
    ("accept as another agent", lambda s: s.accept({"agent": "mallory"}), "verify.admission", "body"),
    ("accept as the child of another run", lambda s: s.accept({"parent": s.other}), "verify.admission", "body"),
    ("accept as a later attempt", lambda s: s.accept({"attempt": 2}), "verify.admission", "body"),
    ("accept into another tree", lambda s: s.accept(root=s.other), "verify.reference", "root"),
    ("begin a stream in a later epoch", lambda s: s.accept(epoch=3), "verify.reference", "epoch"),
    ("accept one's own offer in one's own stream", lambda s: s.accept({"run": s.root}), "verify.reference", "kind"),
    ("call without charging the grants", lambda s: s.request(s.child, {"charges": []}), "verify.reference", "charges"),
    ("charge a grant less", lambda s: s.request(s.child, {"charges": [s.root]}), "verify.reference", "charges"),
    ("call after the grant has ended", revoked_then_called, "verify.admission", "body"),
    ("call in the name of another run", lambda s: s.request(s.child, {"run": s.other}), "verify.reference", "run"),
    ("call under an id that is over", lambda s: s.request(s.child, {"call": s.finished}), "verify.reference", "call"),
    ("call under an id that is open", lambda s: s.request(s.child, {"call": s.call}), "verify.admission", "body"),
    ("call in another tree", lambda s: s.request(s.child, root=s.other), "verify.reference", "root"),
    ("call as if observed", lambda s: s.request(s.child, mode="observed"), "verify.reference", "mode"),
    ("raise the epoch without taking over", lambda s: s.request(s.child, epoch=1), "verify.admission", "body"),
    ("leave out what was asked", lambda s: s.request(s.child, parts={}), "verify.content", "content"),
    (
        "say more than the kind has",
        lambda s: s.request(s.child, parts={**CALL, "note": b"hidden"}),
        "verify.content",
        "content",
    ),
    (
        "work in a run that has ended",
        lambda s: s.request(s.over, {"charges": []}, mode="observed"),
        "verify.admission",
        "body",
    ),
    (
        "deliver an outcome that was not asked for",
        lambda s: complete(s, s.child, s.other_call),
        "verify.admission",
        "body",
    ),
    ("deliver late what was not asked for", lambda s: late(s, s.child, s.other_call), "verify.reference", "call"),
    ("deliver late for another handoff", lambda s: late(s, s.guest, s.call), "verify.admission", "body"),
    ("offer without terms under a grant", offer, "verify.reference", "content"),
    (
        "fence at a head that is not the last",
        lambda s: retry(s, ended_run={**s.head(s.child), "seq": 1}),
        "verify.admission",
        "body",
    ),
    ("retry another attempt", lambda s: retry(s, attempt=2), "verify.admission", "body"),
    ("withdraw what another run offered", lambda s: cancel(s, s.other), "verify.reference", "holder"),
    ("withdraw in an epoch that is over", lambda s: cancel(s, s.root, 1), "verify.admission", "body"),
    ("close an attempt as if it were a root", lambda s: close(s, s.child), "verify.reference", "kind"),
    ("name the child of another run", lambda s: close(s, s.root, s.head(s.guest)), "verify.reference", "children"),
    (
        "name a head that the child never had",
        lambda s: close(s, s.root, {**s.head(s.child), "head": OTHER}),
        "verify.reference",
        "children",
    ),
    (
        "name a head that the child does not have yet",
        lambda s: close(s, s.root, {**s.head(s.child), "seq": 99}),
        "verify.reference",
        "children",
    ),
    (
        "complete an attempt and name a child of another run",
        lambda s: end(s, "handoff.completed", s.head(s.guest)),
        "verify.reference",
        "children",
    ),
    (
        "fail an attempt and name itself as its child",
        lambda s: end(s, "handoff.failed", s.head(s.child)),
        "verify.reference",
        "children",
    ),
    ("settle the call of another root", lambda s: settle(s, s.root, s.other, s.other_call), "verify.reference", "run"),
    ("settle what was not asked for", lambda s: settle(s, s.other, s.other, s.call), "verify.reference", "call"),
    ("end a grant that nobody has", lambda s: revoke(s, f"run_{ZEROS}"), "verify.reference", "account"),
    ("take a run over without its new key", lambda s: rekey(s, s.relay_key), "verify.signature", "cosignature"),
    ("take a run over and keep the epoch", lambda s: rekey(s, OWN_KEY, epoch=0), "verify.admission", "body"),
    ("begin a tree that hangs from nothing", lambda s: start(s, previous=OTHER), "verify.chain", "previous"),
    ("begin a tree inside of another", lambda s: start(s, root=s.root), "verify.reference", "root"),
    ("begin a tree as enforced, without terms", lambda s: start(s, mode="enforced"), "verify.reference", "mode"),
    ("name a request and hide what it asked", lambda s: start(s, request=OTHER), "verify.reference", "fingerprint"),
]


@pytest.mark.parametrize(
    ("forge", "code", "field"),
    [pytest.param(forge, code, field, id=name) for name, forge, code, field in FORGERIES],
)
@pytest.mark.parity("verify-names-the-first-fault")
def test_a_forged_receipt_is_found(scene: Scene, forge: Forge, code: str, field: str) -> None:
    """With the relay's key and in its right place in every chain, a receipt that breaks a rule is named."""
    position = scene.one("SELECT max(position) FROM receipts")

    forge(scene)

    with pytest.raises(VerificationError) as fault:
        scene.verify()
    assert (code, field) == (fault.value.code, fault.value.facts["field"])
    assert fault.value.facts["position"] > position


@pytest.mark.parametrize(
    "forge",
    [
        pytest.param(lambda s: s.accept(), id="an acceptance"),
        pytest.param(lambda s: s.request(s.child), id="a call"),
        pytest.param(start, id="a root"),
        pytest.param(retry, id="a retry"),
        pytest.param(lambda s: enrol(s, root_key=s.root_key), id="a relay, by the root key"),
    ],
)
def test_a_receipt_that_breaks_no_rule_lacks_only_its_rows(scene: Scene, forge: Forge) -> None:
    """What other code makes of the specification alone passes each step, until the rows are compared."""
    forge(scene)

    with pytest.raises(VerificationError) as fault:
        scene.verify()
    assert "verify.rows" == fault.value.code


def test_the_end_can_be_written_anew_with_the_relays_key(scene: Scene) -> None:
    """Not claimed: with its key the last receipt of a stream is replaced by another one that breaks no rule."""
    seq = scene.one("SELECT seq FROM streams WHERE id = ?", scene.over)
    previous = scene.statement(scene.over, seq)["subject"][0]["digest"]["sha256"]
    scene.connection.execute("DELETE FROM receipts WHERE stream = ? AND seq = ?", (scene.over, seq))
    scene.connection.execute("UPDATE streams SET seq = seq - 1, head = ? WHERE id = ?", (previous, scene.over))
    scene.append("run.closed", scene.over, {"run": scene.over, "outcome": "failed"}, mode="observed")
    payload = scene.one("SELECT payload FROM receipts WHERE stream = ? AND seq = ?", scene.over, seq)
    at = json.loads(payload)["predicate"]["at"]
    scene.connection.execute(
        "UPDATE streams SET seq = ?, head = ?, state = 'failed', last_at = ? WHERE id = ?",
        (seq, digest(payload), at, scene.over),
    )

    assert "end" in scene.verify().not_run


def test_an_index_that_hides_a_receipt_is_found(tmp_path: Path) -> None:
    """Readers look by an index: one that was made for other rows hides what stands in the table."""
    with a_relay(tmp_path / "l.db") as relay:
        a_run(relay).call(print)
    with closing(sqlite3.connect(tmp_path / "l.db")) as forger:
        forger.execute("CREATE TABLE other AS SELECT stream, seq + 100 AS seq FROM receipts")
        forger.execute("CREATE UNIQUE INDEX other_index ON other (stream, seq)")
        forger.commit()
        forger.execute("PRAGMA writable_schema = ON")
        ((page,),) = forger.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'other_index'")
        forger.execute("UPDATE sqlite_schema SET rootpage = ? WHERE name = 'sqlite_autoindex_receipts_1'", (page,))
        forger.execute("DELETE FROM sqlite_schema WHERE tbl_name = 'other'")
        forger.commit()

    with a_relay(tmp_path / "l.db") as relay, pytest.raises(VerificationError) as found:
        relay.verify()

    assert "indexes" == found.value.facts["step"]
