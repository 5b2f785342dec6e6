"""Find: one box for an id, words, a path or a digest. It goes there, or lists the candidates."""

import re
from typing import Final

from batonpass.audit.meant_ids import find_ended
from batonpass.model.base.ids import CALL, HANDOFF, RECEIPT, RUN
from batonpass.records.lineage import Tasks
from batonpass.server.page.request import PageMoved, PageRequest, Shown
from batonpass.server.page.sign import all_signs
from batonpass.server.page.views.blame import address_of_code
from batonpass.server.page.views.now import line_of

_ID: Final = re.compile(r"(?:(?:run|handoff|receipt|call)_)?[0-9a-hjkmnp-tv-z]{4,26}")
_MOST: Final = 20
_ADDRESSES: Final = {RUN: "/tasks/", HANDOFF: "/handoffs/", RECEIPT: "/ledger/receipts/"}
_LOOKED_AT: Final = 250


def find(asked: PageRequest) -> Shown:
    """Return the possible meanings of the words in the box, or lead to the only one."""
    query = asked.asked("q")
    shown: Shown = {"q": query, "ids": [], "tasks": [], "handoffs": [], "signs": all_signs(), "looked_at": _LOOKED_AT}
    if not query:
        return shown
    if (address := address_of_code(asked, query)) is not None:
        raise PageMoved(address)
    with asked.looking() as view:
        if _ID.fullmatch(query.lower()):
            ids = [str(one.id) for one in find_ended(view, query.lower(), (RUN, HANDOFF, RECEIPT))][:_MOST]
            known = [(one, _ADDRESSES[one.partition("_")[0]] + one) for one in ids if one.partition("_")[0] != CALL]
            if len(known) == 1:
                raise PageMoved(known[0][1])
            shown["ids"] = known
        tasks, wanted = Tasks(view), query.casefold()
        for run in view.find_runs(roots=True, limit=_LOOKED_AT):
            text = tasks.find(run)
            if text is not None and wanted in (text.words or "").casefold():
                shown["tasks"].append((run, text.words))
        handoffs = [line_of(view, one) for one in view.find_handoffs(limit=_LOOKED_AT)]
        shown["handoffs"] = [one for one in handoffs if wanted in f"{one.handoff.to} {one.task}".casefold()][:_MOST]
        shown["tasks"] = shown["tasks"][:_MOST]
    return shown


def show_keys(asked: PageRequest) -> Shown:
    """Return the keys of the page, and the meanings of its signs."""
    del asked
    return {"signs": all_signs()}
