"""`batonpass grant`: who may do what, by whose word, and until when."""

from datetime import datetime
from pathlib import Path

import click

from batonpass.accounts.grants import Held, find_widened, read_chain, suggest
from batonpass.cli.opening import opened_relay, opened_view
from batonpass.cli.options import json_option, ledger_option, read_lines, read_moment
from batonpass.cli.printing import paint, say, say_json, tell
from batonpass.errors import GrantChainError
from batonpass.grants.verifier import Verifier
from batonpass.handoff.revoking import find_account
from batonpass.model.grant_toml import write_grants
from batonpass.model.ids import AgentId
from batonpass.model.limits import UNLIMITED
from batonpass.model.permit import spell_time


@click.group()
def command() -> None:
    """Show, verify, revoke and suggest grants: what a run may use, and what it may pass on."""


@command.command()
@click.argument("of", metavar="ID")
@json_option
@ledger_option
def show(of: str, *, as_json: bool) -> None:
    """Show the grant of a handoff or a run, and those from which it hangs, from the first on.

    ID is the last characters of a handoff or a run, `last`, or an agent's name.
    """
    with opened_view() as view:
        chain = read_chain(view, find_account(view, of))
    if as_json:
        say_json([_facts(held) for held in chain])
        return
    for number, held in enumerate(chain):
        terms = held.terms.said
        by = terms.principal if number == 0 else chain[number - 1].terms.said.agent
        say(paint(f"{terms.agent}", bold=True), f" · granted by {by} · {spell_time(terms.at)}", _mark(held))
        say("  may           ", ", ".join(terms.may.lines) or "use nothing")
        say("  may delegate  ", ", ".join(terms.may_delegate.lines) or "nothing")
        if terms.limits != UNLIMITED:
            used = ", ".join(f"{charged.used} {charged.unit}" for charged in held.used) or "nothing"
            say("  limits        ", f"{terms.limits}; used: {used}")
        if terms.until is not None:
            say("  until         ", spell_time(terms.until))


@command.command()
@click.argument("of", metavar="ID", required=False)
@click.option("--token", type=click.Path(path_type=Path), metavar="FILE", help="Verify a chain that somebody shows.")
@ledger_option
def verify(of: str | None, token: Path | None) -> None:
    """Verify a grant: who signed it, that it hangs together, and that nobody gave more than they had.

    Of a token, its chain is verified with nothing but the ledger's root key, as a tool server does.
    """
    if (of is None) == (token is None):
        raise click.UsageError("say either ID or --token FILE")
    with opened_relay() as relay, relay.store.view() as view:
        if token is not None:
            text = "".join(read_lines(token)).strip().partition(".")[0]
            proven = Verifier(view.info().root_key, audience="batonpass grant verify", revocations=False)
            terms = proven.verify_chain(text).terms
            say(f"1 to 7  {' → '.join(one.agent for one in terms)} on behalf of {terms[0].principal}: it proves that")
            return
        chain = read_chain(view, find_account(view, str(of)))
    say(f"1 to 4  {' → '.join(held.terms.said.agent for held in chain)}: signed by relays of this ledger, and linked")
    if widened := next(find_widened(chain), None):
        raise GrantChainError(widened)
    say("5       every hop holds at most what the one before may delegate")
    for held in chain:
        if held.revoked:
            say("8       ", paint(f"what {held.terms.said.agent} was granted is revoked", "red"))


@command.command()
@click.argument("of", metavar="ID", required=False)
@click.option("--by", metavar="WHO", help="Who decides this, such as user:ana.")
@click.option("--reason", metavar="TEXT", help="Why; it is kept.")
@click.option("--list", "as_list", is_flag=True, help="Print the signed list of all that is revoked, for tool servers.")
@ledger_option
def revoke(of: str | None, by: str | None, reason: str | None, *, as_list: bool) -> None:
    """Let what was granted to a handoff or a run, and all that hangs from it, hold no more.

    It takes effect at the next call, in whichever process. `--list` needs the root key.
    """
    if as_list is (of is not None):
        raise click.UsageError("say either ID or --list")
    with opened_relay() as relay:
        if of is None:
            say(relay.revocations())
            return
        if by is None or reason is None:
            raise click.UsageError("say who decides it with --by, and why with --reason")
        relay.revoke_grant(of, by=by, reason=reason)
    tell("revoked: no call under it, or under what hangs from it, is made from now on")


@command.command("suggest")
@click.option("--since", callback=read_moment, metavar="TIME", help="Only what happened since, as 7d or a date.")
@click.option("--agent", metavar="NAME", help="Only for this agent.")
@ledger_option
def suggest_(since: datetime | None, agent: str | None) -> None:
    """Print, as TOML, the least grants that cover the calls which were recorded, and how many each covers."""
    with opened_view() as view:
        found = suggest(view, since=since, agent=None if agent is None else AgentId(agent))
    if not found:
        tell("no calls are recorded there")
        return
    for one in found:
        notes = {suggested.permit.text: f"{suggested.calls} calls" for suggested in one.suggested}
        say(write_grants({one.agent: one.grant}, notes=notes))


def _mark(held: Held) -> str:
    return str(paint(" · revoked", "red")) if held.revoked else ""


def _facts(held: Held) -> dict[str, object]:
    terms = held.terms.said
    return {
        "agent": terms.agent,
        "principal": terms.principal,
        "account": held.account,
        "terms": held.terms.digest,
        "may": list(terms.may.lines),
        "may_delegate": list(terms.may_delegate.lines),
        "limits": str(terms.limits) or None,
        "until": None if terms.until is None else spell_time(terms.until),
        "used": {charged.unit: charged.used for charged in held.used},
        "revoked": held.revoked,
    }
