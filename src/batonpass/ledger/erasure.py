"""Erasure: a content is removed, the receipt that commits to it stays, and another receipt records the erasure."""

from collections.abc import Sequence

from batonpass.clock import Clock
from batonpass.ledger.draft import Draft
from batonpass.ledger.ledger import Ledger, Recorder
from batonpass.model.base.ids import ContentId, PrincipalId, StreamId
from batonpass.model.bodies.body import ContentErased
from batonpass.model.ledger.content import new_content
from batonpass.store.port import LedgerStore


class Erasure:
    """Erases contents. The chain still verifies, and shows each erasure, by whom and when."""

    def __init__(self, store: LedgerStore, ledger: Ledger, recorder: Recorder, clock: Clock) -> None:
        self._store = store
        self._ledger = ledger
        self._recorder = recorder
        self._clock = clock

    def erase(self, contents: Sequence[ContentId], *, by: str, reason: str) -> None:
        """Erase contents in one commit with the receipt that says so. Raises `NotFoundError` if one does not exist."""
        with self._store.view() as view:
            anchor = view.info().genesis
            for content in contents:
                view.get_content(content)
        self._ledger.append(
            Draft(
                stream=StreamId(self._recorder.id),
                body=ContentErased(contents=tuple(contents), by=PrincipalId(by)),
                anchor=anchor,
                contents=(new_content("reason", reason, self._clock.now()),),
            ),
        )
