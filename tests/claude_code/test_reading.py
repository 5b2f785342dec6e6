"""What the real program keeps, as we read it. If a new version keeps it otherwise, it shows here."""

from pathlib import Path

import pytest

from batonpass.adapters.claude_code.transcripts.claude_code_sessions import ClaudeCodeSessions
from batonpass.adapters.claude_code.transcripts.transcript_places import find_transcripts, slug_of
from batonpass.adapters.session_files.conversation import (
    Conversation,
    TranscriptCall,
    TranscriptRun,
    read_conversation,
)
from batonpass.adapters.session_files.session_place import SessionFiles
from batonpass.adapters.session_files.session_values import LinkedBy
from tests.claude_code.story import (
    AFTER,
    CHANGES,
    DEEPER,
    FIX,
    FIXED,
    HALF_EVEN,
    INVOICE,
    NEGATIVE,
    NOTES,
    OTHERWISE,
    SLOWLY,
    Played,
)

pytestmark = pytest.mark.slow


def transcript_of(played: Played, session: str) -> SessionFiles:
    (found,) = [one for one in find_transcripts(played.project, config=played.config) if one.session == session]
    return found


def conversation_of(played: Played) -> Conversation:
    return read_conversation(ClaudeCodeSessions(), transcript_of(played, played.session), played.project)


def call_of(run: TranscriptRun, name: str) -> TranscriptCall:
    (found,) = [call for call in run.calls if call.use.tool_use_id == f"toolu_{name}"]
    return found


def run_of(conversation: Conversation, task: str) -> TranscriptRun:
    (found,) = [run for run in conversation.runs if run.task == task]
    return found


def test_the_folder_is_named_after_the_directory(played: Played) -> None:
    """What is no letter and no digit is a dash."""
    folders = [path.name for path in (played.config / "projects").iterdir()]

    assert [slug_of(str(played.project))] == folders


def test_both_sessions_are_found(played: Played) -> None:
    """A session that was continued or resumed is one file; a fork is another."""
    found = {one.session for one in find_transcripts(played.project, config=played.config)}

    assert {played.session, played.fork} == found


def test_a_session_says_which_version_wrote_it(played: Played) -> None:
    """It stands on every line."""
    assert conversation_of(played).info.version is not None


def test_prompts_are_what_the_human_said(played: Played) -> None:
    """Word for word and in order; notices, summaries and /compact are not among them."""
    said = [prompt.text for prompt in conversation_of(played).prompts]

    assert [FIX, NEGATIVE, CHANGES, AFTER] == said


def test_nothing_is_damaged(played: Played) -> None:
    """Every line that the program wrote can be read."""
    assert (0, ()) == (conversation_of(played).unread, conversation_of(played).strays)


def test_every_call_of_the_lead_has_its_outcome(played: Played) -> None:
    """Done, failed, or refused: the transcript tells them apart."""
    outcomes = {
        call.use.tool_use_id.removeprefix("toolu_"): (call.result.ok, call.result.denied)
        for call in conversation_of(played).main.calls
        if call.result is not None
    }

    assert {
        "look": (True, None),
        "edit": (True, None),
        "create": (True, None),
        "rewrite": (True, None),
        "sed": (True, None),
        "fails": (False, None),
        "misses": (False, None),
        "denied": (False, "permission-rule"),
        "half": (True, None),
        "notes": (True, None),
        "slow": (True, None),
        "negative": (True, None),
        "after": (True, None),
    } == outcomes


def test_an_edit_tells_the_text_before_and_after(played: Played) -> None:
    """The result of an edit has the whole file as it was, and the lines that changed."""
    (change,) = call_of(conversation_of(played).main, "edit").changes

    assert ("src/invoice.py", False, INVOICE, FIXED) == (
        change.path,
        change.created,
        change.before,
        change.after,
    )
    assert [("-    return round(sum(lines), 2)", '+    return sum(lines).quantize(Decimal("0.01"))')] == [
        tuple(line for line in hunk.lines if line[0] != " ") for hunk in change.hunks
    ]


def test_a_new_file_is_told_from_a_rewritten_one(played: Played) -> None:
    """Writing says whether the file was there."""
    main = conversation_of(played).main
    changes = [call_of(main, name).changes[0] for name in ("create", "rewrite")]

    assert [(True, None, "one\ntwo\n"), (False, "one\ntwo\n", "one\nTWO\n")] == [
        (change.created, change.before, change.after) for change in changes
    ]


def test_a_shell_command_tells_no_change(played: Played) -> None:
    """What `sed -i` did is in no transcript."""
    assert () == call_of(conversation_of(played).main, "sed").changes


def test_a_failed_command_says_why(played: Played) -> None:
    """The exit code and what was printed are the error."""
    result = call_of(conversation_of(played).main, "fails").result

    assert result is not None
    assert "Exit code 3\noops" == result.text


def test_sub_agents_hang_from_the_calls_that_started_them(played: Played) -> None:
    """Two of one type at once, one in the background, one below another: each has its own call and its exact task."""
    conversation = conversation_of(played)
    hanging = {
        run.task: (run.parent.use.tool_use_id, run.parent.use.agent is None, run.link, run.agent_type)
        for run in conversation.runs
        if run.parent is not None
    }

    assert {
        HALF_EVEN: ("toolu_half", True, LinkedBy.META, "editor"),
        NOTES: ("toolu_notes", True, LinkedBy.META, "editor"),
        SLOWLY: ("toolu_slow", True, LinkedBy.META, "editor"),
        DEEPER: ("toolu_deeper", False, LinkedBy.META, "editor"),
    } == hanging


def test_sub_agents_have_their_own_words_and_calls(played: Played) -> None:
    """What a sub-agent did and gave back is in its own file."""
    run = run_of(conversation_of(played), NOTES)

    assert [("Write", True), ("Bash", False), ("Read", True), ("Bash", True), ("Edit", True)] == [
        (call.use.tool, call.result is not None and call.result.ok) for call in run.calls
    ]
    assert run.report is not None
    assert "The notes are written." == run.report.text


def test_one_in_the_background_is_known_to_have_ended(played: Played) -> None:
    """The call returns at once; a notice says later that it is done."""
    assert "completed" == run_of(conversation_of(played), SLOWLY).status


def test_calls_know_the_words_they_were_made_under(played: Played) -> None:
    """Those of sub-agents too, however deep."""
    conversation = conversation_of(played)
    deep = run_of(conversation, DEEPER).calls[0].prompt
    late = call_of(conversation.main, "after").prompt

    assert deep is not None
    assert late is not None
    assert (FIX, AFTER) == (deep.text, late.text)


def test_a_sub_agents_change_follows_from_what_it_read(played: Played) -> None:
    """Their files keep no patch: text and place follow from what was shown before, and are what the file became."""
    (change,) = call_of(run_of(conversation_of(played), HALF_EVEN), "half_edit").changes

    assert FIXED == change.before
    assert (played.project / "src" / "invoice.py").read_text(encoding="utf-8") == change.after
    assert [(4, ("-def total(lines):", "+def total(rows):"))] == [
        (hunk.old_start, (hunk.lines[0], hunk.lines[2])) for hunk in change.hunks
    ]


def test_a_change_to_a_file_that_a_command_changed_has_no_place(played: Played) -> None:
    """The program edits it, and says that it is not as it was read: the text before is not known."""
    (change,) = call_of(run_of(conversation_of(played), NOTES), "notes_edit").changes

    assert (None, None, [("-three", "+THREE")]) == (change.before, change.after, [hunk.lines for hunk in change.hunks])
    assert "ONE\nTHREE\n" == (played.project / "notes.md").read_text(encoding="utf-8")


def test_a_sub_agents_new_file_is_known_to_be_new(played: Played) -> None:
    """The words of the result say so, and nothing else does."""
    (change,) = call_of(run_of(conversation_of(played), NOTES), "notes_write").changes

    assert (True, "dear office\n") == (change.created, change.after)


def test_a_fork_holds_copies_that_are_not_its_own(played: Played) -> None:
    """A fork begins with lines of another session, under their ids: without those, only what is its own is left."""
    original = conversation_of(played)
    fork = read_conversation(
        ClaudeCodeSessions(), transcript_of(played, played.fork), played.project, without=original.uuids
    )

    assert [OTHERWISE] == [prompt.text for prompt in fork.prompts]
    assert fork.copied in original.uuids


def test_without_the_meta_files_results_link_sub_agents(copied: Played) -> None:
    """The result of a call names its sub-agent; below a sub-agent there are no such results, and the task decides."""
    for meta in copied.config.rglob("*.meta.json"):
        meta.unlink()
    links = {run.task: run.link for run in conversation_of(copied).runs if run.agent is not None}

    assert {
        HALF_EVEN: LinkedBy.RESULT,
        NOTES: LinkedBy.RESULT,
        SLOWLY: LinkedBy.RESULT,
        DEEPER: LinkedBy.INFERRED,
    } == links


def test_without_their_transcripts_sub_agents_are_still_known(copied: Played) -> None:
    """What they were told and gave back stands in the main file as well."""
    for path in copied.config.rglob("agent-*"):
        path.unlink()
    runs = [run for run in conversation_of(copied).runs if run.agent is not None]

    assert [HALF_EVEN, NOTES, SLOWLY] == [run.task for run in runs]
    assert [True, True, False] == [run.report is not None for run in runs]


def test_a_line_that_is_being_written_waits(copied: Played) -> None:
    """Half a line at the end is no damage, and all before it is there."""
    main = transcript_of(copied, copied.session).main
    whole = conversation_of(copied)
    with main.open("ab") as file:
        file.write(b'{"type":"user","message":{"role":"user","content":"half')
    again = conversation_of(copied)

    assert (whole.prompts, 0) == (again.prompts, again.unread)


def test_a_damaged_line_is_told_and_skipped(copied: Played) -> None:
    """File and number of the line are told; the others are read."""
    main = transcript_of(copied, copied.session).main
    whole = conversation_of(copied)
    _insert(main, after=2, text=b'{"type":"user",,,\n')
    again = conversation_of(copied)

    assert whole.prompts == again.prompts
    assert [f"{main}:3: is not JSON"] == [str(problem) for problem in again.problems]


def _insert(path: Path, *, after: int, text: bytes) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:after], text, *lines[after:]]))
