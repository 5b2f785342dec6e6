"""Rules and grants of a policy in words, for every way of showing them."""

from collections.abc import Iterator, Mapping
from typing import Final

from batonpass.model.grants.grant import Grant
from batonpass.model.grants.limits import UNLIMITED
from batonpass.model.grants.permit import spell_time
from batonpass.model.policy.policy_rules import Rule

_PATTERNS: Final = ("agent", "tool", "except", "action", "target", "relation", "tier", "depth", "door", "alarm")


def rule_words(rule: Rule) -> str:
    """Return the effect of a rule and its conditions, in words."""
    patterns = [f"{name} {_listed(given)}" for name, given in patterns_of(rule).items() if given]
    people = f" by {rule.approvals} people" if rule.approvals > 1 else ""
    return f"{rule.gate}{people} for every {rule.on}" + (f" with {', '.join(patterns)}" if patterns else "")


def patterns_of(rule: Rule) -> Mapping[str, object]:
    """Return the conditions of a rule, by the names in the file."""
    return {name: getattr(rule, "unless" if name == "except" else name) for name in _PATTERNS}


def bounds_words(grant: Grant) -> Iterator[str]:
    """Yield the limits of a grant, its end, and how deep it may be passed on."""
    if grant.limits != UNLIMITED:
        yield str(grant.limits)
    if grant.until is not None:
        yield f"until {spell_time(grant.until)}"
    if grant.max_depth is not None:
        yield f"a chain to depth {grant.max_depth}"


def _listed(given: object) -> str:
    return " or ".join(given) if isinstance(given, tuple) else str(given)
