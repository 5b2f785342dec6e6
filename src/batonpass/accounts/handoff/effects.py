"""Effects of calls besides changed files, as their tools reported them."""

import json

from msgspec import Struct

from batonpass.model.base.content_names import EFFECT
from batonpass.model.base.visible import visible
from batonpass.model.bodies.body import Effect, EffectKind
from batonpass.records.call import CallRecord
from batonpass.records.text import Found, Text, read_texts
from batonpass.store.port import LedgerView


class EffectTold(Struct, frozen=True, kw_only=True):
    """One effect of a call, as far as its description still exists."""

    kind: EffectKind
    target: str | None  # None if it is gone
    how: str | None = None
    count: int | None = None
    found: Found = Found.KEPT

    def __str__(self) -> str:
        parts = [str(self.kind), visible(self.how) if self.how else "", self.shown]
        many = "" if self.count is None else f" ({self.count:,})"
        return " ".join(filter(None, parts)) + many

    @property
    def shown(self) -> str:
        """Return the target, made safe for a screen, or why it is not available."""
        return str(self.found) if self.target is None else visible(self.target)


def read_effects(view: LedgerView, call: CallRecord) -> tuple[EffectTold, ...]:
    """Return the effects of a call besides changed files."""
    if call.ending is None or not call.effects:
        return ()
    texts = {text.ref.id: text for name, text in read_texts(view, call.ending).items() if name.startswith(EFFECT)}
    return tuple(tell_effect(effect, texts.get(effect.effect)) for effect in call.effects)


def tell_effect(effect: Effect, text: Text | None) -> EffectTold:
    """Return an effect with its description."""
    if text is None or text.body is None:
        found = Found.MISSING if text is None else text.found
        return EffectTold(kind=effect.kind, target=None, count=effect.count, found=found)
    try:
        said = json.loads(text.body)
        return EffectTold(kind=effect.kind, target=str(said["target"]), how=said.get("how"), count=effect.count)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return EffectTold(kind=effect.kind, target=text.words, count=effect.count)
