"""`batonpass trail`: a tree, a chart, a page, or JSON; from the root or from somewhere below."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from batonpass import Constraint
from batonpass.relay import Relay, recording_of
from batonpass.testing.plain_acts import plainly
from tests.unit.accounts.trees import HOSTILE
from tests.unit.cli.desk import Desk
from tests.unit.cli.handoff.test_hostile_handoffs import obeyed
from tests.unit.cli.handoffs import Told, a_desk, send_mail, tell


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return a_desk(tmp_path)


@pytest.fixture
def relay(desk: Desk) -> Iterator[Relay]:
    with desk.relay() as opened:
        yield opened


@pytest.fixture
def told(relay: Relay) -> Told:
    return tell(relay)


def test_a_tree_is_printed(desk: Desk, told: Told) -> None:
    """For whom, who, what happened, and how large the record is."""
    lines = desk.words("trail", "last").splitlines()

    assert '          user:ana: "Fix invoice rounding"' == lines[0]
    assert f"    +0ms  └─ lead {told.lead.id[-4:]}  open" == lines[1]
    assert f"{told.lead.id} · 11 receipts · observed" == " · ".join(lines[-1].split(" · ")[:3])
    assert 1 == sum("send_mail to=all@example.org · in doubt" in line for line in lines)


@pytest.mark.parametrize("given", ["drafter", "id"])
def test_a_branch_is_printed_from_there_downwards(desk: Desk, told: Told, given: str) -> None:
    """By an agent's name or the end of an id; `--whole` shows all of its tree."""
    wanted = told.drafter.id if given == "id" else given

    assert "constraint" not in desk.words("trail", wanted)
    assert desk.words("trail", "lead").splitlines()[1:] == desk.words("trail", wanted, "--whole").splitlines()[1:]
    assert f"lead {told.lead.id[-4:]} ← user:ana" in desk.words("trail", wanted)


def test_calls_can_be_left_out(desk: Desk, told: Told) -> None:
    """In every form."""
    for form in ([], ["--html"], ["--mermaid"], ["--json"]):
        assert [True, False] == [
            "mail" in desk.words("trail", told.lead.id, calls, *form) for calls in ("--calls", "--no-calls")
        ]


def test_programs_get_it_flat(desk: Desk, told: Told) -> None:
    """Runs and handoffs by id, each with what happened in it, in order."""
    facts = desk.answer("trail", "last")

    assert (told.lead.id, told.lead.id, "user:ana", []) == tuple(
        facts[name] for name in ("root", "top", "principal", "above")
    )
    assert ["run.started", "run.recorded", "run.recorded", "handoff.initiated"] == [
        event["kind"] for event in facts["runs"][0]["events"]
    ]
    assert [("read_file", False), ("write_file", False), ("send_mail", True)] == [
        (event["tool"], event["in_doubt"]) for event in facts["runs"][1]["events"] if event["kind"] == "call"
    ]
    assert [{"run": facts["runs"][1]["id"]}] == facts["handoffs"][0]["story"]
    assert "What about VAT? (blocking)" == facts["handoffs"][0]["offered"]["items"][0]["words"]["text"]


def test_programs_get_only_what_is_below(desk: Desk, told: Told) -> None:
    """A branch names who is above it, and holds nothing else of them."""
    facts = desk.answer("trail", told.drafter.id)

    assert ([told.lead.id], 1, 1) == (facts["above"], len(facts["runs"]), len(facts["handoffs"]))


def test_a_page_goes_to_a_file(desk: Desk, told: Told, tmp_path: Path) -> None:
    """It appears when all of it is written, and is what stdout would have got."""
    page = tmp_path / "trail.html"
    done = desk.run("trail", "last", "--html", "-o", str(page))

    assert (0, "", f"wrote {page}: 11 receipts of {told.lead.id}\n") == (done.exit_code, done.stdout, done.stderr)
    assert desk.words("trail", "last", "--html") == page.read_text(encoding="utf-8")


def test_a_chart_is_printed(desk: Desk, told: Told) -> None:
    """As lines that can be put into a document."""
    lines = desk.words("trail", told.lead.id, "--mermaid").splitlines()

    assert ("flowchart TD", True) == (lines[0], lines[1].startswith('  h(["user#58;ana<br/>'))


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(["-o", "x"], id="a file for lines"),
        pytest.param(["--json", "--html"], id="two forms"),
        pytest.param(["--html", "-o", "/nowhere/x"], id="a file that cannot be"),
    ],
)
def test_wrong_usage(desk: Desk, told: Told, arguments: list[str]) -> None:
    """What does not go together is said, with exit code 2."""
    assert told.lead.id
    assert 2 == desk.run("trail", "last", *arguments).exit_code


def test_nothing_there(desk: Desk, relay: Relay) -> None:
    """Exit code 1, also as JSON."""
    assert recording_of(relay) is not None
    done = desk.run("trail", "last")

    assert (1, "batonpass: no run 'last' in this ledger") == (done.exit_code, done.stderr.partition(" [")[0])
    assert "id.not_found" == desk.answer("trail", "nobody")["error"]["code"]


@pytest.mark.parametrize("words", HOSTILE.values(), ids=HOSTILE.keys())
def test_the_terminal_obeys_nobody(desk: Desk, relay: Relay, words: str) -> None:
    """Whatever was written, in every form."""
    lead = relay.start(words, by="user:ana", items=[Constraint(words)])
    handoff = lead.hand_off("editor", words, hold=True)
    handoff.approve(by="user:ana", reason=words)
    run = handoff.accept()
    run.call(send_mail, words)
    run.report(words)
    run.close()

    for form in ([], ["--html"], ["--mermaid"], ["--json"]):
        assert [] == obeyed(desk.words("trail", "last", *form))
    assert [] == obeyed(desk.words("why", "last"))


def test_on_a_terminal_a_line_is_cut(desk: Desk, relay: Relay, monkeypatch: pytest.MonkeyPatch) -> None:
    """It ends where the screen ends, and says so."""
    monkeypatch.setattr("batonpass.cli.output.terminal.is_terminal", lambda: True)
    monkeypatch.setenv("COLUMNS", "50")
    relay.start("word " * 100, by="user:ana")
    lines = desk.words("trail", "last").splitlines()[:-1]

    assert (50, True) == (max(len(line) for line in lines), lines[0].endswith("…"))


def test_on_a_narrow_terminal_the_outcome_stays(desk: Desk, relay: Relay, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a call was given is cut first: that it failed, or has no outcome, is what people look for."""
    monkeypatch.setattr("batonpass.cli.output.terminal.is_terminal", lambda: True)
    monkeypatch.setenv("COLUMNS", "80")
    recording = plainly(recording_of(relay))
    lead = recording.start("Fix it", agent="lead", by="user:ana")
    recording.fail_call(lead, recording.request(lead, "Bash", f'{{"command":"{"word " * 40}"}}'), "exit", "no")
    recording.request(lead, "Bash", f'{{"command":"{"word " * 40}"}}')
    lines = [line for line in desk.words("trail", "last").splitlines() if "Bash" in line]

    assert [True, True] == [len(line) <= 80 and "Bash command=" in line for line in lines]
    assert ["failed" in lines[0], True] == [True, lines[1].endswith("… · no outcome yet")]
