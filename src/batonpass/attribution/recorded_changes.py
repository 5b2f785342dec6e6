"""The files that a recorded call changed, read back with their lines."""

from batonpass.attribution.change import FileChange
from batonpass.attribution.documents import decode_change
from batonpass.model.content_names import CHANGE
from batonpass.model.ids import ContentId
from batonpass.records.call import CallRecord
from batonpass.records.text import read_texts
from batonpass.store.port import LedgerView


def read_file_changes(view: LedgerView, call: CallRecord) -> tuple[FileChange, ...]:
    """Return what a call changed in files, as far as those words are there. Raises `InvalidValueError`."""
    return tuple(find_file_changes(view, call).values())


def find_file_changes(view: LedgerView, call: CallRecord) -> dict[ContentId, FileChange]:
    """Return the same by the contents that say so."""
    if call.ending is None or not call.changes:
        return {}
    return {
        text.ref.id: decode_change(text.body, call=call.id, run=call.run, at=call.ending.at)
        for name, text in read_texts(view, call.ending).items()
        if name.startswith(CHANGE) and text.body is not None
    }
