"""What became of a call that was made: how it ended, and what it says that it changed."""

from collections.abc import Iterator, Sequence

from batonpass.accounts.effects import read_effects
from batonpass.accounts.trail_words import MESSAGE, first_line
from batonpass.accounts.why_values import Fact
from batonpass.audit.lookup import read_texts
from batonpass.model.bodies import ToolCompleted, ToolFailed
from batonpass.model.ids import CallId
from batonpass.model.receipt import Receipt
from batonpass.model.run import Run, RunState
from batonpass.store.port import LedgerView


def outcome_facts(
    view: LedgerView, run: Run, requested: Receipt, call: CallId, after: Sequence[Receipt]
) -> Iterator[Fact]:
    """Yield how a call ended, with what it changed, or that nobody knows."""
    for receipt in after:
        match receipt.body:
            case ToolCompleted() | ToolFailed() as body if body.call == call:
                words = ["completed" if isinstance(body, ToolCompleted) else _failed(view, receipt, body)]
                words += [] if body.exit_code is None else [f"exit code {body.exit_code}"]
                told = " · ".join((*words, *body.flags))
                yield Fact(label="outcome", text=told, receipt=receipt.id, at=receipt.at)
                for effect in read_effects(view, receipt):
                    yield Fact(label="effect", text=str(effect), receipt=receipt.id, at=receipt.at)
                return
            case _:
                continue
    open_ = run.state is RunState.OPEN and all(each.epoch == requested.epoch for each in after)
    yield Fact(label="outcome", text="no outcome yet" if open_ else "none: nobody knows whether it happened")


def _failed(view: LedgerView, receipt: Receipt, body: ToolFailed) -> str:
    message = read_texts(view, receipt).get(MESSAGE)
    said = f": {first_line(MESSAGE, message.ref.id, message.body)}" if message and message.body else ""
    return f"failed: {body.error}{said}"
