"""A run as synchronous programs see it."""

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from types import TracebackType
from typing import Any, Self

from batonpass.errors import InvalidValueError
from batonpass.handoff.calls.receipts import deny_call
from batonpass.handoff.desk import Desk
from batonpass.handoff.effective_grant import effective_grant
from batonpass.handoff.explaining import watch_by_default
from batonpass.handoff.handoff import Answerer, LiveHandoff, Runner
from batonpass.handoff.holding import Holding
from batonpass.handoff.noting import (
    attach,
    checkpoint,
    note_message,
    read_artifact,
    read_messages,
    record_items,
    relax,
    state_intent,
)
from batonpass.handoff.proving import prove_call
from batonpass.handoff.remembering import remember
from batonpass.handoff.run_calls import Calls
from batonpass.handoff.sessions import save_session
from batonpass.handoff.transfer.asking import asked_for
from batonpass.handoff.transfer.close import close_run
from batonpass.handoff.transfer.grant_terms import grant_for
from batonpass.handoff.transfer.offer import offer_task
from batonpass.handoff.transfer.retry import settle_own
from batonpass.handoff.transfer.taint_received import endorse, take_in
from batonpass.model.baton import Budget
from batonpass.model.bodies import Outcome, Relation, Settlement
from batonpass.model.call import Call
from batonpass.model.checks import as_member, require_codes
from batonpass.model.effective_grant import EffectiveGrant
from batonpass.model.ids import AgentId, CallId, ContentId, HandoffId, SessionId
from batonpass.model.items import (
    Assumption,
    Claim,
    Constraint,
    Decision,
    Exclusion,
    Item,
    ItemValue,
    OpenQuestion,
    RejectedPath,
    Report,
    WorkItem,
)
from batonpass.model.label import Label, Source
from batonpass.model.lifecycle import Carrier
from batonpass.model.limits import Limits
from batonpass.model.policy import HandoffPolicy
from batonpass.model.reasoning import ReasoningPlace, Thought


class LiveRun(Calls):
    """One agent working once on one task, in this process. Use it as a context: leaving it closes the run."""

    def __init__(self, desk: Desk, holding: Holding, runners: Mapping[AgentId, Runner]) -> None:
        self._desk = desk
        self._holding = holding
        self._runners = runners
        self._closed = False
        watch_by_default(desk, holding)

    def record(self, *items: ItemValue, by: str | None = None) -> tuple[Item, ...]:
        """Write items down; they travel with everything that is handed off from now on."""
        return record_items(self._desk, self._holding, items, by=by)

    def say(self, text: str, *, by: str | None = None) -> tuple[HandoffId, ...]:
        """Write down what the human says now; return the running handoffs that do not know of it."""
        return state_intent(self._desk, self._holding, text, by=by)[1]

    def relax(self, item: Item | ContentId, *, by: str, reason: str) -> None:
        """Release this run, and whom it hands off to, from a constraint or an exclusion.

        Raises `NotEntitledError` unless its author or the root's principal says so.
        """
        relax(self._desk, self._holding, item.id if isinstance(item, Item) else item, by=by, reason=reason)

    def attach(
        self,
        name: str,
        body: bytes | str,
        *,
        media_type: str | None = None,
        source: str | None = None,
        untrusted: bool = False,
    ) -> Item:
        """Keep a file or a result; it travels by digest. What came from outside is `untrusted`: data, not words."""
        return attach(
            self._desk,
            self._holding,
            name,
            body,
            media_type=media_type,
            source=source,
            untrusted=untrusted,
        )

    def read(self, name: str) -> bytes:
        """Return the bytes of an artifact by its name, if they are what was attached."""
        return read_artifact(self._desk, self._holding, name)

    def checkpoint(self, messages: object) -> None:
        """Keep what the next attempt needs to go on from here: a model's messages, or any JSON."""
        checkpoint(self._desk, self._holding, messages)

    def note_message(self, message: object, *, number: int | None = None) -> None:
        """Remember the message that this run's model wrote last: what is handed off from now on points to it.

        It is any JSON, and `number` its place in the conversation, from 1. It is written down with an offer, and only
        then.
        """
        note_message(self._holding, message, number)

    def messages(self) -> object | None:
        """Return what the last checkpoint of an earlier attempt kept; None if there is none."""
        return read_messages(self._desk, self._holding)

    def prove(self, call: Call, *, audience: str) -> str:
        """Return what to send along with a call, so that its audience can tell, knowing only the root key, that it may.

        Raises a `GrantError` if the grant does not cover it, and `NotFoundError` if there is none.
        """
        return prove_call(self._desk, self._holding, call, audience=audience)

    def save_session(self) -> SessionId:
        """Mark this point of the session, to come back to with `relay.resume_session`; return the session's id.

        What comes along is derived from receipts: a root that died without saving can be resumed all the same.
        """
        return save_session(self._desk, self._holding)

    @property
    def grant(self) -> EffectiveGrant:
        """Return what this run may do now: its permits, what is left of each limit, until when, and who granted it.

        It is counted each time: others who share a limit use it up too. Without a grant it says so, and of a run that
        is only observed, that nothing is blocked.
        """
        return effective_grant(self._desk, self._holding)

    @property
    def label(self) -> Label:
        """Return how far all that it knows is trusted, and who may read it."""
        return self._holding.taint.label

    @property
    def taint(self) -> tuple[Source, ...]:
        """Return what came to it from outside, and nobody endorsed."""
        return tuple(self._holding.taint.entered)

    def take_in(self, *sources: Source) -> None:
        """Write down that content from outside reached it some other way than by a call, a baton or a result."""
        take_in(self._desk, self._holding, sources)

    def endorse(self, what: Item | Source, *, by: str, reason: str) -> None:
        """Let content from outside be treated as a person's own, here and in whatever comes of it from now on.

        Raises `NotPersonError`, and `NotFoundError` if it does not taint this run.
        """
        endorse(self._desk, self._holding, what.id if isinstance(what, Item) else what, by=by, reason=reason)

    def deny(self, tool: str, arguments: object, *, rule: str) -> None:
        """Write down that a call was refused before it was made: malformed arguments, a rule of the caller's."""
        deny_call(self._desk, self._holding, tool, arguments, rule=rule)

    def remember(self, text: str) -> Item:
        """Keep something for later runs of this agent, labelled by where it came from. It travels with no handoff."""
        return remember(self._desk, self._holding, text)

    def settle(
        self, call: CallId, settlement: Settlement | str, *, by: str | None = None, reason: str | None = None
    ) -> None:
        """Decide what becomes of a call that an earlier attempt left in doubt: repeat it, or take it as done."""
        who = by or f"agent:{self.agent}"
        settle_own(
            self._desk, self._holding, call, as_member("settlement", settlement, Settlement), by=who, reason=reason
        )

    def hand_off(
        self,
        to: str,
        task: str,
        *,
        relation: Relation | str = Relation.LEAD_TO_WORKER,
        carrier: Carrier | str = Carrier.CALLER,
        may: Sequence[str] = (),
        may_delegate: Sequence[str] = (),
        limits: Limits | str | None = None,
        until: datetime | None = None,
        max_depth: int | None = None,
        rationale: str | None = None,
        reasoning: Item | ReasoningPlace | None = None,
        serves: str | None = None,
        criteria: Sequence[str] = (),
        inputs: Sequence[str] = (),
        expects: Sequence[str] = (),
        stop_when: Sequence[str] = (),
        verify_by: Sequence[str] = (),
        needs_tools: Sequence[str] = (),
        needs_skills: Sequence[str] = (),
        budget: Budget | None = None,
        deadline: datetime | None = None,
        role: str | None = None,
        phase: str | None = None,
        constraints: Iterable[Constraint | str] = (),
        exclusions: Iterable[Exclusion | str] = (),
        completed: Iterable[WorkItem | str] = (),
        open_questions: Iterable[OpenQuestion | str] = (),
        rejected_paths: Iterable[RejectedPath | str] = (),
        decisions: Iterable[Decision | str] = (),
        assumptions: Iterable[Assumption | str] = (),
        claims: Iterable[Claim | str] = (),
        none: Sequence[str] = (),
        carry: Iterable[Item] | None = None,
        context: str | None = None,
        policy: HandoffPolicy | None = None,
        hold: bool = False,
        key: str | None = None,
        run: Runner | None = None,
        answer: Answerer | None = None,
    ) -> LiveHandoff:
        """Hand one task to an agent, with everything this run knows; durable when this returns.

        Use what it returns as a context to work on the task right here, or `wait()` for whoever does. The same key,
        by default the same task with the same terms, is the same handoff. `answer` is asked what the child asks.
        `context` is free text: labelled, and scanned where a policy says so. A `policy` is applied besides the
        relay's own and can only refuse more. `may` is what the child may use and `may_delegate` what it may pass on,
        out of what this run may delegate; with either, the child is held to it. Raises `PolicyRefusedError` and, if
        this run cannot give what is asked for, a `GrantError`. `reasoning` is what this run thinks at this moment: an
        artifact, or the place of a message; where it is not said, it is this run's last message and checkpoint.
        """
        asked = asked_for(
            to=to,
            task=task,
            relation=relation,
            carrier=carrier,
            deadline=deadline,
            hold=hold,
            key=key,
            carry=carry,
            context=context,
            policy=policy,
            grant=grant_for(may, may_delegate, limits, until, max_depth),
            thought=Thought(place=reasoning) if isinstance(reasoning, ReasoningPlace) else None,
            brief={
                "may": may,
                "rationale": rationale,
                "reasoning": reasoning.id if isinstance(reasoning, Item) else None,
                "serves": serves,
                "criteria": criteria,
                "inputs": inputs,
                "expects": expects,
                "stop_when": stop_when,
                "verify_by": verify_by,
                "needs_tools": needs_tools,
                "needs_skills": needs_skills,
                "budget": budget,
                "role": role,
                "phase": phase,
                "none": none,
            },
            said={
                Constraint: constraints,
                Exclusion: exclusions,
                WorkItem: completed,
                OpenQuestion: open_questions,
                RejectedPath: rejected_paths,
                Decision: decisions,
                Assumption: assumptions,
                Claim: claims,
            },
        )
        offered = offer_task(self._desk, self._holding, asked)
        return LiveHandoff(
            self._desk,
            offered.handoff.id,
            self._open,
            runners=self._runners,
            parent=self._holding,
            offer=None if offered.again else offered.offer,
            runner=run,
            answerer=answer,
        )

    def _open(self, holding: Holding) -> "LiveRun":
        return LiveRun(self._desk, holding, self._runners)

    def report(self, result: str = "", **parts: Any) -> None:  # noqa: ANN401 - the parts of a Report
        """Say what comes of the task: results, what stays open, what was rejected and decided, how sure it is."""
        self.give(Report(result=result, **parts))

    def give(self, report: Report, *, flags: Sequence[str] = ()) -> None:
        """Say what comes of the task, as a report made elsewhere; `flags` say in codes what is wrong with it.

        Raises `InvalidValueError` if its value is none.
        """
        if report.value is not None:
            try:
                json.loads(report.value)
            except ValueError as error:
                raise InvalidValueError("value", f"is not JSON: {error}") from None
        found = tuple(flags)
        require_codes("flags", found)
        self._holding.report, self._holding.flags = report, found

    @property
    def said(self) -> Report | None:
        """Return what was reported so far."""
        return self._holding.report

    def close(self, outcome: Outcome = Outcome.COMPLETED) -> None:
        """End the run; what it handed off and is not over is withdrawn."""
        self._end(outcome, None)

    def fail(self, error: BaseException) -> None:
        """End the run without delivering."""
        self._end(Outcome.FAILED, error)

    def _end(self, outcome: Outcome, error: BaseException | None) -> None:
        if not self._closed:
            close_run(self._desk, self._holding, outcome, error=error)
            self._closed = True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None:
            self.close()
        else:
            self.fail(error)
