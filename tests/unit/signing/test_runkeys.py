"""Where a run's own key lives, and what happens when it is lost."""

import stat
from pathlib import Path

import pytest

from batonpass.errors import FencedError, KeyMissingError, KeyRefusedError, StoreReadOnlyError
from batonpass.model.base.ids import StreamId, new_run_id
from batonpass.model.ledger.key import RunKeys, Signer
from batonpass.relay import Relay, recording_of
from batonpass.signing.runkeys import RunKeysInFiles, RunKeysInMemory
from batonpass.store.memory import MemoryStore
from batonpass.testing.builders import ANA
from batonpass.testing.clock import NOON
from batonpass.testing.plain_acts import plainly
from tests.children import run_at_once
from tests.unit.model.examples import EDITOR

RUN = new_run_id(NOON)

START = """
from pathlib import Path
from batonpass.relay import Relay, recording_of
with Relay.open(sys.argv[1], home=Path(sys.argv[2]), keys_in_files=True) as relay:
    working = recording_of(relay).start("begun by a hook", agent="lead", by="user:ana")
    print(json.dumps(working.run.id))
"""
GO_ON = """
from pathlib import Path
from batonpass.relay import Relay, recording_of
from batonpass.ledger.position import Working
from batonpass.testing.plain_acts import plainly
with Relay.open(sys.argv[1], home=Path(sys.argv[2]), keys_in_files=True) as relay:
    with relay.store.view() as view:
        working = Working(run=view.get_run(sys.argv[3]))
    acts = plainly(recording_of(relay))
    acts.finish(working, acts.request(working, "write_file", "{}"), "ok")
    if sys.argv[4] == "close":
        acts.close(working)
    print(json.dumps(relay.verify().receipts))
"""


def keep_one(run_keys: RunKeys, epoch: int = 1) -> Signer:
    """Keep a new key for the run and return it."""
    signer = run_keys.new()
    run_keys.keep(RUN, epoch, signer)
    return signer


@pytest.fixture(params=["memory", "files"], ids="kept in {}".format)
def run_keys(request: pytest.FixtureRequest, tmp_path: Path) -> RunKeys:
    return RunKeysInMemory() if request.param == "memory" else RunKeysInFiles(tmp_path)


def test_a_key_is_kept_with_its_epoch(run_keys: RunKeys) -> None:
    """What was made is given out again."""
    made = keep_one(run_keys)
    kept, epoch = run_keys.get(RUN)

    assert (made.key, 1) == (kept.key, epoch)


def test_a_newer_key_takes_the_place_of_an_older_one(run_keys: RunKeys) -> None:
    """After a rekey only the new key is there."""
    keep_one(run_keys)
    newer = keep_one(run_keys, epoch=2)
    kept, epoch = run_keys.get(RUN)

    assert (newer.key, 2) == (kept.key, epoch)


def test_a_key_is_dropped_once_and_for_all(run_keys: RunKeys) -> None:
    """When a run is over its key is gone; dropping it again is harmless."""
    keep_one(run_keys)
    run_keys.drop(RUN)
    run_keys.drop(RUN)

    with pytest.raises(KeyMissingError):
        run_keys.get(RUN)


def test_a_key_that_is_lost_says_how_to_go_on(run_keys: RunKeys) -> None:
    """Whoever has no key is told which run it is and to rekey it."""
    with pytest.raises(KeyMissingError, match=f"{RUN}.*rekey"):
        run_keys.get(RUN)


def test_keys_of_runs_are_private_files(tmp_path: Path) -> None:
    """One file for each open run, its owner's alone."""
    keep_one(RunKeysInFiles(tmp_path))
    directory = tmp_path / "runs"

    assert [f"{RUN}.key"] == [path.name for path in directory.iterdir()]
    assert (0o700, 0o600) == (
        stat.S_IMODE(directory.stat().st_mode),
        stat.S_IMODE((directory / f"{RUN}.key").stat().st_mode),
    )


def test_a_run_key_that_others_can_read_is_refused(tmp_path: Path) -> None:
    """Somebody who could read the key could sign as the run."""
    keep_one(RunKeysInFiles(tmp_path))
    (tmp_path / "runs" / f"{RUN}.key").chmod(0o644)

    with pytest.raises(KeyRefusedError, match="chmod 600"):
        RunKeysInFiles(tmp_path).get(RUN)


def test_a_run_key_without_an_epoch_is_refused(tmp_path: Path) -> None:
    """A key file of something else in a run's place is refused, as any other that is damaged."""
    keep_one(RunKeysInFiles(tmp_path))
    path = tmp_path / "runs" / f"{RUN}.key"
    path.write_text(path.read_text().replace(" 1 ", " one "))

    with pytest.raises(KeyRefusedError, match=f"{RUN}"):
        RunKeysInFiles(tmp_path).get(RUN)


def test_a_home_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    """Where no key can be kept, one sentence says where."""
    (tmp_path / "home").write_text("a file in the directory's place")

    with pytest.raises(StoreReadOnlyError, match=f"{tmp_path}/home"):
        keep_one(RunKeysInFiles(tmp_path / "home"))


@pytest.mark.slow
def test_a_run_goes_on_in_another_process(tmp_path: Path) -> None:
    """A short process begins a run, a second goes on with it, a third closes it: one key, one epoch, no secret left."""
    home = tmp_path / ".batonpass"
    url = f"sqlite:///{home / 'ledger.db'}"
    (run,) = run_at_once(START, url, str(home))
    kept = home / "runs" / f"{run}.key"
    (first,) = run_at_once(GO_ON, url, str(home), run, "stay")
    assert kept.exists()
    (second,) = run_at_once(GO_ON, url, str(home), run, "close")

    assert (4, 7) == (first, second)
    assert [] == list((home / "runs").iterdir())


def test_a_lost_key_is_replaced_in_the_next_epoch() -> None:
    """After the process is gone a run is rekeyed, goes on, and whoever kept the old key is fenced."""
    store, home_keys = MemoryStore(), RunKeysInMemory()
    relay = Relay(store, run_keys=home_keys)
    working = recording_of(relay).start("begun", agent=EDITOR, by=ANA)
    lost = home_keys.get(working.run.id)
    home_keys.drop(working.run.id)

    with pytest.raises(KeyMissingError, match="rekey"):
        plainly(recording_of(relay)).request(working, "write_file", "{}")
    again = recording_of(relay).rekey(working.run.id)
    plainly(recording_of(relay)).request(again, "write_file", "{}")
    with pytest.raises(FencedError):
        plainly(recording_of(relay)).request(working, "write_file", "{}")

    home_keys._keys[working.run.id] = lost
    with pytest.raises(FencedError):
        plainly(recording_of(relay)).request(working, "write_file", "{}")
    with store.view() as view:
        assert 2 == view.get_stream(StreamId(working.run.id)).epoch
    assert 4 == relay.verify().receipts


def test_a_rekey_that_is_refused_leaves_the_key_as_it_was() -> None:
    """A rekey that cannot be recorded must not cost the run the key it has."""
    run_keys = RunKeysInMemory()
    relay = Relay(MemoryStore(), run_keys=run_keys)
    working = recording_of(relay).start("begun", agent=EDITOR, by=ANA)
    signer, epoch = run_keys.get(working.run.id)
    _, own = relay.admin.keys()
    relay.admin.revoke(own, reason="lost")
    with pytest.raises(Exception, match="no longer active"):
        recording_of(relay).rekey(working.run.id)

    kept, kept_epoch = run_keys.get(working.run.id)
    assert (signer.key, epoch) == (kept.key, kept_epoch)


def test_a_refused_acceptance_leaves_no_key_behind(tmp_path: Path) -> None:
    """The key of a run that never came to be is not kept."""
    relay = Relay(MemoryStore(), run_keys=RunKeysInFiles(tmp_path))
    lead = recording_of(relay).start("begun", agent=EDITOR, by=ANA)
    handoff = plainly(recording_of(relay)).offer(lead, EDITOR, "task")
    plainly(recording_of(relay)).accept(handoff)
    before = set((tmp_path / "runs").iterdir())
    with pytest.raises(Exception, match="'accept' is not possible"):
        plainly(recording_of(relay)).accept(handoff)

    assert before == set((tmp_path / "runs").iterdir())
