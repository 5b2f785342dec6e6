"""The items that people took out of the remains of a root."""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Final

from batonpass.model.base.ids import RunId
from batonpass.model.baton.items import ItemValue
from batonpass.model.bodies.body import SessionPruned
from batonpass.model.ledger.remark import RemarkKind
from batonpass.records.text import read_receipt, read_texts
from batonpass.store.port import LedgerView
from batonpass.wire.documents import to_document

PRUNED: Final = "pruned"  # the content of the receipt: a list of what was taken out


def mark_of(value: ItemValue) -> list[object]:
    """Return a value as the receipt lists it: its kind and its words."""
    return [type(value).__name__, to_document(value)]


def key_of(value: ItemValue) -> str:
    """Return the text with which a value is compared with pruned ones."""
    return _key(mark_of(value))


def find_pruned(view: LedgerView, root: RunId) -> Mapping[str, datetime]:
    """Return the items that people took out of the remains of a root, and when. One that is recorded anew counts."""
    found: dict[str, datetime] = {}
    for remark in reversed([*view.find_remarks(RemarkKind.PRUNED, root)]):
        receipt = read_receipt(view.get_receipt(remark.receipt))
        if not isinstance(receipt.body, SessionPruned) or receipt.body.root != root:
            continue
        listed = read_texts(view, receipt).get(PRUNED)
        if listed is not None and listed.words is not None:
            found.update((_key(mark), receipt.at) for mark in json.loads(listed.words))
    return found


def _key(mark: object) -> str:
    return json.dumps(mark, ensure_ascii=False, sort_keys=True)
