"""The decision sheet: one text with everything that an approver has to know, made from receipts alone.

A ruling names the digest of the sheet, so that everybody can check later which text the approver was shown.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from hashlib import sha256
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from batonpass.briefing.decision_sheet import SheetFact, decision_sheet
from batonpass.briefing.sections import describe_budget
from batonpass.errors import HandoffEndedError, NotFoundError
from batonpass.handoff.approvals.edit_lines import edit_lines, file_lines
from batonpass.handoff.files.replaced_file import StandingFile
from batonpass.handoff.history.holds import needs_proof
from batonpass.handoff.history.offers import read_items, read_offer, statement_item
from batonpass.handoff.runtime.desk import Desk
from batonpass.handoff.tools.whole_write import find_whole_write
from batonpass.model.base.content_names import ARGUMENTS, STANDING
from batonpass.model.base.ids import CallId, Digest, HandoffId, RunId, StreamId
from batonpass.model.baton.baton import Baton
from batonpass.model.baton.items import Constraint, Exclusion, Item, Statement
from batonpass.model.bodies.body import Gate, Part, RunRecorded, RunRelaxed, ToolHeld
from batonpass.model.ledger.receipt import Receipt
from batonpass.model.ledger.ruling import Hold
from batonpass.model.ledger.run import Handoff, Run
from batonpass.model.policy.policy_rules import Policy
from batonpass.records.call import call_asked
from batonpass.records.hold import find_backers, find_held_receipt, find_hold, get_held_call
from batonpass.records.lineage import find_ancestors
from batonpass.records.text import Text, read_texts
from batonpass.store.port import LedgerView, ReceiptQuery
from batonpass.wire.receipt_codec import decode_receipt

_GATES: Final = {
    Gate.NONE: "anybody may approve it",
    Gate.CONFIRM: "whoever asked for it, or a person, has to confirm it",
    Gate.APPROVE: "a person has to approve it",
    Gate.DENY: "nobody can approve it",
}
_UNITS: Final = (("day", 86_400), ("hour", 3600), ("minute", 60))
_STANDING: Final = msgspec.json.Decoder(StandingFile)
_GONE: Final = "the words are no longer here"
LINE_OF_TEXT: Final = "  │ "  # begins each line of an argument that has several


class Material(Struct, frozen=True, kw_only=True):
    """A decision sheet, exactly as it has to be shown, and the hold that it is about."""

    text: str
    hold: Digest
    proven: bool = False  # an approval needs the key of an approver
    approvals: int = 1  # how many people have to approve

    @property
    def digest(self) -> Digest:
        """Return the digest of the text, with which a ruling names the sheet."""
        return Digest(sha256(self.text.encode()).hexdigest())


def show_handoff(desk: Desk, handoff: HandoffId) -> Material:
    """Return the sheet of a held handoff, and remember when it was shown. Raises `HandoffEndedError`."""
    with desk.store.view() as view:
        return _shown(desk, material_of_handoff(view, handoff, desk.gates))


def show_call(desk: Desk, call: CallId) -> Material:
    """Return the sheet of a held call, and remember when it was shown. Raises `NotFoundError`."""
    with desk.store.view() as view:
        return _shown(desk, material_of_call(view, call, desk.gates))


def _shown(desk: Desk, material: Material) -> Material:
    desk.showings.show(material.hold, material.digest)
    return material


def material_of_handoff(view: LedgerView, handoff: HandoffId, policy: Policy) -> Material:
    """Return the sheet of a held handoff. Raises `HandoffEndedError` if it is not held."""
    known = view.get_handoff(handoff)
    hold = find_hold(view, known)
    if hold is None:
        raise HandoffEndedError(handoff, known.state)
    hold = replace(hold, proven=needs_proof(view, policy, hold))
    call = find_held_receipt(view, hold)
    what = "a call of its attempt" if call is not None else "its first attempt"
    facts = _handoff_facts(view, known, hold, call, policy)
    return _sheet(f"{known.to} {handoff[-4:]} waits before {what}", facts, hold)


def material_of_call(view: LedgerView, call: CallId, policy: Policy) -> Material:
    """Return the sheet of a held call of a run that goes on. Raises `NotFoundError`."""
    hold, receipt = get_held_call(view, call)
    hold = replace(hold, proven=needs_proof(view, policy, hold))
    run = view.get_run(_require_run(hold, call))
    if run.handoff is not None:
        known = view.get_handoff(run.handoff)
        title = f"{run.agent} {run.id[-4:]}, which goes on meanwhile, waits before a call"
        return _sheet(title, _handoff_facts(view, known, hold, receipt, policy), hold)
    root = view.get_run(run.root)
    said = [statement_item(stated, view.get_content(stated.item)) for stated in view.find_statements(root.id)]
    facts = [
        *_asked_by(view, root, [item.value for item in said if isinstance(item.value, Statement)]),
        *_call_facts(view, receipt),
        *_gate_facts(view, hold, policy),
        *_consequences(hold, receipt, policy),
        *_bounds(_bounds_of_root(view, root)),
    ]
    return _sheet(f"{root.agent} {root.id[-4:]}, a root run, waits before a call", facts, hold)


def _handoff_facts(
    view: LedgerView, known: Handoff, hold: Hold, call: Receipt | None, policy: Policy
) -> list[SheetFact]:
    baton = read_offer(view, known).baton
    return [
        SheetFact(label="task", texts=[baton.task or _GONE]),
        SheetFact(label="to", texts=[f"{known.to} · {baton.relation}"]),
        *_asked_by(view, view.get_run(known.parent), baton.intent),
        *(() if call is None else _call_facts(view, call)),
        *_gate_facts(view, hold, policy),
        *_consequences(hold, call, policy),
        *_bounds([item for item in baton.items if item.part in {Part.CONSTRAINT, Part.EXCLUSION}]),
        *_terms(baton),
    ]


def _sheet(title: str, facts: Sequence[SheetFact], hold: Hold) -> Material:
    footer = f"{hold.name} · {hold.receipt[:16]}"
    text = decision_sheet(title, [fact for fact in facts if fact.texts], footer)
    return Material(text=text, hold=hold.receipt, proven=hold.proven, approvals=hold.approvals)


def _asked_by(view: LedgerView, run: Run, intent: Sequence[Statement]) -> Iterator[SheetFact]:
    chain = " ← ".join(f"{one.agent} {one.id[-4:]}" for one in (run, *find_ancestors(view, run)))
    yield SheetFact(label="asked by", texts=[f"{chain} ← {run.principal}"])
    yield SheetFact(label="who wants", texts=[statement.text for statement in intent])


def _call_facts(view: LedgerView, receipt: Receipt) -> Iterator[SheetFact]:
    body = receipt.body
    if not isinstance(body, ToolHeld):
        return
    texts = read_texts(view, receipt)
    changes = "reads only" if body.reads else f"changes something: {', '.join(body.tiers) or 'undeclared'}"
    yield SheetFact(label="tool", texts=[f"{body.tool} · {changes}"])
    if (target := texts.get("target")) is not None:
        yield SheetFact(label="on", texts=[_words(target)])
    difference = [*_difference(body, texts)]
    yield SheetFact(label="with", texts=[_arguments(texts.get(ARGUMENTS), by_line=not difference)])
    yield SheetFact(label="diff", texts=difference)
    if (reason := texts.get("reason")) is not None:
        yield SheetFact(label="because", texts=[_words(reason)])


def _difference(held: ToolHeld, texts: Mapping[str, Text]) -> Iterator[str]:
    """Yield the changes by an edit or a write of a whole file, line by line."""
    arguments = _read_arguments(texts.get(ARGUMENTS))
    write = None if held.reads else find_whole_write(held.tool, arguments)
    if write is None:
        yield from edit_lines(arguments)
        return
    recorded = texts.get(STANDING)
    try:
        standing = _STANDING.decode(recorded.words or "") if recorded is not None else None
    except msgspec.MsgspecError:
        standing = None
    yield from file_lines(write, standing)


def _gate_facts(view: LedgerView, hold: Hold, policy: Policy) -> Iterator[SheetFact]:
    rule = "held by whoever handed it off" if hold.rule is None else f"rule {hold.rule}"
    who = "a person has to approve it with their key" if hold.proven else _GATES[hold.gate]
    if hold.approvals > 1:
        keys = ", with their keys," if hold.proven else ""
        who = f"{hold.approvals} people{keys} have to approve it, and {hold.principal} cannot be one of them"
    yield SheetFact(label="gate", texts=[f"{rule} · {who}"])
    yield SheetFact(label="written", texts=[] if hold.rule is None else [policy.where(hold.rule)])
    yield SheetFact(label="approved", texts=[f"by {body.by}" for body in find_backers(view, hold)])
    if hold.until is not None:
        yield SheetFact(label="until", texts=[f"{hold.until:%Y-%m-%d %H:%M:%S} UTC, then it is denied"])


def _consequences(hold: Hold, call: Receipt | None, policy: Policy) -> Iterator[SheetFact]:
    """Yield the consequences of either decision."""
    lasts = _in_words(policy.approval_lasts)
    if hold.handoff is None:
        approved, denied = f"this call may be made once, within {lasts}", "it is refused for good; its run goes on"
    elif hold.call is None:
        approved, denied = f"the handoff may begin, within {lasts}", "the handoff ends here"
    else:
        approved = f"the handoff goes on, and may make this call once, within {lasts}"
        denied = "the handoff ends here; what it finished stays"
    yield SheetFact(label="if yes", texts=[approved])
    yield SheetFact(label="if no", texts=[denied])
    asked = None if call is None else call_asked(call)
    if asked is not None and not asked.reads and not asked.reversible:
        is_known = "irreversible" in asked.tiers
        yield SheetFact(
            label="undo", texts=["it cannot be undone" if is_known else "nobody says that it can be undone"]
        )


def _in_words(duration: timedelta) -> str:
    """Return a duration by its largest unit that fits: 1 day, 36 hours, 90 minutes."""
    seconds = int(duration.total_seconds())
    name, size = next(((name, size) for name, size in _UNITS if seconds >= size and seconds % size == 0), ("second", 1))
    return f"{seconds // size} {name}{'s' * (seconds != size)}"


def _bounds(items: Sequence[Item]) -> Iterator[SheetFact]:
    yield SheetFact(
        label="bound by",
        texts=[
            f"{item.value.sentence} · {'nothing checks it' if item.value.binds_to is None else 'checked'}"
            for item in items
            if isinstance(item.value, Constraint)
        ],
    )
    yield SheetFact(label="excluded", texts=[item.value.text for item in items if isinstance(item.value, Exclusion)])


def _terms(baton: Baton) -> Iterator[SheetFact]:
    brief = baton.brief
    yield SheetFact(label="may", texts=brief.may)
    yield SheetFact(label="changes", texts=brief.expects)
    yield SheetFact(label="budget", texts=[describe_budget(brief.budget)] if brief.budget is not None else [])
    yield SheetFact(label="rationale", texts=[brief.rationale] if brief.rationale is not None else [])
    outside = [f"{artifact.name} · {artifact.size:,} bytes" for artifact in baton.untrusted]
    yield SheetFact(label="outside", texts=outside)


def _bounds_of_root(view: LedgerView, root: Run) -> list[Item]:
    bodies = [
        decode_receipt(stored.payload).body for stored in view.find_receipts(ReceiptQuery(stream=StreamId(root.id)))
    ]
    relaxed = {body.item for body in bodies if isinstance(body, RunRelaxed)}
    refs = [
        ref
        for body in bodies
        if isinstance(body, RunRecorded)
        for ref in body.items
        if ref.part in {Part.CONSTRAINT, Part.EXCLUSION} and ref.item not in relaxed
    ]
    contents = {content.id: content for content in view.find_contents([ref.item for ref in refs])}
    return list(read_items(view, refs, contents)[0])


def _require_run(hold: Hold, name: str) -> RunId:
    if hold.run is None:
        raise NotFoundError("run of held call", name)
    return hold.run


def _words(text: Text) -> str:
    return _GONE if text.words is None else text.words


def _arguments(text: Text | None, *, by_line: bool) -> str:
    """Return all arguments of a call, each name on a line of its own; with `by_line`, so are the lines of a text."""
    if text is None or text.words is None:
        return _GONE
    given = _read_arguments(text)
    if given is None:
        return text.words
    if not isinstance(given, dict):
        return json.dumps(given, ensure_ascii=False)
    return "\n".join(_argument(name, value, by_line=by_line) for name, value in given.items()) or "nothing"


def _argument(name: str, value: object, *, by_line: bool) -> str:
    # A name with a line break would begin a line that looks like another argument.
    shown = name if name.isidentifier() else json.dumps(name, ensure_ascii=False)
    if not (by_line and isinstance(value, str) and "\n" in value):
        return f"{shown} = {json.dumps(value, ensure_ascii=False)}"
    # Each line of a text stands behind a bar, so that none of them can pose as an argument.
    return "\n".join((f"{shown} =", *(f"{LINE_OF_TEXT}{line}" for line in value.split("\n"))))


def _read_arguments(text: Text | None) -> object:
    """Return the arguments of a call; None if they were erased or cannot be read."""
    try:
        read = None if text is None or text.words is None else json.loads(text.words)
    except (ValueError, RecursionError):
        return None
    return read.get(ARGUMENTS, read) if isinstance(read, dict) else read
