"""What the words of a baton announce and do not bring: attachments, lists, values that somebody will say later.

These checks read prose, so they can be wrong. They never block: the receiver asks if a question is left. They are made
for English. Every pattern has a bounded length, so that a text is read in linear time.
"""

import re
from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import Final

from batonpass.guard.baton.placeholder import find_placeholders
from batonpass.guard.baton.problem import Problem, Whom, quote
from batonpass.guard.baton.prose import Prose
from batonpass.model.base.kinds import ErrorType
from batonpass.model.baton.baton import Baton
from batonpass.model.baton.items import Artifact, Decision, WorkItem

# "attach the receipt to the entry" is an order, "attached to the entry" a state; "the attached log" announces one.
_ATTACHED: Final = re.compile(
    r"\b(?:attached|enclosed)\b(?! (?:to|by|with) )|\b(?:see|in|as) (?:the |an |my )?(?:attachment|enclosure)s?\b"
    r"|\b(?:i'm|i am|we're|we are) sending (?:you |along|over|with)"
    r"|\b(?:sent|sending) along\b|\b(?:appendix|annex|table|list|text|code|figures?|example) below\b",
    re.IGNORECASE,
)
_PROMISED: Final = re.compile(
    r"\b(?:i|we|they|he|she|ana|customer|client|boss)(?:'ll| will| shall) "
    r"(?:send|give|provide|share|upload|forward|tell|let you know|get back|decide|confirm)\b"
    r"|\b(?:do not|don't|does not|doesn't) (?:know|have) (?:it |this |that |them )?yet\b"
    r"|\bnot (?:yet )?(?:been )?(?:decided|chosen|agreed)(?: yet)?\b"
    r"|\b(?:is|are) still (?:open|unknown|unclear|missing)\b"
    r"|\b(?:to be (?:decided|determined|defined|announced|confirmed|agreed))\b",
    re.IGNORECASE,
)
_BLANK: Final = re.compile(
    r"_{4,}|\?{3,}|\{\{[^{}\n]{1,60}\}\}"
    r"|<(?:insert|your|add|fill|enter|put|name of|tbd)\b[^<>\n]{0,60}>"
    r"|\[(?:insert|your|add|fill|enter|put|tbd|tba|todo|xxx)\b[^\]\n]{0,60}\]"
    r"|\[[A-Z][A-Z _-]{2,40}\](?!\()"
    r"|(?<![\w-])(?:TBD|TBA|TBC|XXX)(?![\w-])"
)
_ENDS_OPEN: Final = re.compile(r"(?::|\b(?:following|namely|such as|including|like this|these are))\s*$", re.IGNORECASE)

# Signs, without which the patterns above find nothing: of `_ATTACHED`, of `_PROMISED` and of `_BLANK`.
_ANNOUNCING: Final = (
    "attached",
    "attachment",
    "enclosed",
    "enclosure",
    "sending",
    "sent along",
    "appendix below",
    "annex below",
    "table below",
    "list below",
    "text below",
    "code below",
    "figure below",
    "figures below",
    "example below",
)
_PROMISING: Final = ("'ll ", " will ", " shall ", " yet", "decided", "chosen", "agreed", "still ", "to be ")
_WHAT: Final = attrgetter("what")
_MARKS: Final = ("____", "???", "{{", "<", "[", "TBD", "TBA", "TBC", "XXX")


def find_prose_gaps(baton: Baton, prose: Prose) -> Iterator[Problem]:
    """Yield what orders and other texts announce and do not bring."""
    kinds = baton.by_kind
    if Artifact not in kinds and any(map(prose.lowered.__contains__, _ANNOUNCING)):
        yield from _first(_ATTACHED, (*prose.orders, *prose.told), "data-gap.attachment-missing", _about_attachment)
    if any(map(prose.lowered_orders.__contains__, _PROMISING)):
        yield from _first(_PROMISED, prose.orders, "data-gap.promised", _about_promise)
    if any(map(prose.ordered.__contains__, _MARKS)):
        for text in prose.orders:
            yield from _first(_BLANK, (text,), "data-gap.blank", _about_blank)
    if not baton.items and _ENDS_OPEN.search(baton.task):
        yield _gap(
            "data-gap.list-missing",
            f"The task {quote(baton.task)} ends where a list should begin.",
            f"What follows after {quote(baton.task[-40:])}?",
        )
    said = [*kinds.get(WorkItem, ()), *kinds.get(Decision, ())]
    for hollow in find_placeholders(map(_WHAT, said), baton.task) if said else ():
        yield _gap(
            "data-gap.hollow",
            f"{quote(hollow)} says nothing about what was done or decided.",
            f"What was really done or decided, instead of {quote(hollow)}?",
        )


def _first(pattern: "re.Pattern[str]", texts: Sequence[str], check: str, about: "tuple[str, str]") -> Iterator[Problem]:
    for text in texts:
        if (found := pattern.search(text)) is not None:
            shown = quote(text[max(0, found.start() - 20) : found.end() + 20].strip(), words=8)
            yield _gap(check, about[0].format(shown), about[1].format(shown))
            return


_about_attachment: Final = (
    "{} announces something, and nothing is attached.",
    "Which file is meant by {}, and can you attach it?",
)
_about_promise: Final = ("{} leaves open what the task needs.", "What is the value that {} leaves open?")
_about_blank: Final = ("{} has a blank that nobody has filled in.", "What belongs into the blank in {}?")


def _gap(check: str, about: str, question: str) -> Problem:
    return Problem(
        error=ErrorType.DATA_GAP,
        check=check,
        about=about,
        blocking=False,
        doubtful=True,
        question=question,
        whom=Whom.PRODUCER,
    )
