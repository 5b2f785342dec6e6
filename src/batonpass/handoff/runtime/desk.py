"""The desk: the store, the clock, the policy and the other things that every use case needs, in one object.

It also turns values into contents, so that secrets are removed in one place. Nothing here runs code of an agent.
"""

import os
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Final
from weakref import WeakValueDictionary

from batonpass.clock import Clock
from batonpass.credentials import Provider, Redactor
from batonpass.grants.issuer import Issuer
from batonpass.grants.resolved_paths import WorkTreePaths
from batonpass.handoff.files.protected_paths import Protected
from batonpass.handoff.files.work_tree import Files
from batonpass.handoff.runtime.run_state import NO_WORK, Holding, Work
from batonpass.handoff.runtime.shown_sheets import Showings
from batonpass.handoff.runtime.tree_secret import TreeSecrets
from batonpass.handoff.tools.json_values import SHOWN
from batonpass.ledger.act_receipts import Recording
from batonpass.model.base.checks import require_instance
from batonpass.model.base.content_names import ARGUMENTS, BODY, REASON, RESULT
from batonpass.model.base.ids import AgentId, HandoffId, KeyId, PrincipalId, RunId, require_principal
from batonpass.model.baton.card import Card
from batonpass.model.baton.items import VALUE_TYPES, Item, ItemValue, Statement, part_of
from batonpass.model.grants.grant import RelayEnrolment, Signed
from batonpass.model.ledger.content import Content, new_content
from batonpass.model.ledger.key import RunKeys
from batonpass.model.policy.handoff_policy import UNRULED, HandoffPolicy
from batonpass.model.policy.policy_rules import Policy
from batonpass.scan import PatternScanner, Scanner
from batonpass.store.port import LedgerStore
from batonpass.wire.documents import JSON, encode_item

REFUSAL: Final = "refusal"


@dataclass(slots=True, kw_only=True)
class Desk:
    """Everything that use cases share in one relay: the store, the recording, the keys and the rules."""

    store: LedgerStore
    recording: Recording
    clock: Clock
    secrets: TreeSecrets
    gates: Policy = field(default_factory=Policy)  # rules, tiers, and the required parts of batons
    cards: Mapping[AgentId, Card] = field(default_factory=dict)
    checks: Mapping[str, Callable[[], object]] = field(default_factory=dict)  # of conditions of decisions, by name
    scanner: Scanner = field(default_factory=PatternScanner)
    providers: Mapping[str, Provider] = field(default_factory=dict)  # of credentials, by name
    redactor: Redactor = field(default_factory=Redactor)
    run_keys: RunKeys  # the keys of the runs in this process
    enrolments: Callable[[Collection[KeyId]], tuple[Signed[RelayEnrolment], ...]]  # signed enrolments of relays
    issuer: Issuer  # signs grants with the key of this relay
    work_tree: Path  # relative paths in grants start here
    protected: Protected  # files that no call may touch
    leased: WeakValueDictionary[HandoffId, Holding] = field(default_factory=WeakValueDictionary)  # under work here
    # Handoffs that were revised here, and roots that go on from what was refuted here, while somebody may be working.
    revised: set[HandoffId | RunId] = field(default_factory=set)
    known_agents: set[AgentId] = field(default_factory=set)  # that ran in this ledger, or were warned about
    showings: Showings = field(default_factory=Showings)  # decision sheets that were shown here
    _tree: WorkTreePaths | None = field(default=None, init=False)
    files: Files = field(init=False)  # the files of the work tree, shared by all runs here

    def __post_init__(self) -> None:
        self.files = Files(self.work_tree)

    @property
    def policy(self) -> HandoffPolicy:
        """Return the policy for handoffs."""
        return self.gates.handoffs

    def policy_with(self, own: HandoffPolicy | None) -> HandoffPolicy:
        """Return the policy for a handoff whose sender brings a policy of its own: both count."""
        if own is None:
            return self.gates.handoffs
        return own if self.gates.handoffs == UNRULED else self.gates.handoffs.joined(own)

    def resolve(self, path: str) -> str:
        """Return where a path leads, in the work tree or outside, if a tool follows it from the current directory."""
        if self._tree is None:
            self._tree = WorkTreePaths(self.work_tree)
        return self._tree(os.path.join(os.getcwd(), path))  # noqa: PTH118, PTH109 - as it is written

    def place_of(self, real: str) -> str:
        """Return the same as `resolve` for a path whose links were followed already."""
        if self._tree is None:
            self._tree = WorkTreePaths(self.work_tree)
        return self._tree.place_of(real)

    def text(self, name: str, words: str) -> Content:
        """Return a text as content, without secrets."""
        return new_content(name, self.redactor.text(name, words), self.clock.now())

    def refusal(self, words: str) -> Content:
        """Return the reason of a refusal as content, without anything that looks like a secret."""
        return new_content(REASON, self.redactor.text(REFUSAL, words), self.clock.now())

    def json(self, name: str, document: bytes) -> Content:
        """Return a JSON document as content, without secrets."""
        return new_content(name, self.redactor.document(name, document), self.clock.now(), media_type=JSON)

    def told(self, name: str, document: bytes) -> Content:
        """Return a report of a tool as content; secrets are removed as in its arguments."""
        return new_content(name, self.redactor.document(ARGUMENTS, document), self.clock.now(), media_type=JSON)

    def result(self, body: bytes, media_type: str) -> Content:
        """Return the result of a call as content. If a secret was removed, it is never given back."""
        clean = self.redactor.document(RESULT, body) if media_type == JSON else self.redactor.body(RESULT, body)
        return new_content(RESULT, clean, self.clock.now(), media_type=media_type if clean == body else SHOWN)

    def body(self, body: bytes | str, media_type: str) -> Content:
        """Return a file as content, without the secrets of credentials that were fetched."""
        clean = self.redactor.text(BODY, body) if isinstance(body, str) else self.redactor.body(BODY, bytes(body))
        return new_content(BODY, clean, self.clock.now(), media_type=media_type)

    def item(
        self,
        value: ItemValue,
        by: PrincipalId,
        number: int,
        *,
        said_at: datetime | None = None,
        work: Work = NO_WORK,
    ) -> tuple[Item, Content]:
        """Return a value as an item with its content; an item from elsewhere keeps its time (`said_at`)."""
        require_instance("item", value, VALUE_TYPES)
        require_principal("by", by)
        at = said_at or self.clock.now()
        part = part_of(value)
        name = f"{part}.{number}"
        if isinstance(value, Statement):
            # Only the words of the human, and nothing removed: they stay byte-identical wherever they go.
            content = new_content(name, value.text, at)
        else:
            content = self.json(name, encode_item(value, by, at, role=work[0], phase=work[1]))
        item = Item(
            id=content.ref.id,
            digest=content.ref.digest,
            part=part,
            by=by,
            at=at,
            value=value,
            role=work[0],
            phase=work[1],
        )
        return item, content
