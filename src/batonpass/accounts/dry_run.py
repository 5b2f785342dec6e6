"""A policy tried on recorded handoffs and calls: one of them, or the latest."""

from collections import defaultdict
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice
from typing import Final

from msgspec import Struct, field

from batonpass.accounts.grant_suggestions import find_line, granted_call
from batonpass.audit.short_ids import ending
from batonpass.errors import NotFoundError
from batonpass.guard.policy.call_patterns import UsedOn
from batonpass.guard.policy.gates import CallFacts, GateDecision, HandoffFacts, judge_call, judge_handoff
from batonpass.handoff.approvals.gate_facts import depth_in
from batonpass.handoff.history.offers import read_offer
from batonpass.handoff.shell.call_use import commands_used, names_used
from batonpass.handoff.transfer.handoff_gates import has_method, is_verbatim, tiers_of_handoff
from batonpass.model.base.content_names import TARGET
from batonpass.model.base.ids import RECEIPT, AgentId, CallId, ReceiptId
from batonpass.model.bodies.body import Gate, HandoffInitiated, Kind
from batonpass.model.ledger.receipt import Receipt
from batonpass.model.policy.policy_rules import Policy, Tier
from batonpass.records.call import CallOutcome, CallRecord, call_of, find_calls
from batonpass.records.remarks.alarm import alarmed_kinds
from batonpass.records.text import read_receipt, read_texts
from batonpass.store.port import LedgerView

_JUDGED: Final = frozenset({Kind.HANDOFF_INITIATED, Kind.TOOL_REQUESTED, Kind.TOOL_HELD})
_EXAMPLES: Final = 3
_COMMANDS: Final = ("command", "line")  # the arguments of Claude Code's shells, and of `run.shell`


class Example(Struct, frozen=True, kw_only=True):
    """One recorded handoff or call, and the decision of a rule about it."""

    id: str
    sentence: str


class Count(Struct):
    """How often a rule would have held or denied, with the latest examples."""

    held: int = 0
    denied: int = 0
    examples: list[Example] = field(default_factory=list)

    def add(self, decision: GateDecision, identifier: str) -> None:
        """Count one decision."""
        if decision.gate is Gate.DENY:
            self.denied += 1
        else:
            self.held += 1
        if len(self.examples) < _EXAMPLES:
            self.examples.append(Example(id=identifier, sentence=decision.sentence))


class DryRun(Struct, frozen=True, kw_only=True):
    """The decisions that a policy would have made about the latest handoffs and calls."""

    looked_at: int
    counts: dict[str, Count]


def dry_run(view: LedgerView, policy: Policy, last: int) -> DryRun:
    """Judge the latest recorded handoffs and calls by a policy. Nothing is recorded."""
    counts: dict[str, Count] = defaultdict(Count)
    for name in (*(rule.name for rule in policy.rules), *map(_table_of, policy.grants)):
        counts[name] = Count()  # a rule that never applies is listed too: it may be misspelled
    looked_at = 0
    for receipt in islice(_find_judged(view), last):
        looked_at += 1
        identifier, decisions = judge_again(view, receipt, policy)
        for decision in decisions:
            counts[decision.rule].add(decision, identifier)
    return DryRun(looked_at=looked_at, counts=dict(counts))


def judge_again(view: LedgerView, receipt: Receipt, policy: Policy) -> tuple[str, tuple[GateDecision, ...]]:
    """Return the id of a handoff or call, and the policy's decision. Raises `NotFoundError` for other receipts."""
    if isinstance(receipt.body, HandoffInitiated):
        return receipt.body.handoff, judge_handoff(_handoff_facts(view, receipt, receipt.body, policy), policy)
    call = find_calls([receipt]).get(call_of(receipt) or CallId(""))
    if call is None or not (call.is_made or call.outcome is CallOutcome.HELD):
        raise NotFoundError("handoff or call of receipt", ending(receipt.id, 6))
    judged = judge_call(_call_facts(view, call, policy), policy)
    return call.id, (*judged, *(_judge_by_tables(view, call, policy) if call.is_made else ()))


def _judge_by_tables(view: LedgerView, call: CallRecord, policy: Policy) -> Iterator[GateDecision]:
    """Yield the denials by grants for agents: the caller's own, and those of everybody above."""
    if not policy.grants:
        return
    granted = granted_call(view, call)
    agent, *above = find_line(view, call.run)
    tried = call.tool if granted is None else str(granted)
    for number, one in enumerate((agent, *above)):
        table = policy.grants.get(one)
        right = None if table is None else table.may_delegate if number else table.may
        if right is None or (granted is not None and right.allows(granted, call.at)):
            continue
        words = (
            f"{one} may {'delegate ' if number else ''}{right or 'nothing'}, {agent if number else 'and'} tried {tried}"
        )
        name = _table_of(one)
        yield GateDecision(gate=Gate.DENY, rule=name, line=policy.lines.get(name), sentence=words)


def _table_of(agent: AgentId) -> str:
    return f"grant.{agent}"


def _find_judged(view: LedgerView) -> Iterator[Receipt]:
    for found in view.find_ids(RECEIPT, ""):
        stored = view.get_receipt(ReceiptId(found))
        if stored.kind in _JUDGED:
            yield read_receipt(stored)


def _handoff_facts(view: LedgerView, receipt: Receipt, body: HandoffInitiated, policy: Policy) -> HandoffFacts:
    baton = read_offer(view, view.get_handoff(body.handoff)).baton
    return HandoffFacts(
        to=body.to,
        relation=body.relation,
        may=baton.brief.may,
        tiers=tiers_of_handoff(baton.brief),
        depth=depth_in(view, body.run) + 1,
        alarms=alarmed_kinds(view, body.to, receipt.at) if policy.needs_alarms else (),
        missing=body.missing,
        unverified=len(body.unverified),
        has_method=has_method(baton.brief),
        is_verbatim=is_verbatim(baton.task, baton.items),
    )


def _used(view: LedgerView, call: CallRecord, target: str | None) -> UsedOn | None:
    """Return the object of a recorded call: the command that it was given, else its target."""
    granted = granted_call(view, call)
    given = {} if granted is None else granted.arguments
    if texts := [text for name in _COMMANDS if isinstance(text := given.get(name), str)]:
        return commands_used(texts, "")
    return None if target is None else names_used((target,))


def _call_facts(view: LedgerView, call: CallRecord, policy: Policy) -> CallFacts:
    agent = view.get_run(call.run).agent
    target = read_texts(view, call.receipt).get(TARGET)
    return CallFacts(
        agent=agent,
        tool=call.tool,
        reads=call.reads,
        target=None if target is None else target.words,
        used=_used(view, call, None if target is None else target.words) if policy.needs_use else None,
        tiers=tuple(tier for name in call.tiers if (tier := _tier(name)) is not None),
        depth=depth_in(view, call.run),
        alarms=alarmed_kinds(view, agent, call.at) if policy.needs_alarms else (),
    )


@lru_cache
def _tier(name: str) -> Tier | None:
    """Return a tier by name; None for one of a newer version."""
    return Tier(name) if name in set(Tier) else None
