"""Ids as people type them: whole, by their last letters, by an agent's name, or `last`."""

from collections.abc import Iterable, Sequence
from typing import Final

from batonpass.errors import NotFoundError
from batonpass.model.ids import short
from batonpass.narrate.tokens import moment, name, quoted
from batonpass.narrate.work import call_tokens
from batonpass.reading.handoffs import CallView, HandoffLine, read_handoff_line
from batonpass.store.port import Store

_SHORTEST: Final = 4
_MOST_CHOICES: Final = 20


def find_handoff(store: Store, text: str) -> str:
    """Return the id of the handoff that is meant. Raises `NotFoundError` if there is none, or more than one.

    The last letters may also be those of an attempt: lists of runs show them.
    """
    if text == "last":
        found = store.find_by_ending("handoffs", "", 1)
    elif store.find_handoff(text) is not None:
        found = [text]
    else:
        found = list(dict.fromkeys(_endings(store, text) + store.find_by_agent("handoffs", text, _MOST_CHOICES + 1)))
    if len(found) == 1:
        return found[0]
    if found:
        raise _ambiguous(
            text, "handoff", [_choice(read_handoff_line(store, each)) for each in found], ", or `last` for the latest"
        )
    if text == "last":
        raise NotFoundError("nothing was handed off in this ledger yet")
    detail = f"there is no handoff {text!r} in this ledger: `batonpass run list` shows the agents and their runs"
    raise NotFoundError(detail)


def _endings(store: Store, text: str) -> list[str]:
    if len(text) < _SHORTEST:
        return []
    found = store.find_by_ending("handoffs", text, _MOST_CHOICES + 1)
    attempts = map(store.find_stream, store.find_by_ending("runs", text, _MOST_CHOICES + 1))
    return found + [row.handoff for row in attempts if row is not None and row.handoff is not None]


def find_call(calls: Sequence[CallView], text: str, handoff: str) -> str:
    """Return the id of the call in doubt that is meant: by its last letters, or by its tool."""
    found = [call for call in calls if _is_meant(call, text)]
    if len(found) == 1:
        return found[0].id
    if found:
        raise _ambiguous(text, "call", map(_call_choice, found))
    facts = {"choices": list(map(_call_choice, calls))}
    these = "these are" if calls else "none is"
    raise NotFoundError(f"no call {text!r} of {handoff} is in doubt: {these}", facts=facts)


def _is_meant(call: CallView, text: str) -> bool:
    return text in {call.id, call.tool} or (len(text) >= _SHORTEST and call.id.endswith(text))


def _ambiguous(text: str, what: str, choices: Iterable[dict[str, str]], hint: str = "") -> NotFoundError:
    rows = list(choices)
    many = f"more than {_MOST_CHOICES}" if len(rows) > _MOST_CHOICES else len(rows)
    detail = f"{text!r} fits {many} {what}s: give the last letters of one{hint}"
    return NotFoundError(detail, code="id.ambiguous", facts={"choices": rows[:_MOST_CHOICES]})


def _choice(line: HandoffLine) -> dict[str, str]:
    words = (short(line.id), name(line.to).text, str(line.state), moment(line.offered_at), quoted(line.task).text)
    return {"id": line.id, "shown": "  ".join(words)}


def _call_choice(call: CallView) -> dict[str, str]:
    return {"id": call.id, "shown": f"{short(call.id)}  {''.join(token.text for token in call_tokens(call))}"}
