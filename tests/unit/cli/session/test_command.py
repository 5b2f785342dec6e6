"""`batonpass session`: listed, shown, compared; for people and for programs."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from batonpass.handoff.live.faces import LiveRun
from batonpass.handoff.tools.declaration import tool
from batonpass.ledger.act_receipts import Recording
from batonpass.model.base.lifecycle import Carrier
from batonpass.model.baton.items import Assumption, Claim, Constraint, Decision, Exclusion, OpenQuestion
from batonpass.relay import Relay, recording_of
from tests.unit.accounts.trees import HOSTILE
from tests.unit.cli.desk import ANA, Desk
from tests.unit.cli.handoff.test_hostile_handoffs import obeyed

EVIL = " ".join(HOSTILE.values())


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    """Return a desk with nothing on it."""
    return Desk(tmp_path)


@pytest.fixture
def relay(desk: Desk) -> Iterator[Relay]:
    """Return the desk's relay."""
    with desk.relay() as opened:
        yield opened


def limit(value: str) -> Constraint:
    """Return a threshold."""
    return Constraint(key="threshold", operator="<=", value=value, unit="sigma")


@tool(reads=True, cache_for=timedelta(days=1))
def pull_sales() -> int:
    """Pull the figures."""
    return 1


@pytest.fixture
def first(relay: Relay) -> LiveRun:
    """Return a root with everything in it that a session can leave."""
    lead = relay.start("The first quarter", by=ANA, series="quarterly", items=[limit("3"), Exclusion("api")])
    lead.record(
        Decision("flag outliers", why="v", conditions=("constraint:threshold <= 3", "as long as Ana is happy")),
        Decision("use the old rates", why="w", conditions=("until 2020-01-01",)),
        OpenQuestion("is east complete?", blocking=True),
        Assumption("a"),
    )
    lead.attach("page.html", "<p>", untrusted=True, source="https://example.org")
    lead.attach("ours.csv", "1")
    lead.call(pull_sales)
    counted = lead.hand_off("counter", "count the rows")
    with counted as child:
        child.attach("rows.csv", "1,2")
        child.report("1,200 rows", claims=[Claim("all there", confidence=1000)])
    counted.verify(verdict="right", by="user:bob")
    lead.hand_off("drafter", "draft it", carrier=Carrier.WORKER)
    lead.save_session()
    return lead


class TestList:
    """Which sessions there are."""

    def test_there_are_none_yet(self, desk: Desk, relay: Relay) -> None:
        """That is no error, and is said on stderr."""
        assert isinstance(recording_of(relay), Recording)  # it founds the ledger
        done = desk.run("session", "list")

        assert (0, "", "no sessions yet\n") == (done.exit_code, done.stdout, done.stderr)

    def test_each_is_a_line(self, desk: Desk, first: LiveRun, relay: Relay) -> None:
        """Its id, how its last root stands, how many there are, the series and what was wanted."""
        relay.resume_session(first.id, by=ANA, intent="go on")
        relay.start("another", by=ANA)
        header, another, quarterly = desk.words("session", "list").splitlines()

        assert ["session", "state", "last", "began", "roots", "series", "intent"] == header.split()
        assert another.endswith('"another"')
        assert quarterly.startswith(first.id[-4:])
        assert '2 roots  quarterly  "go on"' in quarterly

    def test_more_are_hinted_at(self, desk: Desk, first: LiveRun, relay: Relay) -> None:
        """The limit says how to see them."""
        relay.start("another", by=ANA)

        assert first.id
        assert "there are more: --limit 5" in desk.run("session", "list", "--limit", "1").stderr

    def test_programs_get_ids_and_times(self, desk: Desk, first: LiveRun) -> None:
        """As JSON."""
        (found,) = desk.answer("session", "list")

        assert ([first.id], "quarterly", "user:ana", "open") == (
            found["roots"],
            found["series"],
            found["principal"],
            found["state"],
        )


class TestLoad:
    """How much sessions carry along, how old it is, and what has no reason any more."""

    def test_size_age_and_growth(self, desk: Desk, first: LiveRun, relay: Relay) -> None:
        """After the first root and now, for each session or for one."""
        later = relay.resume_session(first.id, by=ANA, intent="go on")
        later.record(*(Decision(f"use rate {number}", why="Ana said so") for number in range(9)))
        relay.start("another", by=ANA)
        _, found = desk.answer("session", "load")
        (named,) = desk.answer("session", "load", "quarterly")

        assert found["roots"] == named["roots"]
        assert (2, True) == (len(found["roots"]), found["items"] > found["after_first"]["items"] > 0)
        assert found["bytes"] > found["after_first"]["bytes"]
        assert (True, True) == (found["oldest_at"] is not None, found["age_seconds"] >= 0)
        assert "decisions" in desk.words("session", "load").splitlines()[0]

    def test_decisions_whose_reason_is_gone_are_named(self, desk: Desk, relay: Relay) -> None:
        """Nobody said it, its words were erased, or nobody can tell whether its condition holds; others are not."""
        lead = relay.start("The first quarter", by=ANA)
        memo = lead.attach("memo.txt", "the tax office wants it").id
        lead.record(
            Decision("round half-even", why=f"see {memo}"),
            Decision("use east", conditions=("as long as Ana is happy",)),
            Decision("ship on Friday", why="the customer asked for it"),
        )
        lead.save_session()
        kept = {one["value"]["what"] for one in desk.answer("session", "load", "last")[0]["unreasoned"]}
        relay.admin.erase([memo], by=ANA, reason="asked to")
        (load,) = desk.answer("session", "load", "last")

        reasons = {one["value"]["what"]: one["reasons"] for one in load["unreasoned"]}
        assert {"use east"} == kept
        assert {
            "round half-even": [f"it cites {memo}, which was erased"],
            "use east": ["nobody said why", "nobody can tell whether 'as long as Ana is happy' still holds"],
        } == reasons
        assert "decisions in use whose reason is gone" in desk.words("session", "load", "last")


class TestShow:
    """What a session leaves to the next one."""

    @pytest.mark.parametrize("given", ["last", "quarterly", "id"])
    def test_it_is_told_in_words(self, desk: Desk, first: LiveRun, given: str) -> None:
        """Kept, open again, in flight, kept for a while, to be fetched, left."""
        shown = desk.words("session", "show", first.id[-6:] if given == "id" else given)
        lines = [" ".join(line.split()) for line in shown.splitlines()]

        assert f"session {first.id[-4:]} · 1 root · series quarterly · user:ana" == lines[0]
        assert any(line.startswith("comes along: 8 items, ") and line.endswith(" old") for line in lines)
        for ending in (
            "threshold <= 3 sigma",
            "api",
            "flag outliers · because v · unchecked: as long as Ana is happy",
            "is east complete?",
            "all there",
            "rows.csv · 3 bytes",
            "use the old rates it was good until 2020-01-01",
            "draft it",
            "page.html from https://example.org",
            "1 hypothesis a hypothesis: work it out from how things are now",
            "1 unverified nobody verified it",
        ):
            assert any(line.endswith(ending) for line in lines), ending
        assert any(line.startswith("pull_sales made ") for line in lines)
        assert any("count the rows: 1,200 rows · verdict, see handoff_" in line for line in lines)

    def test_programs_get_everything(self, desk: Desk, first: LiveRun) -> None:
        """Each item with its author, its time and where it stands; reasons; states; times."""
        found = desk.answer("session", "show", "last")

        assert ([first.id], 8) == (found["from"], found["items"])
        assert [["it was good until 2020-01-01"]] == [one["reasons"] for one in found["revisit"]]
        assert ["https://example.org"] == [one["source"] for one in found["dropped"] if one["why"] == "external"]
        assert [("drafter", "ready")] == [(one["to"], one["state"]) for one in found["in_flight"]]
        assert ["pull_sales"] == [one["tool"] for one in found["cached"]]
        assert ["as long as Ana is happy"] in [one["unchecked"] for one in found["kept"]]

    def test_one_that_leaves_nothing_says_so(self, desk: Desk, relay: Relay) -> None:
        """Nothing is not an empty page."""
        relay.start("begin", by=ANA)

        assert "nothing comes along" in desk.words("session", "show", "last")

    def test_what_is_not_there_is_a_no(self, desk: Desk, first: LiveRun) -> None:
        """Exit code 1, and which one was meant."""
        assert first.id
        done = desk.run("session", "show", "nope")

        assert (1, True) == (done.exit_code, "nope" in done.stderr)


class TestDiff:
    """What changed since the last time."""

    def test_it_is_told_in_words(self, desk: Desk, first: LiveRun, relay: Relay) -> None:
        """Decisions, thresholds, questions and outputs, each with what it was."""
        second = relay.start("The second quarter", by=ANA, series="quarterly", items=[limit("4")])
        second.record(OpenQuestion("and south?"), Decision("round half-even", why="tax office"))
        lines = desk.words("session", "diff", "quarterly").splitlines()

        assert f'lead {second.id[-4:]} · "The second quarter" · since lead {first.id[-4:]}, ' in lines[0]
        assert {
            "? decision: use the old rates · open again: it was good until 2020-01-01 (it was decided because: w)",
            "? decision: flag outliers · open again: 'threshold' is '4' now, not <= '3' (it was decided because: v)",
            "+ decision: round half-even · because tax office",
            "~ threshold: threshold · <= 3 sigma → <= 4 sigma",
            "+ open question: and south? · not blocking",
        } == set(lines[1:])

    def test_two_sessions_are_compared(self, desk: Desk, first: LiveRun, relay: Relay) -> None:
        """From the first that is named to the second."""
        other = relay.start("something else", by=ANA)
        other.record(OpenQuestion("why?"))
        forth = desk.answer("session", "diff", first.id[-8:], other.id[-8:])
        back = desk.answer("session", "diff", other.id[-8:], first.id[-8:])

        assert (([first.id], [other.id]), ([other.id], [first.id])) == (
            (forth["before"], forth["after"]),
            (back["before"], back["after"]),
        )
        assert {("open question", "added", "why?")} <= {
            (change["topic"], change["turn"], change["what"]) for change in forth["changes"]
        }

    def test_the_first_time_has_nothing_before_it(self, desk: Desk, relay: Relay) -> None:
        """What it begins with is new."""
        relay.start("begin", by=ANA, items=[limit("3")])
        lines = desk.words("session", "diff", "last").splitlines()

        assert (True, ["+ threshold: threshold · <= 3 sigma"]) == ("started new" in lines[0], lines[1:])

    def test_what_stayed_as_it_was_is_said(self, desk: Desk, relay: Relay) -> None:
        """On stderr, so that no data is no data."""
        lead = relay.start("begin", by=ANA, items=[Constraint("c")], series="s")
        relay.resume_session(lead.id, by=ANA)
        done = desk.run("session", "diff", "last")

        assert ("nothing changed\n", 1) == (done.stderr, len(done.stdout.splitlines()))


def test_nobodys_words_command_the_terminal(desk: Desk, relay: Relay) -> None:
    """Escape sequences and marks that turn text around are spelled out, whoever wrote them."""
    lead = relay.start(EVIL, by=ANA, items=[Constraint(EVIL), Exclusion(EVIL)], series="nightly")
    lead.record(
        Decision(EVIL, why=EVIL, conditions=(EVIL, f"check:{EVIL}", f"until 2020-01-01 {EVIL}")),
        Decision(f"{EVIL} too", why=EVIL, conditions=("until 2020-01-01",)),
        OpenQuestion(EVIL),
    )
    lead.attach(EVIL, b"", untrusted=True, source=EVIL)
    lead.hand_off("worker", EVIL, carrier=Carrier.WORKER)
    relay.start(EVIL, by=ANA, series="nightly")

    assert {"show": [], "diff": [], "load": []} == {
        verb: obeyed(desk.words("session", verb, "nightly")) for verb in ("show", "diff", "load")
    }


def test_exclusions_and_prose_are_told_as_what_they_are(desk: Desk, relay: Relay) -> None:
    """A constraint in prose is no threshold."""
    lead = relay.start("begin", by=ANA, items=[Constraint("be kind")])
    lead.record(Exclusion("api"))
    rows = [line.split()[0] for line in desk.words("session", "show", "last").splitlines() if "user:ana  " in line]

    assert ["constraint"] == rows


def test_a_person_prunes_what_comes_along(desk: Desk, first: LiveRun) -> None:
    """It says what was taken out and how much is left; an agent, and a name that fits nothing, are refused."""
    first.close()
    before = desk.answer("session", "show", "quarterly")
    words = desk.words("session", "prune", "quarterly", "is east", "--by", ANA, "--reason", "it is")
    after = desk.answer("session", "show", "quarterly")

    assert words.startswith("- is east complete?\n")
    assert (before["items"] - 1, "pruned") == (after["items"], after["dropped"][-1]["why"])
    assert 1 == desk.run("session", "prune", "quarterly", "api", "--by", "agent:lead", "--reason", "r").exit_code
    assert 1 == desk.run("session", "prune", "quarterly", "nothing", "--by", ANA, "--reason", "r").exit_code
    again = desk.answer("session", "prune", "quarterly", "flag outliers", "--by", ANA, "--reason", "r")
    assert (["Decision"], after["items"] - 1) == ([mark[0] for mark in again["taken_out"]], again["items"])


def test_checks_contradictions_and_warnings_are_shown(desk: Desk, relay: Relay) -> None:
    """For people and for programs."""
    with relay.start("One", by=ANA, series="s") as lead:
        lead.record(Decision("include returns"), *(Decision(f"number {number:02}") for number in range(60)))
        with lead.hand_off("worker", "Back it up") as worker:
            worker.record(Decision("exclude returns"))
            worker.report("done")
    done = desk.run("session", "show", "s")
    facts = desk.answer("session", "show", "s")

    assert "to be checked: 1 result" in done.stdout
    assert "contradictions: 1, the newest first" in done.stdout
    assert '"exclude returns" (agent:worker, ' in done.stdout
    assert "63 items come along, more than 50: look through it" in done.stderr
    assert ("Back it up", ["63 items come along, more than 50"]) == (facts["checks"][0]["what"], facts["warnings"])
    assert ["exclude returns", "include returns"] == [side["words"] for side in facts["contradictions"][0]["sides"]]
