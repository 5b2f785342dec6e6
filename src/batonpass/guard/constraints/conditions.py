"""Evaluates the conditions on which decisions depend.

A condition is a text. These forms can be checked; everything else is prose, which nobody can check:

    artifact:NAME sha256:HEX    our artifact of this name still has this digest
    file:PATH sha256:HEX        this file of the work tree still has this digest
    constraint:KEY OP VALUE     the value of this typed constraint still compares so
    until DATE, from DATE       ISO 8601; a day counts as a whole, in UTC
    check:NAME                  the check that is registered under this name says so

A condition that looks like one of these forms and cannot be read is not prose but unknown. So is one about something
that does not exist. A decision stands only if its conditions hold or are prose.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, date, datetime
from enum import StrEnum
from types import MappingProxyType
from typing import Final, TypeAlias

from batonpass.guard.constraints.comparison import Fit, compare
from batonpass.model.base.checks import shorten
from batonpass.model.base.ids import Digest
from batonpass.model.base.value import Value
from batonpass.model.baton.items import Operator

_DIGEST: Final = re.compile(r"[0-9A-Fa-f]{64}")
_COMPARED: Final = re.compile(r"constraint:([^\s<>=!]+)\s*(<=|>=|!=|=|<|>)\s*(.+)", re.DOTALL)
_LISTED: Final = re.compile(r"constraint:(\S+)\s+(not in|in)\s+(.+)", re.DOTALL)
_DATED: Final = re.compile(r"(until|from)\s+(\d{4}-?\d\d\S*)")
_CHECKED: Final = re.compile(r"check:(\S+)")
# Longer than any form with a digest and a path that a file system accepts.
_LONGEST: Final = 8192

_FORMS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "artifact:": "artifact:NAME sha256:HEX",
        "file:": "file:PATH sha256:HEX",
        "constraint:": "constraint:KEY OP VALUE",
        "check:": "check:NAME",
    },
)


class ConditionVerdict(StrEnum):
    """The outcome of evaluating a condition."""

    HOLDS = "holds"
    FAILS = "fails"
    UNKNOWN = "unknown"  # it could be checked, but not here and now: its subject does not exist, or it is misspelt
    UNCHECKED = "unchecked"  # prose


class ConditionFinding(Value, frozen=True):
    """A condition, its verdict, and the reason."""

    condition: str
    verdict: ConditionVerdict
    reason: str = ""

    @property
    def stands(self) -> bool:
        """Return whether a decision that depends on it can stand."""
        return self.verdict in {ConditionVerdict.HOLDS, ConditionVerdict.UNCHECKED}


class SeenState(Value, frozen=True):
    """The finding at a place: a digest, or the reason why there is none."""

    digest: Digest | None
    why: str = ""


class CheckAnswer(Value, frozen=True):
    """The answer of a registered check; None if it gave none."""

    holds: bool | None
    why: str = ""


class KnownWorld(Value, frozen=True, kw_only=True):
    """The facts against which conditions are evaluated, as they were found just now."""

    at: datetime
    artifacts: Mapping[str, SeenState] = {}
    files: Mapping[str, SeenState] = {}
    constraints: Mapping[str, tuple[str, ...]] = {}  # by key, every value that binds
    checks: Mapping[str, CheckAnswer] | None = {}  # None: no checks can be run here


class _Digested(Value, frozen=True):
    where: str
    name: str
    digest: Digest


class _Compared(Value, frozen=True):
    key: str
    operator: Operator
    value: str


class _Dated(Value, frozen=True):
    word: str
    when: date | datetime


class _Checked(Value, frozen=True):
    name: str


class _Misspelt(Value, frozen=True):
    why: str


Form: TypeAlias = _Digested | _Compared | _Dated | _Checked | _Misspelt | None


def evaluate(condition: str, known: KnownWorld) -> ConditionFinding:
    """Return the verdict about a condition. Never raises."""
    match _read(condition):
        case _Digested() as form:
            return _digest(condition, form, known)
        case _Compared() as form:
            return _compare(condition, form, known.constraints.get(form.key, ()))
        case _Dated() as form:
            return _date(condition, form, known.at)
        case _Checked() as form:
            return _check(condition, form, known.checks)
        case _Misspelt() as form:
            return ConditionFinding(condition, ConditionVerdict.UNKNOWN, f"{_shown(condition)} {form.why}")
        case None:
            return ConditionFinding(condition, ConditionVerdict.UNCHECKED, "it is prose, and nobody can check it")


def find_files(conditions: Iterable[str]) -> Iterator[str]:
    """Yield the paths of files that conditions name, each once."""
    yield from _names(conditions, "file")


def find_artifacts(conditions: Iterable[str]) -> Iterator[str]:
    """Yield the names of artifacts that conditions name, each once."""
    yield from _names(conditions, "artifact")


def find_checks(conditions: Iterable[str]) -> Iterator[str]:
    """Yield the names of checks that conditions name, each once."""
    forms = (_read(condition) for condition in conditions)
    yield from dict.fromkeys(form.name for form in forms if isinstance(form, _Checked))


def _names(conditions: Iterable[str], where: str) -> Iterator[str]:
    forms = (_read(condition) for condition in conditions)
    yield from dict.fromkeys(form.name for form in forms if isinstance(form, _Digested) and form.where == where)


def _read(condition: str) -> Form:
    text = condition.strip()
    if len(text) > _LONGEST:
        return None
    if (digested := _read_digest(text)) is not None:
        return digested
    if found := _COMPARED.fullmatch(text) or _LISTED.fullmatch(text):
        return _Compared(found[1], Operator(found[2]), found[3])
    if found := _CHECKED.fullmatch(text):
        return _Checked(found[1])
    if found := _DATED.fullmatch(text):
        return _read_date(found[1], found[2])
    meant = next((form for prefix, form in _FORMS.items() if text.startswith(prefix)), None)
    return None if meant is None else _Misspelt(f"is not {meant}")


def _read_digest(text: str) -> _Digested | None:
    # Not one regular expression: with a lazy name before the blanks, its time would grow with the square of their
    # number.
    where, _, rest = text.partition(":")
    name, found, digest = rest.rpartition("sha256:")
    if where not in {"artifact", "file"} or not found or not name[-1:].isspace() or not name.strip():
        return None
    return _Digested(where, name.strip(), Digest(digest.lower())) if _DIGEST.fullmatch(digest) else None


def _read_date(word: str, text: str) -> Form:
    try:
        return _Dated(word, date.fromisoformat(text))
    except ValueError:
        try:
            when = datetime.fromisoformat(text)
        except ValueError:
            return _Misspelt("has no date of the calendar; write it as 2026-12-31")
        return _Dated(word, when if when.tzinfo is not None else when.replace(tzinfo=UTC))


def _digest(condition: str, form: _Digested, known: KnownWorld) -> ConditionFinding:
    what = f"{form.where} {_shown(form.name)}"
    seen = (known.files if form.where == "file" else known.artifacts).get(form.name)
    if seen is None or seen.digest is None:
        why = "is not there" if seen is None or not seen.why else seen.why
        return ConditionFinding(condition, ConditionVerdict.UNKNOWN, f"{what} {why}")
    if seen.digest == form.digest:
        return ConditionFinding(condition, ConditionVerdict.HOLDS)
    # The digest that was found is not shown: the path comes from somebody's text, which must not become a way to probe
    # files.
    return ConditionFinding(condition, ConditionVerdict.FAILS, f"{what} has changed since")


def _compare(condition: str, form: _Compared, values: tuple[str, ...]) -> ConditionFinding:
    wanted = f"{form.operator} {_shown(form.value)}"
    if not values:
        return ConditionFinding(condition, ConditionVerdict.UNKNOWN, f"no constraint {_shown(form.key)} binds any more")
    for value in values:
        fit = compare(form.operator, form.value, value)
        if fit is not Fit.HOLDS:
            verdict = ConditionVerdict.FAILS if fit is Fit.FAILS else ConditionVerdict.UNKNOWN
            relation = "not" if fit is Fit.FAILS else "which cannot be compared with"
            return ConditionFinding(
                condition, verdict, f"{_shown(form.key)} is {_shown(value)} now, {relation} {wanted}"
            )
    return ConditionFinding(condition, ConditionVerdict.HOLDS)


def _date(condition: str, form: _Dated, at: datetime) -> ConditionFinding:
    now: date | datetime = at
    if not isinstance(form.when, datetime):
        now = at.astimezone(UTC).date()
    if form.word == "until":
        late = now > form.when
        return (
            ConditionFinding(condition, ConditionVerdict.FAILS, f"it was good until {form.when}")
            if late
            else _holds(condition)
        )
    early = now < form.when
    return (
        ConditionFinding(condition, ConditionVerdict.FAILS, f"it is good from {form.when}")
        if early
        else _holds(condition)
    )


def _check(condition: str, form: _Checked, checks: Mapping[str, CheckAnswer] | None) -> ConditionFinding:
    if checks is None:
        return ConditionFinding(condition, ConditionVerdict.UNCHECKED, "checks are made where a session is resumed")
    answer = checks.get(form.name)
    if answer is None:
        return ConditionFinding(condition, ConditionVerdict.UNKNOWN, f"no check {_shown(form.name)} is registered here")
    if answer.holds is None:
        return ConditionFinding(condition, ConditionVerdict.UNKNOWN, f"check {_shown(form.name)} failed: {answer.why}")
    if answer.holds:
        return _holds(condition)
    why = f": {answer.why}" if answer.why else ""
    return ConditionFinding(condition, ConditionVerdict.FAILS, f"check {_shown(form.name)} says no{why}")


def _holds(condition: str) -> ConditionFinding:
    return ConditionFinding(condition, ConditionVerdict.HOLDS)


def _shown(text: str) -> str:
    return shorten(text[:200])
