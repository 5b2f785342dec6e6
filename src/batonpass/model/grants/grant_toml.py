"""Grants in TOML, by agent: people write them, and `batonpass grant suggest` prints them.

[grant.editor]
may = ["write:src/** where path under src; at most 20 calls"]
may_delegate = []
limits = "at most 50 calls, 5.50 spend"
until = 2026-12-01T00:00:00Z
max_depth = 3
"""

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from batonpass.errors import InvalidValueError, UnknownFieldError
from batonpass.model.base.checks import require_instance
from batonpass.model.base.ids import AgentId
from batonpass.model.grants.grant import Grant
from batonpass.model.grants.limits import UNLIMITED
from batonpass.model.grants.permit import spell_time
from batonpass.model.grants.scope import NOTHING, Scope
from batonpass.model.grants.scope_text import read_limits, read_scope

TABLE: Final = "grant"
_BARE: Final = re.compile("[A-Za-z0-9_-]+")
FIELDS: Final = ("may", "may_delegate", "limits", "until", "max_depth")


def read_grant(given: object, where: str) -> Grant:
    """Return the grant in a table. Raises `InvalidValueError`; its field begins with `where`."""
    table = _table(given, where)
    if unknown := sorted(table.keys() - set(FIELDS)):
        raise UnknownFieldError(f"{where}.{unknown[0]}")
    try:
        return Grant(
            may=_scope(table, "may"),
            may_delegate=_scope(table, "may_delegate"),
            limits=read_limits(require_instance("limits", table["limits"], str)) if "limits" in table else UNLIMITED,
            until=_time(table.get("until")),
            max_depth=table.get("max_depth"),
        )
    except InvalidValueError as error:
        raise InvalidValueError(f"{where}.{error.field}", error.problem) from None


def write_grants(grants: Mapping[AgentId, Grant], *, notes: Mapping[str, str] | None = None) -> str:
    """Return grants as a TOML document. `notes` has comments for permits, by the text of the permit."""
    blocks = [
        f"[{TABLE}.{agent if _BARE.fullmatch(agent) else _quoted(agent)}]\n{_written(grant, notes or {})}"
        for agent, grant in grants.items()
    ]
    return "\n".join(blocks)


def _written(grant: Grant, notes: Mapping[str, str]) -> str:
    lines = [f"may = {_listed(grant.may, notes)}", f"may_delegate = {_listed(grant.may_delegate, notes)}"]
    if grant.limits != UNLIMITED:
        lines.append(f"limits = {_quoted(str(grant.limits))}")
    if grant.until is not None:
        lines.append(f"until = {spell_time(grant.until)}")
    if grant.max_depth is not None:
        lines.append(f"max_depth = {grant.max_depth}")
    return "".join(f"{line}\n" for line in lines)


def _listed(scope: Scope, notes: Mapping[str, str]) -> str:
    if not scope:
        return "[]"
    rows = (f"    {_quoted(line)},{f'  # {notes[line]}' if line in notes else ''}\n" for line in scope.lines)
    return f"[\n{''.join(rows)}]"


def _quoted(text: str) -> str:
    # Permits have only visible characters, so nothing else needs an escape.
    if "'" not in text and '"' in text:
        return f"'{text}'"
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _scope(table: Mapping[str, Any], name: str) -> Scope:
    return read_scope(require_instance(name, table[name], list)) if name in table else NOTHING


def _time(given: object) -> datetime | None:
    if given is None:
        return None
    if isinstance(given, datetime):
        return given
    raise InvalidValueError("until", "is not a time with its offset, such as 2026-12-01T00:00:00Z")


def _table(given: object, where: str) -> Mapping[str, Any]:
    if not isinstance(given, dict):
        raise InvalidValueError(where, "is no table")
    return given
