"""Handing off as a tool of a model: a recorded handoff, whose report comes back as data."""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final, Literal

from msgspec.structs import replace

from batonpass.agents.agent_at_work import DEPTH, agent_at_work, depth_within
from batonpass.agents.agent_tools import ToolDefinition
from batonpass.agents.registry import AgentRegistry
from batonpass.agents.shown_result import show_result
from batonpass.aio import AsyncRun
from batonpass.errors import InvalidValueError, UnknownAgentError
from batonpass.handoff.programs.runners import config_of, configured
from batonpass.handoff.transfer.offer_request import GivenItem, items_by_part
from batonpass.handoff.transfer.result import Result
from batonpass.model.base.kinds import Relation
from batonpass.model.baton.brief_request import BriefRequest
from batonpass.model.baton.items import OpenQuestion, WorkItem
from batonpass.model.grants.grant_request import GrantRequest, grant_asked, grant_unless_nothing
from batonpass.model.policy.handoff_policy import HandoffPolicy
from batonpass.model.policy.offer_options import Handling

PREFIX: Final = "handoff_to_"

# The parts of a baton that a sender can declare to be empty.
EmptyPart = Literal[
    "rationale",
    "criteria",
    "constraint",
    "exclusion",
    "completed",
    "question",
    "rejected",
    "decision",
    "assumption",
    "claim",
    "artifact",
]

# Models tend to delegate in circles, so there is a default policy.
DEFAULT_POLICY: Final = HandoffPolicy(max_depth=8, refuse_loops=True)


@dataclass(frozen=True, slots=True)
class FileGiven:
    """A file or a result that is attached."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class WorkGiven:
    """Work that is done: its result, and how it was checked."""

    what: str
    outputs: list[str] = field(default_factory=list)
    checked_how: str | None = None  # None: nobody has checked it


@dataclass(frozen=True, slots=True)
class QuestionGiven:
    """An open question; a blocking one has to be answered before anybody goes on."""

    text: str
    blocking: bool = False


@dataclass(frozen=True, slots=True)
class Needs:
    """The tools and skills that the agent needs for the task."""

    inputs: list[str] = field(default_factory=list)  # names of artifacts
    tools: list[str] = field(default_factory=list)
    skills: list[str] = field(default_factory=list)


class HandoffExecutor:
    """Hands work to registered agents, under a policy. Every handoff is recorded before any of it runs."""

    def __init__(self, registry: AgentRegistry, policy: HandoffPolicy | None = None) -> None:
        self.registry = registry
        self.policy = DEFAULT_POLICY if policy is None else policy

    def __repr__(self) -> str:
        return f"<HandoffExecutor to {', '.join(self.registry) or 'no agent'}>"

    async def execute(
        self,
        target_agent_id: str,
        task: str,
        *,
        run: AsyncRun | None = None,
        context: str | None = None,
        artifacts: Iterable[FileGiven] = (),
        may: Sequence[str] = (),
        grant: GrantRequest | None = None,
        brief: BriefRequest | None = None,
        items: Iterable[GivenItem] = (),
        deadline: datetime | timedelta | str | None = None,
        hold: bool = False,
        handling: Handling | None = None,
    ) -> Result:
        """Hand one task to an agent, let its runner work on it, and return the result.

        The child's grant is `may` or `grant`, otherwise those of its definition, otherwise the intersection of
        its ceiling and its sender's grant. An error in the child is a result, not an error here. A cancellation
        cancels the handoff. Raises `PolicyRefusedError` if a policy refuses it, `GrantError` if the sender cannot
        give the grant, and `UnknownAgentError` for an agent that is not registered. All of these are recorded.
        """
        parent = agent_at_work().run if run is None else run
        if target_agent_id not in self.registry:
            near = self.registry.find_near(target_agent_id)
            await parent.refuse_handoff(
                target_agent_id, task, UnknownAgentError(target_agent_id, tuple(self.registry), near)
            )
        agent = self.registry.get(target_agent_id)
        await agent.worker.introduce(agent.held_to)
        asked = grant_asked(may, grant)
        if asked is None:
            asked = grant_unless_nothing(tuple(agent.definition.may), tuple(agent.definition.may_delegate))
        for file in artifacts:
            await parent.attach(file.name, file.text)
        handoff = await parent.hand_off(
            target_agent_id,
            task,
            grant=asked,
            brief=_with_context(brief, context),
            items=items,
            deadline=deadline,
            hold=hold,
            handling=self._under_policy(handling),
        )
        working = agent.worker.working(agent.definition)

        async def work(child: AsyncRun) -> None:
            try:
                await working(child)
            except asyncio.CancelledError:
                # Nobody waits for it any more: cancelled, it is not retried, as a failed handoff would be.
                await handoff.cancel(reason="the caller that waited for it was cancelled")
                raise

        inside = DEPTH.set(depth_within(self.policy.max_depth))
        try:
            return await handoff.run(configured(work, config_of(working)))
        finally:
            DEPTH.reset(inside)

    def _under_policy(self, handling: Handling | None) -> Handling:
        policy = replace(self.policy, max_depth=depth_within(self.policy.max_depth))
        if handling is None:
            return Handling(policy=policy)
        if handling.policy is not None:
            raise InvalidValueError("policy", "is given by handling= and to this executor; say it in one place")
        return replace(handling, policy=policy)


def _with_context(brief: BriefRequest | None, context: str | None) -> BriefRequest | None:
    if context is None:
        return brief
    if brief is None:
        return BriefRequest(context=context)
    if brief.context is not None:
        raise InvalidValueError("context", "is given by context= and by brief=; say it in one place")
    return replace(brief, context=context)


def create_handoff_tool(
    target_agent_id: str,
    description: str,
    handoff_executor: HandoffExecutor,
    *,
    name: str | None = None,
    relation: Relation | str = Relation.LEAD_TO_WORKER,
    may: Sequence[str] = (),
    grant: GrantRequest | None = None,
) -> ToolDefinition:
    """Return a tool with which a model hands a task to an agent; the grant is given here, never by the model."""

    async def hand_off(  # noqa: PLR0917 - the model names them
        task: str,
        rationale: str | None = None,
        context: str | None = None,
        constraints: list[str] | None = None,
        exclusions: list[str] | None = None,
        completed: list[WorkGiven | str] | None = None,
        decisions: list[str] | None = None,
        open_questions: list[QuestionGiven | str] | None = None,
        rejected_paths: list[str] | None = None,
        assumptions: list[str] | None = None,
        criteria: list[str] | None = None,
        artifacts: list[FileGiven] | None = None,
        needs: Needs | None = None,
        none: list[EmptyPart] | None = None,
    ) -> str:
        """Hand a task over.

        Args:
            task: The complete task. The agent sees nothing of this conversation.
            rationale: Why you hand it over.
            context: Further background, in free text.
            constraints: Conditions that must be met.
            exclusions: Things that are out of scope.
            completed: Work that is already done, its outputs, and how you checked it if you did.
            decisions: Decisions so far, and why.
            open_questions: Things that are not known; a blocking one stops the work until it is answered.
            rejected_paths: Approaches that were rejected and must not be tried again.
            assumptions: Assumptions that nobody has checked.
            criteria: How to tell that the task is done well.
            artifacts: Files or results that they need.
            needs: Artifacts, tools and skills without which the task cannot be done.
            none: Parts that are empty on purpose. Say so here; do not fill a field with "n/a".

        """
        listed: dict[str, list[Any]] = {
            "constraints": _said(constraints),
            "exclusions": _said(exclusions),
            "completed": [_work(one) for one in completed or ()],
            "open_questions": [_question(one) for one in open_questions or ()],
            "rejected_paths": _said(rejected_paths),
            "decisions": _said(decisions),
            "assumptions": _said(assumptions),
        }
        wanted = needs or Needs()
        result = await handoff_executor.execute(
            target_agent_id,
            task,
            context=context or None,
            artifacts=artifacts or (),
            may=may,
            grant=grant,
            brief=BriefRequest(
                rationale=(rationale or "").strip() or None,
                criteria=_said(criteria),
                inputs=_said(wanted.inputs),
                needs_tools=_said(wanted.tools),
                needs_skills=_said(wanted.skills),
                none=none or (),
                relation=relation,
            ),
            items=items_by_part({name: [one for one in given if one] for name, given in listed.items()}),
        )
        return show_result(target_agent_id, result)

    return ToolDefinition(
        name=name or f"{PREFIX}{target_agent_id}",
        function=hand_off,
        description=description,
        hands_off=True,
        work_of=handoff_executor.registry.work_of,
    )


def _work(given: WorkGiven | str) -> WorkItem | None:
    """Return completed work. Only the relay knows who says that it was checked: never a name that a model gives."""
    work = WorkGiven(given) if isinstance(given, str) else given
    if not work.what.strip():
        return None
    how = (work.checked_how or "").strip() or None
    by = None if how is None else f"agent:{agent_at_work().run.agent}"
    return WorkItem(work.what, outputs=tuple(_said(work.outputs)), verified_by=by, how=how)


def _question(given: QuestionGiven | str) -> OpenQuestion | None:
    asked = QuestionGiven(given) if isinstance(given, str) else given
    return OpenQuestion(asked.text, blocking=asked.blocking) if asked.text.strip() else None


def _said(texts: list[str] | None) -> list[str]:
    """Return the texts that a model really gave: empty ones mean that it left them out."""
    return [text for text in texts or () if text.strip()]
