"""Things that the words of a baton announce and do not bring: attachments, lists, values to be told later.

These checks read prose, so they can be wrong. They never block: the receiver asks if a question is left. They are made
for English. Every pattern has a bounded length, so that a text is read in linear time.
"""

import re
from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import Final

from batonpass.guard.baton.placeholder import find_placeholders
from batonpass.guard.baton.problem import Problem, quote
from batonpass.guard.baton.prose.prose import Prose, a_doubt
from batonpass.guard.baton.prose.signs import ANNOUNCES, BLANKS, PROMISES, TextForms, WordSign
from batonpass.model.baton.baton import Baton
from batonpass.model.baton.items import Artifact, Decision, WorkItem

# "attach the receipt to the entry" is an order, "attached to the entry" a state; "the attached log" announces one.
_ATTACHED: Final = re.compile(
    r"\b(?:attached|enclosed)\b(?! (?:to|by|with) )|\b(?:see|in|as) (?:the |an |my )?(?:attachment|enclosure)s?\b"
    r"|\b(?:i'm|i am|we're|we are) sending (?:you |along|over|with)"
    r"|\b(?:sent|sending) along\b|\b(?:appendix|annex|table|list|text|code|figures?|example) below\b"
    # "against the checklist below", unless something stands there; "below 5 %" is a limit.
    r"|\b(?:the|these|this|those|my|our|each|all) (?:[\w-]{1,30} ){1,3}below\b(?=\s{0,3}(?:[.,;!?)]|$| and "
    r"| or | to ))"
    r"(?!.{0,200}\n\s{0,20}\S)"
    # "see ticket": which one? "with this error message": which message?
    r"|\bsee (?:the |our |my )?(?:ticket|issue|e-?mail|thread|docs?|document|spec|wiki|chat|slack"
    r"|notes?)\b(?! ?[#\w:/(\"'])"
    r"|\b(?:this|these|following) (?:error|error message|message|stack trace|snippet|code|query|extract"
    r"|sentence|paragraph|numbers"
    r"|address|link|list|table|text|data|figures|requirements)\b(?=\s{0,2}(?:[.,;!?]|$)| (?:and|or|to"
    r"|into)\b)(?!.{0,300}(?:\n|[\"“`]|: ))"
    # "with the credentials provided"
    r"|\b(?:the|these|your) (?:[\w-]{1,30} ){1,3}(?:provided|supplied)\b(?=\s{0,3}(?:[.,;!?)]|$| and | or | to ))",
    re.IGNORECASE,
)
_PROMISED: Final = re.compile(
    r"\b(?:i|we|they|he|she|ana|customer|client|boss)(?:'ll| will| shall) "
    r"(?:send|give|provide|share|upload|forward|tell|let you know|get back|decide|confirm)\b"
    r"|\b(?:do not|don't|does not|doesn't) (?:know|have) (?:it |this |that |them )?yet\b"
    r"|\bnot (?:yet )?(?:been )?(?:decided|chosen|agreed)(?: yet)?\b"
    r"|\b(?:is|are) still (?:open|unknown|unclear|missing)\b"
    r"|\b(?:to be (?:decided|determined|defined|announced|confirmed|agreed))\b"
    r"|\b(?:has|have|did) not (?:yet )?(?:answer(?:ed)?|repl(?:y|ied)|decided?|confirm(?:ed)?|sa(?:y|id)|sent"
    r"|chosen|told us)\b"
    r"|\b(?:comes?|arrives?) (?:tomorrow|later|soon|next week)\b"
    r"|\bstill (?:has|have) to (?:choose|decide|answer|confirm|send)\b"
    r"|\bwill (?:be (?:sent|given|provided|shared|added|announced|communicated)|follow|come) (?:separately"
    r"|later|soon|tomorrow|next|in a)\b"
    r"|\b(?:has|have) not (?:yet )?been (?:fixed|set|defined|given|named|agreed|settled|specified|determined"
    r"|approved|received)\b"
    r"|\b(?:is|are) (?:up to|for) (?:the )?(?:\w{1,20} )(?:to decide|to choose|to say)\b"
    r"|\b(?:we|i|you) (?:should|will|are going to|hope to|expect to) (?:get|receive|have) (?:it |them |that "
    r"|this )?(?:tomorrow|later|soon|next|on|in|by)\b"
    r"|\b(?:is|are) (?:coming|on (?:its|their|the) way|in preparation|not (?:ready|finished|available) yet"
    r"|being (?:written|prepared|collected|drafted))\b"
    r"|\bwhich (?:we|i|you) (?:should|will|are going to|hope to|expect to) (?:get|receive)\b",
    re.IGNORECASE,
)
_TAGS: Final = (
    "a|abbr|article|aside|b|blockquote|body|br|button|caption|code|dd|details|div|dl|dt|em|figure|footer|form"
    "|head|header"
    "|hr|html|i|iframe|img|input|label|li|link|main|meta|nav|ol|option|p|pre|script|section|select|small|span|strong"
    "|style|sub|summary|sup|svg|table|tbody|td|textarea|tfoot|th|thead|title|tr|u|ul|video"
)
_BLANK: Final = re.compile(
    r"_{4,}|\?{3,}|\{\{[^{}\n]{1,60}\}\}"
    r"|<(?:insert|your|add|fill|enter|put|name of|tbd)\b[^<>\n]{0,60}>"
    rf"|(?<!\w)<(?!(?:{_TAGS})>)[a-z]{{2,20}}(?:[ _-][a-z]{{1,20}}){{0,4}}>"
    r"|\[(?:insert|your|add|fill|enter|put|tbd|tba|todo|xxx)\b[^\]\n]{0,60}\]"
    r"|\[[A-Z][A-Z _-]{2,40}\](?!\()|(?<![\w\]])\[(?:date|name|time|place|address|amount|number|link|title|city"
    r"|[a-z]{3,20}(?: [a-z]{1,20}){1,5})\](?![(\[])"
    r"|(?<![\w-])(?:TBD|TBA|TBC|XX+|NN+)(?![\w-])"
    r"|(?<![\w$])\$\{?[A-Z][A-Z_]{2,30}\b|(?<=: )(?:\{\s{0,3}\}|\[\s{0,3}\])(?=[.\s]{0,3}$)"
)
_ENDS_OPEN: Final = re.compile(
    r"(?::|\b(?:following|namely|such as|including|like this|these are)|\bfollows?\.?)\s*$", re.IGNORECASE
)
_LONGEST_END: Final = 12  # characters
# A heading under which nothing stands before the next heading, or the end.
_EMPTY_HEADING: Final = re.compile(
    r"^[ \t]{0,8}([A-Z][^:\n]{1,60}):[ \t]{0,8}\n\s{0,40}(?:[^\s:][^:\n]{1,60}:[ \t]{0,8}(?:\n|\Z)|\Z)"
    r"|^[ ]{0,3}#{1,6} ([^\n]{1,60})\n(?:[ \t]{0,8}\n){0,4}(?=[ ]{0,3}#{1,6} |\Z)",
    re.MULTILINE,
)
_QUOTES: Final = "\"'`“”‘’«»"  # noqa: RUF001 - the marks that people type

# Signs, without which the patterns above find nothing.
_ANNOUNCING: Final = WordSign(
    "attached|enclosed|attachment|attachments|enclosure|enclosures|sending",
    "sent & along",
    "see & ticket|issue|email|mail|thread|doc|docs|document|spec|wiki|chat|slack|note|notes",
    "provided|supplied",
)
# The other alternatives of `_ATTACHED` have words that stand in many texts. So what is beside them is looked for.
_NAMED_BELOW: Final = (
    "appendix",
    "annex",
    "table",
    "list",
    "text",
    "code",
    "figure",
    "figures",
    "example",
)
_BELOW: Final = re.compile(r" below\b(?=\s{0,3}(?:[.,;!?)]|$| and | or | to ))", re.MULTILINE)
_POINTED_AT: Final = (
    "error|message|stack trace|snippet|code|query|extract|sentence|paragraph|numbers|address|link|list|table|text|data"
    "|figures|requirements"
)
_POINTING: Final = {word.encode(): re.compile(rf"{word} (?:{_POINTED_AT})") for word in ("this", "these", "following")}
_BELOW_WORD: Final = b"below"
_PROMISING: Final = WordSign(
    "ll|will|shall & i|we|they|he|she|ana|customer|client|boss"
    "& send|give|provide|share|upload|forward|tell|let|get|decide|confirm",
    "yet & know|have & not|don|doesn",
    "not & decided|chosen|agreed",
    "still & open|unknown|unclear|missing",
    "'to be ' & decided|determined|defined|announced|confirmed|agreed",
    "'has not '|'have not '|'did not ' & not"
    "& answer|answered|reply|replied|decide|decided|confirm|confirmed|say|said|sent|chosen|told",
    "come|comes|arrive|arrives & tomorrow|later|soon|next",
    "still & has|have & choose|decide|answer|confirm|send",
    "'will be '|'will follow'|'will come' & will & separately|later|soon|tomorrow|next|in",
    "' not been '|' not yet been ' & been"
    "& fixed|set|defined|given|named|agreed|settled|specified|determined|approved|received",
    "'to decide'|'to choose'|'to say' & decide|choose|say & is|are & up|for",
    "get|receive|have & we|i|you & should|will|going|hope|expect & tomorrow|later|soon|next|on|in|by",
    "coming|preparation|being & is|are",
    "way & on & its|their|the",
    "yet & not & ready|finished|available",
)
SIGN_WORDS: Final = _ANNOUNCING.words | _PROMISING.words | _POINTING.keys() | {_BELOW_WORD}
_WHAT: Final = attrgetter("what")
_MARKS: Final = ("____", "???", "{{", "<", "[", "TBD", "TBA", "TBC", "XX", "NN", "$", "{")


def find_prose_gaps(baton: Baton, prose: Prose) -> Iterator[Problem]:
    """Yield things that orders and other texts announce and do not bring."""
    kinds, signs = baton.by_kind, prose.order_signs
    if (signs | prose.told_signs) & ANNOUNCES and Artifact not in kinds:
        announcing = [text for text in (*prose.orders, *prose.told) if prose.signs[text] & ANNOUNCES]
        yield from _first(_ATTACHED, announcing, "data-gap.attachment-missing", _about_attachment)
    if signs & PROMISES:
        yield from _first(_PROMISED, prose.orders, "data-gap.promised", _about_promise)
    if signs & BLANKS:
        for text in prose.orders:
            yield from _first(_BLANK, (text,), "data-gap.blank", _about_blank)
    for text in prose.orders:
        if "\n" in text:
            yield from _empty_headings(text)
    # Only the end is looked at: the pattern would be tried at every character.
    if not baton.items and _ENDS_OPEN.search(baton.task, max(0, len(baton.task.rstrip()) - _LONGEST_END)):
        yield a_doubt(
            "data-gap.list-missing",
            f"The task {quote(baton.task)} ends where a list should begin.",
            f"What follows after {quote(baton.task[-40:])}?",
        )
    said = [*kinds.get(WorkItem, ()), *kinds.get(Decision, ())]
    for hollow in find_placeholders(map(_WHAT, said), baton.task) if said else ():
        yield a_doubt(
            "data-gap.hollow",
            f"{quote(hollow)} says nothing about what was done or decided.",
            f"What was really done or decided, instead of {quote(hollow)}?",
        )


def find_signs(forms: TextForms) -> int:
    """Return the signs of the checks above that a text has."""
    signs = 0
    if _may_announce(forms):
        signs |= ANNOUNCES
    if _PROMISING.is_in(forms):
        signs |= PROMISES
    text = forms.text
    # Each mark has one of these. One character is found at once, and two take as long as all of them together.
    if (
        "_" in text
        or "?" in text
        or "{" in text
        or "<" in text
        or "[" in text
        or "$" in text
        or "X" in text
        or ("B" in text and "TB" in text)
        or ("N" in text and "NN" in text)
    ) and any(map(text.__contains__, _MARKS)):
        signs |= BLANKS
    return signs


def _may_announce(forms: TextForms) -> bool:
    """Return False if a text surely announces nothing, although it has the words for it."""
    if _ANNOUNCING.is_in(forms):
        return True
    words, lowered = forms.words, forms.lowered
    for word, pattern in _POINTING.items():
        if word in words and pattern.search(lowered):
            return True
    place = lowered.find(" below") if _BELOW_WORD in words else -1
    while place >= 0:
        if lowered.endswith(_NAMED_BELOW, 0, place) or _BELOW.match(lowered, place):
            return True
        place = lowered.find(" below", place + 1)
    return False


def _first(pattern: "re.Pattern[str]", texts: Sequence[str], check: str, about: "tuple[str, str]") -> Iterator[Problem]:
    for text in texts:
        if (found := next(filter(_is_meant, pattern.finditer(text)), None)) is not None:
            shown = quote(text[max(0, found.start() - 20) : found.end() + 20].strip(), words=8)
            yield a_doubt(check, about[0].format(shown), about[1].format(shown))
            return


def _is_meant(found: "re.Match[str]") -> bool:
    """Return whether words are used, and not quoted: an order may be about the mark itself, or show a command."""
    text, before, after = found.string, found.start() - 1, found.end()
    if before >= 0 and after < len(text) and text[before] in _QUOTES and text[after] in _QUOTES:
        return False
    return text.count("`", 0, found.start()) % 2 == 0 and "template" not in text.lower()


def _empty_headings(text: str) -> Iterator[Problem]:
    if (found := _EMPTY_HEADING.search(text)) is not None:
        title = quote((found[1] or found[2]).strip())
        yield a_doubt(
            "data-gap.section-empty",
            f"Nothing stands under {title}.",
            f"What belongs under {title}, or is there nothing?",
        )


_about_attachment: Final = (
    "{} announces something, and nothing is attached.",
    "Which file is meant by {}, and can you attach it?",
)
_about_promise: Final = ("{} leaves open what the task needs.", "What is the value that {} leaves open?")
_about_blank: Final = ("{} has a blank that nobody has filled in.", "What belongs into the blank in {}?")
