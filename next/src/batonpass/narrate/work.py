"""A call, a run, a handoff, a tree and a retry, in lines with tones."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any, Final, TypeAlias

from msgspec import DecodeError, json

from batonpass.model.ids import short
from batonpass.model.items import Report
from batonpass.narrate.receipts import narrate_receipt
from batonpass.narrate.tokens import (
    Line,
    Token,
    Tone,
    counted,
    cut,
    duration,
    line,
    moment,
    name,
    named,
    passage,
    quoted,
    visible,
)
from batonpass.reading.handoffs import (
    CallView,
    GrantView,
    HandoffLine,
    HandoffView,
    ReceiptView,
    RunLine,
    RunView,
    TreeView,
)

Cells: TypeAlias = tuple[tuple[Token, ...], ...]

RUN_COLUMNS: Final = ("run", "state", "started", "took", "task")
_ARGUMENTS_LENGTH: Final = 60
_NAME_LENGTH: Final = 32  # in a column
_LABEL_WIDTH: Final = 10
_ITEM_NAMES: Final = {
    "intent": "statement",
    "work": "work item",
    "question": "open question",
    "rejected": "rejected path",
}
_GAP: Final = Token("  ")
_DOT: Final = Token(" · ", Tone.QUIET)
_TONES: Final = {
    "open": Tone.ACCENT,
    "running": Tone.ACCENT,
    "failed": Tone.BAD,
    "denied": Tone.BAD,
    "fenced": Tone.WARN,
    "offered": Tone.QUIET,
    "completed": Tone.QUIET,
    "cancelled": Tone.QUIET,
}


def state_token(state: str) -> Token:
    """Return the word of a state, with its tone."""
    return Token(str(state), _TONES.get(str(state), Tone.PLAIN))


def run_row(run: RunLine) -> Cells:
    """Return a run as a row of a list: see `RUN_COLUMNS`."""
    return (
        (name(run.agent, limit=_NAME_LENGTH), Token(f" {short(run.id)}", Tone.QUIET)),
        (state_token(run.state),),
        (Token(moment(run.started_at)),),
        (Token(_took(run)),),
        (quoted(run.task),),
    )


def _took(run: RunLine) -> str:
    last = run.ended_at or run.last_at
    took = duration(_microseconds(run.started_at, last))
    return took if run.ended_at else f"{took} so far"


def _microseconds(first: datetime, last: datetime) -> int:
    return max(0, int((last - first).total_seconds() * 1_000_000))


def call_tokens(call: CallView) -> tuple[Token, ...]:
    """Return what was called: the tool and its target; without a target of its own, its arguments."""
    if call.target is None:
        return (name(call.tool), Token(" (erased)", Tone.QUIET))
    if call.target != call.tool:
        return (name(call.tool), Token(" "), name(call.target))
    return (name(call.tool), Token(_arguments(call.arguments)))


def _arguments(arguments: str | None) -> str:
    """Return arguments as they stand in a program: `("ana", subject="hi")`. The text of a value cannot end them."""
    try:
        value: Any = json.decode(arguments or "null")
    except DecodeError:
        value = arguments
    match value:
        case [list() as given, dict() as named]:
            spelled = [*map(_spell, given), *(f"{_spell_key(key)}={_spell(each)}" for key, each in named.items())]
            text = ", ".join(spelled)
        case None:
            text = ""
        case _:
            text = _spell(value)
    return f"({cut(visible(text), _ARGUMENTS_LENGTH)})"


def _spell(value: object) -> str:
    return json.encode(value).decode()


def _spell_key(key: str) -> str:
    return key if key.isidentifier() else _spell(key)


def narrate_call(call: CallView, *, lead: str = "") -> Line:
    """Return a call and what became of it."""
    return line(call_tokens(call), _GAP, _outcome(call), lead=lead)


def _outcome(call: CallView) -> Iterator[Token]:
    if call.outcome == "denied":
        yield Token("denied", Tone.BAD)
        yield Token(f": {visible(call.reason or '(erased)')}")
        return
    if call.outcome is None:
        yield from _doubt(call)
        return
    yield state_token(call.outcome)
    if call.outcome == "failed":
        yield Token(": ")
        yield quoted(call.error)
    yield Token(f" · {duration(call.took_us or 0)}", Tone.QUIET)
    for effect in call.effects:
        yield _DOT
        yield Token("created " if effect.before is None else "deleted " if effect.after is None else "changed ")
        yield quoted(None) if effect.target is None else name(effect.target)
        if effect.added is not None:
            yield Token(f" +{effect.added} -{effect.removed}")
    if call.is_in_doubt:
        yield Token(" · its result cannot be given again: in doubt", Tone.WARN)
        yield Token(f" {short(call.id)}", Tone.QUIET)


def _doubt(call: CallView) -> Iterator[Token]:
    if call.repeated_as is not None:
        yield Token(f"no outcome: made again as {short(call.repeated_as)}")
    elif call.settlement is not None:
        yield Token("no outcome: to be made again" if call.settlement == "repeat" else "no outcome: taken as done")
    else:
        yield Token("no outcome: in doubt", Tone.WARN)
        yield Token(f" {short(call.id)}", Tone.QUIET)
    if call.settlement is not None and call.settled_by is not None:
        yield Token(", says ")
        yield name(call.settled_by)
    if call.late is not None:
        yield Token(f" · it {call.late} after its attempt was over", Tone.WARN)


def run_head(run: RunLine) -> Iterator[Token]:
    """Yield a run's agent, id and state."""
    yield from named(run.agent, run.id)
    yield _GAP
    yield state_token(run.state)
    if run.state == "fenced":
        yield Token(" by a retry", Tone.QUIET)


def narrate_tree(tree: TreeView) -> tuple[Line, ...]:
    """Return a tree: the person's words, and below each run what it called and whom it handed work to."""
    attempts: dict[str, list[RunView]] = {}
    for run in tree.runs:
        if run.handoff is not None:
            attempts.setdefault(run.handoff, []).append(run)
    lines = [line(name(tree.principal), ": ", quoted(tree.intent, limit=None))]
    # A stack of its own: a chain of handoffs may be deeper than Python's.
    stack: list[tuple[RunView | HandoffLine | CallView | str, str, bool]] = [(tree.runs[0], "", True)]
    while stack:
        entry, before, is_last = stack.pop()
        if isinstance(entry, str | CallView):
            lines.append(line(entry, lead=before) if isinstance(entry, str) else narrate_call(entry, lead=before))
            continue
        lead, below = before + ("└─ " if is_last else "├─ "), before + ("   " if is_last else "│  ")
        if isinstance(entry, HandoffLine):
            lines.append(_pending(entry, lead, below))
            continue
        lines.append(line(run_head(entry), *_task_of(entry), lead=lead, rest=below))
        stack += reversed(_entries_below(entry, attempts, below))
    return tuple(lines)


def _task_of(run: RunView) -> tuple[Token, ...]:
    return () if run.handoff is None else (_GAP, quoted(run.task))


def _pending(handoff: HandoffLine, lead: str, below: str) -> Line:
    attempt = f" · {_attempt_of(handoff)}" if handoff.attempt else ""
    parts = (name(handoff.to), _GAP, state_token(handoff.state), attempt, _GAP, quoted(handoff.task))
    return line(*parts, lead=lead, rest=below)


def _attempt_of(handoff: HandoffLine) -> str:
    return f"attempt {handoff.attempt + 1} waits" if handoff.state == "offered" else f"attempt {handoff.attempt}"


def _entries_below(
    run: RunView, attempts: dict[str, list[RunView]], below: str
) -> list[tuple[RunView | HandoffLine | CallView | str, str, bool]]:
    """Return what stands below a run: its calls, then whom it handed work to, each in its order."""
    branches: list[RunView | HandoffLine] = []
    for child in run.children:
        begun = attempts.get(child.id, [])
        branches += begun
        if not begun or child.state in {"offered", "cancelled"}:
            branches.append(child)
    lead = below + ("│  " if branches else "   ")
    found: list[tuple[RunView | HandoffLine | CallView | str, str, bool]] = []
    if run.kept:
        found.append((f"{counted(run.kept, 'call')} kept from earlier attempts, not made again", lead, False))
    found += [(call, lead, False) for call in run.calls]
    return found + [(branch, below, branch is branches[-1]) for branch in branches]


def narrate_handoff(handoff: HandoffView) -> tuple[Line, ...]:
    """Return everything that is known of a handoff: task, chain, grant, attempts with their calls, what is open."""
    head = (
        Token(f" {short(handoff.id)}", Tone.QUIET),
        _DOT,
        state_token(handoff.state),
        *((_DOT, Token(_attempt_of(handoff))) if handoff.attempt else ()),
        _DOT,
        Token(f"handed off {moment(handoff.offered_at, seconds=True)}"),
    )
    lines = [line(name(handoff.to), head), *passage(handoff.task, "  ")]
    lines += _field("for", [_chain(handoff)])
    lines += _field("grant", _grants(handoff.grants))
    lines += _field("carries", _carried(handoff))
    for number, attempt in enumerate(handoff.attempts, 1):
        lines += _attempt(attempt, "attempts" if number == 1 else "", number)
    lines += _field("decided", [_decision(act) for act in handoff.acts])
    lines += _field("in doubt", _advice(handoff))
    if handoff.report is not None:
        lines += _field("report", _report(handoff.report))
    lines.append(line(Token(handoff.id, Tone.QUIET)))
    return tuple(lines)


def _field(label: str, rows: Iterable[Line]) -> list[Line]:
    """Return rows behind a label, which only the first one shows."""
    lines: list[Line] = []
    for row in rows:
        lead = f"{'' if lines else label:<{_LABEL_WIDTH}}"
        lines.append(Line(row.tokens, lead + row.lead, " " * _LABEL_WIDTH + row.rest))
    return lines


def _chain(handoff: HandoffView) -> Line:
    tokens = [name(handoff.to)]
    for hop in reversed(handoff.chain):
        tokens += [Token(" ← ", Tone.QUIET), *named(hop.agent, hop.run)]
    tokens += [Token(" ← ", Tone.QUIET), name(handoff.principal), Token(": "), quoted(handoff.intent)]
    return line(tokens)


def _grants(grants: Sequence[GrantView]) -> Iterator[Line]:
    if not grants:
        yield line("none: observed, nothing is blocked")
        return
    for grant in reversed(grants):
        tokens = [name(grant.agent), Token(" may "), _patterns(grant.may)]
        if grant.may_delegate:
            tokens += [Token(", may delegate "), _patterns(grant.may_delegate)]
        if grant.expires_at is not None:
            tokens.append(Token(f" · until {moment(grant.expires_at)}"))
        if grant.is_revoked:
            tokens += [_DOT, Token("revoked", Tone.BAD)]
        yield line(tokens)


def _patterns(patterns: Sequence[str]) -> Token:
    return Token(visible(", ".join(patterns)) or "nothing")


def _carried(handoff: HandoffView) -> Iterator[Line]:
    carried = ", ".join(counted(number, _ITEM_NAMES.get(kind, kind)) for kind, number in handoff.items.items())
    if carried:
        yield line(carried)
    for criterion in handoff.criteria:
        yield line("criterion: ", quoted(criterion, limit=None))


def _attempt(run: RunView, label: str, number: int) -> list[Line]:
    took = duration(_microseconds(run.started_at, run.ended_at or run.last_at))
    facts = [
        took,
        *([counted(len(run.calls), "call")] if run.calls else []),
        *([f"{run.kept} kept"] if run.kept else []),
    ]
    lead = f"{label:<{_LABEL_WIDTH}}{number:<3}"
    indent = " " * len(lead) + "   "
    lines = [line(run_head(run), Token(f"  {' · '.join(facts)}", Tone.QUIET), lead=lead)]
    lines += [narrate_call(call, lead=indent) for call in run.calls]
    for child in run.children:
        child_of = (*named(child.to, child.id), _GAP, state_token(child.state))
        lines.append(line("handed to ", child_of, _GAP, quoted(child.task), lead=indent))
    if run.error is not None:
        lines.append(line("ended by ", quoted(run.error, Tone.BAD), lead=indent))
    return lines


def _decision(act: ReceiptView) -> Line:
    return line(narrate_receipt(act).tokens, Token(f" · {moment(act.at, seconds=True)}", Tone.QUIET))


def _advice(handoff: HandoffView) -> Iterator[Line]:
    """Yield what waits for a decision, and how it is decided."""
    for call in handoff.in_doubt:
        yield line(call_tokens(call), Token(f" {short(call.id)}", Tone.QUIET))
    if not handoff.in_doubt:
        return
    each = short(handoff.in_doubt[0].id)
    if handoff.state in {"running", "failed"}:
        yield line("look whether it was done: then skip it, else repeat it")
        command = f"batonpass handoff retry {short(handoff.id)}"
        yield line(Token(f"{command} --skip {each}", Tone.ACCENT), lead="  ")
        yield line(Token(f"{command} --repeat {each}", Tone.ACCENT), lead="  ")
    elif handoff.state == "offered":
        yield line("the next attempt may not make it again, until a retry says --skip or --repeat")


def _report(report: Report) -> Iterator[Line]:
    if report.result:
        yield from passage(report.result, "")
    kinds = {
        "done": report.completed,
        "decided": report.decisions,
        "rejected": report.rejected_paths,
        "assumed": report.assumptions,
        "claims": report.claims,
        "open": report.open_questions,
    }
    for label, items in kinds.items():
        for item in items:
            why = getattr(item, "why", "")
            yield line(f"{label}: ", quoted(item.text, limit=None), *((": ", quoted(why, limit=None)) if why else ()))
    for part, why in report.none.items():
        yield line("none: ", name(part), ": ", quoted(why, limit=None))


def narrate_retry(before: HandoffView, after: HandoffView) -> tuple[Line, ...]:
    """Return what a retry did: the step, what is kept, what is still in doubt."""
    head = (*named(after.to, after.id), Token(": "), state_token(before.state))
    step = (Token(" -> "), state_token(after.state), Token(f", attempt {after.attempt + 1} by "), name(after.to))
    took = sum(call.took_us or 0 for call in after.kept)
    kept = f"kept {counted(len(after.kept), 'call')}" + (f" ({duration(took)})" if after.kept else "")
    doubts: list[Token] = []
    for call in after.in_doubt:
        doubts += [Token(", " if doubts else "; in doubt: ", Tone.WARN), *call_tokens(call)]
        doubts.append(Token(f" {short(call.id)}", Tone.QUIET))
    return (line(head, step), line(kept, doubts))
