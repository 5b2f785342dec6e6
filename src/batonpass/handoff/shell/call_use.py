"""The object of a call, as rules name it in brackets: a command, a path, or the target that the tool names."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from batonpass.guard.policy.call_patterns import Used, UsedOn
from batonpass.handoff.shell.command_reach import scripts_in
from batonpass.handoff.shell.command_text import LONGEST
from batonpass.handoff.shell.find_expression import FindExpression
from batonpass.handoff.shell.nested_programs import base_name, program_run_by, programs_of, spellings_of
from batonpass.handoff.tools.tool_call import ToolCall


def find_use(call: ToolCall[Any], leads_to: str | None = None) -> UsedOn | None:
    """Return the object of a call; None if it names none. `leads_to` is its target after links were followed."""
    if (told := call.told_by_door) is not None and told.used is not None:
        return told.used
    if call.declared.scripts:
        given = (call.mentioned.get(name) for name in call.declared.scripts)
        return commands_used([text for text in given if isinstance(text, str)], call.declared.place or "")
    return None if call.target is None else names_used((call.target, leads_to))


def names_used(names: Iterable[str | None]) -> UsedOn:
    """Return the use of a tool whose target has these spellings."""
    spelled = tuple(dict.fromkeys(name for name in names if name))
    return UsedOn(kind=Used.NAME, written=spelled, spelled=spelled)


def commands_used(texts: Sequence[str], place: str) -> UsedOn:
    """Return the commands in texts that a shell executes in a directory."""
    commands = [each.words for text in texts for each in scripts_in(text, (place,)) if each.words]
    run = (words for command in commands for words in programs_of(command))
    return UsedOn(
        kind=Used.COMMAND,
        written=tuple(dict.fromkeys(one for command in commands for one in _written(command))),
        spelled=tuple(dict.fromkeys((*texts, *(one for words in run for one in spellings_of(words))))),
        unreadable=any(len(text) > LONGEST for text in texts),
    )


def _written(words: Sequence[str]) -> Iterator[str]:
    """Yield a command as it is written, and every program that it runs in turn.

    A wrapper that runs nothing yields an empty text, which no pattern covers.
    """
    yield " ".join(words)
    if not words:
        return
    inner = program_run_by(words)
    found = FindExpression(words[1:]).programs if base_name(words[0]) == "find" else []
    for each in (*found, *(() if inner is None else (inner,))):
        yield from _written(each)
