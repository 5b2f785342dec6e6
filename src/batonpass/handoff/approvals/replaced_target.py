"""The file that a held call would replace: recorded with the hold, and compared again when the call is approved.

The approver of a write has seen the lines that it removes. If the file is another one when the call is made, they have
not, and the call is held once more.
"""

import json
from typing import Final

import msgspec

from batonpass.handoff.files.replaced_file import LookedAt, look_at, look_elsewhere
from batonpass.handoff.runtime.desk import Desk
from batonpass.handoff.tools.declaration import Declared
from batonpass.handoff.tools.whole_write import WholeWrite, find_whole_write
from batonpass.model.base.content_names import ARGUMENTS, STANDING
from batonpass.model.base.ids import Digest, RunId
from batonpass.model.bodies.body import ToolHeld
from batonpass.model.ledger.content import Content

_KEY: Final = b"standing"
_ABSENT: Final = b"none"
_PRESENT: Final = b"file"


class GatedCall(msgspec.Struct, frozen=True, kw_only=True):
    """A call that somebody has to approve, and where it would be made."""

    desk: Desk
    root: RunId
    declared: Declared
    described: bytes  # tool and arguments, as they are recorded
    is_here: bool  # its paths are of this machine


class StandingTarget(msgspec.Struct, frozen=True):
    """The record of a file with a hold: its digest, if its bytes are known, and the file as content."""

    digest: Digest | None
    content: Content


def find_standing(asked: GatedCall) -> StandingTarget | None:
    """Return the file that a call would replace as a whole, as it is now; None if it would do something else."""
    write = _write(asked)
    if write is None:
        return None
    seen = _seen(asked, write)
    # Without secrets, as in the arguments: so a secret that stays is shown nowhere, and is no difference.
    content = asked.desk.told(STANDING, msgspec.json.encode(seen.file))
    return StandingTarget(_digest(asked, seen), content)


def stands_as_shown(asked: GatedCall, held: ToolHeld) -> bool:
    """Return whether the file is as it was when a call was held, or is already as the call would make it."""
    write = None if held.standing is None else _write(asked)
    if write is None:
        return True
    seen = _seen(asked, write)
    return _digest(asked, seen) == held.standing or seen.data == write.text.encode(errors="surrogatepass")


def _write(asked: GatedCall) -> WholeWrite | None:
    if asked.declared.reads:
        return None
    return find_whole_write(asked.declared.name, json.loads(asked.described).get(ARGUMENTS))


def _seen(asked: GatedCall, write: WholeWrite) -> LookedAt:
    if not asked.is_here:
        return look_elsewhere(write)
    return look_at(write, asked.declared.place)


def _digest(asked: GatedCall, seen: LookedAt) -> Digest | None:
    if not seen.is_known:
        return None
    state = (_ABSENT,) if seen.data is None else (_PRESENT, seen.data)
    return asked.desk.secrets.digest(asked.root, _KEY, seen.file.path.encode(), *state)
