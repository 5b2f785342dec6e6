"""The scope of a handoff against its use by the attempts, for the screen and as JSON."""

import json
from collections.abc import Iterator, Mapping, Sequence

from batonpass.accounts.handoff.account import Account, CallInWords
from batonpass.accounts.handoff.scope_used import ScopeUsed
from batonpass.cli.output.sheet import Parts, shorten
from batonpass.cli.output.terminal import Painted, paint
from batonpass.cli.output.units import counted
from batonpass.errors import InvalidValueError
from batonpass.model.base.content_names import USE
from batonpass.model.grants.scope_text import read_scope


def use_of(account: Account) -> Mapping[str, object] | None:
    """Return the use of the grant that the latest attempt recorded at its end; None without a grant or an end."""
    text = None if account.latest is None else account.latest.texts.get(USE)
    if text is None or text.words is None:
        return None
    try:
        read = json.loads(text.words)
    except (ValueError, RecursionError):
        return None
    return read if isinstance(read, dict) else None


def permit_of(call: CallInWords) -> Painted:
    """Return the permit that covered a call, or that none did; empty without a grant."""
    if call.record.is_beyond:
        return paint(" · beyond the grant", "yellow")
    return Painted("") if call.permit is None else paint(f" · by {shorten(call.permit, 60)}", dim=True)


def enough_rows(used: ScopeUsed | None) -> Iterator[Parts]:
    """Yield the least scope that would have been enough, once the handoff is over."""
    if used is None or not used.over:
        return
    if used.is_idle:
        yield ("no grant: nothing was used",)
    if used.least:
        yield (shorten(_listed(used.least)),)
    if used.beyond:
        yield (paint("beyond the grant: ", "yellow"), shorten(_listed(used.beyond)))
    if used.unnamed:
        yield (paint("not covered: ", "yellow"), f"{counted(used.unnamed, 'call')} that no permit can name")


def unused_rows(used: ScopeUsed | None) -> Iterator[Parts]:
    """Yield the permits that were never used, once the handoff is over."""
    if used is not None and used.over and used.unused:
        yield (shorten(", ".join(used.unused)),)


def scope_used_facts(used: ScopeUsed | None) -> dict[str, object] | None:
    """Return the granted scope against the used one, for programs."""
    if used is None:
        return None
    return {
        "granted": dict(used.granted),
        "unused": list(used.unused),
        "least": dict(used.least),
        "beyond": dict(used.beyond),
        "unnamed": used.unnamed,
    }


def _listed(permits: Mapping[str, int]) -> str:
    return ", ".join(f"{permit} ({counted(calls, 'call')})" for permit, calls in permits.items())


def find_beyond(held: Sequence[str], asked: Sequence[str]) -> list[str]:
    """Return the permits that are asked for and not held; texts that are not permits are compared literally."""
    try:
        return [str(permit) for permit in read_scope(held).find_excess(read_scope(asked), unsaid=True)]
    except InvalidValueError:
        return sorted(set(asked) - set(held))
