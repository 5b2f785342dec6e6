"""The policy: its rules, and the effect of another one on the recorded calls. Nothing here writes a file."""

from typing import Final

from batonpass.accounts.dry_run import dry_run
from batonpass.errors import InvalidValueError, PolicyFileError
from batonpass.model.base.checks import shorten
from batonpass.model.policy.policy_rules import Policy, Tier
from batonpass.policy.document import parse_document
from batonpass.policy.policy_table import policy_of
from batonpass.policy.policy_text import bounds_words, rule_words
from batonpass.relay import desk_of
from batonpass.server.page.request import PageRequest, Shown

LAST: Final = (50, 200, 1000)
_EXAMPLE: Final = """\
# Rules and grants are tried on what is recorded. Change them until they do what you want, then copy them.
[[rules]]
name = "writes-need-somebody"
on = "call"
gate = "approve"
action = "write"

[grant.editor]
may = ["read:**", "write:src/**"]
"""


def show_policy(asked: PageRequest) -> Shown:
    """Return the policy that this server judges by."""
    policy: Policy = desk_of(asked.plane.relay).gates
    return {
        "policy": policy,
        "rules": [(rule, rule_words(rule), policy.where(rule.name)) for rule in policy.rules],
        "tiers": [(tier, policy.tiers[tier]) for tier in Tier],
        "grants": [(agent, grant, [*bounds_words(grant)]) for agent, grant in policy.grants.items()],
    }


def try_policy(asked: PageRequest) -> Shown:
    """Return the effect that a policy in a form would have had on the latest handoffs and calls."""
    text = asked.fields.get("text", "")
    given = asked.fields.get("last", str(LAST[1]))
    if given not in {str(number) for number in LAST}:
        raise InvalidValueError("last", f"is one of {', '.join(map(str, LAST))}, not {shorten(given)}")
    shown: Shown = {"text": text or _EXAMPLE, "last": int(given), "all_last": LAST, "found": None, "problem": None}
    if not text.strip():
        return shown
    try:
        policy = policy_of(parse_document(text.encode()))
    except PolicyFileError as error:
        return {**shown, "problem": error}
    with asked.looking() as view:
        found = dry_run(view, policy, int(given))
    order = sorted(found.counts.items(), key=lambda each: (-each[1].held - each[1].denied, each[0]))
    return {
        **shown,
        "found": found,
        "order": order,
        "held": sum(count.held for _, count in order),
        "denied": sum(count.denied for _, count in order),
        "policy": policy,
    }
