"""A tree as provenance in the W3C's words: PROV-JSON.

Runs, calls and checks are activities. Agents and principals are agents. Batons, reports and states of files are
entities. All of them are named by ids and digests, and none by words.
"""

from collections.abc import Iterable
from typing import Any, Final

from batonpass.model.base.content_names import REPORT
from batonpass.model.base.ids import AgentId, CallId, Digest, HandoffId, PrincipalId, RunId
from batonpass.model.bodies.body import (
    Changed,
    HandoffAccepted,
    HandoffCompleted,
    HandoffFailed,
    HandoffInitiated,
    RunClosed,
    RunStarted,
    ToolCompleted,
    ToolFailed,
    ToolRequested,
    VerificationFailed,
    VerificationPassed,
    VerificationRepeated,
)
from batonpass.model.ledger.receipt import Receipt, StoredReceipt
from batonpass.records.text import read_receipt
from batonpass.wire.canonical import digest

NAMESPACE: Final = "urn:batonpass:"
_PREFIX: Final = "batonpass"
_PEOPLE: Final = "user:"


class _Document:
    """Gathers statements, each sort in its own table."""

    def __init__(self) -> None:
        self.tables: dict[str, dict[str, dict[str, Any]]] = {}
        self.agents: dict[RunId, AgentId] = {}
        self.reports: dict[tuple[HandoffId, int], str] = {}

    def add(self, sort: str, of: str, type_: str, **said: object) -> str:
        """Add facts about an entity, an activity or an agent, and return its name."""
        name = _name(of)
        known = self.tables.setdefault(sort, {}).setdefault(name, {})
        known["prov:type"] = {"$": type_, "type": "prov:QUALIFIED_NAME"}
        known.update({_name(key): value for key, value in said.items() if value is not None})
        return name

    def relate(self, sort: str, **parts: str | None) -> None:
        """Add a relation between things that have names."""
        table = self.tables.setdefault(sort, {})
        said = {f"prov:{name}": value for name, value in parts.items() if value is not None}
        table[f"_:{sort}{len(table) + 1}"] = said

    def begin(self, activity: str, receipt: Receipt) -> None:
        """Say when an activity began."""
        self.tables["activity"][activity]["prov:startTime"] = _time(receipt)

    def end(self, activity: str, receipt: Receipt) -> None:
        """Say when an activity ended."""
        self.tables["activity"][activity]["prov:endTime"] = _time(receipt)

    def agent(self, of: AgentId) -> str:
        """Return the name of an agent."""
        return self.add("agent", f"agent/{of}", "prov:SoftwareAgent")

    def principal(self, of: PrincipalId) -> str:
        """Return the name of a principal: work is done for them, or they decide."""
        is_person = of.startswith(_PEOPLE)
        return self.add("agent", f"principal/{of}", "prov:Person" if is_person else "prov:SoftwareAgent")


def _name(of: str) -> str:
    return f"{_PREFIX}:{of}"


def _time(receipt: Receipt) -> str:
    return receipt.at.isoformat(timespec="microseconds")


def provenance_of(receipts: Iterable[StoredReceipt]) -> dict[str, Any]:
    """Return the receipts of a tree, which come by position, as a document of PROV-JSON."""
    document = _Document()
    for stored in receipts:
        receipt = read_receipt(stored)
        match receipt.body:
            case RunStarted() | HandoffAccepted():
                _run(document, receipt)
            case HandoffInitiated() as body:
                _offer(document, receipt, body, digest(stored.payload))
            case HandoffCompleted() | HandoffFailed() | RunClosed():
                _end(document, receipt)
            case ToolRequested() | ToolCompleted() | ToolFailed():
                _call(document, receipt)
            case VerificationPassed() | VerificationFailed() | VerificationRepeated():
                _verdict(document, receipt)
    return {"prefix": {_PREFIX: NAMESPACE}, **document.tables}


def _run(document: _Document, receipt: Receipt) -> None:
    body = receipt.body
    if not isinstance(body, RunStarted | HandoffAccepted):
        return
    attempt = body.attempt if isinstance(body, HandoffAccepted) else None
    run = document.add("activity", body.run, _name("Run"), attempt=attempt, mode=str(receipt.mode))
    document.begin(run, receipt)
    document.agents[body.run] = body.agent
    agent = document.agent(body.agent)
    document.relate("wasAssociatedWith", activity=run, agent=agent)
    if isinstance(body, RunStarted):
        document.relate("actedOnBehalfOf", delegate=agent, responsible=document.principal(body.principal), activity=run)
        return
    document.relate("used", activity=run, entity=_name(body.handoff), time=_time(receipt))
    document.relate("wasInformedBy", informed=run, informant=_name(body.parent))
    above = document.agents.get(body.parent)
    if above is not None:
        document.relate("actedOnBehalfOf", delegate=agent, responsible=document.agent(above), activity=run)


def _offer(document: _Document, receipt: Receipt, body: HandoffInitiated, signed: Digest) -> None:
    baton = document.add("entity", body.handoff, _name("Baton"), receipt=receipt.id, sha256=signed)
    document.relate("wasGeneratedBy", entity=baton, activity=_name(body.run), time=_time(receipt))
    for builds_on in body.unverified:
        if _name(builds_on) in document.tables["entity"]:
            document.relate("wasDerivedFrom", generatedEntity=baton, usedEntity=_name(builds_on))


def _end(document: _Document, receipt: Receipt) -> None:
    body = receipt.body
    if not isinstance(body, HandoffCompleted | HandoffFailed | RunClosed):
        return
    if isinstance(body, HandoffFailed) and body.is_refusal:
        return
    run = _name(body.run)
    document.end(run, receipt)
    if REPORT not in receipt.content:
        return
    ref = receipt.content[REPORT]
    report = document.add("entity", ref.id, _name("Report"), digest=ref.digest, receipt=receipt.id)
    document.relate("wasGeneratedBy", entity=report, activity=run, time=_time(receipt))
    if not isinstance(body, RunClosed):
        document.relate("wasDerivedFrom", generatedEntity=report, usedEntity=_name(body.handoff))
        document.reports[body.handoff, body.attempt] = report


def _call(document: _Document, receipt: Receipt) -> None:
    match receipt.body:
        case ToolRequested() as body:
            call = document.add("activity", body.call, _name("Call"), tool=body.tool)
            document.begin(call, receipt)
            document.relate("wasInformedBy", informed=call, informant=_name(body.run))
            document.relate("wasAssociatedWith", activity=call, agent=document.agent(document.agents[body.run]))
        case ToolCompleted() | ToolFailed() as body:
            document.end(_name(body.call), receipt)
            for changed in body.changes:
                _change(document, body.call, changed, receipt)


def _change(document: _Document, call: CallId, changed: Changed, receipt: Receipt) -> None:
    # Two files with the same bytes are two things, so a state is named by the change that made it.
    after = document.add("entity", changed.change, _name("File"), sha256=changed.after, receipt=receipt.id)
    document.relate("wasGeneratedBy", entity=after, activity=_name(call), time=_time(receipt))
    if changed.before is not None:
        before = document.add("entity", f"{changed.change}/before", _name("File"), sha256=changed.before)
        document.relate("used", activity=_name(call), entity=before)
        document.relate("wasDerivedFrom", generatedEntity=after, usedEntity=before, activity=_name(call))


def _verdict(document: _Document, receipt: Receipt) -> None:
    body = receipt.body
    if not isinstance(body, VerificationPassed | VerificationFailed | VerificationRepeated):
        return
    check = document.add("activity", receipt.id, _name("Verification"), verdict=str(body.kind), method=str(body.method))
    document.begin(check, receipt)
    document.end(check, receipt)
    document.relate("wasAssociatedWith", activity=check, agent=document.principal(body.by))
    if (report := document.reports.get((body.handoff, body.attempt))) is not None:
        document.relate("used", activity=check, entity=report, time=_time(receipt))
