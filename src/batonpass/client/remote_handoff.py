"""A handoff whose ledger is elsewhere."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, cast
from urllib.parse import quote

from batonpass.client.absent_ledger import AbsentDesk
from batonpass.client.answered_values import told_handoff, told_result, told_run
from batonpass.client.exchange import PlaneExchange
from batonpass.client.ruling_act import ruling_act
from batonpass.client.run_words import accept_act, any_act, verdict_act
from batonpass.errors import FencedError, HandoffAskedError, HandoffEndedError, NotOverHttpError, StreamClosedError
from batonpass.handoff.approvals.decision_sheet import Material
from batonpass.handoff.history.past_calls import NOTHING
from batonpass.handoff.live.faces import LiveHandoff, LiveRun
from batonpass.handoff.programs.runners import Runner
from batonpass.handoff.runtime.run_state import Holding
from batonpass.handoff.transfer.result import Result
from batonpass.handoff.transfer.retry import NextAttempt
from batonpass.handoff.transfer.verdict import run_check, run_command
from batonpass.model.base.ids import AgentId, CallId, Digest, HandoffId, RunId
from batonpass.model.base.kinds import WaitUntil
from batonpass.model.base.lifecycle import State
from batonpass.model.baton.items import Item, ItemValue
from batonpass.model.ledger.lease import Lease
from batonpass.model.ledger.run import Handoff, Run
from batonpass.model.policy.offer_options import Answerer, ChangedInputs
from batonpass.signing.approver_key import Approver

if TYPE_CHECKING:
    from batonpass.handoff.runtime.desk import Desk


class RunOpener(Protocol):
    """Makes a run from the control plane's answer about one that was begun."""

    def __call__(self, told: Mapping[str, Any], run: Run) -> LiveRun:
        """Return the run."""


class RemoteHandoff(LiveHandoff):
    """A handoff whose ledger is elsewhere. Methods that need the ledger itself raise `NotOverHttpError`."""

    def __init__(
        self,
        exchange: PlaneExchange,
        handoff: HandoffId,
        *,
        opener: RunOpener,
        runners: Mapping[AgentId, Runner],
        parent: Holding | None = None,
        runner: Runner | None = None,
        answerer: Answerer | None = None,
        reused: bool = False,
    ) -> None:
        super().__init__(
            cast("Desk", AbsentDesk(Path.cwd())),
            handoff,
            _never,
            runners=runners,
            parent=parent,
            runner=runner,
            answerer=answerer,
            reused=reused,
        )
        self._exchange = exchange
        self._opens = opener

    @property
    def _run(self) -> RunId | None:
        return None if self._parent is None else self._parent.id

    @property
    def _reader(self) -> RunId | None:
        """Return the run in whose name it is read: the run that handed it off, or the run that works on it."""
        return self._run or (None if self._taken is None else self._taken.id)

    def info(self) -> Handoff:
        """Return the handoff as it is now: its agent, state, attempt number and deadline."""
        return told_handoff(self._exchange.read_json(f"/v1/handoffs/{self.id}", run=self._reader))

    def result(self) -> Result:
        """Return its result so far. The parent takes it in, with its taint."""
        if self._parent is None:
            told = self._exchange.read_json(f"/v1/handoffs/{self.id}/result", run=self._reader)
            return told_result(told, reused=False)
        return told_result(self._act("result", {}), reused=self._reused)

    def accept(self, *, lease: Lease | None = None, config: Mapping[str, Any] | None = None) -> LiveRun:
        """Accept it: the offer is validated there, and the next attempt begins, with a key that is made here."""
        self._warn_if_repeated()
        config = self._config if config is None else config
        signer = self._exchange.keys.new()
        act = accept_act(self._run, self.id, signer.public_key)
        said: dict[str, Any] = {} if lease is None else {"lease": {"holder": lease.holder, "token": lease.token}}
        said |= {} if config is None else {"config": dict(config)}
        try:
            told = self._exchange.act(f"/v1/handoffs/{self.id}/attempts", said, act, signer=signer)
        except HandoffAskedError as asked:
            known = None if self._answerer is None or getattr(asked, "again", False) else self._answerer(asked.question)
            if known is None:
                raise
            self.answer(known)
            return self.accept(lease=lease, config=config)
        child = self._opens(told, told_run(told["run"]))
        holding = child._holding  # noqa: SLF001 - a face of the same object
        holding.replaying = bool(told.get("replayed"))
        holding.lease = lease
        self._taken = holding
        return child

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._child is None:
            return
        try:
            self._child.__exit__(kind, error, trace)
        except (FencedError, StreamClosedError, HandoffEndedError):
            if error is None:
                raise
        self._learn()

    def _learn(self) -> None:
        if self._parent is not None:
            self._act("result", {})  # whoever takes a result in may build on it

    def _find_settled(self, until: WaitUntil) -> Result | None:
        state = self.state()
        if state in {State.RUNNING, State.READY, State.CLAIMED, State.OFFERED}:
            return None
        result = self.result()
        return result if result.is_over(until) else None

    def _suspend(self, until: WaitUntil) -> None:
        """Do nothing: a wait here occupies no worker of the control plane."""

    def ask(self, question: str, *, by: str | None = None, lease: Lease | None = None) -> None:
        """Ask the sender one closed question before acting."""
        if lease is not None:
            raise NotOverHttpError("a question of a worker")
        self._act("question", {"question": question, **_named(by)})

    def answer(
        self,
        text: str,
        *,
        by: str | None = None,
        items: Iterable[Item | ItemValue] = (),
        files: Mapping[str, bytes | str] | None = None,
    ) -> None:
        """Answer the question of the receiver; the answer becomes part of the baton."""
        if tuple(items) or files:
            raise NotOverHttpError("an answer with items or files")
        self._act("answer", {"text": text, **_named(by)})

    def decline(
        self, reason: str, *, code: str = "declined", by: str | None = None, lease: Lease | None = None
    ) -> None:
        """Decline it, with a reason."""
        self._act("decline", {"reason": reason, "code": code, **_named(by), **_leased(lease)})

    def material(self) -> Material:
        """Return the decision sheet that an approver reads first."""
        return read_sheet(self._exchange, self.id)

    def _decide(
        self, *, approved: bool, by: str | Approver, reason: str | None, shown: Material | None, looked_ms: int | None
    ) -> None:
        decide(self._exchange, self.id, approved=approved, by=by, reason=reason, shown=shown, looked_ms=looked_ms)

    def verify(
        self,
        *,
        by: str | None = None,
        command: Sequence[str] | None = None,
        check: Callable[[], object] | None = None,
        verdict: str | None = None,
        cwd: str | PathLike[str] | None = None,
    ) -> bool:
        """Judge the result with one kind of evidence: a command or a check that is run here, or a verdict in words.

        The finding is the caller's word, and is recorded as a verdict in words.
        """
        if verdict is not None and command is None and check is None:
            self._act("verdict", {"holds": True, "words": verdict, **_named(by)})
            return True
        if (command is None) == (check is None) or verdict is not None:
            raise NotOverHttpError("evidence that is not exactly one of a command, a check or a verdict")
        found = (
            run_command(command, cwd=cwd) if check is None and command is not None else run_check(cast("Any", check))
        )
        words = found.words or " ".join(found.command) or "a check of the caller"
        self._act("verdict", {"holds": found.passed, "words": words, **_named(by)})
        return found.passed

    def refute(self, reason: str, *, by: str | None = None) -> None:
        """Refute the result, with a reason."""
        self._act("verdict", {"holds": False, "words": reason, **_named(by)})

    def retry(
        self,
        *,
        by: str | None = None,
        reason: str | None = None,
        repeat: Iterable[CallId] = (),
        skip: Iterable[CallId] = (),
        inputs: ChangedInputs | str | None = None,
    ) -> NextAttempt:
        """Try it again: it waits for its next attempt. `repeat` and `skip` settle calls in doubt."""
        said = {"reason": reason, "repeat": list(repeat), "skip": list(skip), "inputs": inputs, **_named(by)}
        self._act("retry", said)
        return NextAttempt(handoff=self.info(), kept=NOTHING)

    def cancel(self, *, by: str | None = None, reason: str) -> None:
        """Cancel it, and every handoff below it."""
        self._act("cancel", {"reason": reason, **_named(by)})

    def _caller(self) -> str:
        return "" if self._parent is None else f"agent:{self._parent.agent}"

    def _act(self, what: str, said: Mapping[str, Any]) -> Any:  # noqa: ANN401 - JSON
        path = f"/v1/handoffs/{self.id}/{what}"
        if self._run is None:
            return self._exchange.tell(path, said)
        act = verdict_act(self._run, self.id) if what == "verdict" else any_act(self._run)
        return self._exchange.act(path, said, act)


def _never(_: Holding) -> LiveRun:
    raise NotOverHttpError("this")


def _named(by: str | None) -> dict[str, str]:
    """Return who acts, if that is a person: an agent acts as itself, which its run says."""
    return {} if by is None or by.startswith("agent:") else {"by": by}


def _leased(lease: Lease | None) -> dict[str, Any]:
    return {} if lease is None else {"lease": {"holder": lease.holder, "token": lease.token}}


def read_sheet(exchange: PlaneExchange, held: str) -> Material:
    """Return the decision sheet of something that is held."""
    told = exchange.read_json(f"/v1/approvals/{quote(held)}")
    return Material(text=told["text"], hold=Digest(told["hold"]), proven=told["proven"], approvals=told["people"])


def decide(
    exchange: PlaneExchange,
    held: str,
    *,
    approved: bool,
    by: str | Approver,
    reason: str | None,
    shown: Material | None,
    looked_ms: int | None,
) -> None:
    """Approve or deny something that is held. An `Approver` signs here; anybody else's ruling is unproven."""
    said: dict[str, Any] = {"approved": approved, "reason": reason, "looked_ms": looked_ms}
    said["shown"] = None if shown is None else shown.digest
    path = f"/v1/approvals/{quote(held)}"
    if isinstance(by, Approver):
        said["by"] = by.principal
        act = ruling_act(held, approved=approved, by=by, shown=shown, looked_ms=looked_ms)
        exchange.act(path, said, act, signer=by.signer)
        return
    exchange.tell(path, {**said, "by": by})
