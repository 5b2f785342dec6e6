"""Alarms on record: raised once, read by rules of the policy, acknowledged by people, cleared when all is well."""

import asyncio
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from click.testing import CliRunner

from batonpass import AsyncRelay, Brief, Constraint, tool
from batonpass.accounts.dry_run import dry_run
from batonpass.cli.nouns import cli
from batonpass.dispatch.alarm_watch import alarm_watch
from batonpass.drift.alarms import AlarmCheck
from batonpass.errors import (
    AmbiguousIdError,
    CallDeniedError,
    HandoffHeldError,
    NotFoundError,
    NotPersonError,
    StoreUnavailableError,
)
from batonpass.model.base.content_names import REASON, TASK_KIND
from batonpass.model.base.ids import AgentId, ContentId
from batonpass.model.base.kinds import Gate
from batonpass.model.bodies.body import HandoffInitiated, Kind
from batonpass.model.policy.policy_rules import Policy, Rule, Subject
from batonpass.records.remarks.alarm import AlarmRecord, find_alarms
from batonpass.records.text import read_receipt, read_texts
from batonpass.relay import Relay
from batonpass.store.memory import MemoryStore
from batonpass.store.port import ReceiptQuery
from batonpass.testing.builders import an_alarm
from batonpass.testing.clock import NOON, FrozenClock
from tests.unit.accounts.trees import HOSTILE

ANA = "user:ana"
WATCHED = Policy(
    enforce=True,
    rules=(
        Rule(name="ask-first", on=Subject.HANDOFF, gate=Gate.APPROVE, alarm="*"),
        Rule(name="not-now", on=Subject.CALL, gate=Gate.DENY, alarm="ana*"),
    ),
)


@tool(reads=True)
def look(place: str) -> str:
    """Look at something."""
    return place


class Weeks:
    """A fleet whose analyst works week after week, under a threshold and in a configuration."""

    def __init__(self, relay: Relay | None = None, clock: FrozenClock | None = None) -> None:
        self.clock = clock or FrozenClock(NOON)
        self.relay = relay or Relay(MemoryStore(), clock=self.clock)
        self.store = self.relay.store

    def ruled(self, policy: Policy) -> "Weeks":
        """Let a policy hold from now on."""
        self.relay._furnished().gates = policy
        return self

    def pass_by(self, weeks: int, threshold: str = "3.0", *, model: str | None = None) -> "Weeks":
        """Let some weeks pass with 24 handoffs in each."""
        agreed = Constraint(key="threshold", operator=">=", value=threshold)
        config = None if model is None else {"model": model}
        with self.relay.start("Watch the figures", by=ANA, items=[agreed]) as lead:
            for number in range(weeks * 24):
                self.clock.tick(timedelta(weeks=1) / 24)
                handoff = lead.hand_off("analyst", f"Flag the anomalies of {number}", brief=Brief(phase="analysis"))
                with handoff.accept(config=config) as analyst:
                    analyst.report("2 anomalies flagged")
        self.clock.tick(timedelta(seconds=1))
        return self

    def alarms(self) -> list[AlarmRecord]:
        """Return the alarms on record."""
        with self.store.view() as view:
            return [*find_alarms(view)]


def changed() -> Weeks:
    """Return a fleet whose threshold changed after two weeks and stayed so for three."""
    return Weeks().pass_by(2).pass_by(3, "2.5")


def test_a_lasting_change_is_a_receipt_of_the_relay_and_is_written_once() -> None:
    """It says whose work, at what, why, since which handoff and against which baseline; checking again adds nothing."""
    fleet = changed()

    first, second = fleet.relay.check_alarms(), fleet.relay.check_alarms()

    (alarm,) = fleet.alarms()
    assert ((alarm,), (), (alarm,)) == (first.raised, first.cleared, first.standing)
    assert AlarmCheck(raised=(), cleared=(), standing=(alarm,)) == second
    assert ("analyst", "analysis", "constraints", True) == (alarm.agent, alarm.task_kind, alarm.cause, alarm.stands)
    with fleet.store.view() as view:
        receipt = read_receipt(view.get_receipt(alarm.receipt))
        first_shown = view.get_handoff(alarm.raised.first) if alarm.raised.first else None
    assert (True, Kind.ALARM_RAISED) == (receipt.stream.startswith("relay_"), receipt.body.kind)
    assert first_shown is not None
    assert f"constraints: not as in the baseline in 3 windows in a row, first at handoff {first_shown.id}" == (
        alarm.sentence
    )
    assert alarm.raised.compared_until <= alarm.raised.window_since
    fleet.relay.verify()


def test_two_processes_that_find_the_same_raise_one_alarm() -> None:
    """The same agent, kind, configuration, cause and window have one key, whoever writes it down."""
    fleet = changed()
    fleet.relay.check_alarms()
    (known,) = fleet.alarms()
    other = fleet.relay._furnished()
    fleet.clock.tick(timedelta(seconds=1))
    other.recording.note(known.raised, (other.text(REASON, "as well"), other.text(TASK_KIND, "analysis")))

    fleet.relay.acknowledge_alarm(known.key, by=ANA, reason="meant so")

    assert [(known.key, known.sentence, False)] == [(one.key, one.sentence, one.stands) for one in fleet.alarms()]
    fleet.relay.verify()


def test_a_rule_holds_handoffs_to_an_agent_in_alarm_until_a_person_acknowledges_it() -> None:
    """Others are not held, and neither is anybody before or after."""
    fleet = changed()
    fleet.ruled(WATCHED)
    lead = fleet.relay.start("Go on", by=ANA)
    lead.hand_off("analyst", "Flag what came today")
    fleet.relay.check_alarms()

    held = lead.hand_off("analyst", "Flag what came now")
    with pytest.raises(HandoffHeldError):
        held.accept()
    lead.hand_off("drafter", "Write it down").accept()
    fleet.relay.acknowledge_alarm("analyst", by=ANA, reason="the tax office says 2.5")
    lead.hand_off("analyst", "Flag what comes next").accept()

    (alarm,) = fleet.alarms()
    assert alarm.seen is not None
    assert (ANA, "the tax office says 2.5", False) == (alarm.seen.by, alarm.seen.reason, alarm.stands)
    fleet.relay.verify()


def test_a_rule_stops_calls_of_an_agent_in_alarm_at_a_kind_of_task() -> None:
    """The caller is meant, and a pattern that does not fit the kind of task stops nothing."""
    fleet = changed()
    fleet.ruled(WATCHED)
    lead = fleet.relay.start("Go on", by=ANA)
    analyst = lead.hand_off("analyst", "Look at it").accept()
    analyst.call(look, "before")
    fleet.relay.check_alarms()

    with pytest.raises(CallDeniedError, match="rule not-now says deny"):
        analyst.call(look, "after")
    lead.call(look, "another agent")
    writing = Policy(enforce=True, rules=(Rule(name="w", on=Subject.CALL, gate=Gate.DENY, alarm="writing"),))
    fleet.ruled(writing)
    assert "fine" == analyst.call(look, "fine")


def test_an_observed_run_is_told_what_would_be_held() -> None:
    """Nothing is stopped, and the flag is in the receipt."""
    fleet = changed()
    rules = (Rule(name="ask-first", on=Subject.HANDOFF, gate=Gate.APPROVE, alarm="*"),)
    fleet.ruled(Policy(rules=rules))
    fleet.relay.check_alarms()

    fleet.clock.tick(timedelta(seconds=1))
    fleet.relay.start("Go on", by=ANA).hand_off("analyst", "Flag it").accept()

    with fleet.store.view() as view:
        offers = [read_receipt(one).body for one in view.find_receipts(ReceiptQuery(kind=Kind.HANDOFF_INITIATED))]
    flags = [body.flags for body in offers if isinstance(body, HandoffInitiated) and "would_hold" in str(body.flags)]
    assert [("would_hold.ask-first",)] == [tuple(one for one in found if "ask-first" in one) for found in flags]


def test_a_policy_is_tried_with_the_alarms_of_that_time() -> None:
    """Of the handoffs on record, those are counted that were offered while the alarm stood."""
    fleet = changed()
    fleet.relay.check_alarms()
    lead = fleet.relay.start("Go on", by=ANA)
    fleet.clock.tick(timedelta(minutes=1))
    lead.hand_off("analyst", "Flag it")
    fleet.clock.tick(timedelta(minutes=1))
    fleet.relay.acknowledge_alarm("analyst", by=ANA, reason="meant so")
    fleet.clock.tick(timedelta(minutes=1))
    lead.hand_off("analyst", "Flag it again")

    with fleet.store.view() as view:
        tried = dry_run(view, WATCHED, 50)

    assert 1 == tried.counts["ask-first"].held


def test_what_was_acknowledged_is_not_raised_again_while_it_lasts() -> None:
    """A person has decided. Once it is usual, the alarm is over, and the next change raises another one."""
    fleet = changed()
    fleet.relay.check_alarms()
    fleet.relay.acknowledge_alarm("analyst", by=ANA, reason="meant so")

    after = fleet.pass_by(1, "2.5").relay.check_alarms()
    later = fleet.pass_by(4, "2.5").relay.check_alarms()
    again = fleet.pass_by(3, "2.0").relay.check_alarms()

    assert ((), (), ()) == (after.raised, after.cleared, after.standing)
    assert ((), 1) == (later.raised, len(later.cleared))
    assert 1 == len(again.standing)
    assert 2 == len({one.key for one in fleet.alarms()})
    fleet.relay.verify()


def test_windows_that_are_well_again_clear_an_alarm() -> None:
    """With a receipt. One that nobody acknowledged does not become usual by waiting."""
    fleet = changed()
    fleet.relay.check_alarms()

    waited = fleet.pass_by(6, "2.5").relay.check_alarms()
    well = fleet.pass_by(1).relay.check_alarms()

    assert ([True], ()) == ([one.stands for one in waited.standing], waited.cleared)
    (over,) = well.cleared
    assert (False, fleet.clock.now()) == (over.stands, over.cleared_at)
    assert () == well.standing
    fleet.relay.verify()


def test_another_configuration_clears_the_alarms_of_the_one_before() -> None:
    """It has a baseline of its own, and nothing in it is known to be wrong."""
    fleet = Weeks().pass_by(2, model="a").pass_by(3, "2.5", model="a")
    fleet.relay.check_alarms()

    after = fleet.pass_by(1, "2.5", model="b").relay.check_alarms()

    assert (1, ()) == (len(after.cleared), after.standing)
    assert "the agent has another configuration" == _reason(fleet, Kind.ALARM_CLEARED)


def _reason(fleet: Weeks, kind: Kind) -> str | None:
    with fleet.store.view() as view:
        (stored,) = view.find_receipts(ReceiptQuery(kind=kind))
        return read_texts(view, read_receipt(stored))[REASON].words


def test_an_alarm_repeats_no_words_of_handoffs() -> None:
    """What is erased there is nowhere else: the constraint's value is in no content of the alarm."""
    fleet = changed()
    fleet.relay.check_alarms()

    with fleet.store.view() as view:
        (stored,) = view.find_receipts(ReceiptQuery(kind=Kind.ALARM_RAISED))
        texts = {name: text.words for name, text in read_texts(view, read_receipt(stored)).items()}
    assert {REASON, TASK_KIND} == set(texts)
    assert not any(words is None or "2.5" in words or "threshold" in words for words in texts.values())


def test_a_kind_of_task_whose_name_was_erased_is_any() -> None:
    """Erasing a name does not open a gate."""
    fleet = changed()
    fleet.relay.check_alarms()
    with fleet.store.view() as view:
        (stored,) = view.find_receipts(ReceiptQuery(kind=Kind.ALARM_RAISED))
        content = read_receipt(stored).content[TASK_KIND].id
    fleet.relay.admin.erase([ContentId(content)], by=ANA, reason="asked to")
    fleet.ruled(WATCHED)

    analyst = fleet.relay.start("Go on", by=ANA, agent="analyst")

    with pytest.raises(CallDeniedError):
        analyst.call(look, "it")
    assert [None] == [one.task_kind for one in fleet.alarms()]


def test_only_people_acknowledge_and_only_what_stands() -> None:
    """An agent lets neither itself nor others go on; a name that fits two alarms is asked back."""
    fleet = changed()
    desk = fleet.relay._furnished()
    fleet.relay.check_alarms()

    with pytest.raises(NotPersonError):
        fleet.relay.acknowledge_alarm("analyst", by="agent:analyst", reason="I am fine")
    with pytest.raises(NotFoundError):
        fleet.relay.acknowledge_alarm("drafter", by=ANA, reason="it is fine")
    desk.recording.note(an_alarm(AgentId("analyst"), 12 * "0", cause="index"))
    with pytest.raises(AmbiguousIdError):
        fleet.relay.acknowledge_alarm("analyst", by=ANA, reason="it is fine")


def test_an_async_program_checks_and_acknowledges() -> None:
    """The same acts under the same names."""
    fleet = changed()

    async def go() -> tuple[AlarmCheck, AlarmRecord]:
        relay = AsyncRelay(fleet.relay)
        assert relay.reads_alarms is False
        return await relay.check_alarms(), await relay.acknowledge_alarm("analyst", by=ANA, reason="meant so")

    checked, seen = asyncio.run(go())

    assert (1, False) == (len(checked.raised), seen.stands)


class Counted(Relay):
    """A relay that says when it was asked to check, or has trouble with it."""

    checked: Event
    trouble: StoreUnavailableError | None = None

    def check_alarms(self) -> AlarmCheck:
        """Check, and say so."""
        try:
            if self.trouble is not None:
                raise self.trouble
            return super().check_alarms()
        finally:
            self.checked.set()


@pytest.mark.parametrize(("policy", "expected"), [(WATCHED, True), (Policy(), False)], ids=["a rule", "no rule"])
def test_the_watch_checks_where_a_rule_reads_alarms(policy: Policy, expected: bool) -> None:  # noqa: FBT001 - a row
    """Where none does, nothing is compared."""
    clock = FrozenClock(NOON)
    relay = Counted(MemoryStore(), clock=clock, policy=policy)
    relay.checked = Event()
    fleet = Weeks(relay, clock).pass_by(2).pass_by(3, "2.5")

    with alarm_watch(relay):
        assert expected is relay.checked.wait(10 if expected else 0)

    assert expected is bool(fleet.alarms())


def test_the_watch_goes_on_after_trouble() -> None:
    """A store that is away for a moment is told, and ends nothing."""
    relay = Counted(MemoryStore(), policy=WATCHED)
    relay.checked, relay.trouble = Event(), StoreUnavailableError("the disk is away")
    told: list[object] = []

    with alarm_watch(relay, troubled=told.append):
        assert relay.checked.wait(10)

    assert [relay.trouble] == told


def run(ledger: Path, *given: str) -> tuple[int, Any]:
    """Run a command with `--json`."""
    answered = CliRunner().invoke(cli, [*given, "--ledger", str(ledger), "--json"])
    return answered.exit_code, json.loads(answered.stdout) if answered.stdout else answered.stderr


def test_the_commands_raise_list_and_acknowledge(tmp_path: Path) -> None:
    """`check` raises, `list` shows what stands, `drift` tells both, and what was acknowledged fails no pipeline."""
    ledger = tmp_path / ".batonpass" / "ledger.db"
    clock = FrozenClock(datetime.now(UTC) - timedelta(weeks=5))
    with Relay.open(ledger, clock=clock) as relay:
        Weeks(relay, clock).pass_by(2).pass_by(3, "2.5")

    code, checked = run(ledger, "alarm", "check")
    (raised,) = checked["raised"]
    assert (1, "constraints", True) == (code, raised["cause"], raised["stands"])
    assert (1, [raised]) == run(ledger, "alarm", "list")
    code, told = run(ledger, "drift")
    assert (1, raised) == (code, told["agents"][0]["alarms"][0]["recorded"])
    seen = run(ledger, "alarm", "acknowledge", raised["alarm"][:6], "--by", ANA, "--reason", "meant so")
    assert (0, "meant so") == (seen[0], seen[1]["acknowledged"]["reason"])
    assert (0, []) == run(ledger, "alarm", "list")
    assert (0, 0) == ((after := run(ledger, "drift"))[0], after[1]["in_alarm"])
    plain = CliRunner().invoke(cli, ["drift", "--ledger", str(ledger)])
    assert "acknowledged by user:ana)" in " ".join(plain.output.split())


@pytest.mark.parametrize("what", HOSTILE)
def test_hostile_text_in_an_alarm_is_inert(what: str, tmp_path: Path) -> None:
    """In the kind of task, the sentence and the reason of whoever acknowledges."""
    ledger = tmp_path / ".batonpass" / "ledger.db"
    with Relay.open(ledger) as relay:
        desk = relay._furnished()
        words = tuple(desk.text(name, HOSTILE[what]) for name in (REASON, TASK_KIND))
        desk.recording.note(an_alarm(AgentId("analyst"), 12 * "0"), words)
        relay.acknowledge_alarm("analyst", by=ANA, reason=HOSTILE[what])

    shown = CliRunner().invoke(cli, ["alarm", "list", "--all", "--ledger", str(ledger)]).output

    assert not any((c < " " and c != "\n") or c in "\x7f\x9b\u202e\u2066" for c in shown)
    assert "analyst 000000000000" in shown
