"""`batonpass handoff list` and `show`: what was delegated, and what came of it."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from batonpass import Brief, Grant
from batonpass.audit.meant_ids import get_handoff
from batonpass.errors import AmbiguousIdError, NotFoundError
from batonpass.handoff.tools.declaration import tool
from batonpass.model.base.lifecycle import Carrier
from batonpass.model.baton.items import OpenQuestion
from batonpass.relay import Relay, recording_of
from batonpass.testing.plain_acts import plainly
from tests.unit.cli.desk import Desk, record_in
from tests.unit.cli.handoffs import a_desk, leave_in_doubt, look_at_screen, read_file, send_mail, tell, write_file

DOUBT = r"in doubt: send_mail \w{4}: repeat or skip\? `batonpass handoff settle \w{4} \w{4}`"


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return a_desk(tmp_path)


@pytest.fixture
def relay(desk: Desk) -> Iterator[Relay]:
    with desk.relay() as opened:
        yield opened


def section(shown: str, label: str) -> list[str]:
    """Return the lines that stand under a label."""
    lines = shown.splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith(f"{label} "))
    rest = [line for line in lines[start + 1 :] if not line.startswith(" " * 12)]
    end = lines.index(rest[0], start + 1)
    return [line[12:] for line in lines[start:end]]


def test_a_handoff_is_found_by_what_people_type(relay: Relay) -> None:
    """A whole id, its last characters, what we print before them, `last`, and the agent's name lead to a handoff."""
    handoff = tell(relay).drafter.id
    given = [handoff, handoff[-8:], f"…{handoff[-8:]}", f" {handoff[-8:]} ", "last", "drafter"]
    with relay.store.view() as view:
        assert [handoff] * len(given) == [get_handoff(view, each).id for each in given]


def test_a_handoff_that_is_not_there_is_not_found(relay: Relay) -> None:
    """An empty ledger has no last handoff, and nobody has an unknown name."""
    tell(relay)
    with relay.store.view() as view:
        for given in ("nobody", "", "handoff_zz"):
            with pytest.raises(NotFoundError):
                get_handoff(view, given)


def test_several_handoffs_to_one_agent_are_told_apart(relay: Relay) -> None:
    """A name that several answer to lists them with their state and task."""
    told = tell(relay)
    for number in range(7):
        told.lead.hand_off("drafter", f"again {number}")
    with relay.store.view() as view, pytest.raises(AmbiguousIdError) as raised:
        get_handoff(view, "drafter")

    first, *_, last = raised.value.candidates
    assert (6, "… and more") == (len(raised.value.candidates), last)
    assert re.fullmatch(r'\w{4,} · handoff to drafter · \d{4}-\d\d-\d\d \d\d:\d\d:\d\d · offered · "again 6"', first)


def test_handoffs_are_listed_the_latest_first(desk: Desk, relay: Relay) -> None:
    """A list shows which, to whom, how it stands, the attempt, the age, and the task."""
    tell(relay).lead.hand_off("mailer", "Tell everybody")
    header, mailer, drafter = desk.words("handoff", "list").splitlines()

    assert ["handoff", "to", "state", "attempt", "age", "task"] == header.split()
    assert re.fullmatch(r'\w{4}     mailer   offered  0        \d+s   "Tell everybody"', mailer)
    assert re.fullmatch(r'\w{4}     drafter  failed   1        \d+s   "Make total\(\) round half-even."', drafter)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        pytest.param(["--state", "failed"], ["drafter"], id="by state"),
        pytest.param(["--open"], ["nephew", "editor", "mailer"], id="what is not over"),
        pytest.param(["--run", "editor"], ["nephew"], id="what one run handed off"),
        pytest.param(["--root", "editor", "--open"], ["nephew", "editor"], id="one tree"),
        pytest.param(["--limit", "2"], ["nephew", "editor"], id="a few"),
        pytest.param(["--state", "verified"], [], id="none"),
    ],
)
def test_a_list_can_be_narrowed(desk: Desk, relay: Relay, options: list[str], expected: list[str]) -> None:
    """State, run, tree and number make a list shorter."""
    relay.start("Other", by="user:bob").hand_off("mailer", "Tell everybody")
    editor = tell(relay).lead.hand_off("editor", "Edit").accept()
    editor.hand_off("nephew", "Help")

    assert expected == [handoff["to"] for handoff in desk.answer("handoff", "list", *options)]


def test_a_list_says_what_it_leaves_out(desk: Desk, relay: Relay) -> None:
    """Whether there is more, or nothing at all, is said on stderr."""
    tell(relay).lead.hand_off("mailer", "Tell everybody")

    assert ("the latest 1; there are more: --limit 5\n", "no such handoffs\n") == (
        desk.run("handoff", "list", "--limit", "1").stderr,
        desk.run("handoff", "list", "--state", "verified").stderr,
    )


def test_an_empty_list_says_so(desk: Desk, relay: Relay) -> None:
    """Nobody wonders whether an empty output is an answer."""
    relay.start("Nothing yet", by="user:ana")

    assert ("", "no handoffs yet\n") == (desk.run("handoff", "list").stdout, desk.run("handoff", "list").stderr)


def test_a_run_and_a_tree_are_two_questions(desk: Desk, relay: Relay) -> None:
    """Both at once is wrong usage."""
    tell(relay)

    assert 2 == desk.run("handoff", "list", "--run", "last", "--root", "last").exit_code


def test_a_failed_handoff_fits_one_screen(desk: Desk, relay: Relay, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything that a receipt of a handoff must show is there: who, for whom, what exactly, and what stays open."""
    look_at_screen(monkeypatch)
    tell(relay)
    shown = desk.words("handoff", "show", "drafter")
    lines = shown.splitlines()

    assert [True, True] == [len(lines) <= 45, max(map(len, lines)) <= 100]
    assert ["  │ Make total() round half-even.", "  │ Then tell the customers."] == lines[1:3]
    assert re.fullmatch(r'drafter ← lead \w{4} ← user:ana: "Fix invoice rounding"', section(shown, "for")[0])
    assert [
        ["carried by its caller · lead-to-worker · observed"],
        ["as inherited: nothing was asked for"],
        ["read_file path=src/invoice.py", "write_file src/invoice.py", "send_mail to=all@example.org · in doubt"],
        ['because "it can write"'],
        ["none needed"],
        ["1 statement, 1 constraint, 1 decision, 1 question"],
        ["criteria, exclusion, rejected"],
        ['"RuntimeError: connection lost"'],
    ] == [
        section(shown, label)
        for label in ("how", "granted", "used", "reasoning", "approval", "carries", "missing", "error")
    ]
    assert [
        r'blocking: "What about VAT\?" \(open when it was handed off\)',
        DOUBT,
        r"missing: 3 parts of the baton",
    ] == [
        pattern
        for pattern, line in zip(
            [
                r'blocking: "What about VAT\?" \(open when it was handed off\)',
                DOUBT,
                r"missing: 3 parts of the baton",
            ],
            section(shown, "open"),
            strict=True,
        )
        if re.fullmatch(pattern, line)
    ]


def test_credentials_are_named(desk: Desk, relay: Relay) -> None:
    """The run's own key and the relay that recorded are there; that no tool credential was recorded is said."""
    tell(relay)
    own, tools = section(desk.words("handoff", "show", "drafter"), "credential")
    answer = desk.answer("handoff", "show", "drafter")["attempts"][0]

    assert f"run key {answer['run_keys'][0][:16]}" == own.partition(" · ")[0]
    assert answer["recorded_by"][0]["relay_key"][:16] == own.rpartition(" ")[2]
    assert "for tools: none recorded" == tools


def test_a_second_attempt_shows_what_was_kept(desk: Desk, relay: Relay) -> None:
    """Both runs are listed, what was not done again is counted, and flagged and denied calls are named."""
    told = tell(relay)
    told.drafter.retry(by="user:ana", reason="once more")
    run = told.drafter.accept()
    run.call(read_file, "src/invoice.py")
    run.call(write_file, "src/invoice.py", "fixed")
    run.call(write_file, "src/invoice.py", "better")
    with pytest.raises(Exception, match="outcome is unknown"):
        run.call(send_mail, "all@example.org")
    run.hand_off("reviewer", "Review it")
    run.report("done", open_questions=["negative totals", OpenQuestion("0.005?", blocking=True)])
    shown = desk.words("handoff", "show", "drafter")

    assert [
        r"1  drafter \w{4} · failed · \S+ · 3 calls · runtime",
        r"2  drafter \w{4} · open · 1 call",
    ] == [
        pattern
        for pattern, line in zip(
            (r"1  drafter \w{4} · failed · \S+ · 3 calls · runtime", r"2  drafter \w{4} · open · 1 call"),
            section(shown, "runs"),
            strict=True,
        )
        if re.fullmatch(pattern, line)
    ]
    assert ['retried by user:ana: "once more"'] == section(shown, "decided")
    assert re.fullmatch(r"1 attempt: kept 2 calls, \S+", section(shown, "earlier")[0])
    assert ["write_file: would_hold.target-changed", "denied: send_mail: call.in-doubt"] == section(shown, "policy")[
        -2:
    ]
    assert "child: " == section(shown, "open")[-2][:7]


def test_a_close_out_shows_the_report_and_that_nobody_verified(desk: Desk, relay: Relay) -> None:
    """Effects, the report, and its open questions, blocking ones first."""
    lead = relay.start("Fix", by="user:ana")
    with lead.hand_off("editor", "Edit") as editor:
        editor.call(write_file, "src/a.py", "x")
        editor.report("all\ndone", open_questions=["negative totals", OpenQuestion("0.005?", blocking=True)])
    shown = desk.words("handoff", "show", "editor")

    assert (["│ all", "│ done"], ["unverified: nobody has verified it"]) == (
        section(shown, "report"),
        section(shown, "checked"),
    )
    assert section(shown, "outcome")[0].endswith(" · effects: write_file src/a.py")
    assert [
        'blocking: "0.005?"',
        'question: "negative totals"',
        "unverified: nobody has verified or waived this result",
    ] == section(shown, "open")[:3]


def test_verdicts_are_shown_with_who_and_how(desk: Desk, relay: Relay) -> None:
    """A verification, one that was repeated later, and the exit codes."""
    lead = relay.start("Fix", by="user:ana")
    handoff = lead.hand_off("editor", "Edit", brief=Brief(none=["rationale"]))
    with handoff as editor:
        editor.report("done")
    handoff.verify(by="user:ana", command=["true"])
    handoff.verify(by="agent:editor", command=["false"])
    first, again = section(desk.words("handoff", "show", "editor"), "checked")

    assert re.fullmatch(r"verified by user:ana · exit code 0 of `true` · \S+ \S+", first)
    assert re.fullmatch(r"again: fails by agent:editor \(its own producer\) · exit code 1 of `false` · \S+ \S+", again)


def test_a_late_outcome_is_evidence(desk: Desk, relay: Relay) -> None:
    """A call that came back after its attempt was over is shown, and stays in doubt."""
    handoff = relay.start("Fix", by="user:ana").hand_off("editor", "Edit")
    editor = handoff.accept()

    def slow() -> str:
        handoff.cancel(by="user:ana", reason="too slow")
        return "sent"

    with pytest.raises(Exception, match=r"takes no more|epoch|closed"):
        editor.call(slow)
    shown = desk.words("handoff", "show", "editor")

    assert re.fullmatch(
        r"slow \w{4} completed after its attempt was over: evidence, and no result", section(shown, "late")[0]
    )
    assert ['cancelled by user:ana: "too slow"'] == section(shown, "decided")


def test_a_lapsed_attempt_and_a_worker_are_shown(desk: Desk, relay: Relay) -> None:
    """Who carries a handoff, and that a worker was gone, is said."""
    handoff = relay.start("Fix", by="user:ana").hand_off("editor", "Edit", carrier=Carrier.WORKER)
    plainly(recording_of(relay)).accept(handoff.id)
    plainly(recording_of(relay)).lapse(handoff.id)
    shown = desk.words("handoff", "show", "editor")

    assert ["carried by a worker · lead-to-worker · observed"] == section(shown, "how")
    assert re.fullmatch(r"attempt 1 lapsed .* its worker was gone", section(shown, "decided")[0])


def test_a_question_and_its_answer_are_shown(desk: Desk, relay: Relay) -> None:
    """Without an answer it stays open; with one it is the next revision."""
    handoff = relay.start("Fix", by="user:ana").hand_off("editor", "Edit")
    handoff.ask("Which module?")
    asked = desk.words("handoff", "show", "editor")
    handoff.answer("invoice", by="user:ana")

    assert (['"Which module?" → no answer yet'], 'needs an answer: "Which module?"') == (
        section(asked, "questions"),
        section(asked, "open")[0],
    )
    assert ['"Which module?" → "invoice" · user:ana · revision 1'] == section(
        desk.words("handoff", "show", "editor"), "questions"
    )


def test_a_long_chain_is_shortened(desk: Desk, relay: Relay, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who it is for is said however deep it is."""
    look_at_screen(monkeypatch)
    run = relay.start("Fix", by="user:ana")
    for number in range(12):
        run = run.hand_off(f"agent-{number}", "further").accept()
    chain, human = section(desk.words("handoff", "show", "agent-11"), "for")

    assert 'user:ana: "Fix"' == human
    assert re.fullmatch(
        r"agent-11 ← agent-10 \w+ ← agent-9 \w+ ← agent-8 \w+ ← \(8 more\) ← lead \w+ ←", chain.rstrip()
    )


def test_a_handoff_of_the_lowest_level_is_shown_too(tmp_path: Path) -> None:
    """A handoff that was recorded without a baton shows what there is."""
    shown = record_in(tmp_path).words("handoff", "show", "editor")

    assert (["nothing but the task"], ["nothing was asked for"]) == (
        section(shown, "carries"),
        [section(shown, "granted")[0].removeprefix("as inherited: ")],
    )
    assert ["│ done", "│ negative totals untested"] == section(shown, "report")


def test_erased_words_show_as_erased(desk: Desk, relay: Relay) -> None:
    """Task, report and arguments that were erased leave the screen whole."""
    lead = relay.start("Fix", by="user:ana")
    with lead.hand_off("editor", "Edit", brief=Brief(rationale="because")) as editor:
        editor.call(write_file, "src/a.py", "x")
        editor.report("done")
    lead.close()
    for run in ("editor", "lead"):
        desk.run("ledger", "erase", run, "--reason", "privacy", "--yes")
    shown = desk.words("handoff", "show", "editor")

    assert ("  │ erased", ["│ erased"], ["write_file erased"]) == (
        shown.splitlines()[1],
        section(shown, "report"),
        section(shown, "used"),
    )
    assert [["the words are no longer here"]] * 2 == [section(shown, label) for label in ("granted", "reasoning")]


def test_programs_get_everything(desk: Desk, relay: Relay) -> None:
    """JSON has whole ids and texts of what the screen shortens."""
    told = tell(relay)
    shown = desk.answer("handoff", "show", "drafter")

    assert (told.drafter.id, told.lead.id, "user:ana", "failed") == (
        shown["id"],
        shown["parent"],
        shown["principal"],
        shown["state"],
    )
    assert ("Make total() round half-even.\nThen tell the customers.", [], "it can write") == (
        shown["task"]["text"],
        shown["scope"]["granted"],
        shown["reasoning"]["rationale"],
    )
    assert (["read_file", "write_file", "send_mail"], ["send_mail"], 3) == (
        [call["tool"] for call in shown["scope"]["used"]],
        [call["tool"] for call in shown["open"]["in_doubt"]],
        len(shown["open"]["missing"]),
    )


def test_what_is_not_there_is_no(desk: Desk, relay: Relay) -> None:
    """An unknown handoff exits with 1, in words and in JSON."""
    tell(relay)

    assert (1, "id.not_found") == (
        desk.run("handoff", "show", "nobody").exit_code,
        desk.answer("handoff", "show", "nobody")["error"]["code"],
    )


def test_what_was_granted_is_set_against_what_was_used(desk: Desk, relay: Relay) -> None:
    """Once it is over: the least that would have done, what was never used, and who was asked for it by whom."""
    write = tool("write_file", target="path")(lambda path: path)
    lead = relay.start("Fix it", by="user:ana", grant=Grant(may_delegate=["write:src/**", "read:**"]))
    with lead.hand_off("editor", "Edit", may=["write:src/**", "read:**"]) as editor:
        editor.call(write, "src/a.py")
        editor.call(write, "src/a.py")
        assert "enough" not in desk.words("handoff", "show", "editor")
    with lead.hand_off("idler", "Do nothing", may=["write:src/a.py"]):
        pass
    shown, idle = (desk.words("handoff", "show", name) for name in ("editor", "idler"))
    facts = json.loads(desk.run("handoff", "show", "editor", "--json").stdout)

    assert [
        ["read:**, write:src/** (granted by lead)"],
        ["write_file src/a.py ×2 · by write:src/**"],
        ["read:**"],
        ["write:src/a.py (2 calls)"],
        ["nothing"],
        ["write:src/a.py"],
        ["no grant: nothing was used"],
    ] == [
        section(shown, "granted"),
        *(section(one, label) for one in (shown, idle) for label in ("used", "unused", "enough")),
    ]
    assert [{"permit": "write:src/a.py", "calls": 2}] == facts["scope"]["use"]["least"]


def test_a_call_in_doubt_may_have_changed_something(desk: Desk, relay: Relay) -> None:
    """Where nothing is known to have changed, and nobody knows about a call, nobody is told that nothing changed."""
    lead = relay.start("Charge them", by="user:ana")
    run = lead.hand_off("cashier", "Charge the customer").accept()
    leave_in_doubt(run)
    run.fail(RuntimeError("connection lost"))
    shown = desk.words("handoff", "show", "cashier")

    assert "changed nothing" not in shown
    assert "nothing is known to have changed; in doubt: send_mail to=all@example.org" in shown


def test_nothing_is_cut_in_a_pipe(desk: Desk, relay: Relay) -> None:
    """Where nobody looks at a screen, its width cuts nothing; whoever reads it with a program gets whole lines."""
    long = "please " * 40 + "end"
    relay.start("x", by="user:ana").hand_off("editor", long)

    assert f"  │ {long}\n" in desk.words("handoff", "show", "editor")
