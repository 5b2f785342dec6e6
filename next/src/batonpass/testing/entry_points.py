"""Situations that every entry point answers alike: the same verdict, the same words, the same receipts in their order.

An entry point is a way in which acts reach a relay: handles, awaited handles, JSON lines, the loop of a program. Each
is an `EntryPoint` of a few methods; the table of situations is played on it, and knows nothing of how it works.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

from msgspec import Struct, convert, field, json

from batonpass.api.handles import Relay
from batonpass.api.json_lines import answer_line
from batonpass.api.problems import Problem, error_of
from batonpass.errors import BatonpassError
from batonpass.testing.clock import FrozenClock
from batonpass.testing.faults import Faults
from batonpass.testing.observed import observe, port_of

SRC: Final = ("write:src/**",)


class EntryPoint(Protocol):
    """A way in. Runs and handoffs are named by their ids. Errors are those of `batonpass.errors`, or the tool's own."""

    def start(
        self, *, may: Sequence[str] = (), expires: str | None = None, key: str | None = None, intent: str = "Round"
    ) -> str:
        """Begin a run of user:ana; with a grant it may delegate the same."""
        ...

    def hand_off(self, run: str, *, may: Sequence[str] = (), to: str = "editor", task: str = "Round") -> str:
        """Offer a task, and return the handoff."""
        ...

    def accept(self, handoff: str) -> str:
        """Begin an attempt, and return its run."""
        ...

    def call(self, run: str, tool: Callable[[str], str], path: str, *, idempotent: bool = False) -> object:
        """Make a call of the tool `write_file`, whose action is `write` and whose target is the path."""
        ...

    def close(self, run: str, *, result: str = "", error: str | None = None) -> None:
        """End a run, with a report or an error."""
        ...

    def retry(self, handoff: str, *, skip: Sequence[str] = ()) -> str:
        """Order the next attempt, and return the handoff."""
        ...

    def result(self, handoff: str) -> tuple[str, str]:
        """Return the state of a handoff, and what its report says."""
        ...


def say_in_json(relay: Relay, act: str, request: dict[str, Any], key: str | None = None) -> dict[str, Any]:
    """Send a request to a relay of this process as a line of JSON, and return the answer as a program elsewhere has it.

    Raises the error that the answer tells.
    """
    line = {"id": act, "act": act, "request": request, "key": key}
    reply = json.decode(answer_line(port_of(relay), json.encode(line)))
    if "error" in reply:
        raise error_of(convert(reply["error"], Problem))
    answer: dict[str, Any] = reply["answer"]
    return answer


class Died(BaseException):
    """The process dies while the tool is at work."""


class Stage(Struct, kw_only=True):
    """Where a situation is played: a way in, the ledger behind it, and the test's hand on its clock and its disk."""

    acts: EntryPoint
    relay: Relay  # of an operator, beside the way in
    clock: FrozenClock
    faults: Faults
    made: list[str] = field(default_factory=list)  # what tools did
    mark: int = 0  # how many receipts there were before what matters

    def write(self, path: str) -> str:
        """Pretend to write a file."""
        self.made.append(path)
        return f"wrote {path}"

    def fail(self, path: str) -> str:
        """Fail to write a file."""
        self.made.append(path)
        raise OSError("disk full")

    def die(self, path: str) -> str:
        """Die while a file is written."""
        self.made.append(path)
        raise Died

    def begin(self, *, may: Sequence[str] = (), expires: str | None = None) -> str:
        """Return an attempt of the agent editor; from here on it matters what is recorded."""
        run = self.acts.accept(self.acts.hand_off(self.acts.start(may=may, expires=expires), may=may))
        self.matters()
        return run

    def matters(self) -> None:
        """Let what is recorded from here on matter."""
        self.mark = len(observe(self.relay).receipts)

    def handoff_of(self, run: str) -> str:
        """Return the handoff that a run is an attempt at."""
        return self.relay.run(run).handoff or ""

    def call_and_die(self, run: str) -> str:
        """Leave a call in doubt, and return its id."""
        try:
            self.acts.call(run, self.die, "src/a")
        except Died:
            self.matters()
        return observe(self.relay).in_doubt[-1].call


class Told(Struct, frozen=True, kw_only=True):
    """What an entry point made of a situation."""

    verdict: object  # what came of it; of an error its code and sentence, with ids numbered
    kinds: tuple[str, ...]  # of the receipts that it made
    said: tuple[tuple[str, str], ...]  # the words in them that matter: reasons, errors, gaps
    made: tuple[str, ...]


def play(situation: Callable[[Stage], object], stage: Stage) -> Told:
    """Play a situation on a stage."""
    try:
        verdict = situation(stage)
    except (BatonpassError, OSError) as error:
        verdict = f"{getattr(error, 'code', type(error).__name__)}: {error}"
    receipts = observe(stage.relay).receipts[stage.mark :]
    names: dict[str, str] = {}
    words = [
        (part, receipt.text(part))
        for receipt in receipts
        for part in ("reason", "error", "gaps")
        if part in receipt.parts
    ]
    return Told(
        verdict=numbered(verdict, names) if isinstance(verdict, str) else verdict,
        kinds=tuple(receipt.kind for receipt in receipts),
        said=tuple((part, numbered(text, names)) for part, text in words),
        made=tuple(stage.made),
    )


def numbered(text: str, names: dict[str, str]) -> str:
    """Return a text whose ids are numbered as they appear: `run_1`."""

    def name(match: re.Match[str]) -> str:
        return names.setdefault(match[0], f"{match[1]}_{len(names) + 1}")

    return re.sub(r"\b(run|handoff|call|relay)_[0-9a-z]{26}\b", name, text)


class Situation(Struct, frozen=True):
    """One row: what happens, what each entry point says of it, and what is in the ledger then."""

    play: Callable[[Stage], object]
    verdict: object
    kinds: str = ""
    made: tuple[str, ...] = ()


def _calls(path: str = "src/a") -> Callable[[Stage], object]:
    """Return a call by an attempt that has a grant for src."""
    return lambda stage: stage.acts.call(stage.begin(may=SRC), stage.write, path)


def _calls_later(stage: Stage) -> object:
    run = stage.begin(may=SRC, expires="1h")
    stage.clock.advance(3600)
    return stage.acts.call(run, stage.write, "src/a")


def _calls_with_a_revoked_grant(stage: Stage) -> object:
    run = stage.begin(may=SRC)
    stage.relay.revoke_grant(stage.handoff_of(run), by="user:ana")
    return stage.acts.call(run, stage.write, "src/a")


def _fails_twice(stage: Stage) -> object:
    run, said = stage.begin(), []
    for _ in range(2):
        try:
            stage.acts.call(run, stage.fail, "src/a")
        except OSError as error:
            said.append(str(error))
    return said, stage.acts.call(run, stage.write, "src/a")


def _retries(stage: Stage) -> object:
    run = stage.begin()
    first = stage.acts.call(run, stage.write, "src/a")
    stage.acts.close(run, error="tests fail")
    again = stage.acts.accept(stage.acts.retry(stage.handoff_of(run)))
    stage.matters()
    return first, stage.acts.call(again, stage.write, "src/a")


def _calls_in_doubt(*, idempotent: bool = False) -> Callable[[Stage], object]:
    def asks_again(stage: Stage) -> object:
        run = stage.begin()
        stage.call_and_die(run)
        return stage.acts.call(run, stage.write, "src/a", idempotent=idempotent)

    return asks_again


def _skips(stage: Stage) -> object:
    run = stage.begin()
    call = stage.call_and_die(run)
    again = stage.acts.accept(stage.acts.retry(stage.handoff_of(run), skip=[call]))
    return stage.acts.call(again, stage.write, "src/a")


def _offers_twice(stage: Stage) -> object:
    run = stage.acts.start()
    stage.matters()
    first, second = stage.acts.hand_off(run), stage.acts.hand_off(run)
    return first == second, first == stage.acts.hand_off(run, task="Another")


def _offers(may: Sequence[str], to: str = "editor") -> Callable[[Stage], object]:
    def offers(stage: Stage) -> object:
        run = stage.acts.start(may=SRC)
        stage.matters()
        return stage.acts.hand_off(run, may=may, to=to)

    return offers


def _is_fenced(stage: Stage) -> object:
    run = stage.begin()
    stage.relay.handoff(stage.handoff_of(run)).retry(by="user:ana")
    stage.matters()
    return stage.acts.call(run, stage.write, "src/a")


def _is_fenced_meanwhile(stage: Stage) -> object:
    run = stage.begin()

    def takes_long(path: str) -> str:
        stage.relay.handoff(stage.handoff_of(run)).retry(by="user:ana")
        return stage.write(path)

    return stage.acts.call(run, takes_long, "src/a")


def _is_closed(stage: Stage) -> object:
    run = stage.acts.start()
    stage.acts.close(run)
    stage.matters()
    return stage.acts.hand_off(run)


def _cannot_write(may: Sequence[str]) -> Callable[[Stage], object]:
    def calls(stage: Stage) -> object:
        run = stage.begin(may=may)
        stage.faults.fail()
        return stage.acts.call(run, stage.write, "src/a"), stage.acts.call(run, stage.write, "src/b")

    return calls


def _was_not_heard(stage: Stage) -> object:
    run = stage.begin(may=SRC)
    stage.faults.fail("after")
    try:
        stage.acts.call(run, stage.write, "src/a")
    except BatonpassError:
        return stage.acts.call(run, stage.write, "src/a")
    return "it was made"


def _repeats_a_key(stage: Stage) -> object:
    first = stage.acts.start(key="k")
    return first == stage.acts.start(key="k"), stage.acts.start(key="k", intent="Another")


def _delivers(stage: Stage) -> object:
    run = stage.begin()
    handoff = stage.handoff_of(run)
    stage.acts.close(run, result="12 totals")
    return stage.acts.result(handoff)


def _accepts_twice(stage: Stage) -> object:
    return stage.acts.accept(stage.handoff_of(stage.begin()))


_MADE: Final = "tool.requested tool.completed"
_DOUBT: Final = "write_file 'src/a' was requested before and its outcome is unknown: repeat or skip it [call_1]"
_TAKEN: Final = "run_1 was taken over: what it does now is not recorded in its name"

SITUATIONS: Final[dict[str, Situation]] = {
    "a call that is allowed is made": Situation(_calls(), "wrote src/a", _MADE, ("src/a",)),
    "a call beyond its grant is denied": Situation(
        _calls("etc/passwd"), "call.denied: editor may write:src/**, tried write:etc/passwd", "tool.denied"
    ),
    "a target that can be read in two ways is denied": Situation(
        _calls("src/../etc"),
        "call.denied: 'write:src/../etc' is outside of the work tree, or written in another way than a permit can be: "
        "name the target from the work tree on, as src/a",
        "tool.denied",
    ),
    "a call under an expired grant is denied": Situation(
        _calls_later,
        "call.denied: editor tried write:src/a, and the grant of lead has expired",
        "tool.denied",
    ),
    "a call under a revoked grant is denied by its commit": Situation(
        _calls_with_a_revoked_grant,
        "call.denied: editor tried write:src/a, and the grant of handoff_1 was revoked",
        "grant.revoked tool.denied",
    ),
    "a tool that fails may be asked again": Situation(
        _fails_twice,
        (["disk full", "disk full"], "wrote src/a"),
        f"tool.requested tool.failed tool.requested tool.failed {_MADE}",
        ("src/a",) * 3,
    ),
    "a finished call is not made again by the next attempt": Situation(
        _retries, ("wrote src/a", "wrote src/a"), "", ("src/a",)
    ),
    "a call in doubt is not made again": Situation(_calls_in_doubt(), f"call.in_doubt: {_DOUBT}", "", ("src/a",)),
    "an idempotent call in doubt is made again": Situation(
        _calls_in_doubt(idempotent=True), "wrote src/a", _MADE, ("src/a",) * 2
    ),
    "a call that was skipped returns nothing": Situation(
        _skips, None, "tool.settled handoff.retried handoff.accepted", ("src/a",)
    ),
    "the same offer twice is one handoff": Situation(
        _offers_twice, (True, False), "handoff.initiated handoff.initiated"
    ),
    "a grant is not widened": Situation(
        _offers(["write:**"]),
        "grant.exceeded: may delegate write:src/**, and not write:**: ask for less, or grant the parent more",
    ),
    "a child of an enforced run needs a grant": Situation(
        _offers([]),
        "grant.required: lead works under a grant, so what it hands on needs one: may=[...], or grant=Grant(...)",
    ),
    "a receiver has a name": Situation(
        _offers(SRC, to=""), "value.invalid: hand_off: Expected `str` of length >= 1 - at `$.to`"
    ),
    "an attempt that was taken over makes no call": Situation(_is_fenced, f"ledger.fenced: {_TAKEN}"),
    "what a fenced attempt delivers is evidence": Situation(
        _is_fenced_meanwhile,
        f"ledger.fenced: {_TAKEN}",
        "tool.requested handoff.retried tool.late_result",
        ("src/a",),
    ),
    "a run that has ended offers nothing": Situation(
        _is_closed, "ledger.stream_closed: run_1 has ended: it is completed"
    ),
    "an observed call is made where nothing can be written": Situation(
        _cannot_write(()), ("wrote src/a", "wrote src/b"), f"run.recorded.gap {_MADE}", ("src/a", "src/b")
    ),
    "an enforced call is not made where nothing can be written": Situation(
        _cannot_write(SRC), "store.unavailable: the ledger cannot be written: the disk is full"
    ),
    "a request of which nobody heard is in doubt": Situation(
        _was_not_heard, f"call.in_doubt: {_DOUBT}", "tool.requested"
    ),
    "a repeated request is answered once": Situation(
        _repeats_a_key,
        "idempotency.key_reused: this idempotency key was used for another request before start: take a new key",
        "key.enrolled.relay run.started",
    ),
    "a result reaches its parent": Situation(_delivers, ("completed", "12 totals"), "handoff.completed"),
    "a handoff at work is not accepted": Situation(
        _accepts_twice,
        "lifecycle.illegal: handoff_1 is running: it cannot accept; "
        "what is possible now: cancel, complete, fail, retry",
    ),
    "what was never offered is not found": Situation(
        lambda stage: stage.acts.accept("handoff_1"),
        "id.unknown: there is no handoff handoff_1 in this ledger: `batonpass run list` shows what there is",
        "key.enrolled.relay",
    ),
}
