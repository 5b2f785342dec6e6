"""What transcripts say, in the words of receipts: names, codes, targets, changes, and how a sub-agent ended."""

import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from batonpass.adapters.claude_code.transcripts.conversation import TranscriptCall, TranscriptFileChange, TranscriptRun
from batonpass.adapters.claude_code.transcripts.patches import EDITORS
from batonpass.adapters.claude_code.transcripts.transcript_values import PatchHunk, ToolUse
from batonpass.attribution.changes.change import FileChange as Recorded
from batonpass.attribution.changes.change import Hunk as RecordedHunk
from batonpass.attribution.changes.change_document import encode_change
from batonpass.errors import InvalidValueError
from batonpass.handoff.runtime.desk import Desk
from batonpass.handoff.tools.json_values import describe, readable
from batonpass.model.base.ids import AgentId, CallId, Digest, RunId
from batonpass.model.base.label import Label, SourceType
from batonpass.model.bodies.body import Changed, Outcome
from batonpass.model.ledger.content import Content
from batonpass.model.ledger.entry import Touch

NOT_THERE: Final = "(not in the transcript)"

# PostgreSQL keeps no larger content; nothing that a person or a model wrote comes near.
_LARGEST: Final = 16 * 1024 * 1024
_MOST_CHARACTERS: Final = _LARGEST // 4  # of four bytes each, at most

_OF_THE_WEB: Final = frozenset({"WebFetch", "WebSearch"})
_OF_OTHERS: Final = "mcp__"

# They change nothing that outlives the session. Bash may do anything, and is not here.
_READERS: Final = frozenset(
    {
        "AgentOutput",
        "AskUserQuestion",
        "BashOutput",
        "ExitPlanMode",
        "Glob",
        "Grep",
        "LS",
        "ListAgents",
        "NotebookRead",
        "Read",
        "TaskOutput",
        "TodoRead",
        "TodoWrite",
        "ToolSearch",
        "WebFetch",
        "WebSearch",
    },
)
_NO_AGENT: Final = re.compile(r"[^A-Za-z0-9._:/@+-]")
_NO_CODE: Final = re.compile(r"[^a-z0-9_.-]")
_LONGEST_NAME: Final = 128
_LONGEST_CODE: Final = 64
_FINISHED: Final = frozenset({None, "completed", "async_launched"})


class KeptChange(Struct, frozen=True, kw_only=True):
    """A file change as a receipt holds it: the words, their reference, and the path to find them by."""

    content: Content
    changed: Changed
    touch: Touch


def as_agent(name: str) -> AgentId:
    """Return a name as an id of an agent or a tool; what does not fit becomes a dash."""
    fitting = _NO_AGENT.sub("-", name)[:_LONGEST_NAME].lstrip("._:/@+-")
    return AgentId(fitting or "unnamed")


def as_code(name: str) -> str:
    """Return a name as a code; what does not fit becomes a dash."""
    return _NO_CODE.sub("-", name.lower())[:_LONGEST_CODE]


def within_limit(text: str) -> str:
    """Return words as they are; of more than anybody wrote, the beginning."""
    return text[:_MOST_CHARACTERS]


def describe_call(use: ToolUse) -> bytes:
    """Return a call's tool and arguments as the content that holds them."""
    return describe_arguments(use.tool, use.input)


def describe_arguments(tool: str, arguments: Mapping[str, Any]) -> bytes:
    """Return a tool and its arguments as the content that holds them."""
    try:
        described = describe({"tool": tool, "arguments": arguments})
    except InvalidValueError as error:
        return describe({"tool": tool, "arguments": {"shown": error.problem}})
    if len(described) > _LARGEST:
        return describe({"tool": tool, "arguments": {"shown": f"{len(described):,} bytes"}})
    return described


def is_reading(tool: str) -> bool:
    """Return whether a tool changes nothing."""
    return tool in _READERS


def label_of(tool: str) -> Label:
    """Return the label of what a tool returns: the web and the servers of others are not ours."""
    outside = tool in _OF_THE_WEB or tool.startswith(_OF_OTHERS)
    return Label(SourceType.EXTERNAL if outside else SourceType.TOOL_OUTPUT)


def target_of(call: TranscriptCall) -> str | None:
    """Return the file that a call changes, as seen from the project; None if it names none."""
    if call.changes:
        return call.changes[0].path
    path = call.use.input.get("file_path") if call.use.tool in EDITORS else None
    return path if isinstance(path, str) and path.strip() else None


def changes_of(call: TranscriptCall, desk: Desk, *, identifier: CallId, run: RunId) -> tuple[KeptChange, ...]:
    """Return what a call changed, ready to be recorded."""
    return keep_changes((change_of(change, identifier, run, desk.clock.now()) for change in call.changes), desk)


def keep_changes(changes: Iterable[Recorded], desk: Desk) -> tuple[KeptChange, ...]:
    """Return changes, ready to be recorded."""
    found = []
    for number, recorded in enumerate(changes, 1):
        document = encode_change(recorded)
        if len(document) > _LARGEST:
            document = encode_change(replace(recorded, hunks=None))
        content = desk.json(f"change.{number}", document)
        changed = Changed(change=content.ref.id, before=recorded.before, after=recorded.after)
        found.append(
            KeptChange(content=content, changed=changed, touch=Touch(path=recorded.path, content=content.ref.id))
        )
    return tuple(found)


def outcome_of(run: TranscriptRun) -> Outcome:
    """Return how a sub-agent ended: it delivered if it had a last word and nothing says otherwise."""
    if run.parent is not None and run.parent.result is not None and not run.parent.result.ok:
        return Outcome.FAILED
    return Outcome.COMPLETED if run.report is not None and run.status in _FINISHED else Outcome.FAILED


def change_of(change: TranscriptFileChange, call: CallId, run: RunId, at: datetime) -> Recorded:
    """Return a change that a result tells of, as it is recorded."""
    hunks = _hunks(change)
    # A receipt's digests are of a file's bytes. What is written whole has the bytes that it was written with; of other
    # texts the transcript shows lines with other ends than the file may have.
    after = change.after_digest if change.written else None
    if after is not None and not change.created and not any(hunk.removed for hunk in hunks or ()):
        after = None  # else it would say that the file was not there before
    return Recorded(
        call=call,
        run=run,
        at=at,
        path=readable(change.path).replace("\0", "\\0"),  # PostgreSQL keeps no such character in a text
        after=None if after is None else Digest(after),
        hunks=hunks,
        renamed_from=None if change.renamed_from is None else readable(change.renamed_from).replace("\0", "\\0"),
    )


def _hunks(change: TranscriptFileChange) -> tuple[RecordedHunk, ...] | None:
    """Return the lines that changed, with their places; None if not all have one."""
    if not change.hunks and not change.created:
        return None if change.renamed_from is None else ()
    if any(None in {hunk.old_start, hunk.new_start} for hunk in change.hunks):
        return None
    try:
        return tuple(map(_hunk, change.hunks))
    except InvalidValueError:
        return None  # places that cannot be: nobody's patch looks like that


def _hunk(hunk: PatchHunk) -> RecordedHunk:
    removed = tuple(readable(line[1:].removesuffix("\r")) for line in hunk.lines if line[:1] in {"-", " ", ""})
    added = tuple(readable(line[1:].removesuffix("\r")) for line in hunk.lines if line[:1] in {"+", " ", ""})
    return RecordedHunk(
        old_start=hunk.old_start or 0,
        old_count=len(removed),
        new_start=hunk.new_start or 0,
        new_count=len(added),
        removed=removed,
        added=added,
    )
