"""One agent of a framework at work: its run, its calls, and the handoffs that it makes.

Everything here blocks on the ledger only, and runs no code of agents; adapters call it from a thread where they must
not wait. If a run is only observed, no error of the recorder stops the framework: the work goes on unrecorded, and the
record says how many calls it missed. If a run is enforced, nothing happens that could not be judged and recorded.
"""

import threading
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Final, TypeAlias, TypeVar

import msgspec

from batonpass.adapters.frameworks.framework_call import FrameworkCall
from batonpass.adapters.frameworks.framework_ledger import FrameworkLedger
from batonpass.agents.attempt_input import prepare_input
from batonpass.agents.shown_result import show_result
from batonpass.briefing.outside_result import show_outside
from batonpass.errors import (
    BatonpassError,
    CallError,
    CallSuspendedError,
    GrantError,
    GuardFailedError,
    HandoffError,
    HandoffHeldError,
    PolicyFileError,
)
from batonpass.handoff.calls.begin import begin_call
from batonpass.handoff.calls.finish import fail_call, finish_call
from batonpass.handoff.calls.past_result import recognise
from batonpass.handoff.calls.pending_call import Begun, PendingCall, Replayed
from batonpass.handoff.live.faces import LiveHandoff, LiveRun
from batonpass.handoff.programs.runners import fail_run
from batonpass.handoff.tools.json_values import keep_result
from batonpass.handoff.tools.refusal_sentences import sentence_for
from batonpass.handoff.transfer.offer import offer_task
from batonpass.handoff.transfer.offer_request import OfferRequest
from batonpass.handoff.transfer.result import Result
from batonpass.model.base.ids import AgentId, HandoffId
from batonpass.model.base.kinds import Mode
from batonpass.model.base.lifecycle import State
from batonpass.model.bodies.body import Relation
from batonpass.relay import desk_of

Done = TypeVar("Done")

Makeup: TypeAlias = Mapping[str, object]
BeginRun: TypeAlias = Callable[[Makeup | None], LiveRun]  # with the parts of its agent, as far as they are known

DROPPED: Final = "the framework carries out one handoff of a turn, and dropped this one"


class AgentWork:
    """One agent at work. Its run begins when the agent really does: `open` starts or accepts it."""

    def __init__(
        self,
        ledger: FrameworkLedger,
        agent: AgentId,
        begin: BeginRun,
        *,
        enforced: bool,
        parent: "AgentWork | None" = None,
        handoff: LiveHandoff | None = None,
        owned: bool = True,
    ) -> None:
        self.agent = agent
        self.parent = parent
        self.handoff = handoff
        self.waits: CallSuspendedError | None = None  # a held call ended its attempt: nothing more can be done in it
        self._ledger = ledger
        self._begin = begin
        self._enforced = enforced
        self._owned = owned  # whoever else began the run also ends it
        self._run: LiveRun | None = None
        self._lost = False
        self._lock = threading.Lock()
        self._briefing: str | None = None
        self.resumed = False  # it goes on with work that an earlier process had begun
        self._ended: set[HandoffId] = set()  # handoffs of it that ended here: the same words are a new one

    @property
    def run(self) -> LiveRun | None:
        """Return its run; None before it began, and if it could not be recorded."""
        return self._run

    @property
    def enforced(self) -> bool:
        """Return whether nothing may happen that is not judged and recorded."""
        return self._enforced

    @property
    def marks(self) -> bool:
        """Return whether we add to its model's input: the briefing, and marks around content from outside."""
        return self._ledger.briefs(enforced=self._enforced)

    def open(self, made_of: Callable[[], Makeup] | None = None) -> None:
        """Begin its run, once: a root is started, a handoff accepted. Raises `BatonpassError` if it is enforced.

        `made_of` returns the parts of the agent: model, prompt and tools. It is called only if the run begins.
        """
        with self._lock:
            if self._run is not None or self._lost:
                return
            try:
                run = self._begin(self._ask_makeup(made_of))
            except Exception as error:
                # A policy that cannot be read may forbid anything, so it stops everybody.
                if self._enforced or isinstance(error, PolicyFileError):
                    raise
                self._lost = True
                self._ledger.complain(error)
                return
            self._enforced = run._holding.working.mode is Mode.ENFORCED  # noqa: SLF001 - a door of the same run
            self._run = run

    def _ask_makeup(self, made_of: Callable[[], Makeup] | None) -> Makeup | None:
        # It is only told for drift. An agent of a sort that we cannot read works all the same, enforced or not.
        try:
            return None if made_of is None else made_of() or None
        except Exception as error:  # noqa: BLE001 - the framework's own objects are read
            self._ledger.complain(error)
            return None

    def briefing(self) -> str:
        """Return the briefing of its handoff, the same text each time; empty for a root or if nobody wants one."""
        run = self._run
        if run is None or self.handoff is None or not self.marks:
            return ""
        if self._briefing is None:
            self._briefing = self._attempt(
                lambda: prepare_input(run, self._ledger.relay.store, can_ask=False).briefing.text
            )
        return self._briefing or ""

    def checkpoint(self, messages: object) -> None:
        """Keep the messages from which another attempt can go on."""
        run = self._run
        if run is not None and self.waits is None:
            self._attempt(lambda: run.checkpoint(messages))

    def begin(self, call: FrameworkCall) -> Begun | Replayed | None:
        """Judge a call and record its request; None if it is made unrecorded.

        Raises `CallError` and `GrantError` for a call that must not be made, and any other error if it is enforced.
        """
        self.open()
        if self._run is None:
            self._ledger.miss()
            return None
        try:
            return begin_call(desk_of(self._ledger.relay), self._run._holding, call)  # noqa: SLF001 - as above
        except CallSuspendedError as held:
            self.waits = held if self.handoff is not None else None
            raise
        except (CallError, GrantError):
            raise
        except Exception as error:
            if self._enforced:
                raise
            self._miss(error)
            return None

    def recognise(self, calls: Iterable[FrameworkCall]) -> None:
        """Note the calls whose results the framework has kept by itself: a run that goes on does so after them."""
        run = self._run
        if run is None or not run._holding.resumed:  # noqa: SLF001 - as above
            return
        for call in calls:
            self._attempt(partial(self._recognise, run, call))

    def ask(self, call: FrameworkCall) -> "tuple[Begun | None, Replayed | BatonpassError | None]":
        """Judge a call, and return how it goes on: it is made, and how it was begun; or its known result or refusal.

        An error of the recorder refuses an enforced call, because nobody could judge it.
        """
        try:
            begun = self.begin(call)
        except BatonpassError as error:
            return None, error
        except Exception as error:  # noqa: BLE001 - only an enforced call comes here
            return None, GuardFailedError(call.declared.name, f"{type(error).__name__}: {error}")
        return (None, begun) if isinstance(begun, Replayed) else (begun, None)

    def finish(self, begun: Begun, call: FrameworkCall, value: object) -> None:
        """Record the result of a call. Raises if an enforced result must not be used."""
        run = self._run
        if run is not None:
            self._attempt(lambda: finish_call(desk_of(self._ledger.relay), run._holding, begun, call, value))  # noqa: SLF001 - as above

    def fail(self, begun: Begun, call: FrameworkCall, error: BaseException, *, made: bool = True) -> None:
        """Record that a call failed, or that it was not made after all."""
        run = self._run
        if run is not None:
            holding = run._holding  # noqa: SLF001 - as above
            self._attempt(lambda: fail_call(desk_of(self._ledger.relay), holding, begun, call, error, made=made))

    def end(self, begun: Begun, call: FrameworkCall, value: object) -> object:
        """Record the result of a call, and return it as its model reads it: quoted if it is from outside."""
        try:
            self.finish(begun, call, value)
        except (CallError, GrantError) as error:
            return sentence_for(error)
        return self.show_outside(call, value)

    def show_outside(self, call: FrameworkCall, value: object) -> object:
        """Return the result of an external tool as a model may see it: quoted as data where models are told more."""
        run = self._run
        if run is None or not call.declared.external or not self.marks:
            return value
        name = call.declared.name

        def quoted() -> str:
            body, media_type = keep_result(value)
            text = body.decode("utf-8", "replace")
            self._attempt(lambda: run.attach(name, text, media_type=media_type, source=f"tool:{name}", untrusted=True))
            return show_outside(name, text)

        shown = self._attempt(quoted)
        return value if shown is None else shown

    def offer(
        self,
        to: AgentId,
        task: str,
        *,
        key: str | None = None,
        context: str | None = None,
        relation: Relation = Relation.LEAD_TO_WORKER,
    ) -> "AgentWork":
        """Hand a task to another agent of the framework; return its work, which has not begun.

        Without a key, the same words are the same handoff if that is held or ended in an earlier process: it goes on,
        or its result is known. If it ended here, the framework means to have it done once more; only an enforced one
        that failed is then another attempt. `context` is further text for the agent, beside the task. Raises
        `HandoffError` and `GrantError` if it is refused or held; both are recorded.
        """
        if self._run is None:
            return self._unrecorded(to)
        run = self._run
        try:
            desk = desk_of(self._ledger.relay)
            grant = self._ledger.grant_for(run, to)
            request = OfferRequest(to=to, task=task, relation=relation, key=key, context=context, grant=grant)
            offered = offer_task(desk, run._holding, request)  # noqa: SLF001 - as above
            while key is None and offered.handoff.id in self._ended:
                request = msgspec.structs.replace(request, again=request.again + 1)
                offered = offer_task(desk, run._holding, request)  # noqa: SLF001 - as above
            if offered.handoff.state is State.HELD:
                raise HandoffHeldError(offered.handoff.id)  # noqa: TRY301 - a refusal like the others
            handoff = run.handoff(offered.handoff.id)
        except (HandoffError, GrantError):
            raise
        except Exception as error:
            if self._enforced:
                raise
            self._miss(error)
            return self._unrecorded(to)
        return AgentWork(
            self._ledger,
            to,
            lambda made_of: handoff.accept(config=made_of),
            enforced=self._enforced or grant is not None,
            parent=self,
            handoff=handoff,
        )

    def tell_refusal(self, error: BatonpassError) -> str:
        """Return the sentence for its model about a handoff that was refused, or whose agent waits for a person."""
        named = getattr(error, "handoff", None)
        if self._run is None or named is None or not isinstance(error, CallSuspendedError):
            return sentence_for(error)
        run = self._run

        def tell() -> str:
            asked = run.handoff(named)
            return show_result(asked.info().to, asked.result())

        return self._attempt(tell) or sentence_for(error)

    def drop(self) -> None:
        """Record that the framework dropped this handoff: it was offered, and nobody will accept it."""
        handoff = self.handoff
        if handoff is not None and self._run is None:
            self._attempt(lambda: handoff.cancel(reason=DROPPED))

    def finished(self) -> Result | None:
        """Return the result of its handoff if that was delivered before, by an attempt of an earlier process."""
        result = None if self.handoff is None else self._attempt(self.handoff.result)
        return result if result is not None and result.delivered else None

    def close(self, result: str) -> None:
        """End its run with a result. A handoff whose agent never began is left as offered, for everybody to see."""
        run, handoff = self._run, self.handoff
        if run is None or self.waits is not None or not self._owned:
            return
        self._attempt(lambda: self._report(run, result))
        self._attempt(run.close)
        if handoff is not None:
            self._attempt(handoff.result)  # the parent takes it in, with its taint
            self._tell_parent()

    def suspend(self) -> None:
        """Leave its run open, because a call of it waits for a person: the run can be resumed."""
        run = self._run
        if run is not None and self.waits is None and self._owned:
            self._attempt(lambda: _wait_or_close(run))

    def leave(self) -> None:
        """Leave its run open, because the framework may go on with it later, in any process, and resumes it then."""
        if self._run is not None:
            self._ledger.forget_turn(self._run)

    def abort(self, error: BaseException) -> None:
        """End its run by an error. If the error says that somebody has to decide, the run waits for that."""
        run = self._run
        if run is not None and self.waits is None and self._owned:
            self._attempt(lambda: fail_run(run, error))
            if not self._enforced and not isinstance(error, BatonpassError):
                self._tell_parent()

    def _tell_parent(self) -> None:
        if self.parent is not None and self.handoff is not None:
            self.parent._ended.add(self.handoff.id)  # noqa: SLF001 - of the same class

    def _report(self, run: LiveRun, result: str) -> None:
        flags = tuple(self._ledger.uncovered)
        if run.reported is None:
            run.report(result, flags=flags)

    def _unrecorded(self, to: AgentId) -> "AgentWork":
        work = AgentWork(self._ledger, to, self._begin, enforced=False, parent=self)
        work._lost = True  # why was said for its sender
        return work

    def _miss(self, error: Exception) -> None:
        if self._run is not None:
            holding = self._run._holding  # noqa: SLF001 - as above
            with holding.lock:
                holding.unrecorded += 1
        self._ledger.complain(error)

    def _recognise(self, run: LiveRun, call: FrameworkCall) -> None:
        desk, holding = desk_of(self._ledger.relay), run._holding  # noqa: SLF001 - as above
        recognise(PendingCall(desk=desk, holding=holding, call=call, declared=call.declared))

    def _attempt(self, act: Callable[[], Done]) -> Done | None:
        """Run a step of the recorder beside the work. Its errors stop only an enforced run; else there is no result."""
        try:
            return act()
        except Exception as error:
            if self._enforced and isinstance(error, BatonpassError):
                raise
            self._ledger.complain(error)
            return None


def _wait_or_close(run: LiveRun) -> None:
    held = [one for one in run.held_work() if one.approved is None]
    if held:
        run.fail(held[0].error)
    else:
        run.close()
