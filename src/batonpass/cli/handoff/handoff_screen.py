"""One handoff on one screen: agent, principal, exact task, grant, outcome, and open questions and work."""

import json
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from typing import Final

from batonpass.accounts.handoff.account import Account, Attempt, CallInWords, Child, HandoffAct
from batonpass.accounts.trail.first_lines import message_of
from batonpass.accounts.unknown_outcome import unknown_in_brief
from batonpass.accounts.why.why_grant import revoked_words
from batonpass.audit.short_ids import ending
from batonpass.cli.handoff.carriage_proof import fidelity_words
from batonpass.cli.handoff.scope_use import enough_rows, find_beyond, permit_of, unused_rows
from batonpass.cli.handoff.verdict_rows import approval_rows, decision_rows, verdict_rows
from batonpass.cli.output.list_rows import handoff_state_of, name_of, took
from batonpass.cli.output.sheet import Parts, Sheet, quoted, shorten, words_of
from batonpass.cli.output.terminal import Painted, paint
from batonpass.cli.output.units import counted, elapsed, moment
from batonpass.errors import InvalidValueError
from batonpass.handoff.history.past_calls import Resumption
from batonpass.model.base.content_names import REPORT, UNRECORDED, UNTOUCHED
from batonpass.model.base.lifecycle import Carrier, State
from batonpass.model.base.visible import visible
from batonpass.model.baton.contradiction import find_in_baton
from batonpass.model.bodies.body import HandoffAnswered, HandoffAsked, Part
from batonpass.model.ledger.run import RunState
from batonpass.records.call import CallRecord
from batonpass.records.grant import WOULD_DENY
from batonpass.records.handoff import OPEN
from batonpass.records.unexplained import LISTED, read_unexplained

_SHOWN: Final = 3


def effect_rows(account: Account) -> Iterator[Parts]:
    """Yield the declared effects of its calls, each once, and the changes that no call explains."""
    told = Counter(str(effect) for call in account.calls for effect in call.effects)
    for words, count in told.items():
        yield (shorten(words, 70), f" ×{count}" if count > 1 else "")
    for attempt in account.attempts:
        text = attempt.texts.get(LISTED)
        if text is not None:
            yield (paint("unexplained: ", "red"), _unexplained(text.body))


def _unexplained(body: bytes | None) -> str:
    try:
        count, found = (0, ()) if body is None else read_unexplained(body)
    except InvalidValueError:
        count, found = 0, ()
    if not found:
        return "the list of files is no longer here"
    names = ", ".join(visible(one.path) for one in found[:_SHOWN])
    more = f" and {count - _SHOWN} more" if count > _SHOWN else ""
    return f"{shorten(names, 60)}{more}: no recorded call changed {'it' if count == 1 else counted(count, 'file')}"


_DIFFERENCES: Final = {
    UNTOUCHED: "should have changed, and no call changed it",
    UNRECORDED: "is said to be made, and no recorded call made it",
}
SCREEN: Final = 45

_CAPS: Final = (6, 5, 4, 3, 2, 1)
_MILLION: Final = 1_000_000
_CHAIN: Final = 5
_NOUNS: Final = {
    Part.INTENT: "statement",
    Part.REJECTED: "rejected path",
    Part.COMPLETED: "completed work item",
    Part.UNTRUSTED: "untrusted artifact",
}
_GONE: Final = "the words are no longer here"
_RUN_COLOURS: Final = {RunState.OPEN: "cyan", RunState.COMPLETED: "green", RunState.FAILED: "red"}


def compose(account: Account, *, columns: int) -> list[Painted]:
    """Return one screen about a handoff. If it would not fit, every section is shortened, and says so."""
    lines: list[Painted] = []
    for most in _CAPS:
        lines = _sheet(account, Sheet(columns, most))
        if len(lines) <= SCREEN:
            break
    return lines


def _sheet(account: Account, sheet: Sheet) -> list[Painted]:
    handoff = account.handoff
    attempt = f" · attempt {handoff.attempt}" if handoff.attempt else ""
    sheet.head(
        paint(f"{handoff.to} {ending(handoff.id)}", bold=True),
        " · ",
        handoff_state_of(handoff.state),
        f"{attempt} · handed off {moment(account.offered.at)}",
        "" if account.mark is None else paint(f" · {account.mark}", "yellow"),
    )
    sheet.text("", words_of(account.task), most=max(3, 2 * sheet.most - 2))
    _say_chain(account, sheet)
    sheet.row("how", " · ".join(_how(account)))
    attempts = [_attempt_row(attempt) for attempt in account.attempts]
    sheet.rows("runs", attempts or [("none yet: nobody has taken it",)], newest=True)
    _say_scope(account, sheet)
    sheet.rows("credential", list(_credentials(account)))
    sheet.row("reasoning", *_reasoning(account))
    sheet.rows("policy", list(_policy(account)))
    sheet.rows("approval", list(approval_rows(account)))
    sheet.rows("questions", list(_questions(account)), newest=True)
    sheet.packed("carries", _carried(account) or ["nothing but the task"])
    if account.carriage is not None:
        sheet.row("fidelity", fidelity_words(account.carriage))
    sheet.rows("refuted", list(_fallen(account)))
    disputed = [(paint(f"{one.subject}: ", "red"), one.sentence) for one in find_in_baton(account.offer.baton)]
    sheet.rows("disputed", disputed)
    if (replaced := account.offer.initiated.replaces) is not None:
        sheet.row("replaces", f"{ending(replaced)}, which was offered with inputs that have changed since")
    if missing := account.offer.initiated.missing:
        sheet.row("missing", paint(", ".join(missing), "yellow"))
    if taint := account.offer.taint:
        named = f"its sender had read {', '.join(map(ending, taint))}: `batonpass taint {ending(handoff.id)}`"
        sheet.row("outside", paint(named, "yellow"))
    if own := account.brought:
        told = f"its result is based on {', '.join(map(ending, own))}: `batonpass taint {ending(handoff.id)}`"
        sheet.row("" if taint else "outside", paint(told, "yellow"))
    sheet.rows("decided", list(decision_rows(account)), newest=True)
    sheet.rows("earlier", list(_earlier(account)))
    sheet.rows("children", [_child_row(child) for child in account.children])
    _say_close(account, sheet)
    sheet.rows("effects", list(effect_rows(account)))
    sheet.rows("late", list(_late(account)))
    opened = list(_open(account))
    sheet.rows("open", opened or [(paint("nothing", "green"),)])
    sheet.head(paint(f"{handoff.id} · offer {ending(account.offered.id, 6)}", dim=True))
    return sheet.lines


def _say_chain(account: Account, sheet: Sheet) -> None:
    names = [name_of(run) for run in account.lineage]
    if len(names) > _CHAIN:
        names = [*names[: _CHAIN - 2], f"({len(names) - _CHAIN + 1} more)", names[-1]]
    words = "unknown" if account.intent is None else account.intent.first_line
    chain = f"{account.handoff.to} ← {' ← '.join(names)} ← "
    human = (paint(account.parent.principal, bold=True), f": {words}")
    if sheet.has_room(chain, *human):
        sheet.row("for", chain, *human)
    else:
        sheet.row("for", chain)
        sheet.row("", *human)


def _how(account: Account) -> Iterator[str]:
    brief = account.offer.baton.brief
    yield "carried by its caller" if account.handoff.carrier is Carrier.CALLER else "carried by a worker"
    yield str(account.offer.initiated.relation)
    yield str(account.mode)
    if account.handoff.deadline is not None:
        yield f"until {moment(account.handoff.deadline)}"
    if brief.serves is not None:
        yield f"serves {quoted(brief.serves, 40)}"


def _attempt_row(attempt: Attempt) -> Parts:
    run = attempt.run
    state = paint(run.state, _RUN_COLOURS.get(run.state, "magenta"))
    made = [call for call in attempt.calls if call.record.outcome != "denied"]
    facts = [took(run), counted(len(made), "call")]
    if attempt.closed is not None and attempt.closed.kept:
        facts.append(f"{attempt.closed.kept} kept")
    if error := getattr(attempt.closed, "error", None):
        facts.append(str(error))
    return (f"{run.attempt}  {name_of(run)} · ", state, f" · {' · '.join(filter(None, facts))}")


def _say_scope(account: Account, sheet: Sheet) -> None:
    held, asked = account.inherited, account.granted
    by_terms = getattr(account.offered.body, "terms", None) is not None
    if held:
        sheet.row("inherited", shorten(", ".join(held)))
    else:
        sheet.row(
            "inherited", _GONE if held is None else f"no grant: {name_of(account.parent)} is {account.offered.mode}"
        )
    if asked or by_terms:
        given = ", ".join(asked or ()) or "nothing to use itself"
        sheet.row("granted", f"{shorten(given, 60)} ({'granted' if by_terms else 'asked for'} by {account.given_by})")
    else:
        sheet.row("granted", _GONE if asked is None else "as inherited: nothing was asked for")
    if (revoked := account.revoked) is not None:
        sheet.row("revoked", paint(revoked_words(revoked), "red"), f" · {moment(revoked.at)}")
    sheet.rows("used", list(_used(account)) or [("nothing",)])
    sheet.rows("unused", list(unused_rows(account.used)))
    sheet.rows("enough", list(enough_rows(account.used)))


def _used(account: Account) -> Iterator[Parts]:
    made = [call for call in account.calls if call.record.outcome != "denied"]
    ways = [(call.record.tool, what_of(call), _outcome(call.record), permit_of(call)) for call in made]
    for (tool, what, outcome, permit), count in Counter(ways).items():
        times = f" ×{count}" if count > 1 else ""
        colour = "red" if outcome == "failed" else "yellow"
        yield (f"{tool} {what}".rstrip(), times, paint("" if outcome is None else f" · {outcome}", colour), permit)


def _outcome(call: CallRecord) -> str | None:
    """Return the outcome of a call; None if it completed."""
    return None if call.outcome == "completed" else call.outcome or unknown_in_brief(call)


def what_of(call: CallInWords) -> str:
    """Return the target of a call if its tool declares one, otherwise its arguments."""
    if call.target is not None:
        return shorten(words_of(call.target), 60)
    return arguments_of(call)


def arguments_of(call: CallInWords) -> str:
    """Return the arguments of a call on one line."""
    if call.arguments is None:
        return ""
    if call.arguments.words is None:
        return words_of(call.arguments)
    try:
        read = json.loads(call.arguments.words)
    except (ValueError, RecursionError):
        return shorten(call.arguments.words, 60)
    given = read.get("arguments", read) if isinstance(read, dict) else read
    if not isinstance(given, dict):
        return shorten(json.dumps(given, ensure_ascii=False), 60)
    return shorten(" ".join(f"{name}={_plain(value)}" for name, value in given.items()), 60)


def _plain(value: object) -> str:
    return shorten(value, 40) if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _credentials(account: Account) -> Iterator[Parts]:
    latest = account.latest
    if latest is None:
        yield ("none yet: each run gets its own key when it starts",)
        return
    keys = ", ".join(key[:16] for key in latest.keys)
    relays = ", ".join(f"{ending(relay)} with key {key[:16]}" for relay, key in latest.recorders)
    yield (f"run key {keys} · recorded by relay {relays}",)
    if not account.acted:
        yield ("for tools: none recorded",)
    own = {attempt.run.id for attempt in account.attempts}
    for acted in account.acted:
        who = "erased" if acted.identity is None else f"{acted.name} as {shorten(acted.identity, 60)}"
        yield (f"for tools: {who} · {counted(sum(acted.calls[run] for run in own & acted.calls.keys()), 'call')}",)
        if acted.is_shared:
            others = ", ".join(ending(run) for run in acted.calls if run not in own) or "its own attempts"
            yield (
                paint("shared: ", "yellow"),
                f"{others} used the same one; from outside nobody can tell them apart",
            )


def _reasoning(account: Account) -> Iterator[str]:
    brief = account.offer.baton.brief
    if brief.reasoning is not None:
        known = next((item for item in account.offer.baton.items if item.id == brief.reasoning), None)
        name = getattr(None if known is None else known.value, "name", None)
        yield f"{quoted(name, 40)} · " if isinstance(name, str) else ""
        yield str(brief.reasoning)
    if brief.rationale is not None:
        yield f"{' · ' if brief.reasoning is not None else ''}because {quoted(brief.rationale)}"
    given = brief.reasoning is not None or brief.rationale is not None
    if (pointed := account.reasoning) is not None:
        yield f"{' · ' if given else ''}{pointed.sentence}"
    elif not given:
        yield _GONE if account.granted is None else "none given"


def _policy(account: Account) -> Iterator[Parts]:
    yield (_narrowed(account),)
    if WOULD_DENY in account.offer.initiated.flags:
        yield (paint(f"offer: {WOULD_DENY}: ", "yellow"), shorten(words_of(account.refusal)))
    changing = [call for call in account.calls if not call.record.reads and call.record.is_made]
    if changing:
        undoable = sum(call.record.reversible for call in changing)
        yield (f"reversible: {undoable} of {counted(len(changing), 'changing call')}",)
    acceptance = None if account.latest is None else account.latest.acceptance
    if acceptance is not None:
        found = ", ".join(acceptance.problems) or "nothing wrong"
        asks = paint(" · would have asked", "yellow") if acceptance.would_ask else ""
        yield (f"validation found {found}", asks)
    flagged = Counter((call.record.tool, flag) for call in account.calls for flag in call.record.flags)
    for (tool, flag), count in flagged.items():
        yield (paint(f"{tool}: {flag}", "yellow"), f" ×{count}" if count > 1 else "")
    for flag in () if account.latest is None or account.latest.closed is None else account.latest.closed.flags:
        yield (paint(f"result: {flag}", "yellow"),)
    denied = Counter((call.record.tool, call.record.why) for call in account.calls if call.record.outcome == "denied")
    for (tool, rule), count in denied.items():
        yield (paint(f"denied: {tool}: {rule}", "red"), f" ×{count}" if count > 1 else "")


def _narrowed(account: Account) -> str:
    who = account.parent.agent
    if account.granted is None or account.inherited is None:
        return "scope: the request is no longer here"
    asked, held = set(account.granted), set(account.inherited)
    if not asked:
        return f"scope: not narrowed by {who}"
    if not held:
        return f"scope: narrower than {who}'s, which is not limited"
    beyond = find_beyond(account.inherited, account.granted)
    if not beyond:
        return f"scope: {'the same as' if asked == held else 'narrower than'} {who}'s"
    return f"scope: {shorten(', '.join(beyond), 60)} is not among {who}'s"


def _questions(account: Account) -> Iterator[Parts]:
    asked: HandoffAct | None = None
    for act in account.acts:
        match act.receipt.body:
            case HandoffAsked():
                asked = act
            case HandoffAnswered() as body if asked is not None:
                answer = quoted(words_of(act.texts.get("answer")), 60)
                yield (f"{_question(asked)} → {answer} · {body.by} · revision {body.revision}",)
                asked = None
    if asked is not None:
        yield (_question(asked), " → ", paint("no answer yet", "yellow"))


def _question(act: HandoffAct) -> str:
    return quoted(words_of(act.texts.get("question")))


def _carried(account: Account) -> list[str]:
    counts = Counter(item.part for item in account.offer.initiated.carries)
    return [counted(count, _NOUNS.get(part, part)) for part, count in counts.items()]


def _fallen(account: Account) -> Iterator[Parts]:
    """Yield the carried items that no longer stand, one line for each verdict."""
    for sentence, count in Counter(known.sentence for known in account.offer.baton.fates.values()).items():
        yield (paint(f"{counted(count, 'item')} {shorten(sentence, 100)}", "yellow"),)


def kept_of(kept: Resumption) -> str:
    """Return a summary of the finished calls of earlier attempts."""
    cost = f", cost {Decimal(kept.cost) / _MILLION:f}" if kept.cost else ""
    return f"kept {counted(len(kept.finished), 'call')}, {elapsed(kept.kept_for)}{cost}"


def _earlier(account: Account) -> Iterator[Parts]:
    if account.earlier.attempts:
        yield (f"{counted(account.earlier.attempts, 'attempt')}: {kept_of(account.earlier)}",)
    for call in account.doubts:
        yield (paint(f"in doubt: {call.record.tool} {ending(call.record.id)}", "yellow"), f" {arguments_of(call)}")


def _child_row(child: Child) -> Parts:
    known = child.handoff
    task = "unknown" if child.task is None else child.task.first_line
    return (f"{known.to} {ending(known.id)} · ", handoff_state_of(known.state), f" · {task}")


def _say_close(account: Account, sheet: Sheet) -> None:
    latest = account.latest
    if latest is not None and latest.closed is not None:
        effects = [
            call for call in latest.calls if call.record.id in latest.closed.effects and not call.record.in_doubt
        ]
        names = ", ".join(dict.fromkeys(f"{call.record.tool} {what_of(call)}".rstrip() for call in effects))
        doubts = ", ".join(dict.fromkeys(f"{call.record.tool} {what_of(call)}".rstrip() for call in account.doubts))
        changed = f"effects: {shorten(names, 70)}" if effects else "changed nothing"
        if doubts:
            # It is unknown whether those changed something, so "changed nothing" would be a guess.
            known = changed if effects else "nothing is known to have changed"
            changed = f"{known}; in doubt: {shorten(doubts, 70)}"
        ended = "" if latest.run.ended_at is None else f" · {moment(latest.run.ended_at)}"
        state = paint(latest.run.state, _RUN_COLOURS.get(latest.run.state, "magenta"))
        sheet.row("outcome", state, f"{ended} · {changed}")
        if (message := latest.texts.get("message")) is not None:
            sheet.row("error", quoted(message_of(words_of(message))))
    if (text := None if latest is None else latest.texts.get(REPORT)) is not None:
        report = account.report
        said = words_of(text) if report is None else report.result or report.value or "(no result)"
        sheet.text("report", said, most=max(2, sheet.most - 1))
    sheet.rows("checked", list(verdict_rows(account)), newest=True)


def _late(account: Account) -> Iterator[Parts]:
    for call in (each.record for each in account.calls):
        if call.late is not None:
            outcome = "completed" if call.late.completed else "failed"
            yield (f"{call.tool} {ending(call.id)} {outcome} after its attempt was over: evidence, and no result",)


def _open(account: Account) -> Iterator[Parts]:
    if account.handoff.state is State.HELD:
        yield (paint("held: ", "yellow"), "somebody has to approve or deny it")
    if account.offer.open_question is not None:
        yield (paint("needs an answer: ", "yellow"), quoted(account.offer.open_question))
    for question, carried in account.questions:
        mark = paint("blocking: ", "red") if question.blocking else "question: "
        yield (mark, quoted(question.text), paint(" (open when it was handed off)", dim=True) if carried else "")
    yield from _unknown(account)
    if account.is_unverified:
        yield (paint("unverified: ", "yellow"), "nobody has verified or waived this result")
    for known in account.unverified:
        yield (paint("built on: ", "yellow"), f"{known.to} {ending(known.id)}, which was unverified then")
    for child in account.children:
        if child.handoff.state in OPEN:
            yield (paint("child: ", "yellow"), *_child_row(child))
    if account.offer.initiated.missing:
        yield (paint("missing: ", "yellow"), f"{counted(len(account.offer.initiated.missing), 'part')} of the baton")


def _unknown(account: Account) -> Iterator[Parts]:
    """Yield the calls without an outcome, and how to settle them; and expected changes that no receipt shows."""
    for call in account.doubts:
        how = f"`batonpass handoff settle {ending(account.handoff.id)} {ending(call.record.id)}`"
        yield (paint("in doubt: ", "yellow"), f"{call.record.tool} {ending(call.record.id)}: repeat or skip? {how}")
    for call in account.waiting:
        yield (paint("no outcome yet: ", "yellow"), f"{call.record.tool} {ending(call.record.id)}")
    for name, words in _DIFFERENCES.items():
        if found := account.listed(name):
            yield (paint(f"{name}: ", "yellow"), f"{shorten(', '.join(map(visible, found)), 60)} {words}")
