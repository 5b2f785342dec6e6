"""An agent of any framework at work: `Work` from its offer to its end, and its `Call`s.

Everything here blocks on the ledger only and runs no code of agents; `flows` puts it around code. A framework that
wraps uses `guard` and `delegate`; one with hooks before and after uses `Call.judge`, `succeed` and `fail`, and
`Work.open` and `end` themselves. There is no second flow.

A fault of ours never stops an observed program: it goes on, and what was not recorded is a gap, which the run itself
or the nearest one above says when it ends. An enforced one fails closed.
"""

import logging
import re
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import partial
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from batonpass.api.default import current_run, default_relay
from batonpass.api.handles import BegunCall, Handoff, Relay, Run
from batonpass.api.repetition import Repetitions, Slot
from batonpass.api.run_base import CURRENT_RUN, ENFORCED_RUNS
from batonpass.api.tools import CURRENT_CALL, CurrentCall, Declared, Tool, encode_result
from batonpass.errors import (
    BatonpassError,
    CallDeniedError,
    CallError,
    CallInDoubtError,
    FencedError,
    GrantError,
    InvalidValueError,
    LifecycleError,
)
from batonpass.frameworks.states import BEGIN, DROP, GONE, MOVES, End, WorkState, decide_end
from batonpass.model.grants import Grant
from batonpass.model.items import Brief, Report
from batonpass.model.lifecycle import State
from batonpass.model.values import NAME_LENGTH
from batonpass.narrate.tokens import visible
from batonpass.wire.canonical import digest, encode

T = TypeVar("T")
_LOG: Final = logging.getLogger("batonpass")
_MOST_GAPS: Final = 1_000
_NOTHING: Final = "it returned nothing"
_NOBODY: Final = (
    "no agent is at work here: call it from a recorded agent or inside of a run; a new thread works for the one that "
    "began it by contextvars.copy_context().run"
)
_NOBODY_IN_ENFORCED: Final = (
    "nobody knows whose call it is, and a run with a grant is open in this process: call it inside of that run, and "
    "begin threads by contextvars.copy_context().run"
)

# A decision, and not a fault: it reaches observed programs too.
VERDICTS: Final = (CallDeniedError, CallInDoubtError, FencedError, GrantError)


class Usage(Struct, frozen=True):
    """The tokens of one model turn."""

    model: str = ""
    input: int = 0
    output: int = 0
    cached: int = 0


class Made(Struct, frozen=True):
    """Make the call now."""


class Known(Struct, frozen=True):
    """Do not make it: an earlier attempt did, and this is its result."""

    value: Any


class Refused(Struct, frozen=True):
    """Do not make it, and tell the model why."""

    error: BatonpassError

    @property
    def sentence(self) -> str:
        """What the model reads in place of a result. Every framework says the same."""
        return f"Refused by Batonpass: {self.error}"


Verdict: TypeAlias = Made | Known | Refused


class Recording:
    """How a program is recorded: for whom, with which grants, and what its tools do.

    `grant` is that of a root, `grants` are those of agents by name; an agent that has one is enforced. Without a relay
    it is the one of the folder.
    """

    def __init__(
        self,
        relay: Relay | None = None,
        *,
        by: str = "",
        tools: Mapping[str, Declared] | None = None,
        grant: Grant | None = None,
        grants: Mapping[str, Grant] | None = None,
    ) -> None:
        self._relay = relay
        self.by = by
        self.tools = tools or {}
        self.grant = grant
        self.grants = grants or {}
        self.gaps: deque[str] = deque(maxlen=_MOST_GAPS)  # what observed agents did unrecorded, and why

    @property
    def relay(self) -> Relay:
        """The relay that it records with."""
        return self._relay or default_relay()

    def begin(
        self,
        agent: str,
        task: str,
        *,
        caller: "Work | None" = None,
        brief: Brief | None = None,
        grant: Grant | None = None,
        by: str = "",
        at_once: bool = False,
    ) -> "Work":
        """Return the work of an agent that begins: one that waits for it, a handoff from its caller, or a root.

        With `at_once` an offer and its acceptance are one commit. Raises what `Work.offer` raises.
        """
        expected = _EXPECTED.get()
        if expected is not None and expected.agent == agent and expected.state is WorkState.OFFERED:
            return expected
        grant = grant or self.grants.get(agent)
        caller = caller or current_work(self)
        if caller is not None:
            heir = caller.take_transfer(agent)
            return heir or caller.offer(agent, task, brief=brief, grant=grant, recording=self, at_once=at_once)
        by, grant = by or self.by, grant or self.grant
        if not by:
            raise InvalidValueError(f"{agent} begins a tree of its own, for whom? (by='user:ana')")
        start = partial(self.relay.start, task, by=by, agent=agent, grant=grant)
        return Work(self, agent, start, is_enforced=grant is not None)

    def call(self, tool: str, *, work: "Work | None" = None, declared: Tool | None = None) -> "Call":
        """Return a call of the agent at work here, or of nobody known: `judge` decides about that too."""
        return Call(self, work or current_work(self), tool, declared)

    def note_gap(self, gap: str) -> None:
        """Note what was not recorded, where no run can say it."""
        self.gaps.append(gap)
        _LOG.warning("not recorded: %s", visible(gap))  # names of others are in it, and a terminal obeys them

    @contextmanager
    def resuming(
        self, what: str, *, by: str = "", repeat: Sequence[str] = (), skip: Sequence[str] = ()
    ) -> "Iterator[Work]":
        """Let the next agent of that name go on with a handoff, or with a root run. Finished calls are not made again.

        Calls in doubt, by id, are made again when they are asked for, or never.
        """
        begin: Callable[[], Run]
        if what.startswith("run_"):
            run = self.relay.resume(what)
            for call in (*repeat, *skip):
                run.settle(call, "repeat" if call in repeat else "skip", by=by or self.by or run.principal)
            agent, begin = run.agent, lambda: run
        else:
            handoff = self.relay.handoff(what)
            agent, begin = handoff.info().to, handoff.accept
            handoff.retry(by=by or self.by or None, repeat=repeat, skip=skip)
        work = Work(self, agent, begin, is_enforced=bool(self.grant or self.grants.get(agent)))
        token = _EXPECTED.set(work)
        try:
            yield work
        finally:
            _EXPECTED.reset(token)


DEFAULT: Final = Recording()


class Work:
    """One agent at work, from its offer to its end."""

    def __init__(
        self,
        recording: Recording,
        agent: str,
        begin: Callable[[], Run] | None,
        *,
        is_enforced: bool,
        parent: "Work | None" = None,
    ) -> None:
        self.recording = recording
        self.agent = agent
        self.parent = parent
        self.is_enforced = is_enforced
        self.run: Run | None = None  # none while nothing is recorded of it
        self.known: Known | None = None  # what it returned to an earlier attempt of its caller: it need not work again
        self.state = WorkState.OFFERED
        self._begin = begin
        self._children: set[Work] = set()
        self._heir: Work | None = None
        self._transfers: list[Work] = []
        self._usage: dict[str, dict[str, int]] = {}
        self._turn: tuple[int, str] = (0, "")  # which model turn, and the digest of its message
        self._offers = Repetitions()
        self._slot: Slot | None = None  # which of its parent's equal offers it is
        self._gaps: list[str] = []
        self._lock = threading.RLock()
        self._offering = threading.Lock()

    def open(self) -> None:
        """Begin: a root is started, a handoff accepted. Again does nothing, so each model request may say it."""
        with self._lock:
            if self.state is WorkState.OFFERED and self._begin is not None:
                self._at_work(self.try_to(self._begin, f"{self.agent} began"))
            self._move(BEGIN)

    def _at_work(self, run: Run | None) -> None:
        self.run = run
        if run is None:
            return
        self.is_enforced = run.mode == "enforced"
        run.progress.work = self
        if run.is_replayed and run.handoff is not None:
            handoff = self.recording.relay.handoff(run.handoff)
            result = self.try_to(handoff.result, f"result of {self.agent}")
            self.known = None if result is None else _known(result.report or Report())

    def model_turn(self, usage: Usage, message: object) -> None:
        """Note what a model said and what it took. `message` is what it decided by: an offer points at it."""
        with self._lock:
            spent = self._usage.setdefault(usage.model, {"turns": 0, "input": 0, "output": 0, "cached": 0})
            counts = (1, usage.input, usage.output, usage.cached)
            for field, count in zip(spent, counts, strict=True):
                spent[field] += count
            self._turn = (self._turn[0] + 1, digest(encode_plain(message)))

    def offer(
        self,
        to: str,
        task: str,
        *,
        transfer: bool = False,
        brief: Brief | None = None,
        grant: Grant | None = None,
        recording: Recording | None = None,
        at_once: bool = False,
    ) -> "Work":
        """Hand a task to another agent; return its work, which has not begun. Raises `VERDICTS` if it is refused.

        The brief points at the model message that chose to delegate. As that is part of the offer, the same words in a
        later turn are another handoff, and the same turn seen again is the same; `number` tells parallel ones apart. An
        offer whose agent has failed gives its number back, so the same words then are its next attempt.
        """
        recording = recording or self.recording
        grant = grant or recording.grants.get(to)
        run, is_enforced = self.run, self.is_enforced or grant is not None
        if run is None and is_enforced:
            raise CallError(f"{self.agent} is not recorded, so it hands nothing to {to}", code="call.guard_failed")
        child = Work(recording, to, None, is_enforced=is_enforced, parent=self)
        if run is not None:
            turn, message = self._turn
            brief = brief or Brief()
            # Under a lock: an offer that is refused leaves no hole in the numbers, and one run writes one by one. Not
            # under that of the state, which an event loop takes while other threads wait for the disk.
            with self._offering:
                slot = self._offers.take(to, task, turn, encode_plain(brief))
                pointer = {"turn": turn, "message": message, "number": slot.number}
                brief = replace(brief, reasoning=pointer)
                make = partial(_hand_off, run, to, task, brief=brief, grant=grant, at_once=at_once)
                try:
                    offered = child.try_to(make, f"handoff to {to}")
                except BaseException:
                    slot.give_back()
                    raise
                child._slot = slot
            if isinstance(offered, Run):
                child._at_work(offered)
                child._move(BEGIN)
            elif offered is not None:
                has_left = child.try_to(partial(_is_left, offered, run), f"handoff to {to}") or False
                child._begin = partial(_accept, offered, run, has_left=has_left)
        self._children.add(child)
        if transfer:
            self._transfers.append(child)
        return child

    def take_transfer(self, agent: str) -> "Work | None":
        """Return the transfer that the framework carries out. The others of that turn are cancelled with this work."""
        with self._lock:
            heir = next((child for child in self._transfers if child.agent == agent), None)
            self._transfers = []
            self._heir = heir or self._heir
        return heir

    def end(self, said: object = None, error: BaseException | None = None, *, waits: bool = False) -> None:
        """End in whichever way it is. Ending twice is ending once, and an error is not followed by one of ours.

        With an error it is called without an `await`: a generator that is dropped is closed by a finalizer, often while
        the loop stops, and what a finalizer awaits is never done.
        """
        heir = self._heir or next(iter(self._transfers), None)
        how = decide_end(error, waits=waits, has_heir=heir is not None and heir.state is not WorkState.ENDED)
        if how not in GONE:
            self._try_at_end(self.open, error)  # an agent of which no model request was seen did work all the same
        with self._lock:
            is_over = self._move(how) and self.state is WorkState.ENDED
        if how is End.INTERRUPTED:
            self._record_gaps()
        if not is_over:
            return
        for child in tuple(self._children):
            # From the leaves: frameworks do not close the generators inside of one that is dropped.
            if how in GONE and child.state is not WorkState.PAUSED:
                child.end(error=error)
            child._move(DROP)  # noqa: SLF001 - of this class
        if how is not End.RETURNED and self._slot is not None:
            self._slot.give_back()
        try:
            self._close(said, error, how)
        finally:
            parent = self.parent
            if parent is not None:
                parent._children.discard(self)  # noqa: SLF001
                if parent._heir is self:  # noqa: SLF001
                    parent.end(said, error)

    def _close(self, said: object, error: BaseException | None, how: End) -> None:
        run = self.run
        if run is None:
            return
        self._record_gaps()
        # What the agent reported by itself stays; what it returned is added.
        run.progress.report = _report(run.progress.report, said, how, self._usage)
        self._try_at_end(partial(run.close, error), error)

    def _try_at_end(self, act: Callable[[], None], error: BaseException | None) -> None:
        try:
            self.try_to(act, f"{self.agent} ended")
        except Exception as failure:
            if error is None:
                raise
            # The error that its agent ended with is what its caller is about to get.
            self.note_gap(f"{self.agent} ended: {failure!r}")

    def try_to(self, act: Callable[[], T], what: str) -> T | None:
        """Return what a step of ours returns. A verdict is raised, and a fault only if the work is enforced."""
        try:
            return act()
        except VERDICTS:
            raise
        except Exception as error:
            if self.is_enforced:
                raise
            self.note_gap(f"{what}: {error!r}")
            return None

    def note_gap(self, gap: str) -> None:
        """Note what was not recorded: the nearest run that is recorded says it when it pauses or ends."""
        self.recording.note_gap(gap)
        work: Work | None = self
        while work is not None and (work.run is None or work.state is WorkState.ENDED):
            work = work.parent
        if work is not None and len(work._gaps) < _MOST_GAPS:  # noqa: SLF001 - of this class
            work._gaps.append(gap)  # noqa: SLF001

    def _record_gaps(self) -> None:
        gaps, self._gaps = self._gaps, []
        if gaps and self.run is not None:
            with suppress(Exception):  # the program has been told already
                self.run.record_gaps(*gaps)

    def _move(self, event: str) -> bool:
        with self._lock:
            after = MOVES.get((self.state, event))
            self.state = after or self.state
            return after is not None


class Call:
    """A call: judged, then made or not. What comes before `judge` or after an outcome does nothing.

    A hook may judge it, and the tool's entrance again: the same arguments have the same verdict and one request. With
    others, or after its outcome, it is another call: frameworks convert arguments, and repeat a call that failed.
    """

    def __init__(self, recording: Recording, work: Work | None, tool: str, declared: Tool | None = None) -> None:
        self.recording = recording
        self.work = work
        self.tool = tool
        self.begun: BegunCall | None = None  # while it is being made
        self._declared = declared
        self._arguments = b""

    def judge(self, arguments: Mapping[str, Any]) -> Verdict:
        """Decide, and make the request durable. Never raises: whatever goes wrong is a refusal, or a gap."""
        work = self.work
        # A tool that runs for nobody known, in a new thread say, may be that of any enforced run.
        is_enforced = bool(self.recording.grant or ENFORCED_RUNS) if work is None else work.is_enforced
        try:
            return self._judge(arguments)
        except VERDICTS as error:
            return Refused(error)
        except Exception as error:  # noqa: BLE001 - a guard that fails must not let the call through
            gap = f"call of {self.tool}: {error!r}"
            if is_enforced and isinstance(error, BatonpassError):
                return Refused(error)
            if is_enforced:
                return Refused(CallError(gap, code="call.guard_failed"))
            (work or self.recording).note_gap(gap)
            return Made()

    def _judge(self, arguments: Mapping[str, Any]) -> Verdict:
        work = self.work
        if work is None:
            raise CallError(_NOBODY_IN_ENFORCED if ENFORCED_RUNS else _NOBODY, code="call.guard_failed")
        run = work.run
        if run is None:
            raise CallError(f"{work.agent} is not recorded, and called {self.tool}", code="call.guard_failed")
        if work.state is WorkState.ENDED:
            raise CallError(f"{work.agent} has ended, and called {self.tool}", code="call.guard_failed")
        data = encode_plain(arguments)
        if self.begun is not None and self._arguments == data:
            return Made()
        self.fail(RuntimeError("its arguments were changed"), is_made=False)
        tool = self._declared or self._declare(arguments, is_enforced=work.is_enforced)
        begun = run.begin_call(
            self.tool,
            data,
            action=tool.action,
            target=tool.target_in(arguments, is_enforced=work.is_enforced),
            idempotent=tool.idempotent,
        )
        if begun.is_replayed:
            return Known(begun.value)
        self.begun, self._arguments = begun, data
        return Made()

    def _declare(self, arguments: Mapping[str, Any], *, is_enforced: bool) -> Tool:
        declared = self.recording.tools.get(self.tool, Declared())
        if is_enforced:  # by what was declared alone: a model that names its arguments would choose its permission
            return declared.named(self.tool, [] if declared.target is None else [declared.target])
        if declared.target not in arguments:
            declared = replace(declared, target=None)  # a model left it out: what it does is recorded all the same
        return declared.named(self.tool, list(arguments))

    def succeed(self, value: object) -> None:
        """Record the result, before the agent has it. An enforced agent does not get one that could not be recorded."""
        begun, self.begun = self.begun, None
        if begun is not None and self.work is not None:
            self.work.try_to(partial(begun.succeed, value), f"outcome of {self.tool}")

    def fail(self, error: BaseException, *, is_made: bool = True) -> None:
        """Record that it failed, or that it was allowed and not made after all.

        An interrupt is neither: nobody knows what the tool had done, and the call stays in doubt.
        """
        begun, self.begun = self.begun, None
        if begun is None or self.work is None:
            return
        if is_made and not isinstance(error, Exception):
            begun.abandon()
            return
        words = repr(error) if is_made else f"not made: {error!r}"
        self.work.try_to(partial(begun.fail, words), f"outcome of {self.tool}")


class _Seat(NamedTuple):
    work: Work | None
    run: Run | None  # that was current when the work took its seat: another one was entered inside of it


# The agent at work here: what it calls is its call, and an agent that begins here is handed its task by it.
_SEAT: Final[ContextVar[_Seat | None]] = ContextVar("batonpass_work", default=None)
_EXPECTED: Final[ContextVar[Work | None]] = ContextVar("batonpass_expected", default=None)


def current_work(recording: Recording | None = None) -> Work | None:
    """Return the work of the agent that this code runs for: a recorded one, or a run that was opened by hand.

    New threads need `contextvars.copy_context().run`.
    """
    seat, entered = _SEAT.get(), CURRENT_RUN.get()
    if seat is not None and seat.run is entered:
        return seat.work
    run = None if entered is None else current_run()
    if run is None:
        return None
    if not isinstance(run.progress.work, Work):
        run.progress.work = work = Work(recording or DEFAULT, run.agent, None, is_enforced=run.mode == "enforced")
        work.run, work.state = run, WorkState.OPEN  # its opener ends it
    return run.progress.work


@contextmanager
def within(work: Work | None, call: Call | None = None) -> Iterator[None]:
    """Let code run for an agent, and for one of its calls. Never held over a `yield` to other code: see `steps`."""
    run = None if work is None else work.run
    tokens: list[tuple[ContextVar[Any], Any]] = []
    try:
        if work is not None:
            tokens.append((CURRENT_RUN, CURRENT_RUN.set(run)))
        tokens.append((_SEAT, _SEAT.set(_Seat(work, CURRENT_RUN.get()))))
        if run is not None and call is not None and call.begun is not None:
            begun = call.begun
            current = CurrentCall(run=run.id, call=begun.id, key=begun.key, attempt=run.attempt)
            tokens.append((CURRENT_CALL, CURRENT_CALL.set(current)))
        yield
    finally:
        for variable, token in reversed(tokens):
            variable.reset(token)


def text_of(value: object) -> str:
    """Return a task or a result as the record has it."""
    return value if isinstance(value, str) else encode_plain(value).decode()


def encode_plain(value: object) -> bytes:
    """Return the canonical JSON of anything: what JSON does not have is written as text, never by its address."""
    return encode(to_builtins(value, enc_hook=_plain, str_keys=True))


def _plain(value: object) -> object:
    # Digests have to be the same in a later process.
    dump = getattr(value, "model_dump", None)
    return dump(mode="json") if callable(dump) else re.sub(r" at 0x[0-9a-f]+", "", str(value))


def _hand_off(run: Run, to: str, task: str, *, brief: Brief, grant: Grant | None, at_once: bool) -> Handoff | Run:
    if not at_once:
        return run.hand_off(to, task, brief=brief, grant=grant)
    try:
        return run.hand_off(to, task, brief=brief, grant=grant, accept=True)
    except LifecycleError:  # an attempt at it has failed, or is at work in another process
        offered = run.hand_off(to, task, brief=brief, grant=grant)
        return _accept(offered, run, has_left=_is_left(offered, run))


def _is_left(handoff: Handoff, caller: Run) -> bool:
    """Return whether an attempt was at work when its caller was taken over: with the old caller it is over as well."""
    if caller.attempt == 1 and not caller.progress.is_resumed:
        return False
    info = handoff.info()
    # An earlier holder of the caller began it, if it is older than this attempt of the caller. Ids sort by time.
    return info.state == State.RUNNING and (caller.progress.is_resumed or str(info.run) < caller.id)


def _accept(handoff: Handoff, caller: Run, *, has_left: bool) -> Run:
    """Begin an attempt; the next one, if the last has failed or was left: it is asked for again.

    Raises `LifecycleError` if it may be at work in another process.
    """
    try:
        return handoff.accept(replay=True)
    except LifecycleError as error:
        if error.facts.get("state") == State.RUNNING and not has_left:
            raise
        by = f"agent:{caller.agent}"[:NAME_LENGTH]  # and no person
        return handoff.retry(by=by, reason="its caller asked again").accept()


def _report(own: Report, said: object, how: End, usage: dict[str, dict[str, int]]) -> Report:
    """Return what a run reports: its own words, what it returned, how it ended, and what its models took."""
    result, value, none = own.result or ("" if said is None else text_of(said)), own.value, dict(own.none)
    if how is End.RETURNED and said != (result if value is None else value):
        if said is None:
            none.setdefault("value", _NOTHING)
        elif value is None and encode_result(said) is not None:
            value = said
        else:
            none.setdefault("value", "it returned something else")
    return replace(own, result=result, value=value, none=none, usage=usage or own.usage, ended=own.ended or how)


def _known(report: Report) -> Known | None:
    """Return what a run returned; None if its report does not tell."""
    if "value" in report.none:
        return Known(None) if report.none["value"] == _NOTHING else None
    return Known(report.result if report.value is None else report.value)
