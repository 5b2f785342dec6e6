"""Items behind receipts, decoded as far as they still exist and this version can read them."""

from batonpass.errors import InvalidValueError, NotFoundError
from batonpass.model.base.ids import ContentId, PrincipalId
from batonpass.model.baton.items import Artifact, ItemValue
from batonpass.store.port import LedgerView
from batonpass.wire.documents import decode_item, decode_report, is_report


def find_body(view: LedgerView, content: ContentId) -> bytes | None:
    """Return the bytes of a content; None if it is gone."""
    try:
        return view.get_content(content).body
    except NotFoundError:
        return None


def find_item(view: LedgerView, item: ContentId) -> tuple[ItemValue, PrincipalId] | None:
    """Return an item and who recorded it; None if it is gone, is not an item, or cannot be read."""
    body = find_body(view, item)
    try:
        return None if body is None else decode_item(body)[:2]
    except InvalidValueError:
        return None


def find_value(view: LedgerView, item: ContentId) -> ItemValue | None:
    """Return the value of an item or a report; None if it is gone or cannot be read."""
    body = find_body(view, item)
    try:
        if body is None:
            return None
        return decode_report(body) if is_report(body) else decode_item(body)[0]
    except InvalidValueError:
        return None


def name_of_item(view: LedgerView, item: ContentId) -> str:
    """Return the name of an item: that of a file, else its kind."""
    value = find_value(view, item)
    return value.name if isinstance(value, Artifact) else "an item" if value is None else type(value).__name__.lower()
