"""Lines are followed through whatever happens to them, to the run that wrote them."""

from datetime import timedelta

import pytest

from batonpass.attribution.changes.change import FileChange, Hunk, digest_of
from batonpass.attribution.changes.mark import UNRECORDED, Author
from batonpass.attribution.lines.attribution import How, attribute
from tests.attribution.story import BEGAN, MINUTE, Story, data_of

TOTAL = "total = sum_of_all(invoice)"
TAXES = "taxes = rate_for(country) * total"
NAMES = "names = sorted(customer_names)"
PRINT = "print_the_invoice(total, taxes)"
EMAIL = "send_by_email(invoice, names)"


def test_an_edit_is_its_runs_and_leaves_the_rest_alone() -> None:
    """Who changes one line is asked for that line, and nobody else's."""
    story = Story()
    story.records("run_a", TOTAL, TAXES, PRINT)
    story.records("run_b", TOTAL, NAMES, PRINT)

    assert ["run_a", "run_b", "run_a"] == story.runs()


def test_a_recorded_line_names_its_call() -> None:
    """An answer has the call, and says that recorded changes lead to it without a gap."""
    story = Story()
    story.records("run_a", TOTAL)

    [found] = story.found()
    assert ("call_1", "run_a", How.RECORDED, (), True) == (
        found.call,
        found.run,
        found.how,
        found.candidates,
        found.is_explained,
    )


def test_a_line_that_moves_keeps_who_wrote_it() -> None:
    """Whoever moves lines has not written them."""
    story = Story()
    story.records("run_a", TOTAL, TAXES, PRINT, EMAIL)
    story.records("run_b", PRINT, EMAIL, TOTAL, TAXES)

    assert ["run_a"] * 4 == story.runs()


def test_a_block_without_a_line_that_says_much_keeps_who_wrote_it() -> None:
    """Several lines that move as one piece are known, whatever they say."""
    story = Story()
    story.records("run_a", "a = 1", "b = 2", "c = 3", TOTAL, TAXES, PRINT, EMAIL)
    story.records("run_b", TOTAL, TAXES, PRINT, EMAIL, "a = 1", "b = 2", "c = 3")

    assert ["run_a"] * 7 == story.runs()


def test_one_line_that_is_gone_here_and_new_there_has_two_candidates() -> None:
    """A single line may have been moved, or written twice: both are named."""
    story = Story()
    story.records("run_a", TOTAL, TAXES, PRINT, EMAIL)
    story.records("run_b", TAXES, PRINT, NAMES, TOTAL, EMAIL)

    assert {"run_a", "run_b"} == {one.run for one in story.found()[3].candidates}


def test_a_recorded_rename_keeps_who_wrote_it() -> None:
    """A new name is not a new text."""
    story = Story()
    story.records("run_a", TOTAL, TAXES)
    story.records("run_b", TOTAL, TAXES, PRINT, to="bill.py")

    assert ["run_a", "run_a", "run_b"] == story.runs()


def test_a_rename_that_git_alone_knows_keeps_who_wrote_it() -> None:
    """Nobody recorded the new name, and a commit has the same lines under it."""
    story = Story()
    story.records("run_a", TOTAL, TAXES)
    story.commits()
    story.becomes(TOTAL, TAXES, to="bill.py")
    story.commits()

    assert ["run_a", "run_a"] == story.runs()


def test_reformatting_keeps_who_wrote_it_and_says_who_reformatted() -> None:
    """White space has no author; who changed it last is said beside the answer."""
    story = Story()
    story.records("run_a", TOTAL, TAXES)
    story.records("run_b", f"    {TOTAL}", TAXES)

    assert [("run_a", "call_2"), ("run_a", None)] == [(one.run, one.reformatted_by) for one in story.found()]


def test_reformatting_that_nobody_recorded_keeps_who_wrote_it() -> None:
    """A formatter on somebody's machine takes no lines away from a run."""
    story = Story()
    story.records("run_a", TOTAL, TAXES, PRINT)
    story.becomes(f"    {TOTAL}", f"    {TAXES}", PRINT)

    assert [("run_a", UNRECORDED), ("run_a", UNRECORDED), ("run_a", None)] == [
        (one.run, one.reformatted_by) for one in story.found()
    ]


def test_reformatting_while_something_else_changes_keeps_who_wrote_it() -> None:
    """Indented by somebody who also wrote a line: the indented ones are still the run's."""
    story = Story()
    story.records("run_a", NAMES, TOTAL, TAXES, PRINT)
    story.becomes(NAMES, "if customer.has_paid_at_all:", f"    {TOTAL}", f"    {TAXES}", PRINT)

    assert ["run_a", None, "run_a", "run_a", "run_a"] == story.runs()


def test_a_human_edit_in_between_is_nobodys_and_takes_nothing() -> None:
    """A line that a person typed between two calls belongs to neither."""
    story = Story()
    story.records("run_a", TOTAL, PRINT)
    story.becomes(TOTAL, TAXES, PRINT)
    story.records("run_b", TOTAL, TAXES, PRINT, EMAIL)

    assert ["run_a", None, "run_a", "run_b"] == story.runs()


def test_what_nothing_explains_says_since_when() -> None:
    """A line that came after a call was not there at that call; one from before has no time."""
    story = Story()
    story.becomes(NAMES)
    story.commits()
    story.records("run_a", NAMES, TOTAL)
    story.becomes(NAMES, TOTAL, TAXES)

    found = story.found()
    assert [None, None, story.changes[0].at] == [one.unexplained_since for one in found]
    assert [(), ()] == [found[0].candidates, found[2].candidates]


def test_what_a_person_typed_over_is_the_persons() -> None:
    """A changed line is another line."""
    story = Story()
    story.records("run_a", TOTAL, TAXES, PRINT)
    story.becomes(TOTAL, f"{TAXES}  # at least", PRINT)

    assert ["run_a", None, "run_a"] == story.runs()


def test_calls_that_overlapped_are_candidates() -> None:
    """Of two calls that ran at once, neither is guessed."""
    story = Story()
    story.records("run_a", TOTAL)
    story.records("run_b", TOTAL, TAXES, overlapping=("call_1", "call_9"))

    found = story.found()[1]
    assert (None, None) == (found.call, found.run)
    assert (Author("call_2", "run_b"), Author("call_1", "run_a"), Author("call_9", None)) == found.candidates


def test_calls_of_one_run_that_overlapped_are_that_runs() -> None:
    """Which call it was is open; whose it was is not."""
    story = Story()
    story.records("run_a", TOTAL)
    story.records("run_a", TOTAL, TAXES, overlapping=("call_1",))

    found = story.found()[1]
    assert (None, "run_a", 2) == (found.call, found.run, len(found.candidates))


def test_a_file_that_was_deleted_and_written_again_is_its_last_writers() -> None:
    """What was there before a file was deleted is not what is there now, if the same words are."""
    story = Story()
    story.records("run_a", TOTAL, TAXES)
    story.deletes("run_b")
    story.records("run_c", TOTAL, TAXES)

    assert ["run_c", "run_c"] == story.runs()


def test_an_undone_deletion_gives_lines_back() -> None:
    """What a checkout brings back is still whose it was."""
    story = Story()
    story.records("run_a", TOTAL, TAXES, PRINT)
    first = story.commits()
    story.records("run_b", TOTAL)
    story.returns_to(first)

    assert ["run_a"] * 3 == story.runs()


def test_a_file_that_a_call_left_empty_has_no_lines() -> None:
    """Nothing is asked for, nothing is answered."""
    story = Story()
    story.records("run_a", TOTAL)
    story.records("run_b")

    assert () == story.found()


def test_the_ends_of_lines_are_nobodys() -> None:
    """A file that is saved with the ends of Windows keeps all its authors."""
    change = FileChange(
        call="call_1",
        run="run_a",
        at=BEGAN,
        path="a",
        after=digest_of(data_of([TOTAL, TAXES])),
        hunks=(Hunk(0, 0, 1, 2, (), (TOTAL, TAXES)),),
    )

    assert ["run_a", "run_a"] == [one.run for one in attribute("a", f"{TOTAL}\r\n{TAXES}\r\n".encode(), [change])]


def test_a_missing_last_newline_is_nobodys() -> None:
    """The last line is the same line without its end."""
    change = FileChange(call="call_1", run="run_a", at=BEGAN, path="a", hunks=(Hunk(0, 0, 1, 1, (), (TOTAL,)),))
    created = FileChange(
        call="call_1", run="run_a", at=BEGAN, path="a", after=digest_of(data_of([TOTAL])), hunks=change.hunks
    )

    assert ["run_a"] == [one.run for one in attribute("a", TOTAL.encode(), [created])]


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"", id="an empty file"),
        pytest.param(b"\0\xff\xfe\n\x80", id="a binary file"),
        pytest.param(b"\xff\n" * 3, id="lines that are no text"),
    ],
)
def test_whatever_bytes_a_file_has_each_line_is_answered(data: bytes) -> None:
    """No bytes are refused, and nothing is made up about them."""
    change = FileChange(call="call_1", run="run_a", at=BEGAN, path="a", before=digest_of(b"x"), after=digest_of(data))

    assert [None] * (data.count(b"\n") + (data[-1:] not in {b"", b"\n"})) == [
        one.run for one in attribute("a", data, [change])
    ]


def test_changes_of_other_files_say_nothing() -> None:
    """The same words in another file are another matter."""
    other = Story("other.py")
    other.records("run_a", TOTAL)

    assert [None] == [one.run for one in attribute("invoice.py", data_of([TOTAL]), other.changes)]


def test_a_change_of_which_only_digests_are_known_is_followed() -> None:
    """Two known texts and a call between them: what is different is the call's."""
    story = Story()
    story.becomes(TOTAL)
    story.commits()
    story.records("run_a", TOTAL, TAXES)
    known = story.changes[0]
    story.changes = [
        FileChange(call="call_1", run="run_a", at=known.at, path=known.path, before=known.before, after=known.after)
    ]

    assert [None, "run_a"] == story.runs()


def test_a_text_in_between_is_worked_out_from_the_next_one() -> None:
    """A person's edit is known, though nobody kept that text: the hunks of the next call lead back to it."""
    story = Story()
    story.records("run_a", TOTAL, PRINT)
    story.becomes(NAMES, TOTAL, PRINT)
    story.records("run_b", NAMES, TOTAL, TAXES, PRINT)

    assert [None, "run_a", "run_b", "run_a"] == story.runs()


def test_a_change_at_the_second_of_a_commit_is_in_it() -> None:
    """Git keeps whole seconds; what a call wrote within one may have been committed in it."""
    story = Story()
    story.records("run_a", TOTAL, TAXES)
    story.commits()
    revision = story.revisions[0]
    at = story.changes[0].at
    story.changes = [
        FileChange(
            call="call_1",
            run="run_a",
            at=revision.at + timedelta(milliseconds=900),
            path=story.path,
            after=story.changes[0].after,
            hunks=story.changes[0].hunks,
        )
    ]

    assert at < revision.at
    assert ["run_a", "run_a"] == story.runs()


def test_a_record_that_contradicts_itself_attributes_nothing_it_did_not_write() -> None:
    """A call is named for a line only if it is recorded to have written that text."""
    lie = FileChange(
        call="call_1",
        run="run_a",
        at=BEGAN + MINUTE,
        path="a",
        after=digest_of(data_of([TAXES])),
        hunks=(Hunk(0, 0, 1, 1, (), (TOTAL,)),),
    )

    assert [None] == [one.run for one in attribute("a", data_of([TAXES]), [lie])]
