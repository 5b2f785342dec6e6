"""The commands with which a person acts on a handoff: answer, verify, retry, settle, cancel, endorse."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import click

from batonpass.accounts.handoff.account import Account, CallInWords, HandoffAct
from batonpass.audit.meant_ids import choose, get_handoff
from batonpass.audit.short_ids import ending
from batonpass.cli.handoff.chosen_handoff import JUDGEABLE, WAIVABLE, account_of, chosen, say_done, tell_next
from batonpass.cli.handoff.handoff_facts import account_facts
from batonpass.cli.handoff.handoff_screen import kept_of
from batonpass.cli.handoff.verdict_rows import verdict_line
from batonpass.cli.input.id_types import AGENT_NAME, HANDOFF_ID
from batonpass.cli.input.ledger_access import opened_relay, viewed
from batonpass.cli.input.options import (
    Command,
    by_option,
    checked,
    is_person,
    ledger_and_json,
    reason_option,
)
from batonpass.cli.output.exits import NO
from batonpass.cli.output.sheet import room, shorten
from batonpass.cli.output.terminal import paint, say, say_json, tell
from batonpass.cli.output.units import moment
from batonpass.errors import HandoffEndedError
from batonpass.handoff.taint.intake import find_sources
from batonpass.handoff.transfer.retry import NextAttempt
from batonpass.model.base.ids import CallId, require_agent
from batonpass.model.base.label import Source
from batonpass.model.bodies.body import Settlement

_OUTPUT_LINES: Final = 12


def _handoff_command(act: Callable[..., None]) -> click.Command:
    """Make a command about one handoff."""
    return click.command()(click.argument("handoff", metavar="ID", type=HANDOFF_ID)(act))


def _decision_options(*, reason: bool | None = None) -> Callable[[Command], Command]:
    """Add `--by`, `--json` and `--ledger`, and `--reason` if the command takes one."""

    def with_options(act: Command) -> Command:
        options = ledger_and_json(act)
        return by_option(options if reason is None else reason_option(required=reason)(options))

    return with_options


@_handoff_command
@click.argument("text")
@click.option(
    "--attach",
    metavar="FILE",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Let this file travel with the handoff; it replaces one of the same name.",
)
@_decision_options()
def answer(handoff: str, text: str, *, attach: tuple[Path, ...], by: str, as_json: bool) -> None:
    """Answer the receiver's question.

    The answer becomes part of the baton, as its next revision. An answer such as "dunno" does not settle a blocking
    question: the receiver asks again.
    """
    with chosen(handoff) as (relay, live):
        live.answer(text, by=by, files={path.name: path.read_bytes() for path in attach})
        revision = live.baton().revision
        account = say_done(relay, live, f"answered by {by} · revision {revision}", as_json=as_json)
    tell_next(account)


@_handoff_command
@click.argument("command", metavar="[-- COMMAND…]", nargs=-1, type=click.UNPROCESSED)
@click.option("--verdict", metavar="TEXT", help="Run nothing; record that the result is right, and why.")
@click.option("--yes", is_flag=True, help="Do not ask before running a command that the offer names.")
@_decision_options()
def verify(handoff: str, command: tuple[str, ...], *, by: str, verdict: str | None, yes: bool, as_json: bool) -> None:
    """Verify the result of a handoff with a command.

    The result is verified if the command exits with 0. Without a command, the one that the offer names is run in this
    directory; on a terminal you are asked first. Exits with 1 if the verification fails. A result that already has a
    verdict keeps it; the new verdict is added.
    """
    if command and verdict is not None:
        raise click.UsageError("give a command or --verdict")
    with chosen(handoff) as (relay, live):
        if (state := live.state()) not in JUDGEABLE:  # before a command runs for nothing
            raise HandoffEndedError(live.id, state)
        named = () if command or verdict is not None else live.baton().brief.verify_by
        if not named and not command and verdict is None:
            raise click.UsageError("the offer names no command: give one after --, or a --verdict")
        if named:
            tell("the offer names this command: ", paint(" ".join(named), bold=True))
            if not yes and is_person():
                click.confirm("Run it here?", abort=True, err=True)
        holds = live.verify(by=by, command=command or None, verdict=verdict)
        account = account_of(relay, live)
    _say_verdict(account, as_json=as_json)
    if not holds:
        click.get_current_context().exit(NO)


@_handoff_command
@_decision_options(reason=True)
def refute(handoff: str, *, by: str, reason: str, as_json: bool) -> None:
    """Record that the result is wrong."""
    with chosen(handoff) as (relay, live):
        live.refute(reason, by=by)
        account = account_of(relay, live)
    _say_verdict(account, as_json=as_json)


@_handoff_command
@click.option("--check", metavar="CODE", help="The problem, as `batonpass handoff check` names it.")
@_decision_options(reason=True)
def waive(handoff: str, *, check: str | None, by: str, reason: str, as_json: bool) -> None:
    """Accept an unverified result, or a baton with a problem.

    Before the work has begun, the problem is waived that the receiver asked about, or the one that --check names. The
    agent that is to do the work cannot waive it.
    """
    with chosen(handoff) as (relay, live):
        if live.state() in WAIVABLE or check is not None:
            live.waive(reason, check=check, by=by)
            account = say_done(relay, live, f"waived by {by}", as_json=as_json)
            tell_next(account)
            return
        live.accept_unverified(reason, by=by)
        account = account_of(relay, live)
    _say_verdict(account, as_json=as_json)


def settling_options(command: Command) -> Command:
    """Add `--repeat` and `--skip` for calls in doubt."""
    skip = click.option("--skip", metavar="CALL", multiple=True, help="Treat this call in doubt as done.")
    repeat = click.option("--repeat", metavar="CALL", multiple=True, help="Make this call in doubt again.")
    return repeat(skip(command))


def inputs_options(command: Command) -> Command:
    """Add the options for a handoff whose inputs no longer stand."""
    same = click.option("--same", "inputs", flag_value="same", help="Keep the inputs of the offer.")
    fresh = click.option(
        "--fresh",
        "inputs",
        flag_value="fresh",
        help="Use the current inputs, and keep no call that read the old ones.",
    )
    return same(fresh(command))


@_handoff_command
@settling_options
@inputs_options
@_decision_options(reason=False)
def retry(
    handoff: str,
    *,
    by: str,
    reason: str | None,
    repeat: tuple[str, ...],
    skip: tuple[str, ...],
    inputs: str | None,
    as_json: bool,
) -> None:
    """Retry one handoff. It failed, was declined or was refuted; nothing else is repeated.

    Calls that earlier attempts finished are kept and not made again. A CALL is the last characters of its id, or the
    name of its tool. If results that the handoff was offered with were refuted since, nothing is done until you say
    --same or --fresh.
    """
    with chosen(handoff) as (relay, live):
        doubts = account_of(relay, live).doubts
        settled = {"repeat": _calls(doubts, repeat), "skip": _calls(doubts, skip)}
        again = live.retry(by=by, reason=reason, inputs=inputs, **settled)
        account = account_of(relay, live)
    _say_again(account, again, as_json=as_json)


@_handoff_command
@click.argument("agent", type=AGENT_NAME, callback=checked(lambda given: require_agent("agent", given)))
@settling_options
@inputs_options
@_decision_options(reason=False)
def replace(
    handoff: str,
    agent: str,
    *,
    by: str,
    reason: str | None,
    repeat: tuple[str, ...],
    skip: tuple[str, ...],
    inputs: str | None,
    as_json: bool,
) -> None:
    """Give a handoff to another agent, with the same baton.

    Calls that earlier attempts finished are kept, as for a retry.
    """
    with chosen(handoff) as (relay, live):
        doubts = account_of(relay, live).doubts
        settled = {"repeat": _calls(doubts, repeat), "skip": _calls(doubts, skip)}
        again = live.replace(agent, by=by, reason=reason, inputs=inputs, **settled)
        account = account_of(relay, live)
    _say_again(account, again, as_json=as_json)


@_handoff_command
@click.argument("call", metavar="CALL")
@click.option("--repeat", "settlement", flag_value=Settlement.REPEAT.value, help="Make the call again.")
@click.option("--skip", "settlement", flag_value=Settlement.SKIP.value, help="Treat the call as done.")
@click.option("--late", "settlement", flag_value=Settlement.LATE.value, help="Take the outcome that came late.")
@_decision_options(reason=False)
def settle(handoff: str, call: str, *, settlement: str | None, by: str, reason: str | None, as_json: bool) -> None:
    """Settle a call in doubt. Repeat it, skip it, or take the outcome that came late.

    It was requested and has no recorded outcome. Find out whether it happened, then decide. CALL is the last characters
    of its id, or the name of its tool.
    """
    if settlement is None:
        raise click.UsageError("give --repeat, --skip or --late")
    with chosen(handoff) as (relay, live):
        (meant,) = _calls(account_of(relay, live).doubts, [call])
        live.settle(meant, Settlement(settlement), by=by, reason=reason)
        say_done(relay, live, f"{settlement} {ending(meant)}: {by}", as_json=as_json)


@_handoff_command
@_decision_options(reason=True)
def cancel(handoff: str, *, by: str, reason: str, as_json: bool) -> None:
    """Cancel a handoff and every handoff below it."""
    with chosen(handoff) as (relay, live):
        live.cancel(by=by, reason=reason)
        say_done(relay, live, f"withdrawn by {by}", as_json=as_json)


@_handoff_command
@_decision_options(reason=True)
def decline(handoff: str, *, by: str, reason: str, as_json: bool) -> None:
    """Decline a handoff on behalf of its agent."""
    with chosen(handoff) as (relay, live):
        live.decline(reason, by=by)
        say_done(relay, live, f"declined by {by}", as_json=as_json)


def _calls(doubts: Sequence[CallInWords], given: Sequence[str]) -> list[CallId]:
    return [_call(doubts, each) for each in given]


def _call(doubts: Sequence[CallInWords], given: str) -> CallId:
    calls = [call.record for call in doubts]
    return choose(
        given,
        "call in doubt",
        named=lambda tool: (call for call in calls if call.tool == tool),
        ended=lambda end: (call for call in calls if call.id.endswith(end)),
        lines=lambda found: (f"{ending(call.id, 6)} · call {call.tool} · {moment(call.at)}" for call in found),
    ).id


def _say_verdict(account: Account, *, as_json: bool) -> None:
    act = account.verdicts[-1]
    if as_json:
        say_json(account_facts(account))
        return
    known = account.handoff
    say(f"{known.to} {ending(known.id)} · ", *verdict_line(act))
    _tell_output(act)


def _tell_output(act: HandoffAct) -> None:
    output = act.texts.get("output")
    if output is None or not output.words:
        return
    lines = output.words.rstrip("\n").split("\n")
    if len(lines) > _OUTPUT_LINES:
        tell(paint(f"  │ … {len(lines) - _OUTPUT_LINES:,} lines before", dim=True))
    for line in lines[-_OUTPUT_LINES:]:
        tell("  │ ", shorten(line, 2 * room()))


def _say_again(account: Account, again: NextAttempt, *, as_json: bool) -> None:
    known = again.handoff
    if as_json:
        say_json(account_facts(account))
        return
    parts: list[Any] = [paint(f"{known.to} only", bold=True), f" · {kept_of(again.kept)}"]
    if doubts := account.doubts:
        names = ", ".join(dict.fromkeys(call.record.tool for call in doubts))
        parts += [" · ", paint(f"in doubt: {names}", "yellow"), " (repeat or skip?)"]
    say(*parts)
    for call in account.doubts:
        tell(f"  batonpass handoff settle {ending(known.id, 6)} {ending(call.record.id, 6)} --repeat (or --skip)")
    tell_next(account)


@_handoff_command
@click.argument("source", metavar="SOURCE")
@_decision_options(reason=True)
def endorse(handoff: str, source: str, *, by: str, reason: str, as_json: bool) -> None:
    """Vouch for content from outside. It no longer taints this handoff.

    SOURCE is the end of the id of the call that returned the content, or of the item: `batonpass taint ID` lists them.
    Other sources still taint. Only a person may endorse. It takes effect from now on, in every attempt at the handoff.
    """
    with opened_relay() as relay:
        with viewed(relay.store) as view:
            found = get_handoff(view, handoff)
            standing = tuple(find_sources(view, found.id))
        meant = _meant(standing, source)
        relay.handoff(found.id).endorse(meant, by=by, reason=reason)
        left = tuple(one for one in standing if one != meant)
    if as_json:
        say_json({"handoff": found.id, "endorsed": meant, "by": by, "left": list(left)})
        return
    say(f"{found.to} {ending(found.id)} · {ending(meant)} endorsed by {by} (unproven)")
    if left:
        tell(f"  still from outside: {', '.join(ending(one) for one in left)}")


def _meant(standing: tuple[Source, ...], given: str) -> Source:
    return choose(
        given,
        "content from outside that taints it",
        named=lambda _: (),
        ended=lambda end: (source for source in standing if source.endswith(end)),
        lines=lambda found: (f"{ending(source, 8)} · {source.partition('_')[0]}" for source in found),
    )
