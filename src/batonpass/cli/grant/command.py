"""`batonpass grant`: show, verify, revoke and suggest grants."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import click

from batonpass.accounts.grant_suggestions import suggest
from batonpass.accounts.handoff.grant_chain import find_revocation, find_widened, read_chain
from batonpass.accounts.handoff.grant_facts import chain_facts, mode_of
from batonpass.attribution.changes.sides import find_root
from batonpass.cli.grant.grant_screen import name_of, revoked_by, say_chain, say_ungranted
from batonpass.cli.input.id_types import WORK_ID
from batonpass.cli.input.ledger_access import opened_relay, opened_view, viewed
from batonpass.cli.input.options import ledger_and_json, read_lines, read_moment, reason_option
from batonpass.cli.output.terminal import paint, say, say_json, table, tell
from batonpass.cli.output.units import counted
from batonpass.errors import GrantChainError, GrantRevokedError, NotFoundError
from batonpass.grants.resolved_paths import WorkTreePaths
from batonpass.grants.verifier import Verifier
from batonpass.guard.grants.least_grant import LeastScope
from batonpass.guard.grants.limit_accounts import account_of
from batonpass.handoff.grants.revocation import find_account
from batonpass.handoff.grants.terms import require_ahead
from batonpass.model.base.ids import AgentId
from batonpass.model.grants.grant import Terms
from batonpass.model.grants.grant_toml import write_grants
from batonpass.model.grants.scope import MOST_PERMITS
from batonpass.store.port import LedgerView

_PASTE: Final = (
    "this is a part of batonpass.toml; read it before you paste it. It is only tried out there, and enforced with "
    "`enforce = true` under [policy]; `batonpass policy check` checks the file"
)


@click.group()
def command() -> None:
    """Show, verify, revoke and suggest grants. A grant lists what a run may use and may delegate."""


@command.command(short_help="Show a grant and the chain above it.")
@click.argument("of", metavar="ID", type=WORK_ID)
@ledger_and_json
def show(of: str, *, as_json: bool) -> None:
    """Show the grant of a handoff or a run, and the chain above it, from the root down.

    ID is the last characters of a handoff or a run, `last`, or an agent's name.
    """
    with opened_view() as view:
        account = find_account(view, of)
        mode = mode_of(view, account)
        try:
            chain = read_chain(view, account)
        except NotFoundError:
            chain = ()
        if as_json:
            say_json({"account": account, "mode": mode, "chain": chain_facts(chain)})
        elif chain:
            say_chain(chain, mode, datetime.now(UTC))
        else:
            say_ungranted(view, account, mode)


@command.command(short_help="Verify that a grant is whole and in force.")
@click.argument("of", metavar="ID", required=False, type=WORK_ID)
@click.option("--token", type=click.Path(path_type=Path), metavar="FILE", help="Verify the chain of a token.")
@ledger_and_json
def verify(of: str | None, token: Path | None, *, as_json: bool) -> None:
    """Verify a grant: signatures, links, that no hop was widened, and that it is in force.

    The chain of a token is verified with only the ledger's root key, as a tool server does.
    """
    if (of is None) == (token is None):
        raise click.UsageError("give either ID or --token FILE")
    with opened_relay() as relay, viewed(relay.store) as view:
        terms, rows = _verified_token(view, token) if token is not None else _verified(view, str(of))
        if as_json:
            say_json({"holds": True, "principal": terms[0].principal, "chain": [one.agent for one in terms]})
        else:
            table([(paint(label, dim=True), text) for label, text in rows])


def _verified(view: LedgerView, of: str) -> tuple[list[Terms], list[tuple[str, str]]]:
    """Return a valid chain and the checks it passed. Raises `GrantError` if it is not valid."""
    chain = read_chain(view, find_account(view, of))
    terms = [held.terms.said for held in chain]
    if widened := next(find_widened(chain), None):
        raise GrantChainError(widened)
    for held in chain:
        if held.revoked is not None:
            raise GrantRevokedError(f"the grant of {name_of(held)} was revoked {revoked_by(held.revoked)}")
        require_ahead(held.terms.said.until, datetime.now(UTC))
    return terms, [
        ("signed", f"{_line(terms)}, each hop by a relay of this ledger"),
        ("linked", "each hop names the one before"),
        ("narrowed", "each hop holds no more than the hop before may delegate"),
        ("in force", "nothing in it is revoked or has expired"),
    ]


def _verified_token(view: LedgerView, token: Path) -> tuple[list[Terms], list[tuple[str, str]]]:
    """Return the valid chain of a token and the checks it passed. Raises `GrantError` if it is not valid."""
    text = "".join(read_lines(token)).strip().partition(".")[0]
    root = view.info().root_key
    verifier = Verifier(root, audience="batonpass grant verify", revocations=False)
    terms = list(verifier.verify_chain(text).terms)
    for one in terms:
        if (revoked := find_revocation(view, account_of(one))) is not None:
            raise GrantRevokedError(f"the grant of {one.agent} was revoked {revoked_by(revoked)}")
    return terms, [
        ("signed", f"{_line(terms)}, each hop by a relay that root key {root[:16]} enrolled"),
        ("linked", "each hop names the one before, and the certificate the last"),
        ("in force", "nothing in it is revoked here or has expired"),
        ("not shown", "the call that its proof is for: only the tool server can check that"),
    ]


def _line(terms: list[Terms]) -> str:
    return f"{' → '.join(one.agent for one in terms)} on behalf of {terms[0].principal}"


@command.command()
@click.argument("of", metavar="ID", required=False, type=WORK_ID)
@click.option("--by", metavar="WHO", help="Who decides this, such as user:ana.")
@reason_option(required=False)
@click.option("--list", "as_list", is_flag=True, help="Print the signed list of all revocations, for tool servers.")
@ledger_and_json
def revoke(of: str | None, by: str | None, reason: str | None, *, as_list: bool, as_json: bool) -> None:
    """Revoke the grant of a handoff or a run, and every grant below it.

    It takes effect at the next call, in every process. `--list` needs the root key.
    """
    if as_list is (of is not None):
        raise click.UsageError("give either ID or --list")
    with opened_relay() as relay:
        if of is None:
            listed = relay.admin.revocations()
            if as_json:
                say_json({"revocations": listed})
            else:
                say(listed)
            return
        if by is None or reason is None:
            raise click.UsageError("give --by, who decides it, and --reason")
        with viewed(relay.store) as view:
            account = find_account(view, of)
            held = read_chain(view, account)[-1]
        agent, before = held.terms.said.agent, held.revoked
        if before is None:
            relay.revoke_grant(account, by=by, reason=reason)
        else:
            by, reason = before.by, None if before.reason is None else before.reason.words
    if as_json:
        say_json({"account": account, "agent": agent, "by": by, "reason": reason})
        return
    if before is not None:
        say(paint(name_of(held), bold=True), f" · is already revoked, {revoked_by(before)}")
        return
    say(paint(name_of(held), bold=True), f" · revoked by {by}")
    tell("  from now on, no call is made under it or under a grant below it")


@command.command("suggest")
@click.option("--since", callback=read_moment, metavar="TIME", help="Only calls since then: 7d, or a date.")
@click.option("--agent", metavar="NAME", help="Only for this agent.")
@ledger_and_json
def suggest_(since: datetime | None, agent: str | None, *, as_json: bool) -> None:
    """Suggest the least grants that cover the recorded calls, as TOML.

    Each permit says how many calls it covers. Paths below the current directory are relative to it.
    """
    with opened_view() as view:
        found = suggest(
            view,
            WorkTreePaths(Path.cwd()),
            since=since,
            agent=None if agent is None else AgentId(agent),
            repository=find_root(Path.cwd()),
        )
    if as_json:
        say_json(
            {
                "grants": {
                    one.agent: {
                        "may": {suggested.permit.text: suggested.calls for suggested in one.suggested},
                        "may_delegate": {suggested.permit.text: suggested.calls for suggested in one.delegable},
                        "left": one.left,
                    }
                    for one in found.grants
                },
                "uncovered": found.uncovered,
            }
        )
        return
    for number, one in enumerate(found.grants):
        if number:
            say("")
        for line in write_grants({one.agent: one.grant}, notes=_notes(one)).splitlines():
            say(line)
    tell(_PASTE if found.grants else "no calls are recorded")
    for one in found.grants:
        if one.left:
            more = counted(one.left, "permit")
            tell(f"left out for {one.agent}: the {more} with the fewest calls; a grant holds {MOST_PERMITS} of each")
    if found.uncovered:
        tell(f"not covered: {counted(found.uncovered, 'call')} whose text is gone, or that no permit can name")


def _notes(of: LeastScope) -> dict[str, str]:
    """Return for each permit how many calls it covers: the agent's own, and those of its children."""
    notes = {suggested.permit.text: counted(suggested.calls, "call") for suggested in of.suggested}
    for suggested in of.delegable:
        own, below = notes.get(suggested.permit.text), suggested.calls
        notes[suggested.permit.text] = f"{counted(below, 'call')} below" if own is None else f"{own}, {below} below"
    return notes
