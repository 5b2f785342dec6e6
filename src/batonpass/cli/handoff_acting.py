"""What a person does about a handoff: answer, approve, judge, try again, settle, withdraw."""

import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import click

from batonpass.accounts.account import Account, Act, CallSeen, read_account
from batonpass.audit.lookup import ending, get_handoff
from batonpass.cli.exits import NO
from batonpass.cli.handoff_facts import account_facts
from batonpass.cli.handoff_judged import verdict_line
from batonpass.cli.handoff_sheet import room, shorten
from batonpass.cli.handoff_showing import compose, kept_of, state_of
from batonpass.cli.opening import opened_relay, viewed
from batonpass.cli.options import Command, checked, json_option, ledger_option
from batonpass.cli.printing import paint, say, say_json, tell
from batonpass.errors import AmbiguousIdError, HandoffEndedError, NotFoundError
from batonpass.handoff import judging
from batonpass.handoff.handoff import LiveHandoff
from batonpass.handoff.retrying import Again
from batonpass.model.bodies import Settlement
from batonpass.model.ids import CallId, require_agent, require_principal
from batonpass.model.lifecycle import WAITING, Carrier, State
from batonpass.model.run import Handoff, RunState
from batonpass.relay import Relay

_OUTPUT_LINES: Final = 12
_JUDGEABLE: Final = frozenset({State.COMPLETED, State.VERIFIED, State.REFUTED})


@contextmanager
def _chosen(given: str) -> Iterator[tuple[Relay, LiveHandoff]]:
    """Open the ledger, and the handoff in it that is meant."""
    with opened_relay() as relay:
        with viewed(relay) as view:
            found = get_handoff(view, given)
        yield relay, relay.handoff(found.id)


def by_option(command: Command) -> Command:
    """Let a command be told who decides."""
    return click.option(
        "--by",
        metavar="PRINCIPAL",
        callback=checked(lambda given: require_principal("by", given)),
        default=lambda: f"user:{os.environ.get('USER') or 'unknown'}",
        show_default="user:$USER",
        help="Who decides; it is taken as said, and not proven.",
    )(command)


def reason_option(*, required: bool = True) -> Callable[[Command], Command]:
    """Let a command be told why."""
    return click.option("--reason", metavar="TEXT", required=required, help="Why; it is kept.")


def _account(relay: Relay, live: LiveHandoff) -> Account:
    with viewed(relay) as view:
        return read_account(view, view.get_handoff(live.id))


def _say_done(relay: Relay, live: LiveHandoff, what: str, *, as_json: bool) -> Account:
    """Say how a handoff stands now that somebody did something about it."""
    account = _account(relay, live)
    if as_json:
        say_json(account_facts(account))
    else:
        known = account.handoff
        say(f"{known.to} {ending(known.id)} · ", state_of(known.state), f" · {what}")
    return account


@click.command()
@click.argument("handoff", metavar="ID")
@click.argument("text")
@by_option
@json_option
@ledger_option
def answer(handoff: str, text: str, *, by: str, as_json: bool) -> None:
    """Answer what the receiver asked.

    The answer travels with the baton, as its next revision.
    """
    with _chosen(handoff) as (relay, live):
        live.answer(text, by=by)
        revision = live.baton().revision
        account = _say_done(relay, live, f"answered by {by} · revision {revision}", as_json=as_json)
    _tell_next(account)


@click.command()
@click.argument("handoff", metavar="ID")
@by_option
@reason_option(required=False)
@click.option("--yes", is_flag=True, help="Do not show it and ask.")
@json_option
@ledger_option
def approve(handoff: str, *, by: str, reason: str | None, yes: bool, as_json: bool) -> None:
    """Let a held handoff go on.

    On a terminal it is shown first; the digest of what was shown and how long it was looked at are kept. No key of an
    approver signs it, so it is recorded as unproven.
    """
    with _chosen(handoff) as (relay, live):
        shown: bytes | None = None
        looked_ms: int | None = None
        if not yes and not as_json and is_person() and live.state is State.HELD:
            shown, looked_ms = _show_and_ask(_account(relay, live))
        judging.approve(relay.desk, live.id, by=by, reason=reason, shown=shown, looked_ms=looked_ms)
        account = _say_done(relay, live, f"approved by {by} (unproven)", as_json=as_json)
    _tell_next(account)


@click.command()
@click.argument("handoff", metavar="ID")
@by_option
@reason_option()
@json_option
@ledger_option
def deny(handoff: str, *, by: str, reason: str, as_json: bool) -> None:
    """Do not let a held handoff go on."""
    with _chosen(handoff) as (relay, live):
        live.deny(by=by, reason=reason)
        _say_done(relay, live, f"denied by {by}", as_json=as_json)


@click.command()
@click.argument("handoff", metavar="ID")
@click.argument("command", metavar="[-- COMMAND…]", nargs=-1, type=click.UNPROCESSED)
@by_option
@click.option("--verdict", metavar="TEXT", help="Run nothing: say that it holds, and why.")
@click.option("--yes", is_flag=True, help="Do not ask before running a command that the offer names.")
@json_option
@ledger_option
def verify(handoff: str, command: tuple[str, ...], *, by: str, verdict: str | None, yes: bool, as_json: bool) -> None:
    """Check what was delivered.

    Exit code 0 of the command says that it holds. Without a command, the one is run that the offer names, here, in this
    directory; on a terminal it is asked first. Exits with 1 if the result does not hold. A result that has its verdict
    keeps it, and this one stands beside it.
    """
    if command and verdict is not None:
        raise click.UsageError("give a command or --verdict")
    with _chosen(handoff) as (relay, live):
        if (state := live.state) not in _JUDGEABLE:  # before a command runs for nothing
            raise HandoffEndedError(live.id, state)
        named = () if command or verdict is not None else live.baton().brief.verify_by
        if not named and not command and verdict is None:
            raise click.UsageError("the offer names no command: give one after --, or a --verdict")
        if named:
            tell("the offer names this command: ", paint(" ".join(named), bold=True))
            if not yes and is_person():
                click.confirm("Run it here?", abort=True, err=True)
        holds = live.verify(by=by, command=command or None, verdict=verdict)
        account = _account(relay, live)
    _say_verdict(account, as_json=as_json)
    if not holds:
        click.get_current_context().exit(NO)


@click.command()
@click.argument("handoff", metavar="ID")
@by_option
@reason_option()
@json_option
@ledger_option
def refute(handoff: str, *, by: str, reason: str, as_json: bool) -> None:
    """Say that what was delivered does not hold."""
    with _chosen(handoff) as (relay, live):
        live.refute(reason, by=by)
        account = _account(relay, live)
    _say_verdict(account, as_json=as_json)


@click.command()
@click.argument("handoff", metavar="ID")
@by_option
@reason_option()
@json_option
@ledger_option
def waive(handoff: str, *, by: str, reason: str, as_json: bool) -> None:
    """Accept a result that nobody verified."""
    with _chosen(handoff) as (relay, live):
        live.accept_unverified(reason, by=by)
        account = _account(relay, live)
    _say_verdict(account, as_json=as_json)


def settling_options(command: Command) -> Command:
    """Let a command decide about calls in doubt."""
    skip = click.option("--skip", metavar="CALL", multiple=True, help="Take this call in doubt as done.")
    repeat = click.option("--repeat", metavar="CALL", multiple=True, help="Make this call in doubt again.")
    return repeat(skip(command))


@click.command()
@click.argument("handoff", metavar="ID")
@by_option
@reason_option(required=False)
@settling_options
@json_option
@ledger_option
def retry(
    handoff: str, *, by: str, reason: str | None, repeat: tuple[str, ...], skip: tuple[str, ...], as_json: bool
) -> None:
    """Try again what failed, and nothing else.

    Also what was declined or refuted. What earlier attempts finished is kept and not done again. A CALL is the last
    characters of its id, or the name of its tool.
    """
    with _chosen(handoff) as (relay, live):
        doubts = _account(relay, live).doubts
        again = live.retry(by=by, reason=reason, repeat=_calls(doubts, repeat), skip=_calls(doubts, skip))
        account = _account(relay, live)
    _say_again(account, again, as_json=as_json)


@click.command()
@click.argument("handoff", metavar="ID")
@click.argument("agent", callback=checked(lambda given: require_agent("agent", given)))
@by_option
@reason_option(required=False)
@settling_options
@json_option
@ledger_option
def replace(
    handoff: str,
    agent: str,
    *,
    by: str,
    reason: str | None,
    repeat: tuple[str, ...],
    skip: tuple[str, ...],
    as_json: bool,
) -> None:
    """Let another agent try, with the same baton.

    What earlier attempts finished is kept, as for a retry.
    """
    with _chosen(handoff) as (relay, live):
        doubts = _account(relay, live).doubts
        again = live.replace(agent, by=by, reason=reason, repeat=_calls(doubts, repeat), skip=_calls(doubts, skip))
        account = _account(relay, live)
    _say_again(account, again, as_json=as_json)


@click.command()
@click.argument("handoff", metavar="ID")
@click.argument("call", metavar="CALL")
@click.option("--repeat", "settlement", flag_value=Settlement.REPEAT.value, help="Make it again.")
@click.option("--skip", "settlement", flag_value=Settlement.SKIP.value, help="Take it as done.")
@by_option
@reason_option(required=False)
@json_option
@ledger_option
def settle(handoff: str, call: str, *, settlement: str | None, by: str, reason: str | None, as_json: bool) -> None:
    """Decide about a call in doubt.

    Nobody knows whether it happened: find out, and say whether it is to be made again or taken as done.
        CALL is the last characters of its id, or the name of its tool.
    """
    if settlement is None:
        raise click.UsageError("say --repeat or --skip")
    with _chosen(handoff) as (relay, live):
        (meant,) = _calls(_account(relay, live).doubts, [call])
        live.settle(meant, Settlement(settlement), by=by, reason=reason)
        _say_done(relay, live, f"{settlement} {ending(meant)}: {by}", as_json=as_json)


@click.command()
@click.argument("handoff", metavar="ID")
@by_option
@reason_option()
@json_option
@ledger_option
def cancel(handoff: str, *, by: str, reason: str, as_json: bool) -> None:
    """Withdraw a handoff, and all that was handed off below it."""
    with _chosen(handoff) as (relay, live):
        live.cancel(by=by, reason=reason)
        _say_done(relay, live, f"withdrawn by {by}", as_json=as_json)


@click.command()
@click.argument("handoff", metavar="ID")
@by_option
@reason_option()
@json_option
@ledger_option
def decline(handoff: str, *, by: str, reason: str, as_json: bool) -> None:
    """Do not take a handoff, in its agent's place."""
    with _chosen(handoff) as (relay, live):
        live.decline(reason, by=by)
        _say_done(relay, live, f"declined by {by}", as_json=as_json)


COMMANDS: Final[tuple[click.Command, ...]] = (
    answer,
    approve,
    deny,
    verify,
    refute,
    waive,
    retry,
    replace,
    settle,
    cancel,
    decline,
)


def is_person() -> bool:
    """Return whether somebody could answer a question now."""
    return sys.stdin.isatty()


def _show_and_ask(account: Account) -> tuple[bytes, int]:
    """Show what is to be approved and ask; return exactly what was shown, and for how long."""
    lines = compose(account, columns=room())
    since = time.monotonic()
    for line in lines:
        say(line)
    click.confirm("Let it go on?", abort=True, err=True)
    plain = "".join(f"{click.unstyle(line)}\n" for line in lines)
    return plain.encode(), round((time.monotonic() - since) * 1000)


def _calls(doubts: Sequence[CallSeen], given: Sequence[str]) -> list[CallId]:
    return [_call(doubts, each) for each in given]


def _call(doubts: Sequence[CallSeen], given: str) -> CallId:
    wanted = given.strip().removeprefix("…")
    found = [call for call in doubts if wanted and (call.id.endswith(wanted.lower()) or call.tool == wanted)]
    if not found:
        raise NotFoundError("call in doubt", given)
    if len(found) > 1:
        lines = tuple(f"{ending(call.id, 6)} · {call.tool} · {call.at:%Y-%m-%d %H:%M:%S}Z" for call in found)
        raise AmbiguousIdError("call", given, lines)
    return found[0].id


def _say_verdict(account: Account, *, as_json: bool) -> None:
    act = account.verdicts[-1]
    if as_json:
        say_json(account_facts(account))
        return
    known = account.handoff
    say(f"{known.to} {ending(known.id)} · ", *verdict_line(act))
    _tell_output(act)


def _tell_output(act: Act) -> None:
    output = act.texts.get("output")
    if output is None or not output.words:
        return
    lines = output.words.rstrip("\n").split("\n")
    if len(lines) > _OUTPUT_LINES:
        tell(paint(f"  │ … {len(lines) - _OUTPUT_LINES:,} lines before", dim=True))
    for line in lines[-_OUTPUT_LINES:]:
        tell("  │ ", shorten(line, 2 * room()))


def _say_again(account: Account, again: Again, *, as_json: bool) -> None:
    known: Handoff = again.handoff
    if as_json:
        say_json(account_facts(account))
        return
    parts: list[Any] = [paint(f"{known.to} only", bold=True), f" · {kept_of(again.kept)}"]
    if doubts := account.doubts:
        names = ", ".join(dict.fromkeys(call.tool for call in doubts))
        parts += [" · ", paint(f"in doubt: {names}", "yellow"), " (repeat or skip?)"]
    say(*parts)
    for call in account.doubts:
        tell(f"  batonpass handoff settle {ending(known.id, 6)} {ending(call.id, 6)} --repeat (or --skip)")
    _tell_next(account)


def _tell_next(account: Account) -> None:
    """Say what happens next to a handoff that waits to be taken."""
    known = account.handoff
    if known.state not in WAITING.values():
        return
    if known.carrier is Carrier.WORKER:
        tell("  a worker will take it")
        return
    root = account.lineage[-1]
    if root.state is RunState.OPEN:
        tell(f'  it waits for its caller: go on with its root run, relay.resume("{root.id}"),')
    else:
        tell(f"  it waits for a caller, and its root run is {root.state}:")
    tell(f'  {"or take it" if root.state is RunState.OPEN else "take it"}, relay.handoff("{known.id}").run(…)')
