"""The same commands on PostgreSQL, and when it is not there."""

from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest
from click.testing import CliRunner

from batonpass.cli.nouns import cli
from batonpass.relay import Relay, recording_of
from batonpass.store.postgres import store
from tests.integration.cli.shell import batonpass_in
from tests.unit.cli.desk import record_tree

pytestmark = [pytest.mark.postgres, pytest.mark.slow]


def test_every_command_works_on_postgresql(tmp_path: Path, postgres_url: str) -> None:
    """Reading, verifying, sealing, proving, erasing, exporting and changing keys are one port's business."""
    home = tmp_path / ".batonpass"
    with Relay.open(postgres_url, home=home) as relay:
        record_tree(recording_of(relay))
    commands = (
        "run list",
        "run show editor",
        "receipt show last --json",
        "receipt grep timeout --since 1h --kind tool --agent editor",
        "receipt proof last",
        "ledger verify",
        "ledger erase editor --reason privacy",
        "ledger export --run lead -o bundle.jsonl",
        "ledger verify --bundle bundle.jsonl",
        "ledger stats",
        "ledger migrations",
        "ledger migrate",
        "ledger seal -o seal.txt",
        "key rotate",
        "key list",
        "ledger verify --seal seal.txt",
        "doctor",
    )
    environment = {"BATONPASS_LEDGER": postgres_url}
    results = {words: batonpass_in(tmp_path, *words.split(), environment=environment) for words in commands}

    assert {} == {words: done.stderr for words, done in results.items() if done.returncode != 0}
    assert [] == [words for words, done in results.items() if "sesame" in done.stdout + done.stderr]


def test_a_database_that_is_down_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nobody listens: one sentence without the password, and exit code 3. It comes when patience ends."""
    monkeypatch.setattr(store, "PostgresStore", partial(store.PostgresStore, wait_for=timedelta(seconds=1)))
    words = ["--ledger", "postgresql://ana:sesame@127.0.0.1:9/none?connect_timeout=1", "run", "list"]
    done = CliRunner().invoke(cli, words, prog_name="batonpass")

    assert (3, "", 1) == (done.exit_code, done.stdout, len(done.stderr.splitlines()))
    assert "sesame" not in done.stderr
