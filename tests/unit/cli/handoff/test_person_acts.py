"""What a person does about a handoff: answer, judge, try again, settle, withdraw."""

import itertools
import json
import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from batonpass import Brief
from batonpass.cli.handoff import person_acts
from batonpass.errors import StreamClosedError
from batonpass.handoff.calls.begin import begin_call
from batonpass.handoff.live.faces import LiveRun
from batonpass.handoff.tools.declaration import declared_of, tool
from batonpass.handoff.tools.tool_call import ToolCall
from batonpass.model.base.lifecycle import Carrier, State
from batonpass.relay import Relay
from tests.unit.cli.desk import Desk
from tests.unit.cli.handoffs import a_desk, fail, leave_in_doubt, tell


@tool(idempotent=True)
def book(number: str) -> str:
    """Book it, however often it is asked for."""
    return number


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return a_desk(tmp_path)


@pytest.fixture
def relay(desk: Desk) -> Iterator[Relay]:
    with desk.relay() as opened:
        yield opened


@pytest.fixture
def lead(relay: Relay) -> LiveRun:
    return relay.start("Fix", by="user:ana")


def delivered(lead: LiveRun, *, verify_by: tuple[str, ...] = ()) -> None:
    with lead.hand_off("editor", "Edit", brief=Brief(verify_by=verify_by)) as editor:
        editor.report("done")


def test_a_retry_says_what_is_kept_and_in_doubt(desk: Desk, relay: Relay) -> None:
    """Only the drafter is tried again; what it finished is kept, and the mail is put before whoever decides."""
    told = tell(relay)
    done = desk.run("handoff", "retry", "last")
    call = desk.answer("handoff", "show", "last")["open"]["in_doubt"][0]["id"]

    assert re.fullmatch(
        r"drafter only · kept 2 calls, \d+ms · in doubt: send_mail \(repeat or skip\?\)\n",
        done.stdout,
    )
    assert [
        f"  batonpass handoff settle {told.drafter.id[-6:]} {call[-6:]} --repeat (or --skip)",
        f'  it waits for its caller: continue its root run with relay.resume("{told.lead.id}"),',
        f'  or take it with relay.handoff("{told.drafter.id}").run(…)',
    ] == done.stderr.splitlines()


def test_a_retry_of_a_tree_that_is_over_says_so(desk: Desk, relay: Relay) -> None:
    """A root run that ended cannot be gone on with; the handoff can be taken all the same."""
    told = tell(relay)
    told.lead.close()
    done = desk.run("handoff", "retry", "drafter", "--skip", "send_mail")

    assert [
        "  it waits for a caller, and its root run is completed:",
        f'  take it with relay.handoff("{told.drafter.id}").run(…)',
    ] == done.stderr.splitlines()


def test_a_worker_s_handoff_waits_for_a_worker(desk: Desk, lead: LiveRun) -> None:
    """After a retry of what workers carry, nothing more has to be done."""
    handoff = lead.hand_off("editor", "Edit", carrier=Carrier.WORKER)
    handoff.decline("too busy")
    done = desk.run("handoff", "retry", "editor")

    assert ("editor only · kept 0 calls, 0ms\n", "  a worker will take it\n") == (done.stdout, done.stderr)


@pytest.mark.parametrize(
    ("option", "expected"),
    [
        pytest.param("--skip", ("skip", "send_mail to=all@example.org · no outcome: taken as done"), id="skip"),
        pytest.param(
            "--repeat", ("repeat", "send_mail to=all@example.org · no outcome: to be made again"), id="repeat"
        ),
    ],
)
def test_a_retry_settles_calls_in_doubt(desk: Desk, relay: Relay, option: str, expected: tuple[str, str]) -> None:
    """What is decided along with a retry is recorded, and nothing stays in doubt."""
    tell(relay)
    done = desk.run("handoff", "retry", "drafter", option, "send_mail")
    shown = desk.answer("handoff", "show", "drafter")

    assert (True, [], [expected[0]]) == (
        "in doubt" not in done.stdout,
        shown["open"]["in_doubt"],
        [act["settlement"] for act in shown["acts"] if act["kind"] == "handoff.settled"],
    )
    assert expected[1] in desk.words("handoff", "show", "drafter")
    said = expected[1].rpartition(" · ")[2]
    assert [said] == [cells[1] for cells in calls_of(desk, "drafter") if cells[0] == "send_mail"]


def test_a_call_that_a_later_attempt_made_again_is_not_in_doubt(desk: Desk, lead: LiveRun) -> None:
    """The run that began it says so, although another run made it: nobody is asked what to do about it."""
    handoff = lead.hand_off("clerk", "Book it")
    first = handoff.accept()
    begin_call(first._desk, first._holding, ToolCall(declared_of(book), book, ("12",)))
    first.fail(RuntimeError("connection lost"))
    handoff.retry(by="user:ana")
    with handoff as second:
        second.call(book, "12")
    (made,) = desk.answer("run", "show", second.id)["calls"]

    assert [["book", f"no outcome: made again as {made['id'][-4:]}"], ["book", "completed"]] == [
        cells[:2] for run in (first.id, second.id) for cells in calls_of(desk, run)
    ]


def calls_of(desk: Desk, run: str) -> list[list[str]]:
    """Return the cells of the calls that `run show` lists."""
    lines = desk.words("run", "show", run).splitlines()
    first = next(number for number, line in enumerate(lines) if re.fullmatch(r"\d+ calls?", line)) + 1
    rows = itertools.takewhile(lambda line: line.startswith("  "), lines[first:])
    return [re.split(r" {2,}", row.strip()) for row in rows]


def test_a_refused_retry_settles_nothing(desk: Desk, relay: Relay) -> None:
    """If a handoff cannot be tried again, what was to be decided along with it is not decided."""
    tell(relay).drafter.retry(by="user:ana")
    done = desk.run("handoff", "retry", "drafter", "--skip", "send_mail")

    assert (1, ["handoff.retried"]) == (
        done.exit_code,
        [act["kind"] for act in desk.answer("handoff", "show", "drafter")["acts"]],
    )


def test_settling_names_one_call(desk: Desk, relay: Relay) -> None:
    """A call is meant by its last characters or its tool; if two answer, they are listed."""
    handoff = tell(relay).drafter
    run = relay.handoff(handoff.id)
    run.retry(by="user:ana")
    child = run.accept()
    leave_in_doubt(child, "bob@example.org")
    child.fail(RuntimeError("again"))
    ambiguous = desk.run("handoff", "settle", "drafter", "send_mail", "--skip")
    call = desk.answer("handoff", "show", "drafter")["open"]["in_doubt"][1]["id"]
    settled = desk.run("handoff", "settle", "drafter", call[-6:], "--repeat", "--by", "user:bob")

    assert (1, 3) == (ambiguous.exit_code, len(ambiguous.stderr.splitlines()))
    assert (0, f"drafter {handoff.id[-4:]} · failed · repeat {call[-4:]}: user:bob\n") == (
        settled.exit_code,
        settled.stdout,
    )
    assert 1 == len(desk.answer("handoff", "show", "drafter")["open"]["in_doubt"])


def test_problems_are_listed_before_anybody_accepts(desk: Desk, relay: Relay) -> None:
    """What blocks comes first, with whom it asks; nothing is recorded, and the exit code says whether it blocks."""
    lead = relay.start("Report it", by="user:ana")
    sound = lead.hand_off("writer", "Write two pages about the east", criteria=["two pages"])
    handoff = lead.hand_off("adder", "Add it up", criteria=["a sum"], brief=Brief(inputs=["q3.csv"]))
    with relay.store.view() as view:
        before = view.last_position()
    done = desk.run("handoff", "check", handoff.id[-6:])
    facts = json.loads(desk.run("handoff", "check", handoff.id[-6:], "--json").stdout)

    assert 1 == done.exit_code
    assert [True, True] == ["1 blocking" in done.stdout, "q3.csv" in done.stdout.splitlines()[1]]
    assert (1, "blocking", "producer") == (
        facts["blocking"],
        facts["problems"][0]["weight"],
        facts["problems"][0]["whom"],
    )
    assert 0 == desk.run("handoff", "check", sound.id[-6:]).exit_code
    with relay.store.view() as view:
        assert before == view.last_position()
    handoff.waive("not needed", by="user:ana")
    assert 0 == desk.run("handoff", "check", handoff.id[-6:]).exit_code


def test_a_late_outcome_is_taken_by_one_command(desk: Desk, relay: Relay) -> None:
    """The worker was given up while its call was under way; `--late` makes what came afterwards the outcome."""
    handoff = relay.start("Ship", by="user:ana").hand_off("shipper", "Ship it", carrier="worker")
    made: list[str] = []

    @tool("ship", target="place")
    def ship(place: str) -> str:
        made.append(place)
        relay.sweep()
        return f"shipped to {place}"

    with pytest.raises(StreamClosedError):
        handoff.accept(lease=relay.claim(holder="w", lease_for=timedelta(0))).call(ship, "prod")
    settled = desk.run("handoff", "settle", "shipper", "ship", "--late", "--by", "user:bob")
    lease = relay.claim(holder="w", lease_for=timedelta(minutes=5))

    assert (0, True) == (settled.exit_code, " late " in settled.stdout)
    assert ("shipped to prod", ["prod"]) == (handoff.accept(lease=lease).call(ship, "prod"), made)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        pytest.param(["settle", "drafter", "send_mail"], 2, id="neither repeat nor skip"),
        pytest.param(["settle", "drafter", "nothing", "--skip"], 1, id="no such call"),
        pytest.param(["settle", "drafter", "", "--skip"], 1, id="an empty call"),
        pytest.param(["refute", "drafter"], 2, id="no reason"),
        pytest.param(["refute", "drafter", "--reason", ""], 2, id="an empty reason"),
        pytest.param(["refute", "drafter", "--reason", "no"], 1, id="nothing delivered"),
        pytest.param(["retry", "drafter", "--by", "ana"], 2, id="not a principal"),
        pytest.param(["replace", "drafter", "two words"], 2, id="not an agent"),
        pytest.param(["verify", "drafter", "--verdict", "fine", "--", "true"], 2, id="two kinds of evidence"),
        pytest.param(["verify", "drafter", "--", "true"], 1, id="nothing to verify"),
        pytest.param(["approve", "drafter"], 1, id="not held"),
        pytest.param(["answer", "drafter", "yes"], 1, id="nobody asked"),
        pytest.param(["decline", "drafter", "--reason", "no"], 1, id="taken already"),
        pytest.param(["waive", "drafter", "--reason", "no"], 1, id="nothing to accept"),
        pytest.param(["retry", "nobody"], 1, id="no such handoff"),
    ],
)
def test_what_cannot_be_done_is_refused(desk: Desk, relay: Relay, arguments: list[str], code: int) -> None:
    """Wrong usage is 2, no is 1, and nothing is recorded."""
    tell(relay)
    before = desk.answer("ledger", "stats")["receipts"]

    assert (code, before) == (desk.run("handoff", *arguments).exit_code, desk.answer("ledger", "stats")["receipts"])


def test_another_agent_gets_the_same_baton(desk: Desk, relay: Relay) -> None:
    """A replacement keeps what the first agent finished."""
    told = tell(relay)
    done = desk.run("handoff", "replace", "drafter", "expert", "--reason", "it knows better", "--skip", "send_mail")

    assert ("expert", State.OFFERED) == (told.drafter.info().to, told.drafter.state())
    assert re.fullmatch(r"expert only · kept 2 calls, \S+\n", done.stdout)


def test_a_question_is_answered(desk: Desk, lead: LiveRun) -> None:
    """The answer is the next revision, by whoever gave it."""
    handoff = lead.hand_off("editor", "Edit")
    handoff.ask("Which module?")
    done = desk.run("handoff", "answer", "editor", "invoice", "--by", "user:bob")

    assert ("invoice", "user:bob", 1) == (
        handoff.baton().answers[0].answer,
        handoff.baton().answers[0].by,
        handoff.baton().revision,
    )
    assert f"editor {handoff.id[-4:]} · offered · answered by user:bob · revision 1\n" == done.stdout


def test_a_command_decides(desk: Desk, lead: LiveRun) -> None:
    """Exit code 0 holds; the end of what the command wrote is told on stderr."""
    delivered(lead)
    done = desk.run("handoff", "verify", "editor", "--", "sh", "-c", "seq 20")

    assert re.fullmatch(
        r"editor \w{4} · verified by user:tess · exit code 0 of `sh -c seq 20` · \S+ \S+\n", done.stdout
    )
    assert ["  │ … 8 lines before", "  │ 9", "  │ 20"] == [done.stderr.splitlines()[line] for line in (0, 1, -1)]


def test_a_result_that_does_not_hold_is_no(desk: Desk, lead: LiveRun) -> None:
    """A failing command refutes; checked again later, the verdict stays and the new finding stands beside it."""
    delivered(lead)
    first = desk.run("handoff", "verify", "editor", "--", "false")
    again = desk.run("handoff", "verify", "editor", "--", "true")
    shown = desk.answer("handoff", "show", "editor")

    assert (1, 0, "refuted", ["verification.failed", "verification.repeated"]) == (
        first.exit_code,
        again.exit_code,
        shown["state"],
        [act["kind"] for act in shown["verification"]],
    )


def test_the_offer_may_name_the_command(desk: Desk, lead: LiveRun, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is shown before it runs; a person is asked, because an agent may have written it."""
    delivered(lead, verify_by=("sh", "-c", "echo from the offer"))
    monkeypatch.setattr(person_acts, "is_person", lambda: True)
    refused = desk.run("handoff", "verify", "editor", typed="n\n")
    done = desk.run("handoff", "verify", "editor", "--yes")

    assert (130, 0) == (refused.exit_code, done.exit_code)
    assert ["the offer names this command: sh -c echo from the offer", "  │ from the offer"] == done.stderr.splitlines()


def test_without_a_command_somebody_has_to_judge(desk: Desk, lead: LiveRun) -> None:
    """If neither the caller nor the offer names a command, what is missing is said."""
    delivered(lead)
    done = desk.run("handoff", "verify", "editor")

    assert (2, True) == (done.exit_code, "the offer names no command" in done.stderr)


def test_no_command_runs_for_nothing(desk: Desk, lead: LiveRun, tmp_path: Path) -> None:
    """A command is not run on a handoff that delivered nothing."""
    lead.hand_off("editor", "Edit", brief=Brief(verify_by=["touch", str(tmp_path / "ran")]))
    done = desk.run("handoff", "verify", "editor", "--yes")

    assert (1, False) == (done.exit_code, (tmp_path / "ran").exists())


def test_a_command_that_cannot_run_is_no(desk: Desk, lead: LiveRun) -> None:
    """A program that is not there verifies nothing."""
    delivered(lead)
    done = desk.run("handoff", "verify", "editor", "--", "no-such-program")

    assert (1, True) == (done.exit_code, "could not be run" in done.stdout)


def test_a_person_may_judge(desk: Desk, lead: LiveRun) -> None:
    """A verdict needs no command, and says why."""
    delivered(lead)

    assert re.fullmatch(
        r'editor \w{4} · verified by user:tess · verdict "I read it" · \S+ \S+\n',
        desk.words("handoff", "verify", "editor", "--verdict", "I read it"),
    )


def test_a_refutation_says_why(desk: Desk, lead: LiveRun) -> None:
    """What does not hold can be tried again."""
    delivered(lead)
    done = desk.run("handoff", "refute", "editor", "--reason", "wrong file")

    assert (0, True, State.REFUTED) == (done.exit_code, 'verdict "wrong file"' in done.stdout, _state(desk))
    assert 0 == desk.run("handoff", "retry", "editor").exit_code


def test_a_result_may_be_accepted_unverified(desk: Desk, lead: LiveRun) -> None:
    """It stays completed, and is open no more."""
    delivered(lead)
    done = desk.words("handoff", "waive", "editor", "--reason", "only a draft")
    shown = desk.answer("handoff", "show", "editor")

    assert ("completed", False) == (shown["state"], shown["open"]["unverified"])
    assert done.endswith('accepted unverified by user:tess: "only a draft"\n')


@pytest.mark.parametrize(
    ("hold", "question"),
    [
        pytest.param(False, None, id="offered"),
        pytest.param(True, None, id="held"),
        pytest.param(False, "Which module?", id="asked"),
    ],
)
def test_whatever_waits_can_be_withdrawn(desk: Desk, lead: LiveRun, *, hold: bool, question: str | None) -> None:
    """Cancelling ends a handoff as cancelled, whatever it waits for."""
    handoff = lead.hand_off("editor", "Edit", hold=hold)
    if question is not None:
        handoff.ask(question)
    done = desk.run("handoff", "cancel", "editor", "--reason", "enough")

    assert (0, State.CANCELLED) == (done.exit_code, handoff.state())


def test_withdrawing_reaches_the_children(desk: Desk, lead: LiveRun) -> None:
    """Nobody works on for a task that was withdrawn."""
    child = lead.hand_off("editor", "Edit").accept().hand_off("helper", "Help")
    desk.words("handoff", "cancel", "editor", "--reason", "enough")

    assert State.CANCELLED == child.state()


def test_a_person_may_decline_for_an_agent(desk: Desk, lead: LiveRun) -> None:
    """The reason is kept, and who said so."""
    lead.hand_off("editor", "Edit")
    desk.words("handoff", "decline", "editor", "--reason", "it is on leave")

    assert '\ndecided     declined by user:tess · declined: "it is on leave"\n' in desk.words(
        "handoff", "show", "editor"
    )


def test_programs_get_how_it_stands(desk: Desk, relay: Relay) -> None:
    """Every act answers with the whole handoff, as `show` does."""
    tell(relay)
    retried = desk.answer("handoff", "retry", "drafter")
    cancelled = desk.answer("handoff", "cancel", "drafter", "--reason", "enough")

    assert ("offered", ["send_mail"], "cancelled") == (
        retried["state"],
        [call["tool"] for call in retried["open"]["in_doubt"]],
        cancelled["state"],
    )


def test_the_ledger_stays_whole(desk: Desk, relay: Relay) -> None:
    """Whatever people did, everything verifies."""
    told = tell(relay)
    desk.words("handoff", "retry", "drafter", "--repeat", "send_mail")
    fail(told.drafter)
    desk.words("handoff", "replace", "drafter", "expert", "--skip", "send_mail")
    with told.drafter as expert:
        expert.report("done")
    desk.words("handoff", "verify", "last", "--verdict", "fine")
    told.lead.close()

    assert 0 == desk.run("ledger", "verify").exit_code


def _state(desk: Desk) -> str:
    return str(desk.answer("handoff", "show", "editor")["state"])


BY = ("--by", "user:ana", "--reason", "r")
ACTS = {
    "approve": ("--yes", *BY),
    "deny": ("--yes", *BY),
    "answer": ("yes",),
    "verify": ("--verdict", "fine"),
    "refute": BY,
    "waive": BY,
    "retry": (),
    "replace": ("another",),
    "cancel": BY,
    "decline": BY,
}


def stand(relay: Relay, state: str) -> str:
    """Let a handoff come to a state; return its last characters."""
    lead = relay.start("Fix it", by="user:ana")
    handoff = lead.hand_off("editor", "Make it", hold=state == "held")
    if state in {"completed", "failed", "running"}:
        run = handoff.accept()
        if state == "completed":
            run.report("done")
            run.close()
        elif state == "failed":
            run.fail(RuntimeError("no"))
    if state == "cancelled":
        handoff.cancel(by="user:ana", reason="no")
    return handoff.id[-6:]


@pytest.mark.parametrize("state", ["held", "offered", "running", "completed", "failed", "cancelled"])
def test_what_is_possible_is_said_and_true(desk: Desk, relay: Relay, state: str) -> None:
    """An act that the state does not allow says which state that is, and which commands are possible; they are."""
    refused, possible = {}, set()
    for act, more in ACTS.items():
        given = stand(relay, state)
        done = desk.run("handoff", act, given, *more)
        if f"  it is {state}; " in done.stderr:
            refused[act] = re.findall(r"`batonpass handoff (\w+) \w{4}`", done.stderr)
            assert (1, not refused[act]) == (done.exit_code, "nothing more can be done with it" in done.stderr)
        else:
            assert 0 == done.exit_code, (act, done.output)
            possible.add(act)

    assert refused
    assert [] == [(act, said) for act, said in refused.items() if not set(said) <= possible]
    assert [possible - {"cancel", "decline"}] * len(refused) == [
        set(said) - {"cancel", "decline"} for said in refused.values()
    ]


def refuted_input(lead: LiveRun) -> None:
    """Let a child be wrong, let another fail on that, and have the first one redone."""
    rate = lead.hand_off("finder", "Find the rate")
    with rate as finder:
        finder.attach("rates.csv", "3")
        finder.report("3 %")
    with pytest.raises(RuntimeError), lead.hand_off("adder", "Add it up"):
        raise RuntimeError("boom")
    rate.refute("it is 2.5 %", by="user:ana")
    with lead.hand_off("finder", "Find the rate") as finder:
        finder.attach("rates.csv", "2.5")
        finder.report("2.5 %")


def test_a_retry_whose_inputs_were_refuted_waits_for_a_word(desk: Desk, lead: LiveRun) -> None:
    """Nothing is recorded until somebody says which inputs it gets; then it gets those."""
    refuted_input(lead)
    refused = desk.run("handoff", "retry", "adder")
    after = [act["kind"] for act in desk.answer("handoff", "show", "adder")["acts"]]
    done = desk.run("handoff", "retry", "adder", "--fresh")

    assert (1, True, []) == (refused.exit_code, "rates.csv was superseded" in refused.stderr, after)
    assert (0, ["handoff.revised", "handoff.retried"]) == (
        done.exit_code,
        [act["kind"] for act in desk.answer("handoff", "show", "adder")["acts"]],
    )
    assert "inputs revised by" in desk.words("handoff", "show", "adder")
    with lead.hand_off("adder", "Add it up") as adder:
        assert b"2.5" == adder.read("rates.csv")


def test_a_retry_with_the_same_inputs_keeps_them(desk: Desk, lead: LiveRun) -> None:
    """Who knows what they do gets what there was."""
    refuted_input(lead)
    done = desk.run("handoff", "retry", "adder", "--same")

    assert (0, ["handoff.retried"]) == (
        done.exit_code,
        [act["kind"] for act in desk.answer("handoff", "show", "adder")["acts"]],
    )


def test_stale_and_unverified_handoffs_are_listed(desk: Desk, lead: LiveRun) -> None:
    """What stands on a refuted result is named with that; what nobody verified is listed; combinations are refused."""
    refuted_input(lead)
    lead.hand_off("finder", "Find the rate").verify(by="agent:finder", verdict="I am sure")
    stale = desk.run("handoff", "list", "--stale")
    unverified = desk.answer("handoff", "list", "--unverified")

    assert (0, True) == (stale.exit_code, "adder" in stale.stdout and "finder" not in stale.stdout)
    assert "adder: rates.csv was superseded (user:ana refuted the result of finder)" in stale.stderr
    assert ["superseded", "superseded"] == [
        one["fate"] for one in desk.answer("handoff", "list", "--stale")[0]["stands_on"]
    ]
    assert ["finder"] == [one["to"] for one in unverified]
    for options in (("--stale", "--open"), ("--unverified", "--state", "failed")):
        assert 2 == desk.run("handoff", "list", *options).exit_code


def test_a_handoff_shows_what_it_was_told_no_longer_stands(desk: Desk, lead: LiveRun) -> None:
    """By whom it was refuted and why; the trail counts it, and says which handoff a new one replaces."""
    refuted_input(lead)
    again = lead.hand_off("adder", "Add it up")
    shown, trail = desk.words("handoff", "show", again.id), desk.words("trail", "last")

    assert "2 items superseded: user:ana refuted the result of finder, attempt 1: it is 2.5 %" in shown
    assert "which was offered with inputs that have changed since" in shown
    assert ("told that 2 of these no longer stand" in trail, "whose inputs have changed" in trail) == (True, True)
