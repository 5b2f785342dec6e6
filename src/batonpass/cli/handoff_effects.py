"""What a handoff did to the world, on its screen: effects that tools tell of, and files that no call explains."""

from collections import Counter
from collections.abc import Iterator
from typing import Final

from batonpass.accounts.account import Account
from batonpass.cli.handoff_sheet import Parts, shorten
from batonpass.cli.printing import paint
from batonpass.cli.words import counted
from batonpass.errors import InvalidValueError
from batonpass.model.visible import visible
from batonpass.records.unexplained import LISTED, read_unexplained

_SHOWN: Final = 3


def effect_rows(account: Account) -> Iterator[Parts]:
    """Yield what its calls say that they changed, each once; and what changed by no call."""
    told = Counter(str(effect) for call in account.calls for effect in call.effects)
    for words, count in told.items():
        yield (shorten(words, 70), f" ×{count}" if count > 1 else "")
    for attempt in account.attempts:
        text = attempt.texts.get(LISTED)
        if text is not None:
            yield (paint("unexplained: ", "red"), _unexplained(text.body))


def _unexplained(body: bytes | None) -> str:
    try:
        count, found = (0, ()) if body is None else read_unexplained(body)
    except InvalidValueError:
        count, found = 0, ()
    if not found:
        return "which files is no longer here"
    names = ", ".join(visible(one.path) for one in found[:_SHOWN])
    more = f" and {count - _SHOWN} more" if count > _SHOWN else ""
    return f"{shorten(names, 60)}{more}: no recorded call changed {'it' if count == 1 else counted(count, 'file')}"
