"""Verdicts on a handoff: verify, refute or waive its result, endorse content from outside."""

import inspect
import subprocess
from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import sha256
from os import PathLike
from typing import Any, Final

from msgspec import Struct

from batonpass.errors import HandoffEndedError, InvalidValueError, NotFoundError, NotPersonError
from batonpass.guard.policy.taint_gate import may_endorse
from batonpass.handoff.runtime.desk import Desk
from batonpass.handoff.taint.intake import find_sources
from batonpass.handoff.tools.json_values import looks
from batonpass.handoff.tools.returned_value import awaited
from batonpass.handoff.transfer.inputs import tell_later_sessions, tell_open
from batonpass.model.base.checks import require_text, require_texts
from batonpass.model.base.content_names import COMMAND, EVIDENCE, REASON
from batonpass.model.base.ids import Digest, HandoffId, PrincipalId
from batonpass.model.base.label import Source
from batonpass.model.base.lifecycle import State
from batonpass.model.bodies.body import (
    Body,
    ChildHead,
    HandoffEndorsed,
    Method,
    VerificationFailed,
    VerificationPassed,
    VerificationRepeated,
    VerificationWaived,
)
from batonpass.model.ledger.run import Handoff
from batonpass.records.handoff import is_unverified
from batonpass.store.port import LedgerView

OUTPUT: Final = "output"

_DELIVERED: Final = frozenset({State.COMPLETED, State.VERIFIED, State.REFUTED})
_MOST_OUTPUT: Final = 1024 * 1024
_MOST_WORDS: Final = 10_000


class VerdictEvidence(Struct, frozen=True, kw_only=True):
    """The evidence of a verdict: the end of a command, the answer of a check, or the word of a judge."""

    passed: bool
    method: Method
    words: str
    exit_code: int | None = None
    output: bytes | None = None
    command: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        require_text("evidence", self.words)


def run_command(
    command: Sequence[str], *, cwd: str | PathLike[str] | None = None, timeout: float | None = None
) -> VerdictEvidence:
    """Run a command that decides about a result: it holds if the exit code is 0. Raises `InvalidValueError`."""
    arguments = require_texts("command", command)
    if not arguments:
        raise InvalidValueError("command", "names no program")
    try:
        done = subprocess.run(  # noqa: S603 - the caller's own command, as a list, without a shell
            arguments,
            cwd=cwd,
            timeout=timeout,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            check=False,
        )
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        return VerdictEvidence(
            passed=False, method=Method.COMMAND, words=f"could not be run: {error}", command=arguments
        )
    code = done.returncode if done.returncode >= 0 else 128 - done.returncode
    return VerdictEvidence(
        passed=code == 0,
        method=Method.COMMAND,
        words=f"exit code {code}",
        exit_code=code,
        output=done.stdout,
        command=arguments,
    )


def run_check(check: Callable[[], object]) -> VerdictEvidence:
    """Call a function that decides about a result: it holds if the function returns a true value."""
    name = getattr(check, "__qualname__", type(check).__name__)
    try:
        found = check()
        if inspect.isawaitable(found):
            import asyncio  # noqa: PLC0415 - importing it takes as long as importing Batonpass, and few need it

            found = asyncio.run(awaited(found))
        passed = bool(found)
    except Exception as error:  # noqa: BLE001 - a check that raises has refuted the result
        return VerdictEvidence(passed=False, method=Method.CHECK, words=f"{name} raised {looks(error)}"[:_MOST_WORDS])
    return VerdictEvidence(passed=passed, method=Method.CHECK, words=f"{name} returned {looks(found)}"[:_MOST_WORDS])


def judge(desk: Desk, handoff: HandoffId, evidence: VerdictEvidence, *, by: str) -> Handoff:
    """Record a verdict on a result. A result keeps its first verdict; a later one is only recorded beside it.

    Raises `HandoffEndedError` if nothing was delivered.
    """
    contents = [desk.text(EVIDENCE, evidence.words)]
    if evidence.command:
        contents.append(desk.text(COMMAND, "\n".join(evidence.command)))
    if evidence.output:
        contents.append(desk.text(OUTPUT, evidence.output[-_MOST_OUTPUT:].decode("utf-8", "replace")))
    digest = None if evidence.output is None else Digest(sha256(evidence.output).hexdigest())
    principal = PrincipalId(by)

    def verdict(known: Handoff, _: ChildHead | None) -> Body:
        if known.state not in _DELIVERED:
            raise HandoffEndedError(handoff, known.state)
        facts: dict[str, Any] = {
            "handoff": handoff,
            "by": principal,
            "attempt": known.attempt,
            "method": evidence.method,
            "by_producer": principal == f"agent:{known.to}",
            "exit_code": evidence.exit_code,
            "output": digest,
        }
        if known.state is not State.COMPLETED:
            return VerificationRepeated(passed=evidence.passed, **facts)
        return (VerificationPassed if evidence.passed else VerificationFailed)(**facts)

    desk.recording.act(handoff, verdict, tuple(contents))
    with desk.store.view() as view:
        judged = view.get_handoff(handoff)
    if judged.state is State.REFUTED:
        tell_open(desk, judged.root, by=by)
        tell_later_sessions(desk, judged.root, by=by)
    return judged


def waive(desk: Desk, handoff: HandoffId, *, by: str, reason: str) -> None:
    """Accept an unverified result, with a reason. Raises `HandoffEndedError` unless it is delivered and unjudged."""
    require_text("reason", reason)

    def waived(known: Handoff, _: ChildHead | None) -> Body:
        if known.state is not State.COMPLETED:
            raise HandoffEndedError(handoff, known.state)
        return VerificationWaived(handoff=handoff, by=PrincipalId(by), attempt=known.attempt)

    desk.recording.act(handoff, waived, (desk.text(REASON, reason),))


def find_unverified(view: LedgerView, handoffs: Iterable[HandoffId]) -> Iterator[HandoffId]:
    """Yield the handoffs that delivered a result which nobody else has verified or waived."""
    for handoff in sorted(handoffs):
        if is_unverified(view, view.get_handoff(handoff)):
            yield handoff


def endorse_in_handoff(desk: Desk, handoff: HandoffId, source: Source, *, by: str, reason: str) -> None:
    """Record that a person answers for a source: from now on, it taints no attempt at the handoff.

    Raises `NotPersonError` if `by` is not a person, and `NotFoundError` if the source reached no attempt.
    """
    require_text("reason", reason)
    if not may_endorse(by):
        raise NotPersonError(source, by)
    with desk.store.view() as view:
        if source not in find_sources(view, handoff):
            raise NotFoundError(f"content from outside that taints {handoff}", source)
    body = HandoffEndorsed(handoff=handoff, by=PrincipalId(by), source=source)
    desk.recording.act(handoff, lambda _, __: body, (desk.text(REASON, reason),))
