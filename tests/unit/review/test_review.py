"""Reviews of whole trees: clean ones, forged ones, parts of them, who is suspected, and the story in prose."""

import warnings
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from batonpass import Decision, Handling, RejectedPath, tool
from batonpass.credentials import FromEnvironment
from batonpass.demo import delivery, poisoned_page, pull_request, support_desk, two_sessions
from batonpass.demo import story as demo_story
from batonpass.model.baton.items import Constraint
from batonpass.model.baton.session import session_of
from batonpass.model.bodies.body import Part, RunGap
from batonpass.relay import Relay, desk_of, recording_of
from batonpass.review.finding import Severity
from batonpass.review.review import find_reviewed, review_below, review_roots, review_session
from batonpass.review.reviewed_tree import ReviewedTree
from batonpass.review.story import tell_story
from batonpass.review.suspects import find_suspects
from batonpass.store.factory import open_store
from batonpass.store.memory_view import MemoryView
from examples.findings.tools import push
from tests.unit.accounts.trees import ANA, HOSTILE, Place, fail, tried, write
from tests.unit.audit.test_carriage import carried_by, forge
from tests.unit.review.reviews import ledger_in, review_of


@tool(target="path", reversible=True)
def edit(path: str, text: str) -> int:
    """Write a real file, so that the change is recorded."""
    return Path(path).write_text(text, encoding="utf-8")


@pytest.fixture
def place() -> Place:
    return Place()


def codes(relay: Relay) -> list[str]:
    return [finding.kind.code for finding in review_of(relay).findings]


def test_what_binds_and_is_left_out_is_found(place: Place) -> None:
    """A forged offer with good signatures left a constraint behind; the honest one beside it did not."""
    lead = place.relay().start("Fix it", by=ANA, items=[Constraint("Do not touch the API")])
    forged = forge(place.relay(), lead, carried_by(place.relay(), lead, without=Part.CONSTRAINT))
    with place.store.view() as view:
        found = [one for one in review_below(view, lead.id, place.clock.now()).findings if one.severity == "high"]

    assert [("lost-constraint", forged)] == [(one.kind.code, one.subject) for one in found]
    assert 'without the constraint "Do not touch the API" (lost)' in found[0].sentence


def test_a_gap_in_the_record_is_found(place: Place) -> None:
    """Calls that could not be written are counted."""
    lead = place.relay().start("Fix it", by=ANA)
    recording_of(place.relay()).record(lead._holding.working, RunGap(run=lead.id, calls=2))
    with place.store.view() as view:
        (found,) = review_below(view, lead.id, place.clock.now()).findings

    assert ("record-gap", "2 calls of lead could not be recorded") == (found.kind.code, found.sentence)


def test_a_story_tells_who_let_it_happen(place: Place) -> None:
    """What was held, and who decided; findings of one kind are gathered."""
    with place.relay().start("Tell them", by=ANA) as lead:
        held = lead.hand_off("mailer", "Tell the customers", hold=True)
        held.approve(by=ANA)
        with held as mailer:
            mailer.report("told")
        for name in ("a", "b", "c"):
            for number in range(3):
                with lead.hand_off(name, "Write it up", handling=Handling(again=number)) as writer:
                    writer.report("written")
    with place.store.view() as view:
        findings = review_below(view, lead.id, place.clock.now()).findings
        told = [*tell_story(ReviewedTree(view, lead.id), findings)]

    assert 'lead asked mailer to "Tell the customers". It was held; user:ana approved. mailer made no calls.' in told[1]
    assert " times (and 2 more of that kind: lead)" in told[-2]


def test_what_was_known_and_not_passed_on_is_a_reason(place: Place) -> None:
    """Whoever kept it is a suspect if the receiver failed; the step before the failure is one too."""
    lead = place.relay().start("Build it", by=ANA)
    with lead.hand_off("finder", "Find the parts that we need") as finder:
        finder.report("12 parts")
    lead.record(Decision("build for the new interface only"))
    work = lead.hand_off("builder", "Build the parts that were found", handling=Handling(carry=()))

    def stumble() -> None:
        with work as builder:
            builder.call(fail, "the old interface is gone")

    tried(stumble)
    with place.store.view() as view:
        suspects = find_suspects(ReviewedTree(view, lead.id), review_below(view, lead.id, place.clock.now()).findings)
    reasons = {str(suspect.agent): [reason.words for reason in suspect.reasons] for suspect in suspects}

    assert 'it did not tell builder: "build for the new interface only"' in reasons["lead"]
    assert "it was the last step before that" in reasons["finder"]


def test_who_handed_it_off_is_the_suspect_not_who_got_it(place: Place) -> None:
    """A constraint that was left out is a fault of the sender; so are a wider bound and a task that was rejected."""
    bound = Constraint(key="threshold", operator="<=", value="20", binds_to="call:compare.threshold")
    lead = place.relay().start("Fix it", by=ANA, items=[bound])
    lead.record(RejectedPath("Cache the modules"))
    forge(place.relay(), lead, carried_by(place.relay(), lead, without=Part.CONSTRAINT))
    with lead.hand_off("analyst", "Find what stands out", items=[replace(bound, value="40")]) as analyst:
        analyst.report("north")
    with lead.hand_off("builder", "Cache the modules") as builder:
        builder.report("faster")
    with place.store.view() as view:
        findings = review_below(view, lead.id, place.clock.now()).findings
        suspects = find_suspects(ReviewedTree(view, lead.id), findings)

    assert {"lost-constraint", "relaxed-constraint", "retried-path"} <= {one.kind.code for one in findings}
    assert [("lead", lead.id)] == [(one.agent, one.step) for one in suspects if one.weight > 2]
    assert {"lead"} == {one.agent for one in findings if one.severity is not Severity.LOW}


def test_an_approval_makes_nobody_else_a_suspect(place: Place) -> None:
    """It says something about who gave it, and nothing about who worked."""
    with place.relay().start("Tell them", by=ANA) as lead:
        held = lead.hand_off("mailer", "Tell the customers", hold=True)
        held.approve(by=ANA)
        with held as mailer:
            mailer.report("told")
    with place.store.view() as view:
        findings = review_below(view, lead.id, place.clock.now()).findings

        assert ["approval-theatre"] == [one.kind.code for one in findings]
        assert [] == find_suspects(ReviewedTree(view, lead.id), findings)


STORIES = {
    # The window is missed from the third carrier on, and everybody above reports what came of it, the dispatcher too.
    "freight": (delivery.play_delivery, ["disobeyed-task"] * 6),
    "pull request": (pull_request.play, ["approval-theatre"]),
    "poisoned": (poisoned_page.play_poisoned, []),
    "sessions": (two_sessions.play_sessions, ["unclosed-run"]),
    "a killed agent": (demo_story.play, []),
    "support": (support_desk.play_desk, []),
}


@pytest.mark.parametrize("story", STORIES)
def test_a_demonstration_has_the_findings_that_it_is_about_and_no_other(story: str, tmp_path: Path) -> None:
    """Precision counts: nothing is found that is not there."""
    play, expected = STORIES[story]
    list(play(tmp_path))
    found, suspects = [], []
    for ledger in tmp_path.rglob(".batonpass/ledger.db"):
        store = open_store(f"sqlite:///{ledger}", create=False)
        with store.view() as view:
            for root in view.find_runs(roots=True):
                findings = review_roots(view, [root.id], datetime.now(UTC)).findings
                found += [one.kind.code for one in findings]
                suspects += find_suspects(ReviewedTree(view, root.id), findings)
        store.close()

    assert expected == found
    if story == "freight":
        assert "lyon-cold-chain" == suspects[0].agent
        assert "it was the first to deviate" in {reason.words for reason in suspects[0].reasons}


def test_a_part_has_only_its_own_findings(place: Place) -> None:
    """What is asked about a handoff is not answered about its sibling."""
    lead = place.relay().start("Fix it", by=ANA)
    handoffs = []
    for name in ("a", "b"):
        handoffs.append(lead.hand_off(name, f"Fix {name} in the shop"))
        with handoffs[-1] as child:
            for _ in range(3):
                child.call(write, f"{name}.py")
            child.report("done")
    with place.store.view() as view:
        whole = review_below(view, lead.id, place.clock.now())
        part = review_below(view, handoffs[0].id, place.clock.now())
        below = review_below(view, view.get_handoff(handoffs[1].id).run or lead.id, place.clock.now())

    assert ({"a", "b"}, {"a"}) == ({one.agent for one in whole.findings}, {one.agent for one in part.findings})
    assert ["a"] == [row.agent for row in part.roots[0].rows]
    assert () == below.findings  # they are about the handoff, and this was asked about its run


def test_the_checklist_answers_for_each_handoff(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which agent, which exact task, how much of its scope, what changed, and what is open."""
    monkeypatch.chdir(tmp_path)
    with ledger_in(tmp_path) as relay, relay.start("Fix it", by=ANA) as lead:
        with lead.hand_off("editor", "Fix the typo in a.py", may=["write:src/**", "push:main"]) as editor:
            editor.call(write, "src/a.py")
            tried(lambda: editor.call(write, ".github/ci.yml"))
            editor.report("fixed")
        _, row = review_of(relay).roots[0].rows

    assert ("editor", "Fix the typo in a.py", "completed", "enforced") == (row.agent, row.task, row.state, row.mode)
    assert ({"write:src/**", "push:main"}, ("write:src/a.py",)) == (set(row.granted or ()), row.used)
    assert (("1 call denied by grant",), ("write src/a.py",)) == (row.decisions, row.effects)
    assert ("nobody verified it",) == row.open_ends


def test_the_checklist_begins_with_what_the_root_did_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its wish, scope, credential, refusals, rulings, effects and open ends: it acts too, not only those it asks."""
    monkeypatch.chdir(tmp_path)
    policy = """
[policy]
enforce = true
allowed_agents = ["editor"]

[[rules]]
name = "ask"
on = "call"
tool = "push"
gate = "approve"
"""
    with ledger_in(tmp_path, policy) as relay:
        relay.credential("forge", FromEnvironment("T", "bot:ci", environment={"T": "a-very-secret-token"}))
        lead = relay.start("Fix it\nand say how", by=ANA, may=["write:src/**", "call:push"])
        lead.call(write, "src/a.py")
        tried(lambda: lead.call(write, "secrets.txt"))
        tried(lambda: lead.hand_off("typist", "Type it"))
        tried(lambda: lead.call(push, "main"))
        with desk_of(relay).store.view() as view:
            (held,) = [call.id for call in ReviewedTree(view, lead.id).calls.values() if call.tool == "push"]
        relay.held_call(held).approve(by="user:ben")
        lead.call(push, "main")
        (open_one,) = review_of(relay).roots[0].rows
        lead.close()
        (row,) = review_of(relay).roots[0].rows

    assert (None, lead.id, "lead", 1) == (row.handoff, row.run, row.agent, row.attempts)
    assert ("completed", "enforced", "Fix it\nand say how") == (row.state, row.mode, row.task)
    assert {"write:src/**", "call:push"} == set(row.granted or ())
    assert {"write:src/a.py", "call:push"} == set(row.used)
    assert ("forge as bot:ci",) == row.credentials
    assert {"1 call denied by grant", "offer to typist refused (handoff.refused)"} <= set(row.decisions)
    assert ("approved by user:ben (unproven)",) == row.approvals
    assert "write src/a.py" in row.effects
    assert (("it is open",), ()) == (open_one.open_ends, row.open_ends)


def test_a_file_that_is_changed_again_is_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the checklist, where files have their names, and in the story; erased ones are said to be so."""
    monkeypatch.chdir(tmp_path)
    with ledger_in(tmp_path) as relay:
        with relay.start("Fix it", by=ANA) as lead:
            for number, name in enumerate(("b.py", "a.py", "b.py", "b.py")):
                lead.call(edit, name, f"line {number}\n")
        (row,) = review_of(relay).roots[0].rows
        with desk_of(relay).store.view() as view:
            tree = ReviewedTree(view, lead.id)
            told = "\n".join(tell_story(tree, ()))
            gone = [changed.change for call in tree.calls_of[lead.id] if call.changes for changed in call.changes][1:]
        relay.admin.erase(gone[:1], by=ANA, reason="it is nobody's business")
        (erased,) = review_of(relay).roots[0].rows

    assert ("2 files changed: b.py, a.py",) == row.effects
    assert "lead itself made 4 calls (edit), 2 files changed." in told
    assert ("1 file changed: b.py", "1 change of a file whose name is erased") == erased.effects


def test_a_part_has_the_row_of_what_was_asked_about(place: Place) -> None:
    """A run that is asked about has its own row; what its sender did is not told with it."""
    with place.relay().start("Fix it", by=ANA) as lead, lead.hand_off("a", "Fix a") as child:
        child.call(write, "a.py")
        with child.hand_off("b", "Fix b"):
            pass
    with place.store.view() as view:
        (handoff,) = [one for one in view.find_handoffs(root=lead.id) if one.to == "a"]
        told = {
            top: [row.agent for row in review_below(view, top, place.clock.now()).roots[0].rows]
            for top in (lead.id, handoff.id, child.id)
        }

    assert {lead.id: ["lead", "a", "b"], handoff.id: ["a", "b"], child.id: ["a", "b"]} == told


def test_the_checklist_says_what_rules_decided_and_would_have(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the handoff itself and of its calls: held by whom, and what enforcement would have done."""
    monkeypatch.chdir(tmp_path)
    policy = "\n".join(
        f'[[rules]]\nname = "{on}-rule"\non = "{on}"\ngate = "approve"\n{which}'
        for on, which in (("handoff", 'agent = "editor"\n'), ("call", 'tool = "write"\n'))
    )
    with ledger_in(tmp_path, policy) as relay, relay.start("Fix it", by=ANA) as lead:
        with lead.hand_off("editor", "Fix the typo in a.py") as editor:
            editor.call(write, "src/a.py")
        lead.hand_off("mailer", "Tell them", hold=True)
        _, first, second = review_of(relay).roots[0].rows

    assert ("would be held by handoff-rule", "1 call would be held by call-rule") == first.decisions
    assert (("held by its sender",), ("waits for somebody",)) == (second.decisions, second.approvals)


def test_what_was_tried_outside_a_grant_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A call that was stopped has no scope on record, and its target is told all the same."""
    monkeypatch.chdir(tmp_path)
    with ledger_in(tmp_path) as relay, relay.start("Fix it", by=ANA) as lead:
        with lead.hand_off("editor", "Fix the typo in a.py", may=["write:src/**"]) as editor:
            editor.call(write, "src/a.py")
            tried(lambda: editor.call(write, "../up"))
            editor.report("fixed")
        (found,) = [one for one in review_of(relay).findings if one.kind.code == "scope-drift"]

    assert 'editor tried 1 call outside its grant, and was stopped: write "../up"' == found.sentence


def test_several_trees_are_reviewed_by_time_or_by_session(place: Place) -> None:
    """The trees since a moment, the oldest first; and all trees of a session."""
    before = place.clock.now()
    roots = []
    for number in range(3):
        place.clock.tick(timedelta(hours=1))
        with place.relay().start(f"Day {number}", by=ANA, series="daily") as lead:
            roots.append(lead.id)
    with place.store.view() as view:
        since = [*find_reviewed(view, before + timedelta(hours=2))]
        session = review_session(view, session_of(view.get_run(roots[0])), place.clock.now())

    assert roots[1:] == since
    assert set(roots) >= {root.root.id for root in session.roots}


def test_a_tree_that_goes_on_belongs_to_every_day_on_which_it_does(place: Place) -> None:
    """What began last week and goes wrong today is in the review of today; so is what somebody decides today."""
    lead = place.relay().start("A long session", by=ANA)
    over = place.relay().start("Done by then", by=ANA)
    over.close()
    judged = place.relay().start("Judged later", by=ANA)
    work = judged.hand_off("editor", "Fix it")
    with work as editor:
        editor.report("fixed")
    judged.close()
    place.clock.tick(timedelta(days=6))
    today = place.clock.now()
    for _ in range(3):
        lead.call(write, "a.py")
    work.refute("it is not", by=ANA)
    with place.store.view() as view:
        found = [*find_reviewed(view, today)]

    assert {lead.id, judged.id} == set(found)


def test_who_is_refuted_is_suspected_first(place: Place) -> None:
    """A refuted result says more than a failed call."""
    lead = place.relay().start("Quote it", by=ANA)
    first = lead.hand_off("rater", "Find the rate of today")
    with first as rater:
        rater.report("1.08")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        second = lead.hand_off("sender", "Send the quote to Bo")

    def stumble() -> None:
        with second as sender:
            sender.call(fail, "no network")

    tried(stumble)
    first.refute("that is last year's", by=ANA)
    with place.store.view() as view:
        tree = ReviewedTree(view, lead.id)
        suspects = find_suspects(tree, review_below(view, lead.id, place.clock.now()).findings)

    assert ["rater", "sender"] == [suspect.agent for suspect in suspects][:2]
    assert "user:ana refuted its result" in {reason.words for reason in suspects[0].reasons}
    assert any(reason.words.startswith("its call of fail failed first") for reason in suspects[1].reasons)


def test_the_story_tells_who_did_what(place: Place) -> None:
    """The human's words, each handoff, what came of it, and what is open; from receipts alone."""
    with place.relay().start("Fix the invoice", by=ANA) as lead:
        with lead.hand_off("editor", "Round half-even") as editor:
            editor.call(write, "src/invoice.py")
        done = lead.hand_off("tester", "Run the tests")
        with done as tester:
            tester.report("all pass")
        done.verify(by=ANA, verdict="I ran them too")
    with place.store.view() as view:
        told = [*tell_story(ReviewedTree(view, lead.id), ())]

    assert told[0].startswith('user:ana wanted: "Fix the invoice". lead took it on at ')
    assert [
        'lead asked editor to "Round half-even". editor made 1 call (write). Nobody has verified that.',
        'lead asked tester to "Run the tests". tester made no calls. It reported "all pass". user:ana verified that.',
        "Still open: 1 result that nobody verified.",
    ] == told[1:]


def test_a_story_tells_calls_that_nobody_let_happen_apart(place: Place) -> None:
    """A call that was denied was not made."""
    with place.relay().start("Fix it", by=ANA) as lead, lead.hand_off("editor", "Fix it", may=["write:src"]) as editor:
        tried(lambda: editor.call(write, "deploy"))
    with place.store.view() as view:
        told = " ".join(tell_story(ReviewedTree(view, lead.id), ()))

    assert "editor made no call, 1 call denied (write)." in told


def test_only_what_is_bad_enough_is_kept(place: Place) -> None:
    """A reader who asks for high findings gets no others."""
    with place.relay().start("Fix it", by=ANA) as lead:
        for _ in range(3):
            lead.call(write, "a.py")
    with place.store.view() as view:
        review = review_below(view, lead.id, place.clock.now())

    assert (1, 0) == (len(review.findings), len(review.at_least(Severity.MEDIUM).findings))


@pytest.mark.parametrize("words", HOSTILE)
def test_what_agents_write_breaks_no_review(words: str, place: Place) -> None:
    """Any text in any field is read, and found in nothing that is not there."""
    nasty = HOSTILE[words]
    with place.relay().start(nasty, by=ANA) as lead, lead.hand_off("editor", nasty) as editor:
        for _ in range(3):
            editor.call(write, nasty)
        editor.report(nasty)
    with place.store.view() as view:
        tree = ReviewedTree(view, lead.id)
        found = review_below(view, lead.id, place.clock.now())

        assert "repeated-step" in {one.kind.code for one in found.findings}
        assert all([*tell_story(tree, found.findings)])


def test_nothing_is_read_twice_for_a_clean_tree(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tree costs a fixed number of reads, not one for each handoff."""
    with place.relay().start("Fix it", by=ANA) as lead:
        for number in range(20):
            with lead.hand_off("editor", f"Fix file number {number} of the shop") as editor:
                editor.report("fixed")
    asked: list[str] = []

    def counted(name: str) -> Callable[..., Any]:
        real = getattr(MemoryView, name)

        def ask(*given: Any, **named: Any) -> Any:  # noqa: ANN401 - as the method that it stands for
            asked.append(name)
            return real(*given, **named)

        return ask

    for name in ("get_receipt", "get_receipt_at", "find_contents", "get_content", "find_receipts", "get_handoff"):
        monkeypatch.setattr(MemoryView, name, counted(name))
    with place.store.view() as view:
        review_roots(view, [lead.id], place.clock.now())

    assert len(asked) < 20, asked
