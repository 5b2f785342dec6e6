"""What became of a call that was made: how it ended, and what it says that it changed."""

from collections.abc import Iterator

from batonpass.accounts.effects import read_effects
from batonpass.accounts.trail_words import first_line
from batonpass.accounts.why_values import Fact
from batonpass.model.content_names import MESSAGE
from batonpass.records.call import CallRecord, Outcome
from batonpass.records.text import read_texts
from batonpass.store.port import LedgerView


def outcome_facts(view: LedgerView, call: CallRecord) -> Iterator[Fact]:
    """Yield how a call ended, with what it changed, or that nobody knows."""
    ending = call.ending
    if ending is None or call.ended is None:
        told = "none: nobody knows whether it happened" if call.is_over else "no outcome yet"
        yield Fact(label="outcome", text=told)
        return
    words = ["completed" if call.outcome is Outcome.COMPLETED else _failed(view, call)]
    words += [] if call.exit_code is None else [f"exit code {call.exit_code}"]
    yield Fact(label="outcome", text=" · ".join((*words, *call.ended.flags)), receipt=ending.id, at=ending.at)
    for effect in read_effects(view, call):
        yield Fact(label="effect", text=str(effect), receipt=ending.id, at=ending.at)


def _failed(view: LedgerView, call: CallRecord) -> str:
    message = None if call.ending is None else read_texts(view, call.ending).get(MESSAGE)
    said = f": {first_line(MESSAGE, message.ref.id, message.body)}" if message and message.body else ""
    return f"failed: {call.error}{said}"
