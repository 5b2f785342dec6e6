"""Two sessions, two weeks apart: what was agreed comes along, what no longer holds has to be decided again.

    python examples/sessions.py DIRECTORY

It runs in a second, offline and without a key: the agents are plain functions and the two weeks pass on a clock of our
own, everything else is real. In the first session a threshold is agreed on, two things are decided, a question stays
open, and the lead's process is gone before all is done. The second session goes on from the receipts alone.
"""

import sys
from collections.abc import Callable
from contextlib import chdir
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path

from batonpass import Assumption, Card, Constraint, Decision, OpenQuestion, Relay, tool
from batonpass.handoff.live.faces import LiveRun
from batonpass.model.base.lifecycle import Carrier

Tell = Callable[[str], None]

calls: list[str] = []


class Calendar:
    """A clock whose days we turn."""

    def __init__(self) -> None:
        self._at = datetime(2026, 11, 2, 9, tzinfo=UTC)

    def now(self) -> datetime:
        """Return the time, a little later each time it is asked for."""
        self._at += timedelta(milliseconds=1)
        return self._at

    def wait(self, time: timedelta) -> None:
        """Let time pass."""
        self._at += time


@tool(reads=True, cache_for=timedelta(days=30))
def pull_sales(quarter: str) -> dict[str, int]:
    """Pull the figures: slow and costly, and the same for the rest of the month."""
    calls.append(quarter)
    return {"north": 118, "east": 34}


def rates_digest(directory: Path) -> str:
    """Return the digest of the rates as they are now."""
    return sha256((directory / "rates.csv").read_bytes()).hexdigest()


def first_session(relay: Relay, directory: Path) -> LiveRun:
    """Agree on a threshold, decide two things, leave a question open, and be gone."""
    run = relay.start(
        "What stood out in the third quarter?",
        by="user:ana",
        items=[Constraint("agreed with Ana", key="threshold", operator="=", value="20", unit="percent")],
    )
    run.record(
        Decision("flag regions beyond 20 percent", why="Ana agreed", conditions=("constraint:threshold = 20",)),
        Decision(
            "convert with the rates of October",
            why="they are final",
            conditions=(f"file:rates.csv sha256:{rates_digest(directory)}",),
        ),
        OpenQuestion("the east office moved in August: are its figures complete?"),
        Assumption("east lost a customer", confidence=400),
    )
    run.attach("news.html", "<p>East office closes!</p>", source="https://news.example", untrusted=True)
    run.call(pull_sales, "2026-Q3")
    run.hand_off("drafter", "Draft the summary for Ana", carrier=Carrier.WORKER)
    run.save_session()
    return run  # never closed: its process is gone


def second_session(relay: Relay) -> LiveRun:
    """Go on where the first session stopped."""
    run = relay.resume_session("last", by="user:ana", intent="And with the figures of November?")
    run.call(pull_sales, "2026-Q3")
    return run


def tell_session(run: LiveRun, tell: Tell) -> None:
    """Say what came along, what has to be decided again, what is in flight and what was left."""
    state = run.session
    for kept in state.kept:
        match kept.value:
            case Constraint() as constraint:
                tell(f"comes along, {state.age.days} days old: {constraint.sentence}")
            case Decision() as decision:
                tell(f"still decided: {decision.what}, because {decision.why}")
            case OpenQuestion() as question:
                tell(f"still open: {question.text}")
            case _:
                pass
    for revisit in state.revisit:
        tell(f"decide again: {revisit.decision.what}; {'; '.join(revisit.reasons)}")
    for child in state.in_flight:
        tell(f"in flight, not to be handed off twice: {child.to}, {child.task!r} ({child.state})")
    for dropped in state.dropped:
        tell(f"left behind ({dropped.why}): {dropped.what}")
    tell(f"pulled the sales {len(calls)} time in two sessions: the result was kept for a month")


def _begin_repository(place: Path) -> None:
    """Begin an empty repository, as `git init` does."""
    for name in ("objects", "refs"):
        (place / name).mkdir(parents=True, exist_ok=True)
    (place / "HEAD").write_text("ref: refs/heads/main\n", encoding="utf-8")


def main(directory: Path, tell: Tell = print) -> Relay:
    """Play both sessions in a directory; return the relay, to look around."""
    calls.clear()
    calendar = Calendar()
    (directory / ".batonpass").mkdir(mode=0o700, parents=True, exist_ok=True)
    _begin_repository(directory / ".git")  # conditions name files from the top of the repository
    (directory / "rates.csv").write_text("EUR,USD\n1.00,1.08\n", encoding="utf-8")
    relay = Relay.open(f"sqlite:///{directory}/.batonpass/ledger.db", clock=calendar)
    relay.introduce(Card(agent="drafter"))  # a worker elsewhere runs it
    with chdir(directory):
        first_session(relay, directory)
        calendar.wait(timedelta(days=14))
        (directory / "rates.csv").write_text("EUR,USD\n1.00,1.11\n", encoding="utf-8")
        run = second_session(relay)
    tell_session(run, tell)
    run.report("the threshold stands; the rates have to be decided again")
    run.close()
    return relay


if __name__ == "__main__":
    main(Path(sys.argv[1]).absolute()).close()
