"""Blame for lines: who, on which task, for whom, by whose leave; and what nobody recorded."""

import os
from pathlib import Path

import pytest

from batonpass.accounts.blame.blame_values import HowKnown, TaskLink
from batonpass.attribution.changes.change import digest_of
from batonpass.errors import InvalidValueError
from batonpass.model.base.kinds import Mode
from batonpass.records.handoff import Standing
from batonpass.records.hold import Leave
from tests.unit.accounts.shop import AFTER, ANA, BEFORE, NEW, Shop, delete_file, write_file


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    """Return a shop with one file that nobody recorded."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.py").write_text(BEFORE, encoding="utf-8")
    return Shop(tmp_path)


def test_a_line_leads_up_to_the_human(shop: Shop) -> None:
    """The call, the run, its exact task, who handed it on, what was granted, and the human's words."""
    lead = shop.relay.start("Fix the\nshop", by=ANA)
    editor = shop.edits(lead, task="Shout the\nsecond line")
    maker = shop.maker()

    assert (editor.id, "write_file", "Shout the\nsecond line", "Fix the\nshop", ("write:**",)) == (
        maker.run.id,
        maker.tool,
        maker.task.words if maker.task else None,
        maker.said.words if maker.said else None,
        maker.may,
    )
    assert [("editor", "lead", TaskLink.CERTAIN), ("lead", None, None)] == [
        (hop.agent, hop.sender, hop.link) for hop in maker.hops
    ]
    assert (ANA, Mode.ENFORCED, Standing.UNVERIFIED, Leave.NOT_NEEDED, None, True) == (
        maker.principal,
        maker.mode,
        maker.standing,
        maker.leave and maker.leave.leave,
        maker.source,
        maker.proof.holds,
    )


def test_a_root_works_on_what_the_human_said(shop: Shop) -> None:
    """Nobody handed it anything: there is no grant, and the task is the human's words."""
    lead = shop.relay.start("Fix it", by=ANA)
    lead.call(write_file, "a.py", AFTER)
    maker = shop.maker()

    assert ("Fix it", (), 1) == (maker.task.words if maker.task else None, maker.may, len(maker.hops))


def test_the_humans_words_are_those_of_that_moment(shop: Shop) -> None:
    """What was said later does not explain what was done before; what a root does after it, it does."""
    lead = shop.relay.start("First", by=ANA)
    shop.edits(lead)
    lead.add_intent("Second")
    shop.edits(lead, "b.py", "b\n", task="Shout again")
    lead.call(write_file, "c.py", "c\n")
    lead.add_intent("Third")

    assert ["First", "Second", "Second"] == [
        maker.said.words if maker.said else None
        for maker in (shop.maker(), shop.maker("b.py", 1), shop.maker("c.py", 1))
    ]


def test_every_hop_is_named(shop: Shop) -> None:
    """A task that was handed on twice has two tasks and two senders."""
    lead = shop.relay.start("Fix it", by=ANA)
    with lead.hand_off("editor", "Edit") as editor, editor.hand_off("typist", "Type") as typist:
        typist.call(write_file, "a.py", AFTER)
    maker = shop.maker()

    assert [("typist", "Type"), ("editor", "Edit"), ("lead", None)] == [
        (hop.agent, hop.task and hop.task.words) for hop in maker.hops
    ]


def test_an_approval_says_by_whom(shop: Shop) -> None:
    """Held, and let go on by somebody, with how far that is proven."""
    lead = shop.relay.start("Fix it", by=ANA)
    handoff = lead.hand_off("editor", "Shout", hold=True)
    handoff.approve(by="user:bob", reason="fine")
    with handoff as editor:
        editor.call(write_file, "a.py", AFTER)

    (hold,) = shop.maker().handed

    assert ["user:bob"] == [approval.by for approval in hold.approvals if approval.is_for]
    assert (leave := shop.maker().leave) is not None
    assert Leave.NOT_NEEDED == leave.leave


@pytest.mark.parametrize("passed", [True, False])
def test_a_verdict_is_told(shop: Shop, *, passed: bool) -> None:
    """Verified or refuted, by whom and how."""
    lead = shop.relay.start("Fix it", by=ANA)
    handoff = lead.hand_off("editor", "Shout")
    with handoff as editor:
        editor.call(write_file, "a.py", AFTER)
    handoff.verify(by=ANA, check=lambda: passed)
    maker = shop.maker()

    assert (Standing.VERIFIED if passed else Standing.REFUTED) is maker.standing
    assert [f"by {ANA}, check"] == [fact.text for fact in maker.judgements]


def test_a_result_that_was_accepted_unverified_is_unverified(shop: Shop) -> None:
    """And who accepted it is said."""
    lead = shop.relay.start("Fix it", by=ANA)
    handoff = lead.hand_off("editor", "Shout")
    with handoff as editor:
        editor.call(write_file, "a.py", AFTER)
    handoff.accept_unverified("no time", by=ANA)
    maker = shop.maker()

    assert (Standing.UNVERIFIED, ["accepted"]) == (maker.standing, [fact.label for fact in maker.judgements])


def test_what_nobody_recorded_is_unexplained(shop: Shop) -> None:
    """And since when: it was not there yet when the file was last seen."""
    lead = shop.relay.start("Fix it", by=ANA)
    shop.edits(lead, "b.py", BEFORE)
    wrote_at = shop.clock.now()
    shop.path("b.py").write_text(BEFORE + "the fourth line\n", encoding="utf-8")

    assert [*[(HowKnown.RECORDED, None)] * 3, (HowKnown.UNEXPLAINED, wrote_at)] == [
        (line.known, line.since) for line in shop.blame("b.py").lines
    ]


def test_a_line_that_may_be_older_has_candidates(shop: Shop) -> None:
    """Where only a part of the file was seen, and somebody unseen changed it since, nobody is named for certain."""
    lead = shop.relay.start("Fix it", by=ANA)
    editor = shop.edits(lead)
    shop.path().write_text(AFTER + "the fourth line\n", encoding="utf-8")
    line = shop.line(2)

    assert (HowKnown.CANDIDATES, None, True, editor.id) == (line.known, line.run, line.or_nobody, shop.maker().run.id)
    assert (HowKnown.UNEXPLAINED, None) == (shop.line(1).known, shop.line(1).since)


def test_a_file_without_any_record_is_unexplained(shop: Shop) -> None:
    """And that nothing is recorded about it is said."""
    shop.relay.start("Fix it", by=ANA)
    blame = shop.blame()

    assert ({HowKnown.UNEXPLAINED}, 0, False) == (
        {line.known for line in blame.lines},
        blame.recorded,
        blame.is_explained,
    )


def test_lines_with_one_verdict_stand_together(shop: Shop) -> None:
    """A whole file is as many groups as there are verdicts in a row."""
    lead = shop.relay.start("Fix it", by=ANA)
    shop.edits(lead, text=AFTER.replace(NEW, f"{NEW}\nand one line more"))

    assert [[1], [2, 3], [4]] == [[line.number for line in group] for group in shop.blame().groups()]


def test_several_calls_of_one_run_leave_the_run_certain(shop: Shop) -> None:
    """The last call to write a line is its author."""
    lead = shop.relay.start("Fix it", by=ANA)
    with lead.hand_off("editor", "Shout") as editor:
        editor.call(write_file, "a.py", AFTER)
        editor.call(write_file, "a.py", AFTER.replace(NEW, f"{NEW}!"))

    assert (editor.id, 2) == (shop.maker().run.id, shop.blame().recorded)


def test_what_was_renamed_keeps_its_authors(shop: Shop) -> None:
    """Changes under the names that git knows count."""
    shop.git("init", "--quiet")
    shop.git("add", "-A")
    shop.git("commit", "--quiet", "-m", "one")
    lead = shop.relay.start("Fix it", by=ANA)
    editor = shop.edits(lead, text=AFTER)
    shop.git("add", "-A")
    shop.git("commit", "--quiet", "-m", "two")
    shop.git("mv", "a.py", "b.py")
    shop.git("commit", "--quiet", "-m", "three")
    blame = shop.blame("b.py", 2)

    assert [editor.id] == [blame.makers[call].run.id for call in blame.lines[0].calls]
    assert "Ana <ana@example.org>" == (blame.lines[0].commit and blame.lines[0].commit.author)


def test_a_deleted_file_has_somebody_who_deleted_it(shop: Shop) -> None:
    """If a recorded call did."""
    lead = shop.relay.start("Fix it", by=ANA)
    lead.call(delete_file, "a.py")
    blame = shop.blame()

    assert (True, ["delete_file"]) == (blame.gone, [maker.tool for maker in blame.makers.values()])


def test_a_file_that_somebody_else_deleted_says_so(shop: Shop) -> None:
    """Who wrote it last is not who deleted it."""
    lead = shop.relay.start("Fix it", by=ANA)
    shop.edits(lead)
    shop.path().unlink()
    blame = shop.blame()

    assert (False, ("a.py no longer exists; who deleted it is not recorded",)) == (blame.is_explained, blame.notes)


def test_bytes_that_are_no_text_are_told_as_a_whole(shop: Shop) -> None:
    """By the change that made them what they are now."""
    lead = shop.relay.start("Draw", by=ANA)
    lead.call(lambda path: Path(path).write_bytes(b"\x89PNG\0"), "logo.png")
    blame = shop.blame("logo.png")
    shop.path("logo.png").write_bytes(b"\x89PNG\0\0")

    assert ((), 1, digest_of(b"\x89PNG\0")) == (
        blame.lines,
        len(blame.calls),
        blame.makers[blame.calls[0]].changes[0].after,
    )
    assert "no recorded change produced its current content" in shop.blame("logo.png").notes[0]


@pytest.mark.parametrize(
    ("name", "line", "problem"),
    [
        pytest.param("a.py", 4, "'a.py' has 3 lines; there is no line 4", id="a line beyond the end"),
        pytest.param("a.py", 0, "0 is not a line or a range; lines count from 1", id="line nought"),
        pytest.param("nothing.py", 1, "there is no 'nothing.py', and no change of it is recorded", id="no such file"),
        pytest.param(".", 1, "is a directory; name a file", id="a directory"),
        pytest.param("a\0b", 1, "contains a zero byte", id="no name at all"),
    ],
)
def test_what_cannot_be_asked_is_one_sentence(shop: Shop, name: str, line: int, problem: str) -> None:
    """Each says what is wrong."""
    shop.relay.start("Fix it", by=ANA)

    with pytest.raises(InvalidValueError) as raised:
        shop.blame(name, line)

    assert problem in raised.value.problem


def test_a_pipe_is_no_file(shop: Shop) -> None:
    """Reading it would wait for somebody to write."""
    os.mkfifo(shop.path("pipe"))

    with pytest.raises(InvalidValueError, match="not a regular file"):
        shop.blame("pipe")


def test_erased_words_are_said_to_be_erased(shop: Shop) -> None:
    """The answer still names who did it."""
    lead = shop.relay.start("Fix it", by=ANA)
    shop.edits(lead)
    task = shop.maker().task
    assert task is not None
    shop.relay.admin.erase([task.ref.id], by=ANA, reason="they asked")
    erased = shop.maker().task

    assert ("erased", True) == (erased and str(erased.found), shop.maker().proof.holds)


def test_an_erased_change_explains_nothing(shop: Shop) -> None:
    """What it wrote is unexplained again: the words that said so are gone."""
    lead = shop.relay.start("Fix it", by=ANA)
    shop.edits(lead)
    with shop.viewed() as view:
        (touched,) = view.find_touches("a.py")
    shop.relay.admin.erase([touched.content], by=ANA, reason="they asked")

    assert HowKnown.UNEXPLAINED is shop.line(2).known


def test_an_absolute_path_is_the_same_file(shop: Shop) -> None:
    """However a tool named it, it was recorded from the root of the repository."""
    lead = shop.relay.start("Fix it", by=ANA)
    shop.edits(lead, str(shop.path()))

    assert HowKnown.RECORDED is shop.line(2).known
