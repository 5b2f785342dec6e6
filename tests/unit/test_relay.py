"""The relay: the use cases that every door calls."""

import threading
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Final

import pytest

from batonpass import Brief, Grant, Handoff, HandoffPolicy, Result, Run, Worker, tool
from batonpass.aio import AsyncRelay
from batonpass.errors import (
    BatonpassError,
    ContentErasedError,
    InvalidValueError,
    KeyMissingError,
    NotFoundError,
    StoreShutError,
    StreamClosedError,
    UnknownRelayError,
)
from batonpass.model.base.ids import ContentId, StreamId
from batonpass.model.baton.items import Decision
from batonpass.model.ledger.key import KeyStatus
from batonpass.relay import Relay, desk_of, recording_of
from batonpass.store.memory import MemoryStore
from batonpass.store.port import ReceiptQuery
from batonpass.testing.builders import ANA
from batonpass.testing.plain_acts import plainly
from batonpass.wire.receipt_codec import decode_receipt
from tests.unit.model.examples import EDITOR, an_id


def a_relay(store: MemoryStore, home: Path | None = None) -> Relay:
    """Return a relay that has recorded something."""
    relay = Relay(store, home=home)
    plainly(recording_of(relay)).close(recording_of(relay).start("begun", agent=EDITOR, by=ANA))
    return relay


def intent_in(relay: Relay) -> ContentId:
    with relay.store.view() as view:
        (started,) = view.find_receipts(ReceiptQuery(kind="run.started"))
    return decode_receipt(started.payload).content["intent"].id


def test_without_a_name_it_is_the_ledger_of_this_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As for `start()` and for commands: the nearest `.batonpass`, unless the environment names another ledger."""
    below = tmp_path / "src"
    below.mkdir()
    (tmp_path / ".batonpass").mkdir()
    monkeypatch.chdir(below)
    with Relay.open() as here:
        here.start("begin", by=ANA).close()
    monkeypatch.setenv("BATONPASS_LEDGER", str(tmp_path / "other.db"))
    with Relay.open() as named:
        found = named.store.url

    assert (tmp_path / ".batonpass" / "ledger.db").is_file()
    assert f"sqlite:///{tmp_path}/other.db" == found


def test_a_ledger_is_named_by_a_file_or_by_a_url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A path, a text and a URL are one ledger, with the keys in the directory that is named by a path or a text."""
    monkeypatch.chdir(tmp_path)
    keys = tmp_path / "keys"
    with Relay.open("a.db", home="keys") as relay:
        root = relay.start("begin", by=ANA).id
    for name, home in ((Path("a.db"), keys), (f"sqlite:///{tmp_path}/a.db", str(keys)), (tmp_path / "a.db", keys)):
        with Relay.open(name, home=home) as relay, relay.store.view() as view:
            assert root == view.get_run(root).id
            relay.resume(root).record(Decision("go on", why="it is there"))

    assert (keys / "relay.key").is_file()


@pytest.mark.postgres
def test_on_a_server_the_keys_are_in_the_nearest_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, postgres_url: str
) -> None:
    """As the settings say, and as commands have it."""
    monkeypatch.chdir(tmp_path)
    with Relay.open(postgres_url) as relay:
        relay.start("begin", by=ANA).close()

    assert (tmp_path / ".batonpass" / "relay.key").is_file()


def test_what_people_annotate_with_is_public(tmp_path: Path) -> None:
    """What a program keeps has a public name: the run that is started, what is handed off, and what comes back."""
    with Relay.open("memory:", home=tmp_path) as relay, relay.start("begin", by=ANA) as lead:
        made = lead.hand_off("editor", "make it so")
        with made as editor:
            editor.report("done")
        kept = [lead, editor, made, made.result(), made.wait()]

    assert [Run, Run, Handoff, Result, Result] == [type(one) for one in kept]


def test_runs_and_handoffs_print_in_a_line(tmp_path: Path) -> None:
    """Who prints one sees which it is, and not all that it holds."""
    with Relay.open("memory:", home=tmp_path) as relay, relay.start("begin", by=ANA) as lead:
        handoff = lead.hand_off("editor", "make it so", deadline="10m")
        with pytest.raises(ConnectionError), handoff:
            raise ConnectionError
        again = handoff.retry()
        with lead.hand_off("editor", "make that so") as editor:
            editor.report("done " * 40)
        made = lead.hand_off("editor", "make that so")
        known = relay.handoff(handoff.id)
        relay.register("editor", lambda _: None)
        printed = [repr(lead), repr(handoff), repr(again), repr(relay), repr(AsyncRelay(relay)), repr(made.result())]
        others = [known, relay.admin, known.baton(), relay.trail(), Worker(relay, name="one"), lead.grant()]
        given = Grant(may=["write:src/**"], may_delegate=["read:**"], limits="at most 5 calls")
        with lead.hand_off("fixer", "mend it", grant=given) as fixer:
            others.append(fixer.grant())
        printed += [repr(one) for one in others]

    assert [
        f"<Run {lead.id} of lead for user:ana, observed>",
        f"<Handoff {handoff.id} to editor>",
        f"<NextAttempt at {handoff.id} to editor, calls kept: 0, in doubt: 0>",
        "<Relay of memory:>",
        "<AsyncRelay of memory:>",
        f"<Result of {made.id}: completed in attempt 1, '{'done ' * 15}don…>",
        f"<Handoff {handoff.id}>",
        "<Admin of memory:>",
        f"<Baton of {handoff.id} from lead to editor, revision 0: 'make it so', items: 1>",
        f"<Trail of {lead.id} for user:ana, runs: 3, handoffs: 2, receipts: 8>",
        "<Worker one for editor, on <Relay of memory:>>",
        "<EffectiveGrant of lead: none, observed>",
        "<EffectiveGrant of fixer: may write:src/**, may delegate read:**, 5 calls left, enforced, in force>",
    ] == printed


def test_what_holds_much_prints_in_a_line(tmp_path: Path) -> None:
    """A store, a command that ended, what earlier attempts and sessions left, what the fleet remembers."""
    with Relay.open("memory:", home=tmp_path) as relay, relay.start("begin", by=ANA) as lead:
        with lead.hand_off("editor", "make it so") as editor:
            editor.report("done")
        finished = lead.shell(["echo", "word " * 50])
        printed = [repr(one) for one in (relay.store, finished, lead.earlier, lead.session, relay.recall("so"))]

    assert [
        "<MemoryStore>",
        f"<Finished with exit code 0, '{'word ' * 15}wor…, bytes: 251 + 0>",
        "<Resumption after 0 attempts, calls finished: 0, in doubt: 0, held: 0, handoffs: 0>",
        "<SessionState of no session, kept: 0, to decide again: 0, to check: 0, in flight: 0>",
        "<FleetMemory of 1 handoffs, those that fit: 1>",
    ] == printed


def test_what_callers_write_prints_as_they_wrote_it() -> None:
    """A grant and a brief have their public names, and say nothing that nobody said."""
    said = [Grant(may=["write:src/**"], until="2h"), Brief(criteria=["all tests pass"])]

    assert [
        "Grant(may=('write:src/**',), until=datetime.timedelta(seconds=7200))",
        "Brief(criteria=('all tests pass',))",
    ] == [repr(one) for one in said]


def test_a_duration_is_a_text_as_people_write_it(tmp_path: Path) -> None:
    """For leases, limits of time and caches, as for deadlines; the refusal of another text names the parameter."""
    asked = []
    with Relay.open("memory:", home=tmp_path, work_tree=str(tmp_path)) as relay, relay.start("begin", by=ANA) as lead:

        @tool("ask", reads=True, cache_for="1h")
        def ask() -> int:
            asked.append(1)
            return len(asked)

        finished = lead.shell(["pwd"], timeout="1m")
        answers = [lead.call(ask), lead.call(ask)]
        lead.hand_off("editor", "make it so", carrier="worker")
        lease = relay.claim(holder="one", lease_for="30s", agents=["editor"])
        assert lease is not None
        renewed = relay.heartbeat(lease, "10m")
        issued = relay.admin.add_token(ANA, "auditor", by=ANA, lasts="30d")
        (token,) = relay.admin.tokens()
        with pytest.raises(InvalidValueError, match="lease_for: 'soon' is no duration"):
            relay.claim(holder="one", lease_for="soon", agents=["editor"])
        with pytest.raises(InvalidValueError, match="lease_for: 'later' is no duration"):
            Worker(relay, lease_for="later")

    assert ([1, 1], str(tmp_path)) == (answers, finished.stdout.strip())
    assert timedelta(minutes=9) < renewed.until - lease.until < timedelta(minutes=11)
    assert timedelta(days=29) < token.until - renewed.until < timedelta(days=31)
    assert HandoffPolicy(oldest="7d") == HandoffPolicy(oldest=timedelta(days=7))
    assert issued.text not in repr(issued)


def test_a_directory_is_a_text_or_a_path(tmp_path: Path) -> None:
    """Wherever one is named: the keys, the work tree, where a command looks at a result."""
    (tmp_path / "done").touch()
    keys = str(tmp_path / "keys")
    with Relay(MemoryStore(), home=keys, work_tree=str(tmp_path)) as relay, relay.start("begin", by=ANA) as lead:
        made = lead.hand_off("editor", "make it so")
        with made as editor:
            editor.report("done")

        assert made.verify(command=["test", "-e", "done"], cwd=str(tmp_path))


MISTAKES: Final[Mapping[str, tuple[Callable[[Run], object], str]]] = {
    "a word for an item": (
        lambda run: run.record("round half-even"),  # type: ignore[arg-type]
        "item: 'round half-even' is none of Statement, ",
    ),
    "a name for a function": (
        lambda run: run.call("write_file"),  # type: ignore[arg-type]
        "function: 'write_file' cannot be called; pass the function itself",
    ),
    "a number for a duration": (
        lambda run: run.hand_off("editor", "do it").wait(timeout=1),  # type: ignore[arg-type]
        "timeout: 1 is no duration; write one like ",
    ),
    "one text for a list": (
        lambda run: run.hand_off("editor", "do it", may="write:src/**"),
        "may: 'write:src/**' is one text; write a list of texts",
    ),
    "a pattern without an action": (
        lambda run: run.hand_off("editor", "do it", may=["src/**"]),
        "pattern: 'src/**' has no ':'; one is like write:src/**",
    ),
    "a deadline that is none": (
        lambda run: run.hand_off("editor", "do it", deadline="soon"),
        "deadline: 'soon' is no duration; write one like ",
    ),
    "an approval of what is not held": (
        lambda run: run.hand_off("editor", "do it").approve(by=ANA),
        "'approve' is not possible for a caller-carried handoff that is offered",
    ),
}


def test_a_mistake_of_a_caller_gets_a_sentence() -> None:
    """It names the argument, what is wrong with it, and where possible what to write instead."""
    told = {}
    with Relay.open("memory:") as relay:
        for name, (mistake, _) in MISTAKES.items():
            with relay.start("begin", by=ANA) as run, pytest.raises(BatonpassError) as raised:
                mistake(run)
            told[name] = str(raised.value)

    assert {} == {name: told[name] for name, (_, said) in MISTAKES.items() if not told[name].startswith(said)}


def test_a_policy_may_be_named_by_its_path_as_text(tmp_path: Path) -> None:
    """As a ledger and a home may; what is neither a file nor a policy is refused."""
    (tmp_path / "strict.toml").write_text("[policy]\nenforce = true\n")
    with Relay.open("memory:", policy=str(tmp_path / "strict.toml")) as relay:
        assert desk_of(relay).gates.enforce

    with Relay.open("memory:", policy=3) as relay, pytest.raises(InvalidValueError, match="policy: 3 is not Policy"):  # type: ignore[arg-type]
        relay.start("begin", by=ANA)


@pytest.mark.parametrize("url", ["memory:", "sqlite:///{}/.batonpass/ledger.db"], ids=["in memory", "in a file"])
def test_threads_that_use_a_relay_for_the_first_time_at_once_agree(tmp_path: Path, url: str) -> None:
    """Eight threads record as soon as the relay is there: it is founded once, and everything is recorded."""
    together = threading.Barrier(8)
    failed: list[BaseException] = []
    with Relay.open(url.format(tmp_path)) as relay:

        def record() -> None:
            together.wait(timeout=30)
            try:
                plainly(recording_of(relay)).close(recording_of(relay).start("begun", agent=EDITOR, by=ANA))
            except BaseException as error:  # noqa: BLE001 - shown by the assertion
                failed.append(error)

        threads = [threading.Thread(target=record) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(timeout=30)

        assert [] == failed
        assert (1, 8, 17) == (relay.verify().relays, relay.verify().runs, relay.verify().receipts)


def test_threads_that_join_a_ledger_at_once_agree(tmp_path: Path) -> None:
    """Where the root key is, a relay that is new enrols itself once, however many threads begin together."""
    store = MemoryStore()
    a_relay(store, tmp_path)
    (tmp_path / "relay.key").unlink()
    relay = Relay(store, home=tmp_path)
    together = threading.Barrier(8)
    failed: list[str] = []

    def record() -> None:
        together.wait(timeout=30)
        try:
            recording_of(relay).start("begun", agent=EDITOR, by=ANA)
        except BaseException as error:  # noqa: BLE001 - shown by the assertion
            failed.append(type(error).__name__)

    threads = [threading.Thread(target=record) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)

    assert [] == failed
    assert (2, 9) == (relay.verify().relays, relay.verify().runs)


def test_a_relay_is_closed_when_it_is_left(tmp_path: Path) -> None:
    """After the block nothing is recorded any more."""
    with Relay.open(f"sqlite:///{tmp_path}/ledger.db") as relay:
        recording_of(relay).start("begun", agent=EDITOR, by=ANA)

    with pytest.raises(StoreShutError):
        recording_of(relay).start("too late", agent=EDITOR, by=ANA)


def test_a_second_relay_is_enrolled_where_the_root_key_is(tmp_path: Path) -> None:
    """A relay elsewhere asks with its id and key; enrolled by the founder it records, and everything verifies."""
    store = MemoryStore()
    founder, other = a_relay(store, tmp_path / "a"), Relay(store, home=tmp_path / "b")
    with pytest.raises(UnknownRelayError):
        _ = recording_of(other)
    founder.admin.enroll(*other.admin.identity())
    plainly(recording_of(other)).close(recording_of(other).start("theirs", agent=EDITOR, by=ANA))

    assert (2, 2) == (founder.verify().relays, other.verify().runs)
    with pytest.raises(KeyMissingError):
        other.admin.rotate()


def test_a_revoked_relay_is_shut_out(tmp_path: Path) -> None:
    """After its key was revoked a relay records nothing; what it recorded before stays good."""
    store = MemoryStore()
    founder, other = a_relay(store, tmp_path / "a"), Relay(store, home=tmp_path / "b")
    founder.admin.enroll(*other.admin.identity())
    working = recording_of(other).start("theirs", agent=EDITOR, by=ANA)
    (key,) = [known for known in founder.admin.keys() if known.public_key == other.admin.identity()[1]]  # noqa: SIM118
    founder.admin.revoke(key, reason="lost laptop")

    with pytest.raises(UnknownRelayError, match="no longer active"):
        plainly(recording_of(other)).close(working)
    assert [KeyStatus.REVOKED] == [known.status for known in founder.admin.keys() if known.id == key.id]  # noqa: SIM118
    assert 2 == founder.verify().runs


def test_a_rotated_relay_goes_on(tmp_path: Path) -> None:
    """After a rotation the same relay records under its new key, in this process and in the next."""
    store = MemoryStore()
    relay = a_relay(store, tmp_path)
    before = relay.admin.identity()
    fresh = relay.admin.rotate()
    recording_of(relay).start("after", agent=EDITOR, by=ANA)
    again = Relay(store, home=tmp_path)
    recording_of(again).start("later", agent=EDITOR, by=ANA)

    assert (before[0], fresh) == relay.admin.identity() == again.admin.identity()
    assert (1, 3) == (again.verify().relays, again.verify().runs)


def test_words_can_be_read_until_they_are_erased() -> None:
    """What was written is given out; once erased, the error says that it was there."""
    relay = a_relay(MemoryStore())
    content = intent_in(relay)

    assert b"begun" == relay.read(content)
    relay.admin.erase([content], by=ANA, reason="asked to")
    with pytest.raises(ContentErasedError, match=content):
        relay.read(content)
    with pytest.raises(NotFoundError):
        relay.read(ContentId(an_id("content", 9)))


def test_a_tree_goes_from_ledger_to_ledger(tmp_path: Path) -> None:
    """What one relay exports another imports into a ledger of its own, and finds the same evidence."""
    relay = a_relay(MemoryStore())
    with relay.store.view() as view:
        run = next(view.find_runs()).id
    with Relay.open(f"sqlite:///{tmp_path}/copy.db") as copy:
        evidence = copy.admin.import_(relay.admin.export(run))

        assert evidence == copy.verify() == relay.verify()
        with copy.store.view() as view:
            assert 2 == view.get_stream(StreamId(run)).seq


def test_a_seal_is_kept_and_checked() -> None:
    """A relay seals what is there, and verifies what it sealed."""
    relay = a_relay(MemoryStore())
    seal = relay.admin.seal()
    recording_of(relay).start("after", agent=EDITOR, by=ANA)

    assert (3, 2) == (seal.size, relay.verify(seals=[seal.note]).seals)


def test_a_run_that_is_closed_says_so() -> None:
    """Not that its key is gone: that is only how a run ends, and nothing that anybody could look for."""
    relay = Relay(MemoryStore())
    lead = relay.start("Fix it", by="user:ana")
    child = lead.hand_off("editor", "Make it").accept()
    child.close()
    lead.close()
    for run in (child, lead):
        for act in (lambda: run.record(Decision("x")), lambda: run.hand_off("x", "y"), lambda: run.call(str, 1)):  # noqa: B023 - called at once
            with pytest.raises(StreamClosedError, match=f"{run.id} is closed"):
                act()
