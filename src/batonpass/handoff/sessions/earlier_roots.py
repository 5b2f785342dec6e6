"""Earlier root runs of one session: their used limits, and calls that a person denied, still count in the next.

To the person who granted something, a session that ends and is resumed is one session. If ending it reset the limits,
there would be no limit.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Any, Final, TypeAlias

from msgspec.structs import replace

from batonpass.guard.grants.limit_accounts import account_of, most_of, permit_account
from batonpass.handoff.runtime.bounds import read_terms
from batonpass.model.base.content_names import ARGUMENTS
from batonpass.model.base.ids import PrincipalId, RunId, StreamId, is_user
from batonpass.model.bodies.body import Kind, ToolHeld, ToolRefused
from batonpass.model.grants.charge import MILLION, Unit
from batonpass.model.grants.grant import Grant, Terms
from batonpass.model.grants.limits import UNLIMITED, Limits
from batonpass.model.grants.permit import Permit
from batonpass.model.grants.scope import Scope
from batonpass.model.ledger.run import Run
from batonpass.records.hold import find_decision
from batonpass.store.port import LedgerView, ReceiptQuery
from batonpass.wire.receipt_codec import decode_receipt

# By tool and recorded arguments: who denied the call.
Denied: TypeAlias = Mapping[tuple[str, bytes], PrincipalId]

_WHOLE: Final = ""  # the account of the whole grant; other names are single permits


def find_earlier(view: LedgerView, series: str, principal: PrincipalId, before: RunId | None = None) -> tuple[Run, ...]:
    """Return the root runs that a principal started in a series, the latest first. With `before`, only older ones."""
    roots = [run for run in view.find_runs(series=series) if run.principal == principal]
    at = next((at + 1 for at, run in enumerate(roots) if run.id == before), 0)
    return tuple(roots[at:])


def less_used(view: LedgerView, grant: Grant, roots: Iterable[Run]) -> Grant:
    """Return a grant with its limits reduced by the use of some root runs.

    Time is not counted, since it starts anew with each root. Two permits are the same if they differ only in their
    limits.
    """
    used: Counter[tuple[str, Unit]] = Counter()
    for root in roots:
        terms = read_terms(view, decode_receipt(view.get_receipt_at(StreamId(root.id), 1).payload))
        if terms is not None:
            used.update(dict(_used_under(view, terms.said)))
    return replace(
        grant,
        may=_left_of(grant.may, used),
        may_delegate=_left_of(grant.may_delegate, used),
        limits=_left(grant.limits, _WHOLE, used),
    )


def _used_under(view: LedgerView, terms: Terms) -> Iterator[tuple[tuple[str, Unit], int]]:
    account = account_of(terms)
    yield from (((_WHOLE, one.unit), one.used) for one in view.find_charged([account]))
    # A permit that may be both used and delegated is counted once.
    for permit in {one.text: one for one in (*terms.may.permits, *terms.may_delegate.permits)}.values():
        if permit.limits != UNLIMITED:
            charged = view.find_charged([permit_account(account, permit)])
            yield from (((_bare(permit), one.unit), one.used) for one in charged)


def _left_of(scope: Scope, used: Mapping[tuple[str, Unit], int]) -> Scope:
    return Scope(tuple(replace(one, limits=_left(one.limits, _bare(one), used)) for one in scope.permits))


def _left(limits: Limits, name: str, used: Mapping[tuple[str, Unit], int]) -> Limits:
    found: dict[str, Any] = {}
    for unit in Unit:
        most = most_of(limits, unit)
        if most is not None:
            left = max(0, most - used.get((name, unit), 0))
            found[unit] = f"{Decimal(left) / MILLION:f}" if unit is Unit.SPEND else left
    return replace(limits, **found)


def _bare(permit: Permit) -> str:
    return replace(permit, limits=UNLIMITED).text


def find_denied(view: LedgerView, roots: Iterable[Run]) -> Denied:
    """Return the calls that were held in some root runs and that a person denied."""
    found: dict[tuple[str, bytes], PrincipalId] = {}
    for root in roots:
        for stored in view.find_receipts(ReceiptQuery(root=root.id, kind=Kind.TOOL_HELD)):
            receipt = decode_receipt(stored.payload)
            ref = receipt.content.get(ARGUMENTS)
            decided = find_decision(view, receipt.body.call) if isinstance(receipt.body, ToolHeld) else None
            if not isinstance(receipt.body, ToolHeld) or ref is None or decided is None:
                continue
            body, words = decided[1], view.get_content(ref.id).body
            # A hold that timed out was denied by nobody, and erased arguments cannot be compared.
            if isinstance(body, ToolRefused) and is_user(body.by) and words is not None:
                found.setdefault((receipt.body.tool, words), body.by)
    return found
