"""A receipt in a line: what happened, and who did it. One row a kind."""

from collections.abc import Iterator
from string import Formatter
from typing import Any, Final

from msgspec import Struct

from batonpass.model.ids import short
from batonpass.narrate.tokens import Line, Token, Tone, counted, duration, line, name, quoted
from batonpass.reading.handoffs import ReceiptView


class Sentence(Struct, frozen=True):
    """The words of a kind, with fields of its body in braces, and the content that says more."""

    words: str
    more: str = ""
    tone: Tone = Tone.PLAIN


SENTENCES: Final = {
    "run.started": Sentence("{agent} began for {principal}", "intent"),
    "run.rekeyed": Sentence("run {run} was taken over: its earlier process is fenced"),
    "run.recorded.items": Sentence("{items} recorded"),
    "run.recorded.gap": Sentence("{acts} could not be recorded when it was done", tone=Tone.WARN),
    "run.closed": Sentence("run {run} {outcome}", "error"),
    "handoff.initiated": Sentence("offered to {to}", "task"),
    "handoff.accepted": Sentence("attempt {attempt} accepted by {agent}"),
    "handoff.completed": Sentence("attempt {attempt} completed"),
    "handoff.failed": Sentence("attempt {attempt} failed", "error", Tone.BAD),
    "handoff.retried": Sentence("attempt {attempt} is over, and the next one ordered by {by}", "reason"),
    "handoff.cancelled": Sentence("cancelled: run {holder}, which offered it, ended before it was settled"),
    "tool.requested": Sentence("{tool} {call} requested", "target"),
    "tool.completed": Sentence("call {call} completed in {took_us}"),
    "tool.failed": Sentence("call {call} failed", "error", Tone.BAD),
    "tool.denied": Sentence("{tool} denied by {rule}", "reason", Tone.BAD),
    "tool.late_result": Sentence("call {call} {outcome} after its attempt was over: evidence only", tone=Tone.WARN),
    "tool.settled": Sentence("call {call} is {settlement}, says {by}", "reason"),
    "key.enrolled.relay": Sentence("relay {relay} enrolled for {owner}"),
    "grant.revoked": Sentence("grant of {account} revoked by {by}", "reason", Tone.WARN),
}
_IDS: Final = frozenset({"account", "call", "holder", "relay", "run"})
_SETTLEMENTS: Final = {"repeat": "to be made again", "skip": "taken as done"}


def narrate_receipt(receipt: ReceiptView) -> Line:
    """Return a receipt in words. Its time and its place are not part of them."""
    return line(_tokens(receipt, SENTENCES[receipt.kind]))


def _tokens(receipt: ReceiptView, sentence: Sentence) -> Iterator[Token]:
    for words, field, _, _ in Formatter().parse(sentence.words):
        yield Token(words, sentence.tone)
        if field is not None:
            yield _field(receipt.body, field)
    if sentence.more in receipt.words:
        yield Token(": ")
        yield quoted(receipt.words[sentence.more])


def _field(body: Any, field: str) -> Token:  # noqa: ANN401 - each kind has fields of its own
    if field in {"acts", "items"}:
        return Token(counted(body.count, field[:-1]))
    value = getattr(body, field)
    if field in _IDS:
        return Token(short(value))
    if field == "took_us":
        return Token(duration(value))
    return Token(_SETTLEMENTS[value]) if field == "settlement" else name(str(value))
