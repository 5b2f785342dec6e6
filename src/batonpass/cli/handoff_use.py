"""What a handoff was granted against what its latest attempt used of it, for one screen and as JSON."""

import json
from collections.abc import Iterator, Mapping, Sequence

from batonpass.accounts.account import Account
from batonpass.cli.handoff_sheet import Parts, shorten
from batonpass.cli.printing import paint
from batonpass.cli.words import counted
from batonpass.errors import InvalidValueError
from batonpass.handoff.using import USE
from batonpass.model.scope_text import read_scope


def use_of(account: Account) -> Mapping[str, object] | None:
    """Return what the latest attempt said at its end of what it used; None if it had no grant, or is not over."""
    text = None if account.latest is None else account.latest.texts.get(USE)
    if text is None or text.words is None:
        return None
    try:
        read = json.loads(text.words)
    except (ValueError, RecursionError):
        return None
    return read if isinstance(read, dict) else None


def use_rows(account: Account) -> Iterator[Parts]:
    """Yield what would have been enough, and what was never used."""
    use = use_of(account)
    if use is None:
        return
    enough = ", ".join(f"{permit} ({counted(calls, 'call')})" for permit, calls in _permits(use, "least"))
    yield (shorten(enough) if enough else "no grant at all: nothing was used",)
    if unused := [permit for permit, calls in _permits(use, "may") if not calls]:
        yield (paint("never used: ", "yellow"), shorten(", ".join(unused)))


def _permits(use: Mapping[str, object], name: str) -> Iterator[tuple[str, int]]:
    listed = use.get(name)
    for one in listed if isinstance(listed, list) else []:
        yield str(one["permit"]), int(one["calls"])


def find_beyond(held: Sequence[str], asked: Sequence[str]) -> list[str]:
    """Return what is asked for and not held; words that are no permits have to be the same."""
    try:
        return [str(permit) for permit in read_scope(held).find_excess(read_scope(asked), unsaid=True)]
    except InvalidValueError:
        return sorted(set(asked) - set(held))
