"""One recorded call, checked against the permits of every hop above it."""

from collections.abc import Mapping
from typing import Any

import msgspec

from batonpass.errors import InvalidValueError, UngrantedError
from batonpass.guard.grants.grant_chain import SKEW
from batonpass.guard.grants.recorded_call import JUDGED, find_broken, is_redacted
from batonpass.model.base.content_names import ARGUMENTS, SCOPE
from batonpass.model.base.ids import ContentId
from batonpass.model.grants.condition import argument_of
from batonpass.model.grants.grant import Terms
from batonpass.model.grants.permit import Permit
from batonpass.model.grants.resource import read_resource
from batonpass.model.ledger.content import StoredContent
from batonpass.model.ledger.receipt import Receipt

Contents = Mapping[ContentId, StoredContent]


class RecordedCall:
    """The action, target and arguments in the receipt of a request."""

    def __init__(self, scope: str, receipt: Receipt, contents: Contents) -> None:
        self.unjudged = False  # some conditions could not be checked: arguments were erased or redacted
        self._text = scope
        self._receipt = receipt
        self._contents = contents
        self._judged: Mapping[str, object] | None = None
        self._looked = False
        self._action, _, resource = scope.partition(":")
        try:
            self._place = read_resource("resource", resource)
        except InvalidValueError as error:
            raise UngrantedError(f"no grant can name its action and target: {error}", field=SCOPE) from None

    def permits(self, agent: str, terms: Terms, *, last: bool) -> tuple[Permit, ...]:
        """Return the permits of one hop that may have covered the call. Raises `UngrantedError` if there are none."""
        scope = terms.may if last else terms.may_delegate
        at = self._receipt.at
        # The call was judged a moment before its receipt was dated, and a permit may have ended in between: hence the
        # skew.
        meant = [
            permit
            for permit in scope.permits
            if permit.pattern.matches(self._action, self._place) and (permit.until is None or at < permit.until + SKEW)
        ]
        found = tuple(permit for permit in meant if self._keeps_to(permit))
        if not found:
            broken = "" if not meant else f" with {', '.join(map(str, self._find_broken(meant[0])))} not kept"
            may = f"may {scope}" if last else f"may delegate {scope}"
            whose = f"{terms.agent} {may}, and did {self._text}{broken}"
            if not last:
                whose = f"{agent} did {self._text}{broken}, and {terms.agent} {may}"
            raise UngrantedError(whose, field=ARGUMENTS if meant else SCOPE)
        return found

    def _keeps_to(self, permit: Permit) -> bool:
        return not permit.where or not any(True for _ in self._find_broken(permit))

    def _find_broken(self, permit: Permit) -> list[object]:
        judged = self._read_judged()
        if judged is None:
            self.unjudged = True
            return []
        self.unjudged = self.unjudged or any(is_redacted(judged.get(one.argument)) for one in permit.where)
        return list(find_broken(permit, judged))

    def _read_judged(self) -> Mapping[str, object] | None:
        """Return the arguments that the guard evaluated; None if they were erased, or are unreadable now."""
        if not self._looked:
            self._looked = True
            if JUDGED not in self._receipt.content:
                raise UngrantedError(
                    "its grant has conditions, and the call does not say with which arguments it was judged",
                    field=ARGUMENTS,
                )
            self._judged = self._document(JUDGED)
            given = self._document(ARGUMENTS)
            if self._judged is not None and given is not None:
                _require_same(self._judged, given.get(ARGUMENTS))
        return self._judged

    def _document(self, name: str) -> dict[str, Any] | None:
        ref = self._receipt.content.get(name)
        stored = None if ref is None else self._contents.get(ref.id)
        if stored is None or stored.body is None:
            return None
        try:
            found = msgspec.json.decode(stored.body)
        except (msgspec.DecodeError, ValueError, RecursionError):
            return None
        return found if isinstance(found, dict) else None


def _require_same(judged: Mapping[str, object], given: object) -> None:
    """Refuse a call whose numbers differ from those that the guard evaluated. Raises `UngrantedError`.

    Texts are not compared: the guard evaluates a resolved path, and the call has it as it was written.
    """
    if not isinstance(given, Mapping):
        return
    for name, value in judged.items():
        was = argument_of(name, given)
        if isinstance(value, int | float) and isinstance(was, int | float) and (type(value), value) != (type(was), was):
            raise UngrantedError(f"{name} was judged as {value}, and the call was made with {was}", field=ARGUMENTS)
