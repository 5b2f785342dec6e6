"""A ledger on a desk: a file that a test records in, and the commands that it runs there."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from batonpass.cli.nouns import cli
from batonpass.ledger.act_receipts import Recording
from batonpass.ledger.position import Working
from batonpass.model.base.ids import AgentId, PrincipalId
from batonpass.relay import Relay, recording_of
from batonpass.testing.plain_acts import plainly

ANA = PrincipalId("user:ana")


@dataclass(frozen=True, slots=True)
class Desk:
    """A directory with a ledger in it."""

    directory: Path

    @property
    def ledger(self) -> Path:
        """Return the ledger's file."""
        return self.directory / ".batonpass" / "ledger.db"

    def relay(self) -> Relay:
        """Open the ledger as this desk's relay."""
        return Relay.open(f"sqlite:///{self.ledger}", home=self.ledger.parent)

    def run(self, *arguments: str, typed: str | None = None) -> Result:
        """Run a command on this ledger, with what a person types."""
        words = ["--ledger", str(self.ledger), *arguments]
        return CliRunner().invoke(cli, words, input=typed, prog_name="batonpass")

    def answer(self, *arguments: str) -> Any:  # noqa: ANN401 - whatever JSON can hold
        """Run a command with `--json` and return what it answers."""
        return json.loads(self.run(*arguments, "--json").stdout)

    def words(self, *arguments: str) -> str:
        """Run a command that must succeed and return its stdout."""
        done = self.run(*arguments)
        assert (0, None) == (done.exit_code, done.exception), done.output
        return done.stdout


def record_tree(ledger: Recording) -> Working:
    """Record a lead with an editor that called two tools, one of which failed; return the lead, closed."""
    recording = plainly(ledger)
    lead = recording.start("Fix invoice rounding", agent=AgentId("lead"), by=ANA)
    editor = recording.accept(recording.offer(lead, AgentId("editor"), "Make total() round half-even"))
    recording.finish(editor, recording.request(editor, "write_file", '{"path":"src/invoice.py"}'), "wrote 12 bytes")
    recording.fail_call(editor, recording.request(editor, "send_mail", "{}"), "smtp.timeout", "no answer")
    recording.close(editor, report="done\nnegative totals untested")
    recording.close(lead, report="all done")
    return lead


def record_in(directory: Path) -> Desk:
    """Return a desk whose ledger holds one tree."""
    desk = Desk(directory)
    with desk.relay() as relay:
        record_tree(recording_of(relay))
    return desk
