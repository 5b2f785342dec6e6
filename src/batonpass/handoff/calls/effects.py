"""Effects that tools tell of: said while a call ran, or declared once and for all; as its outcome has them."""

from collections.abc import Iterator
from typing import Any, Final

from batonpass.handoff.calls.sayings import Said
from batonpass.handoff.calls.tools import ToolCall
from batonpass.handoff.calls.values import describe, readable
from batonpass.handoff.desk import Desk
from batonpass.handoff.holding import Holding
from batonpass.model.bodies import Effect
from batonpass.model.content import Content
from batonpass.model.content_names import EFFECT

CUT: Final = "effects.cut"

_VERSION: Final = 0


def find_effects(
    desk: Desk, holding: Holding, call: ToolCall[Any], said: tuple[Said, ...], *, completed: bool
) -> Iterator[tuple[Effect, Content]]:
    """Yield what a call changed, as its receipt names it, and in words.

    What is declared about the tool counts for a call that returned and said nothing of that kind itself. One that
    raised may have come as far as that or not: of it there is only what it said.
    """
    declared = call.declared
    if completed and declared.effect is not None and all(one.kind is not declared.effect for one in said):
        said = (*said, Said(kind=declared.effect, target=call.target or declared.name))
    for number, one in enumerate(said, 1):
        target = readable(one.target)
        document = {"v": _VERSION, "kind": one.kind, "target": target, "how": one.how, "count": one.count}
        present = {name: value for name, value in document.items() if value is not None}
        content = desk.told(f"{EFFECT}{number}", describe(present))
        digest = desk.secrets.digest(holding.root, b"target", target.encode())
        yield Effect(effect=content.ref.id, kind=one.kind, target=digest, count=one.count), content
