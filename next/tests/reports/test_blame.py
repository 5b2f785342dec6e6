"""Blame: who wrote a line, under which grant and for whom, and what is said where that is not known."""

import json
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from batonpass import Blame, Relay, Run, blame, tool
from batonpass.errors import BatonpassError, FencedError, InvalidValueError, NotFoundError, StoreError
from batonpass.testing import FrozenClock, a_relay, a_run


@tool(action="write", target="path")
def write_file(path: str, text: str) -> None:
    """Write a file, byte for byte."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_bytes(text.encode())


@tool(action="write", target="path")
def write_many(path: str, count: int) -> None:
    """Write a file of many lines."""
    Path(path).write_text("one line of text\n" * count, encoding="utf-8")


@tool(action="write", target="path")
def spoil_file(path: str, text: str) -> None:
    """Write a file, and fail."""
    Path(path).write_bytes(text.encode())
    raise OSError("disk full")


@tool(action="write", target="path")
def delete_file(path: str) -> None:
    """Delete a file."""
    Path(path).unlink()


@pytest.fixture
def relay(record_place: Path) -> Iterator[Relay]:
    with a_relay(work_tree=record_place) as opened:
        yield opened


def _words(answer: Blame) -> str:
    """Return the words of an answer, without what differs from run to run."""
    text = re.sub(r"(?:\d{4}-\d\d-\d\d )?\b\d\d:\d\d\b", "23:14", str(answer))
    return re.sub(r"\b(editor|lead|write_file) [0-9a-hjkmnp-tv-z]{4}\b", r"\1 7f3a", text)


def _origins(answer: Blame) -> list[str]:
    """Return for each line the tool that wrote it, or why there is none."""
    writes = [(line, answer.write_of(line)) for line in answer.lines]
    return [line.origin if write is None else f"{write.agent} {write.attempt}" for line, write in writes]


def _editor(lead: Run, *, may: list[str] | None = None) -> Run:
    return lead.hand_off("editor", "Make total() round half-even", may=may, accept=True)


@pytest.mark.parity("blame-a-recorded-line")
def test_a_line_is_explained_up_to_the_persons_words(record_place: Path) -> None:
    """The words name agent, time, task, chain, grant by the hop that gave it, call and hunk."""
    Path("src").mkdir()
    Path("src/invoice.py").write_text("def total():\n    a = 1\n    return round(a)\n", encoding="utf-8")
    with Relay.open() as relay, relay.start("Fix invoice rounding", by="user:ana") as lead:
        with _editor(lead, may=["write:src/**"]) as editor:
            editor.call(write_file, "src/invoice.py", "def total():\n    a = 1\n    return half_even(a)\n")

        answer = blame("src/invoice.py", line=3)

        assert _words(answer) == (
            'editor 7f3a · 23:14 · "Make total() round half-even" ← lead ← ana: "Fix invoice rounding"\n'
            "unverified · may write:src/** (granted by lead) · approval: none needed\n"
            "write_file 7f3a · @@ -3,1 +3,1 @@"
        )
        (write,) = answer.writes
        assert (editor.id, lead.root, "user:ana", "enforced") == (write.run, write.root, write.principal, write.mode)
        assert record_place.samefile(".")


def test_an_observed_root_has_no_grant_and_no_handoff(relay: Relay) -> None:
    """A root that writes itself has the person's words as its task, and says that no grant was set."""
    with a_run(relay, intent="Fix it") as lead:
        lead.call(write_file, "a.py", "one\n")

    assert _words(relay.blame("a.py", 1)) == (
        'lead 7f3a · 23:14 ← ana: "Fix it"\n'
        "unverified · grant: none set · approval: none needed\n"
        "write_file 7f3a · @@ -0,0 +1,1 @@"
    )


def test_a_roots_own_grant_was_granted_by_the_person(relay: Relay) -> None:
    """Of a grant that begins with the root, the hop that gave it is the person."""
    with a_run(relay, may=["write:**"]) as lead:
        lead.call(write_file, "a.py", "one\n")

    assert "may write:** (granted by ana)" in str(relay.blame("a.py", 1))


@pytest.mark.parity("write-beyond-a-grant-is-shown")
def test_a_write_behind_a_link_is_beyond_the_grant(relay: Relay) -> None:
    """A permit for docs/ covers no file elsewhere, though a link in docs/ led the call there."""
    Path("docs").mkdir()
    Path("secret.txt").write_text("", encoding="utf-8")
    Path("docs/link.txt").symlink_to("../secret.txt")
    with a_run(relay) as lead, _editor(lead, may=["write:docs/**"]) as editor:
        editor.call(write_file, "docs/link.txt", "leaked\n")

    for path in ("secret.txt", "docs/link.txt"):
        answer = relay.blame(path, 1)
        assert "beyond its grant: may write:docs/** (granted by lead)" in str(answer)
        assert (True, None) == (answer.writes[0].is_beyond_grant, answer.writes[0].permit)


def test_a_grant_that_was_revoked_since_is_said_to_be(relay: Relay) -> None:
    """A write was inside of its grant; that the grant has ended since is said beside it."""
    with a_run(relay) as lead, _editor(lead, may=["write:**"]) as editor:
        editor.call(write_file, "a.py", "one\n")
        relay.revoke_grant(editor.handoff or "", by="user:ana")

        answer = relay.blame("a.py", 1)

    assert "may write:** (granted by lead, revoked since)" in str(answer)
    assert not answer.writes[0].is_beyond_grant


def test_hostile_words_stay_on_their_line(relay: Relay) -> None:
    """A task with line breaks and escape sequences looks like nothing but a task."""
    with a_run(relay, intent="x") as lead, lead.hand_off("e\nd", 'a"\n\x1b[2Junverified', accept=True) as editor:
        editor.call(write_file, "a.py", "\x1b[2Jone\n")

    text = str(relay.blame("a.py", 1))
    assert 3 == len(text.splitlines())
    assert "\x1b" not in text + str(relay.blame("a.py"))


def test_lines_of_several_calls_have_each_their_own(relay: Relay) -> None:
    """Hunks of later writes move lines of earlier ones, and take none that they left alone."""
    Path("a.py").write_text("old 1\nold 2\nold 3\n", encoding="utf-8")
    with a_run(relay) as lead:
        with _editor(lead) as editor:
            editor.call(write_file, "a.py", "old 1\nedit\nold 3\n")
        lead.call(write_file, "a.py", "top\nold 1\nedit\nold 3\n")

    answer = relay.blame("a.py")

    assert ["lead 1", "older", "editor 1", "older"] == _origins(answer)
    assert "recorded" == answer.state


def test_a_call_that_changed_white_space_wrote_the_line(relay: Relay) -> None:
    """An agent that dedents a line wrote it: what stands there now is what it left."""
    Path("a.py").write_text("def f():\n        return 1\n", encoding="utf-8")
    with a_run(relay) as lead, _editor(lead) as editor:
        editor.call(write_file, "a.py", "def f():\n    return 1\n")

    assert ["older", "editor 1"] == _origins(relay.blame("a.py"))


def test_a_write_that_failed_counts(relay: Relay) -> None:
    """A tool that raised after it had written wrote, and the words say that it failed."""
    with a_run(relay) as lead:
        with pytest.raises(OSError, match="disk full"):
            lead.call(spoil_file, "a.py", "half\n")
        answer = relay.blame("a.py", 1)

    assert "the call failed, and had written before" in str(answer)
    assert "failed" == answer.writes[0].outcome


def test_a_late_write_of_a_fenced_attempt_counts(relay: Relay) -> None:
    """An attempt that was over still changed the file, and the words say that it was late."""
    with a_run(relay) as lead:
        handoff = lead.hand_off("editor", "Fix rounding")
        begun = handoff.accept().begin_call("write_file", b"1", action="write", target="a.py")
        handoff.retry(by="user:ana")
        Path("a.py").write_text("late\n", encoding="utf-8")
        with pytest.raises(FencedError):
            begun.succeed(None)
        answer = relay.blame("a.py", 1)

    assert "delivered after its attempt was over" in str(answer)
    assert ("late", "editor", 1) == (answer.writes[0].outcome, answer.writes[0].agent, answer.writes[0].attempt)


def test_of_two_calls_at_once_none_is_named_for_what_both_saw_appear(relay: Relay) -> None:
    """Of calls that overlap, each saw the other's lines come: a line is one of theirs, and the words say so."""
    Path("a.py").write_text("old\n", encoding="utf-8")
    with a_run(relay) as lead:
        slow = lead.begin_call("slow", b"1", action="write", target="a.py")
        lead.call(write_file, "a.py", "old\nwritten in between\n")
        Path("a.py").write_text("old\nwritten in between\nwritten at last\n", encoding="utf-8")
        slow.succeed(None)
        answer = relay.blame("a.py")

    assert ["older", "unknown", "lead 1"] == _origins(answer)
    assert str(relay.blame("a.py", 2)).startswith("one of 2 calls that may have run at once:\n  write_file ")


def test_of_two_calls_at_once_none_is_named_for_a_large_file(relay: Relay) -> None:
    """A file whose lines are not kept is not the last caller's alone, if another call may have made it."""
    with a_run(relay) as lead:
        slow = lead.begin_call("slow", b"1", action="write", target="a.txt")
        lead.call(write_many, "a.txt", 100_000)
        slow.succeed(None)

    assert ["unknown"] == _origins(relay.blame("a.txt", 1))


def test_a_call_that_writes_again_what_was_undone_is_named(record_place: Path) -> None:
    """A hand that undoes a call ran at no time with it: the next call that writes the same has written it."""
    clock = FrozenClock()
    Path("a.py").write_text("old\n", encoding="utf-8")
    with a_relay(work_tree=record_place, system=clock) as relay, a_run(relay) as lead:
        for agent in ("editor", "second"):
            clock.advance(60)
            with lead.hand_off(agent, "Write it", accept=True) as run:
                run.call(write_file, "a.py", "old\nnew\n")
            if agent == "editor":
                Path("a.py").write_text("old\n", encoding="utf-8")

        assert ["older", "second 1"] == _origins(relay.blame("a.py"))


def test_a_change_outside_of_the_record_is_said(relay: Relay) -> None:
    """After a hand's edit, distinctive lines keep their writer by their words, and the others are in no record."""
    with a_run(relay) as lead, _editor(lead) as editor:
        editor.call(write_file, "a.py", "total = round_half_even(amount)\n}\nreport(total, currency)\n")
    Path("a.py").write_text(
        "by hand\ntotal = round_half_even(amount)\n}\nreport(total, currency)\n}\n", encoding="utf-8"
    )

    answer = relay.blame("a.py")

    assert ["not_recorded", "editor 1", "editor 1", "editor 1", "not_recorded"] == _origins(answer)
    assert "changed" == answer.state
    assert "recognised by its words: the file was changed outside of the record since" in str(relay.blame("a.py", 2))
    assert _words(relay.blame("a.py", 5)) == (
        "not in the record: no recorded call is known to have written this line\n"
        "the file was changed since write_file 7f3a of editor 7f3a (23:14), outside of the record"
    )


def test_a_hand_between_two_calls_is_no_call(relay: Relay) -> None:
    """What came between two recorded writes belongs to neither."""
    with a_run(relay) as lead:
        with _editor(lead) as editor:
            editor.call(write_file, "a.py", "first = recorded_value(1)\n")
        Path("a.py").write_text("first = recorded_value(1)\nby_hand = typed_by_ana(2)\n", encoding="utf-8")
        lead.call(write_file, "a.py", "first = recorded_value(1)\nby_hand = typed_by_ana(2)\nlast = recorded(3)\n")

    answer = relay.blame("a.py")

    assert ["editor 1", "not_recorded", "lead 1"] == _origins(answer)
    assert [True, False, False] == [line.is_matched for line in answer.lines]


def test_an_undone_write_is_in_no_line(relay: Relay) -> None:
    """A file that is as an earlier call left it has that call's lines, and the words say that the last was undone."""
    with a_run(relay) as lead:
        with _editor(lead) as editor:
            editor.call(write_file, "a.py", "kept\n")
        lead.call(write_file, "a.py", "thrown away\n")
    Path("a.py").write_text("kept\n", encoding="utf-8")

    answer = relay.blame("a.py")

    assert (["editor 1"], "earlier") == (_origins(answer), answer.state)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param("a\r\nb\r\n", "a\r\nB\r\n", ["older", "editor 1"], id="lines that end as on Windows"),
        pytest.param("a\r\nb\r\n", "a\nb\n", ["editor 1", "editor 1"], id="all ends of lines changed"),
        pytest.param("a\nb", "a\nB", ["older", "editor 1"], id="no end after the last line"),
        pytest.param("a\nb", "a\nb\n", ["older", "older"], id="only the last end was added"),
        pytest.param("a\n", "", [], id="nothing is left"),
        pytest.param("", "a\n\n", ["editor 1", "editor 1"], id="an empty line is a line"),
        pytest.param("ä\n", "ä\n🙂\n", ["older", "editor 1"], id="letters of several bytes"),
        pytest.param("a\x0cb\n", "a\x0cb\nc\n", ["older", "editor 1"], id="a form feed ends no line"),
    ],
)
def test_lines_are_those_of_the_file(relay: Relay, before: str, after: str, expected: list[str]) -> None:
    """A line ends where the file says so, and nowhere else."""
    Path("a.txt").write_bytes(before.encode())
    with a_run(relay) as lead, _editor(lead) as editor:
        editor.call(write_file, "a.txt", after)

    assert expected == _origins(relay.blame("a.txt"))


def test_a_file_that_is_no_text_has_a_last_writer(relay: Relay) -> None:
    """Of a file without lines the last recorded call is named."""
    with a_run(relay) as lead, _editor(lead) as editor:
        editor.call(write_file, "a.bin", "\0\1")

    assert "a.bin is no text and has no lines; last written by write_file" in str(relay.blame("a.bin"))
    with pytest.raises(InvalidValueError, match="is no text and has no lines; last written by write_file of editor"):
        relay.blame("a.bin", 1)


def test_a_file_of_ten_megabytes_has_the_writer_that_made_it(relay: Relay) -> None:
    """Lines of large files are not kept: all are its maker's, and after a change nobody's."""
    with a_run(relay) as lead:
        with _editor(lead) as editor:
            editor.call(write_many, "a.txt", 600_000)
        made = relay.blame("a.txt", 599_999)
        lead.call(write_many, "a.txt", 600_001)
        changed = relay.blame("a.txt", 3)

    assert ["editor 1"] == _origins(made)
    assert "not known: recorded calls wrote at once, or their lines were not kept" in str(changed)


def _nothing(_: Relay) -> None:
    pass


def _deleted(relay: Relay) -> None:
    with a_run(relay) as lead:
        lead.call(write_file, "gone.txt", "a\n")
        lead.call(delete_file, "gone.txt")


def _taken_away(relay: Relay) -> None:
    with a_run(relay) as lead:
        lead.call(write_file, "gone.txt", "a\n")
    Path("gone.txt").unlink()


def _folder(_: Relay) -> None:
    Path("gone.txt").mkdir()


def _written(relay: Relay) -> None:
    with a_run(relay) as lead:
        lead.call(write_file, "gone.txt", "a\n")


@pytest.mark.parametrize(
    ("prepare", "line", "error", "words"),
    [
        pytest.param(_nothing, None, NotFoundError, "no recorded call wrote one", id="a file that never was"),
        pytest.param(_deleted, 1, NotFoundError, "now: deleted by delete_file of lead", id="deleted by a call"),
        pytest.param(
            _taken_away, 1, NotFoundError, "what took it away is not in the record", id="taken away by a hand"
        ),
        pytest.param(_folder, None, InvalidValueError, "is a folder", id="a folder"),
        pytest.param(_written, 2, InvalidValueError, "has 1 line: there is no line 2", id="a line after the last"),
        pytest.param(_written, 0, InvalidValueError, "line", id="line nought"),
    ],
)
def test_what_cannot_be_blamed_is_a_sentence(
    relay: Relay, prepare: Callable[[Relay], None], line: int | None, error: type[BatonpassError], words: str
) -> None:
    """A question without an answer is refused in words that say why."""
    prepare(relay)

    with pytest.raises(error, match=words):
        relay.blame("gone.txt", line)


def test_a_file_that_no_call_wrote_is_said_to_be_so(relay: Relay) -> None:
    """No line of a file of which nothing is recorded is anybody's."""
    Path("a.txt").write_text("a\n", encoding="utf-8")

    assert ["not_recorded"] == _origins(relay.blame("a.txt"))
    assert str(relay.blame("a.txt", 1)).endswith("a.txt: no recorded call wrote this file")


@pytest.mark.parametrize("name", ["a.txt", "..a.txt", "sub/a b.txt", "süß.txt", "a:3"])
def test_a_file_is_found_however_it_is_named(record_place: Path, relay: Relay, name: str) -> None:
    """One file has one record: by its path from the work tree or from a folder, absolute, or through a link."""
    path = record_place / name
    path.parent.mkdir(exist_ok=True)
    with a_run(relay) as lead:
        begun = lead.begin_call("write_file", b"null", action="write", target=name)
        path.write_text("a\n", encoding="utf-8")
        begun.succeed(None)
    (record_place / "link").symlink_to(path)
    (record_place / "below").mkdir()
    spellings = [name, f"./{name}", str(path), "link", f"below/../{name}"]

    assert [["lead 1"]] * len(spellings) == [_origins(relay.blame(each)) for each in spellings]
    os.chdir("below")
    assert ["lead 1"] == _origins(relay.blame(f"../{name}"))
    assert [1] == [each["number"] for each in json.loads(msgspec.json.encode(relay.blame(path)))["lines"]]


def test_a_name_that_is_no_text_is_refused_or_found(relay: Relay) -> None:
    """A name that is not UTF-8 cannot be asked for in JSON; through a link the file behind it is recorded and found."""
    Path("link").symlink_to(b"caf\xe9.txt")
    with a_run(relay) as lead:
        lead.call(write_file, "link", "a\n")

    answer = relay.blame("link")

    assert (["lead 1"], "caf\\xe9.txt") == (_origins(answer), answer.path)
    assert msgspec.json.encode(answer)
    with pytest.raises(InvalidValueError):
        relay.blame(os.fsdecode(b"caf\xe9.txt"))


def test_a_program_in_a_folder_of_the_work_tree_is_recorded(record_place: Path) -> None:
    """What a tool writes from a folder is recorded where it is, also if the tool goes elsewhere; so is its grant."""

    @tool(action="write", target="path")
    def write_and_leave(path: str) -> None:
        Path(path).write_text("by the call\n", encoding="utf-8")
        os.chdir(record_place)

    (record_place / ".git").mkdir()
    (record_place / "below/src").mkdir(parents=True)
    os.chdir("below")
    with Relay.open() as relay, a_run(relay) as lead, _editor(lead, may=["write:below/src/**"]) as editor:
        editor.call(write_and_leave, "src/a.py")

        answer = relay.blame("below/src/a.py", 1)

    assert "may write:below/src/** (granted by lead)" in str(answer)
    assert not answer.writes[0].is_beyond_grant


def test_a_program_whose_folder_is_gone_is_recorded(record_place: Path, relay: Relay) -> None:
    """A program whose folder was deleted can still write files by their whole names."""
    Path("gone").mkdir()
    os.chdir("gone")
    (record_place / "gone").rmdir()
    with a_run(relay) as lead:
        lead.call(write_file, str(record_place / "a.py"), "a\n")

    assert ["lead 1"] == _origins(relay.blame(record_place / "a.py"))


def test_a_link_that_was_replaced_is_another_file(relay: Relay) -> None:
    """What was written through a link stays with the file behind it, when the link becomes a file of its own."""
    Path("real.txt").write_text("", encoding="utf-8")
    Path("link.txt").symlink_to("real.txt")
    with a_run(relay) as lead:
        lead.call(write_file, "link.txt", "through the link\n")
    Path("link.txt").unlink()
    Path("link.txt").write_text("through the link\n", encoding="utf-8")

    assert (["lead 1"], ["not_recorded"]) == (_origins(relay.blame("real.txt")), _origins(relay.blame("link.txt")))


def test_a_question_begins_no_record() -> None:
    """Where nothing is recorded, a question says so and leaves nothing behind."""
    Path("a.txt").write_text("a\n", encoding="utf-8")

    with pytest.raises(StoreError, match="nothing is recorded of"):
        blame("a.txt")
    assert not Path(os.environ["BATONPASS_STATE_DIR"]).exists()


def test_a_call_without_an_outcome_may_be_the_writer(relay: Relay) -> None:
    """What a killed call wrote is in no record: it is named beside the lines that have no writer, also once settled."""
    with a_run(relay) as lead:
        handoff = lead.hand_off("drafter", "Draft the summary")
        begun = handoff.accept().begin_call("write_file", b"1", action="write", target="a.md")
        Path("a.md").write_text("half\n", encoding="utf-8")
        unsettled = relay.blame("a.md", 1)
        handoff.retry(by="user:ana", repeat=[begun.id])
        handoff.accept().call(write_file, "a.md", "half\nwhole\n")
        settled = relay.blame("a.md")

    assert (["not_recorded"], [begun.id]) == (_origins(unsettled), [call.call for call in unsettled.in_doubt])
    assert ["older", "drafter 2"] == _origins(settled)
    assert [begun.id] == [call.call for call in settled.in_doubt]
    assert "left no outcome: what has no writer here may be its" in str(relay.blame("a.md", 1))
    assert () == relay.blame("a.md", 2).in_doubt


def test_calls_and_hands_in_turn_keep_their_lines(relay: Relay) -> None:
    """However often a person saves between two calls, the lines of each call are recognised."""
    text = ""
    with a_run(relay) as lead:
        for turn in range(5):
            text = f"recorded = made_by_the_call_of_turn({turn})\n{text}"
            lead.call(write_file, "a.py", text)
            text = f"{text}typed = made_by_a_hand_in_turn({turn})\n"
            Path("a.py").write_text(text, encoding="utf-8")

    assert ["lead 1"] * 5 + ["not_recorded"] * 5 == _origins(relay.blame("a.py"))


def test_past_two_changes_only_what_is_single_is_recognised(relay: Relay) -> None:
    """Past the last change a line is nobody's if it stands there twice, or if two calls ever wrote it."""
    twice, shared, single = (f"{word} = written_by_the_first_call()\n" for word in ("twice", "shared", "single"))
    with a_run(relay) as lead:
        with _editor(lead) as editor:
            editor.call(write_file, "a.py", twice + shared + single)
        Path("a.py").write_text(f"by hand\n{twice}{single}{twice}", encoding="utf-8")
        lead.call(write_file, "a.py", f"{shared}by hand\n{twice}{single}{twice}")
        lead.call(write_file, "a.py", f"by hand\n{twice}{single}{twice}")
        Path("a.py").write_text(f"by hand\n{twice}{shared}{single}{twice}", encoding="utf-8")

    expected = ["not_recorded", "not_recorded", "not_recorded", "editor 1", "not_recorded"]
    assert expected == _origins(relay.blame("a.py"))


def test_work_trees_of_one_repository_keep_their_files_apart(tmp_path: Path) -> None:
    """Linked work trees share the record: a call in one is in no line of the other's file of the same name."""
    main, linked = tmp_path / "main", tmp_path / "linked"
    (main / ".git/worktrees/linked").mkdir(parents=True)
    (main / ".git/worktrees/linked/commondir").write_text("../..\n", encoding="utf-8")
    (main / ".git/worktrees/linked/gitdir").write_text(f"{linked}/.git\n", encoding="utf-8")
    (main / ".git/worktrees/linked/gitdir").write_text(f"{linked}/.git\n", encoding="utf-8")
    linked.mkdir()
    (linked / ".git").write_text(f"gitdir: {main}/.git/worktrees/linked\n", encoding="utf-8")
    for tree, text in ((main, "first = written_in_main()\n"), (linked, "second = written_in_linked()\n")):
        (tree / "a.py").write_text("before\n", encoding="utf-8")
        os.chdir(tree)
        with Relay.open() as relay, a_run(relay) as lead, _editor(lead) as editor:
            editor.call(write_file, "a.py", f"before\n{text}")
    with Relay.open() as relay:
        answers = {tree.name: relay.blame(tree / "a.py") for tree in (linked,)}
        os.chdir(main)
    with Relay.open() as relay:
        answers["main"] = relay.blame("a.py")

    assert [["older", "editor 1"]] * 2 == [_origins(answer) for answer in answers.values()]
    assert {"linked": "recorded", "main": "earlier"} == {name: answer.state for name, answer in answers.items()}
    assert "that was undone, or done in another work tree" in str(answers["main"])
