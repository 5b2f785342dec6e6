"""`batonpass policy`: check the policy file, explain it, and try it on recorded work."""

from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Final

import click
from msgspec.structs import replace

from batonpass.accounts.dry_run import dry_run, judge_again
from batonpass.adapters.mcp.server_declaration import read_servers
from batonpass.audit.meant_ids import get_meant
from batonpass.audit.short_ids import ending
from batonpass.cli.input.id_types import HELD_ID
from batonpass.cli.input.ledger_access import opened_view
from batonpass.cli.input.options import json_option, ledger_and_json
from batonpass.cli.output.exits import NO
from batonpass.cli.output.terminal import paint, say, say_json, table, tell
from batonpass.cli.output.units import counted
from batonpass.config import find_policy_file
from batonpass.errors import NotFoundError, PolicyFileError
from batonpass.guard.policy.gates import GateDecision
from batonpass.model.base.ids import CALL, HANDOFF, AgentId, HandoffId, ReceiptId, StreamId
from batonpass.model.base.kinds import Relation
from batonpass.model.grants.grant import Grant
from batonpass.model.grants.permit import spell_time
from batonpass.model.policy.policy_rules import Policy, Rule, Tier
from batonpass.policy.document import CLAUDE_CODE, GRANT, Document, parse_document, read_document
from batonpass.policy.former_tables import find_former, upgrade
from batonpass.policy.policy_table import policy_of
from batonpass.policy.policy_text import bounds_words, patterns_of, rule_words
from batonpass.records.text import read_receipt
from batonpass.store.port import LedgerView

_FILE: Final = click.Path(path_type=Path, dir_okay=False, exists=True)
_policy_option = click.option(
    "--policy", "file", metavar="FILE", type=_FILE, help="The policy file.  [default: the nearest batonpass.toml]"
)


@click.group()
def command() -> None:
    """Check, explain and try out policies. A policy says which calls and handoffs are refused, held or reported."""


@command.command()
@click.argument("file", required=False, type=_FILE)
@json_option
def check(file: Path | None, *, as_json: bool) -> None:
    """Check a policy file.

    If it is not valid, says what is wrong, on which line, and how to fix it, and exits with 1. Without FILE, checks the
    policy that is in force here.
    """
    found = find_policy_file(file)
    try:
        policy = _read(found)
        former = None if found is None else find_former(read_document(found))
    except PolicyFileError as error:
        if as_json:
            facts = {"line": error.line, "key": error.key, "problem": error.problem}
            say_json({"right": False, "file": str(found), **facts})
        else:
            tell("batonpass: ", paint(str(error), "red"))
        click.get_current_context().exit(NO)
    if as_json:
        file_name = None if found is None else str(found)
        say_json({"right": True, "file": file_name, "digest": policy.digest, "deprecated": former})
    elif found is None:
        say("there is no batonpass.toml here: the shipped policy is in force")
    else:
        mode = "enforced" if policy.enforce else "reported, and enforced in enforced runs"
        grants = f" · {counted(len(policy.grants), 'grant')}" if policy.grants else ""
        about = f": {found} · {counted(len(policy.rules), 'rule')}{grants} · gates are {mode}"
        say(paint("valid", "green", bold=True), about)
        if former is not None:
            tell("batonpass: ", paint(former, "yellow"))


@command.command("upgrade")
@click.argument("file", required=False, type=_FILE)
@click.option("--write", is_flag=True, help="Replace the file.  [default: print what it would be]")
def upgrade_file(file: Path | None, *, write: bool) -> None:
    """Write tables of earlier versions as [[rules]] that mean the same. All else stays as it is, with its comments.

    Without FILE, upgrades the policy that is in force here.
    """
    found = find_policy_file(file)
    document = None if found is None else read_document(found)
    if found is None or document is None or find_former(document) is None:
        say("there is nothing to upgrade")
        return
    text = upgrade(found.read_text(encoding="utf-8"), document)
    if not _means_the_same(text, document):
        problem = "is laid out in a way that only a person can upgrade"
        raise PolicyFileError(found.name, document.table(CLAUDE_CODE).line, CLAUDE_CODE, problem)
    if write:
        found.write_text(text, encoding="utf-8")
        say(f"upgraded {found}")
    else:
        for line in text.splitlines():
            say(line)


def _means_the_same(text: str, document: Document) -> bool:
    try:
        upgraded = policy_of(parse_document(text.encode(), document.file))
    except PolicyFileError:
        return False
    return _without_places(upgraded) == _without_places(policy_of(document))


def _without_places(policy: Policy) -> Policy:
    """Return a policy as it would be in any other file that says the same."""
    rules = tuple(replace(rule, line=None) for rule in policy.rules)
    return replace(policy, rules=rules, digest=None, lines={})


@command.command(short_help="Explain the policy, a rule or a decision.")
@click.argument("given", metavar="[HANDOFF|CALL|RULE|AGENT]", required=False, type=HELD_ID)
@_policy_option
@ledger_and_json
def explain(given: str | None, file: Path | None, *, as_json: bool) -> None:
    """Explain the policy: all of it, one rule, one agent's grant, or its decision about a handoff or call.

    If there is no file and no argument, this prints the shipped policy, as a file to start with.
    """
    found = find_policy_file(file)
    policy = _read(found)
    if given is None:
        _explain_all(policy, found, as_json=as_json)
        return
    rule = next((rule for rule in policy.rules if rule.name == given), None)
    if rule is not None:
        if as_json:
            say_json(_rule_facts(rule))
        else:
            say(paint(rule.name, bold=True), f" · {policy.where(rule.name)} · {rule_words(rule)}")
        return
    agent = AgentId(given.removeprefix(f"{GRANT}."))
    if agent in policy.grants:
        if as_json:
            say_json(_grant_facts(policy.grants[agent]))
        else:
            _say_grant(policy, agent)
        return
    with opened_view() as view:
        identifier, decisions = _judged(view, given, policy)
    if as_json:
        names = ("gate", "rule", "line", "flag", "sentence")
        say_json({"id": identifier, "decisions": [{name: getattr(one, name) for name in names} for one in decisions]})
        return
    if not decisions:
        say(f"{identifier}: the policy neither holds nor refuses it")
    for decision in decisions:
        say(paint(decision.gate, bold=True), f" · {decision.rule} · {policy.where(decision.rule)}")
        say(f"  {decision.sentence}")


@command.command("dry-run", short_help="Try a policy on recorded calls and handoffs.")
@click.option(
    "--last", metavar="N", type=click.IntRange(min=1), default=200, show_default=True, help="How many to look at."
)
@_policy_option
@ledger_and_json
def try_out(last: int, file: Path | None, *, as_json: bool) -> None:
    """Show what the policy would have done with the latest handoffs and calls, rule by rule.

    Nothing is recorded, and nothing is held.
    """
    policy = _read(find_policy_file(file))
    with opened_view() as view:
        found = dry_run(view, policy, last)
    if as_json:
        say_json({"looked_at": found.looked_at, "rules": found.counts})
        return
    for name, count in sorted(found.counts.items(), key=lambda each: (-each[1].held - each[1].denied, each[0])):
        did = [f"{word} {number}" for word, number in (("held", count.held), ("denied", count.denied)) if number]
        nothing = "denied 0" if name.startswith(f"{GRANT}.") else "held 0"
        say(paint(name, bold=True), f" would have {' and '.join(did) or nothing} of {found.looked_at}")
        for example in count.examples:
            say(f"  {ending(example.id, 6)}  {example.sentence}")
    if not found.counts:
        say(f"nothing would have been held or denied of {found.looked_at}")


def _read(file: Path | None) -> Policy:
    if file is None:
        return Policy()
    document = read_document(file)
    read_servers(document)
    return policy_of(document)


def _judged(view: LedgerView, given: str, policy: Policy) -> tuple[str, tuple[GateDecision, ...]]:
    meant = get_meant(view, given, (HANDOFF, CALL))
    if meant.receipt is not None:
        return judge_again(view, read_receipt(view.get_receipt(ReceiptId(meant.receipt))), policy)
    if meant.kind != HANDOFF:
        raise NotFoundError("handoff, call or rule", given)
    handoff = view.get_handoff(HandoffId(meant.id))
    return judge_again(view, read_receipt(view.get_receipt_at(StreamId(handoff.parent), handoff.seq)), policy)


def _explain_all(policy: Policy, file: Path | None, *, as_json: bool) -> None:
    if as_json:
        say_json(_policy_facts(policy))
        return
    if file is None:
        for line in files("batonpass.policy").joinpath("default.toml").read_text(encoding="utf-8").splitlines():
            say(line)
        return
    say(paint(f"{file}", bold=True), " · gates are ", "enforced" if policy.enforce else "reported")
    table([[relation, "; ".join(_requirement_words(policy, relation))] for relation in Relation], indent="  ")
    table([[tier, policy.tiers[tier], policy.where(f"tier.{tier}")] for tier in Tier], indent="  ")
    table([[rule.name, rule_words(rule), policy.where(rule.name)] for rule in policy.rules], indent="  ")
    for agent in policy.grants:
        _say_grant(policy, agent, indent="  ")
    for person, scope in policy.approvers.items():
        may = "everything" if scope.may is None else scope.may
        of = "" if scope.agents is None else f" of {', '.join(scope.agents) or 'nobody'}"
        say(f"  {person} may approve {may}{of}")


def _say_grant(policy: Policy, agent: AgentId, indent: str = "") -> None:
    grant = policy.grants[agent]
    say(f"{indent}{agent} · ", policy.where(f"{GRANT}.{agent}"))
    for label, lines in (("may", grant.may.lines), ("may delegate", grant.may_delegate.lines)):
        for number, line in enumerate(lines or ("nothing",)):
            say(f"{indent}  {'' if number else label:<14}", line)
    if ends := ", ".join(bounds_words(grant)):
        say(f"{indent}  within        ", ends)


def _requirement_words(policy: Policy, relation: Relation) -> Iterator[str]:
    wanted = policy.requirements[relation]
    yield wanted.posture
    yield f"reported without {', '.join(wanted.minimum) or 'nothing'}"
    if wanted.require:
        yield f"refused without {', '.join(wanted.require)}"
    yield f"method {wanted.method}, verification {wanted.verification}, verbatim {wanted.verbatim}"


def _rule_facts(rule: Rule) -> dict[str, object]:
    return {
        **{name: getattr(rule, name) for name in ("name", "on", "gate", "approvals")},
        **patterns_of(rule),
        "line": rule.line,
    }


def _policy_facts(policy: Policy) -> dict[str, object]:
    return {
        "file": policy.file,
        "digest": policy.digest,
        "enforce": policy.enforce,
        "proven": policy.proven,
        "handoffs": dict(policy.requirements),
        "tiers": dict(policy.tiers),
        "rules": [_rule_facts(rule) for rule in policy.rules],
        "grants": {agent: _grant_facts(grant) for agent, grant in policy.grants.items()},
        "approvers": {
            person: {
                "agents": None if scope.agents is None else list(scope.agents),
                "may": None if scope.may is None else list(scope.may.lines),
            }
            for person, scope in policy.approvers.items()
        },
    }


def _grant_facts(grant: Grant) -> dict[str, object]:
    return {
        "may": list(grant.may.lines),
        "may_delegate": list(grant.may_delegate.lines),
        "limits": str(grant.limits) or None,
        "until": None if grant.until is None else spell_time(grant.until),
        "max_depth": grant.max_depth,
    }
