"""What others than its own runs did to a handoff, as the page tells it: who, when, why, and by which receipt."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from msgspec import Struct

from batonpass.accounts.handoff.account import Account, HandoffAct
from batonpass.accounts.trail.first_lines import looked_for
from batonpass.audit.short_ids import ending
from batonpass.model.base.content_names import ANSWER, QUESTION, REASON
from batonpass.model.bodies.body import (
    HandoffAnswered,
    HandoffApproved,
    HandoffAsked,
    HandoffBacked,
    HandoffCancelled,
    HandoffDeclined,
    HandoffDenied,
    HandoffEndorsed,
    HandoffExpired,
    HandoffHeld,
    HandoffLapsed,
    HandoffLate,
    HandoffParked,
    HandoffReplaced,
    HandoffResumed,
    HandoffRetried,
    HandoffRevised,
    HandoffSettled,
    Settlement,
    VerificationFailed,
    VerificationPassed,
    VerificationRepeated,
    VerificationWaived,
)
from batonpass.model.ledger.receipt import Receipt
from batonpass.records.handoff import Judged
from batonpass.records.text import Text

_SAID: Final = (REASON, QUESTION, ANSWER, "evidence")  # the words beside an act; the first that is there is told
_SETTLED: Final = {
    Settlement.SKIP: "counts as done",
    Settlement.REPEAT: "is to be made again",
    Settlement.LATE: "has the outcome that came late",
}


class ActTold(Struct, frozen=True, kw_only=True):
    """One act, in words."""

    state: str  # whose sign it has
    words: str
    by: str | None
    note: str = ""
    reason: Text | None = None
    receipt: Receipt

    @property
    def attempt(self) -> int | None:
        """Return which attempt a verdict is about; None if it is no verdict."""
        return self.receipt.body.attempt if isinstance(self.receipt.body, Judged) else None


def tell_acts(account: Account) -> Iterator[ActTold]:
    """Yield the acts on a handoff in the order in which they were recorded."""
    tools = {call.record.id: call.record.tool for call in account.calls}
    for act in account.acts:
        body = act.receipt.body
        tell = _WORDS.get(type(body))
        # A kind without words of its own is told by its name: nothing that happened is left out.
        state, words, note = ("", str(act.receipt.kind), "") if tell is None else tell(body)
        if isinstance(body, HandoffSettled | HandoffLate):
            words = f"{tools.get(body.call, 'a call')} {ending(body.call)} {words}"
        yield ActTold(
            state=state,
            words=words,
            by=getattr(body, "by", None),
            note=note,
            reason=_reason(act),
            receipt=act.receipt,
        )


def _reason(act: HandoffAct) -> Text | None:
    return next((act.texts[name] for name in _SAID if name in act.texts), None)


def _held(body: HandoffHeld) -> tuple[str, str, str]:
    if body.awaits is not None:
        return "held", f"attempt {body.attempt} waits for {ending(body.awaits)}", ""
    return "held", f"held at attempt {body.attempt}", body.reason


def _approved(body: HandoffApproved | HandoffBacked) -> tuple[str, str, str]:
    notes = ["proven by a key" if body.proven else "unproven: no approver’s key signed"]
    notes += ["was shown nothing"] if body.shown is None else []
    notes += [looked] if (looked := looked_for(body)) is not None else []
    notes += ["another person has to approve it too"] if isinstance(body, HandoffBacked) else []
    return "completed", "approved", " · ".join(notes)


def _verdict(word: str, body: VerificationPassed | VerificationFailed | VerificationRepeated) -> tuple[str, str, str]:
    notes = [f"attempt {body.attempt}", str(body.method)]
    notes += ["by its own producer"] if body.by_producer else []
    notes += [] if body.exit_code is None else [f"exit code {body.exit_code}"]
    return word.rpartition(" ")[2], word, " · ".join(notes)


def _again(body: VerificationRepeated) -> tuple[str, str, str]:
    return _verdict("again verified" if body.passed else "again refuted", body)


_WORDS: Final[Mapping[type, Callable[[Any], tuple[str, str, str]]]] = {
    HandoffHeld: _held,
    HandoffApproved: _approved,
    HandoffBacked: _approved,
    HandoffDenied: lambda body: ("denied", "denied", "proven by a key" if body.proven else ""),
    HandoffAsked: lambda body: ("asked", "asked", f"{body.error}: {body.check}"),
    HandoffAnswered: lambda body: (
        "asked",
        "answered" if body.waives is None else "went on without an answer",
        f"revision {body.revision}",
    ),
    HandoffDeclined: lambda body: ("declined", "declined", body.code),
    HandoffCancelled: lambda _: ("cancelled", "cancelled", ""),
    HandoffExpired: lambda _: ("expired", "expired", "its deadline passed"),
    HandoffLapsed: lambda body: ("lapsed", f"attempt {body.attempt} lapsed", "its worker was gone"),
    HandoffRetried: lambda _: ("ready", "tried again", ""),
    HandoffReplaced: lambda body: ("ready", f"given to {body.to}", ""),
    HandoffRevised: lambda body: (
        "ready",
        "inputs revised",
        f"{len(body.drops)} dropped, {len(body.carries)} given in their place",
    ),
    HandoffSettled: lambda body: ("in doubt", _SETTLED[body.settlement], ""),
    HandoffLate: lambda body: (
        "lapsed",
        f"{'completed' if body.completed else 'failed'} late",
        "evidence, and no result",
    ),
    HandoffResumed: lambda body: ("ready", "goes on", f"{ending(body.awaits)} is decided or over"),
    HandoffParked: lambda body: ("failed", f"parked after attempt {body.attempt}", body.error),
    HandoffEndorsed: lambda body: ("completed", f"source {ending(str(body.source))} endorsed", ""),
    VerificationPassed: lambda body: _verdict("verified", body),
    VerificationFailed: lambda body: _verdict("refuted", body),
    VerificationRepeated: _again,
    VerificationWaived: lambda body: ("completed", "accepted unverified", f"attempt {body.attempt}"),
}
