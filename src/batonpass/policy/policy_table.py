"""From `batonpass.toml` to a policy. Every value is checked, and errors name their line."""

from collections.abc import Callable, Mapping
from datetime import timedelta
from os import PathLike
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from msgspec.structs import replace

from batonpass.errors import InvalidValueError
from batonpass.model.base.checks import require_instance
from batonpass.model.base.durations import read_duration
from batonpass.model.base.kinds import Gate, Relation
from batonpass.model.policy.handoff_policy import UNRULED, HandoffPolicy
from batonpass.model.policy.policy_rules import (
    AGENTS,
    DEPTH,
    METHOD,
    RENEW,
    REQUIRE,
    REQUIREMENTS,
    TIER,
    VERBATIM,
    VERIFICATION,
    Demand,
    DoorName,
    Policy,
    Posture,
    Requirement,
    Rule,
    Subject,
    Tier,
)
from batonpass.policy.document import (
    HANDOFFS,
    POLICY,
    RULES,
    TIERS,
    Document,
    DocumentPlace,
    read_document,
    require_fitting,
)
from batonpass.policy.former_tables import agent_rules
from batonpass.policy.grant_tables import approvers_of, grants_of, lines_of

AnyPolicy: TypeAlias = HandoffPolicy | Policy | PathLike[str] | str


def given_policy(given: AnyPolicy | None) -> Policy:
    """Return a policy given as a value or a file; without one, the shipped policy. Raises `PolicyFileError`."""
    match given:
        case str() | PathLike():
            return read_policy(Path(given))
        case HandoffPolicy():
            return Policy(handoffs=given)
        case None:
            return Policy()
        case _:
            return require_instance("policy", given, Policy)


def read_policy(path: Path) -> Policy:
    """Return the policy in a file. Raises `PolicyFileError`."""
    return policy_of(read_document(path))


def policy_of(document: Document) -> Policy:
    """Return the policy in a document, with defaults for missing parts. Raises `PolicyFileError`."""
    lines = lines_of(document)
    requirements = _requirements(document.table(HANDOFFS), lines)
    own, shared = _settings(document.table(POLICY), lines)
    required = {relation: wanted.require for relation, wanted in requirements.items() if wanted.require}
    place = document.table(POLICY)
    try:
        return Policy(
            handoffs=replace(UNRULED, require=required, **shared),
            requirements=requirements,
            tiers=_tiers(document.table(TIERS), lines),
            rules=(*agent_rules(document, lines), *_rules(document.table(RULES), lines)),
            grants=MappingProxyType(grants_of(document)),
            approvers=MappingProxyType(approvers_of(document)),
            digest=document.digest,
            file=document.file,
            lines=MappingProxyType(lines),
            **own,
        )
    except InvalidValueError as error:
        raise require_fitting(place, error) from None


def _duration(place: DocumentPlace) -> timedelta:
    try:
        return read_duration("duration", place.value)
    except InvalidValueError as error:
        raise place.error(error.problem) from None


# The keys of `[policy]`: for the gates, and for the handoffs that a relay carries.
_OWN: Final[Mapping[str, Callable[[DocumentPlace], Any]]] = {
    "enforce": DocumentPlace.boolean,
    "hold_for": _duration,
    "approval_lasts": _duration,
    "proven": DocumentPlace.boolean,
    "commit_endorses": DocumentPlace.boolean,
    "renew_every": lambda place: place.integer(1),
    "renewal": lambda place: place.member(Gate),
    "allowed_agents": lambda place: place.texts("agents"),
}
_SHARED: Final[Mapping[str, Callable[[DocumentPlace], Any]]] = {
    "max_depth": lambda place: place.integer(1),
    "max_attempts": lambda place: place.integer(1),
    "verified_only": DocumentPlace.boolean,
    "asks": DocumentPlace.boolean,
    "questions": DocumentPlace.integer,
    "hops_between_questions": DocumentPlace.integer,
    "oldest": _duration,
    "known_agents": DocumentPlace.boolean,
    "refuse_loops": DocumentPlace.boolean,
    "sanitize_context": DocumentPlace.boolean,
    "trust_degradation": DocumentPlace.boolean,
}
_NAMES: Final = {"allowed_agents": AGENTS, "max_depth": DEPTH, "renew_every": RENEW}


def _settings(place: DocumentPlace, lines: dict[str, int]) -> tuple[dict[str, Any], dict[str, Any]]:
    given = place.table((*_OWN, *_SHARED))
    lines.update({_NAMES[key]: found.line for key, found in given.items() if key in _NAMES})
    own = {key: read(given[key]) for key, read in _OWN.items() if key in given}
    shared = {key: read(given[key]) for key, read in _SHARED.items() if key in given}
    return own, shared


def _requirements(place: DocumentPlace, lines: dict[str, int]) -> dict[Relation, Requirement]:
    found = {}
    for key, given in place.table(tuple(Relation)).items():
        relation = Relation(key)
        values = given.table(("posture", "minimum", REQUIRE, METHOD, VERIFICATION, VERBATIM))
        lines.update({f"{name}.{relation}": value.line for name, value in values.items()})
        shipped = REQUIREMENTS[relation]
        try:
            found[relation] = Requirement(
                posture=values["posture"].member(Posture) if "posture" in values else shipped.posture,
                minimum=values["minimum"].texts("parts") if "minimum" in values else shipped.minimum,
                require=values[REQUIRE].texts("parts") if REQUIRE in values else shipped.require,
                **{
                    name: values[name].member(Demand) if name in values else getattr(shipped, name)
                    for name in (METHOD, VERIFICATION, VERBATIM)
                },
            )
        except InvalidValueError as error:
            raise require_fitting(given, error) from None
    return found


def _tiers(place: DocumentPlace, lines: dict[str, int]) -> dict[Tier, Gate]:
    given = place.table(tuple(Tier))
    lines.update({f"{TIER}.{name}": value.line for name, value in given.items()})
    return {Tier(name): value.member(Gate) for name, value in given.items()}


_RULE: Final[Mapping[str, Callable[[DocumentPlace], Any]]] = {
    "name": DocumentPlace.text,
    "on": lambda place: place.member(Subject),
    "gate": lambda place: place.member(Gate),
    "agent": lambda place: _one_or_more(place, "agents"),
    "tool": lambda place: _one_or_more(place, "tools"),
    "except": lambda place: place.texts("tools"),
    "action": DocumentPlace.text,
    "target": DocumentPlace.text,
    "relation": lambda place: place.member(Relation),
    "tier": lambda place: place.member(Tier),
    "depth": lambda place: place.integer(1),
    "door": lambda place: place.member(DoorName),
    "alarm": DocumentPlace.text,
    "approvals": lambda place: place.integer(1),
}
_NAMED: Final = {"except": "unless"}  # a word of Python
_NEEDED: Final = ("name", "on", "gate")


def _one_or_more(place: DocumentPlace, what: str) -> str | tuple[str, ...]:
    return place.texts(what) if isinstance(place.value, list) else place.text()


def _rules(place: DocumentPlace, lines: dict[str, int]) -> tuple[Rule, ...]:
    if place.value == {}:
        return ()  # the file has none
    rules: list[Rule] = []
    for element in place.elements("rules; begin each with [[rules]]"):
        given = element.table(tuple(_RULE))
        for key in _NEEDED:
            if key not in given:
                raise element.error(f"has no {key}; a rule has {', '.join(_NEEDED)}, and patterns")
        values = {_NAMED.get(key, key): read(given[key]) for key, read in _RULE.items() if key in given}
        try:
            rule = Rule(**values, line=element.line)
        except InvalidValueError as error:
            raise require_fitting(element, error) from None
        if rule.name in lines:
            raise given["name"].error(f"{rule.name!r} is on line {lines[rule.name]} already; give it another name")
        lines[rule.name] = element.line
        rules.append(rule)
    return tuple(rules)
